#!/usr/bin/env python3
"""Addresses that a GPU's threads accessed, beside those that the emulator works out.

  addresses.py pack ACCESSES.csv CASE.xz             what recorder.cpp wrote, to what is kept
  addresses.py check FOREWARP RECORDINGS [CASE...]   compares; exit code 1 when a thread differs

A recording holds a line a thread, in the order of launches and threads, with what it accessed in the order of its program:
PC KIND BYTES BUFFER@OFFSET, where KIND is r, w or a (atomic), and a buffer is named by its place in the case. What is as in
the thread before is written as +DIFFERENCE of the offsets, or = for a whole line, so that it packs well.
"""
import lzma
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
READ, WRITE = 1, 2


def encode(threads):
    """threads: [(launch, thread, [(pc, kind, bytes, buffer, offset)])] in order. Yields lines."""
    before, said = [], None
    for launch, thread, accesses in threads:
        words = []
        for i, (pc, kind, size, buffer, offset) in enumerate(accesses):
            if i < len(before) and before[i][:4] == (pc, kind, size, buffer):
                words.append(f"{offset - before[i][4]:+d}")
            else:
                words.append(f"{pc} {kind} {size} {buffer}@{offset}")
        text = ";".join(words)
        yield f"{launch} {thread}:" + ("=" if text == said else text)
        before, said = accesses, text


def decode(lines):
    before, said = [], None
    for line in lines:
        head, text = line.split(":", 1)
        launch, thread = map(int, head.split())
        text = said if text == "=" else text
        accesses = []
        for i, word in enumerate(text.split(";") if text else []):
            if " " in word:
                pc, kind, size, place = word.split()
                buffer, offset = place.split("@")
                accesses.append((int(pc), kind, int(size), int(buffer), int(offset)))
            else:
                accesses.append(before[i][:4] + (before[i][4] + int(word),))
        yield launch, thread, accesses
        before, said = accesses, text


def recorded(path):
    """Threads of what recorder.cpp wrote; its rows come in the order in which threads happened to run."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            launch, thread, sequence, pc, flags, size, buffer, offset = map(int, line.split(","))
            kind = {READ: "r", WRITE: "w", READ | WRITE: "a"}[flags & (READ | WRITE)]
            found.setdefault((launch, thread), []).append((sequence, (pc, kind, size, buffer, offset)))
    for (launch, thread), accesses in sorted(found.items()):
        yield launch, thread, [access for _, access in sorted(accesses)]


def emulated(path):
    """Threads of what `forewarp addresses` wrote. What lies in no buffer is said to lie in buffer -1."""
    now, accesses, buffers, of_block = None, [], {}, 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("# buffers:"):
                buffers = {name: i for i, name in enumerate(line.split()[2:])}
            elif line.startswith("# launch"):
                of_block = int(line.split()[3])
            elif line[0].isdigit():
                launch, block, place, pc, kind, size, buffer, offset = line.split(",")
                thread = (int(launch), int(block) * of_block + int(place))
                if thread != now:
                    if now:
                        yield *now, accesses
                    now, accesses = thread, []
                accesses.append((int(pc), kind, int(size), buffers.get(buffer, -1), int(offset)))
    if now:
        yield *now, accesses


def pack(source, target):
    with lzma.open(target, "wt", preset=9 | lzma.PRESET_EXTREME, encoding="utf-8") as file:
        count = 0
        for line in encode(recorded(source)):
            file.write(line + "\n")
            count += 1
    print(f"{target}: {count} threads, {os.path.getsize(target)} bytes")


def show(access):
    return "nothing" if access is None else "{} {} {} bytes buffer {} + {}".format(*access)


def difference(hardware, emulator):
    """What the first thread that differs does, or None."""
    count = 0
    while True:
        there, here = next(hardware, None), next(emulator, None)
        if there == here:
            if there is None:
                return None, count
            count += len(there[2])
            continue
        if there is None or here is None or there[:2] != here[:2]:
            who = [f"launch {t[0]} thread {t[1]}" if t else "none" for t in (there, here)]
            return f"the GPU's next thread with an access is {who[0]}, the emulator's {who[1]}", count
        for i in range(max(len(there[2]), len(here[2]))):
            one = there[2][i] if i < len(there[2]) else None
            other = here[2][i] if i < len(here[2]) else None
            if one != other:
                return f"launch {there[0]} thread {there[1]}, access {i}: GPU {show(one)}, emulator {show(other)}", count


def check_case(forewarp, folder, stem, case):
    with tempfile.TemporaryDirectory() as work:
        listing = os.path.join(work, "emulated.csv")
        subprocess.run([forewarp, "addresses", os.path.join(ROOT, "traces", "sm_90", stem + ".cubin"), "--launch",
                        os.path.join(ROOT, "traces", stem + ".yaml"), "--case", case, "--out", listing], check=True)
        with lzma.open(os.path.join(folder, case + ".xz"), "rt", encoding="utf-8") as file:
            wrong, count = difference(decode(line.rstrip("\n") for line in file), emulated(listing))
    print(f"{case}: " + (f"DIFFERS after {count} accesses: {wrong}" if wrong else f"{count} accesses agree"))
    return wrong is None and count > 0


def check(forewarp, folder, names):
    with open(os.path.join(HERE, "cases.txt"), encoding="utf-8") as file:
        cases = [line.split() for line in file if line.strip() and not line.startswith("#")]
    chosen = [(stem, case) for stem, case in cases if not names or case in names]
    good = [check_case(forewarp, folder, stem, case) for stem, case in chosen]
    return 0 if good and all(good) else 1


def main(words):
    if len(words) == 3 and words[0] == "pack":
        pack(words[1], words[2])
        return 0
    if len(words) >= 3 and words[0] == "check":
        return check(os.path.abspath(words[1]), words[2], words[3:])
    sys.exit(__doc__.strip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

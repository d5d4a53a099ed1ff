#!/usr/bin/env python3
"""What of other people's kernels can be predicted: a table by image.

    validation/others.py [--forewarp FILE] [--sm 80|90] [--sample N] [--minutes M] WHEEL|FOLDER|FILE...

Takes wheels (nothing of them is installed or kept), folders and single files, looks for machine code in every file, and
asks `forewarp list` about a sample of its kernels. nvdisasm must be on the PATH. Nothing is downloaded: get wheels with
`pip download --no-deps NAME`.

supported   no instruction is refused or unknown (a trap in code that never runs does not count)
usable      and every value that an address, a predicate or a branch depends on is computed
async       of those that are not: what stops them is of warpgroup products, TMA, clusters and barriers in shared memory alone
"""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

# Refused where they run, but compilers put them where nothing goes: a failed check, the end of a function.
COLD = {"BPT"}
ASYNCHRONOUS = {"SYNCS", "ARRIVES", "UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED", "UTMAPF", "UTMACCTL",
                "UTMACMDFLUSH", "UBLKPF", "HGMMA", "IGMMA", "QGMMA", "BGMMA", "WARPGROUP", "WARPGROUPSET", "USETMAXREG",
                "STAS", "REDAS", "UCGABAR_ARV", "UCGABAR_WAIT", "UCGABAR_SET", "UCGABAR_GET", "USETSHMSZ"}
# Copies that are emulated, but not timed: a prediction refuses the kernel.
UNTIMED = {"UTMASTG", "UTMAPF", "UBLKPF"}
FATBIN = b"\x50\xed\x55\xba"


def has_code(path):
    """Whether the file is a cubin or may carry fat binaries."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:4] == b"\x7fELF" and head[18:20] == b"\xbe\x00":
                return True
            if head[:4] != FATBIN and head[:4] != b"\x7fELF" and head[:8] != b"!<arch>\n":
                return False
            tail = b""
            file.seek(0)
            while chunk := file.read(1 << 22):
                if FATBIN in tail + chunk:
                    return True
                tail = chunk[-4:]
    except OSError:
        pass
    return False


def files_of(path):
    if os.path.isfile(path):
        return [path]
    found = []
    for folder, _, names in os.walk(path):
        found += [os.path.join(folder, name) for name in names]
    return sorted(p for p in found if os.path.isfile(p) and not os.path.islink(p))


class Row:
    def __init__(self, name):
        self.name = name
        self.kernels = self.looked_at = self.supported = self.usable = self.asynchronous = 0
        self.blocks = collections.Counter()

    def add(self, other):
        self.kernels += other.kernels
        self.looked_at += other.looked_at
        self.supported += other.supported
        self.usable += other.usable
        self.asynchronous += other.asynchronous
        self.blocks += other.blocks

    def share(self, part, of):
        return f"{100 * part / of:.1f} %" if of else "-"

    def line(self):
        others = self.looked_at - self.asynchronous
        blocks = ", ".join(f"{name} {count}" for name, count in self.blocks.most_common(4))
        return (f"| {self.name} | {self.kernels} | {self.looked_at} | {self.share(self.asynchronous, self.looked_at)} | "
                f"{self.share(self.supported, others)} | {self.share(self.usable, others)} | {blocks} |")


def ask(forewarp, image, sm, timeout, *options):
    result = subprocess.run([forewarp, "list", image, "--sm", str(sm), "--json", "-", *options], capture_output=True,
                            timeout=timeout, text=True, errors="replace")
    if result.returncode == 0:
        return json.loads(result.stdout)["kernels"], ""
    if result.returncode not in (1, 2):
        return [], f"ended with exit code {result.returncode}"
    return [], result.stderr.strip().split("\n")[0]


def form_of(unknown):
    """'modifier .X of FOO: 3 times, first in ...' without the place."""
    return unknown.split(":")[0].split(" (")[0][:60]


def survey(forewarp, image, name, sm, sample, timeout):
    row = Row(name)
    kernels, error = ask(forewarp, image, sm, timeout, "--no-code")
    if error:
        if "none for sm_" not in error and "no 64-bit CUDA code" not in error and "no kernel" not in error:
            row.blocks[error[-70:]] += 1
        return row
    row.kernels = len(kernels)
    kernels, error = ask(forewarp, image, sm, timeout, "--one-in", str(max(1, -(-row.kernels // sample))))
    if error:
        row.blocks[error[-70:]] += 1
    for kernel in kernels:
        row.looked_at += 1
        refused = (set(kernel["refused"]) - COLD) | (set(kernel["not_timed"]) & UNTIMED)
        uncomputed = set(kernel["not_computed"])
        later = {name for name in uncomputed if name.split(".")[0] in ASYNCHRONOUS}
        unknown = {form_of(u) for u in kernel["not_understood"]}
        later |= {u for u in unknown if u.split(" of ")[-1] in ASYNCHRONOUS}
        own = (refused - ASYNCHRONOUS) | (unknown - later)
        if not refused and not unknown and not uncomputed:
            row.supported += 1
            row.usable += 1
        elif (refused & ASYNCHRONOUS or later) and not own and not uncomputed - later:
            row.asynchronous += 1
        else:
            row.supported += not own
            row.blocks.update(own | (uncomputed - later))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="WHEEL|FOLDER|FILE")
    parser.add_argument("--forewarp", default="build/release/forewarp")
    parser.add_argument("--sm", type=int, action="append", choices=(80, 90), help="both if not given")
    parser.add_argument("--sample", type=int, default=200, help="kernels of an image that are looked at (default 200)")
    parser.add_argument("--minutes", type=float, default=10, help="of all (default 10)")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    rows = collections.OrderedDict()
    skipped = 0
    for path in arguments.paths:
        folder = None
        try:
            top = os.path.basename(path.rstrip("/"))
            if zipfile.is_zipfile(path):
                folder = tempfile.mkdtemp(prefix="others-")
                with zipfile.ZipFile(path) as wheel:
                    wheel.extractall(folder)
                top = top.split("-")[0]
            for image in files_of(folder or path):
                if not has_code(image):
                    continue
                for sm in arguments.sm or (80, 90):
                    left = end - time.monotonic()
                    if left <= 0:
                        skipped += 1
                        continue
                    name = f"{top} {os.path.basename(image).split('.')[0]} sm_{sm}"
                    try:
                        row = survey(arguments.forewarp, image, name, sm, arguments.sample, min(left, 300))
                    except subprocess.TimeoutExpired:
                        row = Row(name)
                        row.blocks["more than its share of time"] += 1
                    if row.kernels or row.blocks:
                        rows[name] = row
                        print(row.line(), file=sys.stderr, flush=True)
        finally:
            if folder:
                shutil.rmtree(folder)
    print("| image | kernels | looked at | async | supported | usable | blocks |\n|---|--:|--:|--:|--:|--:|---|")
    total = Row("all")
    for row in rows.values():
        print(row.line())
        total.add(row)
    print(total.line())
    if skipped:
        print(f"\nOut of time: {skipped} images were not looked at.")


if __name__ == "__main__":
    main()

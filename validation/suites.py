#!/usr/bin/env python3
"""Kernels of public suites, predicted end to end: a table of what each takes.

    validation/suites.py [--forewarp FILE] [--gpu NAME] [--sources FOLDER] [--keep FOLDER] [NAME...]

Clones the suites (git) or takes clones under --sources, compiles their kernels (nvcc), and predicts them with the
launch files in validation/public. Nothing of the suites is kept. nvcc and nvdisasm must be on the PATH. Where a
suite has a reference that is quickly computed here, too, what the emulator leaves in memory is compared with it.
Cycles are compared with those that public/GPU.csv holds. --keep leaves cubins and launch files in a folder, from which
collect.py measures them: collect.py run --traces FOLDER.
NAME: only the launch files whose names begin so.
"""
import argparse
import array
import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = {"samples": ("https://github.com/NVIDIA/cuda-samples", ["Common"])}
MOST_SECONDS, MOST_MIB = 10, 1024  # of the processor and of memory, a case


def lcg(count, seed, modulus=None):
    state, values = seed, array.array("I", bytes(4 * count))
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        values[i] = (state >> 8) % modulus if modulus else state >> 8
    return values


def uniform(count, low=0.0, high=1.0, seed=1):
    one = array.array("f", [0.0])

    def single(x):
        one[0] = x
        return one[0]

    values = array.array("f", bytes(4 * count))
    for i, bits in enumerate(lcg(count, seed)):
        values[i] = single(single(single(bits / 16777216.0) * single(high - low)) + low)
    return values


def total(values):
    return array.array("I", [sum(values) & 0xFFFFFFFF])


def partial_sums(values, of):
    return array.array("I", [sum(values[i:i + of]) & 0xFFFFFFFF for i in range(0, len(values), of)])


def scanned(values, of):
    out = array.array("I")
    for start in range(0, len(values), of):
        running = 0
        for value in values[start:start + of]:
            out.append(running)
            running = (running + value) & 0xFFFFFFFF
    return out


def added(a, b):
    return array.array("f", [x + y for x, y in zip(a, b)])


def transposed(values, width):
    return array.array("f", [values[x * width + y] for y in range(width) for x in range(width)])


def summed_by_bin(values, bins, rows):
    return array.array("I", [sum(values[b + r * bins] for r in range(rows)) for b in range(bins)])


def grid_sums(values, blocks, threads):
    """Of reduce6 and on: a block takes every blocks-th stretch of twice its threads."""
    sums = [0] * blocks
    for i in range(0, len(values), threads):
        sums[i // (2 * threads) % blocks] += sum(values[i:i + threads])
    return array.array("I", sums)


M = 1 << 20
# By case: the buffer that holds the result, and what belongs there.
REFERENCES = {
    "vector_add": ("c", lambda: added(uniform(M), uniform(M, seed=2))),
    "scan_shared": ("o", lambda: scanned(lcg(1 << 18, 1, 256), 1024)),
    "histogram_64_merge": ("h", lambda: summed_by_bin(lcg(64 * 512, 1, 100), 64, 512)),
    "histogram_256_merge": ("h", lambda: summed_by_bin(lcg(256 * 240, 1, 100), 256, 240)),
}
for name in ("copy", "copySharedMem"):
    REFERENCES["transpose_" + name] = ("o", lambda: uniform(M))
for name in ("Naive", "Coalesced", "NoBankConflicts", "Diagonal"):
    REFERENCES["transpose_transpose" + name] = ("o", lambda: transposed(uniform(M), 1024))
for number in range(6):
    REFERENCES[f"reduce_{number}"] = ("o", lambda n=number: partial_sums(lcg(M, 1, 256), 256 if n < 3 else 512))
for number in (6, 7):
    REFERENCES[f"reduce_{number}"] = ("o", lambda: grid_sums(lcg(M, 1, 256), 64, 256))


def equal(case, image, launch, forewarp, folder):
    buffer, reference = REFERENCES[case]
    dump = os.path.join(folder, "dump")
    done = subprocess.run([forewarp, "emulate", image, "--launch", launch, "--case", case, "--dump", f"{buffer}={dump}"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return "emulate: " + done.stderr.strip().split("\n")[0]
    expected = reference().tobytes()
    with open(dump, "rb") as file:
        return "equal" if file.read(len(expected)) == expected else "DIFFERS"


def measured(command):
    """Exit code, error text, processor seconds, MiB."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read().decode(errors="replace").strip()
    return process.returncode, text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def profile(gpu):
    """Measured cycles by case."""
    path = os.path.join(HERE, "public", gpu + ".csv")
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {row["case"]: float(row["gpc__cycles_elapsed.max"])
                for row in csv.DictReader(line for line in file if not line.startswith("#"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--forewarp", default="build/release/forewarp")
    parser.add_argument("--gpu", default="h200-sxm")
    parser.add_argument("--sources", help="holds a clone of each suite, or receives it")
    parser.add_argument("--keep", help="leaves cubins and launch files there")
    arguments = parser.parse_args()
    known, errors = profile(arguments.gpu), []
    launches = sorted(f for f in os.listdir(os.path.join(HERE, "public")) if f.endswith(".yaml"))
    if arguments.names:
        launches = [f for f in launches if any(f.startswith(name) for name in arguments.names)]
    failed = over = predicted = 0
    print("| case | predicted, us | cycles | measured | error | processor s | MiB | result |\n"
          "|---|--:|--:|--:|--:|--:|--:|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="suites-") as folder:
        sources = arguments.sources or folder
        for launch in launches:
            suite, name = launch[:-len(".yaml")].split("_", 1)
            url, includes = SUITES[suite]
            clone = os.path.join(sources, os.path.basename(url))
            if not os.path.isdir(clone):
                subprocess.run(["git", "clone", "--quiet", "--depth", "1", url, clone], check=True)
            found = [os.path.join(top, name + ".cu") for top, _, files in os.walk(clone) if name + ".cu" in files]
            path = os.path.join(HERE, "public", launch)
            with open(path) as file:
                cases = re.findall(r"^(\w+):$", file.read(), re.M)
            image = os.path.join(folder, name + ".cubin")
            compiled = found and subprocess.run(
                ["nvcc", "-cubin", "-arch=sm_90", "-std=c++17", "-o", image, found[0], "-I", os.path.dirname(found[0])] +
                [f"-I{os.path.join(clone, i)}" for i in includes], capture_output=True).returncode == 0
            if compiled and arguments.keep:
                os.makedirs(os.path.join(arguments.keep, "sm_90"), exist_ok=True)
                shutil.copy(image, os.path.join(arguments.keep, "sm_90", launch[:-len(".yaml")] + ".cubin"))
                shutil.copy(path, arguments.keep)
            for case in cases:
                if not compiled:
                    print(f"| {case} | - | - | - | - | - | - | its source does not compile |", flush=True)
                    failed += 1
                    continue
                result = os.path.join(folder, "result.json")
                code, text, seconds, mib = measured([arguments.forewarp, "predict", image, "--launch", path, "--case", case,
                                                     "--gpu", arguments.gpu, "--no-cache", "--threads", "1", "--causes", "counted",
                                                     "--json", result])
                if code != 0:
                    print(f"| {case} | - | - | - | - | {seconds:.1f} | {mib:.0f} | exit {code}: {text.splitlines()[0] if text else ''} |", flush=True)
                    failed += 1
                    continue
                with open(result) as file:
                    metrics = json.load(file)["cases"][0]["metrics"]
                microseconds, cycles = metrics["gpu__time_duration.sum"] / 1000, metrics["gpc__cycles_elapsed.max"]
                beside = " - | -"
                if case in known:
                    errors.append(100 * (cycles / known[case] - 1))
                    beside = f" {known[case]:,.0f} | {errors[-1]:+.1f} %"
                values = equal(case, image, path, arguments.forewarp, folder) if case in REFERENCES else ""
                predicted += 1
                failed += values not in ("", "equal")
                over += seconds > MOST_SECONDS or mib > MOST_MIB
                print(f"| {case} | {microseconds:.1f} | {cycles:,.0f} |{beside} | {seconds:.1f} | {mib:.0f} | {values} |", flush=True)
    print(f"\n{predicted} predicted, {failed} failed, {over} took more than {MOST_SECONDS} processor seconds or {MOST_MIB} MiB.")
    if errors:
        sizes = sorted(abs(e) for e in errors)
        print(f"cycles of {len(sizes)}: mean {statistics.mean(sizes):.1f} %, median {statistics.median(sizes):.1f} %, "
              f"90th percentile {sizes[int(0.9 * (len(sizes) - 1))]:.1f} %, worst {sizes[-1]:.1f} %")
    return 1 if failed or over else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The mystery plot's measurements: rate of square products against size, at sizes around every cliff.

  sweep.py launches --out FILE [--sparse]     the launch file of our product at those sizes, for forewarp and the runner
  sweep.py collect --runner RUN --out OUT     on the GPU machine, from the root of the repository: OUT/sgemm_warp_tiled.csv
                                              (ncu, caches flushed) and OUT/library_bf16.csv (events, warm, back to back)
  sweep.py height RESULT.json [--from N]      how far a result of `forewarp predict` is from the measured curve, by size

Both are kept in validation/sweep/GPU/. Columns: size, time in ns (median, least, most, runs) and, under ncu, cycles.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "traces"), os.path.join(ROOT, "validation", "collect")]

import launches  # noqa: E402
import ncu_csv  # noqa: E402

KERNEL = "sgemm_warp_tiled"
CUBIN = os.path.join(ROOT, "traces", "sm_90", "matmul_07_warp_tiled_double_buffered.cubin")
TILE = 128
LARGEST = 4096
METRICS = ["gpc__cycles_elapsed.max", "gpu__time_duration.sum"]


def wave_jumps(sms=132, tile=TILE, per_sm=1, largest=LARGEST):
    """Sizes at which a product of so many tiles on a side needs one wave more than the size before."""
    waves = lambda n: -(-(-(-n // tile)) ** 2 // (sms * per_sm))
    return [n for n in range(2, largest + 1) if waves(n) > waves(n - 1)]


def sizes():
    """The cliffs of divisibility beside every multiple of 256, all sizes around two of them and around the first wave
    jumps, and a net over the rest."""
    chosen = set(range(256, LARGEST + 1, 32))
    for n in range(512, LARGEST, 256):
        chosen |= {n - 1, n + 1, n + 2, n + 4, n + 8, n + 16, n + 32}
    chosen |= set(range(1780, 1809)) | set(range(3580, 3589))
    for n in wave_jumps():
        if n > 1000:
            chosen |= {n - 1, n, n + 3, n + 7}
    chosen |= set(range(1404, 1417))
    chosen |= set(range(301, LARGEST, 131))
    return sorted(chosen)


def sparse_sizes():
    """Those of them that say most about the cliffs: the predictions of the gallery."""
    return [n for n in sizes() if n % 128 in (0, 1, 4, 8, 127) or 1404 <= n <= 1416]


def products(chosen):
    def product(n):
        tiles = -(-n // TILE)
        return launches.case(f"{KERNEL}_{n}", {"a": launches.uniform(n * n, 1), "b": launches.uniform(n * n, 2),
                                               "c": launches.zero(n * n)},
                             launches.launch(KERNEL, (tiles, tiles), 256, "a", "b", "c", n, n, n))
    return "\n\n".join(product(n) for n in chosen) + "\n"


def write_rows(path, story, names, rows):
    """story: {key: value}, of which plots reads name, origin and gpu."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in story.items())
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def collect_ours(options, folder):
    launch_file, manifest = os.path.join(folder, "sweep.yaml"), os.path.join(folder, "manifest.csv")
    with open(launch_file, "w", encoding="utf-8") as file:
        file.write(products(sizes()))
    command = [options.ncu, "--profile-from-start", "off", "--clock-control", "none", "--csv", "--page", "raw", "--metrics",
               ",".join(METRICS), options.runner, CUBIN, "--launch", launch_file, "--profile", "--repeat", str(options.repeat),
               "--deadline", str(options.seconds), "--manifest", manifest]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(manifest, newline="", encoding="utf-8") as file:
        listed = list(csv.DictReader(file))
    seen = {}
    for launch, row in ncu_csv.join(ncu_csv.parse(done.stdout), listed):
        seen.setdefault(int(launch["case"].rsplit("_", 1)[1]), []).append([row[m] for m in METRICS])
    if not seen:
        sys.exit("sweep.py: ncu reported nothing: " + done.stdout[-2000:])
    rows = []
    for size, values in sorted(seen.items()):
        cycles, times = zip(*values)
        rows.append([size, f"{statistics.median(times):.0f}", f"{min(times):.0f}", f"{max(times):.0f}", len(times),
                     f"{statistics.median(cycles):.0f}"])
    story = {"name": KERNEL, "origin": "measured", "gpu": options.gpu,
             "how": f"Nsight Compute, caches flushed before each launch, median of {options.repeat}"}
    write_rows(os.path.join(options.out, KERNEL + ".csv"), story, ["size", "ns", "ns_min", "ns_max", "runs", "cycles"], rows)


def collect_library(options, folder):
    program = os.path.join(folder, "library_product")
    subprocess.run(["nvcc", "-O2", "-arch=sm_90", os.path.join(HERE, "library_product.cu"), "-lcublasLt", "-o", program],
                   check=True)
    done = subprocess.run([program] + [str(n) for n in sizes()], stdout=subprocess.PIPE, text=True, check=True)
    story = {"name": "library bf16", "origin": "measured", "gpu": options.gpu,
             "how": "cublasLt; events around back-to-back launches, warm, median of the groups"}
    write_rows(os.path.join(options.out, "library_bf16.csv"), story, ["size", "ns", "ns_min", "ns_max", "runs"],
               [line.split(",") for line in done.stdout.split()])


def measured_cycles():
    """By size."""
    with open(os.path.join(HERE, "h200-sxm", KERNEL + ".csv"), encoding="utf-8", newline="") as file:
        return {int(row["size"]): float(row["cycles"]) for row in csv.DictReader(line for line in file if not line.startswith("#"))}


def predicted_cycles(path):
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    return {int(case["id"].rsplit("_", 1)[1]): case["metrics"]["gpc__cycles_elapsed.max"] for case in cases}


def height_errors(seen, curve, least):
    """How far the predicted rate is from the measured one, by size."""
    return {n: abs(seen[n] / cycles - 1) for n, cycles in sorted(curve.items()) if n >= least and n in seen}


def show_height(options):
    errors = height_errors(measured_cycles(), predicted_cycles(options.result), options.least)
    if not errors:
        sys.exit(f"sweep.py: {options.result} holds no size that was measured")
    worst = max(errors, key=errors.get)
    print(f"{len(errors)} sizes from {min(errors)} to {max(errors)}: height {100 * sum(errors.values()) / len(errors):.1f} % off "
          f"on average, most at {worst}: {100 * errors[worst]:.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("launches")
    one.add_argument("--out", required=True)
    one.add_argument("--sparse", action="store_true")
    one = commands.add_parser("collect")
    one.add_argument("--runner", required=True)
    one.add_argument("--out", required=True)
    one.add_argument("--gpu", default="H200 SXM")
    one.add_argument("--ncu", default="ncu")
    one.add_argument("--repeat", type=int, default=3)
    one.add_argument("--seconds", type=int, default=240)
    one = commands.add_parser("height")
    one.add_argument("result")
    one.add_argument("--from", dest="least", type=int, default=512)
    options = parser.parse_args()
    if options.command == "height":
        return show_height(options)
    if options.command == "launches":
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(products(sparse_sizes() if options.sparse else sizes()))
        return None
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        collect_library(options, folder)
        collect_ours(options, folder)
    return None


if __name__ == "__main__":
    main()

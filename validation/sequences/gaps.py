#!/usr/bin/env python3
"""What lies between two kernels of a stream: rows of launches of calibration kernels that take from 1.4 to 31 microseconds.

  gaps.py write FOLDER          writes FOLDER/STEM.yaml, launch files for the cubins of traces/sm_90
  gaps.py show TIMES.csv...     microseconds from start to start, from `forewarp-run CUBIN --launch FILE ... --repeat 9 --csv
                                TIMES.csv`; a kernel alone takes what validation/profiles says of it with warm caches
"""
import csv
import os
import sys

REPEATS = (1, 2, 4, 8, 16, 32)
EMPTY = [("b1_t32", 1, 32), ("b132_t32", 132, 32), ("b1056_t32", 1056, 32), ("b132_t1024", 132, 1024)]
LINES = [("8k", 1), ("40k", 5), ("192k", 24)]


def case(name, buffers, launch, count):
    return f"{name}_x{count}:\n  buffers: {{{buffers}}}\n  launches:\n" + f"    - {launch}\n" * count


def files():
    empty = [case(f"empty_{name}", "unused: {bytes: 4, fill: zero}",
                  f"{{kernel: empty, grid: [{blocks}, 1, 1], block: [{threads}, 1, 1], args: []}}", count)
             for name, blocks, threads in EMPTY for count in REPEATS]
    lines = [case(f"straight_line_{name}_w1_b132_n1", "out: {bytes: 16896, fill: zero}",
                  "{kernel: straight_line, grid: [132, 1, 1], block: [32, 1, 1], "
                  f"args: [{{pointer: out}}, {{i32: {pieces}}}, {{i32: 1}}, {{f32: 1.0}}]}}", count)
             for name, pieces in LINES for count in REPEATS]
    return {"micro_launch": empty, "micro_code_size": lines}


def write(folder):
    os.makedirs(folder, exist_ok=True)
    for stem, cases in files().items():
        with open(os.path.join(folder, stem + ".yaml"), "w", encoding="utf-8") as file:
            file.write("\n".join(cases))


def show(paths):
    rows = {}
    for path in paths:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                name, _, count = row["case"].rpartition("_x")
                if row["launch"] == "all" or count == "1":
                    rows.setdefault(name, {})[int(count)] = float(row["warm_us_median"])
    print(f"{'kernel':34} {'one':>7} {'start to start of rows of':>20}")
    for name, times in rows.items():
        pairs = zip(list(times), list(times)[1:])
        steps = "  ".join(f"{b}: {(times[b] - times[a]) / (b - a):6.2f}" for a, b in pairs)
        print(f"{name:34} {times[1]:7.2f}  {steps}")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("write", "show"):
        sys.exit(__doc__.strip())
    write(sys.argv[2]) if sys.argv[1] == "write" else show(sys.argv[2:])

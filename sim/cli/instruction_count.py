#!/usr/bin/env python3
"""instruction_count.py FOREWARP [--write]: counts the host instructions of small fixed predictions under callgrind and
fails when one has grown by more than a tenth over instruction_count.json. Counts hardly depend on the machine, as times
do. --write puts down today's numbers, for a change that is worth its cost."""

import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "traces")
KNOWN = os.path.join(HERE, "instruction_count.json")
MOST_GROWTH = 0.1
# stem, case, further options: an FMA-bound product in detail, a streaming copy in detail
PREDICTIONS = {
    "product": ("matmul_06_vectorized", "sgemm_vectorized_256x256", ["--full"]),
    "copy": ("copy_05_transpose", "transpose_padded_1024", ["--full"]),
}


def count(forewarp, stem, case, options):
    """Host instructions of one prediction."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + os.path.join(folder, "out"), forewarp, "predict",
                 os.path.join(TRACES, "sm_90", stem + ".cubin"), "--launch", os.path.join(TRACES, stem + ".yaml"), "--case", case,
                 "--gpu", "h200-sxm", "--threads", "1", "--no-cache", "--causes", "counted", *options]
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        collected = re.search(r"Collected\s*:\s*(\d+)", result.stderr)
        if result.returncode != 0 or collected is None:
            sys.exit(f"{case}: {result.stderr[-2000:]}")
        return int(collected.group(1))


def main():
    forewarp, write = sys.argv[1], "--write" in sys.argv[2:]
    counts = {name: count(forewarp, *prediction) for name, prediction in PREDICTIONS.items()}
    if write:
        with open(KNOWN, "w", encoding="utf-8") as file:
            json.dump(counts, file, indent=2)
            file.write("\n")
        return 0
    with open(KNOWN, encoding="utf-8") as file:
        known = json.load(file)
    grown = False
    for name, now in counts.items():
        change = now / known[name] - 1
        print(f"{name}: {now:,} instructions, {change:+.1%} against {known[name]:,}")
        grown |= change > MOST_GROWTH
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())

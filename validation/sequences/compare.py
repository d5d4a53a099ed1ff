#!/usr/bin/env python3
"""Whole sequences of launches, predicted beside measured.

  compare.py RESULT.json...     results of `forewarp predict --cache sequence --json` for cases of h200-sxm.csv

The measured whole lies between two events, which take EVENTS_US more than the kernels (a single kernel of 4.5 us under a
profiler takes 5.8 between events); that is added to the predicted one.
"""
import csv
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "plots"))

from forewarp_plots import results, sequence  # noqa: E402

EVENTS_US = 1.2


def measured():
    with open(os.path.join(HERE, "h200-sxm.csv"), newline="", encoding="utf-8") as file:
        return {row["case"]: row for row in csv.DictReader(line for line in file if not line.startswith("#"))}


def main(paths):
    known, errors = measured(), []
    launches = results.read_results(paths)
    print(f"{'case':36} {'launches':>8} {'measured us':>12} {'predicted us':>12} {'off':>8}")
    for group in sequence.group(launches):
        row = known.get(group[0].id)
        if row is None or int(row["launches"]) != len(group):
            continue
        arranged = sequence.arrange(group[0].id, group)
        whole, predicted = float(row["us"]), arranged.total - arranged.steps[0].begin + EVENTS_US
        errors.append(abs(predicted / whole - 1))
        print(f"{group[0].id:36} {len(group):8} {whole:12.2f} {predicted:12.2f} {100 * (predicted / whole - 1):+7.1f} %")
    if not errors:
        sys.exit("none of these cases was measured as a whole")
    print(f"{len(errors)} sequences: mean {100 * sum(errors) / len(errors):.1f} %, worst {100 * max(errors):.1f} %")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1:])

#!/usr/bin/env python3
"""Sketches beside what an H200 measured for the kernels that they describe.

    validation/sketches/compare.py build/release/forewarp [elementwise.yaml ...]

A sketch is called like its case in validation/profiles/h200-sxm. Prints cycles of each launch, its error, and the mean
and worst of each file.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROFILES = HERE.parent / "profiles" / "h200-sxm"
CYCLES = "gpc__cycles_elapsed.max"


def measured():
    found = {}
    for path in sorted(PROFILES.glob("*.csv")):
        with open(path) as lines:
            for row in csv.DictReader(line for line in lines if not line.startswith("#")):
                if row.get("case") and row.get(CYCLES):
                    found.setdefault((row["case"], int(row["launch"])), float(row[CYCLES]))
    return found


def sketched(forewarp, path):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([forewarp, "sketch", str(path), "--gpu", "h200-sxm", "--threads", "1", "--json", out.name],
                       check=True, stdout=subprocess.DEVNULL)
        return json.load(open(out.name))["cases"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    reference = measured()
    files = [pathlib.Path(f) for f in sys.argv[2:]] or sorted(HERE.glob("*.yaml"))
    for path in files:
        errors = []
        print(f"{path.name:32s} {'sketch':>12s} {'measured':>12s} {'error':>8s}")
        for case in sketched(sys.argv[1], path):
            key = (case["id"], case["launch"])
            predicted = case["metrics"][CYCLES]
            if key not in reference:  # launches of a kernel that was measured before in the same case are left out
                print(f"  {key[0] + '#' + str(key[1]):30s} {predicted:12,.0f} {'-':>12s}")
                continue
            error = predicted / reference[key] - 1
            errors.append(abs(error))
            print(f"  {key[0] + '#' + str(key[1]):30s} {predicted:12,.0f} {reference[key]:12,.0f} {100 * error:+7.1f}%")
        print(f"  mean of {len(errors)}: {100 * sum(errors) / len(errors):.1f} %, worst {100 * max(errors):.1f} %\n")


if __name__ == "__main__":
    main()

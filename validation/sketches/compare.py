#!/usr/bin/env python3
"""Sketches beside what an H200 measured for the kernels that they describe.

    validation/sketches/compare.py build/release/forewarp [elementwise.yaml ...] [--precision PERCENT] [--budget SECONDS]

A sketch is called like its case in validation/profiles/h200-sxm. Prints cycles of each launch, its error, and the mean
and worst of each file, with Spearman's correlation of the ranks.
"""
import argparse
import csv
import json
import pathlib
import subprocess
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


def sketched(forewarp, path, options):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [forewarp, "sketch", str(path), "--gpu", "h200-sxm", "--threads", "1", "--json", out.name]
        command += [word for name, value in options.items() if value for word in (f"--{name}", value)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.load(open(out.name))["cases"]


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return {i: rank for rank, i in enumerate(order)}


def spearman(a, b):
    n, of_a, of_b = len(a), ranks(a), ranks(b)
    return 1 - 6 * sum((of_a[i] - of_b[i]) ** 2 for i in range(n)) / (n * (n * n - 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forewarp")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--precision")
    parser.add_argument("--budget")
    arguments = parser.parse_args()
    options = {"precision": arguments.precision, "budget": arguments.budget}
    reference = measured()
    for path in arguments.files or sorted(HERE.glob("*.yaml")):
        pairs = []
        print(f"{path.name:46s} {'sketch':>12s} {'measured':>12s} {'error':>8s}")
        for case in sketched(arguments.forewarp, path, options):
            key = (case["id"], case["launch"])
            predicted = case["metrics"][CYCLES]
            if key not in reference:  # launches of a kernel that was measured before in the same case are left out
                print(f"  {key[0] + '#' + str(key[1]):44s} {predicted:12,.0f} {'-':>12s}")
                continue
            pairs.append((predicted, reference[key]))
            error = predicted / reference[key] - 1
            print(f"  {key[0] + '#' + str(key[1]):44s} {predicted:12,.0f} {reference[key]:12,.0f} {100 * error:+7.1f}%")
        errors = [abs(p / m - 1) for p, m in pairs]
        print(f"  mean of {len(errors)}: {100 * sum(errors) / len(errors):.1f} %, worst {100 * max(errors):.1f} %, "
              f"ranks {spearman([p for p, _ in pairs], [m for _, m in pairs]):.3f}\n", flush=True)


if __name__ == "__main__":
    main()

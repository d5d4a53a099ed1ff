#!/usr/bin/env python3
"""What the calibration kernels measured, what forewarp predicts for them, and the numbers of the model this supports.

  calibrate.py MEASURED.csv... [--predicted RESULT.json...] [--gpu h200-sxm] [--stem micro_l2] [--csv OUT]

MEASURED is what validation/collect/collect.py writes (profiles.csv, or one file a stem); RESULT what `forewarp predict --json`
writes. A quantity is a slope between two cases (quantities.py); +- is half of what the measured runs would let it vary.
Python's standard library is enough.
"""
import argparse
import csv
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import quantities as table

ROOT = Path(__file__).resolve().parents[2]


class InputError(Exception):
    """A file that cannot be used, with what is wrong in it."""


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def read_measured(paths):
    """{case: {column: text}} of the first launch of each case; later files win."""
    rows = {}
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(line for line in file if not line.startswith("#"))
            if "case" not in (reader.fieldnames or []):
                raise InputError(f"{path}: no column `case`; it takes the files that collect.py writes")
            for row in reader:
                if row.get("launch", "0") == "0":
                    rows.setdefault(row["case"], {}).update({key: value for key, value in row.items() if value})
    return rows


def read_predicted(paths):
    """{case: {metric: value}} of the first launch of each case, in the shape of read_measured."""
    rows = {}
    for path in paths:
        try:
            cases = json.loads(Path(path).read_text(encoding="utf-8"))["cases"]
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise InputError(f"{path}: not a result of forewarp predict --json ({error})") from error
        rows |= {case["id"]: case["metrics"] for case in cases if case.get("launch", 0) == 0}
    return rows


def read_model(path):
    """{leaf path: value as text} of an hwmodels file and its family's: two spaces a level, a leaf is
    `name: {value: ..., ...}`."""
    leaves, above = {}, []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        match = re.match(r"( *)(\w+):(.*)", line)
        if not match:
            continue
        if match[2] == "family":
            leaves |= read_model(ROOT / "hwmodels" / "families" / f"{match[3].strip()}.yaml")
            continue
        depth = len(match[1]) // 2
        above = above[:depth] + [match[2]]
        value = re.match(r" *\{value: (\[[^\]]*\]|[^,}]*)", match[3])
        if value:
            leaves[".".join(above)] = value[1].strip()
    return leaves


@dataclass
class Slope:
    value: float
    spread: float  # half of the range that the runs' least and most leave


def slope(quantity, rows):
    """The Slope of a quantity, or None where a case is missing or the second is not the larger."""
    def of(case, suffix=""):
        return number(rows.get(case, {}).get(quantity.metric + suffix))
    def ends(case):
        middle = of(case)
        return (of(case, ":min") or middle), middle, (of(case, ":max") or middle)
    if quantity.low and of(quantity.low) is None or of(quantity.high) is None:
        return None
    low, high = ends(quantity.low) if quantity.low else (0.0, 0.0, 0.0), ends(quantity.high)
    def value(difference):
        if difference <= 0:
            return None
        return quantity.count / difference if quantity.rate else difference / quantity.count
    middle = value(high[1] - low[1])
    if middle is None:
        return None
    edges = [value(high[0] - low[2]), value(high[2] - low[0])]
    spread = abs(edges[1] - edges[0]) / 2 if None not in edges else float("inf")
    return Slope(middle, spread)


COLUMNS = ["stem", "quantity", "unit", "measured", "+-", "predicted", "error %", "leaves"]


def compare(measured, predicted, model, stems=()):
    """One dict a quantity that either side has."""
    result = []
    for stem, quantity in table.all_quantities():
        if stems and stem not in stems:
            continue
        real, simulated = slope(quantity, measured), slope(quantity, predicted)
        if not real and not simulated:
            continue
        row = dict.fromkeys(COLUMNS, "") | {"stem": stem, "quantity": quantity.name, "unit": quantity.unit}
        if real:
            row |= {"measured": f"{real.value:.5g}", "+-": f"{real.spread:.2g}"}
        if simulated:
            row["predicted"] = f"{simulated.value:.5g}"
        if real and simulated:
            row["error %"] = f"{100 * (simulated.value / real.value - 1):+.1f}"
        row["leaves"] = " ".join(f"{leaf}={model.get(leaf, '?')}" for leaf in quantity.leaves)
        result.append(row)
    return result


def print_table(rows, out):
    shown = [column for column in COLUMNS if column == "leaves" or any(row[column] for row in rows)]
    shown.remove("stem")
    widths = {column: max(len(column), *(len(row[column]) for row in rows)) for column in shown}
    left = {"quantity", "unit", "leaves"}
    def line(cells):
        return "  ".join(cells[c].ljust(widths[c]) if c in left else cells[c].rjust(widths[c]) for c in shown).rstrip()
    stem = None
    for row in rows:
        if row["stem"] != stem:
            stem = row["stem"]
            print(f"\n{stem}", line({column: column for column in shown}), sep="\n", file=out)
        print(line(row), file=out)
    errors = sorted(abs(float(row["error %"])) for row in rows if row["error %"])
    if errors:
        print(f"\n{len(errors)} quantities on both sides: mean error {sum(errors) / len(errors):.1f} %, median "
              f"{errors[len(errors) // 2]:.1f} %, worst {errors[-1]:.1f} %", file=out)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", nargs="*", help="CSV files of collect.py")
    parser.add_argument("--predicted", nargs="*", default=[], metavar="RESULT", help="JSON files of forewarp predict")
    parser.add_argument("--gpu", default="h200-sxm", help="name in hwmodels/, or a file (default: h200-sxm)")
    parser.add_argument("--stem", action="append", default=[], help="only this stem; may be repeated")
    parser.add_argument("--csv", metavar="OUT", help="write the table there too")
    options = parser.parse_args(arguments)
    try:
        file = Path(options.gpu) if options.gpu.endswith(".yaml") else ROOT / "hwmodels" / f"{options.gpu}.yaml"
        rows = compare(read_measured(options.measured), read_predicted(options.predicted), read_model(file), options.stem)
        if not rows:
            raise InputError("none of the calibration cases is in these files")
        print_table(rows, sys.stdout)
        if options.csv:
            with open(options.csv, "w", newline="", encoding="utf-8") as out:
                writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    except (InputError, OSError) as error:
        print(f"calibrate.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Which tile to take, asked before the kernel is written: for 50 shapes of a product, the instances of
kernels/matmul/19_tiles.cu by their sketches beside what an H200 measured.

    validation/sketches/ranking.py launches FILE.yaml                    every instance at every shape, to be measured
    validation/sketches/ranking.py keep profiles.csv                     collect.py's table of them into ranking.csv
    validation/sketches/ranking.py compare build/release/forewarp [--shapes N] [--budget SECONDS] [--again N] [--threads N] [--out FILE]

compare predicts every sketch within the budget, the first N of each shape again with the default one (successive
halving), and prints for each shape how much slower than the best measured instance the one is that comes first by
sketch, and Spearman's correlation of the ranks; --out keeps its predictions. Shapes are drawn with a
fixed seed: m, n and k are multiples of 8 between 128 and 4096, evenly by their logarithms.
"""
import argparse
import csv
import json
import pathlib
import random
import re
import statistics
import subprocess
import tempfile

from compare import CYCLES, spearman

HERE = pathlib.Path(__file__).resolve().parent
MEASURED = HERE / "ranking.csv"
INSTANCES = HERE.parent.parent / "kernels" / "matmul" / "19_tiles.cu"
SHAPES, SMALLEST, LARGEST, STEP, SEED = 50, 128, 4096, 8, 1
REFUSED = {(128, 256, 32, 64, 32, 3)}  # needs more than the 128 registers that 512 threads leave (ptxas spares some)


def shapes():
    draw = random.Random(SEED)

    def size():
        return round(SMALLEST * (LARGEST / SMALLEST) ** draw.random() / STEP) * STEP
    return [(size(), size(), size()) for _ in range(SHAPES)]


def instances():
    rows = re.findall(r"^F16\((\d+), (\d+), (\d+), (\d+), (\d+), (\d+)\)$", INSTANCES.read_text(), re.MULTILINE)
    return [tuple(map(int, row)) for row in rows]


def kernel(instance):
    m, n, k, warp_m, warp_n, stages = instance
    return f"tiles_f16_{m}x{n}x{k}_{warp_m}x{warp_n}_{stages}"


def case(shape, instance):
    return f"{kernel(instance)}_{'x'.join(map(str, shape))}"


def launch(shape, instance):
    (m, n, k), (tile_m, tile_n, tile_k, warp_m, warp_n, stages) = shape, instance
    threads = tile_m // warp_m * (tile_n // warp_n) * 32
    fill = "{{uniform: {{type: f16, low: -1, high: 1, seed: {}}}}}"
    return f"""{case(shape, instance)}:
  kernel: {kernel(instance)}
  grid: [{-(-n // tile_n)}, {-(-m // tile_m)}, 1]
  block: [{threads}, 1, 1]
  dynamic_shared_bytes: {stages * (tile_m + tile_n) * tile_k * 2}
  buffers:
    a: {{bytes: {2 * m * k}, fill: {fill.format(1)}}}
    b: {{bytes: {2 * k * n}, fill: {fill.format(2)}}}
    c: {{bytes: {2 * m * n}, fill: zero}}
  args: [{{pointer: a}}, {{pointer: b}}, {{pointer: c}}, {{i32: {m}}}, {{i32: {n}}}, {{i32: {k}}}]
"""


def sketch(shape, instance):
    m, n, k, warp_m, warp_n, stages = instance
    return f"{case(shape, instance)}: {{matmul: {{type: f16, shape: {list(shape)}, tile: [{m}, {n}, {k}], " \
           f"warp: [{warp_m}, {warp_n}], stages: {stages}}}}}\n"


def keep(table):
    """{shape: {kernel: cycles}} in rows of a shape."""
    cycles = {}
    with open(table) as lines:
        text = list(lines)
    for row in csv.DictReader(line for line in text if not line.startswith("#")):
        if row.get(CYCLES):
            cycles[row["case"]] = float(row[CYCLES])
    names = instances()
    with open(MEASURED, "w", newline="") as out:
        out.writelines(line for line in text if line.startswith(("# gpu", "# driver", "# clocks", "# ncu", "# date")))
        out.write(f"# columns: {CYCLES}, caches flushed, of each instance\n")
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["shape", *map(kernel, names)])
        for shape in shapes():
            found = [cycles.get(case(shape, name)) for name in names]
            if any(found):
                rows.writerow(["x".join(map(str, shape)), *("" if c is None else f"{c:.0f}" for c in found)])


def measured():
    with open(MEASURED) as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            shape = tuple(map(int, row.pop("shape").split("x")))
            yield shape, {name: float(cycles) for name, cycles in row.items() if cycles}


def ranked(instances, shape, cycles):
    return sorted(instances, key=lambda instance: cycles[case(shape, instance)])


def predicted(arguments, sketches, budget):
    """{case: cycles} of these (shape, instance) by their sketches."""
    options = [word for name, value in (("budget", budget), ("threads", arguments.threads)) if value
               for word in (f"--{name}", value)]
    with tempfile.TemporaryDirectory() as folder:
        file, out = pathlib.Path(folder) / "ranking.yaml", pathlib.Path(folder) / "ranking.json"
        file.write_text("".join(sketch(shape, instance) for shape, instance in sketches))
        subprocess.run([arguments.forewarp, "sketch", str(file), "--gpu", "h200-sxm", "--json", str(out), *options],
                       check=True, stdout=subprocess.DEVNULL)
        return {row["id"]: row["metrics"][CYCLES] for row in json.loads(out.read_text())["cases"]}


def compare(arguments):
    reference = [(shape, found, [i for i in instances() if i not in REFUSED and kernel(i) in found])
                 for shape, found in list(measured())[:arguments.shapes]]
    cycles = predicted(arguments, [(shape, i) for shape, _, names in reference for i in names], arguments.budget)
    firsts = {shape: ranked(names, shape, cycles)[:arguments.again or 1] for shape, _, names in reference}
    if arguments.again:
        cycles |= predicted(arguments, [(shape, i) for shape, names in firsts.items() for i in names], None)
    if arguments.out:
        arguments.out.write_text(json.dumps(cycles, indent=0))
    losses, correlations, errors = [], [], []
    print(f"{'m x n x k':18s} {'first by sketch':34s} {'slower':>7s}  {'best measured':34s} {'ranks':>6s} {'error':>6s}")
    for shape, found, names in reference:
        by_sketch = [cycles[case(shape, i)] for i in names]
        by_card = [found[kernel(i)] for i in names]
        first = kernel(ranked(firsts[shape], shape, cycles)[0])
        best = min(found, key=found.get)
        losses.append(found[first] / found[best] - 1)
        correlations.append(spearman(by_sketch, by_card))
        errors.append(statistics.mean(abs(p / m - 1) for p, m in zip(by_sketch, by_card)))
        print(f"{' x '.join(map(str, shape)):18s} {first:34s} {100 * losses[-1]:+6.1f}%  {best:34s} "
              f"{correlations[-1]:6.3f} {100 * errors[-1]:5.1f}%")
    within = sum(loss <= 0.05 for loss in losses)
    print(f"\nwithin 5 % of the best in {within} of {len(losses)} shapes; slower by {100 * statistics.mean(losses):.1f} % on "
          f"average, {100 * max(losses):.1f} % at worst\nranks {statistics.median(correlations):.3f} in the median, "
          f"{min(correlations):.3f} at least; cycles {100 * statistics.mean(errors):.1f} % off on average")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("launches").add_argument("file", type=pathlib.Path)
    commands.add_parser("keep").add_argument("table", type=pathlib.Path)
    comparison = commands.add_parser("compare")
    comparison.add_argument("forewarp")
    comparison.add_argument("--shapes", type=int, default=SHAPES)
    comparison.add_argument("--budget")
    comparison.add_argument("--again", type=int, default=0)
    comparison.add_argument("--threads")
    comparison.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.command == "launches":
        arguments.file.write_text("# Written by ranking.py: launches of the kernels in matmul_19_tiles.cubin.\n\n" +
                                  "\n".join(launch(s, i) for s in shapes() for i in instances()))
    elif arguments.command == "keep":
        keep(arguments.table)
    else:
        compare(arguments)


if __name__ == "__main__":
    main()

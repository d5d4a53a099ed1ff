#!/usr/bin/env python3
"""What predictions cost, and what leaving work out does to them. Each case is predicted in a process of its own, on one
thread and without the cache, and becomes a line of OUT.jsonl; cases that OUT has already are not run again.

    measure.py run OUT.jsonl [--full] [--stem STEM]... [--case ID]... [--every N] [--drawn N] [--like DEFAULT.jsonl] [--causes HOW]
    measure.py cost OUT.jsonl                  time and memory: the median, and what is over the limits
    measure.py against DEFAULT.jsonl FULL.jsonl   default against --full, by class of kernel
    measure.py work OUT.jsonl                  what cases named KERNEL_SIZE cost, as a table for `forewarp plot cost`
"""
import argparse
import csv
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS, LIMIT_MIB, LIMIT_MEDIAN = 10, 1024, 1  # what issue "Speed" asks of a prediction
LIMIT_MEAN, LIMIT_WORST, LIMIT_DRAM = 1.5, 4, 2       # percent
LARGE = 15e6, 250e6  # warp instructions of a case of which something is left out and that can be simulated whole
# Counts of instructions, operations and of the sectors and requests that they ask for: these never depend on time.
EXACT = re.compile(r"smsp?__inst_executed|smsp__thread_inst_executed|smsp__sass_thread_inst_executed_op|"
                   r"l1tex__t_(requests|sectors)_pipe_lsu_mem_\w+_op_\w+\.sum|"
                   r"l1tex__data_pipe_lsu_wavefronts_mem_shared|l1tex__data_bank_conflicts|"
                   r"smsp__sass_average_data_bytes|launch__")
TIMED = re.compile(r"per_cycle|pct_of_peak|per_second|_hit|_miss|avg$")
CYCLES = "gpc__cycles_elapsed.max"
INSTRUCTIONS = "smsp__inst_executed.sum"
DRAM = ["dram__bytes_read.sum", "dram__bytes_write.sum"]
KEPT = re.compile(EXACT.pattern + r"|gpc__cycles_elapsed|dram__bytes_(read|write)\.sum$|sm__warps_active|"
                  r"lts__t_sectors|l1tex__t_sector_hit_rate|lts__t_sector_hit_rate")


def stems():
    """Stems of launch files whose code is there, the project's kernels before those that the model is calibrated on."""
    names = [p.name[:-5] for p in (ROOT / "traces").glob("*.yaml")]
    known = [n for n in names if image(n).exists()]
    return sorted(known, key=lambda n: (n.startswith("micro_"), n.endswith(".sweep"), n))


def image(stem, architecture="sm_90"):
    return ROOT / "traces" / architecture / f"{stem.split('.')[0]}.cubin"


def cases_of(stem):
    text = (ROOT / "traces" / f"{stem}.yaml").read_text()
    return re.findall(r"^(\w[^\s:#]*):", text, re.M)


def measured(stem, gpu):
    """{case: {launch: warp instructions}}, as they were counted on that GPU."""
    path, counts = ROOT / "validation/profiles" / gpu / f"{stem}.csv", {}
    if path.exists():
        with path.open() as lines:
            for row in csv.DictReader(line for line in lines if not line.startswith("#")):
                if row.get("case") and row.get(INSTRUCTIONS):
                    counts.setdefault(row["case"], {})[row["launch"]] = float(row[INSTRUCTIONS])
    return counts


def drawn(few, gpu):
    """(stem, case): so many of each launch file, drawn by chance of its large cases of one or two launches. Not of those that the
    model is calibrated on, nor of those whose cases differ by a few blocks."""
    chosen = []
    for stem in stems():
        if stem.startswith("micro_") or stem.endswith(".waves"):
            continue
        total = {case: sum(each.values()) for case, each in measured(stem, gpu).items() if len(each) <= 2}
        large = [case for case in sorted(total, key=lambda c: (total[c], c)) if LARGE[0] <= total[case] <= LARGE[1]]
        chosen += [(stem, case) for case in random.Random(stem).sample(large, min(few, len(large)))]
    return chosen


def read(path):
    path = pathlib.Path(path)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def predict(command, limit):
    """Runs a command. Its exit status (None: over the limit), wall and processor seconds, and peak memory in MiB."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    signal.signal(signal.SIGALRM, lambda *_: child.send_signal(signal.SIGKILL))
    signal.alarm(int(limit))
    message = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    signal.alarm(0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return {"status": None if child.returncode < 0 else child.returncode, "message": message[:300],
            "wall": time.monotonic() - start, "cpu": usage.ru_utime + usage.ru_stime, "mib": usage.ru_maxrss / 1024}


def run_case(forewarp, gpu, stem, case, options, limit, out_path):
    """Appends a case's record to OUT; returns what it cost."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result.json"
        command = [forewarp, "predict", str(image(stem)), "--launch", str(ROOT / "traces" / f"{stem}.yaml"), "--gpu", gpu,
                   "--case", case, "--threads", "1", "--no-cache", "--json", str(out)] + options
        record = {"stem": stem, "case": case} | predict(command, limit)
        # In a process of its own: a child starts out with its parent's peak memory, so that this one stays small.
        reader = os.fork()
        if reader == 0:
            launches = json.loads(out.read_text())["cases"] if record["status"] == 0 else []
            record["launches"] = [{"launch": one["launch"], "kernel": one["kernel"], "coverage": one["coverage"],
                                   "metrics": {k: v for k, v in one["metrics"].items() if KEPT.search(k)}}
                                  for one in launches]
            with open(out_path, "a") as lines:
                lines.write(json.dumps(record) + "\n")
            os._exit(0)
        os.waitpid(reader, 0)
    return record


def extrapolated(record):
    return any(one["coverage"]["extrapolated"] for one in record["launches"])


def instructions(record):
    return sum(one["coverage"]["warp_instructions"] for one in record["launches"])


def chosen(args):
    """(stem, case) to run. With --like: cases of which it left something out, those with the fewest instructions first."""
    if args.like:
        found = [r for r in read(args.like) if r["status"] == 0 and extrapolated(r)]
        pairs = [(r["stem"], r["case"]) for r in sorted(found, key=instructions) if instructions(r) <= args.most]
    elif args.drawn:
        pairs = drawn(args.drawn, args.gpu)
    else:
        pairs = [(stem, case) for stem in stems() for case in cases_of(stem)][::args.every]
    unknown = set(args.case or []) - {case for stem in stems() for case in cases_of(stem)}
    if unknown:
        sys.exit(f"there is no case {', '.join(sorted(unknown))}")
    done = {(r["stem"], r["case"]) for r in read(args.out)}
    return [(s, c) for s, c in pairs if (s, c) not in done and (not args.stem or s in args.stem) and (not args.case or c in args.case)]


def run(args):
    spent, options = 0.0, ["--full"] * args.full + (["--causes", args.causes] if args.causes else [])
    for stem, case in chosen(args):
        if spent > args.budget:
            sys.exit(f"stopped: {spent:.0f} processor seconds spent")
        record = run_case(args.forewarp, args.gpu, stem, case, options, args.limit, args.out)
        spent += record["cpu"]
        print(f"{record['cpu']:8.2f} s {record['wall']:8.2f} s {record['mib']:6.0f} MiB  {case}", flush=True)


def cost(args):
    records = [r for r in read(args.out) if not args.stem or r["stem"] in args.stem]
    failed = [r for r in records if r["status"] != 0]
    good = [r for r in records if r["status"] == 0]
    print(f"{len(good)} cases, {len(failed)} failed; processor seconds: median {statistics.median(r['cpu'] for r in good):.2f}, "
          f"total {sum(r['cpu'] for r in good):.0f}, most {max(r['cpu'] for r in good):.1f}; "
          f"peak MiB: most {max(r['mib'] for r in good):.0f}")
    print("| case | warp instructions | processor s | wall s | peak MiB |\n|---|--:|--:|--:|--:|")
    for r in sorted(good, key=lambda r: -r["cpu"])[:args.rows]:
        print(f"| {r['case']} | {instructions(r):,} | {r['cpu']:.1f} | {r['wall']:.1f} | {r['mib']:.0f} |")
    for r in good:
        if r["mib"] > LIMIT_MIB:
            print(f"over {LIMIT_MIB} MiB: {r['case']} {r['mib']:.0f}")
    for r in failed:
        print(f"failed: {r['stem']} {r['case']}: {r['message'].strip()}")


def by_kernel(record):
    """Launches of one kernel in a case taken together: summed cycles and bytes, all counters."""
    found = {}
    for one in record["launches"]:
        found.setdefault(one["kernel"], []).append(one)
    return found


def half_interval(launches):
    """Of the cycles of launches, in percent."""
    sides = [one["coverage"]["cycles_interval_95"] for one in launches]
    return 100 * sum(high - low for low, high in sides) / sum(high + low for low, high in sides)


def inside_interval(fast, slow):
    return all(one["coverage"]["cycles_interval_95"][0] <= full["metrics"][CYCLES] <= one["coverage"]["cycles_interval_95"][1]
               for one, full in zip(fast, slow) if one["coverage"]["extrapolated"])


def compare(default, full):
    """One row a kernel of a case of which something was left out."""
    rows = []
    for kernel, fast in by_kernel(default).items():
        slow = by_kernel(full)[kernel]
        if not any(one["coverage"]["extrapolated"] for one in fast):
            continue
        total = lambda launches, metric: sum(one["metrics"].get(metric, 0) for one in launches)
        off = lambda metric: 100 * (total(fast, metric) / total(slow, metric) - 1) if total(slow, metric) else 0.0
        different = {m for a, b in zip(fast, slow) for m in a["metrics"] if EXACT.search(m) and not TIMED.search(m)
                     and a["metrics"][m] != b["metrics"].get(m)}
        # Of both directions together: what is written of a launch that hardly writes is no share of anything.
        dram = [sum(total(side, m) for m in DRAM) for side in (fast, slow)]
        rows.append({"stem": default["stem"], "case": default["case"], "kernel": kernel, "cycles": off(CYCLES),
                     "dram": 100 * (dram[0] / dram[1] - 1) if dram[1] else 0.0, "read": off(DRAM[0]), "write": off(DRAM[1]),
                     "bound": half_interval(fast), "inside": inside_interval(fast, slow),
                     "active": off("sm__warps_active.avg.pct_of_peak_sustained_active"), "different": sorted(different)})
    return rows


def against(args):
    full = {(r["stem"], r["case"]): r for r in read(args.full_out) if r["status"] == 0}
    rows = [row for r in read(args.out) if (r["stem"], r["case"]) in full and r["status"] == 0
            for row in compare(r, full[r["stem"], r["case"]])]
    classes = {}
    for row in rows:
        classes.setdefault(row["stem"].split("_")[0], []).append(row)
    print("| kernels | launches | cycles, mean | worst | warps active, worst | DRAM bytes, mean | worst | counters that differ "
          "| outside the interval |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, some in list(classes.items()) + [("all", rows)]:
        mean = lambda key: statistics.mean(abs(r[key]) for r in some)
        worst = lambda key: max(abs(r[key]) for r in some)
        print(f"| {name} | {len(some)} | {mean('cycles'):.2f} % | {worst('cycles'):.2f} % | {worst('active'):.1f} % | "
              f"{mean('dram'):.2f} % | {worst('dram'):.2f} % | {sum(len(r['different']) for r in some)} | "
              f"{sum(not r['inside'] for r in some)} |")
    for r in sorted(rows, key=lambda r: -abs(r["cycles"]))[:args.rows]:
        print(f"{r['case']} {r['kernel']}: cycles {r['cycles']:+.2f} % (+-{r['bound']:.2f}), read {r['read']:+.2f} %, "
              f"written {r['write']:+.2f} %, warps active {r['active']:+.1f} %, differ: {r['different']}")


def work(args):
    print(f"# forewarp {args.version}: processor seconds on one thread, validation/speed/measure.py\n# gpu: {args.gpu}")
    print("kernel,size,seconds,warp_instructions,mib")
    for r in sorted(read(args.out), key=lambda r: (r["case"].rpartition("_")[0], int(r["case"].rpartition("_")[2]))):
        kernel, _, size = r["case"].rpartition("_")
        print(f"{kernel},{size},{r['cpu']:.2f},{instructions(r)},{r['mib']:.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("out")
    one.add_argument("--forewarp", default=str(ROOT / "build/release/forewarp"))
    one.add_argument("--gpu", default="h200-sxm")
    one.add_argument("--full", action="store_true")
    one.add_argument("--causes", help="how causes are sized; with `counted` a record is what the prediction itself costs")
    one.add_argument("--stem", action="append")
    one.add_argument("--case", action="append")
    one.add_argument("--every", type=int, default=1, help="of all cases every so many: a sample for the median")
    one.add_argument("--drawn", type=int, help="of each launch file so many large cases that were measured, drawn by chance")
    one.add_argument("--like", help="results of the default: run the cases of which it left something out")
    one.add_argument("--most", type=float, default=1e12, help="with --like: warp instructions of a case, at most")
    one.add_argument("--limit", type=float, default=600, help="seconds a case may take")
    one.add_argument("--budget", type=float, default=1e9, help="processor seconds after which no case is begun")
    one.set_defaults(do=run)
    two = commands.add_parser("cost")
    two.add_argument("out")
    two.add_argument("--stem", action="append")
    two.set_defaults(do=cost)
    three = commands.add_parser("against")
    three.add_argument("out")
    three.add_argument("full_out")
    three.set_defaults(do=against)
    four = commands.add_parser("work")
    four.add_argument("out")
    four.add_argument("--gpu", default="h200-sxm")
    four.add_argument("--version", default="0.1.0")
    four.set_defaults(do=work)
    for command in (two, three):
        command.add_argument("--rows", type=int, default=12, help="of the worst cases")
    args = parser.parse_args()
    args.do(args)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The error tables of README.md, from results of `forewarp validate --json`.

  tables.py RESULT.json...        prints Markdown: suites, classes of kernels, counters
  tables.py --write RESULT.json...  puts them between the marks of validation/README.md
"""
import json
import sys
from pathlib import Path

README = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- tables: written by tables.py -->", "<!-- end of tables -->"
KINDS = ["memory-bound", "compute-bound", "latency-bound", "divergent", "strided", "under 10 us"]
COUNTERS = ["smsp__inst_executed.sum", "smsp__thread_inst_executed.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
            "l1tex__t_sector_hit_rate.pct", "lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum",
            "lts__t_sector_hit_rate.pct", "dram__bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
            "sm__warps_active.avg.pct_of_peak_sustained_active", "smsp__issue_active.avg.per_cycle_active"]


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def errors(name, e):
    if not e or not e["launches"]:
        return row(name, "0", "-", "-", "-", "-")
    return row(name, str(e["launches"]), *(f"{e[key]:.1f} %" for key in ("mean_pct", "median_pct", "p90_pct", "worst_pct")))


def tables(results):
    head = ["launches", "mean", "median", "90th percentile", "worst"]
    rule = "|---|--:|--:|--:|--:|--:|"
    lines = ["Error of the cycles, by suite:", "", row("suite", *head), rule]
    lines += [errors(f"{r['suite']} ({r['cache']})", r["cycles"]) for r in results]
    for r in results:
        lines += ["", f"`{r['suite']}`, by what held the kernels back as measured:", "", row("class", *head), rule]
        lines += [errors(kind, r.get("kinds", {}).get(kind)) for kind in KINDS]
        failed = len(r["failures"])
        if failed:
            lines += ["", f"{failed} cases of it could not be predicted: " + ", ".join(f["id"] for f in r["failures"]) + "."]
    cold = [r for r in results if r["cache"] == "cold"]  # of warm launches the card's counters were not read
    lines += ["", "Counters (mean error, in points for percentages):", "",
              row("counter", *(r["suite"] for r in cold)), "|---|" + "--:|" * len(cold)]
    for name in COUNTERS:
        def text(counter):
            if not counter:
                return "-"
            return f"{counter['mean_points']:.1f} points" if "mean_points" in counter else f"{counter['mean_pct']:.1f} %"
        lines.append(row(f"`{name}`", *(text(r["counters"].get(name)) for r in cold)))
    return "\n".join(lines) + "\n"


def main(words):
    write = "--write" in words
    paths = [word for word in words if word != "--write"]
    if not paths:
        sys.exit(__doc__.strip())
    text = tables([json.loads(Path(path).read_text(encoding="utf-8")) for path in paths])
    if not write:
        print(text, end="")
        return
    readme = README.read_text(encoding="utf-8")
    before, rest = readme.split(BEGIN)
    README.write_text(before + BEGIN + "\n\n" + text + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

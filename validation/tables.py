#!/usr/bin/env python3
"""Error tables for the documentation, from results of `forewarp validate --json`.

  tables.py RESULT.json...          errors by suite, kernel class and counter
  tables.py --waves RESULT.json...  what one block more than whole waves costs: of every pair of cases NAME_waves_N (or
                                    NAME_blocks_N) and N + 1, where N blocks fill all SMs evenly
  tables.py --front RESULT.json...  the front page: the launches of the ladder, and a row a suite
  tables.py --mended RESULT.json... what mending leaves: the time of every case mended_NAME over that of fault_NAME

Markdown goes to standard output. With --write it replaces what stands between the markers of validation/README.md, or
of README.md for --front; with --some too, what it says of other suites stays. --mended only prints.
"""
import json
import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent / "README.md"
FRONT = README.parents[1] / "README.md"
BEGIN, END = "<!-- tables: written by tables.py -->", "<!-- end of tables -->"
WAVES_BEGIN, WAVES_END = "<!-- waves: written by tables.py --waves -->", "<!-- end of waves -->"
FRONT_BEGIN = "<!-- tables: written by validation/tables.py --front -->"
SMS = 132  # of an H200
CLOSE = 0.15  # what mending leaves is as predicted if it is within so much of it
CLEAR = 4  # a jump counts as clear when it is this many times its spread
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
        lines += ["", f"`{r['suite']}`, by kernel class:", "", row("class", *head), rule]
        lines += [errors(kind, r.get("kinds", {}).get(kind)) for kind in KINDS]
        failed = len(r["failures"])
        if failed:
            lines += ["", f"{failed} of its cases could not be predicted: " + ", ".join(f["id"] for f in r["failures"]) + "."]
    cold = [r for r in results if r["cache"] == "cold"]  # counters were collected cold only
    lines += ["", "Counters, mean error (percentages in points):", "",
              row("counter", *(r["suite"] for r in cold)), "|---|" + "--:|" * len(cold)]
    for name in COUNTERS:
        def text(counter):
            if not counter:
                return "-"
            if "mean_points" in counter:
                return f"{counter['mean_points']:.1f} points"
            steady = counter.get("steady_launches", counter["launches"])
            where = f" ({counter['steady_mean_pct']:.1f} % over the {steady} that repeat)" if steady < counter["launches"] else ""
            return f"{counter['mean_pct']:.1f} %{where}"
        lines.append(row(f"`{name}`", *(text(r["counters"].get(name)) for r in cold)))
    return "\n".join(lines) + "\n"


def pairs_at_waves(results):
    """(name, blocks, the case at whole waves, the one with a block more)"""
    grids = {}
    for result in results:
        for one in result["cases"]:
            if found := re.fullmatch(r"(.*)_(?:waves|blocks)_(\d+)", one["id"]):
                grids.setdefault((one["stem"], found[1]), {})[int(found[2])] = one
    return [(name, blocks, cases[blocks], cases[blocks + 1]) for (_, name), cases in grids.items()
            for blocks in sorted(cases) if blocks % SMS == 0 and blocks + 1 in cases]


def jumps(results):
    lines = [row("kernel", "blocks", "cycles", "one block more", "predicted", "off", "of the launch"), "|---|" + "--:|" * 6]
    clear, of_launch = [], []
    for name, blocks, at, over in pairs_at_waves(results):
        measured, predicted = (over[key] - at[key] for key in ("measured_cycles", "predicted_cycles"))
        spread = sum(one["measured_cycles_max"] - one["measured_cycles_min"] for one in (at, over)) / 2
        part = 100 * (predicted - measured) / over["measured_cycles"]
        of_launch.append(abs(part))
        off = "-"
        if measured > CLEAR * spread:
            clear.append(abs(100 * (predicted / measured - 1)))
            off = f"{100 * (predicted / measured - 1):+.1f} %"
        lines.append(row(f"`{name}`", str(blocks), f"{at['measured_cycles']:.0f}", f"{measured:+.0f} ± {spread:.0f}", f"{predicted:+.0f}",
                         off, f"{part:+.1f} %"))
    within = sum(error <= 10 for error in clear)
    lines += ["", f"{within} of {len(clear)} clear jumps are within 10 %; their mean error is {sum(clear) / max(1, len(clear)):.1f} %. "
                  f"As a share of the launch, all {len(of_launch)} are {sum(of_launch) / max(1, len(of_launch)):.1f} % off on average and "
                  f"{max(of_launch, default=0):.1f} % at worst."]
    return "\n".join(lines) + "\n"


def ladder_rows(cases):
    lines = ["`forewarp validate --suite ladder`: the ladder at 1024, and attention of 16 heads at length 1024.", "",
             row("case", "measured", "predicted", "error", "bound by"), "|---|--:|--:|--:|---|"]
    for one in cases:
        name = one["id"] + (f"#{one['launch']}" if one["launch"] else "")
        kind = one["bottleneck"]["kind"]
        lines.append(row(name, f"{one['measured_cycles']:,.0f}", f"{one['predicted_cycles']:,.0f}",
                         f"{100 * (one['predicted_cycles'] / one['measured_cycles'] - 1):+.1f} %",
                         {"l1": "L1", "l2": "L2", "dram": "DRAM"}.get(kind, kind.replace("_", " "))))
    return [*lines, ""]


def front(results):
    lines = [line for r in results if r["suite"] == "ladder" for line in ladder_rows(r["cases"])]
    lines += ["`forewarp validate --suite NAME`: error of the predicted cycles.", "",
              row("suite", "launches", "mean", "median", "90th percentile", "worst", "rank correlation"), "|---|" + "--:|" * 6]
    lines += [f"{errors(r['suite'], r['cycles'])} {r['cycles']['rank_correlation']:.4f} |" for r in results]
    return "\n".join(lines) + "\n"


def mended(results):
    """What mending a fault leaves of its time, all launches of each kernel."""
    times = {}
    for one in (case for r in results for case in r["cases"]):
        sums = times.setdefault(one["id"], [0, 0])
        for i, kind in enumerate(("measured_cycles", "predicted_cycles")):
            sums[i] += one[kind]
    names = [name.removeprefix("fault_") for name in times if name.startswith("fault_")]
    lines, errors_of_left = [row("fault", "time left, measured", "predicted", "error"), "|---|--:|--:|--:|"], []
    for name in (name for name in names if f"mended_{name}" in times):
        measured, predicted = (after / before for before, after in zip(times[f"fault_{name}"], times[f"mended_{name}"]))
        errors_of_left.append(predicted / measured - 1)
        lines.append(row(name, f"{100 * measured:.1f} %", f"{100 * predicted:.1f} %", f"{100 * errors_of_left[-1]:+.1f} %"))
    close = sum(abs(error) <= CLOSE for error in errors_of_left)
    return "\n".join([*lines, "", f"{close} of {len(errors_of_left)} are within {100 * CLOSE:.0f} %."]) + "\n"


def cells(line):
    return line.strip("| ").split(" | ")


def some(old, new):
    """The new rows, sections and columns in place of the old ones of the same suites, or behind the old ones."""
    def parts(text):
        """{first line: lines} of the paragraphs and their tables; a table belongs to the paragraph before it."""
        found, at = {}, None
        for line in text.strip().splitlines():
            if line and not line.startswith("|"):
                at = found.setdefault(line, [])
            elif line:
                at.append(line)
        return found

    merged, fresh = parts(old), parts(new)
    for title, lines in fresh.items():
        kept = merged.get(title)
        if kept is None or "by kernel class" in title or not lines or cells(lines[0])[0] == "case":
            merged[title] = lines
        elif title.startswith("Counters"):
            columns = {}
            for table in (kept, lines):
                for i, name in enumerate(cells(table[0])[1:], 1):
                    columns[name] = {cells(line)[0]: cells(line)[i] for line in table[2:]}
            merged[title] = [row("counter", *columns), "|---|" + "--:|" * len(columns)] + \
                            [row(name, *(column.get(name, "-") for column in columns.values()))
                             for name in dict.fromkeys(cells(line)[0] for line in kept[2:] + lines[2:])]
        elif cells(lines[0])[0] == "suite":
            rows = {cells(line)[0]: line for line in kept[2:] + lines[2:]}
            merged[title] = kept[:2] + list(rows.values())
    # A suite's classes stand behind those of the suite before it, and counters last.
    last = [title for title in merged if title.startswith("Counters")]
    order = [title for title in merged if title not in last] + last
    return "\n\n".join("\n".join([title, "", *merged[title]] if merged[title] else [title]) for title in order) + "\n"


def main(words):
    write, waves, front_page, part, twins = (word in words for word in ("--write", "--waves", "--front", "--some", "--mended"))
    paths = [word for word in words if not word.startswith("--")]
    if not paths:
        sys.exit(__doc__.strip())
    results = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    text = mended(results) if twins else front(results) if front_page else jumps(results) if waves else tables(results)
    if twins or not write:
        print(text, end="")
        return
    page = FRONT if front_page else README
    begin, end = (FRONT_BEGIN, END) if front_page else (WAVES_BEGIN, WAVES_END) if waves else (BEGIN, END)
    readme = page.read_text(encoding="utf-8")
    before, rest = readme.split(begin)
    if part:
        text = some(rest.split(end)[0], text)
    page.write_text(before + begin + "\n\n" + text + "\n" + end + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

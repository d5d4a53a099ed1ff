#!/usr/bin/env python3
"""Where a kernel's warps wait, instruction by instruction, as predicted and as a profiler sampled it.

    ncu --section SourceCounters --page source --csv ... > samples.csv       on the GPU machine, of one launch
    forewarp predict KERNEL.cubin --launch FILE --case ID --json result.json
    validation/stalls.py result.json samples.csv [--case ID] [--launch N] [--least CYCLES] [--opcodes]

Prints cycles of a warp for each time that it executes an instruction, by reason, where both are further apart than --least, and the
sum of each reason for an instruction of the kernel. A warp is seen as issuing for one cycle an instruction, which says how many cycles
a sample stands for. --opcodes sums instructions of an opcode, those first that take most of the measured time. Python's standard library is enough.
"""
import argparse
import csv
import json
import sys

# Columns of the profiler, names of the prediction.
REASONS = {"barrier": "barrier", "branch_resolving": "branch_resolving", "dispatch": "dispatch_stall", "drain": "drain", "gmma": "gmma",
           "imc": "imc_miss", "lg": "lg_throttle", "long_sb": "long_scoreboard", "math": "math_pipe_throttle", "membar": "membar",
           "mio": "mio_throttle", "misc": "misc", "no_inst": "no_instruction", "not_selected": "not_selected", "selected": "selected",
           "short_sb": "short_scoreboard", "sleep": "sleeping", "tex": "tex_throttle", "wait": "wait"}


class InputError(Exception):
    """A file that cannot be used, with what is wrong in it."""


def number(text):
    return float(text) if text not in (None, "", "-") else 0.0


def sampled(lines):
    """By pc: opcode, times executed, cycles by reason."""
    lines = list(lines)
    first = next((i for i, line in enumerate(lines) if line.startswith('"Address"')), None)
    if first is None:
        raise InputError("has no table of instructions; take it with `ncu --section SourceCounters --page source --csv`")
    rows = list(csv.DictReader(lines[first:]))
    issued = sum(number(row["Instructions Executed"]) for row in rows)
    selected = sum(number(row.get("stall_selected")) for row in rows)
    if not selected:
        raise InputError("has no samples of warps that issue")
    start = int(rows[0]["Address"], 16)
    return {int(row["Address"], 16) - start:
            (row["Source"], number(row["Instructions Executed"]),
             {name: number(row.get("stall_" + column)) * issued / selected for column, name in REASONS.items()}) for row in rows}


def predicted(result, case, launch):
    """By pc: code, times executed, cycles by reason. Of repeated parts a few repetitions are timed."""
    found = [c for c in result["cases"] if case in (None, c["id"]) and launch in (None, c["launch"])]
    if len(found) != 1:
        raise InputError(f"has {len(found)} such launches; choose one by --case and --launch")
    if "instructions" not in found[0]:
        raise InputError("says nothing of single instructions")

    def scaled(instruction):
        timed = instruction["warp_cycles"].get("selected", 0)
        return {name: value * instruction["executed"] / timed for name, value in instruction["warp_cycles"].items()} if timed else {}

    return {i["pc"]: (i["sass"], i["executed"], scaled(i)) for i in found[0]["instructions"]}


def opcode(code):
    return next((word for word in code.split() if not word.startswith("@")), "").split(".")[0]


def said(cycles, least):
    return ", ".join(f"{name} {value:.1f}" for name, value in sorted(cycles.items(), key=lambda c: -c[1]) if value >= least)


def by_opcode(table):
    """Sums of instructions of an opcode, by its name: the opcode, times executed, cycles by reason."""
    sums = {}
    for code, times, cycles in table.values():
        name = opcode(code)
        _, all_times, all_cycles = sums.setdefault(name, (name, 0, {}))
        for reason, value in cycles.items():
            all_cycles[reason] = all_cycles.get(reason, 0) + value
        sums[name] = name, all_times + times, all_cycles
    return sums


def check(model, card):
    """That both are of the same code."""
    for pc, (code, _, _) in model.items():
        if pc not in card:
            raise InputError(f"have no instruction at {pc:#x}: they are of another kernel")
        there, here = opcode(card[pc][0]), opcode(code)
        if there != here:
            raise InputError(f"have {there} at {pc:#x} where the prediction has {here}: they are of another kernel")


def compare(model, card, least, opcodes=False):
    check(model, card)
    if opcodes:
        card = by_opcode(card)
        model = {name: row for name, row in sorted(by_opcode(model).items(), key=lambda row: -sum(card[row[0]][2].values()))}
    else:
        model = dict(sorted(model.items()))
    lines, sums = [], {name: [0.0, 0.0] for name in REASONS.values()}
    executed = [0.0, 0.0]
    for at, (code, times, cycles) in model.items():
        _, seen, samples = card[at]
        executed[0] += times
        executed[1] += seen
        for name, total in sums.items():
            total[0] += cycles.get(name, 0)
            total[1] += samples[name]
        if not times or not seen:
            continue
        each = {name: value / times for name, value in cycles.items()}, {name: value / seen for name, value in samples.items()}
        if max(abs(each[0].get(name, 0) - each[1][name]) for name in sums) >= least:
            lines.append(f"{'' if opcodes else format(at, 'x'):>6}  {code[:44]:44}  {sum(each[0].values()):8.1f}  {sum(each[1].values()):8.1f}  "
                         f"{said(each[0], least / 2) or '-'} | {said(each[1], least / 2) or '-'}")
    lines.append("")
    for name, (of_model, of_card) in sorted(sums.items(), key=lambda s: -max(s[1])):
        if max(of_model, of_card) > 0:
            lines.append(f"{name:52}  {of_model / max(1, executed[0]):8.3f}  {of_card / max(1, executed[1]):8.3f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("samples")
    parser.add_argument("--case")
    parser.add_argument("--launch", type=int)
    parser.add_argument("--least", type=float, default=8, help="cycles of a reason that are worth a line")
    parser.add_argument("--opcodes", action="store_true")
    options = parser.parse_args()
    at = options.result
    try:
        with open(at, encoding="utf-8") as file:
            model = predicted(json.load(file), options.case, options.launch)
        at = options.samples
        with open(at, encoding="utf-8") as file:
            card = sampled(file)
        text = compare(model, card, options.least, options.opcodes)
    except (InputError, OSError, KeyError, ValueError) as error:
        sys.exit(f"stalls.py: {at}: {error}")
    print(f"{'pc':>6}  {'cycles of a warp, each time':44}  {'predicted':>8}  {'measured':>8}  predicted | measured")
    print(text)


if __name__ == "__main__":
    main()

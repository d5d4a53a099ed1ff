"""Pictures of what memory sees, and of what lanes do: coalescing, divergence, traffic."""
import math

from .performance import measured_bytes
from .results import InputError, duration, labels, si
from .style import marks_title

_SECTOR = 32
_LINE = 128


def _example(launch, pc):
    """The access to draw: the one named, or the global one that wastes most sectors over the launch."""
    examples = {one["pc"]: one for one in launch.part("access_examples")}
    if pc is not None:
        if pc not in examples:
            raise InputError(f"{launch.path}: {launch.label} has no example access at {pc:#x}",
                             "it has " + ", ".join(f"{known:#x}" for known in sorted(examples)))
        return examples[pc]
    rows = [row for row in launch.part("memory") if row["pc"] in examples and row["space"] in ("global", "local", "generic")]
    if not rows:
        raise InputError(f"{launch.path}: {launch.label} has no access to global memory to draw")
    return examples[max(rows, key=lambda r: (r["sectors"] - r["sectors_needed"], r["sectors"]))["pc"]]


def coalescing(launches, options):
    cells, notes = [], []
    for launch, name in zip(launches, labels(launches)):
        example = _example(launch, options.pc)
        width = example["bytes_per_lane"]
        asked = {}
        for offset in example["offsets"]:
            if offset is not None:
                for byte in range(offset, offset + width):
                    asked.setdefault(byte // _SECTOR, set()).add(byte)
        place = {sector: at for at, sector in enumerate(sorted(asked))}
        row = next((r for r in launch.part("memory") if r["pc"] == example["pc"]), None)
        sass = row["sass"].split(";")[0].strip() if row else f"pc {example['pc']:#x}"
        title = f"{name}: {sass}"
        for sector, at in place.items():
            for first, count, used in _runs(sector, asked[sector]):
                cells.append({"case": title, "kind": "sector", "address": sector * _SECTOR + first, "top": -2.5,
                              "bottom": -0.6, "from": at + first / _SECTOR, "to": at + (first + count) / _SECTOR,
                              "use": "asked for" if used else "wasted", "bytes": count})
        for lane, offset in enumerate(example["offsets"]):
            if offset is None:
                continue
            byte = offset
            while byte < offset + width:  # an access may cross into the next sector
                stop = min(offset + width, (byte // _SECTOR + 1) * _SECTOR)
                at = place[byte // _SECTOR] + byte % _SECTOR / _SECTOR
                cells.append({"case": title, "kind": "lane", "lane": lane, "address": offset, "from": at,
                              "to": at + (stop - byte) / _SECTOR, "top": lane - 0.45, "bottom": lane + 0.45,
                              "use": "lane's bytes", "bytes": width})
                byte = stop
        for sector, at in place.items():
            if at and (sector * _SECTOR) // _LINE != _line_before(place, at):
                cells.append({"case": title, "kind": "boundary", "from": at, "top": -2.5, "bottom": 31.5})
        total = sum(len(bytes_) for bytes_ in asked.values())
        note = (f"{title}: {total} bytes asked for, {len(place)} sectors ({len(place) * _SECTOR} bytes) touched, "
                f"{_plural(len({s * _SECTOR // _LINE for s in place}), 'line')}")
        if row and row["sectors_needed"]:
            note += f"; over the launch {row['sectors']:,} sectors against {row['sectors_needed']:,} needed"
        notes.append(note)
    there = [use for use in ("asked for", "wasted") if any(cell.get("use") == use for cell in cells)]
    # Panels share their axis: that one access needs more sectors than another is what they are compared for.
    title = "32-byte sectors, gaps left out" + ("; rules: 128-byte lines" if any(cell["kind"] == "boundary" for cell in cells) else "")
    return {"cells": cells}, notes, {
        "spec.layer.0.encoding.color.legend.values": there, "spec.layer.0.encoding.x.axis.title": title,
        "spec.layer.0.encoding.x.scale": {"nice": False, "domain": [0, math.ceil(max(cell.get("to", 0) for cell in cells))]}}


def _runs(sector, asked):
    """(first byte, how many, whether asked for) of a sector's stretches."""
    flags = [sector * _SECTOR + byte in asked for byte in range(_SECTOR)]
    first = 0
    for byte in range(1, _SECTOR + 1):
        if byte == _SECTOR or flags[byte] != flags[first]:
            yield first, byte - first, flags[first]
            first = byte


def _plural(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def _line_before(place, at):
    return next(sector for sector, where in place.items() if where == at - 1) * _SECTOR // _LINE


_MOST_BRANCHES = 60
_NAMED_BRANCHES = 4


def divergence(launches, options):
    stream, notes = [], []
    for launch, name in zip(launches, labels(launches)):
        steps = launch.part("warp_stream")
        sass = {row["pc"]: row["sass"] for row in launch.part("instructions")}
        branches = {b["pc"]: b for b in launch.part("divergence")["branches"] if b["divergent"] > 0}
        at, drawn, named, last_name = 0, 0, set(), -1e9
        kept = sum(steps["count"])
        for pc, count, lanes in zip(steps["pc"], steps["count"], steps["active_lanes"]):
            before = stream[-1] if stream else {}
            if before.get("case") == name and before["kind"] == "lanes" and before["lanes"] == lanes:
                before["to"], before["count"] = at + count, before["count"] + count
            else:
                stream.append({"case": name, "kind": "lanes", "from": at, "to": at + count, "lanes": lanes,
                               "state": "all lanes" if lanes > 31.99 else "some lanes", "pc": f"{pc:#06x}",
                               "sass": _short(sass.get(pc, "")), "count": count})
            for branch_pc in sorted(b for b in branches if pc <= b < pc + 16 * count and (b - pc) % 16 == 0):
                branch = branches[branch_pc]
                if drawn >= _MOST_BRANCHES:
                    break
                drawn += 1
                # A name where there is room for it.
                first = branch_pc not in named and len(named) < _NAMED_BRANCHES and at - last_name > 0.25 * kept
                if first:
                    named.add(branch_pc)
                    last_name = at
                stream.append({"case": name, "kind": "branch", "from": at + (branch_pc - pc) // 16 + 1,
                               "pc": f"{branch_pc:#06x}", "sass": _short(branch["sass"]), "named": first,
                               "divergent": 100 * branch["divergent"] / max(1, branch["executed"])})
            at += count
        facts = launch.part("divergence")
        lanes = launch.metrics["smsp__thread_inst_executed_per_inst_executed.ratio"]
        notes.append(f"{name}: {lanes:.1f} of 32 lanes active on average, {facts['idle_lanes_pct']:.0f} % of lane slots "
                     f"idle; {facts['branches_divergent']:,} of {facts['branches_executed']:,} branches parted their warp; "
                     f"{duration(launch.nanoseconds)}")
        if at < steps["instructions"]:
            notes[-1] += f"; the first {at:,} of the warp's {steps['instructions']:,} instructions"
    domain = {"nice": False, "domain": [0, max(row["to"] for row in stream if "to" in row)]}
    return {"stream": stream}, notes, {f"spec.layer.{layer}.encoding.x.scale": domain for layer in range(3)}


def _short(sass):
    text = " ".join(sass.split(";")[0].split())
    return text if len(text) <= 40 else text[:39] + "…"


_LEVEL_COLOURS = {"asked by loads": "#CC79A7", "asked by stores": "#882255", "L1": "#009E73", "L2": "#E69F00",
                  "HBM read": "#0072B2", "HBM written": "#56B4E9"}


def _level_colours(rows):
    there = [level for level in _LEVEL_COLOURS if any(row["level"] == level for row in rows)]
    return {"domain": there, "range": [_LEVEL_COLOURS[level] for level in there]}


_COUNTED_BYTES = (("asked by loads", "smsp__sass_data_bytes_mem_global_op_ld.sum"),
                  ("asked by stores", "smsp__sass_data_bytes_mem_global_op_st.sum"),
                  ("HBM read", "dram__bytes_read.sum"), ("HBM written", "dram__bytes_write.sum"))


def traffic(launches, options):
    """Bytes by level, the launches of a case together."""
    groups = {}
    for launch, name in zip(launches, labels(launches)):
        groups.setdefault(name.split("#")[0] + (f" on {launch.gpu}" if " on " in name and "#" in name else ""),
                          []).append(launch)
    rows, most = [], 0
    for name, of in groups.items():
        time = duration(sum(one.nanoseconds for one in of))
        values = []
        for level in of[0].case["roofline"]["levels"]:
            if level["level"] == "HBM":
                continue
            predicted = sum(next(v["bytes"] for v in one.case["roofline"]["levels"] if v["level"] == level["level"])
                            for one in of)
            values.append((level["level"], predicted, [measured_bytes(one, level["level"]) for one in of]))
        for label, metric in _COUNTED_BYTES:
            values.append((label, sum(one.metrics[metric] for one in of), [one.measured(metric) for one in of]))
        for level, predicted, measured in values:
            if options.levels and level not in options.levels:
                continue
            row = {"case": name, "level": level, "predicted": predicted, "launches": len(of), "time": time,
                   "seen": "no profile"}
            if None not in measured:
                row["measured"] = sum(measured)
                row["seen"] = si(row["measured"], "B")
            if predicted == 0 and not row.get("measured"):
                continue  # nothing of the kind: no bar
            most = max(most, predicted, row.get("measured", 0))
            rows.append(row)
    formulas = []
    for case, level, count, text in options.formulas:
        if not any(r["case"] == case and r["level"] == level for r in rows):
            raise InputError(f"--formula names {case}, {level}, which the picture has not",
                             "it has " + ", ".join(f"{r['case']}:{r['level']}" for r in rows[:8]))
        far = max(count, *(max(r["predicted"], r.get("measured", 0)) for r in rows
                           if r["case"] == case and r["level"] == level))
        most = max(most, count)
        formulas.append({"case": case, "level": level, "bytes": count, "text": text, "far": far})
    notes = [f"{name}: {len(of)} launch{'es' if len(of) > 1 else ''}, {duration(sum(one.nanoseconds for one in of))}, "
             f"HBM {si(sum(one.metrics[metric] for one in of for _, metric in _COUNTED_BYTES[2:]), 'B')}"
             for name, of in groups.items()]
    return {"bytes": rows, "formulas": formulas}, notes, {
        "layer.0.encoding.color.scale": _level_colours(rows),
        "layer.0.encoding.x.axis.title": marks_title("Bytes moved", rows, ("line formula",) if formulas else ()),
        "layer.0.encoding.x.scale": {"domain": [0, most * (1.35 if formulas else 1.05)]}}

"""A trace that Perfetto and chrome://tracing open: launches of a sequence, blocks on SMs, what warps wait for, HBM traffic, and
what the warps of a watched block do."""
import json

from . import sequence, warps
from .results import distinct

_HOST, _GPU, _BLOCKS = 1, 2, 100
_MOST_BLOCKS = 6000


def _names(process, name, threads=()):
    events = [{"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}},
              {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}]
    for thread, title in threads:
        events.append({"ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": {"name": title}})
        events.append({"ph": "M", "pid": process, "tid": thread, "name": "thread_sort_index", "args": {"sort_index": thread}})
    return events


def _launch_events(step, number):
    launch = step.launch
    facts = {"case": launch.label, "kernel": launch.kernel, "bound by": launch.bound, "why": launch.case["bottleneck"]["sentence"],
             "cycles": launch.cycles, "grid": launch.case["grid"], "block": launch.case["block"]}
    return [{"ph": "X", "pid": _HOST, "tid": 1, "name": f"launch {launch.short_kernel}", "ts": step.call_from,
             "dur": step.call_to - step.call_from, "args": {"launch": number}},
            {"ph": "X", "pid": _GPU, "tid": 1, "name": launch.short_kernel, "ts": step.begin, "dur": step.end - step.begin,
             "args": facts}]


def _block_events(step, process, budget):
    """Each block on a row of its SM; returns what is left of the budget."""
    spans = step.launch.case.get("block_spans")
    if not spans:
        return [], budget
    scale = (step.end - step.begin) / step.launch.cycles
    events, rows, free = [], set(), {}
    order = sorted(range(len(spans["block"])), key=lambda i: (spans["sm"][i], spans["start"][i], spans["block"][i]))
    for i in order[:max(0, budget)]:
        sm, start, end = spans["sm"][i], spans["start"][i], spans["end"][i]
        places = free.setdefault(sm, [])
        for place, until in enumerate(places):
            if until <= start:
                break
        else:
            place = len(places)
            places.append(0)
        places[place] = end
        row = sm * 64 + place + 1
        rows.add((row, f"SM {sm}, place {place}"))
        events.append({"ph": "X", "pid": process, "tid": row, "name": f"block {spans['block'][i]}",
                       "ts": step.begin + start * scale, "dur": (end - start) * scale, "args": {}})
    title = f"Blocks of {step.launch.label}: {step.launch.short_kernel}"
    return _names(process, title, sorted(rows)) + events, budget - len(events)


def _warp_events(step, process):
    """A process for each watched block, a row for each lane; and how many processes that makes."""
    if "warp_timeline" not in step.launch.case:
        return [], 0
    scale, began = (step.end - step.begin) / step.launch.cycles, step.launch.case["warp_timeline"]["began"]
    events, made = [], 0
    for where, lanes in warps.panels(step.launch):
        rows = [(row, lane.name) for row, lane in enumerate(lanes, 1)]
        events += _names(process + made, f"Warps of {step.launch.label}: {where}", rows)
        for row, lane in enumerate(lanes, 1):
            events += [{"ph": "X", "pid": process + made, "tid": row, "name": bar.what, "ts": step.begin + (began + bar.begin) * scale,
                        "dur": (bar.end - bar.begin) * scale, "args": {"what": bar.text}} for bar in lane.bars]
        made += 1
    return events, made


def _counter_events(step):
    """Mean rates of the launch as steps that fall back to zero, and the states of its warps."""
    launch = step.launch
    seconds = max(1e-12, launch.nanoseconds * 1e-9)
    rates = {"HBM read GB/s": launch.metrics["dram__bytes_read.sum"] / seconds / 1e9,
             "HBM written GB/s": launch.metrics["dram__bytes_write.sum"] / seconds / 1e9}
    states = {s["reason"].replace("_", " "): s["share_pct"] for s in launch.case["stalls"][:8]}
    events = []
    for name, value in rates.items():
        events.append({"ph": "C", "pid": _GPU, "name": name, "ts": step.begin, "args": {"mean": value}})
        events.append({"ph": "C", "pid": _GPU, "name": name, "ts": step.end, "args": {"mean": 0}})
    for reason, share in states.items():
        events.append({"ph": "C", "pid": _GPU, "name": f"warps in {reason} %", "ts": step.begin, "args": {"share": share}})
        events.append({"ph": "C", "pid": _GPU, "name": f"warps in {reason} %", "ts": step.end, "args": {"share": 0}})
    return events


def trace(launches, mode="stream", join=None):
    """The JSON text of the trace. Cases follow one another on one clock."""
    groups = [launches] if join else sequence.group(launches)
    gpus = distinct(one.gpu for one in launches)
    events = _names(_HOST, "Host", [(1, "calls")]) + _names(_GPU, " and ".join(gpus), [(1, "kernels")])
    budget, at, process, number = _MOST_BLOCKS, 0.0, _BLOCKS, 0
    for of in groups:
        arranged = sequence.arrange(join or of[0].id, of, mode)
        for step in arranged.steps:
            moved = sequence.Step(step.launch, step.call_from + at, step.call_to + at, step.begin + at, step.end + at)
            events += _launch_events(moved, number) + _counter_events(moved)
            blocks, budget = _block_events(moved, process, budget)
            of_warps, more = _warp_events(moved, process + 1)
            events += blocks + of_warps
            process, number = process + 1 + more, number + 1
        at += arranged.total + 5.0
    return json.dumps({"displayTimeUnit": "ns", "otherData": {"forewarp": launches[0].version, "gpu": gpus,
                                                              "note": "predicted; counters are means over a launch"},
                       "traceEvents": events}, indent=None, separators=(",", ":")) + "\n"

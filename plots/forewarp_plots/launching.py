"""Pictures of launches: waves, occupancy, timeline."""
from . import sequence
from .results import InputError, distinct, duration, labels


def _slots(blocks):
    """Which place on its SM each block takes: the lowest that is free. blocks: (start, end, number) by start."""
    ends, places = [], {}
    for start, end, number in blocks:
        for place, free_at in enumerate(ends):
            if free_at <= start:
                break
        else:
            place = len(ends)
            ends.append(0)
        ends[place] = end
        places[number] = place
    return places, len(ends)


def waves(launches, options):
    stays, notes = [], []
    for launch, name in zip(launches, labels(launches)):
        spans, facts = launch.part("block_spans"), launch.case["waves"]
        seen = bool(spans["block"])
        if not seen:
            spans = _counted_spans(launch)
        by_sm = {}
        for block, sm, start, end in zip(spans["block"], spans["sm"], spans["start"], spans["end"]):
            by_sm.setdefault(sm, []).append((start, end, block))
        for sm, blocks in sorted(by_sm.items()):
            blocks.sort()
            places, rows = _slots(blocks)
            for start, end, block in blocks:
                stays.append({"case": name, "kind": "block", "block": block, "sm": sm, "from": start, "to": end,
                              "top": sm + places[block] / rows, "bottom": sm + (places[block] + 1) / rows,
                              "wave": block // max(1, facts["blocks_per_wave"]) + 1})
        last = max(spans["end"])
        end = max(last, launch.cycles)
        tail = f"tail {facts['tail_pct']:.0f} % of the time, idle SM time {facts['idle_sm_pct']:.0f} %"
        stays.append({"case": name, "kind": "tail", "from": end * (1 - facts["tail_pct"] / 100), "to": end, "text": tail})
        for gap in spans["extrapolated"]:
            stays.append({"case": name, "kind": "extrapolated", "from": gap["from"], "to": gap["to"],
                          "text": "settled: extrapolated, not simulated"})
        full, rest = facts["full_waves"], facts["last_wave_blocks"]
        notes.append(f"{name}: {facts['blocks']} blocks, {facts['blocks_per_wave']} a wave ({facts['blocks_per_sm']} an SM): "
                     f"{full} full" + (f" and one of {rest}" if rest else "") + f"; {tail}"
                     + ("" if seen else " (drawn from the counts: its blocks were not followed to their ends)"))
    return {"stays": stays}, notes


_MOST_COUNTED = 6000


def _counted_spans(launch):
    """Waves of equal length, block after block over the SMs, where the simulation did not follow blocks to their ends."""
    facts, sms = launch.case["waves"], launch.machine["sm_count"]
    if facts["blocks"] > _MOST_COUNTED or not facts["blocks_per_wave"]:
        raise InputError(f"{launch.path}: {launch.label} holds no stays of blocks", "predict it with --full")
    waves_there = facts["full_waves"] + (1 if facts["last_wave_blocks"] else 0)
    length = launch.cycles / waves_there
    spans = {"block": [], "sm": [], "start": [], "end": [], "extrapolated": []}
    for block in range(facts["blocks"]):
        wave = block // facts["blocks_per_wave"]
        spans["block"].append(block)
        spans["sm"].append(block % facts["blocks_per_wave"] % sms)
        spans["start"].append(wave * length)
        spans["end"].append((wave + 1) * length)
    return spans


_CHOICES = (("registers", "registers_per_thread"), ("shared", "shared_bytes_per_block"), ("threads", "threads_per_block"))


def occupancy(launches, options):
    data = {"limits": []}
    for key, _ in _CHOICES:
        data[key], data[key + "_now"] = [], []
    notes, alike = [], {}
    for launch in launches:
        alike.setdefault((launch.gpu, launch.kernel, tuple(launch.case["block"]),
                          launch.case["occupancy"]["shared_bytes_per_block"]), launch)
    several = len({one.kernel for one in alike.values()}) > 1
    launches = list(alike.values())
    for launch, name in zip(launches, labels(launches)):
        if several:
            name = launch.short_kernel + (f" on {launch.gpu}" if " on " in name else "")
        facts = launch.case["occupancy"]
        binding = facts["blocks_per_sm"]
        for limit, blocks in facts["limits"].items():
            if limit == "shared memory" and facts["shared_bytes_per_block"] == 0:
                continue
            data["limits"].append({"case": name, "limit": limit, "blocks": blocks, "binding": blocks == binding,
                                   "text": f"{blocks}"})
        warps = binding * facts["warps_per_block"]
        x, y, z = launch.case["block"]
        now = {"registers": launch.metrics["launch__registers_per_thread"], "shared": facts["shared_bytes_per_block"],
               "threads": x * y * z}
        choices = launch.part("occupancy").get("choices")
        if choices is None:
            raise InputError(f"{launch.path}: {launch.label} holds no other choices of occupancy",
                             "write it with `forewarp predict --json`")
        for key, name_there in _CHOICES:
            table = choices[name_there]
            data[key] += [{"case": name, "value": v, "warps": w} for v, w in zip(table["value"], table["warps_per_sm"])]
            data[key + "_now"].append({"case": name, "value": now[key], "warps": warps})
        achieved = launch.metrics["sm__warps_active.avg.pct_of_peak_sustained_active"]
        notes.append(f"{name}: limited by {facts['limiter']}: {binding} block{'s' if binding != 1 else ''}, {warps} warps an SM, "
                     f"{facts['theoretical_pct']:.0f} % theoretical and {achieved:.0f} % achieved"
                     + _advice(choices, now, warps))
    return data, notes


def _advice(choices, now, warps):
    """The nearest single change that holds more warps, in words."""
    found = []
    for key, name, word in (("registers", "registers_per_thread", "registers a thread"),
                            ("shared", "shared_bytes_per_block", "bytes of shared memory a block")):
        better = [(v, w) for v, w in zip(choices[name]["value"], choices[name]["warps_per_sm"]) if w > warps and v < now[key]]
        if better:
            value, more = max(better)
            found.append(f"{value} {word} would hold {more}")
    return "; " + ", ".join(found) if found else ""


_MOST_BARS = 2000


def timeline(launches, options):
    """One row of bars a case (or, with --join, all of them in one), host above GPU."""
    groups = [launches] if options.join else sequence.group(launches)
    if any(len({one.gpu for one in of}) > 1 for of in groups):
        raise InputError("a sequence runs on one GPU, but the launches are of several", "give the results of one GPU")
    several = len({launch.gpu for launch in launches}) > 1
    bars, notes = [], []
    if sum(len(of) for of in groups) > _MOST_BARS // 2:
        raise InputError(f"{sum(len(of) for of in groups)} launches are more than a picture can show",
                         f"choose cases with --case, at most {_MOST_BARS // 2} launches")
    for of in groups:
        name = (options.join or of[0].id) + (f" on {of[0].gpu}" if several else "")
        for mode in options.modes:
            arranged = sequence.arrange(name, of, mode)
            title = f"{name}, {mode}" if len(options.modes) > 1 else name
            for index, step in enumerate(arranged.steps):
                what = step.launch.short_kernel
                if mode == "stream" or index == 0:
                    bars.append({"case": title, "kind": "call", "lane": "host", "what": what if mode == "stream" else "graph",
                                 "launch": index, "from": step.call_from, "to": step.call_to, "bound": ""})
                bars.append({"case": title, "kind": "kernel", "lane": "GPU", "what": what, "launch": index,
                             "from": step.begin, "to": step.end, "bound": step.launch.bound})
            text = (f"{duration(arranged.total * 1e3)}: {len(of)} launch{'es' if len(of) > 1 else ''}, GPU busy {arranged.utilization_pct:.0f} %")
            if of[0].id in options.wholes and mode == "stream" and not options.join:
                text += f"; measured {duration(options.wholes[of[0].id] * 1e3)}"
            bars.append({"case": title, "kind": "end", "lane": "GPU", "to": arranged.total, "text": text})
            moved = sum(one.metrics["dram__bytes_read.sum"] + one.metrics["dram__bytes_write.sum"] for one in of)
            notes.append(f"{title}: {text}, {moved / 1e6:.4g} MB of HBM traffic; "
                         f"{', '.join(distinct(one.short_kernel for one in of))}")
    return {"bars": bars}, notes

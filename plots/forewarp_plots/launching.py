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


_MOST_WAVES = 8  # that have a colour each
_HEIGHT, _HATCH = 240, 9  # pixels of a panel, and between two strokes of a hatch
_WAVE_COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#882255", "#999933", "#44AA99"]
_SHARES = ["#dbeafe", "#a9cdea", "#7fb8d8", "#3f95c5", "#0072B2"]
_TAIL, _STROKES = "tail: SMs have run out of blocks", "extrapolated, not simulated"


def _wave_name(wave, waves_there):
    return f"wave {wave}" if waves_there <= _MOST_WAVES else "odd waves" if wave % 2 else "even waves"


def _in_flight(spans, facts, by_sm):
    """Blocks of the first wave that were running where the simulation stopped: known to be there, but not by number."""
    if facts["full_waves"] == 0 or not spans["extrapolated"] or not spans["block"]:
        return {}
    first = {sm: sum(block < facts["blocks_per_wave"] for _, _, block in blocks) for sm, blocks in by_sm.items()}
    return {sm: facts["blocks_per_sm"] - count for sm, count in first.items() if count < facts["blocks_per_sm"]}


def _blocks(spans, facts, waves_there, us):
    """A rectangle for each block."""
    by_sm = {}
    for block, sm, start, end in zip(spans["block"], spans["sm"], spans["start"], spans["end"]):
        by_sm.setdefault(sm, []).append((start, end, block))
    missing, taken = _in_flight(spans, facts, by_sm), {}
    for sm, blocks in sorted(by_sm.items()):
        blocks += [(blocks[0][0], spans["extrapolated"][-1]["from"], -1 - i) for i in range(missing.get(sm, 0))]
        blocks.sort()
        taken[sm] = _slots(blocks)
    rows = max((rows for _, rows in taken.values()), default=1)
    for sm, blocks in sorted(by_sm.items()):
        places, _ = taken[sm]
        for start, end, block in blocks:
            wave = max(0, block) // max(1, facts["blocks_per_wave"]) + 1
            what = f"block {block}" if block >= 0 else "a block, in flight where the simulation stopped,"
            yield {"kind": "block", "block": block, "sm": sm, "from": start * us, "to": end * us, "wave": wave,
                   "top": sm + places[block] / rows, "bottom": sm + (places[block] + 1) / rows,
                   "shade": _wave_name(wave, waves_there), "text": f"{what} of wave {wave} on SM {sm}"}


def _shares(residency, gaps, facts, us):
    """Where there are too many blocks for one each: how full each SM is, stretches of equal fill together, of what was simulated."""
    width, height, most = residency["cycles_per_column"], residency["sms_per_row"], max(1, facts["blocks_per_sm"])
    names = [f"{20 * i} to {20 * i + 20} % of {most} blocks" for i in range(5)]
    for row, blocks in enumerate(residency["blocks"]):
        levels = [None if share <= 0.02 or any(gap["from"] < (at + 0.5) * width < gap["to"] for gap in gaps)
                  else min(4, int(5 * share / most)) for at, share in enumerate(blocks)] + [None]
        first = 0
        for at in range(1, len(levels)):
            if levels[at] == levels[first]:
                continue
            if levels[first] is not None:
                yield {"kind": "block", "sm": row * height, "from": first * width * us, "to": at * width * us, "top": row * height,
                       "bottom": (row + 1) * height, "shade": names[levels[first]],
                       "text": f"SMs {row * height} to {(row + 1) * height - 1}: {sum(blocks[first:at]) / (at - first):.1f} of {most} blocks"}
            first = at


def _unseen(launch, spans, us):
    """What nobody followed to its end: waves of blocks that the counts say come after, and when."""
    facts, sms, total = launch.case["waves"], launch.machine.get("sm_count", 1), launch.cycles * us
    cut = next((gap["from"] for gap in spans["extrapolated"] if gap["to"] >= 0.995 * launch.cycles), None)
    if cut is None and spans["block"]:
        return []
    last = facts["last_wave_blocks"]
    tail = total * (1 - facts["tail_pct"] / 100) if last and not facts["seen_in_simulation"] else total
    begin = max((cut or 0) * us, 0)
    parts = [(begin, tail, sms)] if tail > begin else []
    if last and tail < total:
        parts.append((max(tail, begin), total, min(sms, last)))
    return parts


def _strokes(left, right, bottom, per_us, per_sm):
    """Diagonals over a rectangle from SM 0 to `bottom`, so many pixels apart."""
    width, height = (right - left) * per_us, bottom * per_sm
    for at in range(_HATCH, int(width + height), _HATCH):
        x1, y1 = (at, 0) if at <= width else (width, at - width)
        x2, y2 = (0, at) if at <= height else (at - height, height)
        yield {"kind": "stroke", "from": left + x1 / per_us, "to": left + x2 / per_us, "top": y1 / per_sm, "bottom": y2 / per_sm,
               "text": _STROKES}


def waves(launches, options):
    stays, notes, shades = [], [], set()
    times = [one.cycles / one.machine["clock_mhz"] for one in launches]
    width = (options.width or 800) - 150
    for launch, name in zip(launches, labels(launches)):
        spans, facts = launch.part("block_spans"), launch.case["waves"]
        us, sms = 1 / launch.machine["clock_mhz"], launch.machine["sm_count"]
        total, waves_there = launch.cycles * us, facts["full_waves"] + (1 if facts["last_wave_blocks"] else 0)
        own = list(_shares(spans["residency"], spans["extrapolated"], facts, us) if "residency" in spans else _blocks(spans, facts, waves_there, us))
        if facts["last_wave_blocks"] or facts["seen_in_simulation"]:
            own.insert(0, {"kind": "tail", "from": total * (1 - facts["tail_pct"] / 100), "to": total, "top": 0, "bottom": sms,
                           "shade": _TAIL, "text": f"tail: {facts['tail_pct']:.0f} % of the time"})
        per_us, per_sm = width / max(times), _HEIGHT / sms
        gaps = [(gap["from"] * us, gap["to"] * us, sms) for gap in spans["extrapolated"] if gap["to"] < 0.995 * launch.cycles]
        unseen = _unseen(launch, spans, us)
        for left, right, bottom in gaps + unseen:
            if (right - left) * per_us >= 2:
                own += _strokes(left, right, bottom, per_us, per_sm)
        stays += [{"case": name} | row for row in own]
        full, rest = facts["full_waves"], facts["last_wave_blocks"]
        counted = "" if facts["seen_in_simulation"] else ", both from counts of blocks"
        notes.append(f"{name}: {facts['blocks']:,} blocks, {facts['blocks_per_wave']:,} a wave ({facts['blocks_per_sm']} an SM): "
                     f"{full} full" + (f" and one of {rest:,}" if rest else "") +
                     f"; tail {facts['tail_pct']:.0f} % of the time, idle SM time {facts['idle_sm_pct']:.0f} %{counted}" +
                     (f"; the last {100 * sum(r - l for l, r, _ in unseen) / total:.0f} % of the time is extrapolated, its blocks drawn from counts"
                      if unseen else ""))
    there = {row["shade"] for row in stays if "shade" in row}
    waves_drawn = sorted({row["wave"] for row in stays if "wave" in row})
    order = list(dict.fromkeys(name for wave in waves_drawn for count in (0, 99) if (name := _wave_name(wave, count)) in there))
    colours = {name: _WAVE_COLOURS[i % len(_WAVE_COLOURS)] for i, name in enumerate(order)}
    shares = sorted((name for name in there if " % of " in name), key=lambda name: (name.split(" % of ")[1], int(name.split()[0])))
    colours |= {name: _SHARES[int(name.split()[0]) // 20] for name in shares}
    if _TAIL in there:
        colours[_TAIL] = "#fbdcc8"
    scale = {"domain": list(colours), "range": list(colours.values())}
    thinnest = min(((row["bottom"] - row["top"]) for row in stays if row["kind"] == "block"), default=1)
    changes = {"spec.width": width, "spec.height": _HEIGHT,
               "spec.layer.0.mark.strokeWidth": 0.4 if thinnest * _HEIGHT / max(one.machine["sm_count"] for one in launches) > 2 else 0,
               "spec.layer.0.encoding.color.scale": scale,
               "spec.layer.0.encoding.y.scale.domain": [0, max(one.machine["sm_count"] for one in launches)],
               "spec.layer.0.encoding.x.scale.domain": [0, max(times)]}
    stays.append({"case": labels(launches)[0], "kind": "key", "what": _STROKES, "from": 0, "top": 0}
                 if any(row["kind"] == "stroke" for row in stays) else stays.pop())
    return {"stays": stays}, notes, changes


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

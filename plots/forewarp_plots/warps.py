"""What the warps of a watched block do, and what is under way beside them: `forewarp predict --warps BLOCK`."""
from .results import InputError, labels

_WIDTH = 640  # pixels of a panel
_PIXELS = 1.5  # of a stretch that is drawn by itself; shorter ones are drawn as what is most of their place
_MOST_PANELS = 8
_SEVERAL = -1  # stretches of a kind that are drawn as one

_SHORT = 24  # cycles of a wait between two issues that is drawn as part of them
ISSUES, COPIES, STAGES, PRODUCTS = "issues", "waits for copies", "waits for free stages", "waits for products"
MEETS, DATA, OTHER = "waits for other warps", "waits for data", "other waits"
COPY, GROUP, TENSOR = "copy", "products", "tensor pipe"
COLOURS = {ISSUES: "#009E73", COPIES: "#D55E00", STAGES: "#E69F00", PRODUCTS: "#0072B2", MEETS: "#CC79A7", DATA: "#882255",
           OTHER: "#e5e7eb", COPY: "#56B4E9", GROUP: "#999933", TENSOR: "#44AA99"}
_WAITS = (COPIES, STAGES, PRODUCTS, MEETS, DATA, OTHER)
_DATA = ("long_scoreboard", "short_scoreboard", "lg_throttle", "mio_throttle", "tex_throttle", "imc_miss")


class Lane:
    """A row of a block: bars that follow one another."""

    def __init__(self, name, bars):
        self.name, self.bars = name, bars


class Bar:
    """From a cycle to another: of which kind, what it says, and from when on it was waited for, if it was."""

    def __init__(self, what, begin, end, text, queued=None):
        self.what, self.begin, self.end, self.text, self.queued = what, begin, end, text, queued


def timeline_of(launch):
    if "warp_timeline" not in launch.case:
        raise InputError(f"{launch.path}: {launch.label} holds no timeline of warps", "predict it with --warps BLOCK --json FILE")
    return launch.case["warp_timeline"]


class _Words:
    """How instructions and barriers of a launch are called."""

    def __init__(self, launch):
        self.timeline = timeline_of(launch)
        self.sass = {row["pc"]: row["sass"] for row in launch.case.get("instructions", [])}
        self.barriers = {(one["block"], one["offset"]): one for one in self.timeline["barriers"]}

    def at(self, pc):
        return f"{pc:#06x} {self.sass.get(pc, '')}".rstrip()

    def barrier(self, block, offset):
        one = self.barriers.get((block, offset))
        return f"{one['name']} ({offset:#x})" if one else f"barrier {offset:#x}"

    def state(self, block, state, pc, waits):
        """(kind, words) of a stretch."""
        name = self.timeline["states"][state]
        if name == "selected":
            return ISSUES, f"issues from {self.at(pc)} on"
        at = f", at {self.at(pc)}"
        if waits and "phase" in waits:
            known = self.barriers.get((block, waits["barrier"]))
            kind = COPIES if known and known["filled_by_copies"] else STAGES
            return kind, f"waits for phase {waits['phase']} of {self.barrier(block, waits['barrier'])}{at}"
        if waits and "barrier" in waits:
            number = "the cluster's barrier" if waits["barrier"] == 256 else f"barrier {waits['barrier']}"
            return MEETS, f"waits at {number}{at}"
        source = f" of {self.at(waits['source'])}" if waits and "source" in waits else ""
        kind = PRODUCTS if name == "products" else MEETS if name in ("barrier", "gmma") else DATA if name in _DATA else OTHER
        return kind, f"{name.replace('_', ' ')}{source}{at}"


def _warp_lane(words, warp):
    waits, bars = {one["stretch"]: one for one in warp["waits_for"]}, []
    ends = warp["from"][1:] + [warp["to"]]
    for i, (begin, end, state, pc) in enumerate(zip(warp["from"], ends, warp["state"], warp["pc"])):
        kind, text = words.state(warp["block"], state, pc, waits.get(i))
        bars.append(Bar(kind, begin, end, text))
    return bars


def _copy_lanes(words, timeline, block):
    """Copies of one phase of a barrier are one bar; those that leave shared memory have a row of their own."""
    of, out = {}, []
    for copy in timeline["copies"]:
        if copy["kind"] in ("store", "reduction"):
            if copy["block"] == block:
                out.append(copy)
        elif "barrier" in copy and block in copy.get("to", [copy["block"]]):
            of.setdefault(copy["barrier"], []).append(copy)
    for offset, copies in sorted(of.items()):
        bars, left = [], list(copies)
        ends = words.barriers.get((block, offset), {"phase_ends": []})["phase_ends"]
        for phase, end in enumerate(ends + [None], 1):
            now = [copy for copy in left if end is None or (copy["done"] is not None and copy["done"] <= end)]
            if not now:
                continue
            left = [copy for copy in left if copy not in now]
            begin, last = now[0]["issued"], end if end is not None else timeline["cycles"]
            many = f"{len(now)} copies" if len(now) > 1 else "a copy"
            bars.append(Bar(COPY, begin, last, f"{many} of {sum(copy['bytes'] for copy in now):,} bytes by warp {now[0]['warp']}"
                                               + (f", phase {phase} of {words.barrier(block, offset)}" if end is not None else "")))
        name = words.barriers.get((block, offset), {"name": f"barrier {offset:#x}"})["name"]
        yield Lane(f"copies, {name}", bars)
    if out:
        yield Lane("copies out", _one_after_another(
            [Bar(COPY, copy["issued"], timeline["cycles"] if copy["done"] is None else copy["done"],
                 f"a {copy['kind']} of {copy['bytes']:,} bytes by warp {copy['warp']}") for copy in out]))


def _one_after_another(bars):
    """Those that overlap as one."""
    done = []
    for bar in sorted(bars, key=lambda one: one.begin):
        if done and bar.begin < done[-1].end:
            done[-1].end = max(done[-1].end, bar.end)
        else:
            done.append(bar)
    return done


def _product_lanes(words, timeline, block):
    """Of each warpgroup, as its first warp sees them."""
    groups = {}
    for one in timeline["products"]:
        if one["block"] == block and one["started"] is not None:
            groups.setdefault(one["warp"] // 4, {}).setdefault(one["warp"], []).append(one)
    for group, warps in sorted(groups.items()):
        bars = []
        for one in warps[min(warps)]:
            end = timeline["cycles"] if one["done"] is None else one["done"]
            bars.append(Bar(GROUP, one["started"], max(end, one["started"]), f"{one['products']} products from {words.at(one['pc'])} on, "
                            f"issued at {one['issued']:,}", one["issued"]))
        yield Lane(f"products, warps {4 * group}-{4 * group + 3}", bars)


def panels(launch):
    """[(name, lanes)] of each block of the record."""
    timeline, words, made = timeline_of(launch), _Words(launch), []
    for block in timeline["blocks"]:
        number = block["block"]
        lanes = [Lane(f"warp {warp['warp']}" + (f", {warp['role']}" if warp["role"] != "other" else ""), _warp_lane(words, warp))
                 for warp in timeline["warps"] if warp["block"] == number]
        lanes += _copy_lanes(words, timeline, number)
        lanes += _product_lanes(words, timeline, number)
        for busy in timeline["tensor_busy"]:
            if busy["block"] == number:
                lanes.append(Lane(f"tensor pipe {busy['sub_partition']}", [
                    Bar(TENSOR, begin, end, f"tensor pipe of sub-partition {busy['sub_partition']}") for begin, end in zip(busy["from"], busy["to"])]))
        made.append((f"block {number} on SM {block['sm']}", lanes))
    return made


def _drawn(lane, begin, end, grain):
    """The bars of a lane within a window, those too short to be seen by themselves as what is most of their place."""
    places = max(1, int((end - begin) / grain))
    most = [None] * places  # (cycles, index)
    share = [{} for _ in range(places)]
    for index, bar in enumerate(lane.bars):
        left, right = max(bar.begin, begin), min(bar.end, end)
        if right <= left:
            continue
        kind = ISSUES if bar.what in _WAITS and bar.end - bar.begin <= _SHORT else bar.what
        first, last = int((left - begin) / grain), min(places - 1, int((right - begin) / grain))
        for place in range(min(first, places - 1), last + 1):
            inside = min(right, begin + (place + 1) * grain) - max(left, begin + place * grain)
            if inside <= 0:
                continue
            share[place][kind] = share[place].get(kind, 0) + inside
            if most[place] is None or inside > most[place][0]:
                most[place] = (inside, index)
    rows = []
    for place in range(places):
        if not share[place]:
            continue
        covered = sum(share[place].values())
        if covered < grain / 2 and lane.bars[most[place][1]].what in (COPY, GROUP, TENSOR):
            continue  # mostly idle
        what = max(share[place], key=lambda kind: (share[place][kind], kind))
        cycles, index = most[place]
        alone = lane.bars[index].what == what and cycles > 0.6 * grain
        rows.append((place, what, index if alone else None))
    merged = []
    for place, what, index in rows:
        last = merged[-1] if merged else None
        if last and last[1] == place and last[2] == what and (what in (ISSUES, OTHER, TENSOR) or last[3] == index or None in (last[3], index)):
            last[1] = place + 1
            last[3] = index if last[3] is None else last[3] if index in (None, last[3]) else _SEVERAL
            continue
        merged.append([place, place + 1, what, index])
    for first, last, what, index in merged:
        bar = lane.bars[index] if index not in (None, _SEVERAL) else None
        left, right = begin + first * grain, begin + last * grain
        if bar is not None and last - first > 1:  # where it really begins and ends, if that is near
            left = bar.begin if abs(bar.begin - left) < grain else left
            right = bar.end if abs(bar.end - right) < grain else right
        text = bar.text if bar is not None and what == bar.what else what if what == ISSUES or index == _SEVERAL else f"{what}, with others in between"
        yield what, max(left, begin), min(right, end), text, bar


def _window(timeline, options):
    begin, end = options.cycles or (0, timeline["cycles"])
    end = min(end, timeline["cycles"])
    if begin >= end:
        raise InputError(f"--cycles {begin}:{options.cycles[1]} holds nothing: the record is of {timeline['cycles']:,} cycles")
    return begin, end


def _note(name, timeline, begin, end):
    words = [f"cycles {begin:,} to {end:,} of block {timeline['block']}"]
    if timeline["tensor_pct"] > 0:
        words.append(f"tensor pipes busy {timeline['tensor_pct']:.0f} %")
    if timeline["copies"]:
        words.append(f"copies under way {timeline['copying_pct']:.0f} %, {timeline['copied_bytes_per_cycle']:.1f} bytes a cycle")
    text = f"{name}: " + ", ".join(words)
    if timeline["sentence"]:
        text += f"; {timeline['sentence']}"
    for gap in timeline["left_out"]:
        text += f"; {gap['cycles']:,} cycles were left out at cycle {gap['at']:,}"
    return text + f"; waits of up to {_SHORT} cycles are drawn as part of the issue"


def warps(launches, options):
    rows, notes = [], []
    width = (options.width or _WIDTH + 190) - 190
    several = len(launches) > 1
    for launch, name in zip(launches, labels(launches)):
        timeline = timeline_of(launch)
        begin, end = _window(timeline, options)
        grain = max(1.0, _PIXELS * (end - begin) / max(200, width))
        for where, lanes in panels(launch):
            panel = f"{name}, {where}" if several or len(timeline["blocks"]) > 1 else where
            own = []
            for lane in lanes:
                for what, left, right, text, bar in _drawn(lane, begin, end, grain):
                    row = {"kind": "stretch", "lane": lane.name, "what": what, "from": left, "to": right, "text": text}
                    own.append(row)
                    if bar is not None and bar.queued is not None and begin <= bar.queued < left - grain:
                        own.append({"kind": "queued", "lane": lane.name, "from": bar.queued, "to": left, "text": text})
            if own:
                own += [{"kind": "gap", "from": gap["at"], "text": f"{gap['cycles']:,} cycles left out"}
                        for gap in timeline["left_out"] if begin <= gap["at"] <= end]
            rows += [{"case": panel} | row for row in own]
        notes.append(_note(name, timeline, begin, end))
    if len({row["case"] for row in rows}) > _MOST_PANELS:
        raise InputError(f"{len({row['case'] for row in rows})} blocks are more than a picture can show", "choose a case with --case")
    if not rows:
        raise InputError("no warp does anything in these cycles", "choose others with --cycles FROM:TO")
    there = [what for what in COLOURS if any(row.get("what") == what for row in rows)]
    first, last = min(row["from"] for row in rows), max(row.get("to", 0) for row in rows)
    changes = {"spec.width": width, "spec.layer.0.encoding.color.scale": {"domain": there, "range": [COLOURS[what] for what in there]},
               "spec.layer.0.encoding.x.scale.domain": [first, last]}
    return {"lanes": rows}, notes, changes

"""Pictures of rates: ladder, stalls, sweep."""
from .placement import text_width
from .results import InputError, clocks_note, distinct, duration, labels, numeric_name, si
from .style import marks_title

_LEVEL_COUNTERS = {
    "L2": (("lts__t_sectors_srcunit_tex.sum", 32),),
    "HBM": (("dram__bytes_read.sum", 1), ("dram__bytes_write.sum", 1)),
}


def measured_bytes(launch, level):
    """Bytes that a profile saw at a level, or None."""
    if level == "L1":
        sectors = [launch.measured(f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{op}.sum")
                   for space in ("global", "local") for op in ("ld", "st")]
        wavefronts = [launch.measured(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum") for op in ("ld", "st")]
        conflicts = [launch.measured(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum") for op in ("ld", "st")]
        if None in sectors or None in wavefronts or None in conflicts:
            return None
        # A wavefront that a bank conflict adds moves nothing more.
        return 32 * sum(sectors) + 128 * (sum(wavefronts) - sum(conflicts))
    values = [launch.measured(name) for name, _ in _LEVEL_COUNTERS[level]]
    return None if None in values else sum(v * scale for v, (_, scale) in zip(values, _LEVEL_COUNTERS[level]))


def ladder(launches, options):
    steps, ceilings = [], []
    idle = [one.label for one in launches if not one.operations]
    launches = [one for one in launches if one.operations]
    if not launches:
        raise InputError("none of the launches does arithmetic that is counted, so none has a rate", "draw `traffic` or `stalls`")
    several = len({launch.gpu for launch in launches}) > 1
    most = max(max(one.operations / one.nanoseconds * 1e9,
                   one.operations / one.measured_nanoseconds * 1e9 if one.measured_nanoseconds else 0)
               for one in launches)
    for launch in launches:
        rate = launch.operations / launch.nanoseconds * 1e9
        measured = launch.operations / launch.measured_nanoseconds * 1e9 if launch.measured_nanoseconds else None
        error = "" if launch.error_pct is None else f" ({launch.error_pct:+.1f} % cycles)"
        # The text stands behind whichever mark reaches further.
        step = {"step": launch.label, "kernel": launch.short_kernel, "gpu": launch.gpu, "predicted": rate,
                "bound": launch.bound, "far": max(rate, measured or 0) + 0.005 * most,
                "seen": si(measured, "FLOP/s") if measured else "no profile",
                "label": f"{si(rate, 'FLOP/s')}{error}, {duration(launch.nanoseconds)}, {launch.bound}", "brief": si(rate, "FLOP/s")}
        if measured is not None:
            step["measured"] = measured
        steps.append(step)
    for gpu in distinct(one.gpu for one in launches):
        of = [one for one in launches if one.gpu == gpu]
        precision = of[0].case["roofline"]["precision"]
        peak = next((w["peak_per_second"] for w in of[0].case["roofline"]["work"] if w["precision"] == precision), 0)
        if peak:
            ceilings.append({"gpu": gpu, "name": f"{numeric_name(precision)} peak", "rate": peak})
    # A label does not stand on a ceiling's line.
    span = max([most] + [c["rate"] for c in ceilings])
    for step in steps:
        for rate in sorted(c["rate"] for c in ceilings):
            if step["far"] <= rate < step["far"] + text_width(step["label"], 10) / 520 * span:
                step["far"] = rate
    notes = [f"Dashed: {c['name']}{' of ' + c['gpu'] if several else ''}, {si(c['rate'], 'FLOP/s')}" for c in ceilings]
    notes += clocks_note(launches)
    if idle:
        notes.append("Without arithmetic that is counted, and not drawn: " + ", ".join(idle))
    return {"steps": steps, "ceilings": ceilings}, notes, {
        "layer.0.encoding.x.axis.title": marks_title("Rate", steps)} | ({} if several else {"layer.0.encoding.color.legend": None})


_STALLS = ["selected", "not_selected", "math_pipe_throttle", "wait", "dispatch_stall", "short_scoreboard", "mio_throttle",
           "long_scoreboard", "lg_throttle", "barrier", "membar", "branch_resolving", "no_instruction", "imc_miss",
           "sleeping", "tex_throttle", "drain", "misc", "gmma"]


def stalls(launches, options):
    shares = []
    for launch, name in zip(launches, labels(launches)):
        predicted = {s["reason"]: s["per_issue"] for s in launch.case["stalls"]}
        prefix, suffix = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
        measured = {key[len(prefix):-len(suffix)]: pair["measured"] for key, pair in launch.counters.items()
                    if key.startswith(prefix) and key.endswith(suffix)}
        for origin, values in (("predicted", predicted), ("measured", measured)):
            total = sum(values.values())
            for reason in _STALLS + sorted(set(values) - set(_STALLS)):
                if total > 0 and values.get(reason, 0) / total >= 0.002:
                    shares.append({"case": name, "origin": origin, "reason": reason.replace("_", " "),
                                   "share": 100 * values[reason] / total, "per_issue": values[reason],
                                   "place": _STALLS.index(reason) if reason in _STALLS else len(_STALLS)})
    order = sorted({(s["place"], s["reason"]) for s in shares})
    return {"shares": shares}, [], {"spec.encoding.color.scale": {"domain": [reason for _, reason in order],
                                                                  "range": _colours(len(order))}}


def _colours(count):
    """Twenty that stay apart in print and for the colour-blind: light and dark of ten hues."""
    colours = ["#0072B2", "#7fb8d8", "#D55E00", "#eaae7f", "#009E73", "#7fcfb9", "#E69F00", "#f2cf7f", "#CC79A7", "#e5bcd3",
               "#882255", "#c390aa", "#999933", "#cccc99", "#44AA99", "#a1d4cc", "#56B4E9", "#1f2937", "#9ca3af", "#AA4499"]
    return (colours * (count // len(colours) + 1))[:count]


_DIVIDES = ("1", "2", "4", "8", "16", "32 or more")


def divisibility(size):
    power = size & -size
    return "32 or more" if power >= 32 else str(power)


def _sweep_size(launch):
    """N of a square product: from its operations, which are 2 N^3 and a little where tiles overhang."""
    digits = launch.id.rsplit("_", 1)[-1]
    if not digits.isdigit():
        raise InputError(f"{launch.path}: the case {launch.id} does not end in its size",
                         "a sweep's cases are named by it: sgemm_warp_tiled_1792")
    return int(digits)


def sweep(launches, options):
    """Rates count the work asked for, 2 N^3, not what overhanging tiles do besides."""
    points = []
    for launch in launches:
        size = _sweep_size(launch)
        base = {"case": launch.id, "size": size, "divides": divisibility(size), "series": launch.short_kernel}
        metrics, waves = launch.metrics, launch.case["waves"]
        points.append(base | {"origin": "predicted", "rate": 2 * size ** 3 / launch.nanoseconds * 1e9,
                              "more": f"{waves['blocks'] / max(1, waves['blocks_per_wave']):.2f} waves, "
                                      f"{metrics.get('forewarp__wasted_sectors.pct', 0):.0f} % of sectors wasted, "
                                      f"bound by {launch.bound}"})
        if launch.measured_nanoseconds:
            points.append(base | {"origin": "measured", "rate": 2 * size ** 3 / launch.measured_nanoseconds * 1e9, "more": "profiled"})
    for curve in options.points:
        for size, ns in curve.rows:
            points.append({"case": f"{curve.name}, {size}", "size": size, "divides": divisibility(size),
                           "origin": curve.origin, "rate": 2 * size ** 3 / ns * 1e9, "series": curve.name,
                           "more": f"{curve.origin} on {curve.gpu}" if curve.gpu else curve.origin})
    points.sort(key=lambda p: (p["series"], p["origin"], p["size"]))
    cliffs = wave_cliffs(launches)
    few = [c for c in cliffs if c["waves"] <= 7]
    shapes = {"predicted": "circle", "measured": "diamond", "published": "triangle-up"}
    origins = [o for o in shapes if any(p["origin"] == o for p in points)]
    sizes = [p["size"] for p in points]
    divides = [d for d in _DIVIDES if any(p["divides"] == d for p in points)]
    colours = dict(zip(_DIVIDES, ("#D55E00", "#E69F00", "#CC79A7", "#009E73", "#56B4E9", "#0072B2")))
    changes = {"layer.1.encoding.shape.scale": {"domain": origins, "range": [shapes[o] for o in origins]},
               "layer.1.encoding.color.scale": {"domain": divides, "range": [colours[d] for d in divides]},
               "layer.1.encoding.x.scale": {"zero": False, "nice": False, "domain": [min(sizes) - 40, max(sizes) + 40]}}
    return {"points": points, "cliffs": few}, _sweep_notes(points) + _cliff_notes(few), changes


def _cliff_notes(cliffs):
    return ["Dotted: " + cliffs[0]["text"] + "; so on at " + ", ".join(str(c["size"]) for c in cliffs[1:])] if cliffs else []


def wave_cliffs(launches):
    """Sizes from which a launch takes one wave more, from grids and residency alone."""
    by_size = sorted((_sweep_size(one), one.case["waves"]) for one in launches)
    if not by_size:
        return []
    per_wave = by_size[0][1]["blocks_per_wave"]
    cliffs, tiles_before, last = [], 0, by_size[-1][0]
    edge = _tile_edge(launches)
    for size in range(edge, last + 1, edge):
        tiles = (size // edge) ** 2
        if tiles_before and -(-tiles // per_wave) > -(-tiles_before // per_wave):
            at = size - edge + 1
            waves = -(-tiles // per_wave)
            if by_size[0][0] <= at <= last:
                cliffs.append({"size": at, "waves": waves, "short": f"wave {waves}", "link": f"#cliff-{at}",
                               "text": f"from {at} on {tiles} tiles of {edge} x {edge} are more than {waves - 1} x "
                                       f"{per_wave}, so a wave {waves} begins"})
        tiles_before = tiles
    return cliffs


def _tile_edge(launches):
    """The tile's side: the grid covers N with it."""
    edges = set()
    for launch in launches:
        size, across = _sweep_size(launch), launch.case["grid"][0]
        low, high = -(-size // across), (size - 1) // (across - 1) if across > 1 else None
        edges.add((low, high))
    for edge in (16, 32, 64, 128, 256):
        if all(low <= edge and (high is None or edge <= high) for low, high in edges):
            return edge
    raise InputError("the grids of the sweep cover the sizes with no square tile of 16 to 256", "sweep one kernel at a time")


def _sweep_notes(points):
    predicted = {(p["size"]): p["rate"] for p in points if p["origin"] == "predicted"}
    measured = {}
    for p in points:
        if p["origin"] == "measured":
            measured.setdefault(p["series"], {})[p["size"]] = p["rate"]
    notes = []
    series = {p["series"] for p in points if p["origin"] == "predicted"}
    for name, curve in sorted(measured.items()):
        both = [abs(predicted[n] - curve[n]) / curve[n] for n in curve if n in predicted and n >= 512]
        if both and name in series:
            notes.append(f"{name}: predicted rates are off by {100 * sum(both) / len(both):.1f} % on average at "
                         f"{len(both)} measured sizes from 512 up")
    return notes


def cost(_, options):
    """How what a prediction costs grows with the work it is of: both as multiples of those at the kernel's smallest size."""
    points, notes = [], []
    for table in options.points:
        smallest, growths = {}, {}
        for kernel, size, seconds, instructions, mib in sorted(table.rows, key=lambda row: row[:2]):
            first = smallest.setdefault(kernel, (seconds, instructions))
            growths[kernel] = (seconds / first[0], instructions / first[1])
            base = {"kernel": kernel, "size": size, "seconds": seconds, "instructions": instructions, "mib": mib}
            points += [base | {"kind": "time", "times": seconds / first[0]},
                       base | {"kind": "work", "times": instructions / first[1]}]
        worst = max(growths, key=lambda kernel: growths[kernel][0])
        notes.append(f"Lines: processor seconds of a prediction; dashed: the kernel's warp instructions; both against the smallest size. "
                     f"At the largest size time has grown most for {worst}, {growths[worst][0]:.1f} times, and its work "
                     f"{growths[worst][1]:,.0f} times; dotted: 4 times")
    return {"points": points, "limit": [{"times": 4}]}, notes

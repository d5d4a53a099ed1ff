"""One page of a run: its launches, and of each the sections in the order that Nsight Compute's users know."""
import html

from . import spec as charts_of
from .meanings import Meanings
from .render import figure, page as whole_page
from .results import duration, si

_SHORT = 18  # characters of a cell that is not broken into lines
_MOST_TRAFFIC = 12  # launches in the overview's picture of bytes; more do not fit a screen


class Writer:
    """Collects the page's parts and its charts."""

    def __init__(self, meanings):
        self.parts, self.charts, self.meanings = [], {}, meanings

    def add(self, text):
        self.parts.append(text)

    def chart(self, kind, launches, identity, options=None):
        """A chart, or nothing where the result does not hold what it needs."""
        try:
            spec, notes = charts_of.build(kind, launches, options)
        except charts_of.InputError:
            return
        small, narrow_notes = charts_of.build_narrow(kind, launches, options)
        self.charts[identity] = (kind, spec, small)
        self.add(figure(identity, kind, spec, notes, narrow_notes, "h4"))

    def table(self, heads, rows, caption, numbers=()):
        """numbers: columns that are set to the right. Cells are text and escaped, or (text, class)."""
        def cell(index, value):
            text, cls = value if isinstance(value, tuple) else (value, "")
            classes = " ".join(filter(None, ["n" if index in numbers else "s" if len(str(text)) <= _SHORT else "", cls]))
            return f'<td{f" class={chr(34)}{classes}{chr(34)}" if classes else ""}>{html.escape(str(text))}</td>'
        # A column without a word in it says nothing.
        texts = [[value[0] if isinstance(value, tuple) else value for value in row] for row in rows]
        kept = [i for i in range(len(heads)) if not rows or any(str(row[i]) for row in texts)]
        numbers = {place for place, i in enumerate(kept) if i in numbers}
        heads, rows = [heads[i] for i in kept], [[row[i] for i in kept] for row in rows]
        head = "".join(f'<th scope="col"{" class=n" if i in numbers else ""}>{html.escape(h)}</th>' for i, h in enumerate(heads))
        body = "\n".join("<tr>" + "".join(cell(i, v) for i, v in enumerate(row)) + "</tr>" for row in rows)
        self.add(f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(caption)}"><table>'
                 f'<caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>\n')


def number(value):
    if value is None:
        return ""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _signed(predicted, measured):
    if measured is None:
        return ""
    if measured == 0:
        return "" if predicted == 0 else "measured 0"
    return f"{100 * (predicted - measured) / measured:+.1f} %"


def _summary_table(w, launches):
    rows, several = [], len({one.gpu for one in launches}) > 1
    for one in launches:
        wasted = one.metrics.get("forewarp__wasted_sectors.pct", 0)
        top = one.case["stalls"][0]["reason"].replace("_", " ") if one.case["stalls"] else ""
        rows.append([one.label, one.gpu if several else "", one.bound, duration(one.nanoseconds), number(one.cycles),
                     number(one.measured_cycles), _signed(one.cycles, one.measured_cycles),
                     si(one.case["roofline"]["attained_per_second"], "FLOP/s") if one.operations else "",
                     f"{wasted:.0f} %", top, one.short_kernel])
    w.table(["case", "GPU", "bound by", "time", "cycles", "measured", "error", "rate", "wasted sectors", "top stall", "kernel"],
            rows, "Launches", (3, 4, 5, 6, 7, 8))


def _overview(w, launches):
    w.add('<section id="overview"><h2>Summary</h2>\n')
    _summary_table(w, launches)
    if len(launches) > 1:
        if any(one.operations for one in launches):
            w.chart("ladder", [one for one in launches if one.operations], "overview-ladder")
            # One GPU's roofs a picture, and that one which was measured, if any was.
            roofed = next((one.gpu for one in launches if one.counters), launches[0].gpu)
            w.chart("roofline", [one for one in launches if one.gpu == roofed], "overview-roofline")
        w.chart("stalls", launches, "overview-stalls")
        if len(launches) <= _MOST_TRAFFIC:
            w.chart("traffic", launches, "overview-traffic")
        if any(one.measured_cycles for one in launches):
            w.chart("validation", launches, "overview-validation")
        if len({one.gpu for one in launches}) == 1 and len(launches) <= 64:
            w.chart("timeline", launches, "overview-timeline")
    w.add("</section>\n")


def _counters(w, one, names, caption):
    rows = []
    for name in names:
        if name not in one.metrics:
            continue
        unit, meaning = w.meanings.of(name)
        seen = one.measured(name)
        rows.append([name, number(one.metrics[name]), number(seen), _signed(one.metrics[name], seen), unit, meaning])
    if rows:
        w.table(["metric", "predicted", "measured", "error", "unit", "what it means"], rows, caption, (1, 2, 3))


def _matching(one, *words):
    return [name for name in one.metrics if any(word in name for word in words)]


def _speed_of_light(w, one, identity):
    rows = []
    for side, terms in (("compute", one.case["compute_throughput"]), ("memory", one.case["memory_throughput"])):
        rows += [[side, term["label"], f"{term['pct']:.1f} %"] for term in terms if term["pct"] >= 0.05]
    w.table(["throughput", "unit", "of its peak"], rows, "What is how busy over the elapsed cycles", (2,))
    w.chart("roofline", [one], identity + "-roofline")
    _counters(w, one, ["gpc__cycles_elapsed.max", "gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                       "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                       "lts__throughput.avg.pct_of_peak_sustained_elapsed",
                       "dram__throughput.avg.pct_of_peak_sustained_elapsed", "sm__cycles_active.avg"], "Counters")


def _memory_tables(w, one):
    """L1, shared memory, L2 and device memory in rows as Nsight Compute has them, without those of nothing."""
    m = one.metrics
    rows = []
    for space in ("global", "local"):
        for op, word in (("ld", "loads"), ("st", "stores"), ("atom", "atomics"), ("red", "reductions")):
            name = f"pipe_lsu_mem_{space}_op_{op}.sum"
            requests, sectors = m.get("l1tex__t_requests_" + name, 0), m.get("l1tex__t_sectors_" + name, 0)
            if requests:
                rows.append([f"{space} {word}", number(requests), number(sectors), f"{sectors / requests:.1f}", si(32 * sectors, "B")])
    if rows:
        w.table(["L1", "requests", "sectors", "sectors per request", "bytes"], rows, "L1 cache", (1, 2, 3, 4))
    rows = []
    for op, word in (("ld", "loads"), ("st", "stores"), ("atom", "atomics")):
        waves = m.get(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum", 0)
        conflicts = m.get(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum", 0)
        if waves:
            rows.append([word, number(waves), number(conflicts), f"{100 * conflicts / waves:.0f} %"])
    if rows:
        w.table(["shared memory", "wavefronts", "of bank conflicts", "share"], rows, "Shared memory", (1, 2, 3))
    rows = []
    for op, word in (("read", "reads"), ("write", "writes"), ("atom", "atomics"), ("red", "reductions")):
        sectors = m.get(f"lts__t_sectors_srcunit_tex_op_{op}.sum", 0)
        if sectors:
            rows.append([word, number(sectors), si(32 * sectors, "B"), si(32 * sectors / one.nanoseconds * 1e9, "B/s")])
    if rows:
        w.table(["L2", "sectors", "bytes", "rate"], rows, f"L2 cache, {m.get('lts__t_sector_hit_rate.pct', 0):.1f} % hits", (1, 2, 3))
    peak = {level["level"]: level["peak_bytes_per_second"] for level in one.case["roofline"]["levels"]}["HBM"]
    rows = []
    for word, name in (("read", "dram__bytes_read.sum"), ("written", "dram__bytes_write.sum")):
        rate = m.get(name, 0) / one.nanoseconds * 1e9
        if rate:
            rows.append([word, si(m[name], "B"), si(rate, "B/s"), f"{100 * rate / peak:.1f} %"])
    if rows:
        w.table(["device memory", "bytes", "rate", "of its peak"], rows, "Device memory", (1, 2, 3))


def _memory(w, one, identity):
    w.chart("memory", [one], identity + "-units")
    _memory_tables(w, one)
    w.chart("traffic", [one], identity + "-traffic")
    rows = [[f"{r['pc']:#06x}", r["sass"], r["space"], number(r["executed"]), number(r["sectors"]),
             number(r["sectors_needed"]), number(max(0, r["sectors"] - r["sectors_needed"])), number(r["wavefronts"]),
             number(r["bank_conflicts"])] for r in one.case.get("memory", [])]
    if rows:
        w.table(["pc", "instruction", "space", "executed", "sectors", "needed", "wasted", "wavefronts", "conflicts"], rows,
                "Memory instructions over the grid", (3, 4, 5, 6, 7, 8))
    if "access_examples" in one.case:
        w.chart("coalescing", [one], identity + "-coalescing")
    _counters(w, one, _matching(one, "l1tex__", "lts__", "dram__", "smsp__sass_average_data", "smsp__sass_data_bytes"),
              "Counters")


def _causes(w, one):
    accounting = one.case.get("accounting")
    if not accounting or not accounting["causes"]:
        return
    advice = {f["cause"]: f["advice"] for f in one.case.get("findings", [])}

    def where(cause):
        place = cause.get("place")
        return "" if not place else place.get("source") or f"{place['pc']:#06x} {place['sass']}"
    rows = [[c["title"], f"{c['share_pct']:.1f} %", duration(c["time_ns"]), duration(c["gain_ns"]) if "gain_ns" in c else "",
             c.get("evidence", ""), where(c), advice.get(c["cause"], "")] for c in accounting["causes"] if c["share_pct"] >= 1]
    w.table(["cause", "of the time", "time", "saved without it", "evidence", "where", "what helps"], rows,
            "Where the time goes", (1, 2, 3))
    w.add(f"<p>Sizes add up over all causes; they are from {html.escape(accounting['method'])}.</p>\n")


def _warp_states(w, one, identity):
    w.chart("stalls", [one], identity + "-stalls")
    if "warp_timeline" in one.case:
        w.chart("warps", [one], identity + "-warps")
    rows = [[f"{h['pc']:#06x}", h["sass"], h["reason"].replace("_", " "), number(h["warp_cycles"]), f"{h['share_pct']:.1f} %"]
            for h in one.case.get("hot_spots", [])]
    if rows:
        w.table(["pc", "instruction", "mostly", "warp cycles", "share"], rows, "Where warps wait", (3, 4))
    _counters(w, one, _matching(one, "issue_stalled"), "Counters")


def _heat(share):
    """How hot a row is: its class, of five."""
    return f"heat{min(4, int(share / 5))}" if share >= 1 else ""


def _lines(w, one):
    """CUDA lines by the time that warps spend on their instructions, where the image knows them."""
    total = sum(sum(r["warp_cycles"].values()) for r in one.case["instructions"]) or 1
    lines = {}
    for r in one.case["instructions"]:
        if "source" not in r:
            continue
        line = lines.setdefault(r["source"], {"time": 0, "executed": 0, "sectors": 0, "needed": 0, "waits": {}})
        line["time"] += sum(r["warp_cycles"].values())
        line["executed"] += r["executed"]
        line["sectors"] += r.get("sectors", 0)
        line["needed"] += r.get("sectors_needed", 0)
        for reason, value in r["warp_cycles"].items():
            line["waits"][reason] = line["waits"].get(reason, 0) + value
    rows = []
    for place, line in sorted(lines.items(), key=lambda item: -item[1]["time"]):
        share = 100 * line["time"] / total
        why = max(line["waits"], key=line["waits"].get).replace("_", " ") if line["waits"] else ""
        rows.append([place, (f"{share:.1f} %", _heat(share)), why, number(line["executed"]), number(line["sectors"]) if line["sectors"] else "",
                     number(max(0, line["sectors"] - line["needed"])) if line["sectors"] else ""])
    if rows:
        w.table(["line", "warp time", "mostly", "issued", "sectors", "wasted"], rows, "Lines of CUDA, the hottest first", (1, 3, 4, 5))


def _source(w, one, identity):
    if "instructions" in one.case:
        w.chart("divergence", [one], identity + "-divergence")
        _lines(w, one)
        total = sum(sum(r["warp_cycles"].values()) for r in one.case["instructions"]) or 1
        rows = []
        for r in one.case["instructions"]:
            waits = sorted(r["warp_cycles"].items(), key=lambda item: -item[1])
            share = 100 * sum(r["warp_cycles"].values()) / total
            why = ", ".join(f"{reason.replace('_', ' ')} {100 * value / total:.1f} %" for reason, value in waits[:3]
                            if value / total >= 0.0005)
            wasted = max(0, r.get("sectors", 0) - r.get("sectors_needed", 0))
            rows.append([f"{r['pc']:#06x}", r.get("source", ""), (r["sass"], "sass"), number(r["executed"]), f"{r['active_lanes']:.1f}",
                         (f"{share:.1f} %", _heat(share)), why, number(r.get("sectors")),
                         number(wasted) if wasted else "", number(r.get("bank_conflicts"))])
        if not any("source" in r for r in one.case["instructions"]):
            w.add("<p>The image has no line information (nvcc -lineinfo), so instructions stand without source lines.</p>\n")
        w.table(["pc", "source", "SASS", "issued", "lanes", "warp time", "waiting for", "sectors", "wasted", "conflicts"], rows,
                "Instructions", (3, 4, 5, 7, 8, 9))
    _counters(w, one, _matching(one, "branch_targets", "op_branch"), "Counters")


def interval(coverage):
    low, high = coverage.get("cycles_interval_95", (0, 0))
    return f"{low:,.0f} to {high:,.0f}"


def _coverage(w, one):
    c = one.case["coverage"]
    if c["extrapolated"]:
        how = f"{c['simulated_warp_instructions']:,} of {c['warp_instructions']:,} warp instructions were simulated, the rest is extrapolated: " \
              f"{c.get('method', '')}. 95 % confidence interval of the cycles: {interval(c)}."
    else:
        how = f"All {c['warp_instructions']:,} warp instructions were simulated."
    w.add(f"<p>{html.escape(how)} Caches at the start: {html.escape(str(one.case.get('cache', 'cold')))}.</p>\n")
    if one.case["warnings"]:
        w.add("<ul class=warnings>" + "".join(f"<li>{html.escape(text)}</li>" for text in one.case["warnings"]) + "</ul>\n")
    else:
        w.add("<p>No warnings.</p>\n")


def _launch_section(w, one, identity, is_open):
    grid, block = (html.escape("x".join(str(n) for n in one.case[key])) for key in ("grid", "block"))
    w.add(f'<details class="launch" id="{identity}"{" open" if is_open else ""}><summary><h2>{html.escape(one.label)} on '
          f'{html.escape(one.gpu)}</h2> <span>{html.escape(one.short_kernel)}, grid {grid}, block {block}, '
          f'{duration(one.nanoseconds)}</span></summary>\n')
    verdict, colon, reasons = one.case["bottleneck"]["sentence"].partition(":")
    w.add(f'<p class="sentence"><strong>{html.escape(verdict + colon)}</strong>{html.escape(reasons)}</p>\n')
    _causes(w, one)
    _coverage(w, one)
    roofline_names = set(_matching(one, "l1tex__", "lts__", "dram__", "smsp__sass_average_data", "smsp__sass_data_bytes"))
    sections = [
        ("GPU Speed Of Light Throughput", lambda: _speed_of_light(w, one, identity)),
        ("Compute Workload Analysis", lambda: _counters(
            w, one, [n for n in _matching(one, "issue_active", "inst_issued", "inst_executed_pipe") if "stalled" not in n],
            "Counters")),
        ("Memory Workload Analysis", lambda: _memory(w, one, identity)),
        ("Scheduler Statistics", lambda: _counters(
            w, one, [n for n in _matching(one, "warps_active", "warps_eligible", "issue_active", "maximum_warps")
                     if "stalled" not in n], "Counters")),
        ("Warp State Statistics", lambda: _warp_states(w, one, identity)),
        ("Instruction Statistics", lambda: (w.chart("mix", [one], identity + "-mix"), _counters(
            w, one, [n for n in _matching(one, "inst_executed", "sass_thread_inst") if n not in roofline_names
                     and "branch" not in n and "pipe" not in n], "Counters"))),
        ("Launch Statistics", lambda: (w.chart("waves", [one], identity + "-waves"),
                                       _counters(w, one, _matching(one, "launch__"), "Counters"))),
        ("Occupancy", lambda: (w.chart("occupancy", [one], identity + "-occupancy"),
                               _counters(w, one, _matching(one, "occupancy", "warps_active"), "Counters"))),
        ("Source Counters", lambda: _source(w, one, identity)),
        ("What forewarp adds", lambda: _counters(w, one, _matching(one, "forewarp__"), "Counters")),
    ]
    for place, (title, write) in enumerate(sections):
        w.add(f'<section id="{identity}-{place}"><h3>{title}</h3>\n')
        write()
        w.add("</section>\n")
    w.add("</details>\n")


def page(launches, forewarp=None, theme="auto"):
    """The page's text, on a light or a dark ground, or as the reader's system prefers."""
    w = Writer(Meanings(forewarp))
    gpus = ", ".join(dict.fromkeys(f"{one.machine.get('title', one.gpu)}" for one in launches))
    versions = ", ".join(dict.fromkeys(str(one.version) for one in launches))
    links = "".join(f'<li><a href="#launch-{i}">{html.escape(one.label)} <small>{html.escape(one.gpu)}</small></a></li>'
                    for i, one in enumerate(launches))
    w.add(f'<a class="skip" href="#overview">To the summary</a>\n<nav aria-label="Launches"><p class="brand">forewarp '
          f'{html.escape(versions)}</p><ul><li><a href="#overview">Summary</a></li>{links}</ul></nav>\n<main>\n'
          f'<h1>How {len(launches)} launch{"es" if len(launches) > 1 else ""} would perform</h1>\n'
          f'<p class="of">{html.escape(gpus)}. Predicted by forewarp {html.escape(versions)} without a GPU'
          + (", with what was measured beside it" if any(one.counters for one in launches) else "") + ".</p>\n")
    _overview(w, launches)
    for index, one in enumerate(launches):
        _launch_section(w, one, f"launch-{index}", len(launches) == 1)
    w.add("</main>")
    return whole_page("forewarp report", "".join(w.parts), w.charts, theme)

"""Pictures of one launch's inside: how bytes flow between the units, and which instructions it executes."""
from .results import InputError, labels, si

_WIDTH, _NARROW = 100, 600
_HOT = ("0 to 20 % of its peak", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 to 100 %")
_COLOURS = ("#9ca3af", "#56B4E9", "#009E73", "#E69F00", "#D55E00")


def _sum(launch, *names):
    return sum(launch.metrics.get(name, 0) for name in names)


def _terms(launch):
    return {term["unit"]: term["pct"] for side in ("compute_throughput", "memory_throughput") for term in launch.case[side]}


def links(launch):
    """[(zone, name, bytes, what else, percent of peak or None, up)]: what passes between two units, without what is nothing."""
    m, terms, seconds = launch.metrics, _terms(launch), launch.nanoseconds / 1e9
    sectors = lambda space, op: _sum(launch, f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{op}.sum")
    requests = lambda space, op: _sum(launch, f"l1tex__t_requests_pipe_lsu_mem_{space}_op_{op}.sum")
    found = []
    for space in ("global", "local"):
        for op, word, up in (("ld", "loads", True), ("st", "stores", False), ("atom", "atomics", False), ("red", "reductions", False)):
            if sectors(space, op):
                found.append(("kernel", f"{space} {word}", 32 * sectors(space, op), f"{si(requests(space, op))} requests", None, up))
    data = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
    waves, conflicts = m.get(data + ".sum", 0), m.get("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 0)
    if waves and _sum(launch, *(f"{data}_op_{op}.sum" for op in ("ld", "st", "atom"))):  # global stores pass its data stage too
        found.append(("shared", "shared memory", 128 * (waves - min(conflicts, waves)),
                      f"{si(waves)} wavefronts, {100 * conflicts / waves:.0f} % conflicts",
                      terms.get("l1tex__data_pipe_lsu_wavefronts"), True))
    reads, writes = 32 * m.get("lts__t_sectors_srcunit_tex_op_read.sum", 0), 32 * _sum(
        launch, "lts__t_sectors_srcunit_tex_op_write.sum", "lts__t_sectors_srcunit_tex_op_atom.sum", "lts__t_sectors_srcunit_tex_op_red.sum")
    found.append(("L2", "L2 to SMs", reads, "", terms.get("lts__lts2xbar_cycles_active"), True))
    found.append(("L2", "SMs to L2", writes, "", terms.get("l1tex__m_l1tex2xbar_req_cycles_active"), False))
    hbm = {level["level"]: level for level in launch.case["roofline"]["levels"]}["HBM"]["peak_bytes_per_second"]
    for name, metric, up in (("HBM read", "dram__bytes_read.sum", True), ("HBM written", "dram__bytes_write.sum", False)):
        found.append(("HBM", name, m.get(metric, 0), "", 100 * m.get(metric, 0) / seconds / hbm, up))
    return [link for link in found if link[2] > 0]


def _shade(pct):
    return _HOT[min(4, int(max(0, pct) / 20))]


_ZONES = {"kernel": (9, 33), "shared": (9, 33), "L2": (45, 62), "HBM": (74, 91)}
_LABEL = 9.5  # pixels of a letter's height


def memory_chart(launches, options):
    boxes, arrows, texts, notes = [], [], [], []
    narrow = options.width is not None and options.width < _NARROW
    for launch, name in zip(launches, labels(launches)):
        m, terms, seconds = launch.metrics, _terms(launch), launch.nanoseconds / 1e9
        own = links(launch)
        shared = any(link[0] == "shared" for link in own)
        over = [link for link in own if link[0] in ("kernel", "shared")]
        split = 100 if not shared else 100 * (len(over) - 1) / max(1, len(over))
        split = min(max(split, 50), 74) if shared else 100
        cells = [("Kernel", "", None, 0, 100, 0, 9),
                 ("L1", f"{m.get('l1tex__t_sector_hit_rate.pct', 0):.0f} % hits", terms.get("l1tex__data_pipe_lsu_wavefronts", 0), 0, split, 33, 45),
                 ("L2", f"{m.get('lts__t_sector_hit_rate.pct', 0):.0f} % hits", terms.get("lts__t_sectors", 0), 0, 100, 62, 74),
                 ("HBM", "", terms.get("dram__throughput", 0), 0, 100, 91, 100)]
        if shared:
            cells.insert(2, ("Shared", "", terms.get("l1tex__data_pipe_lsu_wavefronts", 0), split + 2, 100, 33, 45))
        for unit, more, pct, left, right, top, bottom in cells:
            busy = "" if pct is None else f"{pct:.0f} % busy"
            boxes.append({"case": name, "unit": unit, "left": left, "right": right, "top": top, "bottom": bottom,
                          "shade": _shade(pct) if pct is not None else _HOT[0], "words": ", ".join(filter(None, (more, busy))),
                          "text": unit if narrow and unit == "Shared" else ", ".join(filter(None, (unit, more if not narrow else "", busy)))})
        for zone in ("kernel", "shared", "L2", "HBM"):
            of = [link for link in own if link[0] == zone]
            left, right = (0, split) if zone == "kernel" else (split + 2, 100) if zone == "shared" else (0, 100)
            top, bottom = _ZONES[zone]
            for place, (_, what, count, more, pct, up) in enumerate(of):
                at = left + (right - left) * (place + 0.5) / len(of) - (right - left) / len(of) * 0.42
                rate = si(count / seconds, "B/s")
                arrows.append({"case": name, "what": what, "x": at, "from": bottom - 1.5 if up else top + 1.5, "to": top + 1.5 if up else bottom - 1.5,
                               "turn": 0 if up else 180, "shade": _shade(pct or 0), "bytes": si(count, "B"), "rate": rate,
                               "peak": "" if pct is None else f"{pct:.0f} %", "more": more})
                lines = [what, si(count, "B"), rate] + ([f"{pct:.0f} % of peak"] if pct is not None else [])
                if more and not narrow:
                    lines.append(more)
                step = (bottom - top - 3) / max(len(lines), 4)
                for line, text in enumerate(lines):
                    texts.append({"case": name, "x": at + (3 if narrow else 1.6), "y": top + 1.5 + (line + 0.5) * step, "text": text, "line": line})
        notes.append(f"{name}: " + "; ".join(f"{what} {si(count, 'B')}, {si(count / seconds, 'B/s')}" +
                                             (f", {pct:.0f} % of peak" if pct is not None else "") for _, what, count, _, pct, _ in own))
    there = [shade for shade in _HOT if any(row["shade"] == shade for row in boxes + arrows)]
    scale = {"domain": there, "range": [_COLOURS[_HOT.index(shade)] for shade in there]}
    rows = [row | {"kind": kind} for kind, of in (("box", boxes), ("arrow", arrows), ("word", texts)) for row in of]
    changes = {f"spec.layer.{layer}.encoding.color.scale": scale for layer in (0, 2, 3)}
    return {"parts": rows}, notes, changes | {"spec.width": (options.width or 800) - 40}


# By the start of an opcode, the first that fits; what an instruction is for.
_CLASSES = (("memory", ("LDG", "STG", "LDS", "STS", "LDSM", "STSM", "LDL", "STL", "LD", "ST", "ATOM", "RED", "UTMA", "LDGSTS", "LDGDEPBAR", "CCTL")),
            ("constants", ("LDC", "ULDC")),
            ("tensor", ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA", "WARPGROUP")),
            ("fp32", ("FADD", "FMUL", "FFMA", "FSEL", "FSETP", "FMNMX", "FCHK", "MUFU", "FSWZADD")),
            ("fp16", ("HADD2", "HMUL2", "HFMA2", "HSETP2", "HMNMX2", "HSET2")), ("fp64", ("DADD", "DMUL", "DFMA", "DSETP")),
            ("conversions", ("F2F", "F2I", "I2F", "F2FP", "I2FP", "FRND", "I2I", "F2IP", "I2IP")),
            ("control and barriers", ("BRA", "EXIT", "BSSY", "BSYNC", "CALL", "RET", "BAR", "SYNCS", "WARPSYNC", "BREAK", "YIELD", "NOP", "DEPBAR", "MEMBAR",
                                      "BRX", "JMP", "ERRBAR", "BMOV", "VOTE", "SHFL", "NANOSLEEP")))
_CLASS_COLOURS = {"memory": "#0072B2", "constants": "#56B4E9", "tensor": "#882255", "fp32": "#009E73", "fp16": "#44AA99", "fp64": "#999933",
                  "conversions": "#CC79A7", "control and barriers": "#E69F00", "integers, addresses and moves": "#9ca3af"}
_MOST_OPCODES = 14


def opcode_of(sass):
    words = sass.split()
    return (words[1] if words and words[0].startswith("@") and len(words) > 1 else words[0] if words else "?").rstrip(";").split(".")[0]


def class_of(opcode):
    for name, starts in _CLASSES:
        if opcode in starts or name == "memory" and opcode.startswith(("LDG", "STG", "ATOM", "RED", "UTMA")) or \
                name == "tensor" and opcode.endswith("MMA"):
            return name
    return "integers, addresses and moves"


def mix(launches, options):
    """Which instructions a launch executes, by opcode."""
    rows, notes = [], []
    for launch, name in zip(launches, labels(launches)):
        counts = {}
        for row in launch.part("instructions"):
            counts[opcode_of(row["sass"])] = counts.get(opcode_of(row["sass"]), 0) + row["executed"]
        total = sum(counts.values())
        if not total:
            raise InputError(f"{launch.path}: {launch.label} executes no instruction that is listed")
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        for opcode, count in ordered[:_MOST_OPCODES]:
            rows.append({"case": name, "opcode": opcode, "executed": count, "share": 100 * count / total, "class": class_of(opcode),
                         "text": f"{100 * count / total:.1f} %"})
        classes = {}
        for opcode, count in counts.items():
            classes[class_of(opcode)] = classes.get(class_of(opcode), 0) + count
        notes.append(f"{name}: {si(total)} warp instructions; " + ", ".join(
            f"{what} {100 * count / total:.0f} %" for what, count in sorted(classes.items(), key=lambda item: -item[1]) if count / total >= 0.005) +
            (f"; {len(ordered) - _MOST_OPCODES} more opcodes are not drawn" if len(ordered) > _MOST_OPCODES else ""))
    there = [name for name in _CLASS_COLOURS if any(row["class"] == name for row in rows)]
    most = max(row["share"] for row in rows)
    own = {"resolve": {"scale": {"y": "independent"}}} if len(launches) > 1 else {}  # opcodes of each launch
    return {"opcodes": rows}, notes, own | {"spec.layer.0.encoding.color.scale": {"domain": there, "range": [_CLASS_COLOURS[name] for name in there]},
                                      "spec.layer.0.encoding.x.scale": {"domain": [0, 1.15 * most], "nice": False}}

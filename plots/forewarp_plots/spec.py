"""From launches to a complete Vega-Lite specification: the kind's template, its data, a title that says what it is of."""
import copy
import json
import os
import re
import textwrap

from . import accuracy, exploration, flow, launching, memory, performance, roofline, style, warps
from .results import InputError, distinct, tidy

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

KINDS = {
    "roofline": (roofline.roofline, "Roofline"),
    "sweep": (performance.sweep, "Rate against size"),
    "waves": (launching.waves, "Blocks on SMs over time"),
    "coalescing": (memory.coalescing, "Lanes against sectors of memory"),
    "divergence": (memory.divergence, "Active lanes along a warp's instructions"),
    "memory": (flow.memory_chart, "Bytes between the units"),
    "mix": (flow.mix, "What is executed"),
    "stalls": (performance.stalls, "What warps do while they are resident"),
    "ladder": (performance.ladder, "Attained rate, step by step"),
    "traffic": (memory.traffic, "Bytes moved, level by level"),
    "occupancy": (launching.occupancy, "Occupancy: what limits it, and what would change it"),
    "timeline": (launching.timeline, "Launches over time"),
    "warps": (warps.warps, "What the warps of a block do"),
    "validation": (accuracy.validation, "Predicted against measured"),
    "cost": (performance.cost, "What a prediction costs against the work it is of"),
    "tornado": (exploration.tornado, "Each resource halved and doubled"),
    "pareto": (exploration.pareto, "Points of a sweep"),
}

# Kinds that are drawn from files of their own, and what reads one.
FILES = {"tornado": lambda path: exploration.Explored(path, "whatif"), "pareto": lambda path: exploration.Explored(path, "sweep")}

# Kinds whose labels are placed in pixels, for a width that is given to them.
_FIXED = ("roofline",)

_MOST_NOTES = 12
_WIDTH = 104  # characters of a line under the title
_LETTER = 5.9  # pixels of one, about


class Options:
    """What the command line adds to the launches."""

    def __init__(self, **given):
        self.machines, self.points, self.formulas, self.levels = [], [], [], []
        self.pc, self.join, self.title, self.width = None, None, None, None
        self.theme = "light"
        self.modes, self.wholes = ["stream"], {}
        self.cycles = None
        self.work = {}
        self.__dict__.update(given)


def _load(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return json.load(file)


def _provenance(launches, options, data):
    """GPU, kernel, version, and which points are predicted, measured or published."""
    words = []
    if launches:
        gpus = distinct(f"{one.machine.get('title', one.gpu)} ({one.gpu})" for one in launches)
        kernels = distinct(one.short_kernel for one in launches)
        listed = ", ".join(kernels[:6]) + (f" and {len(kernels) - 6} more" if len(kernels) > 6 else "")
        words = [" and ".join(gpus), listed,
                 "predicted by forewarp " + ", ".join(distinct(str(one.version) for one in launches))]
    rows = [row for table in data.values() for row in table]
    if options.wholes or any(row.get("origin") == "measured" or row.get("measured") is not None for row in rows):
        if launches and not options.points:
            words.append("measured beside it")
    if any(row.get("origin") == "published" for row in rows):
        words.append("published beside it")
    words += [f"ceilings of {machine['title']}" for machine in options.machines]
    words += [f"{curve.name}: {curve.origin}" + (f" on {curve.gpu}" if curve.gpu else "") for curve in options.points]
    return " · ".join(words)


_KIND_FILTER = re.compile(r"datum\.kind == '(\w+)'")


def _lacks_measured(layer, data):
    asked = any("isValid(datum.measured)" in str(step.get("filter", "")) for step in layer.get("transform", []))
    return asked and all("measured" not in row for row in data[layer["data"]["name"]])


def _drop_empty_layers(spec, data):
    """Layers for rows that the data do not have: there is nothing to scale them by."""
    if "layer" in spec:
        spec["layer"] = [layer for layer in spec["layer"] if not _lacks_measured(layer, data)]
    holder = spec.get("spec", {})
    if "layer" not in holder:
        return
    there = {row.get("kind") for row in data[spec["data"]["name"]]}

    def drawn(layer):
        found = [_KIND_FILTER.search(str(step.get("filter", ""))) for step in layer.get("transform", [])]
        return all(match is None or match[1] in there for match in found)
    holder["layer"] = [layer for layer in holder["layer"] if drawn(layer)]


def build(kind, launches, options=None):
    """The specification, and the sentences that go with it."""
    options = options or Options()
    fill, title = KINDS[kind]
    if kind == "cost" and not options.points:
        raise InputError("cost needs --points")
    if not launches and not (kind == "roofline" and options.machines) and not (kind in ("sweep", "cost", *FILES) and options.points):
        raise InputError(f"{kind} needs a result file")
    filled = fill(launches, options)
    data, notes, changes = filled if len(filled) == 3 else (*filled, {})
    data = tidy(data)
    for direction in ("row", "column"):
        facet = _load(os.path.join("kinds", kind + ".json")).get("facet", {})
        if direction in facet:
            table = next(iter(data.values()))
            changes = changes | {f"facet.{direction}.sort": distinct(row["case"] for row in table)}
    spec = copy.deepcopy(_load(os.path.join("kinds", kind + ".json")))
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = spec
        for key in parents:
            place = place[int(key) if isinstance(place, list) else key]
        place[last] = value
    _drop_empty_layers(spec, data)
    provenance = _provenance(launches, options, data)
    characters = _WIDTH if options.width is None else max(24, int((options.width - 30) / _LETTER))
    lines = textwrap.wrap(provenance, characters)
    for note in notes[:_MOST_NOTES]:
        lines += textwrap.wrap(note.replace(" %", "\u00a0%"), characters, subsequent_indent="    ")
    narrow = options.width is not None and options.width < style.NARROW
    head = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "title": {"text": options.title or title, "subtitle": lines},
            "usermeta": {"of": provenance} | ({"fixed": True} if kind in _FIXED else {}), "datasets": data}
    facet = spec.get("facet", {}).get("column")
    if facet and not narrow:
        head["usermeta"]["columns"] = len({row["case"] for row in next(iter(data.values()))})
    config, _ = style.theme()
    padding, background = config.pop("padding"), config.pop("background")
    spec = head | {"background": background, "padding": padding} | spec
    spec["config"] = config | spec.get("config", {})
    spec = style.with_units(spec)
    if narrow:
        spec = style.narrow(spec, options.width)
    if options.theme == "dark":
        spec = style.dark(spec)
    return spec, notes


NARROW_PAGE = 340  # pixels of a chart in a page on a telephone


def build_narrow(kind, launches, options=None):
    """The same for a narrow page."""
    options = copy.copy(options or Options())
    options.width = NARROW_PAGE
    return build(kind, launches, options)


def text_of(spec):
    """As written to files: the same bytes for the same specification."""
    return json.dumps(spec, indent=1, ensure_ascii=False) + "\n"


# Which data set's rows the keyboard walks through, and the fields it says, by kind.
WALK = {
    "roofline": ("points", ("case", "level", "origin", "intensity", "rate", "error")),
    "sweep": ("points", ("size", "origin", "rate", "divides", "more")),
    "waves": ("stays", ("case", "text", "from", "to")),
    "coalescing": ("cells", ("case", "lane", "use", "address", "bytes")),
    "divergence": ("stream", ("case", "pc", "sass", "lanes", "count", "divergent")),
    "memory": ("parts", ("case", "unit", "words", "what", "bytes", "rate", "peak")),
    "mix": ("opcodes", ("case", "opcode", "class", "executed", "share")),
    "stalls": ("shares", ("case", "origin", "reason", "share")),
    "ladder": ("steps", ("step", "gpu", "predicted", "seen", "bound")),
    "traffic": ("bytes", ("case", "level", "predicted", "seen", "launches", "time")),
    "occupancy": ("limits", ("case", "limit", "blocks", "binding")),
    "timeline": ("bars", ("case", "lane", "what", "from", "to", "text")),
    "warps": ("lanes", ("case", "lane", "what", "from", "to", "text")),
    "validation": ("launches", ("case", "measured", "predicted", "error", "bound")),
    "cost": ("points", ("kernel", "size", "seconds", "instructions", "mib")),
    "tornado": ("bars", ("resource", "amount", "change", "time")),
    "pareto": ("points", ("point", "x", "y", "bound")),
}

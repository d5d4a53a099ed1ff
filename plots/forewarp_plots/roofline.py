"""The roofline: rates against work per byte, under every roof of the machines; labels are placed in pixels, on nothing else."""
import math

from .performance import measured_bytes
from .placement import Field, apart, box, overlap, text_width, turned
from .results import InputError, clocks_note, labels, numeric_name, si, tidy

_FONT, _LINE = 10, 14
_LEFT, _LEFT_NARROW, _COLUMN, _PADDING = 92, 78, 214, 30
_NARROW = 600  # pixels of a picture, below which roofs are named inside
_DEFAULT_WIDTH = 860
_LEVELS = {"L1": "#009E73", "L2": "#E69F00", "HBM": "#0072B2"}
_USED, _OTHER = "roof of these kernels", "other roofs"
_MACHINES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#882255"]
_DASHES = [[1, 0], [7, 3], [2, 2], [9, 2, 2, 2], [4, 4], [12, 3]]


class Machine:
    """Roofs by type of number and levels of memory of a GPU, or of a machine that is nothing else."""

    def __init__(self, name, roofs, levels, used=()):
        self.name, self.roofs, self.levels, self.used = name, roofs, levels, set(used)

    @classmethod
    def of_launches(cls, launches):
        first = launches[0]
        work = {w["precision"]: w["peak_per_second"] for one in launches for w in one.case["roofline"]["work"]}
        used = {one.case["roofline"]["precision"] for one in launches} - {"none"} or {"fp32"}
        roofs = {roof["name"]: roof["peak_per_second"] for roof in first.machine.get("roofs", ())} or work
        for name in used:  # what the kernel's own instructions reach, where larger ones reach more
            if work.get(name, 0) < 0.99 * roofs.get(name, 0):
                roofs[name + " with these instructions"] = work[name]
        used |= {name + " with these instructions" for name in used}
        levels = {level["level"]: level["peak_bytes_per_second"] for level in first.case["roofline"]["levels"]}
        return cls(first.gpu, {name: peak for name, peak in roofs.items() if peak > 0}, levels, used)

    @classmethod
    def of_ceilings(cls, given):
        """Where there are no SMs, all products go through the matrix unit."""
        return cls(given["name"], {"tensor_" + name: peak for name, peak in given["pipes"].items()}, given["levels"],
                   {"tensor_" + name for name in given["pipes"]})


def _machines(launches, options):
    by_gpu = {}
    for launch in launches:
        by_gpu.setdefault(launch.gpu, []).append(launch)
    machines = [Machine.of_launches(of) for of in by_gpu.values()] + [Machine.of_ceilings(m) for m in options.machines]
    if len(machines) > 1:
        # Beside one another: the types that the kernels use and those that all others have, and HBM alone.
        wanted = set().union(*(m.used for m in machines))
        for m in machines:
            m.roofs = {name: peak for name, peak in m.roofs.items() if name in wanted}
            m.levels = {name: peak for name, peak in m.levels.items() if name == "HBM"}
    return machines


def _merged(roofs):
    """[(peak, [names])] from low to high: roofs of one height are one line."""
    found = []
    for name, peak in sorted(roofs.items(), key=lambda item: (item[1], item[0])):
        if found and peak < 1.005 * found[-1][0]:
            found[-1][1].append(name)
        else:
            found.append((peak, [name]))
    return found


def _roof_text(names, peak):
    """"fp16, bf16 tensor 1.07 PFLOP/s": what several have in common is said once."""
    whole = all("int" in name for name in names)
    plain = [numeric_name(n) for n in names if not n.startswith("tensor_")]
    tensor = [numeric_name(n).replace(" tensor", "", 1) for n in names if n.startswith("tensor_")]
    if tensor:
        own = [n for n in tensor if " with " in n]
        rest = [n for n in tensor if " with " not in n]
        plain += ([", ".join(rest) + " tensor"] if rest else []) + [n.replace(" with", " tensor with", 1) for n in own]
    return f"{', '.join(plain)} {si(peak, 'OP/s' if whole else 'FLOP/s')}"


class Ground:
    """The plot's rectangle: from values to pixels and back."""

    def __init__(self, width, height, x, y):
        self.width, self.height, self.x, self.y = width, height, x, y

    @staticmethod
    def _at(value, domain):
        return math.log(value / domain[0]) / math.log(domain[1] / domain[0])

    def px(self, intensity):
        return self.width * self._at(intensity, self.x)

    def py(self, rate):
        return self.height * (1 - self._at(rate, self.y))

    def intensity(self, px):
        return self.x[0] * (self.x[1] / self.x[0]) ** (px / self.width)

    def rate(self, py):
        return self.y[0] * (self.y[1] / self.y[0]) ** (1 - py / self.height)

    @property
    def slope(self):
        """Degrees of a line of constant bytes a second."""
        dx, dy = self.width / math.log(self.x[1] / self.x[0]), self.height / math.log(self.y[1] / self.y[0])
        return -math.degrees(math.atan2(dy, dx))


def _points(launches, options, hierarchical):
    """Rows for the points, the pairs of predicted and measured, and the rows of a launch's levels."""
    points, pairs, rows = [], [], []
    work = lambda one: options.work.get(one.id, one.operations)
    for order, (launch, name) in enumerate(zip(launches, labels(launches))):
        error = "" if launch.error_pct is None else f"{launch.error_pct:+.1f} %"
        base = {"case": name, "kernel": launch.short_kernel, "gpu": launch.gpu, "error": error, "order": order}
        own = []
        for level in launch.case["roofline"]["levels"]:
            if level["bytes"] <= 0 or not (hierarchical or level["level"] == "HBM"):
                continue
            group = level["level"] if hierarchical else launch.gpu
            base |= {"level": level["level"], "group": group}
            rate = work(launch) / launch.nanoseconds * 1e9
            own.append(base | {"origin": "predicted", "intensity": work(launch) / level["bytes"], "rate": rate,
                               "said": si(rate, "FLOP/s")})
            seen = measured_bytes(launch, level["level"])
            if seen and launch.measured_nanoseconds:
                rate = work(launch) / launch.measured_nanoseconds * 1e9
                points.append(base | {"origin": "measured", "intensity": work(launch) / seen, "rate": rate,
                                      "said": si(rate, "FLOP/s")})
                pairs.append({"intensity": own[-1]["intensity"], "rate": own[-1]["rate"], "intensity2": points[-1]["intensity"],
                              "rate2": rate})
        points += own
        if len(own) > 1:
            rows.append({"intensity": min(p["intensity"] for p in own), "intensity2": max(p["intensity"] for p in own),
                         "rate": own[0]["rate"]})
    return points, pairs, rows


def _lines(machines, ground, hierarchical):
    """Rows of the ceilings: slopes up to the highest roof, and the roofs from the steepest slope on."""
    low, high = ground.x
    rows, slopes, roofs = [], [], []
    for place, machine in enumerate(machines):
        prefix, dash = "" if len(machines) == 1 else machine.name + ": ", _DASHES[place % len(_DASHES)]
        top, steepest = max(machine.roofs.values()), max(machine.levels.values())
        for level, peak in machine.levels.items():
            name = f"{prefix}{level} {si(peak, 'B/s')}"
            base = {"group": level if hierarchical else machine.name, "machine": machine.name, "name": name, "peak": si(peak, "B/s"),
                    "weight": 1.8, "dash": dash}
            ends = (max(low, ground.y[0] / peak), min(high, top / peak))
            if ends[0] < ends[1]:
                rows += [base | {"intensity": at, "rate": at * peak} for at in ends]
                slopes.append((name, peak, ends))
        for peak, names in _merged(machine.roofs):
            used = any(name in machine.used for name in names)
            text = prefix + _roof_text(names, peak)
            group = machine.name if not hierarchical else _USED if used else _OTHER
            base = {"group": group, "machine": machine.name, "name": text, "peak": si(peak, "FLOP/s"), "dash": dash,
                    "weight": 1.8 if used else 0.9}
            start = max(low, peak / (steepest if used else min(machine.levels.values())))
            if start < high:
                rows += [base | {"intensity": at, "rate": peak} for at in (start, high)]
                roofs.append((text, peak, start))
    return rows, slopes, roofs


def _name_roofs(roofs, ground, field, column, unplaced):
    """In a column at the right, each as near to its line as the others let it; or, where it is narrow, on the line."""
    texts, leaders = [], []
    if column:
        ordered = sorted(roofs, key=lambda roof: -roof[1])
        wishes = [ground.py(peak) for _, peak, _ in ordered]
        for (text, peak, _), y in zip(ordered, apart(wishes, _LINE, 0, ground.height)):
            texts.append({"text": text, "y": ground.rate(y)})
            leaders.append({"rate": peak, "rate2": ground.rate(y)})
        return texts, leaders
    for text, peak, start in sorted(roofs, key=lambda roof: -roof[1]):
        y, width = ground.py(peak), text_width(text, _FONT)
        found = field.place((box(right - width, y + dy, width, _LINE), (right, y + dy + _LINE / 2))
                            for dy in (-_LINE - 1, 2) for right in range(int(ground.width) - 2, int(ground.px(start) + width), -8))
        if found:
            texts.append({"text": text, "x": ground.intensity(found[0]), "y": ground.rate(found[1])})
        else:
            unplaced.append(text)
    return texts, leaders


def _name_slopes(slopes, ground, field, unplaced):
    texts = []
    for text, peak, (low, high) in slopes:
        width = text_width(text, _FONT) + 2
        start, stop = ground.px(low), ground.px(high)

        def candidates():
            for side in (-1, 1):
                for step in range(1, 40):
                    x = start + (stop - start) * step / 40
                    y = ground.py(peak * ground.intensity(x))
                    shift = 3 if side < 0 else -3
                    across = math.radians(ground.slope)
                    ax, ay = x + shift * math.sin(across), y - shift * math.cos(across)
                    yield turned(ax, ay, width, _LINE - 2, ground.slope, 0, 1 if side < 0 else 0), (ax, ay, side)
        found = field.place(candidates())
        if found:
            texts.append({"text": text, "x": ground.intensity(found[0]), "y": ground.rate(found[1]), "angle": ground.slope % 360,
                          "side": "above" if found[2] < 0 else "below"})
        else:
            unplaced.append(text)
    return texts


def _name_points(points, launches, ground, field):
    """Each launch by its name at its point nearest to HBM, or by a number that the notes explain."""
    texts, notes = [], []
    # Beside the point of another launch a name would be taken for that one's.
    around = {order: [box(ground.px(p["intensity"]) - 13, ground.py(p["rate"]) - 9, 26, 18) for p in points if p["order"] == order]
              for order in {p["order"] for p in points}}
    for order, name in enumerate(labels(launches)):
        others = [shape for other, shapes in around.items() if other != order for shape in shapes]
        own = [p for p in points if p["order"] == order and p["origin"] == "predicted"]
        if not own:
            continue
        point = own[-1]
        x, y = ground.px(point["intensity"]), ground.py(point["rate"])

        def candidates(text):
            width = text_width(text, _FONT) + 2
            for away in (8, 12, 16, 24, 34):
                for dx, dy in ((1, 0), (0, -1), (0, 1), (-1, 0), (0.7, -0.7), (0.7, 0.7), (-0.7, -0.7), (-0.7, 0.7)):
                    left = x + dx * away - (width if dx < -0.5 else width / 2 if abs(dx) < 0.5 else 0)
                    middle = y + dy * (away + 2)
                    shape = box(left, middle - _LINE / 2, width, _LINE)
                    if not any(overlap(shape, other) for other in others):
                        yield shape, (left + 1, middle, away)
        for text in (name, str(order + 1)):
            found = field.place(candidates(text))
            if found:
                texts.append({"text": text, "x": ground.intensity(found[0]), "y": ground.rate(found[1])})
                if found[2] > 14:
                    texts[-1] |= {"x2": point["intensity"], "y2": point["rate"]}
                break
        if not found or text != name:
            notes.append(f"{order + 1} {name}")
    return texts, ["; ".join(notes[i:i + 3]) for i in range(0, len(notes), 3)]


def _ticks(domain, most):
    """1, 2 and 5 of each decade, or 1 alone where these are more than `most`."""
    first, last = math.floor(math.log10(domain[0])), math.ceil(math.log10(domain[1]))
    for digits in ((1, 2, 5), (1,)):
        found = [digit * 10.0 ** decade for decade in range(first, last + 1) for digit in digits]
        found = [value for value in found if domain[0] <= value <= domain[1]]
        if len(found) <= most:
            break
    return found


def roofline(launches, options):
    launches = [one for one in launches if options.work.get(one.id, one.operations) > 0]
    if not launches and not options.machines:
        raise InputError("none of the launches does floating-point work, so none has a place on a roofline",
                         "give others, say with --work what counts as work, or draw `traffic`")
    machines = _machines(launches, options)
    hierarchical = len(machines) == 1
    points, pairs, rows = _points(launches, options, hierarchical)
    total = options.width or _DEFAULT_WIDTH
    column = total >= _NARROW
    width = total - _PADDING - (_LEFT + _COLUMN if column else _LEFT_NARROW)
    height = 400 if column else 330
    used = [peak for m in machines for name, peak in m.roofs.items() if name in m.used]
    ridges = [max(m.roofs.values()) / peak for m in machines for peak in m.levels.values()]
    x = [min([p["intensity"] for p in points] + [min(used) / max(p for m in machines for p in m.levels.values())]) / 2,
         max([p["intensity"] for p in points] + ridges) * 3]
    rates = [p["rate"] for p in points] + used
    y = [min([min(rates) / 5] + [peak / 1.5 for m in machines for peak in m.roofs.values()]),
         max(max(m.roofs.values()) for m in machines) * 1.5]
    # Room for the names of the points furthest to the right.
    for name, point in ((p["case"], p) for p in points):
        part = 1 - (text_width(name, _FONT) + 14) / width
        if part > 0.5:
            x[1] = max(x[1], x[0] * (point["intensity"] / x[0]) ** (1 / part))
    ground = Ground(width, height, x, y)
    ceilings, slopes, roofs = _lines(machines, ground, hierarchical)
    field = Field(width, height)
    for first, second in zip(ceilings[::2], ceilings[1::2]):
        field.block([(ground.px(p["intensity"]), ground.py(p["rate"])) for p in (first, second)])
    for point in points:
        field.block(box(ground.px(point["intensity"]) - 5, ground.py(point["rate"]) - 5, 10, 10))
    for row in rows:
        field.block([(ground.px(row["intensity"]), ground.py(row["rate"])), (ground.px(row["intensity2"]), ground.py(row["rate"]))])
    unplaced = []
    roof_names, leaders = _name_roofs(roofs, ground, field, column, unplaced)
    slope_names = _name_slopes(slopes, ground, field, unplaced)
    point_names, listed = _name_points(points, launches, ground, field)

    groups = {level: colour for level, colour in _LEVELS.items() if level in machines[0].levels} | \
        {_USED: "#D55E00", _OTHER: "#9ca3af"} if hierarchical else {m.name: _MACHINES[i % len(_MACHINES)] for i, m in enumerate(machines)}
    there = {row["group"] for row in ceilings + points}
    groups = {name: colour for name, colour in groups.items() if name in there}
    changes = {"width": width, "height": height}
    for layer in range(9):
        changes[f"layer.{layer}.encoding.x.scale"] = {"type": "log", "nice": False, "domain": x}
        changes[f"layer.{layer}.encoding.y.scale"] = {"type": "log", "nice": False, "domain": y}
    for layer in (0, 6):
        changes[f"layer.{layer}.encoding.color.scale"] = {"domain": list(groups), "range": list(groups.values())}
        changes[f"layer.{layer}.encoding.color.legend"] = {"title": "Level" if hierarchical else "Machine", "orient": "bottom",
                                                           "symbolType": "circle", "symbolStrokeWidth": 0, "columns": 6 if column else 2}
    shapes = {"predicted": "circle", "measured": "diamond"}
    origins = [o for o in shapes if any(p["origin"] == o for p in points)]
    changes["layer.6.encoding.shape.scale"] = {"domain": origins, "range": [shapes[o] for o in origins]}
    changes["layer.6.encoding.shape.legend"] = {"title": "Point", "orient": "bottom"} if len(origins) > 1 else None
    for axis in ("x", "y"):
        changes[f"layer.0.encoding.{axis}.axis.labelOverlap"] = False
    if not column:
        changes["layer.0.encoding.y.axis.title"] = None
    changes["layer.0.encoding.y.axis.minExtent"] = changes["layer.0.encoding.y.axis.maxExtent"] = (_LEFT if column else _LEFT_NARROW) - 20
    changes["layer.0.encoding.x.axis.values"] = _ticks(x, width / 60)
    changes["layer.0.encoding.y.axis.values"] = _ticks(y, height / 30)
    if column:  # in the column; otherwise they stand on the lines
        changes["layer.2.encoding.x"] = {"value": width + 10}
        changes["layer.2.mark.align"] = "left"
        changes["layer.1.encoding.x"], changes["layer.1.encoding.x2"] = {"value": width + 1}, {"value": width + 8}
    notes = []
    clocks = [f"{launches_of[0].gpu} at {launches_of[0].machine['clock_mhz']:.0f} MHz" for launches_of in
              {one.gpu: [one] for one in launches}.values() if "clock_mhz" in launches_of[0].machine]
    if clocks:
        notes.append("Roofs of " + ", ".join(clocks) + ", the SM clock that `forewarp describe gpu` gives with its source")
    notes += clocks_note(launches)
    if not hierarchical:
        notes.append("Several machines: points and slopes are those of HBM")
    notes += ["Not named in the picture: " + ", ".join(unplaced)] if unplaced else []
    return {"ceilings": ceilings, "leaders": leaders, "roof_names": roof_names, "slope_names": slope_names, "pairs": pairs,
            "rows": rows, "points": points, "point_names": point_names}, notes + listed, tidy(changes)

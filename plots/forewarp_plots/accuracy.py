"""The picture of predicted against measured."""
from .results import InputError

_CLASSES = {"sgemm": "products", "attention": "attention", "flash": "attention", "student": "attention", "copy": "copies",
            "transpose": "copies", "tile": "copies", "divergence": "divergence", "softmax": "reductions", "layer": "reductions",
            "sum": "reductions"}


def _class_of(launch):
    stem = launch.case.get("stem")
    if stem:
        return stem.split("_")[0]
    return _CLASSES.get(launch.id.split("_")[0], "element-wise")


def validation(launches, options):
    points = []
    for launch in launches:
        if launch.measured_cycles:
            points.append({"case": launch.label, "kernel": launch.short_kernel, "class": _class_of(launch),
                           "measured": launch.measured_cycles, "predicted": launch.cycles, "error": launch.error_pct,
                           "bound": launch.bound})
    if not points:
        raise InputError(f"{launches[0].path}: no launch in it was measured", "give what `forewarp validate --json` wrote")
    low = min(min(p["measured"], p["predicted"]) for p in points) / 1.5
    high = max(max(p["measured"], p["predicted"]) for p in points) * 1.5
    lines = []
    for name, factor in (("as measured", 1.0), ("20 % too slow", 1.2), ("20 % too fast", 0.8)):
        lines += [{"name": name, "measured": at, "predicted": at * factor} for at in (low, high)]
    by_class = {"all": points}
    for point in points:
        by_class.setdefault(point["class"], []).append(point)
    distribution, worst = [], []
    for name, of in by_class.items():
        ordered = sorted(of, key=lambda p: abs(p["error"]))
        distribution.append({"class": name, "error": 0, "share": 0})
        for place, point in enumerate(ordered, 1):
            distribution.append({"class": name, "error": abs(point["error"]), "share": 100 * place / len(ordered)})
        if name != "all":
            worst.append({"class": name, "error": abs(ordered[-1]["error"]), "share": 100, "case": ordered[-1]["case"]})
    errors = sorted(abs(p["error"]) for p in points)
    mean, p90 = sum(errors) / len(errors), errors[min(len(errors) - 1, int(0.9 * len(errors)))]
    tails = [{"error": mean, "at": 8, "text": f"mean {mean:.1f} %"}, {"error": p90, "at": 18, "text": f"90th {p90:.1f} %"},
             {"error": errors[-1], "at": 28, "text": f"worst {errors[-1]:.1f} %"}]
    notes = [f"{len(points)} launches: error of the cycles {mean:.1f} % on average, median {errors[len(errors) // 2]:.1f} %, "
             f"90th percentile {p90:.1f} %, worst {errors[-1]:.1f} %"]
    return {"launches": points, "lines": lines, "distribution": distribution, "tails": tails, "worst": worst}, notes

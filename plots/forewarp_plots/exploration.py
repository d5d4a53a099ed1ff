"""Pictures of GPUs and launches that there are not yet: what each resource does to a kernel, and the points of a sweep."""
import json

from .results import InputError, distinct, duration, si


class Explored:
    """What `forewarp whatif` or `forewarp sweep` wrote by --json: `key` is whatif or sweep."""

    def __init__(self, path, key):
        self.path = path
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: is not JSON: {error}", f"give a file that `forewarp {key} --json` wrote") from error
        if not isinstance(document, dict) or "forewarp" not in document or key not in document:
            raise InputError(f"{path}: is JSON, but no result of forewarp {key}", f"give a file that `forewarp {key} --json` wrote")
        self.found = document[key]
        self.name = self.found["case"] if key == "whatif" else self.found["title"]
        self.origin = "predicted by forewarp " + document["forewarp"]
        self.gpu = document["gpu"] if key == "whatif" else ", ".join(self.found["gpus"])


_FEWEST_PCT = 0.5  # a resource that changes less is not drawn


def tornado(_, options):
    if len(options.points) != 1:
        raise InputError("tornado needs the one file of a `forewarp whatif --json`")
    found = options.points[0].found
    bars, left, gains = [], [], []
    for row in found["resources"]:
        trials = {name: row[name] for name in ("half", "twice")}
        changes = {name: trial["change_pct"] for name, trial in trials.items() if "change_pct" in trial}
        if max((abs(change) for change in changes.values()), default=0) < _FEWEST_PCT:
            left.append(row["resource"])
            continue
        for name, change in changes.items():
            bars.append({"resource": row["resource"], "amount": "half" if name == "half" else "twice", "change": change,
                         "time": trials[name]["time_ns"] / 1000, "leaves": "; ".join(trials[name]["changes"])})
            gains.append((change, row["resource"], name))
        for name, trial in trials.items():
            if "impossible" in trial or "failure" in trial:
                left.append(f"{row['resource']} ({name})")
    if not bars:
        raise InputError(f"{options.points[0].path}: no resource changes the time by {_FEWEST_PCT} % or more")
    gains.sort()
    notes = [f"{found['time_ns'] / 1000:.4g} us as it is; " + ", ".join(
        f"{change:+.1f} % with {resource} {'halved' if amount == 'half' else 'doubled'}" for change, resource, amount in gains[:3] if change < 0)]
    if left:
        notes.append(f"Not drawn, since they change the time by less than {_FEWEST_PCT} % or cannot be changed so: " + ", ".join(distinct(left)))
    return {"bars": bars}, notes


def _with_unit(metric):
    """What an axis is called."""
    unit = "ns" if metric.startswith("gpu__time_duration") else "%" if ".pct" in metric or metric.endswith("_pct") else ""
    return f"{metric} ({unit})" if unit else metric


def pareto(_, options):
    if len(options.points) != 1:
        raise InputError("pareto needs the one file of a `forewarp sweep --json`")
    found, path = options.points[0].found, options.points[0].path
    rows = [row for row in found["rows"] if "metrics" in row]
    numbers = [name for name in found["variables"]
               if rows and all(isinstance(row["values"][name], (int, float)) for row in rows) and len({row["values"][name] for row in rows}) > 1]
    if not rows:
        raise InputError(f"{path}: no point in it was predicted")
    if "pareto" in found:
        x, y = (one["metric"] for one in found["pareto"])
        across = [row["metrics"][x] for row in rows]
    elif numbers:
        x, y = numbers[0], found["best"]["metric"]
        across = [row["values"][x] for row in rows]
    else:
        raise InputError(f"{path}: has no `pareto`, and no variable that is a number", "name two metrics as `pareto`")
    # What is told apart by colour: the variable with the fewest values, of those that have several.
    several = [(len({row["values"][name] for row in rows}), name) for name in found["variables"] if name != x]
    several = [name for count, name in sorted(several) if 1 < count <= 10]
    front = {id(found["rows"][place]) for place in found.get("front", ())}
    points = []
    for row, at in zip(rows, across):
        text = ", ".join(f"{name} = {value}" for name, value in row["values"].items())
        points.append({"point": text, "x": at, "y": row["metrics"][y], "bound": row["bound_by"].replace("_", " "),
                       "group": str(row["values"][several[0]]) if several else "all", "front": "yes" if id(row) in front else "no"})
    best = found["rows"][found["order"][0]]
    metric = found["best"]["metric"]
    notes = [f"Best by {metric}: " + ", ".join(f"{name} = {value}" for name, value in best["values"].items()) +
             ", " + (duration if metric.startswith("gpu__time_duration") else si)(best["metrics"][metric])]
    if len(rows) < len(found["rows"]):
        notes.append(f"{len(found['rows']) - len(rows)} of {len(found['rows'])} points could not be predicted")
    there = [front for front in ("yes", "no") if any(point["front"] == front for point in points)]
    changes = {"layer.1.encoding.x.axis.title": _with_unit(x), "layer.1.encoding.y.axis.title": _with_unit(y),
               "layer.1.encoding.shape.legend": {"title": "On the Pareto front"} if "yes" in there else None}
    if several:
        changes["layer.1.encoding.color.legend"] = {"title": several[0]}
    line = sorted((point for point in points if point["front"] == "yes"), key=lambda point: point["x"])
    return {"points": points, "front": line}, notes, changes

"""What a picture wears: its theme's colours, its units, and the width that it is to fit."""
import json
import os
import re

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
THEMES = ("light", "dark")
PAGE_THEMES = ("auto",) + THEMES  # auto: as the reader's system prefers
NARROW = 600  # pixels, below which legends stand underneath and panels below one another
_LEAST = 120  # pixels of a plot

# How an axis writes a number with its unit; templates name the unit as "unit" of an axis.
_PREFIXED = "datum.value === 0 ? '0' : replace(format(datum.value, '~s'), regexp('([a-zA-Zµ]?)$'), ' $1{0}')"
_UNITS = {"FLOP/s": _PREFIXED.format("FLOP/s"), "B": _PREFIXED.format("B"),
          "KiB": "datum.value === 0 ? '0' : format(datum.value / 1024, '~r') + ' KiB'",
          "us": "datum.value === 0 ? '0' : datum.value >= 1000 ? format(datum.value / 1000, '~r') + ' ms' : format(datum.value, '~r') + ' us'"}


def theme():
    """(Vega-Lite's configuration, what becomes of its colours on a dark ground)"""
    with open(os.path.join(HERE, "theme.json"), encoding="utf-8") as file:
        config = json.load(file)
    return config, config.pop("dark")


def marks_title(what, rows, more=()):
    """An axis's title that says what the marks on it are, where there are several kinds."""
    marks = (["diamond measured"] if any("measured" in row for row in rows) else []) + list(more)
    return ": ".join([what, ", ".join(["bar predicted", *marks])]) if marks else what


def _each(value, change):
    """The value with `change` applied to every dictionary in it but the data."""
    if isinstance(value, dict):
        return change({key: item if key in ("datasets", "usermeta") else _each(item, change) for key, item in value.items()})
    return [_each(item, change) for item in value] if isinstance(value, list) else value


def with_units(spec):
    def change(one):
        return {key: value for key, value in one.items() if key != "unit"} | {"labelExpr": _UNITS[one["unit"]]} \
            if one.get("unit") in _UNITS else one
    return _each(spec, change)


def dark(spec):
    """The same picture on a dark ground."""
    _, colours = theme()
    colours = {key.lower(): value for key, value in colours.items()}

    def repaint(value):
        if isinstance(value, str):
            return colours.get(value.lower(), value)
        if isinstance(value, dict):
            return {key: item if key in ("datasets", "usermeta") else repaint(item) for key, item in value.items()}
        return [repaint(item) for item in value] if isinstance(value, list) else value
    return repaint(spec)


def narrow(spec, width):
    """For a telephone: legends underneath, panels below one another, long names cut, brief words."""
    brief = {name for name, rows in spec["datasets"].items() if any("brief" in row for row in rows)}

    def change(one):
        one = dict(one)
        if "hconcat" in one:
            one["vconcat"] = one.pop("hconcat")
        if isinstance(one.get("legend"), dict):
            one["legend"] = one["legend"] | {"orient": "bottom", "columns": 2, "labelLimit": int(0.34 * width)}
        if "facet" in one:
            facet = one["facet"]
            if "column" in facet:
                facet = {"row": facet["column"]}
            header = (facet["row"].get("header") or {}) | {"title": None, "labelAngle": 0, "labelOrient": "top", "labelAnchor": "start", "labelAlign": "left",
                      "labelLimit": int(0.8 * width)}
            one["facet"] = {"row": facet["row"] | {"header": header}}
        if isinstance(one.get("title"), dict) and "vconcat" not in one:
            one["title"] = one["title"] | {"fontSize": 10, "limit": int(0.8 * width)}
        text = one.get("text")
        if isinstance(text, dict) and text.get("field") == "label" and brief:
            one["text"] = text | {"field": "brief"}
        if one.get("type") == "quantitative" and isinstance(one.get("axis"), dict) and "values" not in one["axis"]:
            one["axis"] = one["axis"] | {"tickCount": 4}
        return one
    spec = _each(spec, change)
    layers = spec.get("spec", spec)
    if "layer" in layers:  # words behind the last bar stand in the notes too
        layers["layer"] = [layer for layer in layers["layer"]
                           if not any("datum.kind == 'end'" in str(step.get("filter")) for step in layer.get("transform", ()))]
    legend = spec["config"].get("legend", {}) | {"layout": {"bottom": {"direction": "vertical", "anchor": "start", "margin": 6}},
                                                 "columns": 2, "orient": "bottom", "labelLimit": int(0.34 * width)}
    spec["config"] = spec["config"] | {"legend": legend, "axisY": {"labelLimit": int(0.3 * width)}}
    if not spec["usermeta"].get("fixed"):  # what is placed in pixels has its room
        spec["config"]["text"] = spec["config"].get("text", {}) | {"limit": int(0.45 * width)}
    return spec


def plots(spec):
    """The parts of a specification that have a width, and how many stand side by side."""
    if "spec" in spec:
        return plots(spec["spec"])
    for key in ("hconcat", "vconcat"):
        if key in spec:
            found = [plots(part) for part in spec[key]]
            side = [count for _, count in found]
            return [part for parts, _ in found for part in parts], sum(side) if key == "hconcat" else max(side)
    return ([spec], 1) if isinstance(spec.get("width"), (int, float)) else ([], 1)


def fit(spec, width, measure):
    """Widens or narrows the plots until the picture, as `measure` finds it, is as wide as asked."""
    columns = max(1, spec["usermeta"].get("columns", 1))
    for _ in range(5):
        parts, side = plots(spec)
        over = measure(spec) - width
        if not parts or spec["usermeta"].get("fixed") or -8 <= over <= 0:
            break
        for part in parts:
            part["width"] = max(_LEAST, part["width"] - (over + 2) / (side * columns))
    return spec


def measured(svg):
    """The width of a drawn picture."""
    return float(re.search(r'<svg[^>]*? width="([\d.]+)"', svg)[1])

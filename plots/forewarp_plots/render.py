"""A specification as SVG, PNG or a page, by vl-convert: no browser, no network, the same bytes each time."""
import html
import json
import os
import re

from . import style
from .results import InputError
from .spec import HERE, WALK, text_of

VEGA_LITE = "6.4"
PNG_SCALE = 2
FORMATS = (".svg", ".png", ".pdf", ".html", ".json")


def converter():
    try:
        import vl_convert  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise InputError("drawing needs the Python package vl-convert-python, which is not installed",
                         "`./run.sh build` installs it into .venv") from error
    return vl_convert


def svg(spec):
    """Names of clips and gradients count on from picture to picture in one process; here they count from 1."""
    text = converter().vegalite_to_svg(json.dumps(spec), vl_version=VEGA_LITE)
    names = {}
    return re.sub(r"\b(clip|gradient_)(\d+)\b",
                  lambda m: names.setdefault(m[0], f"{m[1]}{1 + sum(n.startswith(m[1]) for n in names)}"), text)


def fitted(spec, width):
    """The picture no wider than `width` pixels."""
    return style.fit(spec, width, lambda one: style.measured(svg(one))) if width else spec


def pdf(spec):
    return converter().vegalite_to_pdf(json.dumps(spec), vl_version=VEGA_LITE)


def png(spec):
    return converter().vegalite_to_png(json.dumps(spec), vl_version=VEGA_LITE, scale=PNG_SCALE)


def script_json(value):
    """JSON that can stand inside a script element."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def asset(name):
    with open(os.path.join(HERE, "page", name), encoding="utf-8") as file:
        return file.read()


def library():
    """Vega, Vega-Lite and Vega-Embed as one script."""
    bundle = converter().javascript_bundle("window.forewarpEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return bundle.replace("</script", "<\\/script")


def figure(identity, kind, spec, notes, narrow_notes, heading="h2"):
    """A chart's place in a page: the chart, a line that the arrow keys fill, what it shows, and its title to jump to.
    Of `narrow_notes` those are added that the chart needs where it is narrow."""
    title = html.escape(spec["title"]["text"])
    said = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    said += "".join(f'<li class="narrow-only">{html.escape(note)}</li>' for note in narrow_notes if note not in notes)
    # What a cliff's name in the chart links to.
    said += "".join(f'<li id="{cliff["link"][1:]}">{html.escape(cliff["text"])}</li>' for cliff in spec["datasets"].get("cliffs", ()))
    return (f'<figure id="{identity}"><{heading}>{title}</{heading}>\n'
            f'<div class="chart" data-kind="{kind}" data-chart="{identity}" tabindex="0" role="group" '
            f'aria-label="{title}: chart; arrow keys read its points" aria-describedby="{identity}-point"></div>\n'
            f'<output id="{identity}-point" aria-live="polite">Focus the chart and press the arrow keys to read its '
            f'points.</output>\n<figcaption><ul>{said}</ul></figcaption></figure>\n')


def page(title, body, charts, theme="auto"):
    """A whole page that asks the network for nothing. charts: {identity: (kind, specification, the same for a narrow page)}."""
    data = {identity: {"spec": _bare(spec), "narrow": _narrow(spec, small), "walk": WALK[kind]}
            for identity, (kind, spec, small) in charts.items()}
    _, dark = style.theme()
    return (f'<!doctype html>\n<html lang="en" data-theme="{theme}"><head><meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' "
            f"'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:\">\n"
            f'<title>{html.escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>\n{asset("page.css")}</style>\n'
            f'</head><body>\n{body}\n<script>{library()}</script>\n'
            f'<script>window.forewarpCharts = {script_json(data)};\nwindow.forewarpDark = {script_json(dark)};</script>\n'
            f'<script>\n{asset("page.js")}</script>\n</body></html>\n')


def _bare(spec):
    """In a page, the title stands in the page, and the ground is the page's."""
    return {key: value for key, value in spec.items() if key != "title"} | {"background": "transparent"}


def _narrow(spec, small):
    bare = _bare(small)
    bare["datasets"] = {name: rows for name, rows in small["datasets"].items() if rows != spec["datasets"].get(name)}
    return bare


def chart_page(kind, spec, notes, small, theme="auto"):
    provenance = html.escape(spec["usermeta"]["of"])
    body = f'<main><p class="of">{provenance}</p>\n' + figure("chart", kind, spec, notes, small[1], "h1") + "</main>"
    return page(spec["title"]["text"], body, {"chart": (kind, spec, small[0])}, theme)


def write(kind, spec, notes, path, small=None, theme="auto"):
    """small: (picture, notes) for a narrow page, which a page needs; theme: the page's, whose pictures are given for a light ground."""
    ending = os.path.splitext(path)[1]
    if ending == ".svg":
        content = svg(spec).encode()
    elif ending == ".png":
        content = png(spec)
    elif ending == ".pdf":
        content = pdf(spec)
    elif ending == ".html":
        content = chart_page(kind, spec, notes, small, theme).encode()
    else:
        content = text_of(spec).encode()
    write_file(path, content)


def write_file(path, content):
    """In one go: a reader never sees half a file, and a failure leaves none."""
    beside = path + ".part"
    try:
        with open(beside, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except OSError as error:
        try:
            os.remove(beside)
        except OSError:
            pass
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error

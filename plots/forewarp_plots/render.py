"""A specification as SVG, PNG or a page, by vl-convert: no browser, no network, the same bytes each time."""
import html
import json
import os
import re

from .results import InputError
from .spec import HERE, WALK, text_of

VEGA_LITE = "6.4"
PNG_SCALE = 2
FORMATS = (".svg", ".png", ".html", ".json")


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


def figure(identity, kind, spec, notes, heading="h2"):
    """A chart's place in a page: the chart, a line that the arrow keys fill, what it shows, and its title to jump to."""
    title = html.escape(spec["title"]["text"])
    said = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    # What a cliff's name in the chart links to.
    said += "".join(f'<li id="{cliff["link"][1:]}">{html.escape(cliff["text"])}</li>' for cliff in spec["datasets"].get("cliffs", ()))
    return (f'<figure id="{identity}"><{heading}>{title}</{heading}>\n'
            f'<div class="chart" data-kind="{kind}" data-chart="{identity}" tabindex="0" role="group" '
            f'aria-label="{title}: chart; arrow keys read its points" aria-describedby="{identity}-point"></div>\n'
            f'<output id="{identity}-point" aria-live="polite">Focus the chart and press the arrow keys to read its '
            f'points.</output>\n<figcaption><ul>{said}</ul></figcaption></figure>\n')


def page(title, body, charts):
    """A whole page that asks the network for nothing. charts: {identity: (kind, specification)}."""
    data = {identity: {"spec": _bare(spec), "walk": WALK[kind]} for identity, (kind, spec) in charts.items()}
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' "
            f"'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:\">\n"
            f'<title>{html.escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>\n{asset("page.css")}</style>\n'
            f'</head><body>\n{body}\n<script>{library()}</script>\n'
            f'<script>window.forewarpCharts = {script_json(data)};</script>\n<script>\n{asset("page.js")}</script>\n'
            f'</body></html>\n')


def _bare(spec):
    """In a page, the title stands in the page."""
    return {key: value for key, value in spec.items() if key != "title"}


def chart_page(kind, spec, notes):
    provenance = html.escape(spec["usermeta"]["of"])
    body = f'<main><p class="of">{provenance}</p>\n' + figure("chart", kind, spec, notes, "h1") + "</main>"
    return page(spec["title"]["text"], body, {"chart": (kind, spec)})


def write(kind, spec, notes, path):
    ending = os.path.splitext(path)[1]
    if ending == ".svg":
        content = svg(spec).encode()
    elif ending == ".png":
        content = png(spec)
    elif ending == ".html":
        content = chart_page(kind, spec, notes).encode()
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

"""What `forewarp plot`, `forewarp report` and `forewarp timeline` run; they check the command line and pass it on.

  python -m forewarp_plots plot KIND [RESULT.json ...] --out FILE
  python -m forewarp_plots report RESULT.json --html FILE
  python -m forewarp_plots timeline RESULT.json ... --perfetto FILE
"""
import argparse
import os
import sys

if __package__ in (None, ""):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# pylint: disable=wrong-import-position
from forewarp_plots import perfetto, render, report, sequence, spec, style  # noqa: E402
from forewarp_plots.machines import read_machine  # noqa: E402
from forewarp_plots.results import Costs, InputError, Points, read_results, read_wholes  # noqa: E402


_RED, _PLAIN = "\033[1;31m", "\033[0m"
_TONE = {"always": (_RED, _PLAIN), "never": ("", "")}


def _complain(message, color):
    """One message, its first line in red where forewarp colours standard error."""
    first, newline, remedy = str(message).partition("\n")
    begin, end = _TONE[color]
    print(f"{begin}forewarp: {first}{end}{newline}{remedy}", file=sys.stderr)


class UsageError(Exception):
    """A wrong command line: exit code 2."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(message)


def _formula(text):
    """CASE:LEVEL=BYTES[:TEXT]"""
    try:
        place, value = text.split("=", 1)
        case, level = place.rsplit(":", 1)
        number, _, words = value.partition(":")
        return case, level, float(number), words or "formula"
    except ValueError:
        raise InputError(f"--formula {text}: is not CASE:LEVEL=BYTES[:TEXT]") from None


def _work(text):
    """CASE=OPERATIONS"""
    case, _, number = text.partition("=")
    try:
        return case, float(number)
    except ValueError:
        raise InputError(f"--work {text}: is not CASE=OPERATIONS") from None


def _cycles(text):
    """FROM:TO"""
    begin, colon, end = text.partition(":")
    if not colon or not begin.isdigit() or not end.isdigit() or int(begin) >= int(end):
        raise argparse.ArgumentTypeError(f"is FROM:TO, two whole numbers of which the second is larger, not '{text}'")
    return int(begin), int(end)


def _width(text):
    if not text.isdigit() or not 240 <= int(text) <= 4000:
        raise argparse.ArgumentTypeError(f"is a number of pixels from 240 to 4000, not '{text}'")
    return int(text)


def _parser():
    parser = Parser(prog="forewarp", add_help=False)
    parser.add_argument("--color", choices=list(_TONE), default="never")
    commands = parser.add_subparsers(dest="command", required=True)
    plot = commands.add_parser("plot", add_help=False)
    plot.add_argument("kind")
    plot.add_argument("results", nargs="*")
    plot.add_argument("--out", required=True)
    plot.add_argument("--case", action="append", default=[])
    plot.add_argument("--points", action="append", default=[])
    plot.add_argument("--machine", action="append", default=[])
    plot.add_argument("--formula", action="append", default=[])
    plot.add_argument("--work", action="append", default=[])
    plot.add_argument("--level", action="append", default=[])
    plot.add_argument("--mode", action="append", default=[])
    plot.add_argument("--measured")
    plot.add_argument("--pc")
    plot.add_argument("--cycles", type=_cycles)
    plot.add_argument("--join")
    plot.add_argument("--title")
    plot.add_argument("--width", type=_width)
    plot.add_argument("--theme")
    page = commands.add_parser("report", add_help=False)
    page.add_argument("results", nargs="+")
    page.add_argument("--html", required=True)
    page.add_argument("--case", action="append", default=[])
    page.add_argument("--forewarp")
    page.add_argument("--theme", default="auto")
    trace = commands.add_parser("timeline", add_help=False)
    trace.add_argument("results", nargs="+")
    trace.add_argument("--perfetto", required=True)
    trace.add_argument("--case", action="append", default=[])
    trace.add_argument("--mode", action="append", default=[])
    trace.add_argument("--join")
    return parser


def _check_choices(name, given, known):
    for one in given:
        if one not in known:
            raise UsageError(f"--{name} is {' or '.join(known)}, not '{one}'")


def _plot(options):
    if options.kind not in spec.KINDS:
        raise UsageError(f"there is no picture '{options.kind}'; there are {', '.join(spec.KINDS)}")
    if os.path.splitext(options.out)[1] not in render.FORMATS:
        raise UsageError(f"--out {options.out} does not end in {', '.join(render.FORMATS)}")
    _check_choices("mode", options.mode, sequence.MODES)
    _check_choices("theme", [options.theme] if options.theme else [], style.THEMES)
    ending = os.path.splitext(options.out)[1]
    own = spec.FILES.get(options.kind)
    launches = read_results(options.results, options.case) if options.results and not own else []
    points = [own(path) for path in options.results] if own else \
        [(Costs if options.kind == "cost" else Points)(path) for path in options.points]
    try:
        pc = int(options.pc, 0) if options.pc else None
    except ValueError:
        raise InputError(f"--pc {options.pc}: is no address such as 0x120") from None
    drawn = spec.Options(machines=[read_machine(one) for one in options.machine],
                         points=points, formulas=[_formula(f) for f in options.formula],
                         work=dict(_work(w) for w in options.work), levels=options.level, modes=options.mode or ["stream"],
                         wholes=read_wholes(options.measured) if options.measured else {}, pc=pc, join=options.join, title=options.title,
                         cycles=options.cycles, width=options.width, theme="light" if ending == ".html" else options.theme or "light")
    chart, notes = spec.build(options.kind, launches, drawn)
    if ending not in (".html", ".json"):
        chart = render.fitted(chart, options.width)
    small = spec.build_narrow(options.kind, launches, drawn) if ending == ".html" else None
    render.write(options.kind, chart, notes, options.out, small, options.theme or "auto")


def _run(options):
    if options.command == "plot":
        _plot(options)
    elif options.command == "report":
        _check_choices("theme", [options.theme], style.PAGE_THEMES)
        launches = read_results(options.results, options.case)
        render.write_file(options.html, report.page(launches, options.forewarp, options.theme).encode())
    else:
        _check_choices("mode", options.mode, sequence.MODES)
        launches = read_results(options.results, options.case)
        render.write_file(options.perfetto, perfetto.trace(launches, (options.mode or ["stream"])[0], options.join).encode())


def main(words):
    color = "always" if "--color=always" in words[:1] else "never"
    try:
        _run(_parser().parse_args(words))
    except (InputError, UsageError) as error:
        _complain(error, color)
        return 1 if isinstance(error, InputError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

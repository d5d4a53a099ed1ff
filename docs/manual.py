"""Manual pages (man 1), from what --help says."""
import re


def _roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def _options(lines):
    """Options of a section of a help: what is written, and what it means."""
    for line in lines:
        if found := re.match(r"  (-\S.*?)(?:  +(\S.*))?$", line):
            yield [found[1], found[2] or ""]
        elif line.strip():
            yield ["", line.strip()]


def _section(title, lines):
    yield f".SH {title.upper()}"
    if title == "Examples":
        yield ".nf\n" + _roff("\n".join(line.removeprefix("  ") for line in lines).strip("\n")) + "\n.fi"
        return
    for option, meaning in _options(lines):
        if option:
            yield f".TP\n.B {_roff(option)}"
        if meaning:
            yield _roff(meaning)


def command_page(name, version, summary, text):
    """One command's page, from its --help."""
    head, usage, *rest = re.split(r"^(Usage: .*)\n", text, maxsplit=1, flags=re.M)
    page = [f'.TH FOREWARP\\-{name.upper()} 1 "" "forewarp {version}"', ".SH NAME", f"forewarp\\-{name} \\- {_roff(summary)}", ".SH SYNOPSIS",
            f".B {_roff(usage.removeprefix('Usage: '))}", ".SH DESCRIPTION", _roff(head.strip())]
    parts = re.split(r"^(\w+):\n", rest[0], flags=re.M)
    if parts[0].strip():
        page.append(_roff(parts[0].strip()))
    for title, body in zip(parts[1::2], parts[2::2]):
        page += _section(title, body.splitlines())
    page += [".SH SEE ALSO", ".BR forewarp (1)"]
    return "\n".join(page) + "\n"


def pages(say):
    """All of them by file name; say(*words) is what the program prints."""
    listing = say("--help")
    version, summary = re.match(r"forewarp (\S+): (.*?)\.?\n", listing).groups()
    commands = re.findall(r"^  (\w+) +(\S.*)$", listing, re.M)
    after = re.split(r"^  \w+ +\S.*\n", listing, flags=re.M)[-1].strip()
    front = [f'.TH FOREWARP 1 "" "forewarp {version}"', ".SH NAME", f"forewarp \\- {_roff(summary)}", ".SH SYNOPSIS",
             ".B forewarp\n.I COMMAND ...", ".SH DESCRIPTION", _roff(after), ".SH COMMANDS"]
    front += [f".TP\n.BR forewarp\\-{name} (1)\n{_roff(what)}" for name, what in commands]
    made = {"forewarp.1": "\n".join(front) + "\n"}
    for name, what in commands:
        made[f"forewarp-{name}.1"] = command_page(name, version, what, say(name, "--help"))
    return made

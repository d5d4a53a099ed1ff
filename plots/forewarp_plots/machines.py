"""Machines without SMs: a roof of ceilings, from hwmodels/ceilings/NAME.yaml or a file.

The files keep to a small part of YAML, so that drawing needs no parser for all of it:

  title: "..."
  pipes:  {NAME: {value: 1.97e14, unit: FLOP/s, source: vendor, ref: "..."}}     one a line below `pipes:`
  levels: {NAME: {value: 8.19e11, unit: B/s, source: vendor, ref: "..."}}
"""
import os
import re

from .results import InputError
from .spec import HERE

_LEAF = re.compile(r'\s+(\w[\w ]*): \{value: ([-+.\deE]+), unit: (FLOP/s|B/s), source: (measured|vendor|paper|fitted|assumed), '
                   r'ref: "([^"]+)"\}\s*$')


def read_machine(name):
    """{name, title, pipes: {name: FLOP/s}, levels: {name: B/s}}"""
    path = name if name.endswith(".yaml") else os.path.join(HERE, "..", "hwmodels", "ceilings", name + ".yaml")
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}", "name a file of hwmodels/ceilings, or give a YAML file") from error
    machine = {"name": os.path.splitext(os.path.basename(path))[0], "title": "", "pipes": {}, "levels": {}}
    section = None
    for number, line in enumerate(lines, 1):
        leaf = _LEAF.match(line)
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("title: "):
            machine["title"] = line[7:].strip('"')
        elif line.rstrip() in ("pipes:", "levels:"):
            section = line.rstrip()[:-1]
        elif leaf and section:
            machine[section][leaf[1]] = float(leaf[2])
        else:
            raise InputError(f"{path}:{number}: is no title, no section and no ceiling",
                             "a ceiling is NAME: {value: ..., unit: FLOP/s or B/s, source: ..., ref: \"...\"}")
    if not (machine["title"] and machine["pipes"] and machine["levels"]):
        raise InputError(f"{path}: lacks its title, pipes or levels")
    return machine

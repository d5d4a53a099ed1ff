"""Reading what Nsight Compute prints with --csv --page raw, and joining it with the runner's list of launches.

The output is the profiled program's own lines, ==PROF== lines, one header row, one row of units, and one row a launch.
"""

import csv
import re
import statistics

# Everything is kept in Nsight Compute's base units: nanoseconds, bytes, hertz.
_FACTORS = {
    "nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9,
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
    "hz": 1.0, "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9, "cycle/nsecond": 1e9, "cycle/usecond": 1e6, "cycle/second": 1.0,
    "cycle/msecond": 1e3,
    "byte/second": 1.0, "Kbyte/second": 1e3, "Mbyte/second": 1e6, "Gbyte/second": 1e9, "Tbyte/second": 1e12,
}


class CsvError(Exception):
    """The output cannot be read, or does not belong to the launches."""


def number(text, unit=""):
    """A cell as a float in base units, or None for an empty or textual one."""
    text = text.strip().replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    if value != value:
        return None
    return value * _FACTORS.get(unit, 1.0)


def parse(output):
    """Rows of the raw page, each {column: text or float}; identity columns stay text."""
    lines = output.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        return []
    table = list(csv.reader(line for line in lines[start:] if line.startswith('"')))
    header, rows = table[0], table[1:]
    units = {}
    if rows and rows[0] and rows[0][0] == "":
        if len(rows[0]) != len(header):
            raise CsvError(f"{len(rows[0])} units for {len(header)} columns")
        units = dict(zip(header, rows[0]))
        rows = rows[1:]
    parsed = []
    for row in rows:
        if len(row) != len(header):  # a profiler that was stopped in the middle of a line
            continue
        cells = {}
        for name, text in zip(header, row):
            if "__" in name or name in ("inst_executed", "thread_inst_executed", "thread_inst_executed_true") or \
                    name.startswith("memory_"):
                value = number(text, units.get(name, ""))
                if value is not None:
                    cells[name] = value
            else:
                cells[name] = text
        parsed.append(cells)
    return parsed


def extent(text):
    """'(32, 4, 1)' as (32, 4, 1)."""
    numbers = [int(n.replace(",", "")) for n in re.findall(r"\d+", text)]
    return tuple(numbers) if len(numbers) == 3 else None


def _same_kernel(reported, symbol):
    return reported == symbol or reported.split("(")[0].split("<")[0].split("::")[-1] in symbol


def join(rows, manifest):
    """Pairs (manifest row, profiler row), by order. What the profiler saw may be shorter than the manifest, never
    different."""
    if len(rows) > len(manifest):
        raise CsvError(f"{len(rows)} launches were profiled, but the runner lists {len(manifest)}")
    pairs = []
    for launch, row in zip(manifest, rows):
        kernel = row.get("Kernel Name", "")
        grid = tuple(int(launch["grid_" + axis]) for axis in "xyz")
        block = tuple(int(launch["block_" + axis]) for axis in "xyz")
        if not _same_kernel(kernel, launch["kernel"]):
            raise CsvError(f"launch {launch['sequence']} is {launch['kernel']}, but {kernel} was profiled")
        for name, want in (("Grid Size", grid), ("Block Size", block)):
            if name in row and extent(row[name]) not in (None, want):
                raise CsvError(f"launch {launch['sequence']} has {name.lower()} {want}, but {row[name]} was profiled")
        pairs.append((launch, row))
    return pairs


def key_of(launch):
    return launch["stem"], launch["case"], int(launch["launch"])


def identity(launch):
    """The columns that say which launch a row is about."""
    return {
        "kernel": launch["kernel"],
        "grid": " ".join(launch["grid_" + axis] for axis in "xyz"),
        "block": " ".join(launch["block_" + axis] for axis in "xyz"),
        "dynamic_shared_bytes": launch["dynamic_shared_bytes"],
    }


def spreads(pairs, metrics, prefix=""):
    """{key: columns} of metrics measured several times: median under the metric's name, :min, :max and :runs beside."""
    values, launches = {}, {}
    for launch, row in pairs:
        key = key_of(launch)
        launches[key] = launch
        for metric in metrics:
            if metric in row:
                values.setdefault(key, {}).setdefault(metric, []).append(row[metric])
    result = {}
    for key, measured in values.items():
        columns = identity(launches[key])
        for metric, numbers in measured.items():
            name = prefix + metric
            columns[name] = statistics.median(numbers)
            columns[name + ":min"] = min(numbers)
            columns[name + ":max"] = max(numbers)
            columns[name + ":runs"] = len(numbers)
        result[key] = columns
    return result


def counters(pairs, wanted, measured_elsewhere, prefix="full:"):
    """{key: columns} of the full pass. Metrics in measured_elsewhere have their median from the cheap pass under their
    plain name; this pass's value goes under `prefix`."""
    result = {}
    for launch, row in pairs:
        columns = result.setdefault(key_of(launch), identity(launch))
        for name, value in row.items():
            if isinstance(value, float) and wanted(name):
                columns[prefix + name if name in measured_elsewhere else name] = value
    return result

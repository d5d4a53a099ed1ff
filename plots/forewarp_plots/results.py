"""Result files as `forewarp predict`, `compare` and `validate` write them, and measured points beside them."""
import csv
import json
import os
import re


class InputError(Exception):
    """Bad input: what is wrong, where, and what to do about it."""

    def __init__(self, message, remedy=""):
        super().__init__(message + (f"; {remedy}" if remedy else ""))


class Launch:
    """One predicted launch with the machine it was predicted for, and what was measured of it, where it was."""

    def __init__(self, path, version, gpu, machine, case):
        self.path, self.version, self.gpu, self.machine, self.case = path, version, gpu, machine, case
        self.id, self.launch, self.kernel = case["id"], case["launch"], case["kernel"]
        self.metrics = case["metrics"]
        self.counters = case.get("counters", {})

    @property
    def label(self):
        return self.id if self.launch == 0 else f"{self.id}#{self.launch}"

    @property
    def short_kernel(self):
        return self.kernel.split("(")[0]

    @property
    def cycles(self):
        return self.metrics["gpc__cycles_elapsed.max"]

    @property
    def nanoseconds(self):
        return self.metrics["gpu__time_duration.sum"]

    @property
    def measured_cycles(self):
        return self.case.get("measured_cycles")

    @property
    def error_pct(self):
        """With its sign: positive where the prediction is too slow."""
        measured = self.measured_cycles
        return None if not measured else 100 * (self.cycles - measured) / measured

    def measured(self, name):
        pair = self.counters.get(name)
        return None if pair is None else pair["measured"]

    @property
    def measured_nanoseconds(self):
        return self.measured("gpu__time_duration.sum")

    @property
    def operations(self):
        """Of the leading precision."""
        roofline = self.case["roofline"]
        return sum(w["operations"] for w in roofline["work"] if w["precision"] == roofline["precision"])

    @property
    def bound(self):
        """The cause by the name that reports give it."""
        named = re.match(r"Bound by ([^:]+):", self.case["bottleneck"]["sentence"])
        return named[1] if named else self.case["bottleneck"]["kind"].replace("_", " ")

    def part(self, name):
        """A part of the result that only `forewarp predict` writes."""
        if name not in self.case:
            raise InputError(f"{self.path}: {self.label} holds no {name}", "write it with `forewarp predict --json`")
        return self.case[name]


_CASE_KEYS = ("id", "launch", "kernel", "metrics", "roofline", "bottleneck", "occupancy", "waves", "stalls", "grid",
              "block", "coverage", "warnings", "compute_throughput", "memory_throughput")


def _launches_of(path, document):
    version = document.get("forewarp")
    groups = document["gpus"] if "gpus" in document else [document]
    for group in groups:
        for case in group["cases"]:
            missing = [key for key in _CASE_KEYS if key not in case]
            if missing:
                raise InputError(f"{path}: case {case.get('id', '?')} holds no {missing[0]}",
                                 f"forewarp {version} wrote it; predict it again with this one")
            yield Launch(path, version, group["gpu"], group.get("machine", {}), case)


def read_result(path):
    """The launches of one result file."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}", "give a file that `forewarp ... --json` wrote") from error
    if not isinstance(document, dict) or "forewarp" not in document or not ("cases" in document or "gpus" in document):
        raise InputError(f"{path}: is JSON, but no result of forewarp", "give a file that `forewarp ... --json` wrote")
    try:
        return list(_launches_of(path, document))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: is damaged: {error!r} is missing or of another kind", "write it again") from error


def read_results(paths, cases=()):
    """The launches of all files in order; of `cases` alone, in their order, where there are any."""
    launches = [launch for path in paths for launch in read_result(path)]
    if cases:
        known = {launch.id for launch in launches} | {launch.label for launch in launches}
        for case in cases:
            if case not in known:
                raise InputError(f"{paths[0]}: holds no case {case}", "it holds " + ", ".join(sorted(known)[:12]))
        launches = [one for case in cases for one in launches if case in (one.id, one.label)]
    if not launches:
        raise InputError(f"{', '.join(paths)}: holds no launch")
    return launches


class Points:
    """A measured or published curve: size and time of square products, from a CSV file with its story above it."""

    def __init__(self, path):
        self.path, self.name = path, os.path.splitext(os.path.basename(path))[0]
        self.origin, self.gpu, self.rows = "measured", "", []
        try:
            with open(path, encoding="utf-8", newline="") as file:
                lines = file.readlines()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        for line in lines:
            if line.startswith("#") and ":" in line:
                key, value = line[1:].split(":", 1)
                if key.strip() == "name":
                    self.name = value.strip()
                if key.strip() == "origin":
                    self.origin = value.strip()
                if key.strip() == "gpu":
                    self.gpu = value.strip()
        try:
            for row in csv.DictReader(line for line in lines if not line.startswith("#")):
                self.rows.append((int(row["size"]), float(row["ns"])))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: {error!r} in its table", "its columns are size and ns, a line a point") from error


class Costs:
    """What predictions cost: processor seconds by kernel and size, from a CSV file with its story above it."""

    def __init__(self, path):
        self.path, self.name, self.origin, self.gpu, self.rows = path, "", "predictions", "", []
        try:
            with open(path, encoding="utf-8", newline="") as file:
                lines = file.readlines()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        story = [line[1:].strip() for line in lines if line.startswith("#")]
        self.gpu = next((line.split(":", 1)[1].strip() for line in story if line.startswith("gpu:")), "")
        self.name = " ".join(line for line in story if not line.startswith("gpu:"))
        try:
            for row in csv.DictReader(line for line in lines if not line.startswith("#")):
                self.rows.append((row["kernel"], int(row["size"]), float(row["seconds"]), float(row["warp_instructions"]), float(row["mib"])))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: {error!r} in its table",
                             "its columns are kernel, size, seconds, warp_instructions and mib, a line a prediction") from error


def read_wholes(path):
    """{case: microseconds} of measured sequences."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return {row["case"]: float(row["us"]) for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {error!r} in its table", "its columns are case and us, a line a sequence") from error


def tidy(value):
    """Six digits are enough to draw, and keep files small and the same everywhere."""
    if isinstance(value, float):
        value = float(f"{value:.6g}")
        return int(value) if value == int(value) and abs(value) < 1e15 else value
    if isinstance(value, dict):
        return {key: tidy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [tidy(item) for item in value]
    return value


def si(value, unit=""):
    """1.5e12 as 1.5 T."""
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".strip()


def numeric_name(name):
    """A type of number as people write it: tensor_bf16 is bf16 tensor."""
    return name[len("tensor_"):].replace(" ", " tensor ", 1) if name.startswith("tensor_") and " " in name else \
        name[len("tensor_"):] + " tensor" if name.startswith("tensor_") else name


def duration(nanoseconds):
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if nanoseconds >= scale:
            return f"{nanoseconds / scale:.4g} {unit}"
    return f"{nanoseconds:.4g} ns"


def distinct(items):
    return list(dict.fromkeys(items))


def clocks_note(launches):
    """What the SM clock of the profiles was, where it was another than the predictions': rates differ by it, cycles do not."""
    pairs = [(1e3 * one.measured_cycles / one.measured_nanoseconds, 1e3 * one.cycles / one.nanoseconds)
             for one in launches if one.measured_cycles and one.measured_nanoseconds]
    if not any(abs(seen / assumed - 1) > 0.02 for seen, assumed in pairs):
        return []
    low, high = min(seen for seen, _ in pairs), max(seen for seen, _ in pairs)
    span = f"{low:,.0f}" if high - low < 5 else f"{low:,.0f} to {high:,.0f}"
    at = " or ".join(distinct(f"{assumed:,.0f}" for _, assumed in sorted(pairs, key=lambda pair: pair[1])))
    return [f"Measured at {span} MHz, predicted at {at} MHz: rates differ by that as well"]


def labels(launches):
    """What to call each launch in a picture: with its GPU where there are several."""
    several = len({launch.gpu for launch in launches}) > 1
    return [f"{one.label} on {one.gpu}" if several else one.label for one in launches]

#!/usr/bin/env python3
"""Collects measured profiles of the cubins in traces/ on a machine with a GPU and Nsight Compute.

  collect.py run --runner RUN --out OUT [options]       on the GPU machine, from the root of the repository
  collect.py split OUT... --to validation/profiles/GPU  anywhere: one file a stem
  collect.py pool OUT... --to validation/profiles/GPU   the same of several machines: medians of what each measured
  collect.py queries --runner RUN --out FILE            what the machine is
  collect.py plan --runner RUN                          the work and its size, without a GPU

run does, in this order and as far as --budget-seconds reaches:
  time   every launch timed with events by the runner alone, cold and warm     OUT/events.csv
  cheap  cycles and time of every launch under ncu, caches flushed, --repeat times
  full   one pass with --set full and the metrics of metrics.txt
  warm   (when asked for) cycles and time without flushing, after a launch that warms up
Results so far are in OUT/profiles.csv after every ncu process; OUT/collect.log says what was done and what failed.
A later run continues with --done OUT_OF_BEFORE/profiles.csv. Needs Python 3.9 and nothing else.
"""

import argparse
import csv
import fnmatch
import glob
import hashlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import ncu_csv
from table import Table

HERE = os.path.dirname(os.path.abspath(__file__))
SLOW_US = 20000.0  # launches longer than this are repeated three times only
SLOW_REPEAT = 3
MARGIN_SECONDS = 15  # for the launch in flight at the deadline, and for ncu to print
LEAST_SECONDS = 25  # with less left, no ncu process is started
PHASES = ("time", "cheap", "full", "warm")
DONE_COLUMN = {"cheap": "gpc__cycles_elapsed.max", "full": "full:gpc__cycles_elapsed.max", "warm": "warm:gpc__cycles_elapsed.max"}


class Metrics:
    """metrics.txt."""

    def __init__(self, path):
        sections = {"cheap": [], "full": [], "keep": []}
        section = None
        with open(path, encoding="utf-8") as file:
            for line in file:
                line = line.split("#")[0].strip()
                if line.startswith("["):
                    section = sections[line.strip("[]")]
                elif line:
                    section.append(line)
        self.cheap, self.full, self.keep = sections["cheap"], sections["full"], sections["keep"]

    def wanted(self, name):
        return name in self.full or name in self.cheap or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.keep)

    def known_only(self, known):
        """A copy that asks for nothing but metrics whose base name is in `known`."""
        copy = Metrics.__new__(Metrics)
        # Counts that come from patching the code (sass) are not in every listing; ncu itself says if it lacks one.
        copy.cheap = self.cheap
        copy.full = [m for m in self.full if m.split(".")[0] in known or "__sass_" in m]
        copy.keep = self.keep + [m for m in self.full if m not in copy.full]
        return copy


class Log:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        self.start = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def __call__(self, message):
        line = f"[{time.monotonic() - self.start:6.1f} s] {message}"
        print(line, flush=True)
        self.file.write(line + "\n")
        self.file.flush()


def run_process(command, timeout):
    """(exit code or None on timeout, output). The process and what it started end with the timeout."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        try:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       start_new_session=True)
        except OSError as error:
            return 127, str(error)
        try:
            code = process.wait(timeout=max(1.0, timeout))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        output.seek(0)
        return code, output.read()


def plan_units(cases, launches_of, most_launches):
    """[(stem, [case])] of at most so many launches each, the stems taking turns, so that a run that is cut short has
    seen something of every stem. `cases` is {stem: [case]}."""
    queues = []
    for stem, names in cases.items():
        units, size = [], 0
        for case in names:
            count = launches_of(stem, case)
            if not units or size + count > most_launches:
                units.append((stem, []))
                size = 0
            units[-1][1].append(case)
            size += count
        queues.append(units)
    order = []
    for turn in range(max((len(units) for units in queues), default=0)):
        order += [units[turn] for units in queues if turn < len(units)]
    return order


def group_units(units, launches_of, most_launches):
    """Consecutive units as {stem: [case]} of one process each: starting ncu costs seconds."""
    groups, size = [], 0
    for stem, names in units:
        count = sum(launches_of(stem, case) for case in names)
        if not groups or size + count > most_launches:
            groups.append({})
            size = 0
        groups[-1].setdefault(stem, []).extend(names)
        size += count
    return groups


class Collector:
    def __init__(self, options, log):
        self.options, self.log = options, log
        self.metrics = Metrics(options.metrics)
        self.table, self.events, self.event_rows = Table(), {}, []
        self.deadline = time.monotonic() + options.budget_seconds
        self.failures = 0
        self.done = Table()
        for path in options.done:
            self.done.read(path)
        self.comments = {}
        self.launches = {}
        for stem in stems_of(options):
            for case, count in list_cases(options, stem).items():
                self.launches[(stem, case)] = count

    def left(self):
        return self.deadline - time.monotonic()

    def launches_of(self, stem, case):
        return self.launches[(stem, case)]

    def todo(self, column):
        """{stem: [case]} of what neither this run nor an earlier one has under this column."""
        cases = {}
        for (stem, case), count in self.launches.items():
            if max(self.table.count(stem, case, column), self.done.count(stem, case, column)) < count:
                cases.setdefault(stem, []).append(case)
        return cases

    def save(self):
        for key, columns in self.table.rows.items():
            columns.update(self.events.get(key, {}))
        self.table.write(os.path.join(self.options.out, "profiles.csv"), self.comments)

    def images(self, stems):
        words = []
        for stem in stems:
            words += [cubin_of(self.options, stem), "--launch", launch_file_of(self.options, stem)]
        return words

    # ---- time

    def time(self):
        """One process for all; if a stem breaks it, one for each of the rest."""
        stems = list(dict.fromkeys(stem for stem, _ in self.launches))
        seen = self.time_stems(stems)
        for stem in stems:
            if stem not in seen and self.left() > LEAST_SECONDS:
                self.time_stems([stem])
        write_events(os.path.join(self.options.out, "events.csv"), self.event_rows)

    def time_stems(self, stems):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "events.csv")
            command = [self.options.runner] + self.images(stems) + case_words(self.launches, stems) + \
                ["--repeat", str(self.options.repeat), "--csv", path]
            code, output = run_process(command, min(self.left(), self.options.stem_seconds * len(stems)))
            rows = read_csv(path)
        if code != 0:
            self.failures += 1
            self.log(f"time: the runner ended with {code} on {' '.join(stems)}: {last_lines(output)}")
        self.event_rows = self.event_rows + rows
        for row in rows:
            if row["launch"] != "all":
                self.events[(row["stem"], row["case"], int(row["launch"]))] = {
                    "event:cold_us": float(row["cold_us_median"]), "event:warm_us": float(row["warm_us_median"])}
        self.log(f"time: {len(rows)} rows")
        return {row["stem"] for row in rows}

    def is_slow(self, stem, case):
        return any(columns["event:cold_us"] > SLOW_US for (s, c, _), columns in self.events.items() if (s, c) == (stem, case))

    # ---- ncu

    def profile(self, phase, cases, repeat, most_launches, unit_launches):
        units = plan_units(cases, self.launches_of, unit_launches)
        for group in group_units(units, self.launches_of, most_launches):
            if self.left() < LEAST_SECONDS:
                self.log(f"{phase}: the budget is spent; the rest is left for --done")
                return
            self.profile_group(phase, group, repeat)
            self.save()

    def profile_group(self, phase, group, repeat):
        size = sum(self.launches_of(stem, case) for stem, names in group.items() for case in names)
        started = time.monotonic()
        for attempt in range(8):
            with tempfile.TemporaryDirectory() as folder:
                manifest = os.path.join(folder, "manifest.csv")
                code, output = run_process(self.ncu_command(phase, group, repeat, manifest), self.left() + MARGIN_SECONDS)
                launches = read_csv(manifest)
            unknown = set(re.findall(r"Failed to find metric (?:regex:)?([\w.]+)", output))
            if not unknown or attempt == 7:
                break
            self.log(f"{phase}: ncu does not know {' '.join(sorted(unknown))}")
            self.metrics.full = [m for m in self.metrics.full if m not in unknown]
        try:
            pairs = ncu_csv.join(ncu_csv.parse(output), launches)
        except ncu_csv.CsvError as error:
            self.failures += 1
            self.log(f"{phase}: {' '.join(group)}: {error}")
            return
        self.keep(phase, pairs)
        seconds = time.monotonic() - started
        self.log(f"{phase}: {len(pairs)} of {size * repeat} launches of {', '.join(group)} in {seconds:.1f} s, {self.left():.0f} s left")
        if code != 0 or len(pairs) < len(launches):
            self.failures += 1
            self.log(f"{phase}: ncu ended with {code}; {len(launches)} were launched: {last_lines(output)}")

    def ncu_command(self, phase, group, repeat, manifest):
        deadline = int(min(self.left() - MARGIN_SECONDS, self.options.stem_seconds * len(group)))
        command = [self.options.ncu, "--profile-from-start", "off", "--clock-control", "none",
                   "--cache-control", "none" if phase == "warm" else "all", "--replay-mode", "kernel",
                   "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled"]
        if phase == "full":
            command += (["--set", self.options.set] if self.options.set else []) + ["--metrics", ",".join(self.metrics.full)]
        else:
            command += ["--metrics", ",".join(self.metrics.cheap)]
        command += [self.options.runner, "--profile"] + self.images(group)
        command += [word for names in group.values() for case in names for word in ("--case", case)]
        command += ["--repeat", str(repeat), "--manifest", manifest, "--deadline", str(max(1, deadline))]
        if self.options.distinct:
            command += ["--distinct", str(self.options.distinct)]
        return command + (["--warm"] if phase == "warm" else [])

    def keep(self, phase, pairs):
        if phase == "full":
            self.table.merge(ncu_csv.counters(pairs, self.metrics.wanted, set(self.metrics.cheap)))
        else:
            self.table.merge(ncu_csv.spreads(pairs, self.metrics.cheap, "warm:" if phase == "warm" else ""))

    # ---- all

    def run(self):
        options = self.options
        os.makedirs(options.out, exist_ok=True)
        self.comments = describe(options, self.log, self.launches)
        known = known_metrics(options.ncu, self.log) if set(options.phases) & {"full"} else set()
        if known:
            before, self.metrics = self.metrics, self.metrics.known_only(known)
            left_out = [m for m in before.full if m not in self.metrics.full]
            if left_out:
                self.log("not known here, left out: " + " ".join(left_out))
        if "time" in options.phases:
            self.time()
        for phase in options.phases:
            if phase in ("cheap", "warm"):
                cases = self.todo(DONE_COLUMN[phase])
                slow = {stem: [c for c in names if self.is_slow(stem, c)] for stem, names in cases.items()}
                fast = {stem: [c for c in names if c not in slow[stem]] for stem, names in cases.items()}
                self.profile(phase, fast, options.repeat, 60, 12)
                self.profile(phase, slow, min(options.repeat, SLOW_REPEAT), 12, 4)
            elif phase == "full":
                self.profile(phase, self.todo(DONE_COLUMN[phase]), 1, 24, 4)
        self.save()
        for phase, column in DONE_COLUMN.items():
            missing = sum(len(names) for names in self.todo(column).values())
            if phase in options.phases:
                self.log(f"{phase}: {len(self.launches) - missing} of {len(self.launches)} cases done")
        self.log(f"{len(self.table.rows)} rows, {self.failures} failures")
        return 0 if self.failures == 0 else 1


# ---- files and names

def launch_file_of(options, stem):
    return os.path.join(options.traces, stem + ".yaml")


def cubin_of(options, stem):
    """STEM.sweep launches the code of STEM.cubin."""
    return os.path.join(options.traces, "sm_" + options.sm, stem.split(".")[0] + ".cubin")


def stems_of(options):
    found = sorted(os.path.splitext(os.path.basename(path))[0] for path in glob.glob(launch_file_of(options, "*")))
    found = [stem for stem in found if os.path.exists(cubin_of(options, stem))]
    if not options.stems:
        return found
    chosen = [stem for pattern in options.stems for stem in found if fnmatch.fnmatchcase(stem, pattern)]
    if not chosen:
        raise SystemExit("no stem matches " + " ".join(options.stems))
    return list(dict.fromkeys(chosen))


def list_cases(options, stem):
    """{case: launches that are profiled}, by the runner's own reading of the launch file."""
    code, output = run_process([options.runner, cubin_of(options, stem), "--launch", launch_file_of(options, stem), "--list"], 60)
    if code != 0:
        raise SystemExit(f"{stem}: {last_lines(output)}")
    alike = {}
    for line in output.splitlines():
        case, _, kernel = line.split(" ", 2)
        if options.exclude and re.search(options.exclude, case):
            continue
        counts = alike.setdefault(case, {})
        counts[kernel] = counts.get(kernel, 0) + 1
    most = options.distinct or 10**9
    return {case: sum(min(count, most) for count in counts.values()) for case, counts in alike.items()}


def case_words(launches, stems):
    return [word for stem, case in launches if stem in stems for word in ("--case", case)]


def read_csv(path):
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if None not in row.values()]


def write_events(path, rows):
    if not rows:
        return
    with open(path + ".tmp", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(path + ".tmp", path)


def last_lines(output, count=6):
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith(('"', "==PROF==   "))]
    return " | ".join(line.strip()[:300] for line in lines[-count:])


# ---- what the machine is

# Lines of nvidia-smi -q that name this very card or its place in a machine rather than its kind.
PRIVATE = re.compile(r"UUID|Serial|Bus|Minor Number|Board|Sub System|Device Id|Domain|Slot|Chassis|Host ID|Peer|Module Id|GUID|PDI|Timestamp", re.I)


def smi(query):
    code, output = run_process(["nvidia-smi", "--query-gpu=" + query, "--format=csv,noheader"], 30)
    return output.strip().splitlines()[0] if code == 0 and output.strip() else "unknown"


def ncu_version(ncu):
    code, output = run_process([ncu, "--version"], 60)
    found = re.search(r"Version ([\d.]+)", output)
    return found.group(1) if code == 0 and found else "unknown"


def queries(runner, ncu):
    code, driver = run_process([runner, "--query"], 120)
    code_smi, report = run_process(["nvidia-smi", "-q"], 60)
    lines, skip = [], None
    for line in report.splitlines():
        indent = len(line) - len(line.lstrip())
        if skip is not None and indent > skip:
            continue
        skip = None
        if PRIVATE.search(line) or line.strip().startswith("Processes"):
            skip = indent
            continue
        lines.append(re.sub(r"^(GPU) [0-9A-Fa-f:.]+$", r"\1", line))
    return (f"# forewarp-run --query (exit {code})\n{driver}\n# ncu {ncu_version(ncu)}\n\n"
            f"# nvidia-smi -q, without what names this one card (exit {code_smi})\n" + "\n".join(lines) + "\n")


def known_metrics(ncu, log):
    """Base names of the metrics that ncu knows for this GPU, or nothing if it cannot say."""
    code, output = run_process([ncu, "--query-metrics"], 180)
    known = set(re.findall(r"^\s*(\w+__\w+)\s", output, re.M))
    if code != 0 or len(known) < 500:
        log(f"ncu --query-metrics gave {len(known)} names (exit {code}); asking for everything")
        return set()
    return known


def describe(options, log, launches):
    with open(os.path.join(options.out, "device.txt"), "w", encoding="utf-8") as file:
        file.write(queries(options.runner, options.ncu))
    digest = hashlib.sha256()
    for stem in dict.fromkeys(stem for stem, _ in launches):
        for path in (cubin_of(options, stem), launch_file_of(options, stem)):
            with open(path, "rb") as file:
                digest.update(file.read())
    words = ["OUT" if word == options.out else os.path.basename(word) if os.path.isabs(word) else word for word in options.words]
    comments = {
        "gpu": smi("name"),
        "driver": smi("driver_version"),
        "clocks": "sm max " + smi("clocks.max.sm") + ", memory max " + smi("clocks.max.mem") + ", not locked",
        "ncu": ncu_version(options.ncu),
        "date": time.strftime("%Y-%m-%d"),
        "command": "collect.py " + " ".join(words),
        "inputs": "sha256 of cubins and launch files together " + digest.hexdigest(),
        "columns": "units ns, bytes, cycles; METRIC is the median of METRIC:runs launches with flushed caches where METRIC:min and "
                   ":max stand beside it, else the one full pass; full: cycles of that pass; warm: caches not flushed; "
                   "event: microseconds by CUDA events without a profiler",
    }
    log(f"{comments['gpu']}, driver {comments['driver']}, ncu {comments['ncu']}; now " +
        smi("clocks.sm,clocks.mem,temperature.gpu,power.draw"))
    return comments


# ---- split

def split(paths, to, events=()):
    """Merges profiles.csv files (later ones win) and writes one file a stem."""
    table, comments = Table(), {}
    for path in paths:
        before = comments.get("command")
        comments.update(table.read(path))
        if before and comments["command"] not in before.split("; "):
            comments["command"] = before + "; " + comments["command"]
    os.makedirs(to, exist_ok=True)
    stems = list(dict.fromkeys(stem for stem, _, _ in table.rows))
    for stem in stems:
        table.write(os.path.join(to, stem + ".csv"), comments, stem)
    merged = {}
    for path in (os.path.join(to, "events.csv"), *events):  # what stands there of other stems stays
        for row in read_csv(path):
            merged[(row["stem"], row["case"], row["launch"])] = row
    write_events(os.path.join(to, "events.csv"), list(merged.values()))
    return stems


def split_folders(options):
    profiles, events = [], []
    os.makedirs(options.to, exist_ok=True)
    for source in options.sources:
        folder = source if os.path.isdir(source) else os.path.dirname(source) or "."
        profiles.append(os.path.join(source, "profiles.csv") if os.path.isdir(source) else source)
        events.append(os.path.join(folder, "events.csv"))
        if os.path.exists(os.path.join(folder, "device.txt")):
            shutil.copyfile(os.path.join(folder, "device.txt"), os.path.join(options.to, "device.txt"))
    stems = split(profiles, options.to, events)
    print(f"{len(stems)} stems written to {options.to}")
    return 0


# ---- pool

def read_machine(source):
    """The table of one machine, and its comments: profiles.csv, or a folder of it or of one file a stem."""
    whole = os.path.join(source, "profiles.csv")
    paths = [source] if os.path.isfile(source) else [whole] if os.path.exists(whole) else sorted(glob.glob(os.path.join(source, "*.csv")))
    table, comments = Table(), {}
    for path in paths:
        comments.update(table.read(path))
    return table, comments


def pool(sources, to):
    """One file a stem: launches of the first machine, what was measured several times as the median of all machines that have it."""
    machines = [read_machine(source) for source in sources]
    table, comments = machines[0]
    for key, row in table.rows.items():
        rows = [other.rows[key] for other, _ in machines if key in other.rows]
        for name in [column.removesuffix(":runs") for column in row if column.endswith(":runs")]:
            for column in (name, name + ":min", name + ":max"):
                values = [float(other[column]) for other in rows if other.get(column, "") != ""]
                if values:
                    row[column] = float(statistics.median(values))
            row[name + ":runs"] = sum(int(other.get(name + ":runs", 0) or 0) for other in rows)
    comments = comments | {"machines": f"{len(machines)}; where METRIC:runs stands beside it, METRIC, :min and :max are medians of theirs"}
    os.makedirs(to, exist_ok=True)
    for stem in dict.fromkeys(stem for stem, _, _ in table.rows):
        table.write(os.path.join(to, stem + ".csv"), comments, stem)
    print(f"{len(table.rows)} launches of {len(machines)} machines written to {to}")
    return 0


# ---- command line

def add_common(parser):
    parser.add_argument("--runner", required=True, help="forewarp-run")
    parser.add_argument("--traces", default="traces")
    parser.add_argument("--sm", default="90")
    parser.add_argument("--stems", nargs="*", default=[], help="names or patterns; all otherwise")
    parser.add_argument("--exclude", default="", help="regular expression of case ids to leave out")
    parser.add_argument("--distinct", type=int, default=1,
                        help="of launches of a case alike in kernel, grid and block profile so many (0: all)")
    parser.add_argument("--repeat", type=int, default=5)


def parse_options(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    add_common(run)
    run.add_argument("--out", required=True)
    run.add_argument("--ncu", default="ncu")
    run.add_argument("--budget-seconds", type=float, default=1500)
    run.add_argument("--stem-seconds", type=float, default=300, help="at most so long for a stem in one process")
    run.add_argument("--phases", default="time,cheap,full", help="in this order, of " + ",".join(PHASES))
    run.add_argument("--set", default="full", help="ncu's section set for the full pass; empty: the metrics alone")
    run.add_argument("--metrics", default=os.path.join(HERE, "metrics.txt"))
    run.add_argument("--done", nargs="*", default=[], help="profiles.csv of earlier runs: what they have is not repeated")
    plan = commands.add_parser("plan")
    add_common(plan)
    query = commands.add_parser("queries")
    query.add_argument("--runner", required=True)
    query.add_argument("--ncu", default="ncu")
    query.add_argument("--out", required=True)
    pieces = commands.add_parser("split")
    pieces.add_argument("sources", nargs="+", help="folders or profiles.csv files; later ones win")
    pieces.add_argument("--to", required=True)
    pooled = commands.add_parser("pool")
    pooled.add_argument("sources", nargs="+", help="of a machine each: a folder or profiles.csv; the first has the other columns")
    pooled.add_argument("--to", required=True)
    options = parser.parse_args(words)
    options.words = words
    if options.command == "run":
        options.phases = [phase for phase in options.phases.split(",") if phase]
        unknown = [phase for phase in options.phases if phase not in PHASES]
        if unknown:
            parser.error("unknown phase " + ", ".join(unknown))
    return options


def show_plan(options):
    total = 0
    for stem in stems_of(options):
        cases = list_cases(options, stem)
        total += sum(cases.values())
        print(f"{stem}: {len(cases)} cases, {sum(cases.values())} launches")
    print(f"{total} launches; about {total * options.repeat * 0.3 / 60:.0f} minutes cheap, {total / 20:.0f} minutes full")
    return 0


def main(words):
    options = parse_options(words)
    if options.command == "split":
        return split_folders(options)
    if options.command == "pool":
        return pool(options.sources, options.to)
    options.runner = os.path.abspath(options.runner)
    if options.command == "plan":
        return show_plan(options)
    if options.command == "queries":
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(queries(options.runner, options.ncu))
        return 0
    os.makedirs(options.out, exist_ok=True)
    with Log(os.path.join(options.out, "collect.log")) as log:
        return Collector(options, log).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

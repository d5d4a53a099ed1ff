"""The table of measured launches: one row a (stem, case, launch), columns by metric, comments with where it came from."""

import csv
import os

IDENTITY = ["kernel", "grid", "block", "dynamic_shared_bytes"]
FIRST = [
    "gpc__cycles_elapsed.max", "gpc__cycles_elapsed.max:min", "gpc__cycles_elapsed.max:max", "gpc__cycles_elapsed.max:runs",
    "gpu__time_duration.sum", "gpu__time_duration.sum:min", "gpu__time_duration.sum:max", "sm__cycles_active.avg",
]


def text(value):
    if not isinstance(value, float):
        return str(value)
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else f"{value:.7g}"


class Table:
    def __init__(self):
        self.rows = {}

    def merge(self, rows):
        """Adds rows {key: columns}; later values replace earlier ones."""
        for key, columns in rows.items():
            self.rows.setdefault(key, {}).update(columns)

    def columns(self):
        present = {name for columns in self.rows.values() for name in columns}
        head = [name for name in IDENTITY + FIRST if name in present]
        return head + sorted(present - set(head))

    def count(self, stem, case, column):
        """Launches of a case that have this column."""
        return sum(1 for (s, c, _), columns in self.rows.items() if (s, c) == (stem, case) and columns.get(column, "") != "")

    def write(self, path, comments, stem=None):
        """Whole or one stem's rows; replaces the file in one step."""
        part = Table()
        part.rows = {key: columns for key, columns in self.rows.items() if stem in (None, key[0])}
        columns = part.columns()
        beside = path + ".tmp"
        with open(beside, "w", newline="", encoding="utf-8") as file:
            for name, value in comments.items():
                file.write(f"# {name}: {value}\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow((["stem"] if stem is None else []) + ["case", "launch"] + columns)
            for key, row in part.rows.items():
                writer.writerow(list(key if stem is None else key[1:]) + [text(row.get(name, "")) for name in columns])
        os.replace(beside, path)

    def read(self, path):
        """Merges a file written by write(); returns its comments."""
        comments, lines = {}, []
        with open(path, encoding="utf-8", newline="") as file:
            for line in file:
                if line.startswith("# "):
                    name, _, value = line[2:].rstrip("\n").partition(": ")
                    comments[name] = value
                else:
                    lines.append(line)
        stem = os.path.splitext(os.path.basename(path))[0]
        for row in csv.DictReader(lines):
            key = (row.pop("stem", stem), row.pop("case"), int(row.pop("launch")))
            self.merge({key: {name: value for name, value in row.items() if value != ""}})
        return comments

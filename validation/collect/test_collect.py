"""The whole of collect.py run against a runner and an ncu that only pretend."""

import contextlib
import io
import os
import stat
import tempfile
import unittest

import collect
from table import Table

RUNNER = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
def value(name):
    return words[words.index(name) + 1] if name in words else None
cases = [w for i, w in enumerate(words) if i and words[i - 1] == "--case"]
stems = [os.path.basename(w)[:-6] for w in words if w.endswith(".cubin")]
if "--query" in words:
    print("name: pretended")
elif "--list" in words:
    print(f"{stems[0]}_1 0 first (2,1,1)x(32,1,1)")
    print(f"{stems[0]}_1 1 second (4,1,1)x(32,1,1)")
    print(f"{stems[0]}_2 0 first (2,1,1)x(32,1,1)")
    print(f"{stems[0]}_2 1 first (2,1,1)x(32,1,1)")
else:
    rows = [(s, s + "_1", 0, "first", 2) for s in stems] + [(s, s + "_1", 1, "second", 4) for s in stems]
    rows += [(s, s + "_2", 0, "first", 2) for s in stems]
    rows = [row for row in rows if row[1] in cases]
    if value("--csv"):
        with open(value("--csv"), "w") as f:
            f.write("stem,case,launch,kernel,cold_us_median,warm_us_median\\n")
            for s, c, l, k, g in rows:
                f.write(f"{s},{c},{l},{k},{30000 if c == 'b_2' else 5},4\\n")
            f.write("a,a_1,all,,,9\\n")
    if value("--manifest"):
        with open(value("--manifest"), "w") as f:
            f.write("sequence,stem,case,launch,repeat,kernel,grid_x,grid_y,grid_z,block_x,block_y,block_z,dynamic_shared_bytes\\n")
            n = 0
            for r in range(int(value("--repeat"))):
                for s, c, l, k, g in rows:
                    f.write(f"{n},{s},{c},{l},{r},{k},{g},1,1,32,1,1,0\\n")
                    n += 1
"""

NCU = """#!/usr/bin/env python3
import csv, subprocess, sys
words = sys.argv[1:]
if "--version" in words:
    print("Version 2025.3.1.0 (build 1)")
    sys.exit()
if "--query-metrics" in words:
    print("gpc__cycles_elapsed  counter cycle  # of cycles")
    sys.exit()
metrics = words[words.index("--metrics") + 1].split(",")
if "lts__t_sectors.sum" in metrics:
    print("==ERROR== Failed to find metric lts__t_sectors.sum")
    sys.exit(1)
at = next(i for i, w in enumerate(words) if w.endswith("runner"))
subprocess.run(words[at:], check=True)
with open(words[words.index("--manifest") + 1]) as f:
    launches = list(csv.DictReader(f))
print("==PROF== Connected")
print(",".join(f'"{w}"' for w in ["ID", "Kernel Name", "Block Size", "Grid Size"] + metrics))
print(",".join('""' for w in range(4 + len(metrics))))
for i, l in enumerate(launches):
    print(f'"{i}","{l["kernel"]}","(32, 1, 1)","({l["grid_x"]}, 1, 1)",' + ",".join(f'"{1000 + i:,}"' for m in metrics))
"""


class Collecting(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name
        os.makedirs(self.path("traces", "sm_90"))
        for stem in "ab":
            for path in (self.path("traces", "sm_90", stem + ".cubin"), self.path("traces", stem + ".yaml")):
                open(path, "w").close()
        for name, text in (("runner", RUNNER), ("ncu", NCU)):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(self.path(name), stat.S_IRWXU)

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def collect(self, out, *more):
        with contextlib.redirect_stdout(io.StringIO()):
            return collect.main(["run", "--runner", self.path("runner"), "--ncu", self.path("ncu"), "--traces", self.path("traces"),
                                 "--out", self.path(out), *more])

    def test_everything_then_nothing_left(self):
        self.assertEqual(self.collect("one"), 0)
        table = Table()
        comments = table.read(self.path("one", "profiles.csv"))
        self.assertEqual(comments["ncu"], "2025.3.1.0")
        self.assertNotIn(self.root, comments["command"])
        self.assertEqual(len(table.rows), 6)
        row = table.rows[("a", "a_1", 1)]
        self.assertEqual(row["gpc__cycles_elapsed.max:runs"], "5")
        self.assertEqual(row["event:cold_us"], "5")
        self.assertIn("full:gpc__cycles_elapsed.max", row)
        self.assertEqual(row["lts__t_sector_hit_rate.pct"], row["full:gpc__cycles_elapsed.max"])
        self.assertNotIn("lts__t_sectors.sum", row)
        self.assertEqual(table.rows[("b", "b_2", 0)]["gpc__cycles_elapsed.max:runs"], "3")  # slow
        self.assertTrue(os.path.exists(self.path("one", "device.txt")))

        self.assertEqual(self.collect("two", "--phases", "cheap,full,warm", "--done", self.path("one", "profiles.csv")), 0)
        again = Table()
        again.read(self.path("two", "profiles.csv"))
        columns = {name for row in again.rows.values() for name in row}
        self.assertIn("warm:gpc__cycles_elapsed.max", columns)
        self.assertNotIn("gpc__cycles_elapsed.max", columns)

        with contextlib.redirect_stdout(io.StringIO()):
            collect.main(["split", self.path("one"), self.path("two"), "--to", self.path("profiles")])
        single = Table()
        single.read(self.path("profiles", "a.csv"))
        row = single.rows[("a", "a_1", 0)]
        self.assertIn("warm:gpc__cycles_elapsed.max", row)
        self.assertIn("gpc__cycles_elapsed.max", row)
        with open(self.path("profiles", "events.csv"), encoding="utf-8") as file:
            self.assertIn("a,a_1,all", file.read())

    def test_machines_are_pooled_by_their_medians(self):
        for machine, (cycles, runs) in enumerate([(100, 5), (130, 15), (110, 5)]):
            table = Table()
            table.merge({("a", "a_1", 0): {"kernel": "first", "m": cycles, "m:min": cycles - 10, "m:max": cycles + machine, "m:runs": runs,
                                           "full:m": machine}})
            if machine == 1:  # has what the first has not
                table.merge({("a", "a_2", 0): {"kernel": "first", "m": 1, "m:runs": 1}})
            os.makedirs(self.path(f"of_{machine}"))
            table.write(self.path(f"of_{machine}", "profiles.csv" if machine else "a.csv"), {"gpu": "one"}, None if machine else "a")
        with contextlib.redirect_stdout(io.StringIO()):
            collect.main(["pool", *(self.path(f"of_{machine}") for machine in range(3)), "--to", self.path("pooled")])
        pooled = Table()
        self.assertTrue(pooled.read(self.path("pooled", "a.csv"))["machines"].startswith("3"))
        self.assertEqual(pooled.rows, {("a", "a_1", 0): {"kernel": "first", "m": "110", "m:min": "100", "m:max": "112", "m:runs": "25",
                                                         "full:m": "0"}})

    def test_a_spent_budget_starts_nothing(self):
        self.assertEqual(self.collect("out", "--budget-seconds", "20", "--phases", "cheap"), 0)
        table = Table()
        table.read(self.path("out", "profiles.csv"))
        self.assertEqual(table.rows, {})


if __name__ == "__main__":
    unittest.main()

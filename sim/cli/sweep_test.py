"""Drives `forewarp sweep`: rows do not depend on threads, processes, ranks or kills.

  python3 sweep_test.py FOREWARP [--long]
"""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

FOREWARP = os.path.abspath(sys.argv[1])
LONG = "--long" in sys.argv
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

KERNEL = f"""\
kernel:
  image: {HOME}/traces/sm_90/reduce_01_softmax_rows.cubin
  case:
    kernel: softmax_rows
    grid: [=rows]
    block: [=threads]
    buffers:
      in: {{bytes: =4 * rows * columns, fill: zero}}
      out: {{bytes: =4 * rows * columns, fill: zero}}
    args: [{{pointer: in}}, {{pointer: out}}, {{i32: =columns}}]
"""
SWEEP = KERNEL + """\
gpu: h200-sxm
set: {chip.sm_clock_mhz: =clock}
vary: {rows: [1, 2, 3], columns: [32], threads: [32, 64], clock: [990, 1980]}
columns: [gpc__cycles_elapsed.max]
"""


class Sweeps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="forewarp_sweep_")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, text, name="a.sweep.yaml"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def command(self, out, *options, sweep="a.sweep.yaml"):
        return [FOREWARP, "sweep", self.path(sweep), "--out", self.path(out), "--no-cache", *options]

    def run_sweep(self, out, *options, sweep="a.sweep.yaml", code=0, before=()):
        environment = dict(os.environ)
        if before:  # Open MPI's own
            environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        done = subprocess.run([*before, *self.command(out, *options, sweep=sweep)], capture_output=True, text=True, check=False,
                              env=environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def rows(self, name):
        with sqlite3.connect(self.path(name)) as database:
            return database.execute("SELECT * FROM rows").fetchall()

    def test_rows_do_not_depend_on_threads_or_processes(self):
        self.write(SWEEP)
        alone = self.run_sweep("one.sqlite", "--threads", "1", "--csv", "-").stdout
        self.assertEqual(len(alone.splitlines()), 13)
        self.assertEqual([line.split(",")[:4] for line in alone.splitlines()[1:4]],
                         [["1", "32", "32", "990"], ["1", "32", "32", "1980"], ["1", "32", "64", "990"]])
        self.assertEqual(self.run_sweep("four.sqlite", "--threads", "4", "--csv", "-").stdout, alone)
        together = [subprocess.Popen(self.command("shared.sqlite", "--threads", "1", "--csv", "-"), stdout=subprocess.PIPE, text=True)
                    for _ in range(3)]
        for one in together:
            self.assertEqual(one.communicate()[0], alone)
            self.assertEqual(one.returncode, 0)
        self.assertEqual(self.rows("four.sqlite"), self.rows("one.sqlite"))
        self.assertEqual(self.rows("shared.sqlite"), self.rows("one.sqlite"))

    def test_a_point_is_what_predict_says(self):
        self.write(KERNEL + "gpu: h200-sxm\nset: {l2.bytes: =l2}\nvary: {rows: [264], columns: [1024], threads: [128], l2: [30MiB]}\n")
        self.run_sweep("a.sqlite")
        [(_, values, _, result, error)] = self.rows("a.sqlite")
        self.assertEqual(json.loads(values), {"rows": 264, "columns": 1024, "threads": 128, "l2": "30MiB"})
        self.assertIsNone(error)
        launch = self.write("""\
point:
  kernel: softmax_rows
  grid: [264]
  block: [128]
  buffers: {in: {bytes: 1081344, fill: zero}, out: {bytes: 1081344, fill: zero}}
  args: [{pointer: in}, {pointer: out}, {i32: 1024}]
""", "launch.yaml")
        predicted = subprocess.run([FOREWARP, "predict", f"{HOME}/traces/sm_90/reduce_01_softmax_rows.cubin", "--launch", launch,
                                    "--gpu", "h200-sxm", "--set", "l2.bytes=30MiB", "--no-cache", "--json", "-"],
                                   capture_output=True, check=True)
        [case] = json.loads(predicted.stdout)["cases"]
        [swept] = json.loads(result)
        self.assertEqual(swept["metrics"], case["metrics"])
        self.assertEqual(swept["gpu_changes"], json.loads(predicted.stdout)["gpu_changes"])
        self.assertEqual(swept["gpu_changes"], {"l2.bytes": 30 << 20})

    def test_a_sketch_is_what_sketch_says(self):
        what = "reduction: {operation: softmax, shape: [%s, 64], block: %s}"
        self.write("sketch: {" + what % ("=rows", "=threads") + "}\ngpu: =gpu\n"
                   "points: [{rows: 20, threads: 64, gpu: h200-sxm}, {rows: 20, threads: 32, gpu: a100-sxm4-80gb}]\n")
        self.run_sweep("a.sqlite")
        sketch = self.write("point: {" + what % (20, 64) + "}\n", "sketch.yaml")
        predicted = subprocess.run([FOREWARP, "sketch", sketch, "--gpu", "h200-sxm", "--no-cache", "--json", "-"],
                                   capture_output=True, check=True)
        rows = self.rows("a.sqlite")
        self.assertEqual(json.loads(rows[0][3])[0]["metrics"], json.loads(predicted.stdout)["cases"][0]["metrics"])
        self.assertEqual(json.loads(rows[1][3])[0]["gpu"], "a100-sxm4-80gb")

    def test_what_is_known_is_not_computed_again(self):
        self.write(SWEEP)
        first = self.run_sweep("a.sqlite", "--json", "-").stdout
        with sqlite3.connect(self.path("a.sqlite")) as database:  # would be seen if it were computed again
            database.execute("UPDATE results SET result = replace(result, '\"latency\"', '\"marked\"')")
        second = json.loads(self.run_sweep("a.sqlite", "--json", "-").stdout)
        self.assertEqual(len(json.loads(first)["sweep"]["rows"]), 12)
        self.write(SWEEP.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
        longer = json.loads(self.run_sweep("a.sqlite", "--json", "-").stdout)
        bound = [row["bound_by"] for row in longer["sweep"]["rows"]]
        self.assertEqual(bound[:12], [row["bound_by"] for row in second["sweep"]["rows"]])
        self.assertEqual(len(bound), 16)
        self.assertNotIn("marked", bound[12:])

    def test_a_point_that_cannot_be_predicted_is_a_row(self):
        self.write(KERNEL + "gpu: =gpu\nvary: {rows: [2], columns: [32], threads: [32], gpu: [h200-sxm, a100-sxm4-80gb]}\n")
        done = self.run_sweep("a.sqlite")
        self.assertIn("1 of 2 points could not be predicted", done.stdout)
        self.assertIn("is code for sm_90, but a100-sxm4-80gb runs sm_80", done.stdout)

    def test_a_sketch_that_cannot_be_built_is_a_row(self):
        sketch = "sketch: {matmul: {shape: [64, 64, 64], tile: [64, 64, =depth], warp: [32, 32], stages: 2}}\ngpu: h200-sxm\n"
        self.write(sketch + "vary: {depth: [64, 100]}\n")
        done = self.run_sweep("a.sqlite")
        self.assertIn("1 of 2 points could not be predicted", done.stdout)
        self.assertIn("a.sweep.yaml:1:55: point.matmul.tile[2] is 100", done.stdout)
        self.assertEqual(self.run_sweep("a.sqlite").stdout, done.stdout)
        self.write(sketch + "vary: {depth: [99, 100]}\n")
        self.assertIn("at the point depth = 99; `where` leaves points out", self.run_sweep("b.sqlite", code=1).stderr)

    def test_errors_name_their_place(self):
        def error(old, new):
            self.write(SWEEP.replace(old, new))
            return self.run_sweep("e.sqlite", code=1).stderr
        self.assertIn("there is no leaf 'chip.sm_clok_mhz'", error("chip.sm_clock_mhz", "chip.sm_clok_mhz"))
        self.assertIn("a.sweep.yaml:5:12: formula 'rowz'", error("grid: [=rows]", "grid: [=rowz]"))
        self.assertIn("at the point rows = 1, columns = 32, threads = 32", error("grid: [=rows]", "grid: [=rows / 2]"))
        self.assertIn("there is no GPU 'h300-sxm'", error("h200-sxm", "h300-sxm"))
        self.assertIn("there is no metric 'gpc__cycles_elapsed.mx'; did you mean 'gpc__cycles_elapsed.max'?", error("elapsed.max", "elapsed.mx"))
        self.assertFalse(os.path.exists(self.path("e.sqlite")), "found before a point is computed")

    def test_whatif_takes_a_sketch(self):
        sketch = self.write("small: {matmul: {shape: [64, 64, 64]}}\nother: {matmul: {shape: [64, 64, 128]}}\n", "s.yaml")
        def whatif(*options):
            return subprocess.run([FOREWARP, "whatif", sketch, "--gpu", "h200-sxm", "--no-cache", *options], capture_output=True, text=True,
                                  check=False)
        done = whatif("--case", "small")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("small on h200-sxm:", done.stdout)
        self.assertIn("small, other", whatif().stderr)
        self.assertIn("leave --launch out", whatif("--case", "small", "--launch", sketch).stderr)

    def test_whatif_says_what_a_kernel_is_bound_by(self):
        launch = self.write("""\
tiny:
  kernel: softmax_rows
  grid: [4]
  block: [64]
  buffers: {in: {bytes: 1024, fill: zero}, out: {bytes: 1024, fill: zero}}
  args: [{pointer: in}, {pointer: out}, {i32: 64}]
""", "launch.yaml")
        def whatif(*options):
            return subprocess.run([FOREWARP, "whatif", f"{HOME}/traces/sm_90/reduce_01_softmax_rows.cubin", "--launch", launch,
                                   "--gpu", "h200-sxm", "--no-cache", *options], capture_output=True, text=True, check=True).stdout
        text = whatif("--threads", "1", "--json", self.path("w.json"))
        self.assertIn("Bound by launch overhead: halved, it takes", text)
        self.assertIn("Most sensitive to launch overhead: doubled, it takes", text)
        with open(self.path("w.json"), encoding="utf-8") as file:
            found = json.load(file)["whatif"]
        self.assertEqual(json.loads(whatif("--threads", "3", "--json", "-"))["whatif"], found)
        by_name = {row["resource"]: row for row in found["resources"]}
        self.assertEqual(len(by_name), len(found["resources"]))
        self.assertAlmostEqual(by_name["clock of SMs and L2"]["half"]["time_ns"], 2 * found["time_ns"], delta=0.3 * found["time_ns"])
        self.assertEqual(by_name["FP64 rate"]["half"]["change_pct"], 0)
        self.assertIn("counted whole", by_name["FMA rate"]["twice"]["impossible"])

    @unittest.skipUnless(shutil.which("mpirun") and os.path.exists(os.path.join(os.path.dirname(FOREWARP), "libforewarp_mpi.so")),
                         "built without MPI")
    def test_ranks_give_the_rows_of_one_process(self):
        self.write(SWEEP)
        alone = self.run_sweep("one.sqlite", "--threads", "1", "--csv", "-").stdout
        ranks = self.run_sweep("ranks.sqlite", "--threads", "1", "--csv", "-",
                               before=["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"])
        self.assertEqual(ranks.stdout, alone)
        self.assertEqual(self.rows("ranks.sqlite"), self.rows("one.sqlite"))

    @unittest.skipUnless(LONG, "takes a minute")
    def test_killed_ten_times_the_database_is_the_same(self):
        self.write(SWEEP.replace("[1, 2, 3]", "{from: 1, to: 50, step: 1}"))
        start = time.monotonic()
        self.run_sweep("whole.sqlite")
        whole = time.monotonic() - start
        self.assertEqual(len(self.rows("whole.sqlite")), 200)
        chance, before = random.Random(7), {}
        for kill in range(10):
            running = subprocess.Popen(self.command("killed.sqlite"), stdout=subprocess.DEVNULL)
            time.sleep(whole * chance.uniform(0.02, 0.12))
            running.send_signal(signal.SIGKILL)
            running.wait()
            if not os.path.exists(self.path("killed.sqlite")):
                continue
            kept = self.kept("killed.sqlite")
            print(f"kill {kill + 1}: {len(kept)} of 200 points kept", file=sys.stderr)
            self.assertLessEqual(before.items(), kept.items())  # nothing is lost
            before = kept
        self.assertLess(len(before), 200, "the kills came too late to tell anything")
        self.run_sweep("killed.sqlite")
        self.assertEqual(self.rows("killed.sqlite"), self.rows("whole.sqlite"))

    def kept(self, name):
        with sqlite3.connect(self.path(name)) as database:
            exists = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'results'").fetchone()[0]
            return dict(database.execute("SELECT key, result FROM results WHERE done = 1").fetchall()) if exists else {}


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])

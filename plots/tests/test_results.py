"""Bad input gives one clear message; results of every command are read."""
import io
import json
import os
import tempfile
import unittest
from contextlib import redirect_stderr

import support
from forewarp_plots import __main__ as command
from forewarp_plots import machines, results


class Bad(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def fails(self, code, words, *parts):
        error = io.StringIO()
        out = self.path("out.json")
        with redirect_stderr(error):
            try:
                got = command.main(words + ["--out", out])
            except SystemExit as leave:
                got = leave.code
        self.assertEqual(got, code, error.getvalue())
        self.assertEqual(error.getvalue().count("forewarp: "), 1)
        for part in parts:
            self.assertIn(part, error.getvalue())
        self.assertFalse(os.path.exists(out))

    def test_files(self):
        self.fails(1, ["plot", "waves", self.path("none.json")], "none.json", "No such file")
        self.fails(1, ["plot", "waves", self.path("a.json", "{")], "a.json", "not JSON")
        self.fails(1, ["plot", "waves", self.path("a.json", "[" * 100000)], "a.json")
        self.fails(1, ["plot", "waves", self.path("a.json", "[1]")], "no result of forewarp")
        self.fails(1, ["plot", "waves", self.path("a.json", '{"forewarp": "0.1.0", "cases": 3, "gpu": "x"}')], "damaged")
        self.fails(1, ["plot", "waves", self.path("a.json", '{"forewarp": "0.1.0", "cases": [], "gpu": "x"}')], "no launch")
        self.fails(1, ["plot", "waves", self.path("a.json", '{"forewarp": "0.1.0", "cases": [{"id": "q"}], "gpu": "x"}')],
                   "case q holds no launch")

    def test_every_part_that_may_be_missing(self):
        """A result without one of its parts never ends in a traceback."""
        with open(support.result("launch"), encoding="utf-8") as file:
            whole = json.load(file)
        for part in list(whole["cases"][0]):
            cut = json.loads(json.dumps(whole))
            for case in cut["cases"]:
                del case[part]
            path = self.path("cut.json", json.dumps(cut))
            for kind in ("waves", "coalescing", "divergence", "occupancy", "stalls", "roofline", "traffic", "timeline"):
                error = io.StringIO()
                with redirect_stderr(error):
                    code = command.main(["plot", kind, path, "--out", self.path("out.json")])
                self.assertIn(code, (0, 1), (part, kind))
                self.assertEqual(error.getvalue().count("forewarp: "), code)

    def test_words(self):
        good = support.result("launch")
        self.fails(2, ["plot", "cake", good], "cake", "roofline")
        self.fails(2, ["plot", "timeline", good, "--mode", "loop"], "loop")
        self.fails(1, ["plot", "waves", good, "--case", "nobody"], "nobody", "divergence_by_lane_2_check_1000")
        self.fails(1, ["plot", "coalescing", good, "--pc", "0x9990"], "0x9990")
        self.fails(1, ["plot", "coalescing", good, "--pc", "here"], "here")
        self.fails(1, ["plot", "traffic", good, "--formula", "x"], "CASE:LEVEL=BYTES")
        self.fails(1, ["plot", "traffic", good, "--formula", "a:L9=3"], "a, L9")
        self.fails(1, ["plot", "roofline", good, "--machine", "tpu-v9"], "tpu-v9")
        self.fails(1, ["plot", "validation", good], "no launch in it was measured")
        self.fails(1, ["plot", "sweep", support.result("launch"), "--points", self.path("p.csv", "a,b\n1,2\n")], "p.csv")
        self.fails(1, ["plot", "waves", support.result("suite")], "holds no block_spans")

    def test_ending(self):
        error = io.StringIO()
        with redirect_stderr(error):
            code = command.main(["plot", "waves", support.result("launch"), "--out", self.path("x.gif")])
        self.assertEqual(code, 2)
        self.assertIn("x.gif", error.getvalue())


class Good(unittest.TestCase):
    def test_machines_say_where_numbers_come_from(self):
        machine = machines.read_machine("tpu-v5e")
        self.assertEqual(machine["pipes"]["bf16"], 1.97e14)
        self.assertEqual(machine["levels"], {"HBM": 8.19e11})

    def test_comparison(self):
        with open(support.result("suite"), encoding="utf-8") as file:
            one = json.load(file)
        group = {"gpu": one["gpu"], "machine": one["machine"], "cases": one["cases"]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"forewarp": one["forewarp"], "gpus": [group, group | {"gpu": "other"}]}, file)
            read = results.read_results([path])
            self.assertEqual([x.gpu for x in read], ["h200-sxm"] * 3 + ["other"] * 3)
            self.assertEqual(results.labels(read)[0], "sgemm_shared_tiled_512 on h200-sxm")

    def test_numbers(self):
        self.assertEqual(results.tidy([1.23456789, 3.0, {"a": 1e20}]), [1.23457, 3, {"a": 1e20}])
        self.assertEqual(results.si(1.5e12, "B/s"), "1.5 TB/s")
        self.assertEqual(results.duration(1234.5), "1.234 us")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""forewarp advise: advise_test.py FOREWARP [--faults]. Errors, the shape of its answers, and whether the first advice mends
kernels with a known fault and sketches with a poor choice; --faults takes every kernel of kernels/faults."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

FOREWARP = ""
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(HOME, "kernels", "faults"))
import check_faults  # noqa: E402  the list of faults

GPU = "h200-sxm"
# What a first advice is called beside the names of causes: the same thing said of a launch, or of the bytes moved.
ALSO = {"tail": ("whole_waves", "grid"), "hbm": ("half_the_bytes",), "l1": ("half_the_bytes", "vector"), "shared_memory": ("vector",),
        "block_slots": ("block",), "shared_memory_size": ("block",)}
# Of all faults: what was reached at least.
REQUIRED = {"first": 15, "gain": 12}
CLOSE = 0.15  # of the mended twin's time

os.environ["FOREWARP_CACHE"] = ""

POOR = """poor:
  matmul: {type: f16, shape: [256, 256, 512], tile: [64, 64, 32], warp: [32, 32], stages: 2}
"""
ROWS = """rows:
  elementwise: {shape: [512, 512], tensors: {x: {type: f32, layout: columns}, y: f32}, compute: ["y = 2 * x"]}
"""


def run(*words, folder=HOME):
    return subprocess.run([FOREWARP, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800, check=False, cwd=folder)


def predicted(stem, case, path, budget="1", cache="cold"):
    done = run("predict", f"traces/sm_90/{stem}.cubin", "--launch", f"traces/{stem}.yaml", "--gpu", GPU, "--case", case, "--budget", budget,
               "--cache", cache, "--json", path)
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as file:
        return json.load(file)["cases"][0]["metrics"]["gpc__cycles_elapsed.max"]


def advised(path, *more, folder=HOME):
    done = run("advise", path, "--json", "-", *more, folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["advice"]


def of_fault(folder, stem, name, work, budget="4"):
    """The first advice, whether it is the fault's, and the time with it beside that of the mended twin."""
    path = os.path.join(folder, name + ".json")
    predicted(stem, "fault_" + name, path, budget)
    twin = predicted(stem, "mended_" + name, os.path.join(folder, "twin.json"), budget) / work
    suggestions = advised(path)[0]["suggestions"]
    first = suggestions[0] if suggestions else {"change": "", "cycles": float("nan"), "gain_pct": 0, "where": ""}
    return first, twin


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="forewarp_advise_test_")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def sketched(self, text):
        self.path("sketch.yaml", text)
        done = run("sketch", "sketch.yaml", "--gpu", GPU, "--budget", "1", "--json", "result.json", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path("result.json")

    def assert_fails(self, code, words, *parts):
        done = run(*words, folder=self.folder)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(done.stderr.count("forewarp: "), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Errors(Base):
    def test_no_result(self):
        self.assert_fails(2, ["advise"], "RESULT is missing")
        self.assert_fails(1, ["advise", "none.json"], "none.json", "cannot be opened")
        self.path("text.json", "no json")
        self.assert_fails(1, ["advise", "text.json"], "text.json", "no result of forewarp")
        self.path("several.json", '{"forewarp": "0", "gpus": []}')
        self.assert_fails(1, ["advise", "several.json"], "several GPUs")

    def test_a_result_of_an_older_version(self):
        self.path("old.json", '{"forewarp": "0.0.1", "gpu": "h200-sxm", "cases": []}')
        self.assert_fails(1, ["advise", "old.json"], "old.json", "0.0.1", "predict it again")
        self.path("odd.json", '{"forewarp": "0.0.1", "cases": [], "inputs": {"command": "predict"}}')
        self.assert_fails(1, ["advise", "odd.json"], "odd.json", "not understood", "predict it again")

    def test_a_sketch_that_changed_or_went_away(self):
        self.sketched(POOR)
        self.path("sketch.yaml", POOR + "# changed\n")
        self.assert_fails(1, ["advise", "result.json"], "sketch.yaml", "has changed since result.json", "predict it again")
        os.remove(self.path("sketch.yaml"))
        self.assert_fails(1, ["advise", "result.json"], "sketch.yaml", "is not there", "current folder")

    def test_an_image_or_a_launch_file_that_changed(self):
        stem = os.path.join(HOME, "traces", "sm_90", "reduce_03_sum_atomic.cubin")
        for suffix in ("", ".json"):
            shutil.copy(stem + suffix, self.path("k.cubin" + suffix))
        shutil.copy(os.path.join(HOME, "traces", "reduce_03_sum_atomic.yaml"), self.path("k.yaml"))
        done = run("predict", "k.cubin", "--launch", "k.yaml", "--gpu", GPU, "--case", "sum_atomic_blocks_check_1000", "--json", "r.json",
                   folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_fails(1, ["advise", "r.json", "--case", "other"], "r.json", "no case 'other'")
        with open(self.path("r.json"), encoding="utf-8") as file:
            result = json.load(file)
        result["inputs"]["image"]["hash"] = "0" * 16
        self.path("other.json", json.dumps(result))
        self.assert_fails(1, ["advise", "other.json"], "k.cubin", "has changed since other.json")
        with open(self.path("k.yaml"), "a", encoding="utf-8") as file:
            file.write("\n")
        self.assert_fails(1, ["advise", "r.json"], "k.yaml", "has changed since r.json")

    def test_usage(self):
        self.assert_fails(2, ["advise", "r.json", "--top", "0"], "--top")


class Advice(Base):
    def test_a_fault_is_mended_first(self):
        for stem, name, change, line in (("faults_01_memory", "column_load", "uncoalesced", "01_memory.cu:12"),
                                         ("faults_02_execution", "one_block_more", "whole_waves", "")):
            work = {f[1]: f[4] for f in check_faults.manifest()}[name]
            first, twin = of_fault(self.folder, stem, name, work)
            self.assertEqual(first["change"], change)
            self.assertLess(abs(first["cycles"] / twin - 1), CLOSE, name)
            self.assertTrue(first["where"].startswith(line), first["where"])
            self.assertGreater(first["evidence"]["cycles_before"], first["evidence"]["cycles_after"])

    def test_a_poor_tile_gets_a_better_one(self):
        path = self.sketched(POOR)
        answers = [run("advise", path, "--threads", threads, "--json", "-", folder=self.folder).stdout for threads in ("1", "3")]
        self.assertEqual(*answers)
        advice = json.loads(answers[0])["advice"][0]
        best = advice["suggestions"][0]
        self.assertGreater(best["gain_pct"], 5)
        # Made so, it takes as long as was said.
        keys = dict(part.split(" instead of ")[0].split(", which")[0].split(": ", 1) for part in
                    best["what"].replace(", tile:", "\ntile:").replace(", warp:", "\nwarp:").replace(", stages:", "\nstages:")
                    .replace(", ahead:", "\nahead:").split("\n"))
        made = {"type": "f16", "shape": "[256, 256, 512]", "tile": "[64, 64, 32]", "warp": "[32, 32]", "stages": "2"} | keys
        other = self.sketched("better:\n  matmul: {" + ", ".join(f"{key}: {value}" for key, value in made.items()) + "}\n")
        with open(other, encoding="utf-8") as file:
            cycles = json.load(file)["cases"][0]["metrics"]["gpc__cycles_elapsed.max"]
        self.assertEqual(cycles, best["cycles"])
        self.assertEqual(advice["suggestions"], sorted(advice["suggestions"], key=lambda s: -s["gain_pct"]))

    def test_a_layout_and_what_it_may_cost(self):
        advice = advised(self.sketched(ROWS), folder=self.folder)[0]
        layout = [s for s in advice["suggestions"] if "tensors.x.layout: rows" in s["what"]]
        self.assertTrue(layout)
        self.assertIn("lay it out so", layout[0]["cost"])
        self.assertRegex(layout[0]["where"], r"^sketch\.yaml:2:\d+")

    def test_launches_that_could_be_one(self):
        path = self.path("elu.json")
        predicted("elementwise_02_elu", "elu_unfused_1mi", path, cache="sequence")
        last = advised(path, "--top", "2")[-1]
        self.assertNotIn("launch", last)
        self.assertEqual(last["suggestions"][0]["change"], "fuse")
        self.assertGreater(last["suggestions"][0]["gain_pct"], 10)

    def test_text(self):
        path = self.path("r.json")
        predicted("reduce_03_sum_atomic", "sum_atomic_threads_check_1000", path)
        done = run("advise", path, "--top", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("changes tried", " 1  ", "cycles", "cost"):
            self.assertIn(part, done.stdout)


def all_faults():
    reached = {"first": 0, "gain": 0}
    with tempfile.TemporaryDirectory() as folder:
        for stem, name, cause, _, work in check_faults.manifest():
            first, twin = of_fault(folder, stem, name, work, "10")
            right = first["change"] == cause or first["change"] in ALSO.get(cause, ())
            close = abs(first["cycles"] / twin - 1) <= CLOSE
            reached["first"] += right
            reached["gain"] += right and close
            print(f"{name:16}{cause:20}{first['change']:20}{first['gain_pct']:6.1f} %{first['cycles']:10.0f}{twin:10.0f}"
                  f"{'' if right else '  other'}{'' if close else '  off'}", flush=True)
    print(reached)
    return all(reached[what] >= REQUIRED[what] for what in REQUIRED)


if __name__ == "__main__":
    FOREWARP = os.path.abspath(sys.argv[1])
    if "--faults" in sys.argv:
        sys.exit(0 if all_faults() else f"fewer than {REQUIRED}")
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

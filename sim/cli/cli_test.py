#!/usr/bin/env python3
"""Drives the built command: cli_test.py FOREWARP [--long]. What users see: one clear message and an exit code when
their input is wrong, nothing left behind, the same bytes for any number of threads."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

FOREWARP = ""
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACES = os.path.join(HOME, "traces")
CUBIN = os.path.join(TRACES, "sm_90", "matmul_03_shared_tiled.cubin")
LAUNCH = os.path.join(TRACES, "matmul_03_shared_tiled.yaml")
CASE = "sgemm_shared_tiled_check_64"
GPU = "h200-sxm"

# Tests make everything anew; those of the cache name a folder of their own.
os.environ["FOREWARP_CACHE"] = ""

GOOD = """small:
  kernel: sgemm_shared_tiled
  grid: [2, 2, 1]
  block: [32, 32, 1]
  buffers:
    a: {bytes: 16384, fill: {uniform: {type: f32, low: -1, high: 1, seed: 1}}}
    b: {bytes: 16384, fill: {uniform: {type: f32, low: -1, high: 1, seed: 2}}}
    c: {bytes: 16384, fill: zero}
  args: [{pointer: a}, {pointer: b}, {pointer: c}, {i32: 64}, {i32: 64}, {i32: 64}]
"""


def run(*words, stdin=subprocess.DEVNULL):
    return subprocess.run([FOREWARP, *words], stdin=stdin, capture_output=True, text=True, timeout=900, check=False)


def run_on_terminal(*words, **variables):
    """(exit code, standard output, standard error), both streams being terminals."""
    ends = [pty.openpty() for _ in range(2)]
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"} | variables
    with subprocess.Popen([FOREWARP, *words], stdin=subprocess.DEVNULL, stdout=ends[0][1], stderr=ends[1][1], env=env) as process:
        for _, inner in ends:
            os.close(inner)
        said = ["", ""]
        for at, (outer, _) in enumerate(ends):
            while True:
                try:
                    data = os.read(outer, 65536)
                except OSError:  # the other end is closed
                    break
                if not data:
                    break
                said[at] += data.decode()
            os.close(outer)
    return process.returncode, said[0].replace("\r\n", "\n"), said[1].replace("\r\n", "\n")


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="forewarp_cli_test_")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w" if isinstance(text, str) else "wb") as file:
                file.write(text)
        return path

    def files(self):
        return sorted(os.listdir(self.folder))

    def assert_fails(self, code, words, *parts):
        """One message on standard error that holds all parts; nothing on standard output; no files made."""
        before = self.files()
        result = run(*words)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("forewarp: "), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(self.files(), before)

    def predict(self, launch_text, **changes):
        launch = self.path("launch.yaml", launch_text)
        return ["predict", changes.get("image", CUBIN), "--launch", launch, "--gpu", changes.get("gpu", GPU)]


class List(Base):
    def test_kernels_and_their_arguments(self):
        result = run("list", os.path.join(TRACES, "sm_90", "field_08_arguments.cubin"), "--json", "-")
        kernels = {k["kernel"]: k for k in json.loads(result.stdout)["kernels"]}
        scale = kernels["arguments_scale"]
        self.assertEqual(scale["parameters"], [{"offset": 0, "size": 56}])
        self.assertEqual((scale["understood"], scale["refused"]), (True, []))
        self.assertEqual(len(kernels["arguments_batched"]["parameters"]), 6)
        self.assertIn("56 @0", run("list", os.path.join(TRACES, "sm_90", "field_08_arguments.cubin")).stdout)

    def test_names_are_no_commands_to_the_terminal(self):
        image = self.path("odd.cubin")
        with open(os.path.join(TRACES, "sm_90", "field_08_arguments.cubin"), "rb") as file:
            self.path("odd.cubin", file.read().replace(b"arguments_scale", b"\x1b[31ments_scale"))
        with open(os.path.join(TRACES, "sm_90", "field_08_arguments.cubin.json")) as file:
            self.path("odd.cubin.json", file.read().replace("arguments_scale", "\\u001b[31ments_scale"))
        launch = self.path("launch.yaml", "a: {kernel: nothing, grid: [1, 1, 1], block: [32, 1, 1], buffers: {}, args: []}")
        listed, refused = run("list", image), run("predict", image, "--launch", launch, "--gpu", GPU)
        self.assertEqual((listed.returncode, refused.returncode), (0, 1), refused.stderr)
        for text in (listed.stdout, refused.stderr):
            self.assertIn("?[31ments_scale", text)
            self.assertNotIn("\x1b", text)

    def test_a_template_can_be_read_back(self):
        for stem, kernel in (("field_08_arguments", "arguments_scale"), ("matmul_03_shared_tiled", "sgemm_shared_tiled")):
            image = os.path.join(TRACES, "sm_90", stem + ".cubin")
            template = run("list", image, "--kernel", kernel, "--launch-template").stdout
            launch = self.path("template.yaml", template.replace("fields: []", "fields: [{at: 0, u64: 0}]"))
            result = run("predict", image, "--launch", launch, "--gpu", GPU)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_mistakes(self):
        self.assert_fails(1, ["list", CUBIN, "--kernel", "none"], "there is no kernel 'none'")
        self.assert_fails(2, ["list", os.path.join(TRACES, "sm_90", "field_08_arguments.cubin"), "--launch-template"], "--kernel")


class Colour(Base):
    CODE = re.compile("\x1b\\[[0-9;]*m")

    def words(self):
        launch = self.path("launch.yaml", GOOD)
        return ["predict", CUBIN, "--launch", launch, "--gpu", GPU, "--causes", "counted"]

    def test_a_pipe_gets_none(self):
        result = run(*self.words())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_a_terminal_gets_it_and_columns_stay(self):
        plain = run(*self.words()).stdout
        code, out, _ = run_on_terminal(*self.words())
        self.assertEqual(code, 0)
        self.assertIn("\x1b[1mWhere the time goes\x1b[0m", out)
        self.assertEqual(self.CODE.sub("", out), plain)
        for always in (run(*self.words(), "--color", "always").stdout,
                       run_on_terminal(*self.words(), "--color", "always", NO_COLOR="1")[1]):
            self.assertEqual(always, out)

    def test_none_where_it_is_not_wanted(self):
        plain = run(*self.words()).stdout
        for words, variables in ((["--color", "never"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})):
            code, out, error = run_on_terminal(*self.words(), *words, **variables)
            self.assertEqual((code, out), (0, plain))
            self.assertEqual(self.CODE.findall(error), [])

    def test_errors_are_red(self):
        for words in (["describe", "gpu", "h300"], ["report", self.path("none.json"), "--html", self.path("none.html")]):
            code, _, error = run_on_terminal(*words)
            self.assertEqual(code, 1)
            self.assertTrue(error.startswith("\x1b[1;31mforewarp: "), error)
            self.assertEqual(self.CODE.sub("", error), run(*words).stderr)

    def test_the_word_warning_is_yellow(self):
        code, _, error = run_on_terminal(
            "predict", os.path.join(TRACES, "sm_90", "field_01_reduce_scan_sort.cubin"), "--launch",
            os.path.join(TRACES, "field_01_reduce_scan_sort.yaml"), "--case", "cas_loop_64ki", "--gpu", GPU, "--precision", "100",
            "--causes", "counted")
        self.assertEqual(code, 0, error)
        self.assertIn("\x1b[33mforewarp: warning:\x1b[0m ", error)

    def test_names_are_still_no_commands_to_the_terminal(self):
        launch = self.path("launch.yaml", GOOD.replace("small:", '"sm\\e[2Jall":'))
        result = run("predict", CUBIN, "--launch", launch, "--gpu", GPU, "--color", "always")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("sm?[2Jall", result.stderr)
        self.assertNotIn("\x1b[2J", result.stderr)

    def test_progress_is_drawn_where_the_terminal_can_take_it_back(self):
        # Progress is drawn after a second; products of 128 take some.
        launch = self.path("launch.yaml", GOOD.replace("16384", "65536").replace("[2, 2, 1]", "[4, 4, 1]").replace("64}", "128}"))
        words = ["whatif", CUBIN, "--launch", launch, "--case", "small", "--gpu", GPU, "--threads", "1"]
        _, out, error = run_on_terminal(*words)
        self.assertIn("\x1b[1;36m", out)
        self.assertIn("\r\x1b[K\x1b[2m", error)
        self.assertTrue(error.endswith("\r\x1b[K"), error[-80:])
        self.assertIn("\r\x1b[K", run_on_terminal(*words, "--color", "never")[2])
        self.assertNotIn("\x1b", run_on_terminal(*words, TERM="dumb")[2])

    def test_a_wrong_choice(self):
        self.assert_fails(2, ["describe", "gpu", "--color", "purple"], "--color is auto, always or never")


class Usage(Base):
    def test_no_command(self):
        result = run()
        self.assertEqual(result.returncode, 2)
        self.assertIn("predict", result.stderr)

    def test_unknown_command(self):
        self.assert_fails(2, ["predcit"], "predcit")

    def test_unknown_option(self):
        self.assert_fails(2, ["predict", CUBIN, "--lanuch", LAUNCH], "lanuch")

    def test_missing_image(self):
        self.assert_fails(2, ["predict", "--launch", LAUNCH, "--gpu", GPU], "IMAGE")

    def test_missing_launch(self):
        self.assert_fails(2, ["predict", CUBIN, "--gpu", GPU], "--launch")

    def test_missing_gpu(self):
        self.assert_fails(2, ["predict", CUBIN, "--launch", LAUNCH], "--gpu")

    def test_two_images(self):
        self.assert_fails(2, ["predict", CUBIN, CUBIN, "--launch", LAUNCH, "--gpu", GPU])

    def test_bad_cache(self):
        self.assert_fails(2, ["predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--cache", "lukewarm"], "lukewarm")

    def test_a_trace_has_no_sequence(self):
        self.assert_fails(2, ["simulate", "TRACE", "--gpu", GPU, "--cache", "sequence"], "forewarp predict")

    def test_bad_blocks_to_watch(self):
        words = ["predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU]
        for block in ("-1", "x", "1.5", "99999999999", ""):
            self.assert_fails(2, words + ["--warps=" + block], "warps")
        for cycles in ("0", "-5", "1000001"):
            self.assert_fails(2, words + ["--warps", "0", "--warps-cycles=" + cycles], "warps-cycles")
        self.assert_fails(2, words + ["--warps-cycles", "100"], "--warps BLOCK")

    def test_bad_threads(self):
        for threads in ("0", "-1", "many"):
            self.assert_fails(2, ["predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--threads=" + threads], "threads")

    def test_bad_dump(self):
        self.assert_fails(2, ["emulate", CUBIN, "--launch", LAUNCH, "--case", CASE, "--dump", "c"], "BUFFER=FILE")

    def test_unknown_topic(self):
        self.assert_fails(2, ["describe", "weather"], "weather")

    def test_help_of_every_command(self):
        for command in ("predict", "advise", "addresses", "trace", "simulate", "emulate", "validate", "calibrate", "compare", "describe", "plot", "report", "timeline"):
            result = run(command, "--help")
            self.assertEqual(result.returncode, 0, command)
            self.assertIn("Usage: forewarp " + command, result.stdout)
            self.assertGreaterEqual(result.stdout.split("Examples:")[1].count("forewarp " + command), 2)

    def test_help_wins_over_missing_arguments(self):
        self.assertEqual(run("predict", "--gpu", GPU, "--help").returncode, 0)


class Drawing(Base):
    RESULT = os.path.join(HOME, "plots", "tests", "results", "sequence.json")

    def test_a_specification(self):
        out = self.path("waves.json")
        result = run("plot", "waves", self.RESULT, "--out", out, "--title", "Two words")
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", ""))
        with open(out) as file:
            self.assertEqual(json.load(file)["title"]["text"], "Two words")

    def test_a_trace_for_perfetto(self):
        out = self.path("trace.json")
        self.assertEqual(run("timeline", self.RESULT, "--perfetto", out).returncode, 0)
        with open(out) as file:
            self.assertTrue(json.load(file)["traceEvents"])

    def test_bad_input(self):
        self.assert_fails(1, ["plot", "waves", self.path("none.json"), "--out", self.path("x.json")], "none.json")
        self.assert_fails(1, ["report", CUBIN, "--html", self.path("x.html")], "matmul_03_shared_tiled.cubin")

    def test_usage(self):
        self.assert_fails(2, ["plot", "waves", self.RESULT], "--out")
        self.assert_fails(2, ["plot", "cake", self.RESULT, "--out", self.path("x.json")], "cake")
        self.assert_fails(2, ["plot", "waves", self.RESULT, "--out", self.path("x.gif")], "x.gif")
        self.assert_fails(2, ["report", "--html", self.path("x.html")], "RESULT.json")
        self.assert_fails(2, ["timeline", self.RESULT], "--perfetto")


class BadInput(Base):
    def test_missing_cubin(self):
        self.assert_fails(1, self.predict(GOOD, image=self.path("none.cubin")), "none.cubin")

    def test_truncated_cubin(self):
        with open(CUBIN, "rb") as file:
            whole = file.read()
        for size in (0, 3, 63, 200, len(whole) // 2):
            image = self.path("cut.cubin", whole[:size])
            shutil.copy(CUBIN + ".json", image + ".json")
            self.assert_fails(1, self.predict(GOOD, image=image), "cut.cubin")

    def test_foreign_cubin(self):
        image = self.path("foreign.cubin", b"\x7fELF\x02\x01\x01" + bytes(57) + b"not a cubin at all")
        self.assert_fails(1, self.predict(GOOD, image=image), "foreign.cubin")
        host = self.path("host.cubin", open(FOREWARP, "rb").read(100000))
        self.assert_fails(1, self.predict(GOOD, image=host), "host.cubin")

    def test_code_for_another_architecture(self):
        self.assert_fails(1, self.predict(GOOD, gpu="a100-sxm4-80gb"), "sm_90", "sm_80")

    def test_unknown_gpu(self):
        self.assert_fails(1, self.predict(GOOD, gpu="h2000"), "h2000", GPU)

    def test_misspelt_key(self):
        self.assert_fails(1, self.predict(GOOD.replace("grid:", "gird:")), "launch.yaml:", "gird")

    def test_no_yaml(self):
        self.assert_fails(1, self.predict("{a: [1, 2"), "launch.yaml")

    def test_grid_of_zero(self):
        self.assert_fails(1, self.predict(GOOD.replace("[2, 2, 1]", "[2, 0, 1]")), "launch.yaml:3", "grid")

    def test_unknown_kernel(self):
        self.assert_fails(1, self.predict(GOOD.replace("sgemm_shared_tiled", "sgemm_shared_tilde")), "sgemm_shared_tilde")

    def test_name_that_matches_two_kernels(self):
        image = os.path.join(TRACES, "sm_90", "attention_01_unfused.cubin")
        self.assert_fails(1, self.predict(GOOD.replace("sgemm_shared_tiled", "attention_"), image=image), "attention_", "attention_qk")

    def test_block_over_the_limits(self):
        self.assert_fails(1, self.predict(GOOD.replace("[32, 32, 1]", "[64, 32, 1]")), "2048", "1024")

    def test_shared_memory_over_the_limits(self):
        text = GOOD.replace("  block:", "  dynamic_shared_bytes: 300000\n  block:")
        self.assert_fails(1, self.predict(text), "shared")

    def test_arguments_that_do_not_fit(self):
        self.assert_fails(1, self.predict(GOOD.replace(", {i32: 64}]", "]")), "launch.yaml:", "argument")
        self.assert_fails(1, self.predict(GOOD.replace("{i32: 64}]", "{f64: 64}]")), "launch.yaml:", "argument")

    def test_argument_without_buffer(self):
        self.assert_fails(1, self.predict(GOOD.replace("{pointer: c}", "{pointer: d}")), "launch.yaml:", "d")

    def test_unknown_case(self):
        self.assert_fails(1, ["predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--case", "nothing"], "nothing", CASE)

    def test_access_out_of_bounds(self):
        self.assert_fails(1, ["emulate", CUBIN, "--launch", self.path("launch.yaml", GOOD.replace("bytes: 16384, fill: zero", "bytes: 64, fill: zero")),
                              "--dump", "c=" + self.path("c.bin")])

    def test_unknown_buffer(self):
        self.assert_fails(1, ["emulate", CUBIN, "--launch", LAUNCH, "--case", CASE, "--dump", "x=" + self.path("x.bin")], "'x'", "a, b, c")

    def test_broken_trace(self):
        self.assert_fails(1, ["simulate", self.path("broken.fwt", "no trace"), "--gpu", GPU], "broken.fwt")

    def test_unknown_suite(self):
        self.assert_fails(1, ["validate", "--suite", "nothing"], "nothing")

    def test_unknown_unit(self):
        self.assert_fails(1, ["calibrate", "--unit", "nothing"], "nothing", "branch")

    def test_calibration_without_profiles(self):
        self.assert_fails(1, ["calibrate", "--unit", "copy_parts", "--measured", "h200"], "'h200'", "h200-sxm")

    def test_quantities_that_were_not_measured_are_named(self):
        done = run("calibrate", "--unit", "copy_parts", "--measured", "h200-sxm", "--no-proposals")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Left out: 204 quantities, of which the profiles of h200-sxm have no value", done.stdout)

    def test_broken_suites(self):
        self.assert_fails(1, ["validate", "--suites", self.path("suites.yaml", "a: {titel: x}\n"), "--suite", "a"], "suites.yaml:1", "titel")


class SketchedBudget(Base):
    """Products of many waves of tiles take less than others, unless it is said; each sketch of a file as it does alone."""
    SKETCHES = {
        "many": "many: {matmul: {shape: [4096, 4096, 32]}}\n",
        "stays": "stays: {matmul: {type: f16, shape: [4096, 4096, 32], persistent: true}}\n",
        "few": "few: {matmul: {shape: [1024, 1024, 32]}}\n",
        "rows": "rows: {reduction: {operation: sum, shape: [4096, 64]}}\n",
        "unsure": "unsure: {matmul: {type: bf16, shape: [4096, 4096, 1024], tile: [128, 128, 32], warp: [64, 64], stages: 4}}\n",
    }

    def predicted(self, *names, options=()):
        path, out = self.path("sketch.yaml", "".join(self.SKETCHES[name] for name in names)), self.path("out.json")
        done = run("sketch", path, "--gpu", GPU, "--json", out, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            return json.load(file)

    def detail(self, *names, options=()):
        return self.predicted(*names, options=options)["inputs"]["options"]["detailed_instructions"]

    def test_by_waves_and_family(self):
        usual, content = self.detail("rows"), ["--precision", "100"]
        self.assertEqual(self.detail("few"), usual)
        self.assertEqual(self.detail("many", options=content) * 10, usual * 4 // 5)
        self.assertEqual(self.detail("stays", options=content) * 10, usual * 4 // 5)
        self.assertEqual(self.detail("many", options=["--budget", "10"]), usual)
        self.assertEqual(self.detail("rows", options=["--budget", "2"]) * 5, usual)

    def test_what_less_leaves_open_takes_the_usual(self):
        def half_interval(result):
            case, = result["cases"]
            low, high = case["coverage"]["cycles_interval_95"]
            return (high - low) / 2 / case["metrics"]["gpc__cycles_elapsed.max"]
        less, more = self.predicted("unsure", options=["--budget", "0.8"]), self.predicted("unsure")
        self.assertGreater(half_interval(less), 0.1)
        self.assertLess(half_interval(more), 0.1)
        self.assertEqual(more["inputs"]["options"]["detailed_instructions"], self.detail("rows"))

    def test_neighbours_do_not_matter(self):
        def metrics(result):
            return {case["id"]: case["metrics"] for case in result["cases"]}
        self.assertEqual(metrics(self.predicted("many", "rows")), metrics(self.predicted("many")) | metrics(self.predicted("rows")))


class Output(Base):
    def test_unwritable_output_is_found_first(self):
        # The launch is far too large to simulate: the message has to come before the work.
        for path, part in ((os.path.join(self.folder, "no", "such", "folder.json"), "folder.json"), (self.folder, "folder")):
            words = ["predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--full", "--json", path]
            self.assert_fails(1, words, part)
            self.assert_fails(1, ["trace", CUBIN, "--launch", LAUNCH, "--out", path], part)
            self.assert_fails(1, ["emulate", CUBIN, "--launch", LAUNCH, "--case", CASE, "--dump", "c=" + path], part)

    def test_full_device(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        result = run("predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--case", CASE, "--json", "/dev/full")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertTrue(os.path.exists("/dev/full"))
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([FOREWARP, "describe", "opcodes"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 1)

    def test_devices_stay_devices(self):
        result = run("predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--case", CASE, "--json", "/dev/null")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(os.path.isfile("/dev/null"))


class Results(Base):
    def predict_case(self, *more):
        return run("predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--case", CASE, *more)

    def test_report(self):
        result = self.predict_case()
        self.assertEqual(result.returncode, 0, result.stderr)
        for part in ("gpc__cycles_elapsed.max", "Roofline", "Waves", "Divergence", "Coverage"):
            self.assertIn(part, result.stdout)

    def test_json_has_the_agreed_shape(self):
        path = self.path("out.json")
        result = self.predict_case("--json", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Roofline", result.stdout)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(list(document)[:3], ["forewarp", "gpu", "cases"])
        self.assertEqual(document["gpu"], GPU)
        case = document["cases"][0]
        self.assertEqual(list(case)[:8], ["id", "launch", "kernel", "grid", "block", "metrics", "coverage", "warnings"])
        self.assertEqual((case["id"], case["launch"], case["grid"], case["block"]), (CASE, 0, [2, 2, 1], [32, 32, 1]))
        self.assertGreater(case["metrics"]["gpc__cycles_elapsed.max"], 1000)
        self.assertEqual(case["coverage"]["warp_instructions"], case["metrics"]["smsp__inst_executed.sum"])
        self.assertEqual(self.files(), ["out.json"])

    def test_compare_and_swap_under_contention_is_warned_of(self):
        result = run("predict", os.path.join(TRACES, "sm_90", "field_01_reduce_scan_sort.cubin"), "--launch",
                     os.path.join(TRACES, "field_01_reduce_scan_sort.yaml"), "--case", "cas_loop_64ki", "--gpu", GPU, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(any("compare-and-swap" in warning for warning in json.loads(result.stdout)["cases"][0]["warnings"]))

    def test_json_to_standard_output_is_alone_there(self):
        result = self.predict_case("--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        json.loads(result.stdout)

    def test_trace_and_simulate_agree_with_predict(self):
        trace = self.path("out.fwt")
        self.assertEqual(run("trace", CUBIN, "--launch", LAUNCH, "--case", CASE, "--out", trace).returncode, 0)
        replayed = run("simulate", trace, "--gpu", GPU, "--json", "-")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        predicted = json.loads(self.predict_case("--json", "-").stdout)
        self.assertEqual(predicted.pop("inputs")["command"], "predict")
        self.assertEqual(json.loads(replayed.stdout), predicted)

    def test_emulate_computes_the_product(self):
        outputs = {name: self.path(name + ".bin") for name in "abc"}
        dumps = [word for name, path in outputs.items() for word in ("--dump", name + "=" + path)]
        result = run("emulate", CUBIN, "--launch", LAUNCH, "--case", CASE, *dumps)
        self.assertEqual(result.returncode, 0, result.stderr)
        import array
        a, b, c = (array.array("f", open(outputs[name], "rb").read()) for name in "abc")
        for row, column in ((0, 0), (17, 42), (63, 63)):
            self.assertAlmostEqual(c[64 * row + column], sum(a[64 * row + k] * b[64 * k + column] for k in range(64)), places=4)

    def test_every_launch_of_a_case(self):
        stem = "attention_01_unfused"
        result = run("predict", os.path.join(TRACES, "sm_90", stem + ".cubin"), "--launch", os.path.join(TRACES, stem + ".yaml"),
                     "--gpu", GPU, "--case", "attention_unfused_check_64", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([c["launch"] for c in json.loads(result.stdout)["cases"]], [0, 1, 2])

    def test_caches_that_earlier_launches_have_left(self):
        image, launch = os.path.join(TRACES, "sm_90", "elementwise_02_elu.cubin"), os.path.join(TRACES, "elementwise_02_elu.yaml")
        read = {}
        for cache in ("cold", "warm", "sequence"):
            result = run("predict", image, "--launch", launch, "--gpu", GPU, "--case", "elu_unfused_1mi", "--cache", cache,
                         "--causes", "counted", "--json", "-")
            cases = json.loads(result.stdout)["cases"]
            self.assertEqual({c["cache"] for c in cases}, {cache})
            read[cache] = [c["metrics"]["dram__bytes_read.sum"] for c in cases]
        self.assertTrue(all(read["cold"]))
        self.assertFalse(any(read["warm"]) or any(read["sequence"]))  # all of it fits L2

    def test_several_gpus_in_one_table(self):
        path = self.path("several.json")
        result = self.predict_case("--gpu", "h100-pcie", "--json", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        for gpu in (GPU, "h100-pcie"):
            self.assertRegex(result.stdout, rf"(?m){gpu} ")
        self.assertNotIn("measured", result.stdout)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual([one["gpu"] for one in document["gpus"]], [GPU, "h100-pcie"])

    def test_describe_for_programs(self):
        metrics = json.loads(run("describe", "metrics", "--json", "-").stdout)["metrics"]
        self.assertIn("dram__bytes_read.sum", [one["name"] for one in metrics])
        gpu = json.loads(run("describe", "gpu", GPU, "--json", "-").stdout)["gpus"][0]
        self.assertEqual(gpu["gpu"], GPU)
        self.assertTrue(all(one["source"] for one in gpu["numbers"]))
        self.assertIn("tensor_bf16", [roof["name"] for roof in gpu["roofs"]])
        opcodes = json.loads(run("describe", "opcodes", "--json", "-").stdout)["opcodes"]
        self.assertIn({"name": "TEX", "emulated": "refused", "timed": "no"}, opcodes)

    def test_describe(self):
        self.assertIn(GPU, run("describe", "gpu").stdout)
        self.assertIn("4.8", run("describe", "gpu", GPU).stdout)
        self.assertIn("dram__bytes_read.sum", run("describe", "metrics").stdout)
        opcodes = run("describe", "opcodes").stdout
        self.assertRegex(opcodes, r"(?m)^FFMA +values +own numbers +\w+: \w+")
        self.assertRegex(opcodes, r"(?m)^TEX +refused +no +-")
        self.assertRegex(opcodes, r"(?m)^MEMBAR +no effect +own numbers +")


class Completion(Base):
    """What bash offers, by the script that users source."""

    def offered(self, *words):
        script = (f'source {os.path.join(HOME, "completion", "forewarp.bash")}; COMP_WORDS=({FOREWARP} ' +
                  " ".join(f"'{word}'" for word in words) + f'); COMP_CWORD={len(words)}; _forewarp; printf "%s\\n" "${{COMPREPLY[@]}}"')
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    def test_commands_options_and_names(self):
        self.assertEqual(self.offered("pred"), ["predict"])
        self.assertIn("describe", self.offered(""))
        self.assertIn("--launch", self.offered("predict", "--l"))
        self.assertIn(GPU, self.offered("predict", "x.cubin", "--gpu", "h2"))
        self.assertIn("roofline", self.offered("plot", "roof"))
        self.assertEqual(self.offered("describe", "m"), ["metrics"])
        self.assertIn(CASE, self.offered("predict", CUBIN, "--launch", LAUNCH, "--case", CASE[:-2]))
        result = self.path("r.json")
        run("predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--case", CASE, "--json", result)
        self.assertEqual(self.offered("advise", result, "--case", ""), [CASE])


class Manual(Base):
    def test_a_page_of_each_command(self):
        folder = self.path("man")
        subprocess.run([sys.executable, "-B", os.path.join(HOME, "docs", "build.py"), "man", "--forewarp", FOREWARP, "--out", folder],
                       check=True, stdout=subprocess.DEVNULL)
        pages = {name: open(os.path.join(folder, "man1", name), encoding="utf-8").read() for name in os.listdir(os.path.join(folder, "man1"))}
        commands = re.findall(r"^  (\w+)  ", run("--help").stdout, re.M)
        self.assertGreater(len(commands), 10)
        self.assertEqual(sorted(pages), sorted(["forewarp.1", *(f"forewarp-{name}.1" for name in commands)]))
        for name in commands:
            self.assertIn(f"forewarp\\-{name} (1)", pages["forewarp.1"])
            page = pages[f"forewarp-{name}.1"].replace("\\-", "-")
            for option in re.findall(r"^  (--[a-z-]+)", run(name, "--help").stdout, re.M):
                self.assertIn(f".B {option}", page)
        if shutil.which("groff"):
            for name in pages:
                done = subprocess.run(["groff", "-man", "-ww", "-Tascii", os.path.join(folder, "man1", name)], capture_output=True, text=True, check=True)
                self.assertEqual(done.stderr, "", name)


class Bench(Base):
    """That it runs and says what it is for; never how fast."""

    def test_fields(self):
        path = self.path("bench.json")
        result = run("bench", "--class", "product, FMA-bound", "--times", "1", "--json", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        for part in ("class", "warp instructions", "seconds", "million simulated a second", "peak MiB", "detailed", "steady state"):
            self.assertIn(part, result.stdout)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(list(document), ["forewarp", "gpu", "times", "runs"])
        self.assertEqual((document["gpu"], document["times"]), (GPU, 1))
        self.assertEqual([run["mode"] for run in document["runs"]], ["detailed", "steady state"])
        for one in document["runs"]:
            self.assertEqual(list(one), ["class", "case", "mode", "warp_instructions", "simulated_warp_instructions", "seconds",
                                         "simulated_per_second", "peak_mib"])
            self.assertGreater(one["simulated_warp_instructions"], 0)
            self.assertLessEqual(one["simulated_warp_instructions"], one["warp_instructions"])
            self.assertGreater(one["seconds"], 0)
            self.assertGreater(one["peak_mib"], 1)

    def test_usage(self):
        self.assert_fails(2, ["bench", "--class", "no such"], "no such")
        self.assert_fails(2, ["bench", "--times", "0"], "times")


class Cache(Base):
    def predict_512(self, *words):
        result = run("predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--case", CASE, "--json", "-", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def kept(self, folder):
        return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)

    def test_what_is_kept_gives_the_same_bytes(self):
        folder = os.path.join(self.folder, "kept")
        made = self.predict_512("--no-cache", "--cache-folder", folder)
        self.assertFalse(os.path.exists(folder))
        self.assertEqual(self.predict_512("--cache-folder", folder), made)
        files = self.kept(folder)
        self.assertEqual(len(files), 3)
        written = [os.stat(file).st_ino for file in files]
        self.assertEqual(self.predict_512("--cache-folder", folder), made)
        self.assertEqual([os.stat(file).st_ino for file in files], written)

    def test_damaged_entries_are_made_again(self):
        folder = os.path.join(self.folder, "kept")
        made = self.predict_512("--cache-folder", folder)
        for file in self.kept(folder):
            with open(file, "rb") as f:
                good = f.read()
            for bad in (b"", good[: len(good) // 2], b"\0" * len(good), good[:-1] + bytes([good[-1] ^ 1])):
                with open(file, "wb") as f:
                    f.write(bad)
                self.assertEqual(self.predict_512("--cache-folder", folder), made)
                with open(file, "rb") as f:
                    self.assertEqual(f.read(), good)

    def test_several_processes_share_a_folder(self):
        folder = os.path.join(self.folder, "kept")
        words = [FOREWARP, "predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--case", CASE, "--json", "-", "--cache-folder", folder]
        running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
        outputs = {process.communicate(timeout=300)[0] for process in running}
        self.assertEqual(len(outputs), 1)
        self.assertEqual(len(self.kept(folder)), 3)

    def test_killed_at_any_moment_nothing_half_written_is_read(self):
        """Whatever is there after a kill is whole or beside its name, and the next run gives the same bytes."""
        made = self.predict_512("--no-cache")
        folder, json_file = os.path.join(self.folder, "kept"), self.path("out.json")
        words = [FOREWARP, "predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, "--case", CASE, "--json", json_file, "--cache-folder", folder]
        started = time.monotonic()
        subprocess.run(words, capture_output=True, check=True)
        whole = time.monotonic() - started
        for step in range(12):
            shutil.rmtree(folder, ignore_errors=True)
            if os.path.exists(json_file):
                os.remove(json_file)
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(whole * (step + 0.5) / 11)
            process.kill()
            process.wait()
            if os.path.exists(json_file):
                with open(json_file, encoding="utf-8") as f:
                    self.assertEqual(f.read(), made)
            self.assertEqual(self.predict_512("--cache-folder", folder), made)


class Long(Base):
    def test_few_seconds_say_less_but_nothing_that_more_do_not(self):
        path = self.path("p.yaml", "p: {matmul: {type: f32, shape: [4096, 4096, 4096], tile: [128, 128, 8], thread: [8, 8]}}\n")
        cases = {}
        for budget in (1, 3, 10):
            out = self.path("out.json")
            done = run("sketch", path, "--gpu", "h200-sxm", "--budget", str(budget), "--json", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as file:
                cases[budget] = json.load(file)["cases"][0]
        cycles = {budget: case["metrics"]["gpc__cycles_elapsed.max"] for budget, case in cases.items()}
        bounds = {budget: case["coverage"]["cycles_interval_95"] for budget, case in cases.items()}
        for few in (1, 3):
            self.assertTrue(bounds[few][0] <= cycles[10] <= bounds[few][1], (few, cycles, bounds))
            self.assertLess(abs(cycles[few] / cycles[10] - 1), 0.15, cycles)
        half = {budget: (high - low) / 2 / cycles[budget] for budget, (low, high) in bounds.items()}
        self.assertLess(half[3], 0.12)
        self.assertLess(half[10], half[3])

    def test_a_watched_cluster_is_the_same_for_any_number_of_threads_and_changes_no_prediction(self):
        words = ["predict", os.path.join(TRACES, "sm_90", "matmul_24_cluster_multicast.cubin"), "--launch",
                 os.path.join(TRACES, "matmul_24_cluster_multicast.yaml"), "--gpu", GPU, "--case", "multicast_bf16_check_136x264x104",
                 "--causes", "counted", "--json", "-"]
        plain, *watched = [json.loads(run(*words, *more).stdout)["cases"][0]
                           for more in ([], ["--warps", "1", "--threads", "1"], ["--warps", "1", "--threads", "3"])]
        self.assertEqual(*watched)
        timeline = watched[0].pop("warp_timeline")
        self.assertEqual(watched[0], plain)
        self.assertEqual([block["rank"] for block in timeline["blocks"]], [0, 1])
        self.assertTrue(all(copy["done"] is not None for copy in timeline["copies"]))
        for warp in timeline["warps"]:
            self.assertEqual(warp["start"], warp["from"][0])
            self.assertTrue(all(a < b for a, b in zip(warp["from"], warp["from"][1:] + [warp["to"]])))
        missing = run(*words, "--warps", "100000")
        self.assertEqual(missing.returncode, 0)
        self.assertIn("block 100000 is to be watched", missing.stderr)
        self.assertNotIn("warp_timeline", missing.stdout)

    def test_threads_do_not_change_a_byte(self):
        outputs = []
        for threads in ("1", "2", "5"):
            path = self.path(threads + ".json")
            words = [w for case in ("512", "check_64", "check_100", "777") for w in ("--case", "sgemm_shared_tiled_" + case)]
            result = run("predict", CUBIN, "--launch", LAUNCH, "--gpu", GPU, *words, "--budget", "3", "--threads", threads, "--json", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(path, "rb") as file:
                outputs.append(result.stdout.encode() + file.read())
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])

    def test_the_order_of_cases_does_not_change_a_byte(self):
        stems = {"matmul_03_shared_tiled": [CASE, "sgemm_shared_tiled_512"], "matmul_02_coalesced": ["sgemm_coalesced_check_64"],
                 "attention_01_unfused": ["attention_unfused_check_64"], "reduce_02_layer_norm_rows": ["layer_norm_rows_1024x768"]}
        profiles = os.path.join(self.folder, "validation", "profiles", GPU)
        os.makedirs(profiles)
        os.symlink(TRACES, os.path.join(self.folder, "traces"))
        for stem, cases in stems.items():
            with open(os.path.join(profiles, stem + ".csv"), "w", encoding="utf-8") as file:
                file.write("case,launch,kernel,grid,block,gpc__cycles_elapsed.max,smsp__inst_executed.sum\n" +
                           "".join(f"{case},0,k,2 2 1,32 32 1,5000,1\n" for case in cases))
        seen = []
        for order in (list(stems), list(stems)[::-1]):
            for threads in ("1", "2"):
                suites = self.path("suites.yaml", f"hand:\n  title: by hand\n  gpu: {GPU}\n  cache: cold\n"
                                                  f"  traces: [{', '.join(order)}]\n  tolerance: {{mean_pct: 100000}}\n")
                result = subprocess.run([FOREWARP, "validate", "--suites", suites, "--suite", "hand", "--threads", threads, "--json", "-"],
                                        capture_output=True, text=True, env=dict(os.environ, FOREWARP_HOME=self.folder), check=False)
                self.assertEqual(result.returncode, 0, result.stderr)
                cases = json.loads(result.stdout)["cases"]
                self.assertEqual(len(cases), 5)
                seen.append({(case["stem"], case["id"]): json.dumps(case) for case in cases})
        for other in seen[1:]:
            self.assertEqual(seen[0], other)

    def test_failures_of_a_suite_are_listed(self):
        profiles = os.path.join(self.folder, "validation", "profiles", GPU)
        os.makedirs(profiles)
        os.symlink(TRACES, os.path.join(self.folder, "traces"))
        with open(os.path.join(profiles, "matmul_03_shared_tiled.csv"), "w", encoding="utf-8") as file:
            file.write("case,launch,kernel,grid,block,gpc__cycles_elapsed.max,smsp__inst_executed.sum\n" + CASE + ",0,k,2 2 1,32 32 1,5000,1\n")
        suites = self.path("suites.yaml", f"hand:\n  title: by hand\n  gpu: {GPU}\n  cache: cold\n  traces: [matmul_03_shared_tiled, matmul_02_coalesced]\n"
                                          "  tolerance: {mean_pct: 100000}\n")
        environment = dict(os.environ, FOREWARP_HOME=self.folder)
        result = subprocess.run([FOREWARP, "validate", "--suites", suites, "--suite", "hand"], capture_output=True, text=True,
                                env=environment, check=False)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(CASE, result.stdout)
        self.assertIn("FAILED matmul_02_coalesced", result.stdout)
        result = subprocess.run([FOREWARP, "compare", "--suites", suites, "--suite", "hand", "--gpu", GPU, "--gpu", "h100-sxm5"],
                                capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("5,000", result.stdout)


if __name__ == "__main__":
    FOREWARP = os.path.abspath(sys.argv[1])
    long = "--long" in sys.argv[2:]
    cases = [Long] if long else [List, Colour, Usage, Drawing, BadInput, SketchedBudget, Output, Results, Completion, Manual, Bench, Cache]
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in cases)
    sys.exit(0 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1)

"""python3 -m unittest, in this folder."""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import unittest

import calibrate
import quantities

sys.path.insert(0, str(calibrate.ROOT / "traces"))
import hopper_launches  # noqa: E402
import micro_launches  # noqa: E402


def cases():
    """{stem: {case: text of its launch}} as the launch files have them."""
    return {stem: {text.split(":")[0]: text.split("\n", 1)[1] for text in texts} for stem, texts in (micro_launches.micro() | hopper_launches.micro()).items()}


def arguments(text):
    return re.search(r"args: \[(.*)\]", text)[1].split(", ")


class Declared(unittest.TestCase):
    def test_cases_are_there_and_differ_in_one_argument(self):
        known = cases()
        for stem, quantity in quantities.all_quantities():
            with self.subTest(quantity=quantity.name):
                self.assertIn(quantity.high, known[stem])
                if not quantity.low:
                    continue
                self.assertIn(quantity.low, known[stem])
                low, high = known[stem][quantity.low], known[stem][quantity.high]
                self.assertEqual(re.search("kernel: .*", low)[0], re.search("kernel: .*", high)[0])
                if stem != "micro_launch":
                    different = [pair for pair in zip(arguments(low), arguments(high)) if pair[0] != pair[1]]
                    # Arithmetic beside products: both go on for as many times as long.
                    both = stem == "micro_warpgroup_beside" and "_none_" not in quantity.low
                    self.assertEqual(len(different), 2 if both else 1)
                self.assertGreater(quantity.count, 0)

    def test_every_case_is_used(self):
        used = {(stem, case) for stem, quantity in quantities.all_quantities() for case in (quantity.low, quantity.high)}
        # Other launches of the same code (STEM.a100) are for other GPUs than the calibrated one. What only Hopper has is
        # read by hand (FINDINGS.md), but for stems with quantities of their own.
        by_hand = hopper_launches.micro().keys() - {stem for stem, _ in used}
        launched = {(stem, case) for stem, of_stem in cases().items() if "." not in stem and stem not in by_hand for case in of_stem}
        self.assertEqual(launched - used, set())

    def test_names_are_unique(self):
        names = [quantity.name for _, quantity in quantities.all_quantities()]
        self.assertEqual(len(names), len(set(names)))

    def test_table_is_current(self):
        self.assertEqual(quantities.TABLE.read_text(encoding="utf-8"), quantities.as_yaml(), "run quantities.py")

    def test_leaves_are_in_the_model(self):
        model = calibrate.read_model(calibrate.ROOT / "hwmodels" / "h200-sxm.yaml")
        self.assertEqual({leaf for _, quantity in quantities.all_quantities() for leaf in quantity.leaves} - model.keys(), set())

    def test_bytes_fit_the_buffers(self):
        """Streams: what a rate in bytes counts is what the larger case's buffers hold more than the smaller one's."""
        known = cases()["micro_dram"]
        def held(case):
            sizes = re.findall(r"(\w+): \{bytes: (\d+)", known[case])
            return sum(int(size) for name, size in sizes if name != "out" or re.search("kernel: dram_(write|copy|add)", known[case]))
        for quantity in quantities.dram():
            if quantity.high.startswith(("dram_read", "dram_write", "dram_copy", "dram_add")):
                with self.subTest(quantity=quantity.name):
                    low, high = (int(case.rsplit("_n", 1)[1]) for case in (quantity.low, quantity.high))
                    self.assertEqual(quantity.count, held(quantity.high) * (high - low) // high)


def measured_csv(folder, rows):
    path = os.path.join(folder, "profiles.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# gpu: none\nstem,case,launch,gpc__cycles_elapsed.max,gpc__cycles_elapsed.max:min,gpc__cycles_elapsed.max:max,"
                   "gpu__time_duration.sum\n")
        for case, cycles, least, most, time in rows:
            file.write(f"micro,{case},0,{cycles},{least},{most},{time}\n")
    return path


class Slopes(unittest.TestCase):
    COST = quantities.slope("kernel", (100, 300), 16, "cycles", "l1.hit_cycles")
    RATE = quantities.slope("kernel", (100, 300), 1024, "bytes/ns", "l1.hit_cycles", rate=True, metric=quantities.TIME)
    WHOLE = quantities.Quantity("whole", "", "kernel_n100", 2, "cycles", ())

    def rows(self):
        with tempfile.TemporaryDirectory() as folder:
            return calibrate.read_measured([measured_csv(folder, [
                ("kernel_n100", 5000, 4900, 5100, 1000), ("kernel_n300", 18600, 18500, 18700, 1800)])])

    def test_cost_rate_and_whole(self):
        rows = self.rows()
        cost = calibrate.slope(self.COST, rows)
        self.assertAlmostEqual(cost.value, 13600 / 3200)
        self.assertAlmostEqual(cost.spread, 200 / 3200)
        self.assertAlmostEqual(calibrate.slope(self.RATE, rows).value, 256.0)
        self.assertAlmostEqual(calibrate.slope(self.WHOLE, rows).value, 2500.0)

    def test_missing_or_upside_down_is_no_slope(self):
        rows = self.rows()
        rows["kernel_n300"]["gpc__cycles_elapsed.max"] = "4000"
        self.assertIsNone(calibrate.slope(self.COST, rows))
        del rows["kernel_n300"]
        self.assertIsNone(calibrate.slope(self.COST, rows))


class WholeProgram(unittest.TestCase):
    def run_with(self, folder, measured, predicted):
        result = os.path.join(folder, "result.json")
        with open(result, "w", encoding="utf-8") as file:
            json.dump({"gpu": "h200-sxm", "cases": [{"id": case, "launch": 0, "metrics": {quantities.CYCLES: cycles}}
                                                    for case, cycles in predicted.items()]}, file)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = calibrate.main([measured_csv(folder, measured), "--predicted", result, "--csv", os.path.join(folder, "t.csv")])
        return code, out.getvalue()

    def test_table(self):
        with tempfile.TemporaryDirectory() as folder:
            code, text = self.run_with(
                folder, [("ffma_dependent_w1_n40", 12000, 12000, 12000, 1), ("ffma_dependent_w1_n200", 53984, 53984, 53984, 1)],
                {"ffma_dependent_w1_n40": 11000, "ffma_dependent_w1_n200": 11000 + 160 * 64 * 4})
            self.assertEqual(code, 0)
            row, = (line.split() for line in text.splitlines() if line.startswith("ffma_dependent_w1"))
            self.assertEqual(row[2:6], ["4.1", "0", "4", "-2.4"])
            self.assertRegex(row[6], r"^pipes\.fma\.interval=\d+$")
            with open(os.path.join(folder, "t.csv"), encoding="utf-8") as file:
                self.assertEqual(len(file.readlines()), 2)

    def test_nothing_to_compare(self):
        with tempfile.TemporaryDirectory() as folder:
            code, text = self.run_with(folder, [("other", 1, 1, 1, 1)], {})
            self.assertEqual(code, 1)
            self.assertIn("none of the calibration cases", text)

    def test_bad_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x")
            with open(path, "w", encoding="utf-8") as file:
                file.write("a,b\n1,2\n")
            with self.assertRaisesRegex(calibrate.InputError, "no column `case`"):
                calibrate.read_measured([path])
            with self.assertRaisesRegex(calibrate.InputError, "not a result"):
                calibrate.read_predicted([path])


if __name__ == "__main__":
    unittest.main()

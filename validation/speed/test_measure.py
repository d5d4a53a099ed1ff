"""What is made of records: differences of cycles and bytes, counters that must be the same."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import measure  # noqa: E402


def record(cycles, read, executed, extrapolated, kernel="k"):
    metrics = {measure.CYCLES: cycles, measure.DRAM[0]: read, measure.DRAM[1]: 0.0, "smsp__inst_executed.sum": executed,
               "l1tex__t_sector_hit_rate.pct": cycles, "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0}
    one = {"launch": 0, "kernel": kernel, "metrics": metrics,
           "coverage": {"extrapolated": extrapolated, "warp_instructions": executed, "cycles_interval_95": [0.96 * cycles, 1.04 * cycles]}}
    return {"stem": "s_1", "case": "c", "status": 0, "launches": [one, one]}


class Compare(unittest.TestCase):
    def test_launches_of_a_kernel_are_taken_together(self):
        row, = measure.compare(record(103, 50, 7, True), record(100, 100, 7, False))
        self.assertAlmostEqual(row["cycles"], 3)
        self.assertAlmostEqual(row["dram"], -50)
        self.assertEqual((row["different"], row["inside"]), ([], True))
        self.assertAlmostEqual(row["bound"], 4.0)

    def test_an_interval_holds_for_each_launch(self):
        row, = measure.compare(record(105, 50, 7, True), record(100, 50, 7, False))
        self.assertFalse(row["inside"])

    def test_counts_that_differ_are_named_and_rates_are_not(self):
        row, = measure.compare(record(100, 50, 8, True), record(101, 50, 7, False))
        self.assertEqual(row["different"], ["smsp__inst_executed.sum"])

    def test_what_was_simulated_whole_is_no_comparison(self):
        self.assertEqual(measure.compare(record(100, 50, 7, False), record(100, 50, 7, False)), [])

    def test_every_stem_has_code_and_cases(self):
        stems = measure.stems()
        self.assertIn("attention_03_flash.large", stems)
        self.assertTrue(all(measure.cases_of(stem) for stem in stems))

    def test_large_cases_are_drawn_from_each_launch_file_and_always_the_same(self):
        two = measure.drawn(2, "h200-sxm")
        self.assertEqual(two, measure.drawn(2, "h200-sxm"))
        self.assertEqual(len(two), len(set(two)))
        by_stem = {}
        for stem, case in two:
            by_stem.setdefault(stem, []).append(case)
            self.assertIn(case, measure.cases_of(stem))
            counted = sum(measure.measured(stem, "h200-sxm")[case].values())
            self.assertTrue(measure.LARGE[0] <= counted <= measure.LARGE[1])
        self.assertGreater(len(by_stem), 60)
        self.assertTrue(all(len(some) <= 2 for some in by_stem.values()))


if __name__ == "__main__":
    unittest.main()

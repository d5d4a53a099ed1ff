#!/usr/bin/env python3
"""The tables of small results."""
import unittest

import tables


def result_of(suite, predicted):
    def case(name, launch, kind, cycles):
        return {"id": name, "launch": launch, "measured_cycles": 1000, "predicted_cycles": cycles,
                "bottleneck": {"kind": kind, "sentence": "Bound by something."}}
    cycles = {"launches": 2, "mean_pct": 2.0, "median_pct": 2.04, "p90_pct": 3.0, "worst_pct": 3.0, "rank_correlation": 0.5}
    return {"suite": suite, "cases": [case("copy", 0, "l1", predicted), case("copy", 1, "shared_memory", 970)], "cycles": cycles}


class Front(unittest.TestCase):
    def test_a_row_a_launch_and_a_row_a_suite(self):
        text = tables.front([result_of("ladder", 1010)])
        self.assertIn("| copy | 1,000 | 1,010 | +1.0 % | L1 |\n| copy#1 | 1,000 | 970 | -3.0 % | shared memory |\n", text)
        self.assertIn("error of the predicted cycles.", text)
        self.assertIn("| ladder | 2 | 2.0 % | 2.0 % | 3.0 % | 3.0 % | 0.5000 |\n", text)

    def test_launches_are_those_of_the_ladder_as_predicted_last(self):
        old = tables.front([result_of("ladder", 1010), result_of("field", 1)])
        self.assertEqual(tables.some(old, tables.front([result_of("field", 2)])), old)
        self.assertEqual(tables.some(old, tables.front([result_of("ladder", 1020)])),
                         tables.front([result_of("ladder", 1020), result_of("field", 1)]))


class Mended(unittest.TestCase):
    def test_what_is_left_of_pairs_with_all_their_launches(self):
        def case(name, measured, predicted):
            return {"id": name, "measured_cycles": measured, "predicted_cycles": predicted}
        text = tables.mended([{"cases": [case("fault_a", 300, 300), case("fault_a", 100, 60), case("mended_a", 200, 200),
                                         case("fault_b", 300, 200), case("mended_b", 100, 100), case("fault_alone", 1, 1)]}])
        self.assertIn("| a | 50.0 % | 55.6 % | +11.1 % |\n| b | 33.3 % | 50.0 % | +50.0 % |\n", text)
        self.assertIn("1 of 2 are within 15 %.", text)
        self.assertNotIn("alone", text)


class Some(unittest.TestCase):
    def test_what_other_suites_say_stays(self):
        def result(suite, mean):
            cycles = {"launches": 2, "mean_pct": mean, "median_pct": mean, "p90_pct": mean, "worst_pct": mean}
            counters = {tables.COUNTERS[0]: {"launches": 2, "mean_pct": mean}}
            return {"suite": suite, "cache": "cold", "cycles": cycles, "kinds": {"strided": cycles}, "failures": [], "counters": counters}
        both = tables.tables([result("ladder", 1.0), result("field", 2.0)])
        self.assertEqual(tables.some(both, both), both)
        self.assertEqual(tables.some(both, tables.tables([result("field", 3.0)])),
                         tables.tables([result("ladder", 1.0), result("field", 3.0)]))
        self.assertEqual(tables.some(tables.tables([result("ladder", 1.0)]), tables.tables([result("field", 2.0)])), both)


class Jumps(unittest.TestCase):
    def test_one_block_more_than_whole_waves(self):
        def case(blocks, measured, predicted):
            return {"id": f"hold_waves_{blocks}", "stem": "hold", "measured_cycles": measured, "predicted_cycles": predicted,
                    "measured_cycles_min": measured - 10, "measured_cycles_max": measured + 10}
        text = tables.jumps([{"cases": [case(tables.SMS, 1000, 1000), case(tables.SMS + 1, 2000, 2050)]}])
        self.assertIn("| `hold` | 132 | 1000 | +1000 ± 20 | +1050 | +5.0 % | +2.5 % |\n", text)
        self.assertIn("1 of 1 clear jumps are within 10 %; their mean error is 5.0 %.", text)
        self.assertIn("As a share of the launch, all 1 are 2.5 % off on average and 2.5 % at worst.", text)


if __name__ == "__main__":
    unittest.main()

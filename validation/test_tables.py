#!/usr/bin/env python3
"""The front page's tables, of a small result."""
import unittest

import tables


class Front(unittest.TestCase):
    def test_a_row_a_launch_and_a_row_a_suite(self):
        def case(name, launch, kind, predicted):
            return {"id": name, "launch": launch, "measured_cycles": 1000, "predicted_cycles": predicted,
                    "bottleneck": {"kind": kind, "sentence": "Bound by something."}}
        cycles = {"launches": 2, "mean_pct": 2.0, "median_pct": 2.04, "p90_pct": 3.0, "worst_pct": 3.0, "rank_correlation": 0.5}
        result = {"suite": "ladder", "cases": [case("copy", 0, "l1", 1010), case("copy", 1, "shared_memory", 970)], "cycles": cycles}
        text = tables.front([result], "abc1234")
        self.assertIn("| copy | 1,000 | 1,010 | +1.0 % | L1 |\n| copy#1 | 1,000 | 970 | -3.0 % | shared memory |\n", text)
        self.assertIn("with its tail, of abc1234:", text)
        self.assertIn("| ladder | 2 | 2.0 % | 2.0 % | 3.0 % | 3.0 % | 0.5000 |\n", text)


if __name__ == "__main__":
    unittest.main()

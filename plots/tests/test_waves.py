"""Blocks over time: one axis for all panels, what is extrapolated hatched, dense launches small."""
import copy
import random
import unittest

import support
from forewarp_plots import render, spec


def changed(launch, cycles=None, **spans):
    """A copy whose blocks stayed otherwise."""
    one = copy.copy(launch)
    one.case = copy.deepcopy(launch.case)
    one.metrics = dict(launch.metrics)
    if cycles:
        one.metrics["gpc__cycles_elapsed.max"] = cycles
    one.case["block_spans"] |= spans
    return one


class Waves(unittest.TestCase):
    def setUp(self):
        self.launch = support.launches("launch")[0]

    def rows(self, *launches):
        return spec.build("waves", list(launches))[0]

    def test_panels_have_one_axis(self):
        longer = changed(self.launch, cycles=4 * self.launch.cycles)
        longer.id = "longer"
        built = self.rows(self.launch, longer)
        self.assertEqual(built["resolve"]["scale"]["x"], "shared")
        domain = built["spec"]["layer"][0]["encoding"]["x"]["scale"]["domain"]
        self.assertAlmostEqual(domain[1], 4 * self.launch.cycles / self.launch.machine["clock_mhz"], places=2)

    def test_what_is_extrapolated_is_hatched_and_in_the_legend(self):
        cycles = self.launch.cycles
        built = self.rows(changed(self.launch, extrapolated=[{"from": cycles / 4, "to": cycles / 2}]))
        strokes = [row for row in built["datasets"]["stays"] if row["kind"] == "stroke"]
        us = 1 / self.launch.machine["clock_mhz"]
        self.assertGreater(len(strokes), 5)
        for row in strokes:
            for at in (row["from"], row["to"]):
                self.assertTrue(cycles / 4 * us - 1e-3 <= at <= cycles / 2 * us + 1e-3)
        self.assertTrue(any(row["kind"] == "key" for row in built["datasets"]["stays"]))
        plain = self.rows(changed(self.launch, extrapolated=[]))
        self.assertFalse(any(row["kind"] in ("stroke", "key") for row in plain["datasets"]["stays"]))

    def test_dense_launches_stay_small(self):
        random.seed(1)
        blocks = [[round(8 * random.random(), 2) for _ in range(120)] for _ in range(66)]
        dense = changed(self.launch, residency={"sms_per_row": 2, "cycles_per_column": self.launch.cycles / 120, "blocks": blocks})
        dense.case["waves"] = self.launch.case["waves"] | {"blocks": 300000, "blocks_per_sm": 8, "blocks_per_wave": 1056}
        steady = changed(dense, residency={"sms_per_row": 2, "cycles_per_column": self.launch.cycles / 120,
                                           "blocks": [[8.0 - (i < 2) for i in range(120)] for _ in range(66)]})
        self.assertLess(len(render.text_of(spec.build("waves", [steady])[0])), 100_000)
        self.assertLess(len(render.svg(spec.build("waves", [steady])[0])), 500_000)
        self.assertLess(sum(row["kind"] == "block" for row in spec.build("waves", [dense])[0]["datasets"]["stays"]), 66 * 120)

    def test_nobody_names_a_wave_that_is_not_drawn(self):
        built = self.rows(self.launch)
        domain = built["spec"]["layer"][0]["encoding"]["color"]["scale"]["domain"]
        there = {row["shade"] for row in built["datasets"]["stays"] if "shade" in row}
        self.assertEqual(set(domain), there)


if __name__ == "__main__":
    unittest.main()

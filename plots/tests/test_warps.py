"""Timelines of warps: what is drawn is what the result holds, in lanes of their own."""
import copy
import json
import unittest

import support
from forewarp_plots import perfetto, spec, warps
from forewarp_plots.results import InputError


class Warps(unittest.TestCase):
    def setUp(self):
        self.launch = support.launches("warps")[0]
        self.timeline = self.launch.case["warp_timeline"]

    def lanes(self, launch=None):
        return dict((lane.name, lane.bars) for _, of in warps.panels(launch or self.launch) for lane in of)

    def test_every_cycle_of_a_warp_is_in_a_bar(self):
        lanes = self.lanes()
        for warp in self.timeline["warps"]:
            name = f"warp {warp['warp']}" + (f", {warp['role']}" if warp["role"] != "other" else "")
            at = warp["start"]
            for bar in lanes[name]:
                self.assertEqual(bar.begin, at)
                at = bar.end
            self.assertEqual(at, warp["to"])

    def test_bars_of_a_lane_do_not_overlap(self):
        for name, bars in self.lanes().items():
            for before, after in zip(bars, bars[1:]):
                self.assertLessEqual(before.end, after.begin, name)

    def test_waits_name_their_barrier_and_its_phase(self):
        producer = next(bars for name, bars in self.lanes().items() if name.endswith("producer"))
        self.assertTrue(any(bar.what == warps.STAGES and "of empty[" in bar.text and "phase" in bar.text for bar in producer))
        consumer = next(bars for name, bars in self.lanes().items() if name.endswith("consumer"))
        self.assertTrue(any(bar.what == warps.COPIES and "of full[" in bar.text for bar in consumer))

    def test_copies_of_a_phase_are_one_bar_with_all_bytes(self):
        loads = [one for one in self.timeline["copies"] if one["kind"] == "load"]
        bars = [bar for name, of in self.lanes().items() if name.startswith("copies, full") for bar in of]
        self.assertTrue(bars)
        self.assertEqual(min(bar.begin for bar in bars), min(one["issued"] for one in loads))
        self.assertLess(len(bars), len(loads))

    def test_what_is_drawn_lies_in_the_window(self):
        end = self.timeline["cycles"]
        options = spec.Options(cycles=(end // 2, end // 2 + 500))
        rows = spec.build("warps", [self.launch], options)[0]["datasets"]["lanes"]
        for row in rows:
            self.assertGreaterEqual(row["from"], end // 2)
            self.assertLessEqual(row.get("to", 0), end // 2 + 500)

    def test_long_stretches_are_drawn_as_long_as_they_are(self):
        rows = spec.build("warps", [self.launch])[0]["datasets"]["lanes"]
        longest = max((bar.end - bar.begin, name, bar.what) for name, bars in self.lanes().items() for bar in bars if name.startswith("warp "))
        drawn = max(row["to"] - row["from"] for row in rows if row.get("lane") == longest[1] and row["what"] == longest[2])
        self.assertLess(abs(drawn - longest[0]) / longest[0], 0.05)

    def test_what_was_left_out_is_marked_and_said(self):
        launch = copy.copy(self.launch)
        launch.case = copy.deepcopy(self.launch.case)
        launch.case["warp_timeline"]["left_out"] = [{"at": 2000, "cycles": 123456}]
        built, notes = spec.build("warps", [launch])
        self.assertIn("123,456 cycles were left out", notes[0])
        self.assertTrue(any(row["kind"] == "gap" and row["from"] == 2000 for row in built["datasets"]["lanes"]))

    def test_a_cluster_has_a_panel_a_block(self):
        launch = support.launches("cluster")[0]
        built = spec.build("warps", [launch])[0]
        self.assertEqual(len(built["facet"]["row"]["sort"]), len(launch.case["warp_timeline"]["blocks"]))
        self.assertGreater(len(launch.case["warp_timeline"]["blocks"]), 1)

    def test_a_result_without_a_timeline_says_how_to_get_one(self):
        with self.assertRaisesRegex(InputError, "--warps BLOCK"):
            spec.build("warps", support.launches("launch"))
        with self.assertRaisesRegex(InputError, "holds nothing"):
            spec.build("warps", [self.launch], spec.Options(cycles=(900000, 900001)))

    def test_perfetto_has_a_row_for_each_warp(self):
        events = json.loads(perfetto.trace([self.launch]))["traceEvents"]
        rows = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["args"]["name"].startswith("warp ")}
        self.assertEqual(len(rows), len(self.timeline["warps"]))
        for row in rows:
            bars = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == row)
            self.assertTrue(bars)
            self.assertTrue(all(a[1] <= b[0] + 1e-6 for a, b in zip(bars, bars[1:])))


if __name__ == "__main__":
    unittest.main()

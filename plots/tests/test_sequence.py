"""Launches on one clock, and the trace for Perfetto."""
import csv
import json
import os
import types
import unittest

import support
from forewarp_plots import perfetto, sequence


class Arranging(unittest.TestCase):
    def setUp(self):
        self.launches = support.launches("sequence", "elu_unfused_check_1000")
        self.machine = self.launches[0].machine

    def test_a_stream(self):
        arranged = sequence.arrange("x", self.launches)
        self.assertEqual(len(arranged.steps), 3)
        least, hand_over = self.machine["stream_gap_us"], self.machine["hand_over_us"]
        for before, after in zip(arranged.steps, arranged.steps[1:]):
            self.assertGreaterEqual(after.begin, after.call_to)  # not before it is queued
            self.assertGreaterEqual(after.begin, before.end + hand_over)
            self.assertGreaterEqual(after.begin - before.begin, least)
            self.assertAlmostEqual(after.call_from, before.call_to)  # the host does not wait
        self.assertAlmostEqual(arranged.busy, sum(one.nanoseconds for one in self.launches) / 1e3)
        self.assertLess(arranged.utilization_pct, 100)

    def test_the_host_limits_short_kernels(self):
        for one in self.launches:
            one.metrics["gpu__time_duration.sum"] = 100.0
        arranged = sequence.arrange("x", self.launches)
        self.assertAlmostEqual(arranged.steps[2].begin, 3 * self.machine["stream_gap_us"])

    def test_a_graph_is_no_slower(self):
        self.assertLess(sequence.arrange("x", self.launches, "graph").total, sequence.arrange("x", self.launches).total)

    def test_groups(self):
        self.assertEqual([len(of) for of in sequence.group(support.launches("sequence"))], [3, 1])


class AgainstAnH200(unittest.TestCase):
    """Measured durations of single warm kernels, arranged, against the measured whole: what the gaps alone are off by.

    The whole lies between two events, which take 1.2 us more than a single kernel of elementwise_01 and _02 under a profiler.
    """
    EVENTS_US = 1.2

    def rows(self, path):
        with open(os.path.join(support.ROOT, "validation", *path), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(line for line in file if not line.startswith("#")))

    def test_wholes(self):
        durations = {}
        for stem in ("attention_01_unfused", "attention_02_student", "elementwise_02_elu", "elementwise_03_sigmoids"):
            for row in self.rows(("profiles", "h200-sxm", stem + ".csv")):
                durations.setdefault(row["case"], {})[int(row["launch"])] = row["warm:gpu__time_duration.sum"]
        machine = support.launches("sequence")[0].machine
        errors, plain = {}, {}
        for row in self.rows(("sequences", "h200-sxm.csv")):
            case, count, whole = row["case"], int(row["launches"]), float(row["us"])
            found = durations.get(case, {})
            if count < 2 or not found or not all(found.values()):
                continue
            times = [float(found[key]) for key in sorted(found)]
            if len(times) == 2:  # of launches alike, only the first pair was profiled
                times *= count // 2
            if len(times) != count:
                continue
            launches = [types.SimpleNamespace(machine=machine, nanoseconds=time, path="", gpu="") for time in times]
            arranged = sequence.arrange(case, launches)
            errors[case] = abs(arranged.total - arranged.steps[0].begin + self.EVENTS_US - whole) / whole
            plain[case] = abs(sum(times) / 1e3 - whole) / whole
        self.assertGreaterEqual(len(errors), 20)
        self.assertLess(sum(errors.values()) / len(errors), 0.05)
        self.assertLess(max(errors.values()), 0.12)
        self.assertLess(sum(errors.values()), sum(plain.values()))


class Trace(unittest.TestCase):
    def setUp(self):
        self.trace = json.loads(perfetto.trace(support.launches("sequence")))
        self.events = self.trace["traceEvents"]

    def test_is_what_the_viewers_read(self):
        named = {(e["pid"], e.get("tid")) for e in self.events if e["ph"] == "M"}
        for event in self.events:
            self.assertIn(event["ph"], "MXC")
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
                self.assertIn((event["pid"], event["tid"]), named)

    def test_holds_launches_blocks_bandwidth_and_states(self):
        names = [e["name"] for e in self.events]
        self.assertEqual(sum(name.startswith("launch ") for name in names), 4)
        self.assertTrue(any(name.startswith("block ") for name in names))
        self.assertIn("HBM read GB/s", names)
        self.assertTrue(any(name.startswith("warps in ") for name in names))

    def test_blocks_of_a_place_do_not_overlap(self):
        rows = {}
        for event in self.events:
            if event["ph"] == "X" and event["name"].startswith("block "):
                rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        for of in rows.values():
            of.sort()
            self.assertTrue(all(a[1] <= b[0] + 1e-6 for a, b in zip(of, of[1:])))


if __name__ == "__main__":
    unittest.main()

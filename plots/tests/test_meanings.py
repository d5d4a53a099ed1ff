"""Metrics find their descriptions, families by their pattern."""
import unittest

import support  # noqa: F401
from forewarp_plots.meanings import Meanings

TABLE = """metric                                   unit    from     meaning
---------------------------------------  ------  -------  -----------------------
smsp__inst_executed.sum                  inst    counted  warp instructions
l1tex__t_sectors_lookup_<hit|miss>.sum   sector  timed    sectors in L1
forewarp__waves_<term>, forewarp__idle   %       timed    how blocks fill

counted: follows exactly.""".splitlines()


class Describing(unittest.TestCase):
    def setUp(self):
        self.meanings = Meanings()
        self.meanings.read(TABLE)

    def test_names(self):
        self.assertEqual(self.meanings.of("smsp__inst_executed.sum"), ("inst", "warp instructions"))
        self.assertEqual(self.meanings.of("l1tex__t_sectors_lookup_miss.sum"), ("sector", "sectors in L1"))
        self.assertEqual(self.meanings.of("forewarp__waves_last_fill.pct"), ("%", "how blocks fill"))
        self.assertEqual(self.meanings.of("forewarp__idle"), ("%", "how blocks fill"))
        self.assertEqual(self.meanings.of("l1tex__t_sectors_lookup_both.sum"), ("", ""))

    def test_states(self):
        self.assertIn("global", self.meanings.of("smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio")[1])

    def test_nothing_to_read(self):
        self.meanings.read([])
        self.meanings.read(["no table"])
        self.assertEqual(Meanings().of("smsp__inst_executed.sum"), ("", ""))


if __name__ == "__main__":
    unittest.main()

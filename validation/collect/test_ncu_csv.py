"""python3 -m unittest, in this folder."""

import os
import tempfile
import unittest

import collect
import ncu_csv

OUTPUT = """==PROF== Connected to process 4242 (forewarp-run)
==PROF== Profiling "sgemm" - 0: 0%....50%....100% - 1 pass
case  launch kernel
==PROF== Disconnected from process 4242
==WARNING== Something, with "quotes"
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpc__cycles_elapsed.max","gpu__time_duration.sum","launch__registers_per_thread","smsp__inst_executed.sum"
"","","","","","","","","","","","cycle","usecond","register/thread","inst"
"0","4242","forewarp-run","host","sgemm","1","7","(256, 1, 1)","(32, 32, 1)","0","9.0","1,234,567","12.5","64","1,000.5"
"1","4242","forewarp-run","host","sgemm","1","7","(256, 1, 1)","(32, 32, 1)","0","9.0","1,234,569","12.7","64","n/a"
"2","4242","forewarp-run","host","scale","1","7","(32, 1, 1)","(1,024, 1, 1)","0","9.0","99","0.5","8",""
"3","4242","forewarp-run","ho
"""


def launch(sequence, case, index, kernel, grid, block, repeat=0):
    return {
        "sequence": str(sequence), "stem": "matmul", "case": case, "launch": str(index), "repeat": str(repeat), "kernel": kernel,
        "grid_x": str(grid[0]), "grid_y": str(grid[1]), "grid_z": str(grid[2]), "block_x": str(block[0]), "block_y": str(block[1]),
        "block_z": str(block[2]), "dynamic_shared_bytes": "0"}


MANIFEST = [
    launch(0, "sgemm_1024", 0, "sgemm", (32, 32, 1), (256, 1, 1)),
    launch(1, "sgemm_1024", 0, "sgemm", (32, 32, 1), (256, 1, 1), repeat=1),
    launch(2, "scale_1024", 0, "scale", (1024, 1, 1), (32, 1, 1)),
    launch(3, "scale_2048", 0, "scale", (2048, 1, 1), (32, 1, 1)),
]


class Parsing(unittest.TestCase):
    def test_rows_units_and_separators(self):
        rows = ncu_csv.parse(OUTPUT)
        self.assertEqual(len(rows), 3)
        self.assertEqual(rows[0]["gpc__cycles_elapsed.max"], 1234567.0)
        self.assertEqual(rows[0]["gpu__time_duration.sum"], 12500.0)
        self.assertEqual(rows[0]["smsp__inst_executed.sum"], 1000.5)
        self.assertNotIn("smsp__inst_executed.sum", rows[1])
        self.assertNotIn("smsp__inst_executed.sum", rows[2])
        self.assertEqual(rows[2]["Kernel Name"], "scale")

    def test_no_table(self):
        self.assertEqual(ncu_csv.parse("==ERROR== nothing\n"), [])
        self.assertEqual(ncu_csv.parse(""), [])

    def test_extent(self):
        self.assertEqual(ncu_csv.extent("(32, 4, 1)"), (32, 4, 1))
        self.assertIsNone(ncu_csv.extent("32"))


class Joining(unittest.TestCase):
    def rows(self):
        rows = ncu_csv.parse(OUTPUT)
        rows[2]["Grid Size"] = "(1024, 1, 1)"
        return rows

    def test_shorter_is_fine(self):
        self.assertEqual(len(ncu_csv.join(self.rows(), MANIFEST)), 3)

    def test_longer_is_not(self):
        with self.assertRaises(ncu_csv.CsvError):
            ncu_csv.join(self.rows(), MANIFEST[:2])

    def test_other_kernel(self):
        with self.assertRaisesRegex(ncu_csv.CsvError, "scale was profiled"):
            ncu_csv.join(self.rows(), MANIFEST[:2] + [launch(2, "c", 0, "copy", (1024, 1, 1), (32, 1, 1))])

    def test_other_grid(self):
        with self.assertRaisesRegex(ncu_csv.CsvError, "grid size"):
            ncu_csv.join(self.rows(), MANIFEST[:2] + [MANIFEST[3]])

    def test_demangled_names_match_symbols(self):
        rows = self.rows()[:1]
        rows[0]["Kernel Name"] = "void ns::tile<64>(float *)"
        ncu_csv.join(rows, [launch(0, "c", 0, "_ZN2ns4tileILi64EEEvPf", (32, 32, 1), (256, 1, 1))])


class Reducing(unittest.TestCase):
    def test_spreads_and_counters(self):
        rows = ncu_csv.parse(OUTPUT)
        rows[2]["Grid Size"] = "(1024, 1, 1)"
        pairs = ncu_csv.join(rows, MANIFEST)
        cheap = ncu_csv.spreads(pairs, ["gpc__cycles_elapsed.max"])
        columns = cheap[("matmul", "sgemm_1024", 0)]
        self.assertEqual(columns["gpc__cycles_elapsed.max"], 1234568.0)
        self.assertEqual(columns["gpc__cycles_elapsed.max:min"], 1234567.0)
        self.assertEqual(columns["gpc__cycles_elapsed.max:runs"], 2)
        self.assertEqual(columns["grid"], "32 32 1")
        full = ncu_csv.counters(pairs, lambda name: True, {"gpc__cycles_elapsed.max"})
        columns = full[("matmul", "scale_1024", 0)]
        self.assertEqual(columns["full:gpc__cycles_elapsed.max"], 99.0)
        self.assertEqual(columns["launch__registers_per_thread"], 8.0)
        self.assertNotIn("gpc__cycles_elapsed.max", columns)

    def test_metrics_file(self):
        metrics = collect.Metrics(os.path.join(os.path.dirname(os.path.abspath(collect.__file__)), "metrics.txt"))
        self.assertEqual(metrics.cheap, ["gpc__cycles_elapsed.max", "gpu__time_duration.sum", "sm__cycles_active.avg"])
        self.assertEqual(len(metrics.full), len(set(metrics.full)))
        self.assertTrue(metrics.wanted("launch__registers_per_thread"))
        self.assertTrue(metrics.wanted("lts__t_sector_hit_rate.pct"))
        self.assertFalse(metrics.wanted("device__attribute_warp_size"))
        known = {name.split(".")[0] for name in metrics.full} - {"sm__icc_requests"}
        self.assertNotIn("sm__icc_requests.sum", metrics.known_only(known).full)

    def test_table_survives_writing_and_splitting(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profiles.csv")
            table = collect.Table()
            key = ("matmul", "sgemm_1024", 0)
            table.merge({key: {"kernel": "sgemm", "gpc__cycles_elapsed.max": 123456789.0, "x__ratio.ratio": 0.123456789}})
            table.merge({key: {"full:gpc__cycles_elapsed.max": 5.0}, ("copy", "c", 1): {"kernel": "copy"}})
            table.write(path, {"driver": "580"})
            again = collect.Table()
            self.assertEqual(again.read(path), {"driver": "580"})
            self.assertEqual(again.rows[key]["gpc__cycles_elapsed.max"], "123456789")
            self.assertEqual(again.rows[key]["x__ratio.ratio"], "0.1234568")
            collect.split([path], folder)
            single = collect.Table()
            self.assertEqual(single.read(os.path.join(folder, "matmul.csv"))["driver"], "580")
            self.assertEqual(list(single.rows), [key])
            self.assertTrue(os.path.exists(os.path.join(folder, "copy.csv")))


class Planning(unittest.TestCase):
    def test_units_take_turns_and_skip_what_is_done(self):
        units = collect.plan_units({"a": ["a1", "a2", "a3"], "b": ["b1"]}, lambda stem, case: 1, most_launches=2)
        self.assertEqual(units, [("a", ["a1", "a2"]), ("b", ["b1"]), ("a", ["a3"])])

    def test_one_large_case_is_a_unit(self):
        units = collect.plan_units({"a": ["a1", "a2"]}, lambda stem, case: 50, most_launches=12)
        self.assertEqual(units, [("a", ["a1"]), ("a", ["a2"])])

    def test_groups_share_a_process(self):
        units = [("a", ["a1", "a2"]), ("b", ["b1"]), ("a", ["a3"])]
        self.assertEqual(collect.group_units(units, lambda stem, case: 1, 4), [{"a": ["a1", "a2", "a3"], "b": ["b1"]}])
        self.assertEqual(collect.group_units(units, lambda stem, case: 1, 3), [{"a": ["a1", "a2"], "b": ["b1"]}, {"a": ["a3"]}])


if __name__ == "__main__":
    unittest.main()

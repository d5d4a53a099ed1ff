#!/usr/bin/env python3
"""The numbers of well-known lessons that are formulas, by the counters of a prediction: scenarios_test.py FOREWARP.

Small sizes stand for the large ones; a formula holds for any size."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

FOREWARP = ""
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LOADED = "smsp__sass_data_bytes_mem_global_op_ld.sum"
STORED = "smsp__sass_data_bytes_mem_global_op_st.sum"
LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"


def predict(stem, *cases, gpu="h200-sxm", launch=None):
    """{case: [launch, ...]} of a prediction."""
    sm = "sm_80" if gpu.startswith("a100") else "sm_90"
    words = [FOREWARP, "predict", os.path.join(HOME, "traces", sm, stem.split(".")[0] + ".cubin"), "--launch",
             launch or os.path.join(HOME, "traces", stem + ".yaml"), "--gpu", gpu, "--threads", "1", "--json", "-"]
    for case in cases:
        words += ["--case", case]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    found = {}
    for launch_there in json.loads(done.stdout)["cases"]:
        found.setdefault(launch_there["id"], []).append(launch_there)
    return found


def total(launches, *metrics):
    return sum(one["metrics"][metric] for one in launches for metric in metrics)


class Tiling(unittest.TestCase):
    """S7: with tiles of T each input is read N / T times instead of N times."""

    def test_reads_fall_from_n_to_n_over_t(self):
        n, tile = 64, 32
        plain = predict("matmul_02_coalesced", f"sgemm_coalesced_check_{n}")[f"sgemm_coalesced_check_{n}"]
        tiled = predict("matmul_03_shared_tiled", f"sgemm_shared_tiled_check_{n}")[f"sgemm_shared_tiled_check_{n}"]
        # Every thread of the plain kernel reads one element of each input a step: 2 N^3. A warp's 32 threads share a row of c,
        # so they ask for one element of a together, which is counted once.
        self.assertEqual(total(plain, LOAD_REQUESTS), 2 * n ** 3 / 32)
        self.assertEqual(total(plain, LOADED), 4 * (n ** 3 + n ** 3 / 32))
        self.assertEqual(total(tiled, LOADED), 4 * 2 * n ** 3 / tile)
        self.assertEqual(total(tiled, LOAD_SECTORS), 4 * 2 * n ** 3 / tile / 32)
        self.assertEqual(total(plain, LOAD_REQUESTS) / total(tiled, LOAD_REQUESTS), tile)
        self.assertEqual(total(plain, STORED), total(tiled, STORED))


class Elementwise(unittest.TestCase):
    N = 1000

    def accesses(self, stem, case):
        """Elements of four bytes that a case reads and writes, by element."""
        return total(predict(stem, case)[case], LOADED, STORED) / 4 / self.N

    def test_fusion(self):
        """S8: five kernels read and write eleven arrays, one reads one and writes one; ELU, where one input of the choice is read
        or not by element, nearly six and two."""
        self.assertEqual(self.accesses("elementwise_01_sin_cos", "sin_cos_unfused_check_1000"), 11)
        self.assertEqual(self.accesses("elementwise_01_sin_cos", "sin_cos_fused_check_1000"), 2)
        unfused = predict("elementwise_02_elu", "elu_unfused_check_1000")["elu_unfused_check_1000"]
        self.assertEqual(len(unfused), 3)
        self.assertEqual(self.accesses("elementwise_02_elu", "elu_fused_check_1000"), 2)
        self.assertGreater(total(unfused, LOADED, STORED), 2.9 * 2 * 4 * self.N)

    def test_recomputation_makes_five_eighths_of_the_accesses(self):
        """S9."""
        stored = self.accesses("elementwise_03_sigmoids", "sigmoids_stored_check_1000")
        recomputed = self.accesses("elementwise_03_sigmoids", "sigmoids_recomputed_check_1000")
        self.assertEqual((stored, recomputed), (8, 5))

    def test_recomputation_executes_more(self):
        stored, recomputed = (total(predict("elementwise_03_sigmoids", case)[case], "smsp__inst_executed.sum")
                              for case in ("sigmoids_stored_check_1000", "sigmoids_recomputed_check_1000"))
        self.assertGreater(recomputed, stored)

    def test_bytes_for_each_operation(self):
        """S10: ReLU does one operation an element: 8 bytes in fp32, 4 in fp16."""
        for case, bytes_there in (("relu_f32_check_1000", 8), ("relu_f16_check_1000", 4), ("relu_f16_pairs_check_1000", 4)):
            launches = predict("elementwise_04_relu", case)[case]
            self.assertEqual(total(launches, LOADED, STORED) / self.N, bytes_there, case)


class Waves(unittest.TestCase):
    """S2: 98 tiles fit 108 SMs, 120 need a second wave of 12."""

    LAUNCH = """{name}:
  kernel: sgemm_warp_tiled
  grid: [{columns}, {rows}, 1]
  block: [256, 1, 1]
  dynamic_shared_bytes: 98304
  buffers:
    a: {{bytes: {a}, fill: zero}}
    b: {{bytes: {b}, fill: zero}}
    c: {{bytes: {c}, fill: zero}}
  args: [{{pointer: a}}, {{pointer: b}}, {{pointer: c}}, {{i32: {m}}}, {{i32: {n}}}, {{i32: 8}}]
"""

    def waves(self, rows, columns):
        """As many tiles as 256 x 128 ones would be, one a SM, by asking for its shared memory."""
        m, n, name = 128 * rows, 128 * columns, "tiles"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "launch.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.LAUNCH.format(name=name, rows=rows, columns=columns, m=m, n=n, a=m * 8 * 4, b=n * 8 * 4, c=m * n * 4))
            return predict("matmul_07_warp_tiled_double_buffered", name, gpu="a100-sxm4-40gb", launch=path)[name][0]

    def test_98_and_120_tiles_on_108_sms(self):
        size = 1792
        self.assertEqual((size // 256, size // 128), (7, 14))
        one, two = self.waves(14, 7), self.waves(15, 8)
        self.assertEqual((one["waves"]["blocks"], two["waves"]["blocks"]), (98, 120))
        self.assertEqual(one["waves"]["blocks_per_wave"], 108)
        self.assertEqual((one["waves"]["full_waves"], one["waves"]["last_wave_blocks"]), (0, 98))
        self.assertEqual((two["waves"]["full_waves"], two["waves"]["last_wave_blocks"]), (1, 12))
        self.assertAlmostEqual(two["metrics"]["launch__waves_per_multiprocessor"], 120 / 108, places=2)

    def test_one_column_more_makes_six_tiles_of_four(self):
        """S6: and a third of what the tiles cover lies outside the matrix."""
        launches = predict("matmul_07_warp_tiled_double_buffered", "sgemm_warp_tiled_256x256", "sgemm_warp_tiled_256x257")
        four, six = launches["sgemm_warp_tiled_256x256"][0], launches["sgemm_warp_tiled_256x257"][0]
        self.assertEqual((four["metrics"]["launch__grid_size"], six["metrics"]["launch__grid_size"]), (4, 6))
        self.assertAlmostEqual(1 - 256 * 257 / (6 * 128 * 128), 0.331, places=3)


class Sections(unittest.TestCase):
    """S4 and S5: 32-byte sections touched against needed."""

    def test_down_a_column_every_lane_has_its_own(self):
        launches = predict("copy_01_row_column", "copy_along_rows_1024", "copy_down_columns_1024")
        rows, columns = launches["copy_along_rows_1024"], launches["copy_down_columns_1024"]
        self.assertEqual(total(rows, LOAD_SECTORS) / total(rows, LOAD_REQUESTS), 4)
        self.assertEqual(total(columns, LOAD_SECTORS) / total(columns, LOAD_REQUESTS), 32)
        self.assertEqual(total(rows, LOADED), total(columns, LOADED))

    def test_shifted_rows_straddle_a_fifth_section(self):
        """A row of 32 floats that begins anywhere covers 4 sections in one case of eight, else 5; padding undoes it."""
        def sections(case):
            launches = predict("copy_04_tile_loads", case)[case]
            row = next(r for r in launches[0]["memory"] if r["sectors"] > 1000)
            return row["sectors"] / row["sectors_needed"]
        self.assertEqual(sections("tile_column_sums_1024x1024_pitch_1024"), 1)
        self.assertGreater(sections("tile_column_sums_1024x1025_pitch_1025"), 1.2)
        self.assertLess(sections("tile_column_sums_1024x1025_pitch_1056"), 1.01)


class Divergence(unittest.TestCase):
    """S11: ways by lane run one after another with their share of the lanes; by warp, none parts."""

    def test_lanes(self):
        for ways in (2, 4):
            by_lane, by_warp = f"divergence_by_lane_{ways}_check_1000", f"divergence_by_warp_{ways}_check_1000"
            launches = predict("divergence_01_branch_ways", by_lane, by_warp)
            for case, share in ((by_lane, ways), (by_warp, 1)):
                body = [r for r in launches[case][0]["instructions"] if "FFMA" in r["sass"]]
                executed = sum(r["executed"] for r in body)
                lanes = sum(r["executed"] * r["active_lanes"] for r in body) / executed
                self.assertAlmostEqual(lanes * share / 32, 1, delta=0.05, msg=case)
            self.assertEqual(launches[by_warp][0]["divergence"]["branches_divergent"] <
                             launches[by_lane][0]["divergence"]["branches_divergent"], True)


class TensorCores(unittest.TestCase):
    """S10, S12, S18: what the pipe is asked for follows from shape and type; sparse products ask for half."""

    def executed(self, stem, case):
        return total(predict(stem, case)[case], "sm__inst_executed_pipe_tensor.sum")

    def test_an_instruction_for_each_tile_of_the_product(self):
        n = 512
        for stem, case, shape in (("matmul_12_tensor.sweep", f"tensor_f16_{n}", 16 * 8 * 16), ("matmul_16_types.sweep", f"tensor_tf32_{n}", 16 * 8 * 8),
                                  ("matmul_16_types.sweep", f"tensor_s8_{n}", 16 * 8 * 32), ("matmul_16_types.sweep", f"tensor_f64_{n}", 8 * 8 * 4)):
            with self.subTest(case):
                steps = self.executed(stem, case) * shape / n ** 3
                self.assertIn(steps, (1, 0.5, 0.25, 0.125), "whole tiles, of this shape or of a deeper one")

    def test_half_the_instructions_when_two_of_four_are_kept(self):
        dense = self.executed("matmul_12_tensor.sweep", "tensor_f16_1024")
        self.assertEqual(self.executed("matmul_17_sparse_2_4.sweep", "tensor_sparse_f16_1024") * 2, dense)


class Attention(unittest.TestCase):
    """S13: flash attention reads its inputs once and writes its output; the scores stay on the chip."""

    def test_traffic_is_that_of_inputs_and_output(self):
        moved = predict("attention_05_flash2.sweep", "flash2_f16_64_256")["flash2_f16_64_256"]
        matrix = 16384 * 2048 * 2  # 16 Ki tokens of width 2048 in fp16
        self.assertAlmostEqual(total(moved, "dram__bytes_read.sum") / (3 * matrix), 1, delta=0.03)
        self.assertEqual(total(moved, LOADED) % matrix, 0)
        self.assertLess(total(moved, "dram__bytes_write.sum"), 1.1 * matrix)


if __name__ == "__main__":
    FOREWARP = os.path.abspath(sys.argv.pop(1))
    unittest.main()

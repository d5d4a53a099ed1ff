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
             launch or os.path.join(HOME, "traces", stem + ".yaml"), "--gpu", gpu, "--causes", "counted", "--threads", "1", "--json", "-"]
    for case in cases:
        words += ["--case", case]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    found = {}
    for launch_there in json.loads(done.stdout)["cases"]:
        found.setdefault(launch_there["id"], []).append(launch_there)
    return found


def sketch(stem, *smaller, gpu="h200-sxm"):
    """{sketch: [launch, ...]} of docs/examples/scenarios, with each first text of `smaller` replaced by its second."""
    with open(os.path.join(HOME, "docs", "examples", "scenarios", stem + ".yaml"), encoding="utf-8") as file:
        text = file.read()
    for large, small in smaller:
        if large not in text:
            raise ValueError(f"{stem} has no {large}")
        text = text.replace(large, small)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, stem + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([FOREWARP, "sketch", path, "--gpu", gpu, "--threads", "1", "--precision", "100", "--budget", "0.5",
                               "--json", "-"], capture_output=True, text=True, check=True, timeout=600)
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


class Sketches(unittest.TestCase):
    """The same lessons before there is a kernel: docs/examples/scenarios, whose files have less than fifteen lines."""

    def executed(self, launches, opcode):
        return sum(r["executed"] for one in launches for r in one["instructions"] if opcode in r["sass"])

    def elements(self, launches, count):
        return total(launches, LOADED, STORED) / 4 / count

    def test_waves(self):
        """S2."""
        found = sketch("s02_waves", ("1792]", "64]"), ("1800]", "64]"), gpu="a100-sxm4-40gb")
        waves = {name: launches[0]["waves"] for name, launches in found.items()}
        self.assertEqual([waves[name]["blocks"] for name in ("one_wave", "one_tile_more", "full_on_h200", "beyond_on_h200")],
                         [98, 120, 128, 136])
        self.assertEqual(waves["one_wave"]["blocks_per_wave"], 108)
        self.assertEqual((waves["one_tile_more"]["full_waves"], waves["one_tile_more"]["last_wave_blocks"]), (1, 12))
        on_h200 = sketch("s02_waves", ("1792]", "64]"), ("1800]", "64]"))
        last = {name: launches[0]["waves"]["last_wave_blocks"] for name, launches in on_h200.items()}
        self.assertEqual((last["full_on_h200"], last["beyond_on_h200"]), (128, 4))

    def test_misaligned_rows_touch_more_sections(self):
        """S5: where a row of floats begins is a matter of its number; a row of 50264 halves ends within a section."""
        found = sketch("s05_misaligned", ("[67108864]", "[65536]"), ("[4096, 4096]", "[256, 4096]"), ("[4096, 50", "[128, 50"))
        per_request = {name: total(launches, LOAD_SECTORS) / total(launches, LOAD_REQUESTS) for name, launches in found.items()}
        self.assertEqual(per_request["padded"], 4)
        self.assertAlmostEqual(per_request["shifted"], 4 + 7 / 8, delta=0.01)
        self.assertEqual((per_request["begins_aligned"], per_request["begins_late"]), (4, 5))
        copied = {name: self.executed(found[name], "LDGSTS") for name in found if "vocabulary" in name}
        self.assertEqual(copied["vocabulary_50264"], copied["vocabulary_50304"])
        sections = {name: sum(r["sectors"] for r in found[name][0]["memory"] if "LDGSTS" in r["sass"]) for name in copied}
        # Half of what is copied is B; of every second of its rows each 32 bytes lie in two sections and ask for both.
        self.assertAlmostEqual(sections["vocabulary_50264"] / sections["vocabulary_50304"], 1 + 1 / 4, delta=0.005)

    def test_two_nearly_empty_tiles(self):
        """S6."""
        found = sketch("s06_tile_quantization")
        self.assertEqual([found[name][0]["metrics"]["launch__grid_size"] for name in ("four_tiles", "six_tiles")], [4, 6])

    def test_each_input_is_read_n_over_t_times(self):
        """S7."""
        n = 256
        found = sketch("s07_tiling", ("[1024, 1024, 1024]", f"[{n}, {n}, {n}]"))
        for tile in (32, 64, 128):
            self.assertEqual(total(found[f"tile_{tile}"], LOADED), 4 * 2 * n ** 3 / tile, tile)

    def test_fusion(self):
        """S8: one kernel reads one array and writes one; five have eleven accesses an element."""
        n = 4096
        found = sketch("s08_fusion", ("[67108864]", f"[{n}]"), ("[4096, 4096, 1024]", "[256, 256, 64]"))
        self.assertEqual((self.elements(found["fused"], n), len(found["fused"])), (2, 1))
        self.assertEqual((self.elements(found["separate"], n), len(found["separate"])), (11, 5))
        self.assertEqual(total(found["product"], STORED), total(found["product_bias_gelu"], STORED))

    def test_recomputation(self):
        """S9."""
        n = 4096
        found = sketch("s09_recomputation", ("[67108864]", f"[{n}]"))
        self.assertEqual((self.elements(found["stored"], n), self.elements(found["recomputed"], n)), (8, 5))
        stored, recomputed = (total(found[name], "smsp__inst_executed.sum") for name in ("stored", "recomputed"))
        self.assertGreater(recomputed, stored)

    def test_precision(self):
        """S10."""
        n = 512
        found = sketch("s10_precision", ("[67108864]", "[4096]"), ("[4096, 4096, 4096]", f"[{n}, {n}, {n}]"))
        for name, size in (("relu_f32", 8), ("relu_f16", 4)):
            self.assertEqual(total(found[name], LOADED, STORED) / 4096, size, name)
        steps = {name: total(found[name], "sm__inst_executed_pipe_tensor.sum") for name in ("f32", "tf32", "f16", "bf16", "s8")}
        self.assertEqual(steps["f32"], 0)
        for name, depth in (("tf32", 8), ("f16", 16), ("bf16", 16), ("s8", 32)):
            self.assertEqual(steps[name] * 16 * 8 * depth, n ** 3, name)

    def test_attention(self):
        """S13: S and P are written where they are kept, quadratic in the length; flash writes O and a sum a row."""
        length, heads, size = 256, 2, 64
        found = sketch("s13_attention", ("length: 2048", f"length: {length}"), ("heads: 256", f"heads: {heads}"),
                       ("heads: 128", f"heads: {heads}"), ("heads: 16", f"heads: {heads}"))
        output = heads * length * size * 2
        self.assertEqual(total(found["unfused"], STORED), output + 2 * heads * length ** 2 * 2)
        self.assertEqual(total(found["unfused_f32"], STORED), 2 * total(found["unfused"], STORED))
        self.assertEqual(total(found["flash"], STORED), output + heads * length * 4)
        # Back, dP and dS are written too, and the gradients of Q, K and V.
        self.assertEqual(total(found["unfused_backward"], STORED), 4 * output + 4 * heads * length ** 2 * 2)
        self.assertEqual([len(found[name]) for name in ("unfused", "flash", "flash_backward", "unfused_backward")], [3, 1, 4, 8])
        self.assertLess(total(found["flash_causal"], "sm__inst_executed_pipe_tensor.sum"),
                        total(found["flash"], "sm__inst_executed_pipe_tensor.sum"))
        self.assertIn("flash_128", found)

    def test_attention_of_warpgroups(self):
        """S13 on Hopper: TMA brings tiles and takes O away, so threads load and store nothing; wgmma reads tiles itself."""
        found = sketch("s13_hopper", ("length: 2048", "length: 256"), ("heads: 256", "heads: 2"), ("heads: 128", "heads: 2"))
        for name in ("64", "128_causal"):
            groups, warps = found[f"wgmma_{name}"], found[f"mma_{name}"]
            self.assertEqual(total(groups, LOADED, STORED), 0, name)
            self.assertEqual(self.executed(groups, "LDSM"), 0, name)
            self.assertGreater(self.executed(warps, "LDSM"), 0, name)

    def test_copies(self):
        """S17: who copies through registers executes loads and stores, cp.async one instruction for both, TMA neither."""
        n = 512
        small = ("[4096, 4096, 4096]", f"[{n}, {n}, {n}]")
        copies, boxes = sketch("s17_copies", small), sketch("s17_hopper", small)
        whole = 2 * (n / 128) * n * n * 2  # bytes: each tile of 128 is read n / 128 times
        for name in ("registers", "registers_ahead"):
            self.assertEqual(self.executed(copies[name], "LDGSTS"), 0, name)
            self.assertGreaterEqual(total(copies[name], LOADED), whole, name)
        for name in ("async_2", "async_4"):
            self.assertEqual(sum(r["bytes"] for r in copies[name][0]["memory"] if "LDGSTS" in r["sass"]), whole, name)
        for name, launches in boxes.items():
            self.assertEqual(total(launches, LOADED), 0, name)
            self.assertLess(total(launches, "smsp__inst_executed.sum"), total(copies["async_4"], "smsp__inst_executed.sum"), name)

    def test_sparse_products_take_half_the_steps(self):
        """S18."""
        found = sketch("s18_sparsity", ("grid: 1056", "grid: 132"))
        dense, sparse = (total(found[name], "sm__inst_executed_pipe_tensor.sum") for name in ("dense", "two_of_four"))
        self.assertEqual(sparse * 2, dense)


if __name__ == "__main__":
    FOREWARP = os.path.abspath(sys.argv.pop(1))
    unittest.main()

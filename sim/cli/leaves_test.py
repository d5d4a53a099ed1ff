"""No number of a GPU without effect: every leaf is moved a step with --set, and some small launch of the calibration kernels (or
its occupancy, roofline or report) must come out different.

    leaves_test.py FOREWARP [GPU...]"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DEFAULT = ["h200-sxm", "a100-sxm4-80gb"]  # one of each family

# Launches that a leaf of a group or by its whole name may show in, the likeliest first; `STEM CASE [OPTION...]`.
LAUNCHES = {
    "chip.": ["micro_launch empty_b1056_t32", "micro_l2 l2_read_4m_b132_n10", "micro_ports ports_write_all"],
    "occupancy.": ["micro_launch empty_b1056_t32", "micro_launch empty_b264_t1024", "micro_shared lds_32_w4_n50",
                   "micro_l1 l1_chase_w1_n64", "micro_launch empty_b4224_t1024"],
    "issue.": ["micro_branch loop_2_w1_n500", "micro_launch empty_b132_t32"],
    "issue.barrier": ["micro_barrier sync_threads_w4_n50"],
    "issue.membar_gpu": ["micro_barrier fence_gpu_w8_n10"],
    "issue.membar_cta": ["micro_barrier fence_block_w8_n50"],
    "issue.constant": ["micro_special special_constant_w1_n50", "micro_constant constant_chase_64_w1_n256"],
    "issue.register": ["micro_operands operands_two_1_w4_n100", "micro_issue ffma_three_registers_w4_n40"],
    "issue.wide": ["micro_opcodes imad_wide_w16_n20", "micro_wide wide_chain_w1_n20", "micro_opcodes imad_hi_dependent_w1_n20"],
    "issue.scoreboard": ["micro_scoreboards scoreboards_32_w1"],
    "pipes.alu.": ["micro_issue lop3_independent_w16_n40"],
    "pipes.fma": ["micro_issue imad_independent_w16_n40", "micro_issue ffma_independent_w16_n40"],
    "pipes.fp16.": ["micro_issue hfma2_independent_w16_n40", "micro_opcodes hadd2_independent_w16_n20"],
    "pipes.fp64.": ["micro_issue dfma_independent_w4_n20", "micro_issue dfma_independent_w16_n20"],
    "pipes.xu.": ["micro_issue ex2_independent_w16_n20"],
    "pipes.tensor.": ["micro_issue mix_ffma_hfma2_w16_n40"],
    "tensor.": ["micro_tensor_chains f16_16816_f32_c4_w16_n5", "micro_tensor_chains sp_f16_16816_c4_w16_n5",
                "micro_tensor_chains f16_1688_f32_c4_w16_n5"],
    "async.": ["micro_phases ping_pong_n50", "micro_warpgroup wgmma_128_1_g1_n100", "micro_phases boxes_64_4_b132_l2_n50",
               "micro_phases boxes_8_4_b1_l2_n50"],
    "async.slab": ["micro_warpgroup_beside beside_fmnmx_ss_128_w1_t3_n10"],
    "async.factor_fetch": ["micro_warpgroup_beside beside_fmnmx_rs_64_w1_t3_n10"],
    "async.phase_interval": ["micro_phases arrive_only_n50"],
    "cluster.": ["micro_clusters meet_fenced_c2_w1_n50", "micro_clusters far_loads_c2_b2_n50", "micro_clusters multicast_c2_b2_n50"],
    "cluster.hop": ["micro_clusters far_chase_c2_a1_n50"],
    "cluster.arrive": ["micro_clusters far_ping_pong_n50"],
    "cluster.sm_bytes": ["micro_clusters far_stores_c2_b2_n50"],
    "cluster.cpc": ["micro_clusters far_stores_c2_b132_n50"],
    "tensor.fp64": ["micro_tensor_chains f64_884_c4_w16_n5", "micro_tensor_chains f64_884_c1_w1_n5"],
    "pipes.lsu.": ["micro_turnover turnover_copy_1_of_256"],
    "pipes.adu.": ["micro_special special_sm_w16_n50", "micro_barrier sync_threads_w4_n50"],
    "pipes.cbu.": ["micro_branch loop_2_w1_n500", "micro_barrier sync_threads_w4_n50"],
    "pipes.uniform.": ["micro_issue uniform_dependent_w1_n40", "micro_arguments uniform_load_w1_n50"],
    "icache.": ["micro_code_size straight_line_64k_w1_b132_n1", "micro_code_size straight_line_96k_w1_b132_n5", "micro_code_size straight_line_192k_w1_b132_n5",
                "micro_code_size straight_line_40k_w1_b132_n5", "micro_loops loops_2_w8_n500", "micro_loops loops_1_w4_n500",
                "micro_launch empty_b132_t32 --cache warm", "micro_code_size straight_line_8k_w1_b132_n1"],
    "latency.mufu": ["micro_issue ex2_dependent_w1_n20"],
    "latency.conversion": ["micro_issue f2i_dependent_w1_n20"],
    "latency.popc": ["micro_issue popc_dependent_w1_n20"],
    "latency.shuffle": ["micro_shared shuffle_dependent_w1_n50"],
    "latency.vote": ["micro_shared vote_dependent_w1_n50"],
    "latency.s2r": ["micro_special special_thread_w1_n50"],
    "latency.fp64": ["micro_issue dfma_dependent_w1_n20"],
    "latency.shared": ["micro_shared lds_32_dependent_w1_n50", "micro_shared sts_then_overwrite_w1_n50",
                       "micro_shared atoms_dependent_w1_n50"],
    "latency.global_read_release": ["micro_l1_stores stores_0_lanes_32_w1_b1", "micro_l2 l2_write_b1_n4"],
    "latency.movm": ["micro_ldmatrix movm_chain_p16_w1_n20"],
    "memory_pipe.movm": ["micro_ldmatrix movm_p16_w16_n20"],
    "memory_pipe.fill": ["micro_copy_rows copies_beside_many_512_c4_n20"],
    "memory_pipe.register": ["micro_ldmatrix stsm_4_p16_w1_n20", "micro_accept accept_sts128_s4_m1"],
    "latency.queued": ["micro_exponentials exp_add_1_w1_n40"],
    "latency.match": ["micro_shared match_dependent_w1_n50"],
    "latency.redux": ["micro_shared redux_dependent_w1_n50"],
    "memory_pipe.": ["micro_shared lds_32_w32_n50", "micro_shared lds_32_32way_w16_n20", "micro_shared shuffle_w32_n50",
                     "micro_shared atoms_add_one_word_w1_n20", "micro_shared lds_128_w1_n50",
                     "micro_in_flight in_flight_lines_32_t512_b1", "micro_accept accept_lds_s1_mf"],
    "l1.": ["micro_l1 l1_chase_w1_n64", "micro_l1_strides l1_strides_8_n20", "micro_l1_tags l1_tags_bit_7_w1_n100",
            "micro_l1_stores stores_0_lanes_28_w4_b1", "micro_in_flight in_flight_lines_32_t1024_b1",
            "micro_in_flight in_flight_lines_1_t1024_b1", "micro_in_flight in_flight_lines_32_t1024_b132"],
    "crossbar.": ["micro_l2 l2_chase_512k_n32", "micro_l2 l2_read_4m_b132_n10", "micro_ports ports_write_all",
                  "micro_l2_modify modify_lanes_32_by1_n10", "micro_l2 l2_write_b132_n4", "micro_l2 l2_red_warp_n10"],
    "l2.": ["micro_l2 l2_chase_512k_n32", "micro_l2 l2_read_4m_b132_n10", "micro_l2_modify modify_lanes_32_by1_n10",
            "micro_l2 l2_red_one_n2", "micro_l2_dirty l2_copy_8", "micro_l2_dirty l2_write_16_find_0_4_p1_by0",
            "micro_l2_dirty l2_read_12_write_10_words", "micro_dram dram_read_n10", "micro_l2_drift drift_0_b132_n16"],
    "hbm.": ["micro_dram dram_chase_64m_n16", "micro_l2_dirty l2_copy_8", "micro_dram dram_strided_128_n8",
             "micro_dram dram_strided_1024_n2", "micro_dram dram_copy_n7"],
    "latency.copy_release": ["micro_copy_async copy_chase_cg_16_w1_n20"],
    "launch.": ["micro_launch empty_b1056_t32", "micro_turnover turnover_copy_1_of_256"],
}
def tied_moves(value):
    """For leaves that their neighbours bind, or that want something switched on or a longer step: what holds before, what
    holds after. `value` gives a leaf's number."""
    gpcs = value("chip.tpcs_per_gpc").count(",") + 1
    few_sms = [f"chip.sm_count={8 * gpcs}", f"chip.tpcs_per_gpc={[4] * gpcs}"]
    single = [few_sms[0], f"chip.tpcs_per_gpc={[8] * gpcs}", "chip.sms_per_tpc=1"]
    few_warps = ["occupancy.max_warps=16", "occupancy.max_threads=512", "occupancy.max_threads_per_block=512"]
    small = "[0, 8192, 16384, 32768, 65536, 102400, 135168]"
    return {
        "chip.sm_count": ([], few_sms),
        "chip.sms_per_tpc": (few_sms, single),
        "occupancy.max_warps": ([], few_warps),
        "occupancy.max_threads": ([], few_warps),
        "occupancy.shared_bytes": ([], ["occupancy.shared_bytes=135168", "occupancy.shared_block_max_bytes=134144",
                                        f"occupancy.carveouts_bytes={small}"]),
        "occupancy.carveouts_bytes": ([], [f"occupancy.carveouts_bytes=[65536, {value('occupancy.shared_bytes')}]"]),
        "issue.wide_product_operand_cycles": ([], ["issue.wide_product_operand_cycles=20"]),
        "issue.wide_product_chain_cycles": ([], ["issue.wide_product_chain_cycles=20"]),
        "crossbar.cpc_fabric_writes": ([], ["crossbar.cpc_fabric_writes=1"]),
        "crossbar.cpc_reads": ([], ["crossbar.cpc_reads=32"]),
        "tensor.fp64_products": ([], ["tensor.fp64_products=8"]),
        "tensor.fetch_pair_cycles": ([], ["tensor.fetch_pair_cycles=8"]),
        "l2.cold_dirty_bytes": ([], ["l2.cold_dirty_bytes=8000000"]),
        "hbm.access_bytes": ([], ["hbm.access_bytes=64", f"hbm.bytes_per_ns={2 * float(value('hbm.bytes_per_ns'))}"]),
        "hbm.refresh_turns": (["hbm.refresh_banks=1"], ["hbm.refresh_banks=1", "hbm.refresh_turns=4"]),
        "hbm.channels": ([], [f"hbm.channels={int(value('hbm.channels')) + 2}"]),
        "hbm.read_requests": ([], ["hbm.read_requests=16"]),
    }


# `sm` names the architecture: another one is another family's file.
UNSEEN = {"sm"}


def run(forewarp, *arguments):
    return subprocess.run([forewarp, *arguments], capture_output=True, text=True, timeout=300, check=False)


def leaves_of(forewarp, gpu):
    """[(path, value)] as describe prints them."""
    lines = run(forewarp, "describe", "gpu", gpu).stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:2] == ["number", "value"])
    leaves = []
    for line in lines[start + 1:]:
        match = re.match(r" *([a-z][a-z0-9_.]*) +(\[[^\]]*\]|\S+) ", line)
        if match:
            leaves.append((match[1], match[2]))
    return leaves


def steps(text):
    """Other values near this one, the likeliest to be allowed first."""
    if text in ("true", "false"):
        return ["false" if text == "true" else "true"]
    if text.startswith("["):
        items = [int(item) for item in text[1:-1].split(",")]
        if len(items) > 1:
            yield_lists = [items[1:] + items[:1], items[::-1], [items[0] + 1] + items[1:], items[:-1]]
        else:
            yield_lists = [[items[0] + 1]]
        return ["[" + ", ".join(map(str, other)) + "]" for other in yield_lists if other != items]
    value = float(text)
    if re.fullmatch(r"-?\d+", text):
        value = int(text)
        others = [value + max(1, value // 4), value - max(1, value // 4), value * 2, value // 2, value + 1, value - 1]
    else:
        others = [round(value * factor, 6) for factor in (1.2, 0.8, 0.5)]
    return [str(other) for other in others if other != value]


class Gpu:
    def __init__(self, forewarp, name):
        self.forewarp, self.name, self.known = forewarp, name, {}

    def predict(self, launch, changes=()):
        """What is said about a launch, or None where the change is not allowed."""
        key = (launch, tuple(changes))
        if key not in self.known:
            stem, case, *options = launch.split()
            code = "sm_80" if self.name.startswith("a100") else "sm_90"
            result = run(self.forewarp, "predict", f"{ROOT}/traces/{code}/{stem}.cubin", "--launch", f"{ROOT}/traces/{stem}.yaml",
                         "--gpu", self.name, "--case", case, "--causes", "counted", "--no-cache", "--threads", "1", "--json", "-",
                         *options, *(f"--set={change}" for change in changes))
            if result.returncode not in (0, 1):
                raise AssertionError(f"{self.name} {launch} {changes}: exit code {result.returncode}\n{result.stderr}")
            text = json.loads(result.stdout) if result.returncode == 0 else None
            if text is not None:
                text.pop("gpu_changes", None)
            self.known[key] = (text, result.stderr)
        return self.known[key]

    def peaks(self, changes=()):
        """What describe derives from the leaves; None where the change is not allowed."""
        result = run(self.forewarp, "describe", "gpu", self.name, *(f"--set={change}" for change in changes))
        return result.stdout.split("Where its numbers")[0] if result.returncode == 0 else None

    def has_effect(self, leaf, value, tied):
        """None when moving the leaf shows; else why not."""
        groups = sorted((group for group in LAUNCHES if leaf.startswith(group)), key=len, reverse=True)
        moves = [tied[leaf]] if leaf in tied else [([], [f"{leaf}={other}"]) for other in steps(value)]
        refused = ""
        for launch in [launch for group in groups for launch in LAUNCHES[group]]:
            for before, after in moves:
                base, trouble = self.predict(launch, before)
                moved, more = self.predict(launch, after)
                if base is None or moved is None:
                    refused = (trouble + more).strip()
                    continue
                if moved != base:
                    return None
                break
        for before, after in moves:
            if self.peaks(after) not in (self.peaks(before), None):
                return None
        return f"{leaf} = {value}: no launch changes" + (f" ({refused})" if refused else "")


def check_extremes(forewarp):
    """Values at the end of their range end in a prediction or in an error that says why, never in a run without end."""
    gpu = Gpu(forewarp, "h200-sxm")
    for change in ("chip.sm_clock_mhz=100", "chip.sm_clock_mhz=10000", "hbm.controller_ns=0", "l2.miss_entries=32766"):
        assert gpu.predict("micro_l2 l2_chase_512k_n32", [change])[0] is not None, change
    for change, told in (("crossbar.request_cycles=1", "off it for the nearest"), ("l2.miss_entries=65536", "4 to 32766")):
        text, trouble = gpu.predict("micro_l2 l2_chase_512k_n32", [change])
        assert text is None and told in trouble, f"{change}: {trouble}"


def main():
    forewarp, gpus = sys.argv[1], sys.argv[2:] or DEFAULT
    failed = 0
    check_extremes(forewarp)
    for name in gpus:
        gpu = Gpu(forewarp, name)
        leaves = leaves_of(forewarp, name)
        assert len(leaves) > 150, f"{name}: only {len(leaves)} leaves read"
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            tied = tied_moves(dict(leaves).__getitem__)
            moved = [leaf for leaf in leaves if leaf[0] not in UNSEEN]
            for trouble in pool.map(lambda leaf: gpu.has_effect(*leaf, tied), moved):
                if trouble:
                    failed += 1
                    print(f"{name}: {trouble}", flush=True)
        print(f"{name}: {len(leaves)} leaves", flush=True)
    print("every leaf has an effect" if failed == 0 else f"{failed} leaves without effect")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

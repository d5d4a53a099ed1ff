"""What the calibration kernels (kernels/micro, cases in traces/micro_launches.py) say about a GPU.

A quantity is the slope of a metric between two cases that differ in one number, divided by how many operations more the second
one runs. It supports the leaves of hwmodels/*.yaml that are named with it: one leaf decides the slope, or several together do
(a load that waits for the last costs its latency and the instructions that make its address). What is compared is the measured
slope with the slope of the same cases as forewarp predicts them; the leaves say which number to look at where they differ.

  quantities.py      write all of them to kernels/micro/quantities.yaml, for other programs
"""
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "kernels" / "micro" / "quantities.yaml"
sys.path.insert(0, str(ROOT / "traces"))
import hopper_launches  # noqa: E402
import micro_launches as launches  # noqa: E402  (which warps and forms there are)

CYCLES = "gpc__cycles_elapsed.max"
TIME = "gpu__time_duration.sum"  # ns

KIB, MIB = 1 << 10, 1 << 20
SMS = 132


@dataclass(frozen=True)
class Quantity:
    name: str
    low: str  # case; "" for the whole of `high`
    high: str
    count: float  # operations that `high` runs more than `low`
    unit: str
    leaves: tuple
    rate: bool = False  # count per cycle or ns, not cycles or ns per count
    metric: str = CYCLES


def slope(case, trips, per_trip, unit, leaves, **more):
    """Between case_nLOW and case_nHIGH, which run per_trip operations each time round."""
    low, high = trips
    return Quantity(more.pop("name", case), f"{case}_n{low}", f"{case}_n{high}", (high - low) * per_trip, unit,
                    tuple(leaves.split()), **more)


def launch_costs():
    def between(name, low, high, count, unit, leaves, **more):
        return Quantity(name, low, high, count, unit, tuple(leaves.split()), **more)
    both = "launch.start_cycles launch.end_cycles"
    return [
        between("empty grid, 1 block of 32", "", "empty_b1_t32", 1, "cycles", both + " launch.block_start_cycles issue.first_cycles issue.exit_cycles"),
        between("empty grid, 132 blocks of 32", "", "empty_b132_t32", 1, "cycles", both),
        between("blocks of 32: 132 to 264", "empty_b132_t32", "empty_b264_t32", 132, "cycles/block", "launch.blocks_back_per_cycle_x16"),
        between("blocks of 32: 264 to 1056", "empty_b264_t32", "empty_b1056_t32", 792, "cycles/block", "launch.blocks_back_per_cycle_x16"),
        between("blocks of 32: 1056 to 4224", "empty_b1056_t32", "empty_b4224_t32", 3168, "cycles/block",
                "launch.blocks_back_per_cycle_x16"),
        between("blocks of 32, many", "empty_b4224_t32", "empty_b33792_t32", 29568, "blocks/cycle", "launch.blocks_back_per_cycle_x16",
                rate=True),
        between("blocks of 128, many", "empty_b132_t128", "empty_b33792_t128", 33660, "blocks/cycle",
                "launch.blocks_back_per_cycle_x16 launch.warp_start_interval launch.block_end_cycles", rate=True),
        between("blocks of 256, many", "empty_b132_t256", "empty_b33792_t256", 33660, "blocks/cycle",
                "launch.blocks_back_per_cycle_x16 launch.warp_start_interval launch.block_end_cycles", rate=True),
        between("a warp more in a block: 32 to 1024", "empty_b132_t32", "empty_b132_t1024", 31, "cycles/warp",
                "launch.warp_start_interval"),
        between("a warp more in a block alone", "empty_b1_t32", "empty_b1_t1024", 31, "cycles/warp", "launch.warp_start_interval"),
        between("a second block of 1024 on every SM", "empty_b132_t1024", "empty_b264_t1024", 1, "cycles",
                "launch.blocks_back_per_cycle_x16 launch.warp_start_interval"),
        between("blocks of 1024 an SM, one by one", "empty_b1056_t1024", "empty_b4224_t1024", 24, "cycles/block of an SM",
                "launch.block_start_cycles launch.block_end_cycles launch.warp_start_interval issue.exit_cycles"),
    ]


def code_size():
    sizes = {8: "l0_bytes", 16: "l0_bytes", 24: "l0_bytes", 32: "l0_bytes", 40: "l1_hit_cycles", 48: "l1_hit_cycles",
             64: "l1_hit_cycles", 96: "l1_bytes", 128: "l1_bytes", 192: "l2_hit_cycles"}
    fetch = " icache.prefetch_lines icache.line_bytes"
    warm = [slope(f"straight_line_{kib}k_w1_b132", (5, 25), kib * 64, "cycles/instruction", f"icache.{leaf}{fetch}",
                  name=f"warm pass over {kib} KiB, 1 warp") for kib, leaf in sizes.items()]
    warm += [slope(f"straight_line_{kib}k_w4_b132", (5, 25), kib * 64, "cycles/instruction", f"icache.{sizes[kib]}{fetch}",
                   name=f"warm pass over {kib} KiB, a warp a sub-partition") for kib in (8, 32, 192)]
    cold = [("8", "32"), ("32", "64"), ("64", "128"), ("128", "192")]
    def first(low, high, grid):
        return Quantity(f"first pass, {low} to {high} KiB, {grid} blocks", f"straight_line_{low}k_w1_b{grid}_n1",
                        f"straight_line_{high}k_w1_b{grid}_n1", (int(high) - int(low)) * 8, "cycles/line of 128",
                        ("icache.memory_cycles", "icache.l2_hit_cycles", "icache.l1_hit_cycles", "icache.prefetch_lines"))
    return warm + [first(low, high, 132) for low, high in cold] + [first("8", "64", 1), first("64", "192", 1)]


def issue():
    """Independent chains: cycles a warp instruction of one sub-partition, which runs a quarter of the SM's warps."""
    interval_of = {"ffma": "pipes.fma.interval", "imad": "pipes.fma_heavy.interval", "lop3": "pipes.alu.interval",
                   "iadd3": "pipes.alu.interval", "i2f": "pipes.alu.interval", "hfma2": "pipes.fp16.interval",
                   "ex2": "pipes.xu.interval", "rsq": "pipes.xu.interval", "f2i": "pipes.xu.interval", "popc": "pipes.xu.interval",
                   "dfma": "pipes.fp64.interval"}
    latency_of = {"ffma": "pipes.fma.interval", "imad": "pipes.fma_heavy.interval", "lop3": "pipes.alu.interval",
                  "iadd3": "pipes.alu.interval", "i2f": "pipes.alu.interval", "hfma2": "pipes.fp16.interval", "ex2": "latency.mufu",
                  "rsq": "latency.mufu", "f2i": "latency.conversion", "popc": "latency.popc", "dfma": "latency.fp64"}
    trips_of = {"dfma": (20, 100)} | {kind: (20, 60) for kind in ("ex2", "rsq", "f2i", "popc")}
    warps_of = {"ffma": (1, 4, 16, 32), "dfma": (4, 16)}
    quantities = []
    for kind, interval in interval_of.items():
        trips = trips_of.get(kind, (40, 200))
        quantities.append(slope(f"{kind}_dependent_w1", trips, 64, "cycles", latency_of[kind]))
        quantities += [slope(f"{kind}_independent_w{warps}", trips, 64 * max(1, warps // 4), "cycles", interval)
                       for warps in warps_of.get(kind, (16,))]
    trips = (40, 200)
    quantities.append(slope("setp_sel_dependent_w1", trips, 64, "cycles/pair", "pipes.alu.interval"))
    quantities += [slope(f"ffma_three_registers_w{warps}", trips, 16 * warps, "cycles",
                         "issue.register_bank_count issue.register_window_cycles pipes.fma.interval") for warps in (4, 16)]
    quantities += [slope(f"mix_ffma_{other}_w16", trips, 64 * 4, "cycles", f"pipes.fma.interval pipes.{pipe}.interval")
                   for other, pipe in [("lop3", "alu"), ("imad", "fma_heavy"), ("hfma2", "fp16")]]
    quantities.append(slope("uniform_dependent_w1", trips, 32, "cycles/add and mask", "pipes.uniform.interval"))
    return quantities


def opcodes():
    """The pipe of each opcode that issue() leaves out, and pairs that meet at dispatch or at the register ports."""
    of_pipe = {"alu": "min_s32 shl shf prmt fmnmx fsetp_sel pack_half hmnmx2 add64", "fma": "fmul ffma_immediate ffma_immediate_factor "
               "ffma_uniform hadd2 hmul2 hfma2_bf16", "fma_heavy": "imad_uniform dp4a h2f2h", "xu": "clz brev lg2 sin tanh d2f2d i2d",
               "fp64": "dadd dmul"}
    wide = "issue.wide_product_interval issue.wide_product_dispatch_cycles"
    trips, quantities = (20, 80), []
    for pipe, kinds in of_pipe.items():
        for kind in kinds.split():
            latency = {"xu": "latency.mufu latency.conversion latency.popc", "fp64": "latency.fp64"}.get(pipe, f"pipes.{pipe}.interval")
            quantities.append(slope(f"{kind}_dependent_w1", trips, 64, "cycles", latency))
            quantities.append(slope(f"{kind}_independent_w16", trips, 64 * 4, "cycles", f"pipes.{pipe}.interval"))
    quantities.append(slope("imad_hi_dependent_w1", trips, 64, "cycles", "issue.wide_product_chain_cycles"))
    quantities.append(slope("imad_hi_independent_w16", trips, 64 * 4, "cycles", "issue.wide_product_interval"))
    quantities.append(slope("imad_wide_w16", trips, 64 * 4, "cycles", wide))
    for pair in ("imad_wide_imad", "imad_wide_lop3", "imad_wide_ffma"):
        quantities.append(slope(f"pair_{pair}_w16", trips, 64 * 4, "cycles", wide))
    for pair, pipes in [("imad_lop3", "fma_heavy alu"), ("fadd_add", "fma alu"), ("fmul_add", "fma alu"), ("ffma_lg2", "fma xu"),
                        ("lop3_lg2", "alu xu"), ("dadd_ffma", "fp64 fma"), ("dadd_lop3", "fp64 alu"), ("hadd2_lop3", "fma alu"),
                        ("ffma_uniform_add", "fma alu")]:
        leaves = " ".join(f"pipes.{pipe}.interval" for pipe in pipes.split())
        quantities.append(slope(f"pair_{pair}_w16", trips, 64 * 4, "cycles", leaves + " issue.register_bank_count"))
    return quantities


def wide():
    """A 64-bit product (with the LOP3 that joins a wide one's halves) and what stands beside it; one warp, then four a scheduler."""
    both = "issue.wide_product_interval issue.wide_product_dispatch_cycles"
    quantities = [slope(f"wide_chain_w{warps}", (20, 80), 32 * max(1, warps // 4), "cycles/product",
                        "issue.wide_product_operand_cycles") for warps in (1, 4, 8, 16)]
    for kernel in ("wide_alone", "wide_coded_alone", "wide_mix", "wide_mix_mix", "wide_mix_mix_mix", "wide_coded_mix_mix", "wide_add",
                   "wide_add_add", "wide_add_add_add", "wide_coded_add_add", "wide_mix_add", "high_alone", "high_mix_mix",
                   "high_add_add"):
        quantities += [slope(f"{kernel}_w{warps}", (20, 80), 32 * max(1, warps // 4), "cycles/product", both) for warps in (1, 4, 8, 16)]
    return quantities


def operands():
    """Straight code whose operands meet in a bank; one warp a scheduler, then two."""
    kernels = [f"operands_{kind}_{seed}" for kind, seeds in (("two", 4), ("three", 4), ("sum", 2)) for seed in range(1, seeds + 1)]
    kernels += [f"operands_outer_8_{columns}{order}" for columns in (8, 4) for order in ("", "_mixed")]
    return [slope(f"{kernel}_w{warps}", (100, 400), warps // 4, "cycles/turn",
                  "issue.register_window_cycles") for kernel in kernels for warps in (4, 8)]


def beside():
    """FFMAs and the loads from shared memory beside them; an iteration of one warp."""
    port = "memory_pipe.port_wavefront_cycles"
    ways = ["beside_0_of_1"] + [f"beside_{loads}_of_{words}_{place}" for words in (1, 2, 4) for loads in (2, 4, 8, 16) for place in ("spread", "one")]
    products = [f"{kernel}_{a}_{b}" for kernel in ("beside_product", "beside_product_ahead") for a, b in ((0, 0), (0, 16), (16, 16))]
    return [slope(f"{case}_w{warps}", trips, max(1, warps // 4), unit, port)
            for cases, trips, unit in ((ways, (100, 400), "cycles/64 FFMAs"), (products, (50, 200), "cycles/256 FFMAs"))
            for case in cases for warps in (1, 4, 8, 16)]


def branch():
    loops = "issue.branch_cycles pipes.fma.interval"
    return [slope(f"{loop}_w{warps}", (500, 2500), 1, "cycles/trip", loops)
            for loop, warps in [("loop_2", 1), ("loop_4", 1), ("loop_16", 1)]] + [
        slope(f"loop_2_w{warps}", (500, 2500), max(1, warps // 4), "cycles/trip of a sub-partition", loops + " pipes.cbu.interval")
        for warps in (4, 8, 16, 32)] + [
        slope("forward_skip1_w16", (50, 250), 8 * 4, "cycles/taken branch and FFMA of a sub-partition",
              "issue.branch_cycles pipes.cbu.interval"),
        slope("forward_skip1_w1", (50, 250), 8, "cycles/taken branch and FFMA", "issue.branch_cycles"),
        slope("forward_skip0_w1", (50, 250), 8, "cycles/untaken branch and 17 FFMA", "pipes.cbu.interval pipes.fma.interval"),
        slope("predicated_off_w1", (50, 250), 64, "cycles", "pipes.fma.interval"),
        slope("two_sides_0_w1", (50, 250), 1, "cycles/trip, one side", "issue.branch_cycles pipes.cbu.interval"),
        slope("two_sides_1_w1", (50, 250), 1, "cycles/trip, both sides", "issue.branch_cycles pipes.cbu.interval"),
        slope("longest_lane_same1_w1", (100, 500), 1, "cycles/4 trips of all lanes", "issue.branch_cycles"),
        slope("longest_lane_same0_w1", (100, 500), 1, "cycles/1 to 4 trips", "issue.branch_cycles pipes.cbu.interval"),
    ]


def loops():
    """Turns of one block's warps, and how blocks side by side share: how evenly (the older done first leaves few warps), and till when."""
    feed = "icache.feed_cycles icache.feed_line_cycles icache.feed_interval_cycles icache.feed_lines"
    lengths = (1, 2, 3, 4, 6, 8, 16, 32)
    alone = [(f"loops_{length}", (4, 8, 12, 16, 20, 24, 28, 32)) for length in lengths] + [(f"loops_{length}_last", (4, 16, 32)) for length in (2, 4, 8)]
    quantities = [slope(f"{kernel}_w{warps}", (500, 2500), 1, "cycles/trip of each warp", feed) for kernel, sweep in alone for warps in sweep]
    for length in lengths:
        for blocks, warps in ((2, 4), (2, 8), (2, 16), (4, 4), (4, 8), (4, 16), (8, 4), (8, 8)):
            case = f"loops_{length}_b{blocks}_w{warps}"
            quantities += [Quantity(f"{case} active", "", case, 1, "% of 64 warps", tuple(feed.split()),
                                    metric="sm__warps_active.avg.pct_of_peak_sustained_active"),
                           Quantity(case, "", case, 4800 // (length + 3), "cycles/trip of all", tuple(feed.split()))]
    return quantities


def barrier():
    sync = "issue.barrier_release_cycles issue.barrier_per_warp_cycles pipes.adu.interval"
    return [slope(f"sync_threads_w{warps}", (50, 250), 8, "cycles/barrier", sync) for warps in (1, 4, 16, 32)] + [
        slope("sync_threads_two_blocks_w16", (50, 250), 8, "cycles/barrier of both", sync)] + [
        slope(f"sync_then_{kind}_w{warps}", (50, 250), 8, f"cycles/barrier and {what}", sync)
        for kind, what in [("fma", "two FFMA"), ("root", "MUFU")] for warps in (1, 4, 32)] + [
        slope(f"release_w{warps}", (16, 64), 1, "cycles/trip", sync) for warps in (4, 8)] + [
        slope(f"fence_{scope}_w{warps}", trips, 4, "cycles/store and fence", f"issue.membar_{leaf}_cycles")
        for scope, leaf, trips in [("gpu", "gpu", (10, 50)), ("block", "cta", (50, 250))] for warps in (1, 8)]


def special():
    reads = {"special_sm": (8, "pipes.adu.interval latency.s2r"), "special_block": (3, "pipes.adu.interval latency.s2r"),
             "special_thread": (3, "latency.s2r"), "special_constant": (4, "pipes.adu.interval issue.constant_hit_cycles")}
    return [slope(f"{kernel}_w{warps}", (50, 250), count * warps, "cycles/read of an SM", leaves)
            for kernel, (count, leaves) in reads.items() for warps in (1, 16, 32)]


def constant():
    return [slope(f"constant_chase_{size}_w1", (256, 768), 8, "cycles/load", f"issue.constant_{leaf}_cycles")
            for size, leaf in [(64, "hit"), (1024, "hit"), (4096, "miss"), (16384, "miss"), (65536, "miss")]] + [
        slope(f"constant_first_touch_{step}_w1", (8, 32), 8, "cycles/load",
              "issue.constant_miss_cycles issue.constant_hit_cycles issue.constant_line_bytes") for step in (32, 64, 256)]


def arguments():
    return [
        slope("uniform_load_w1", (50, 250), 8, "cycles/load and its readers",
              "issue.constant_hit_cycles pipes.uniform.interval"),
        slope("ffma_argument_dependent_w1", (40, 200), 64, "cycles", "pipes.fma.interval"),
        slope("ffma_argument_independent_w16", (40, 200), 64 * 4, "cycles", "pipes.fma.interval"),
    ]


def shared():
    once, short = (50, 250), (20, 100)
    quantities = []
    for width in (32, 64, 128):
        quantities.append(slope(f"lds_{width}_dependent_w1", once, 16, "cycles/load and add", "latency.shared_load"))
        quantities.append(slope(f"lds_{width}_w4", once, 16, "cycles/load of a sub-partition",
                                "memory_pipe.register_cycles memory_pipe.queue_entries"))
        quantities.append(slope(f"lds_{width}_w32", once, 16 * 32, "cycles/load of the SM",
                                "memory_pipe.shared_wavefront_cycles memory_pipe.lsu_interval"))
        quantities.append(slope(f"sts_{width}_w16", once, 16 * 16, "cycles/store of the SM",
                                "memory_pipe.shared_wavefront_cycles memory_pipe.lsu_interval"))
    for width in (64, 128):
        for kind in ("", "_same"):
            quantities.append(slope(f"lds_{width}{kind}_w1", once, 16, "cycles/load", "memory_pipe.port_wavefront_cycles memory_pipe.register_cycles"))
        quantities.append(slope(f"lds_{width}_dependent_same_w1", once, 16, "cycles/load and add",
                                "latency.shared_load memory_pipe.wide_latency"))
    quantities += [slope(f"lds_32_dependent_{ways}way_w1", once, 16, "cycles/load and add",
                         "latency.shared_load memory_pipe.shared_conflict_latency") for ways in (2, 8, 32)]
    quantities += [slope(f"lds_32_{ways}way_w16", short, 16 * 16, "cycles/load of the SM", "memory_pipe.shared_wavefront_cycles")
                   for ways in (8, 32)]
    quantities.append(slope("sts_32_8way_w16", short, 16 * 16, "cycles/store of the SM", "memory_pipe.shared_wavefront_cycles"))
    quantities.append(slope("sts_then_overwrite_w1", once, 16, "cycles/store and LOP3",
                            "memory_pipe.register_cycles memory_pipe.queue_entries"))
    quantities.append(slope("sts_counter_w1", (500, 2500), 1, "cycles/store, count and branch",
                            "latency.shared_store_read issue.branch_cycles"))
    quantities.append(slope("atoms_dependent_w1", once, 16, "cycles/atomic and add", "latency.shared_atomic"))
    quantities += [slope(f"atoms_add_w{warps}", short, 16 * warps, "cycles/atomic of the SM", "memory_pipe.shared_wavefront_cycles")
                   for warps in (1, 16)]
    quantities.append(slope("atoms_add_one_word_w1", short, 16, "cycles/atomic", "latency.shared_atomic"))
    quantities.append(slope("shuffle_dependent_w1", once, 16, "cycles", "latency.shuffle"))
    quantities.append(slope("shuffle_w4", once, 16, "cycles/shuffle of a sub-partition", "memory_pipe.register_cycles"))
    quantities.append(slope("shuffle_w32", once, 16 * 32, "cycles/shuffle of the SM", "memory_pipe.shuffle_interval"))
    quantities.append(slope("vote_dependent_w1", once, 16, "cycles/compare and vote", "latency.vote"))
    quantities.append(slope("redux_dependent_w1", once, 16, "cycles/redux, move and LOP3", "latency.redux"))
    quantities.append(slope("match_dependent_w1", once, 16, "cycles", "latency.match"))
    return quantities


def l1():
    once, short = (50, 250), (20, 100)
    quantities = [slope("l1_chase_w1", (64, 256), 8, "cycles/load and address", "l1.hit_cycles")]
    quantities += [slope(f"l1_chase_strided_{stride}_w1", once, 8, "cycles/load and address", "l1.hit_cycles l1.tags_per_cycle")
                   for stride in (8, 32)]
    for width in (32, 64, 128):
        quantities.append(slope(f"l1_load_{width}_w4", once, 8, "cycles/load of a sub-partition",
                                "memory_pipe.register_cycles memory_pipe.queue_entries"))
        quantities.append(slope(f"l1_load_{width}_w32", once, 8 * 32, "cycles/load of the SM",
                                "memory_pipe.lsu_interval l1.data_bytes_per_cycle"))
    quantities += [slope(f"l1_load_32_stride{stride}_w16", short, 8 * 16, "cycles/load of the SM",
                         "l1.tags_per_cycle l1.data_bytes_per_cycle") for stride in (0, 2, 3, 4, 8, 16, 32)]
    quantities.append(slope("l1_load_128_stride8_w16", short, 8 * 16, "cycles/load of the SM",
                            "l1.tags_per_cycle l1.data_bytes_per_cycle"))
    for grid, leaf in [(1, "crossbar.sm_write_bytes_per_cycle"),
                       (SMS, "crossbar.cpc_write_bytes_per_cycle")]:
        quantities.append(slope(f"l1_store_32_w16_b{grid}", once, 8 * 16 * 128, "bytes/cycle of an SM", leaf, rate=True))
        quantities.append(slope(f"l1_store_128_w16_b{grid}", (25, 125), 8 * 16 * 512, "bytes/cycle of an SM", leaf, rate=True))
    return quantities


def l2():
    hit = "l1.hit_cycles crossbar.request_cycles l2.hit_cycles crossbar.response_cycles"
    quantities = [slope(f"l2_chase_line{line}", (32, 160), 8, "cycles/load and address", hit) for line in (3, 17)]
    quantities += [slope(f"l2_chase_{size}", (32, 160), 8, "cycles/load and address",
                         hit + " crossbar.far_cycles l2.replicate_far_lines") for size in ("512k", "4m", "16m", "32m")]
    few = 16 * 65536  # bytes an SM and pass
    quantities += [slope(f"l2_read_few_b{grid}", (4, 12), few * grid, f"bytes/cycle of {grid} SM", leaf, rate=True)
                   for grid, leaf in [(1, "crossbar.sm_response_bytes_per_cycle crossbar.sm_requests_per_cycle_x16 "
                                          "crossbar.sm_response_bytes_per_cycle"),
                                      (2, "crossbar.tpc_response_bytes_per_cycle"), (16, "crossbar.gpc_response_bytes_per_cycle")]]
    quantities += [slope(f"l2_read_some_b{grid}", (16, 48), few // 4 * grid, f"bytes/cycle of {grid} SM",
                         "crossbar.gpc_response_bytes_per_cycle", rate=True) for grid in (8, 32, 66)]
    quantities += [slope(f"l2_read_{text}_b1", (4, 12), 64 * 2048 * warps, "bytes/cycle of an SM", hit, rate=True)
                   for text, warps in [("1_warp", 1), ("8_warps", 8)]]
    step = SMS * 65536  # bytes of all SMs at 1024 threads, 4 x 16 bytes each
    whole = "l2.slices l2.slice_bytes_per_cycle l2.clock_ratio crossbar.fabric_bytes_per_cycle l2.replicate_far_lines l2.bytes"
    for text, size, trips in [("4m", step // 2, (10, 50)), ("9m", step, (5, 25)), ("17m", 2 * step, (4, 14)),
                              ("26m", 3 * step, (3, 11)), ("35m", 4 * step, (3, 9)), ("43m", 5 * step, (2, 8))]:
        quantities.append(slope(f"l2_read_{text}_b132", trips, size, "bytes/cycle of all", whole, rate=True))
    quantities.append(slope("l2_write_b1", (4, 12), few, "bytes/cycle of an SM", "crossbar.sm_write_bytes_per_cycle", rate=True))
    quantities.append(slope("l2_write_b132", (4, 14), 2 * step, "bytes/cycle of all", "crossbar.cpc_write_bytes_per_cycle", rate=True))
    warps = SMS * 8
    atomic = "l2.atomic_interval crossbar.sm_requests_per_cycle_x16 crossbar.sm_write_bytes_per_cycle"
    quantities += [slope(f"l2_red_{words}", trips, 8 * warps, "warp atomics/cycle of all", atomic, rate=True)
                   for words, trips in [("own", (10, 50)), ("warp", (10, 50)), ("one", (2, 6))]]
    quantities.append(slope("l2_red_lines", (10, 50), 8 * SMS * 32, "lines/cycle of all", atomic, rate=True))
    quantities.append(slope("l2_atom_chase", (16, 80), 8, "cycles/atomic and address", hit + " l2.atomic_interval"))
    return quantities


def l2_drift():
    """The pace of loops over tiles in L2, of the slowest SM, and what reads are not made together; how far each SM is (l2_distance.py)."""
    way = "crossbar.tpc_cycles crossbar.slice_cycles crossbar.copy_cycles l2.coalescer_requests l2.coalescer_cycles launch.gpc_after_gpc"
    quantities = [Quantity("distance_n4", "", "distance_n4", 1, "cycles", tuple(way.split()))]
    for case in ("drift_0_b132", "drift_64_b132", "drift_64_b2", "drift_512_b132"):
        for trips in ((16, 64), (256, 1024)):
            for unit, metric in (("cycles", CYCLES), ("sectors", "lts__t_sectors_srcunit_tex_op_read.sum")):
                quantities.append(slope(case, trips, 1, f"{unit}/trip", way, name=f"{case}, {trips[0]} to {trips[1]}, {unit}", metric=metric))
    for delay in ("0_0", "1_0", "0_1", "2_0", "0_2", "3_0", "1_2", "0_3", "4_0", "0_4", "5_0", "6_0", "8_0"):
        for trips in ((8, 24), (24, 256)):
            quantities.append(slope(f"window_{delay}", trips, SMS * 4, "requests/read", "l2.coalescer_cycles " + way.replace("l2.coalescer_cycles ", ""),
                                    name=f"window_{delay}, {trips[0]} to {trips[1]}", metric="lts__t_sectors_srcunit_tex_op_read.sum"))
    return quantities


def l2_step():
    """The pace of such loops between two trip counts, and what reads are not made together."""
    leaves = "l2.coalescer_requests l2.coalescer_cycles launch.tpcs_apart hbm.refresh_spread"
    loops = [f"step_{kind}_t{tiles}" for kind in ("fma", "mufu", "lds", "pairs", "forces") for tiles in (128, 8)]
    loops += [f"two_{which}_b{blocks}_t{tiles}_f{work}" for blocks in (64, SMS) for which in (1, 2, 3)
              for tiles, work in ((128, 32), (128, 256), (8, 256))]
    quantities = [slope(case, (16, 128), 1, f"{unit}/trip", leaves, name=f"{case}, {unit}", metric=metric) for case in loops
                  for unit, metric in (("cycles", CYCLES), ("sectors", "lts__t_sectors_srcunit_tex_op_read.sum"))]
    for blocks, warps in ((SMS, 2), (SMS, 4), (SMS, 16), (64, 8), (2 * SMS, 8), (4 * SMS, 8)):
        case = f"step_pairs_b{blocks}_w{warps}_n128"
        quantities.append(Quantity(f"{case}, sectors", "", case, 1, "sectors", tuple(leaves.split()),
                                   metric="lts__t_sectors_srcunit_tex_op_read.sum"))
    return quantities


def dram():
    miss = "hbm.controller_ns hbm.t_rp hbm.t_rcd hbm.t_cl l2.hit_cycles crossbar.request_cycles crossbar.response_cycles"
    quantities = [slope(f"dram_chase_{size}", (16, 112), 8, unit, miss, name=f"dram_chase_{size}, {unit}", metric=metric)
                  for size in ("64m", "512m") for unit, metric in [("cycles/load", CYCLES), ("ns/load", TIME)]]
    step = 2 * SMS * 1024 * 16  # bytes: 16 of each thread
    turns = "hbm.bytes_per_ns hbm.write_high hbm.write_low hbm.t_wtr hbm.t_rtw hbm.queue_entries"
    quantities += [slope(case, trips, size, "bytes/ns", leaves, rate=True, metric=TIME) for case, trips, size, leaves in [
        ("dram_read", (10, 30), 4 * step, "hbm.bytes_per_ns hbm.queue_entries hbm.t_rfc"),
        ("dram_write", (10, 30), 4 * step, turns), ("dram_copy", (7, 21), 8 * step, turns), ("dram_add", (10, 30), 6 * step, turns)]]
    for count in (1, 4):
        for warps, steps in [(1, 192), (4, 128), (8, 96), (32, 48)]:
            high = steps // (2 if count == 4 and warps > 4 else 1)
            quantities.append(slope(f"dram_read_{count}_w{warps}", (high // 3, high), SMS * warps * 512 * count, "bytes/cycle",
                                    miss + " l1.loads_in_flight l1.miss_lines l2.miss_entries", rate=True))
    for stride, threads, trips in [(32, 8 * 256, (20, 60)), (64, 8 * 256, (15, 45)), (128, 8 * 256, (8, 24)),
                                   (256, 8 * 256, (4, 12)), (512, 8 * 256, (2, 6)), (1024, 4 * 256, (2, 6)), (4096, 256, (2, 6)),
                                   (16384, 64, (2, 6))]:
        quantities.append(slope(f"dram_strided_{stride}", trips, SMS * threads, "sectors/ns",
                                "hbm.access_bytes hbm.row_bytes hbm.channels hbm.t_rp hbm.t_rcd hbm.t_faw "
                                "hbm.read_requests", rate=True, metric=TIME))
    return quantities


def wholes(stem, leaves="", metric=CYCLES, unit="cycles"):
    """Every case of a launch file as it is: what a slope cannot tell, as where blocks go or what L2 keeps."""
    launches = (ROOT / "traces" / f"{stem}.yaml").read_text(encoding="utf-8")
    return [Quantity(case, "", case, 1, unit, tuple(leaves.split()), metric=metric)
            for case in re.findall(r"^(\w+):$", launches, re.MULTILINE)]


def order():
    return wholes("micro_order", metric="sm__warps_active.avg.pct_of_peak_sustained_active", unit="% of 64 warps")


def queue():
    return wholes("micro_queue", "memory_pipe.queue_entries")


def accept():
    """All as a whole; what stalls where the queues of one or four sub-partitions fill. Their clocks say more."""
    throttle, short = (f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in ("mio_throttle", "short_scoreboard"))
    cases = {throttle: ("lds_s32_m11", "lds_s32_mf", "lds_s32_mff", "sts_s32_mff", "lds_all"), short: ("lds_s32_m1", "lds_s32_m11", "lds_s32_mf")}
    stalls = [Quantity(f"accept_{name} {metric.split('_')[6]}", "", f"accept_{name}", 1, "warps/issue", ("memory_pipe.queue_entries",),
                       metric=metric) for metric, names in cases.items() for name in names]
    return wholes("micro_accept", "memory_pipe.queue_entries") + stalls


def waves():
    return wholes("micro_waves", "launch.gpc_after_gpc launch.block_start_cycles")


def turnover():
    return wholes("micro_turnover", "launch.block_end_cycles launch.block_start_cycles launch.warp_start_interval issue.exit_cycles")


def l2_modify():
    return wholes("micro_l2_modify", "l2.atomic_interval l2.atomic_word_interval")


def l1_tags():
    return wholes("micro_l1_tags", "l1.tag_bank_masks l1.tags_per_cycle")


def l1_strides():
    return [slope(f"l1_strides_{stride}", (20, 100), 8 * 16, "cycles/load of the SM", "l1.tags_per_cycle")
            for stride in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15)]


def l2_policy():
    return wholes("micro_l2_policy", "l2.dirty_share l2.partial_share")


def in_flight():
    return wholes("micro_in_flight", "l1.loads_in_flight l1.miss_lines")


def scoreboards():
    return wholes("micro_scoreboards", "issue.scoreboard_limit")


def last():
    return [slope(f"last_{name}_w{warps}", steps, 1, "cycles/step", "hbm.t_rfc hbm.controller_ns crossbar.far_cycles")
            for name, steps, some in [("apart", (64, 320), (1, 2, 4, 8, 16, 32)), ("beside", (64, 320), (4, 32)), ("all", (16, 80), (4, 16, 32))]
            for warps in some]


def ports():
    leaves = "crossbar.cpc_fabric_writes crossbar.slice_write_bytes_per_cycle"
    # Some SMs write faster than others, and end sooner: the mean of them says how much is taken in.
    return wholes("micro_ports", leaves) + [
        Quantity(f"ports_write_lanes_{lanes}_mean", "", f"ports_write_lanes_{lanes}", 1, "cycles", tuple(leaves.split()), metric="sm__cycles_active.avg")
        for lanes in (1, 8, 32)]


def copy_async():
    def per_copy(kernel, warps, leaves):
        return slope(f"{kernel}_w{warps}", (20, 60), 8 * warps, "cycles/copy", leaves)
    return ([per_copy(f"copy_chase_{way}", 1, "l1.hit_cycles memory_pipe.lead_cycles")
             for way in ("ca_4", "ca_16", "cg_16", "nothing", "registers")] +
            [per_copy(f"copy_many_{way}", warps, "crossbar.sm_response_bytes_per_cycle memory_pipe.shared_wavefront_cycles")
             for way in ("ca_4", "ca_8", "ca_16", "cg_16", "nothing", "ca_4_conflicts") for warps in (1, 4, 16)] +
            [per_copy(f"copy_groups_{left}", warps, "l1.hit_cycles") for left in (0, 1, 2, 3, 5) for warps in (1, 8)])


PRODUCT = "cycles/product of a sub-partition"
TENSOR = "tensor.product_bits tensor.fetch_cycles tensor.fetch_pair_cycles tensor.fetch_metadata_cycles tensor.fp64_products"


def of_sub_partition(warps):
    """Warps of an SM's sub-partition that has most."""
    return (warps + 3) // 4


def tensor_chains():
    return [slope(f"{form}_c{chains}_w{warps}", launches.TENSOR_TRIPS, 32 * of_sub_partition(warps), PRODUCT,
                  TENSOR if (chains, warps) != (1, 1) else "tensor.fp64_result_cycles" if form.startswith("f64") else "")
            for form, chains, warps in launches.mma_chains()]


def exponentials():
    return [slope(f"{kernel}_w{warps}", (40, 200), 64 * of_sub_partition(warps), "cycles/exponential of a sub-partition",
                  "latency.mufu latency.queued_behind latency.queued_read_release pipes.xu.interval")
            for kernel in launches.EXPONENTIALS for warps in (1, 8)]


def tensor_operands():
    return ([slope(f"{kernel}_w1", launches.TENSOR_TRIPS, 32, "cycles/link", "") for kernel in launches.MMA_CHAINS] +
            [slope(f"{kernel}_w{warps}", launches.TENSOR_TRIPS, 32 * of_sub_partition(warps), PRODUCT, TENSOR)
             for kernel in launches.MMA_OPERANDS for warps in (1, 8)])


def tensor_beside():
    return ([slope(f"{kernel}_w{warps}", launches.TENSOR_TRIPS, 32 * of_sub_partition(warps), PRODUCT, TENSOR)
             for kernel in launches.MMA_BESIDE for warps in (4, 16)] +
            [slope(f"{kernel}_w{warps}", launches.TENSOR_TRIPS, 32 * of_sub_partition(warps), PRODUCT, TENSOR)
             for kernel in launches.MMA_PAIRS for warps in (1, 16)])


def ldmatrix():
    memory = "memory_pipe.shared_wavefront_cycles memory_pipe.port_wavefront_cycles"

    def leaves(kernel):
        if kernel.startswith("movm"):
            return "latency.movm" if "chain" in kernel else "memory_pipe.movm_interval"
        if "pack" in kernel:
            return "pipes.alu.interval"
        if kernel.startswith("stsm"):
            return "memory_pipe.register_cycles memory_pipe.shared_wavefront_cycles"
        return "latency.shared_load memory_pipe.shared_conflict_latency memory_pipe.wide_latency" if "chain" in kernel else memory
    return [slope(f"{kernel}_p{pitch}_w{warps}", launches.LDSM_TRIPS, 16 * warps, "cycles/operation of the SM", leaves(kernel))
            for kernel, pitch, warps in launches.LDSM_CASES]


def copy_rows():
    return ([slope(f"copy_rows_{row}_b{grid}_w4", launches.ROWS_TRIPS, 8 * 4, "cycles/copy of an SM",
                   "crossbar.sm_requests_per_cycle_x16 crossbar.sm_response_bytes_per_cycle crossbar.gpc_response_bytes_per_cycle")
             for row, grid in launches.ROWS_CASES] +
            [slope(f"copies_beside_{kind}_{row}_c{copies}", launches.BESIDE_COPIES_TRIPS, 1, "cycles/trip",
                   "memory_pipe.fill_wavefront_cycles memory_pipe.shared_wavefront_cycles")
             for kind, row, copies in launches.BESIDE_COPIES])


def tensor_tiles():
    return [slope(f"tile_{kind}_{rows}x{columns}_w{warps}", launches.TILE_TRIPS, 2 * rows * columns * max(1, warps // 4),
                  "cycles/product of a sub-partition", "tensor.fetch_cycles tensor.fetch_pair_cycles memory_pipe.port_wavefront_cycles")
            for kind in ("held", "matrix", "word") for rows, columns in launches.TILES for warps in (4, 8)]


def read_together(case):
    return slope(case, hopper_launches.SHARED_TRIPS, 8 * KIB, "bytes/cycle of an SM",
                 "crossbar.gpc_response_bytes_per_cycle crossbar.gpc_fanout_bytes_per_cycle l2.coalescer_requests l2.coalescer_cycles", rate=True)


def l2_shared():
    return [read_together(f"shared_{kind}_{group}_s{stride}_d{delay}")
            for kind in hopper_launches.SHARED_KINDS for group, stride, delay in hopper_launches.SHARED_SETS]


def l2_shared_rows():
    return [read_together(f"shared_boxes_{group}_s1_d0_p{pitch}")
            for pitches, groups in ((hopper_launches.ROW_PITCHES, hopper_launches.ROW_GROUPS),
                                    (hopper_launches.APART_PITCHES, hopper_launches.APART_GROUPS))
            for pitch in pitches for group in groups]


def l2_shared_sectors():
    return [slope(f"shared_sectors_{group}_{first}_{second}_g{gap}", hopper_launches.SHARED_TRIPS, SMS, "sectors/trip",
                  "l2.coalescer_requests l2.coalescer_cycles", metric="lts__t_sectors_srcunit_tex_op_read.sum")
            for group in (2, 4) for first, second, gap in hopper_launches.SECTOR_CASES]


def of_all(case, count, unit, leaves, **more):
    """The slowest SM, and the mean of the SMs that have a block: some clusters are done sooner than others."""
    blocks = int(re.search(r"_b(\d+)", case)[1])
    return [slope(case, hopper_launches.PHASE_TRIPS, count, unit, leaves, **more),
            slope(case, hopper_launches.PHASE_TRIPS, count * min(blocks, SMS) / SMS, unit, leaves, name=f"{case}, mean",
                  metric="sm__cycles_active.avg", **more)]


def warpgroup():
    return [slope(f"wgmma_{columns}_{count}_g{groups}", hopper_launches.TRIPS, 1, "cycles/trip",
                  "tensor.product_bits async.product_result_cycles async.group_release_cycles")
            for columns in (128, 256) for count in (1, 2, 4, 8) for groups in (1, 2)]


def warpgroup_beside():
    return [slope(hopper_launches.beside_name(*of), hopper_launches.BESIDE_TRIPS, 1, "cycles/trip",
                  "async.slab_port_cycles async.factor_fetch_cycles")
            for of in hopper_launches.BESIDE_CASES]


def phases():
    single = [slope(case, hopper_launches.PHASE_TRIPS, 1, "cycles/trip", leaves) for case, leaves in (
        ("arrive_wait", "async.phase_complete_cycles"), ("ping_pong", "async.phase_complete_cycles"), ("arrive_only", "async.phase_interval"))]
    return single + [boxes(f"boxes_{box}_{ahead}_b{grid}_{place}") for box, ahead, grid, place in hopper_launches.BOX_CASES]


def boxes(case):
    return slope(case, hopper_launches.PHASE_TRIPS, 1, "cycles/box",
                 "async.box_start_cycles async.box_line_x16 async.box_complete_cycles")


def phases_rows():
    return [boxes(f"boxes_{box}_{ahead}_b{grid}_l2_p{pitch}") for pitch in hopper_launches.ROW_PITCHES
            for box, ahead in hopper_launches.ROW_BOXES for grid in (1, SMS)]


def box_store():
    cases = [f"{kernel}_b{grid}_l2" for kernel in ("stored_8_1", "stored_64_1", "stored_64_4", "stored_256_4", "written_8_1", "written_64_1",
                                                    "written_64_4", "beside_64_4", "added_8_1", "added_64_4") for grid in (1, SMS)]
    return [one for case in cases + ["stored_256_4_b132_dram"] for one in of_all(case, 1, "cycles/box", "async.box_line_x16")]


def product_boxes():
    """Of one block the SM's own cycles: those of the GPCs that are idle run faster then."""
    return [slope(f"products_{columns}_g{groups}_boxes_{boxes}_b{grid}", hopper_launches.PHASE_TRIPS, grid / SMS, "cycles/trip",
                  "tensor.product_bits async.product_result_cycles async.box_line_x16", metric="sm__cycles_active.avg")
            for columns, groups in ((128, 1), (128, 2), (256, 2)) for boxes in (0, 2, 4, 6, 8) for grid in (1, SMS)]


def clusters():
    trips = hopper_launches.PHASE_TRIPS
    meet = [slope(f"meet_{fence}_c{size}_w{warps}", trips, 1, "cycles/meeting", "cluster.barrier_cycles" + leaves)
            for fence, leaves in (("relaxed", ""), ("fenced", " cluster.fence_cycles")) for size in (2, 4, 8) for warps in (1, 8)]
    chase = [slope(f"far_chase_c{size}_a{away}", trips, 8, "cycles/load", "cluster.hop_cycles")
             for size, away in ((2, 0), (2, 1), (8, 1), (8, 4), (8, 7))]
    ports = "cluster.sm_bytes_per_cycle cluster.cpc_bytes_per_cycle"
    far = [one for kind in ("loads", "stores") for size, blocks in ((2, 2), (2, SMS), (4, 128), (8, 128))
           for one in of_all(f"far_{kind}_c{size}_b{blocks}", 16 * 8, "cycles/512 bytes of an SM", ports)]
    boxes = [one for size, blocks in ((1, 1), (2, 2), (2, SMS), (4, 4), (4, 128), (8, 128))
             for one in of_all(f"multicast_c{size}_b{blocks}", 1, "cycles/box", "cluster.fence_cycles cluster.multicast_cycles")]
    return meet + chase + far + [slope("far_ping_pong", trips, 1, "cycles/there and back", "cluster.hop_cycles cluster.fence_cycles")] + boxes


def fences():
    return [slope(f"{kernel}_w{warps}", hopper_launches.TRIPS, 8, "cycles/fence",
                  "issue.membar_cta_cycles issue.membar_cta_interval")
            for kernel in hopper_launches.FENCES for warps in hopper_launches.FENCE_WARPS]


def reductions():
    return [slope(f"reduce_{words}_w{warps}_a{apart}", hopper_launches.TRIPS, 8 * warps, "cycles/reduction of the SM",
                  "l2.atomic_interval crossbar.sm_write_bytes_per_cycle")
            for words in (1, 2, 4) for warps, apart in hopper_launches.REDUCTION_CASES] + \
           [slope(f"rows_{name}", hopper_launches.TRIPS, 64, "cycles/reduction of the SM",
                  "l2.atomic_interval crossbar.sm_write_bytes_per_cycle") for name, *_ in hopper_launches.REDUCTION_ROWS]


def tensor_loads():
    return [slope(f"tile_{kind}_w{warps}", launches.TILE_TRIPS, 8 * warps, "cycles/product of a sub-partition",
                  "memory_pipe.register_cycles") for kind in launches.LOADS for warps in (4, 8)]


def turns():
    return [slope(f"turns_{kind}_w{warps}", launches.TURN_TRIPS, 1, "cycles/trip", "") for kind in launches.TURNS
            for warps in launches.TURN_WARPS]


def l2_dirty():
    return wholes("micro_l2_dirty", "l2.dirty_share l2.victim_choices", metric="dram__bytes_write.sum", unit="bytes")


def l1_stores():
    return wholes("micro_l1_stores", "l1.store_bank_lines l1.store_wait_cycles l1.store_wavefront_cycles", metric="lts__t_sectors_srcunit_tex_op_write.sum",
                  unit="sectors")


def store_rows():
    return wholes("micro_store_rows", "l1.store_bank_lines l1.store_wait_cycles l1.store_wavefront_cycles", metric="lts__t_sectors_srcunit_tex_op_write.sum",
                  unit="sectors")


def store_lines():
    return wholes("micro_store_lines", "l1.store_bank_lines l1.store_partial_lines l1.store_wait_cycles l1.store_wavefront_cycles",
                  metric="lts__t_sectors_srcunit_tex_op_write.sum", unit="sectors")


def store_banks():
    leaves = "l1.store_bank_lines l1.store_wait_cycles l1.store_wavefront_cycles"
    rates = [slope(f"store_rate_{'_'.join(map(str, rows))}_w{warps}", launches.STORE_RATE_TRIPS, 16 * warps, "cycles/store",
                   "l1.store_wavefront_cycles memory_pipe.warp_wavefront_cycles") for warps, *rows in launches.STORE_RATES]
    return [one for one in wholes("micro_store_banks", leaves, metric="lts__t_sectors_srcunit_tex_op_write.sum", unit="sectors")
            if "rate" not in one.name] + rates


def first_tiles():
    return wholes("micro_first_tiles", "l2.coalescer_cycles hbm.t_faw crossbar.gpc_response_bytes_per_cycle", metric="sm__cycles_active.avg")


def copy_requests():
    return [slope(f"copy_requests_{row}_from_{start}", launches.COPY_REQUESTS_TRIPS, 4, "requests/copy", "",
                  metric="lts__t_requests_srcunit_tex.sum") for row, start in launches.COPY_REQUESTS]


def copy_parts():
    def of(what, metric, wanted):
        cases = [(f"copy_parts_{kind}_{row}_l{lanes}_from_{start}", kind, lanes) for kind, row, lanes, start in launches.COPY_PARTS]
        return [slope(case, launches.COPY_REQUESTS_TRIPS, 4, f"{what}/copy", "", name=f"{case}, {what}", metric=metric)
                for case, kind, lanes in cases if wanted(kind, lanes)]
    reads = lambda kind, lanes: lanes > 0
    return (of("requests", "lts__t_requests_srcunit_tex.sum", reads) + of("sectors", "l1tex__m_xbar2l1tex_read_sectors.sum", reads)
            + of("lookups", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", reads)
            + of("wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", lambda kind, lanes: kind == "zeros" or lanes == 0))


def all_quantities():
    """(stem, quantity) of everything."""
    parts = {"micro_launch": launch_costs, "micro_code_size": code_size, "micro_issue": issue,
             "micro_opcodes": opcodes, "micro_wide": wide, "micro_operands": operands, "micro_exponentials": exponentials, "micro_beside": beside, "micro_branch": branch, "micro_loops": loops,
             "micro_barrier": barrier, "micro_arguments": arguments, "micro_constant": constant, "micro_special": special, "micro_shared": shared,
             "micro_l1": l1, "micro_l1_tags": l1_tags, "micro_l1_strides": l1_strides, "micro_l2": l2, "micro_l2_policy": l2_policy, "micro_dram": dram,
             "micro_order": order, "micro_queue": queue, "micro_accept": accept, "micro_in_flight": in_flight, "micro_scoreboards": scoreboards,
             "micro_last": last, "micro_copy_async": copy_async, "micro_copy_rows": copy_rows, "micro_copy_requests": copy_requests, "micro_copy_parts": copy_parts, "micro_store_rows": store_rows, "micro_store_lines": store_lines, "micro_store_banks": store_banks, "micro_first_tiles": first_tiles, "micro_tensor_chains": tensor_chains, "micro_tensor_operands": tensor_operands,
             "micro_tensor_beside": tensor_beside, "micro_tensor_tiles": tensor_tiles, "micro_ldmatrix": ldmatrix,
             "micro_ports": ports, "micro_waves": waves,
             "micro_turnover": turnover, "micro_l2_modify": l2_modify,
             "micro_l2_shared": l2_shared, "micro_l2_shared.sectors": l2_shared_sectors, "micro_l2_dirty": l2_dirty, "micro_l2_drift": l2_drift, "micro_l2_step": l2_step, "micro_l1_stores": l1_stores,
             "micro_warpgroup": warpgroup, "micro_warpgroup_beside": warpgroup_beside, "micro_phases": phases,
             "micro_phases.rows": phases_rows, "micro_l2_shared.rows": l2_shared_rows, "micro_box_store": box_store, "micro_product_boxes": product_boxes,
             "micro_clusters": clusters, "micro_fences": fences, "micro_reductions": reductions, "micro_tensor_loads": tensor_loads, "micro_turns": turns}
    return [(stem, quantity) for stem, part in parts.items() for quantity in part()]


def as_yaml():
    """The table: a quantity is (high - low) / divisor of the metric or, as a rate, divisor / (high - low)."""
    lines = ["# Written by validation/calibration/quantities.py. A quantity is (high - low) / divisor of `metric`, taken from its two",
             "# cases, or divisor / (high - low) where `rate` is true. Without `low` it is all of `high`. `leaves` are the numbers of",
             "# hwmodels/*.yaml that it supports, of which one may decide it or several add up.", ""]
    for stem, quantity in all_quantities():
        lines += [f'- id: "{quantity.name}"', f"  stem: {stem}", *([f"  low: {quantity.low}"] if quantity.low else []),
                  f"  high: {quantity.high}", f"  divisor: {quantity.count}", f'  unit: "{quantity.unit}"',
                  f"  metric: {quantity.metric}", f"  rate: {'true' if quantity.rate else 'false'}",
                  f"  leaves: [{', '.join(quantity.leaves)}]"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(as_yaml(), encoding="utf-8")

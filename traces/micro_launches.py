"""The cases of kernels/micro, for launches.py. A quantity is the slope of cycles between two trip counts of one kernel: cases
NAME_nLOW and NAME_nHIGH differ in that argument alone. validation/calibration/quantities.py says what is made of them."""
from launches import case, launch, zero

SMS = 132  # of an H100 SXM or H200: one block an SM
KIB, MIB = 1 << 10, 1 << 20


def counted(name, kernel, trips, grid, warps, arguments, **buffers):
    """A case for each trip count; `arguments` makes the kernel's arguments from it."""
    return [case(f"{name}_n{n}", {key: f"{{bytes: {size}, fill: zero}}" for key, size in buffers.items()},
                 launch(kernel, grid, 32 * warps, *arguments(n))) for n in trips]


def per_sm(kernel, trips, *arguments, warps=1, grid=SMS, name=None, size=4):
    """Kernels whose first arguments are out[threads] and the trip count."""
    return counted(f"{name or kernel}_w{warps}", kernel, trips, grid, warps, lambda n: ("out", n, *arguments),
                   out=grid * warps * 32 * size)


def launch_costs():
    empty = [(1, 32), (132, 32), (264, 32), (1056, 32), (4224, 32), (33792, 32), (132, 128), (33792, 128),
             (132, 256), (33792, 256), (1, 1024), (132, 1024), (264, 1024), (1056, 1024), (4224, 1024)]
    return {"micro_launch": [case(f"empty_b{blocks}_t{threads}", {"unused": zero(1)}, launch("empty", blocks, threads))
                             for blocks, threads in empty]}


def code_size():
    def pieces(count, passes, warps=1, grid=SMS):
        return counted(f"straight_line_{8 * count}k_w{warps}_b{grid}", "straight_line", passes, grid, warps,
                       lambda n: ("out", count, n, 1.0), out=4 * grid * warps * 32)
    cases = []
    for count in (1, 2, 3, 4, 5, 6, 8, 12, 16, 24):
        cases += pieces(count, (1, 5, 25) if count in (1, 4, 8, 16, 24) else (5, 25))
    for count in (1, 4, 24):
        cases += pieces(count, (5, 25), warps=4)
    for count in (1, 8, 24):
        cases += pieces(count, (1,), grid=1)
    return {"micro_code_size": cases}


def issue():
    cases = []
    for kind, sweep in [("ffma", (1, 4, 16, 32)), ("imad", (16,)), ("lop3", (16,)), ("iadd3", (16,)), ("i2f", (16,)),
                        ("hfma2", (16,))]:
        seed = 1.0 if kind == "ffma" else 3
        cases += per_sm(f"{kind}_dependent", (40, 200), seed)
        for warps in sweep:
            cases += per_sm(f"{kind}_independent", (40, 200), seed, warps=warps)
    for kind, sweep in [("ex2", (16,)), ("rsq", (16,)), ("f2i", (16,)), ("popc", (16,))]:
        seed = 1.0 if kind in ("ex2", "rsq") else 3
        cases += per_sm(f"{kind}_dependent", (20, 60), seed)
        for warps in sweep:
            cases += per_sm(f"{kind}_independent", (20, 60), seed, warps=warps)
    # A name that is put right below: launches.py writes no f64.
    for kernel, warps in [("dfma_dependent", 1), ("dfma_independent", 4), ("dfma_independent", 16)]:
        cases += per_sm(kernel, (20, 100), "f64", warps=warps, size=8)
    cases += per_sm("setp_sel_dependent", (40, 200), 3)
    for warps in (4, 16):
        cases += per_sm("ffma_three_registers", (40, 200), 1.0, warps=warps)
    for kernel in ("mix_ffma_lop3", "mix_ffma_imad", "mix_ffma_hfma2"):
        cases += per_sm(kernel, (40, 200), 1.0, warps=16)
    cases += per_sm("uniform_dependent", (40, 200), 3, 1023)
    return {"micro_issue": [text.replace("{pointer: f64}", "{f64: 1.5}") for text in cases]}


def opcodes():
    kinds = {  # the type of the chains, by which the seed is written
        3: ["imad_hi", "imad_uniform", "min_s32", "shl", "shf", "prmt", "clz", "brev", "dp4a", "pack_half", "hadd2", "hmul2",
            "hfma2_bf16", "hmnmx2", "i2d", "h2f2h"],
        1.5: ["fmul", "fmnmx", "ffma_immediate", "ffma_immediate_factor", "ffma_uniform", "fsetp_sel", "lg2", "sin", "tanh"],
        "f64": ["dadd", "dmul", "d2f2d"], "i64": ["add64"]}
    cases = []
    for seed, names in kinds.items():
        for name in names:
            for kernel, warps in ((f"{name}_dependent", 1), (f"{name}_independent", 16)):
                cases += per_sm(kernel, (20, 80), seed, warps=warps, size=8)
    for name, seed, start in [("imad_wide", 3, 3), ("pair_imad_wide_imad", 3, 3), ("pair_imad_wide_lop3", 3, 3),
                              ("pair_imad_wide_ffma", 3, 1.5), ("pair_imad_lop3", 3, 3), ("pair_fadd_add", 1.5, 3),
                              ("pair_fmul_add", 1.5, 3), ("pair_ffma_lg2", 1.5, 1.5), ("pair_lop3_lg2", 3, 1.5),
                              ("pair_dadd_ffma", "f64", 1.5), ("pair_dadd_lop3", "f64", 3), ("pair_hadd2_lop3", 3, 3),
                              ("pair_ffma_uniform_add", 1.5, 3)]:
        cases += per_sm(name, (20, 80), seed, start, warps=16)
    return {"micro_opcodes": [text.replace("{pointer: f64}", "{f64: 1.5}").replace("{pointer: i64}", "{i64: 3}")
                              for text in cases]}


def wide():
    cases = []
    for kernel in ("wide_chain", "wide_alone", "wide_coded_alone", "wide_mix", "wide_mix_mix", "wide_mix_mix_mix",
                   "wide_coded_mix_mix", "wide_add", "wide_add_add", "wide_add_add_add", "wide_coded_add_add", "wide_mix_add",
                   "high_alone", "high_mix_mix", "high_add_add"):
        for warps in (1, 4, 8, 16):
            cases += per_sm(kernel, (20, 80), 3, warps=warps)
    return {"micro_wide": cases}


OPERANDS = ([f"operands_{kind}_{seed}" for kind, seeds in (("two", 4), ("three", 4), ("sum", 2)) for seed in range(1, seeds + 1)] +
            [f"operands_outer_8_{columns}{order}" for columns in (8, 4) for order in ("", "_mixed")])


def operands():
    return {"micro_operands": [text for kernel in OPERANDS for warps in (4, 8) for text in per_sm(kernel, (100, 400), 1.0, warps=warps)]}


BESIDE = [(loads, words) for words in (1, 2, 4) for loads in (2, 4, 8, 16)]


def beside():
    """Lanes that read words of their own, or all the same."""
    cases = [text for warps in (1, 4, 8, 16) for text in per_sm("beside_0_of_1", (100, 400), 0, warps=warps)]
    for loads, words in BESIDE:
        for place, apart in (("spread", 4 * words), ("one", 0)):
            for warps in (1, 4, 8, 16):
                cases += per_sm(f"beside_{loads}_of_{words}", (100, 400), apart, warps=warps, name=f"beside_{loads}_of_{words}_{place}")
    for kernel in ("beside_product", "beside_product_ahead"):
        for a, b in ((0, 0), (0, 16), (16, 16)):
            for warps in (1, 4, 8, 16):
                cases += per_sm(kernel, (50, 200), a, b, warps=warps, name=f"{kernel}_{a}_{b}")
    return {"micro_beside": cases}


EXPONENTIALS = [f"exp_{kind}_{ahead}" for kind in ("add", "scaled_add") for ahead in (0, 1, 2, 3, 5)]


def exponentials():
    return {"micro_exponentials": [text for kernel in EXPONENTIALS for warps in (1, 8) for text in per_sm(kernel, (40, 200), warps=warps)]}


def order():
    cases = []
    for kernel, iterations in [("order_chain", 40), ("order_two_chains", 40), ("order_independent", 20), ("order_shift", 20), ("order_special", 20)]:
        for blocks, warps in ((16, 4), (4, 16), (2, 8), (1, 16)):
            cases += [case(f"{kernel}_b{blocks}", {"out": zero(16 * SMS * blocks * warps)},
                           launch(kernel, SMS * blocks, 32 * warps, "out", iterations, 1.0))]
    return {"micro_order": cases}


LOOPS = (1, 2, 3, 4, 6, 8, 16, 32)  # FMULs a turn
LOOP_BLOCKS = ((2, 4), (2, 8), (2, 16), (4, 4), (4, 8), (4, 16), (8, 4), (8, 8))  # blocks an SM, of so many warps


def loops():
    cases = []
    for length in LOOPS:
        for warps in (4, 8, 12, 16, 20, 24, 28, 32):
            cases += per_sm(f"loops_{length}", (500, 2500), warps=warps)
    for length in (2, 4, 8):
        for warps in (4, 16, 32):
            cases += per_sm(f"loops_{length}_last", (500, 2500), warps=warps)
    for length in LOOPS:
        for blocks, warps in LOOP_BLOCKS:
            cases += [case(f"loops_{length}_b{blocks}_w{warps}", {"out": zero(4 * 32 * SMS * blocks * warps)},
                           launch(f"loops_{length}", SMS * blocks, 32 * warps, "out", 4800 // (length + 3)))]
    return {"micro_loops": cases}


def branch():
    cases = []
    for kernel in ("loop_2", "loop_4", "loop_16"):
        cases += per_sm(kernel, (500, 2500))
    for warps in (4, 8, 16, 32):
        cases += per_sm("loop_2", (500, 2500), warps=warps)
    cases += per_sm("forward", (50, 250), 1, warps=16, name="forward_skip1")
    for skip in (0, 1):
        cases += per_sm("forward", (50, 250), skip, name=f"forward_skip{skip}")
    cases += per_sm("predicated", (50, 250), 0, name="predicated_off")
    for mask in (0, 1):
        cases += per_sm("two_sides", (50, 250), mask, name=f"two_sides_{mask}")
    for same in (0, 1):
        cases += per_sm("longest_lane", (100, 500), same, name=f"longest_lane_same{same}")
    return {"micro_branch": cases}


def barrier():
    cases = []
    for warps in (1, 4, 16, 32):
        cases += per_sm("sync_threads", (50, 250), warps=warps)
    cases += per_sm("sync_threads", (50, 250), warps=16, grid=2 * SMS, name="sync_threads_two_blocks")
    for warps in (1, 4, 32):
        cases += per_sm("sync_then_fma", (50, 250), warps=warps) + per_sm("sync_then_root", (50, 250), warps=warps)
    for warps in (4, 8):
        cases += counted(f"release_w{warps}", "release", (16, 64), SMS, warps, lambda n: ("out", n), out=SMS * warps * 64 * 16)
    cases += per_sm("fence_gpu", (10, 50)) + per_sm("fence_gpu", (10, 50), warps=8)
    cases += per_sm("fence_block", (50, 250)) + per_sm("fence_block", (50, 250), warps=8)
    return {"micro_barrier": cases}


def special():
    cases = []
    for kernel in ("special_sm", "special_block", "special_thread", "special_constant"):
        for warps in (1, 16, 32):
            cases += per_sm(kernel, (50, 250), warps=warps)
    return {"micro_special": cases}


def constant():
    cases = []
    # 64 bytes: one line. 1 KiB to 64 KiB in steps of 64 bytes: beyond one cache after another.
    for footprint, step in [(64, 4), (1 * KIB, 64), (4 * KIB, 64), (16 * KIB, 64), (64 * KIB, 64)]:
        cases += per_sm("constant_chase", (256, 768), footprint - 1, step, name=f"constant_chase_{footprint}")
    # The first pass over 64 KiB: every line is new, at steps of less than, as much as and more than a line.
    for step in (32, 64, 256):
        cases += per_sm("constant_chase", (8, 32), 64 * KIB - 1, step, name=f"constant_first_touch_{step}")
    return {"micro_constant": cases}


def arguments():
    factors = (1.0, 0.5, 0.25, 0.125)
    return {"micro_arguments": per_sm("uniform_load", (50, 250), 1) + per_sm("ffma_argument_dependent", (40, 200), *factors) +
                               per_sm("ffma_argument_independent", (40, 200), *factors, warps=16)}


def shared():
    cases = []
    for width, stride in [("32", 1), ("64", 2), ("128", 4)]:
        cases += per_sm(f"lds_{width}_dependent", (50, 250), stride)
        for warps in (4, 32):
            cases += per_sm(f"lds_{width}", (50, 250), stride, warps=warps)
        cases += per_sm(f"sts_{width}", (50, 250), stride, warps=16)
    # One sub-partition by itself, and all lanes at one place.
    for width, stride in [("64", 2), ("128", 4)]:
        cases += per_sm(f"lds_{width}", (50, 250), stride) + per_sm(f"lds_{width}", (50, 250), 0, name=f"lds_{width}_same")
        cases += per_sm(f"lds_{width}_dependent", (50, 250), 0, name=f"lds_{width}_dependent_same")
    for ways in (2, 8, 32):
        cases += per_sm("lds_32_dependent", (50, 250), ways, name=f"lds_32_dependent_{ways}way")
    for ways in (8, 32):
        cases += per_sm("lds_32", (20, 100), ways, warps=16, name=f"lds_32_{ways}way")
    cases += per_sm("sts_32", (20, 100), 8, warps=16, name="sts_32_8way")
    cases += per_sm("sts_then_overwrite", (50, 250), 1) + per_sm("sts_counter", (500, 2500), 1)
    cases += per_sm("atoms_dependent", (50, 250), 1)
    for warps in (1, 16):
        cases += per_sm("atoms_add", (20, 100), 1, warps=warps)
    cases += per_sm("atoms_add", (20, 100), 0, name="atoms_add_one_word")
    cases += per_sm("shuffle_dependent", (50, 250))
    for warps in (4, 32):
        cases += per_sm("shuffle", (50, 250), warps=warps)
    for kernel in ("vote_dependent", "redux_dependent", "match_dependent"):
        cases += per_sm(kernel, (50, 250))
    return {"micro_shared": cases}


def l1():
    def loads(kernel, trips, *more, warps=1, name=None):
        return counted(f"{name or kernel}_w{warps}", kernel, trips, SMS, warps, lambda n: ("in", "out", n, *more),
                       **{"in": 64 * KIB, "out": SMS * warps * 128})

    def stores(kernel, trips, size, warps, grid):
        return counted(f"{kernel}_w{warps}_b{grid}", kernel, trips, grid, warps, lambda n: ("out", n), out=grid * warps * 256 * size)

    cases = loads("l1_chase", (64, 256))
    for stride in (8, 32):
        cases += loads("l1_chase_strided", (50, 250), stride, name=f"l1_chase_strided_{stride}")
    for width, stride in [("32", 1), ("64", 2), ("128", 4)]:
        for warps in (4, 32):
            cases += loads(f"l1_load_{width}", (50, 250), stride, warps=warps)
    for stride in (0, 2, 3, 4, 8, 16, 32):
        cases += loads("l1_load_32", (20, 100), stride, warps=16, name=f"l1_load_32_stride{stride}")
    cases += loads("l1_load_128", (20, 100), 8, warps=16, name="l1_load_128_stride8")
    for grid in (1, SMS):
        cases += stores("l1_store_32", (50, 250), 4, 16, grid) + stores("l1_store_128", (25, 125), 16, 16, grid)
    return {"micro_l1": cases}


def l1_tags():
    """Two lines that differ in one or two address bits; 32 lines at pitches of 2^n and of rows of odd lengths."""
    def tags(name, pitch, bits, trips=(100,), warps=1):
        return counted(f"l1_tags_{name}_w{warps}", "l1_tags", trips, SMS, warps, lambda n: ("in", "out", n, pitch, bits),
                       **{"in": (pitch << bits) + 128, "out": SMS * warps * 128})

    bit = range(7, 21)
    cases = [text for low in bit for text in tags(f"bit_{low}", 1 << low, 1)]
    cases += [text for low in bit for high in bit if low < high for text in tags(f"bits_{low}_{high}", 1 << low | 1 << high, 1)]
    for pitch in (128, 256, 512, 1024, 2048, 4096, 8192, 3108, 3200, 4000, 4092, 4100, 4224, 5000, 5120, 12288, 65664):
        cases += tags(f"pitch_{pitch}", pitch, 5, (20, 100), 16)
    return {"micro_l1_tags": cases}


def l1_strides():
    def on(sms):
        return [text for stride in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15)
                for text in counted(f"l1_strides_{stride}", "l1_strides", (20, 100), sms, 16, lambda n: ("in", "out", n, stride),
                                    **{"in": 124 * stride + 4, "out": sms * 2048})]
    # A block an SM: of an H200, and of the A100 that others have measured (validation/published).
    return {"micro_l1_strides": on(SMS), "micro_l1_strides.a100": on(108)}


def l2():
    def chase(name, footprint, step, offset=0):
        texts = counted(name, "l2_chase", (32, 160), 1, 32, lambda n: (("in", offset), "out", n, footprint - 1, step),
                        **{"in": offset + max(footprint, 128), "out": 4096})
        return texts

    def read(name, passes, steps, grid, warps):
        return counted(f"{name}_b{grid}", "l2_read", passes, grid, warps, lambda n: ("in", "out", n, steps),
                       **{"in": grid * warps * 32 * 64 * steps, "out": grid * warps * 128})

    cases = []
    # An odd number of lines near 0.618 of the footprint: every line is met once before any is met again.
    for name, footprint in [("512k", 512 * KIB), ("4m", 4 * MIB), ("16m", 16 * MIB), ("32m", 32 * MIB)]:
        cases += chase(f"l2_chase_{name}", footprint, (int(footprint / 128 * 0.618) | 1) * 128)
    for line in (3, 17):
        cases += chase(f"l2_chase_line{line}", 128, 0, offset=line * 128 + (line << 16))
    for grid in (8, 32, 66):  # a quarter of the lines, so that the most lie in L2
        cases += read("l2_read_some", (16, 48), 4, grid, 32)
    for grid in (1, 2, 16):
        cases += read("l2_read_few", (4, 12), 16, grid, 32)
    cases += read("l2_read_1_warp", (4, 12), 64, 1, 1) + read("l2_read_8_warps", (4, 12), 64, 1, 8)
    cases += read("l2_read_4m", (10, 50), 1, SMS, 16)
    for name, steps, passes in [("9m", 1, (5, 25)), ("17m", 2, (4, 14)), ("26m", 3, (3, 11)), ("35m", 4, (3, 9)), ("43m", 5, (2, 8))]:
        cases += read(f"l2_read_{name}", passes, steps, SMS, 32)
    for grid, passes, steps in [(1, (4, 12), 16), (SMS, (4, 14), 2)]:
        cases += counted(f"l2_write_b{grid}", "l2_write", passes, grid, 32, lambda n: ("out", n, steps), out=grid * 65536 * steps)
    for name, words, trips in [("own", 32, (10, 50)), ("warp", 1, (10, 50)), ("one", 0, (2, 6))]:
        cases += counted(f"l2_red_{name}", "l2_red", trips, SMS, 8, lambda n: ("sums", n, words), sums=SMS * 1024)
    cases += counted("l2_red_lines", "l2_red_lines", (10, 50), SMS, 1, lambda n: ("sums", n), sums=SMS * 32 * 128)
    cases += counted("l2_atom_chase", "l2_atom_chase", (16, 80), 1, 1, lambda n: ("in", "out", n), **{"in": 128, "out": 128})
    return {"micro_l2": cases}


def dram():
    def chase(name, footprint):
        return counted(name, "dram_chase", (16, 112), 1, 1, lambda n: ("in", "out", n, footprint - 1, (int(footprint / 128 * 0.618) | 1) * 128),
                       **{"in": footprint, "out": 128})

    def read(name, count, steps, grid, warps):
        return counted(name, f"dram_read_{count}", steps, grid, warps, lambda n: ("in", "out", n),
                       **{"in": grid * warps * 512 * count * steps[1], "out": grid * warps * 128})

    def stream(kernel, inputs, per_step, steps):
        """264 blocks of 1024: 4.3 MB a step for each 16 bytes a thread."""
        step = 2 * SMS * 1024 * 16 * per_step
        names = [*inputs, "out"]
        return counted(kernel, kernel, steps, 2 * SMS, 32, lambda n: (*names, n), **{name: step * steps[1] for name in names})

    def strided(stride, grid, warps, steps):
        threads = grid * warps * 32
        return counted(f"dram_strided_{stride}", "dram_strided", steps, grid, warps, lambda n: ("in", "out", n, stride),
                       **{"in": threads * stride * steps[1], "out": threads * 4})

    cases = chase("dram_chase_64m", 64 * MIB) + chase("dram_chase_512m", 512 * MIB)
    cases += read("dram_read", 4, (10, 30), 2 * SMS, 32)
    cases += stream("dram_write", [], 4, (10, 30)) + stream("dram_copy", ["in"], 4, (7, 21)) + stream("dram_add", ["a", "b"], 2, (10, 30))
    for count in (1, 4):
        for warps, steps in [(1, 192), (4, 128), (8, 96), (32, 48)]:
            high = steps // (2 if count == 4 and warps > 4 else 1)
            cases += read(f"dram_read_{count}_w{warps}", count, (high // 3, high), SMS, warps)
    for stride, grid, warps, steps in [(32, 8 * SMS, 8, (20, 60)), (64, 8 * SMS, 8, (15, 45)), (128, 8 * SMS, 8, (8, 24)),
                                       (256, 8 * SMS, 8, (4, 12)), (512, 8 * SMS, 8, (2, 6)), (1024, 4 * SMS, 8, (2, 6)),
                                       (4096, SMS, 8, (2, 6)), (16384, SMS, 2, (2, 6))]:
        cases += strided(stride, grid, warps, steps)
    return {"micro_dram": cases}


def l2_policy():
    def case_of(name, kernel, grid, threads, arguments, **buffers):
        return [case(name, {key: f"{{bytes: {size}, fill: zero}}" for key, size in buffers.items()},
                     launch(kernel, grid, threads, *arguments))]

    step = SMS * 65536  # of all blocks: 8.65 MB
    sink = SMS * 4096

    def write_read(name, writes, reads, passes):
        return case_of(f"l2_{name}", "l2_write_read", SMS, 1024, ("out", "in", "sink", writes, reads, passes),
                       out=max(1, writes) * step, **{"in": max(1, reads) * step}, sink=sink)

    def reread(steps, passes, shift):
        return case_of(f"l2_reread_s{steps}_p{passes}_by{shift}", "l2_reread", SMS, 1024, ("in", "sink", passes, steps, shift),
                       **{"in": steps * step}, sink=sink)

    cases = []
    for writes in (1, 2, 3, 4, 5, 6, 8, 12):
        cases += write_read(f"write_{writes}", writes, 0, 0)
    for writes, wait in [(1, 100), (1, 1000), (1, 10000), (2, 1000), (2, 10000), (3, 10000)]:
        cases += case_of(f"l2_write_{writes}_wait_{wait}", "l2_write_wait", SMS, 1024, ("out", "sink", writes, wait),
                         out=writes * step, sink=128)
    for reads in (2, 3, 4, 5, 6, 8, 12):
        cases += write_read(f"write_2_read_{reads}", 2, reads, 1)
    for reads, passes in [(1, 16), (2, 8), (2, 32), (3, 8), (4, 4), (4, 16)]:
        cases += write_read(f"write_2_read_{reads}_p{passes}", 2, reads, passes)
    cases += write_read("write_1_read_4_p4", 1, 4, 4) + write_read("write_4_read_2", 4, 2, 1) + write_read("write_4_read_4", 4, 4, 1)
    for threads, reads in [(64, 48), (64, 64), (64, 80), (256, 12), (256, 16), (256, 20)]:  # 17.3 MB written, 26 to 43 read
        writes = 2048 // threads
        cases += case_of(f"l2_write_2_read_{reads * threads // 1024}_t{threads}", "l2_write_read", SMS, threads,
                         ("out", "in", "sink", writes, reads, 1), out=2 * step, **{"in": reads * threads * step // 1024}, sink=sink)
    for steps in (3, 4, 5, 6, 7, 8, 10):
        for passes in (1, 2, 3, 6) if steps > 3 else (2,):
            cases += reread(steps, passes, 0)
        for passes in (2, 3, 6):
            cases += reread(steps, passes, 41)
    for words in (1, 2, 4, 6, 8, 16, 32):  # Mi: 4 to 128 MiB, 2 or 4 words for each of theirs
        if words & (words - 1) == 0:
            for count in (16, 48):
                cases += case_of(f"l2_scattered_{4 * words}m_n{count}", "l2_scattered", SMS, 1024, ("in", "sink", count, (words << 20) - 1),
                                 **{"in": words << 22}, sink=sink)
    for stride in (1, 2, 4, 8, 16, 32):
        cases += case_of(f"l2_write_parts_{4 * stride}", "l2_write_parts", SMS, 1024, ("out", "in", "sink", 4, stride, 8),
                         out=SMS * 1024 * 16 * stride, **{"in": 8 * step}, sink=sink)
    for stride, counts in [(2, (4, 8, 16, 32, 64)), (8, (2, 4, 8, 16)), (32, (1, 2, 4, 8))]:  # of 8, 32 and 128 bytes
        for count in counts:
            cases += case_of(f"l2_write_parts_{4 * stride}_n{count}", "l2_write_parts", SMS, 1024, ("out", "in", "sink", count, stride, 0),
                             out=SMS * 1024 * 4 * count * stride, **{"in": step}, sink=sink)
    for group, delay in [(1, 0), (2, 0), (4, 0), (16, 0), (64, 0), (64, 4), (64, 16), (64, 64), (64, 256), (16, 16), (16, 64), (4, 64)]:
        cases += case_of(f"l2_together_{group}_d{delay}", "l2_together", 128, 32, ("in", "sink", 64, group, delay),
                         **{"in": 128 * 64 * 512}, sink=128 * 128)
    return {"micro_l2_policy": cases}


def l2_drift():
    lines = 4096
    cases = counted("distance", "l2_distance", (4,), SMS, 1, lambda n: ("in", "out", lines, n),
                    **{"in": lines * 128, "out": SMS * lines * 8})
    for work in (0, 64, 512):
        for blocks in (SMS, 2) if work == 64 else (SMS,):
            cases += counted(f"drift_{work}_b{blocks}", "l2_drift", (16, 64, 256, 1024), blocks, 8,
                             lambda n: ("in", "out", n, 64, work), **{"in": 64 * 4096, "out": SMS * 64 * 8})
    for ones, twos in ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (3, 0), (1, 2), (0, 3), (4, 0), (0, 4), (5, 0), (6, 0), (8, 0)):
        cases += counted(f"window_{ones}_{twos}", "l2_window", (8, 24, 256), SMS, 1, lambda n: ("in", "out", n, ones, twos),
                         **{"in": (1 + 8 * SMS // 4) * 128, "out": SMS * 128})
    return {"micro_l2_drift": cases}


def l2_step():
    """Tiles of 16 bytes a thread, each read once or of those in L2."""
    cases = []
    for kind, rounds in (("fma", 32), ("mufu", 64), ("lds", 256), ("pairs", 256), ("forces", 256)):
        for tiles in (128, 8):
            cases += counted(f"step_{kind}_t{tiles}", f"l2_step_{kind}", (16, 128), SMS, 8, lambda n: ("in", "out", n, tiles, rounds),
                             **{"in": tiles * 4096, "out": SMS * 128 * 8})
    for blocks, warps in ((SMS, 2), (SMS, 4), (SMS, 16), (64, 8), (2 * SMS, 8), (4 * SMS, 8)):
        cases += counted(f"step_pairs_b{blocks}_w{warps}", "l2_step_pairs", (128,), blocks, warps,
                         lambda n: ("in", "out", n, 128, 32 * warps), **{"in": 128 * warps * 512, "out": blocks * 128 * 8})
    for blocks, columns in ((64, 8), (SMS, 12)):
        for which in (1, 2, 3):
            for tiles, work in ((128, 32), (128, 256), (8, 256)):
                cases += counted(f"two_{which}_b{blocks}_t{tiles}_f{work}", "l2_step_two", (16, 128), blocks, 8,
                                 lambda n: ("in", "out", n, tiles, columns, which, work),
                                 **{"in": (columns + (blocks + columns - 1) // columns) * tiles * 4096, "out": blocks * 128 * 8})
    return {"micro_l2_step": cases}


def l2_modify():
    cases = []
    for lanes, apart in [(1, 0), (2, 0), (4, 0), (8, 0), (2, 1), (4, 1), (8, 1), (32, 1), (2, 8), (4, 8), (2, 32), (4, 32)]:
        cases += counted(f"modify_lanes_{lanes}_by{apart}", "modify_lanes", (10, 50), SMS, 8,
                         lambda n: ("sums", n, lanes, apart, 1), sums=4096)
    for owners in (4, 32, 256):
        cases += counted(f"modify_owners_{owners}", "modify_lanes", (10, 50), SMS, 8, lambda n: ("sums", n, 1, 0, owners),
                         sums=owners * 128)
    for words in (1, 2, 4, 8):
        for stride in (8, 32):
            for turns in ((0, 1) if words > 1 else (0,)):
                cases += counted(f"modify_columns_{words}_by{stride}_{'turns' if turns else 'lanes'}", "modify_columns", (2, 6),
                                 4 * SMS, 8, lambda n: ("out", n, words, stride, turns), out=4 * SMS * 256 * 4 * stride * 6 // words)
    return {"micro_l2_modify": cases}


def l2_dirty():
    def case_of(name, kernel, arguments, **buffers):
        return [case(f"l2_{name}", {key: f"{{bytes: {size}, fill: zero}}" for key, size in buffers.items()},
                     launch(kernel, SMS, 1024, *arguments))]

    step = SMS * 16384  # of all blocks: 2.16 MB
    cases = []
    for writes in (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 64, 128):
        cases += case_of(f"copy_{writes}", "l2_copy", ("out", "in", writes, 1), out=writes * step, **{"in": writes * step})
    for reads, writes in [(2, 4), (2, 8), (2, 32), (3, 4), (3, 32)]:
        cases += case_of(f"copy_{writes}_reads_{reads}", "l2_copy", ("out", "in", writes, reads), out=writes * step,
                         **{"in": writes * reads * step})
    for sectors, writes in [(1, 8), (1, 16), (1, 32), (1, 64), (2, 8), (2, 16), (2, 32), (2, 64), (4, 12), (4, 13), (4, 14), (4, 16)]:
        cases += case_of(f"write_{writes}_sectors_{sectors}", "l2_write_sectors", ("out", writes, sectors), out=writes * step)
    for writes, reads in [(8, 8), (8, 12), (8, 16), (8, 20), (8, 24), (8, 32), (16, 0), (20, 0), (24, 0), (28, 0), (32, 0)]:
        cases += case_of(f"write_{writes}_read_{reads}_find", "l2_write_find", ("out", "in", "sink", writes, reads),
                         out=writes * step, **{"in": max(1, reads) * step}, sink=4096)
    for words in (0, 1):
        for pairs in (3, 4, 5):
            cases += case_of(f"read_12_write_{2 * pairs}_{'words' if words else 'whole'}", "l2_read_write_read",
                             ("out", "in", "sink", 12, pairs, words), out=2 * pairs * step, **{"in": 12 * step}, sink=4096)
    for writes, first, last, passes, shift in [
            (4, 0, 4, 1, 0), (8, 0, 8, 0, 0), (8, 0, 8, 1, 0), (8, 0, 8, 4, 0), (8, 0, 8, 16, 0), (8, 0, 4, 1, 0), (8, 0, 8, 1, 41), (10, 0, 10, 1, 0),
            (12, 0, 12, 1, 0), (12, 0, 12, 8, 0), (14, 0, 14, 1, 0), (16, 0, 16, 4, 0), (16, 0, 4, 1, 0), (16, 4, 8, 1, 0), (16, 8, 12, 1, 0),
            (16, 12, 16, 1, 0), (16, 12, 16, 16, 0), (12, 0, 4, 1, 0), (12, 8, 12, 1, 0), (12, 8, 12, 16, 0)]:
        cases += case_of(f"write_{writes}_find_{first}_{last}_p{passes}_by{shift}", "l2_write_refind", ("out", "sink", writes, first, last, passes, shift),
                         out=writes * step, sink=4096)
    for writes, hot, times in [(8, 1, 16), (12, 1, 1), (12, 1, 16), (16, 1, 1), (16, 1, 4), (16, 1, 16), (32, 1, 1), (32, 1, 4), (32, 1, 16), (32, 4, 4),
                               (32, 4, 16), (32, 1, 64), (32, 8, 16), (10, 4, 16)]:
        cases += case_of(f"write_{writes}_hot_{hot}_times_{times}", "l2_write_hot", ("out", "in", "sink", writes, hot, times), out=writes * step,
                         **{"in": hot * step}, sink=4096)
    for writes, passes, read in [(8, 2, 0), (12, 2, 0), (12, 8, 0), (16, 2, 0), (8, 1, 1), (12, 1, 1), (16, 1, 1), (8, 8, 1)]:
        cases += case_of(f"rewrite_{writes}_p{passes}_read_{read}", "l2_rewrite", ("out", "sink", writes, passes, read), out=writes * step, sink=4096)
    return {"micro_l2_dirty": cases}


def l1_stores():
    rounds = 16

    def case_of(name, kernel, grid, threads, arguments, size, **buffers):
        made = {"out": f"{{bytes: {size}, fill: zero}}"} | {key: f"{{bytes: {size}, fill: zero}}" for key, size in buffers.items()}
        return [case(name, made, launch(kernel, grid, threads, *arguments))]

    def stores(between, lanes, warps, grid):
        return case_of(f"stores_{between}_lanes_{lanes}_w{warps}_b{grid}", f"stores_{between}", grid, 32 * warps,
                       ("out", lanes, rounds), 32 * warps * grid * 32 * rounds)

    cases = []
    for between in (0, 1, 2, 4, 8, 16):
        for lanes in (1, 4, 32):
            cases += stores(between, lanes, 1, 1)
    for warps, grid in [(2, 1), (4, 1), (8, 1), (16, 1), (32, 1), (8, SMS), (32, SMS)]:
        for between, lanes in [(0, 1), (0, 4), (0, 32), (4, 4), (4, 32)]:
            cases += stores(between, lanes, warps, grid)
    for warps, lanes in [(2, 24), (3, 8), (3, 16), (3, 20), (3, 24), (3, 28), (3, 32), (4, 8), (4, 12), (4, 16), (4, 20), (4, 24), (4, 28), (5, 16), (5, 20),
                         (6, 16), (8, 8), (8, 12), (8, 16)]:
        cases += stores(0, lanes, warps, 1)
    for lines in (1, 2, 3, 4, 8):
        for warps in (1, 4):
            cases += case_of(f"stores_round_{lines}_w{warps}", f"stores_round_{lines}", 1, 32 * warps, ("out", rounds),
                             32 * warps * lines * 4 * (rounds + 1))
    for warps, grid in [(1, 1), (8, 1), (8, SMS)]:
        cases += case_of(f"stores_halves_w{warps}_b{grid}", "stores_halves", grid, 32 * warps, ("out", rounds),
                         32 * warps * grid * 8 * (rounds + 1))
    for kind in (0, 1, 2):
        cases += case_of(f"stores_find_{kind}", "stores_find", 1, 128, ("out", "sink", rounds, kind), 128 * 4 * rounds, sink=4096)
    for whole in (0, 1):
        cases += case_of(f"stores_load_{whole}", "stores_load", 1, 128, ("out", "sink", rounds, whole), 128 * 4 * rounds, sink=4096)
    return {"micro_l1_stores": cases}


def waves():
    """Grids around whole waves, blocks of unequal length, and where blocks go. Dynamic shared memory sets the blocks an SM holds."""
    def grid_of(name, kernel, blocks, threads, shared, arguments, **buffers):
        one = launch(kernel, blocks, threads, *arguments)
        one = {key: value for key, value in one.items() if key != "args"} | {"dynamic_shared_bytes": shared, "args": one["args"]}
        return case(name, buffers, one)

    def work(name, blocks, threads, shared, trips, step, modulus, kernel="block_work", size=4):
        out = f"{{bytes: {blocks * (32 if kernel == 'block_place' else threads * size)}, fill: zero}}"
        return grid_of(f"{name}_b{blocks}", kernel, blocks, threads, shared, ("out", trips, step, modulus), out=out)

    cases = []
    for held, shared, threads, trips in [(1, 160 * KIB, 256, 80), (2, 100 * KIB, 256, 80), (8, 0, 256, 40)]:
        for wave in (1, 2, 3):
            for more in (-1, 0, 1):
                cases.append(work(f"wave_work_{held}", wave * held * SMS + more, threads, shared, trips, 0, 1))
    for wave in (1, 2, 3):
        for more in (-1, 0, 1):
            blocks = wave * 4 * SMS + more
            memory = f"{{bytes: {blocks * 512 * 16 * 4}, fill: zero}}"
            cases.append(grid_of(f"wave_copy_4_b{blocks}", "block_copy", blocks, 512, 0, ("in", "out", 4), **{"in": memory, "out": memory}))
    for held, shared, blocks, modulus in [(2, 100 * KIB, 256, 16), (4, 50 * KIB, 512, 32), (2, 100 * KIB, 1000, 16), (8, 0, 4000, 5)]:
        cases.append(work(f"uneven_{held}_m{modulus}", blocks, 256, shared, 10, 10, modulus))
    for name, blocks, threads, shared, step, modulus in [
            ("place_1", 400, 256, 160 * KIB, 0, 1), ("place_2", 600, 256, 100 * KIB, 0, 1), ("place_4", 1200, 256, 50 * KIB, 0, 1),
            ("place_32", 5000, 32, 0, 0, 1), ("place_32", 256, 32, 0, 0, 1), ("place_4", 256, 256, 50 * KIB, 0, 1), ("place_2_of_1024", 600, 1024, 0, 0, 1), ("place_2_uneven", 1000, 256, 100 * KIB, 40, 16),
            ("place_4_uneven", 1000, 256, 50 * KIB, 40, 16),
            *(("place_8", blocks, 256, 0, 0, 1) for blocks in (4, 8, 12, 20, 64, 72, 100, 131, 136, 256))]:
        cases.append(work(name, blocks, threads, shared, 20, step, modulus, kernel="block_place"))
    return {"micro_waves": cases}


def queue():
    cases = []
    for kernel in ("queue_shared", "queue_global", "queue_shared_and_global", "queue_shared_and_conflicts"):
        for warps in (16, 32):
            for multiplications in (0, 100):
                blocks = f"{{bytes: {SMS * warps * 40}, fill: zero}}"
                cases.append(case(f"{kernel}_w{warps}_m{multiplications}", {"out": blocks, "in": zero(32)},
                                  launch(kernel, SMS, 32 * warps, "out", "in", 4, multiplications)))
    return {"micro_queue": cases}


def accept():
    """The clocks of bursts of an operation; `others` and `measures` are masks of warps, of which 0 and 4 share a sub-partition."""
    cases = []

    def add(name, kernel, others, measures, other_stride, stride):
        warps = (others | measures).bit_length()
        one = launch(kernel, 1, 32 * warps, "out", "in", "store", other_stride, stride, others, measures)
        words = 32 * 32 + 64
        cases.append(case(name, {"out": f"{{bytes: {warps * 12 * 16}, fill: zero}}", "in": zero(words),
                                 "store": f"{{bytes: {4 * words}, fill: zero}}"}, one))

    alone, pair, each, both = 0x1, 0x11, 0xf, 0xff
    for kernel, strides, masks in [
            ("lds", (1, 8, 32), (alone, pair, each, both)), ("sts", (1, 8, 32), (alone, pair, each, both)), ("lds128", (4,), (alone, each, both)),
            ("sts128", (4,), (alone, each, both)), ("ldg", (0, 8, 32), (alone, pair, each, both)), ("stg", (8, 32), (alone, pair, each)),
            ("shfl", (0,), (alone, pair, both)), ("mufu", (0,), (alone, pair, 0x1111))]:
        for stride in strides:
            for mask in masks:
                add(f"accept_{kernel}_s{stride}_m{mask:x}", f"accept_{kernel}", 0, mask, 0, stride)
    for kernel, stride in [("lds", 1), ("ldg", 0), ("ldg_after_lds", 0), ("sts_after_lds", 1), ("lds_after_sts", 1), ("lds_after_ldg", 1),
                           ("ldg_after_stg", 0), ("lds_after_stg", 1), ("mufu_after_lds", 0), ("shfl_after_lds", 0)]:
        for place, others, measures in [("same", 0x1, 0x10), ("other", 0x1, 0x2), ("all", 0xf, 0x10)]:
            add(f"accept_{kernel}_{place}", f"accept_{kernel}", others, measures, 32, stride)
    return {"micro_accept": cases}


def in_flight():
    """Loads of so many lines, one after another, by an SM alone and by all."""
    cases = []
    for lines, lane in [(1, 4), (2, 8), (4, 16), (8, 32), (32, 128)]:
        for threads in (512, 1024):
            for blocks in (1, SMS):
                cases.append(case(f"in_flight_lines_{lines}_t{threads}_b{blocks}",
                                  {"in": f"{{bytes: {blocks * threads * 24 * lane}, fill: zero}}", "out": f"{{bytes: {blocks * threads * 4}, fill: zero}}"},
                                  launch(f"in_flight_lines_{lines}", blocks, threads, "in", "out")))
    return {"micro_in_flight": cases}


def scoreboards():
    """72 loads of each warp, on one scoreboard, of the front of a buffer that L2 does not hold."""
    return {"micro_scoreboards": [case(f"scoreboards_{bits}_w{warps}",
                                       {"in": f"{{bytes: {256 * KIB * KIB}, fill: zero}}", "out": f"{{bytes: {warps * 384}, fill: zero}}"},
                                       launch(f"scoreboards_{bits}", 1, 32 * warps, "in", "out"))
                                  for bits in (32, 64) for warps in (1, 4, 8)]}


def last():
    """A line of each warp a step, from memory: of one block, far apart and side by side, and of a block on each SM."""
    def one(name, grid, warps, pitch, steps):
        return counted(name, "last_line", steps, grid, warps, lambda n: ("in", "out", n, pitch),
                       **{"in": pitch * grid * warps * steps[1], "out": grid * warps * 128})
    cases = []
    for warps in (1, 2, 4, 8, 16, 32):
        cases += one(f"last_apart_w{warps}", 1, warps, 133 * 128, (64, 320))
    for warps in (4, 32):
        cases += one(f"last_beside_w{warps}", 1, warps, 128, (64, 320))
    for warps in (4, 16, 32):
        cases += one(f"last_all_w{warps}", SMS, warps, 4 * 128, (16, 80))
    return {"micro_last": cases}


def ports():
    """All SMs write what L2 holds, or all but those of a TPC: 16 bytes a thread, or a word of some lanes."""
    cases = []
    alone = {"dynamic_shared_bytes": 120 * KIB}

    def add(name, kernel, size, *arguments):
        one = launch(kernel, SMS, 1024, "memory", "out", *arguments)
        buffers = {"memory": f"{{bytes: {SMS * size}, fill: zero}}", "out": f"{{bytes: {SMS * 4}, fill: zero}}"}
        cases.append(case(name, buffers, {key: value for key, value in one.items() if key != "args"} | alone | {"args": one["args"]}))

    for name, left_out in [("all", -1)] + [(f"less_{tpc}", tpc) for tpc in (1, 25)]:
        add(f"ports_write_{name}", "ports_write", 32 * KIB, 8, left_out)
    for lanes, trips in [(1, 50), (8, 80), (32, 30)]:
        add(f"ports_write_lanes_{lanes}", "ports_write_lanes", 128 * KIB, trips, lanes)
    return {"micro_ports": cases}


def turnover():
    """One block after another in the same place: 1, 4 or 8 blocks of 256 threads an SM, alone on the machine (few) or not."""
    cases = []

    def add(name, kernel, blocks, threads, shared, *arguments, **buffers):
        one = launch(kernel, blocks, threads, *arguments)
        one = {key: value for key, value in one.items() if key != "args"} | {"dynamic_shared_bytes": shared, "args": one["args"]}
        buffers = {key: f"{{bytes: {size}, fill: zero}}" for key, size in buffers.items()}
        cases.append(case(name, buffers, one))

    for held, threads, shared in [(1, 256, 160 * KIB), (1, 32, 160 * KIB), (1, 1024, 160 * KIB), (4, 256, 50 * KIB), (8, 256, 0), (16, 128, 0)]:
        blocks, records = 10 * held * SMS, 10 * held * SMS * threads // 2
        name = f"{held}_of_{threads}"
        for before, after in [(20, 0), (0, 20), (20, 20)]:
            add(f"turnover_work_{name}_{before}_{after}", "turnover_work", blocks, threads, shared, "record", before, after, record=records)
        values = blocks * threads * 4
        add(f"turnover_copy_{name}", "turnover_copy", blocks, threads, shared, "in", "out", "record",
            **{"in": values, "out": values, "record": records})
        add(f"turnover_read_{name}", "turnover_read", blocks, threads, shared, "in", "record", **{"in": values, "record": records})
    for threads, shared in [(64, 0), (96, 0), (160, 0), (192, 0), (64, 50 * KIB), (192, 50 * KIB), (288, 50 * KIB)]:  # which sub-partition
        add(f"turnover_place_{threads}_{shared}", "turnover_work", 10 * 4 * SMS, threads, shared, "record", 5, 0,
            record=10 * 4 * SMS * threads // 2)
    return {"micro_turnover": cases}


def copy_async():
    """From L1 (where copies look for it: one line a lane group, read over and over), from L2, and of nothing."""
    def copies(kernel, trips, warps, spread, name=None, grid=SMS):
        text = per_sm(kernel, trips, "in", spread, warps=warps, grid=grid, name=name)
        with_input = f"{{bytes: {max(grid * warps * max(spread, 1), 8192) + 8192}, fill: zero}}"
        return [one.replace("  args:", f"    in: {with_input}\n  args:")
                   .replace(f"block: [{32 * warps}, 1, 1]", f"block: [{32 * warps}, 1, 1]\n  dynamic_shared_bytes: 16896")
                for one in text]
    cases = []
    for kernel in ("copy_chase_ca_4", "copy_chase_ca_16", "copy_chase_cg_16", "copy_chase_nothing", "copy_chase_registers"):
        cases += copies(kernel, (20, 60), 1, 4096)
    for kernel in ("copy_many_ca_4", "copy_many_ca_8", "copy_many_ca_16", "copy_many_cg_16", "copy_many_nothing",
                   "copy_many_ca_4_conflicts"):
        for warps in (1, 4, 16):
            cases += copies(kernel, (20, 60), warps, 4096 if warps == 1 else 0, grid=SMS)
    for left in (0, 1, 2, 3, 5):
        for warps in (1, 8):
            cases += copies(f"copy_groups_{left}", (20, 60), warps, 4096)
    return {"micro_copy_async": cases}


# Forms of mma.sync (kernels/micro/mma.cuh). Of some, all numbers of chains.
MMA_FORMS = ["f16_16816_f32", "f16_16816_f16", "f16_1688_f32", "f16_1688_f16", "bf16_16816", "bf16_1688", "tf32_1684", "tf32_1688", "s8_8816",
             "s8_16816", "s8_16832", "s4_16864", "b1_168256", "f64_884", "f64_1684", "f64_1688", "f64_16816", "e4m3_16832", "sp_f16_16816",
             "sp_f16_16832", "sp_f16_16832_f16", "sp_bf16_16832", "sp_tf32_1688", "sp_tf32_16816", "sp_s8_16832", "sp_s8_16864"]
MMA_CLOSELY = ["f16_16816_f32", "f16_1688_f32", "tf32_1688", "s8_16832", "sp_f16_16832"]
MMA_FEW, MMA_MORE = [(1, 1), (4, 1), (4, 4), (4, 16)], [(2, 1), (8, 1), (1, 8), (1, 16), (1, 32), (2, 8), (2, 16), (8, 8)]  # chains, warps
TENSOR_TRIPS = (5, 25)


def mma_chains():
    """(form, chains, warps). 16 warps with four chains of DMMA.16x8x8 need more registers than there are."""
    return [(form, chains, 8 if (form, warps) == ("f64_1688", 16) else warps) for form in MMA_FORMS
            for chains, warps in MMA_FEW + (MMA_MORE if form in MMA_CLOSELY else [])]


def tensor_chains():
    return {"micro_tensor_chains": [text for form, chains, warps in mma_chains()
                                    for text in per_sm(f"{form}_c{chains}", TENSOR_TRIPS, warps=warps, size=8)]}


MMA_CHAINS = [f"chain_{over}" for over in ("into_a", "into_b", "add", "add_last", "max", "ex2", "shuffle", "pack", "store")]
MMA_OPERANDS = ["overwrite_a", "overwrite_a_last", "overwrite_b", "reload_a", "reload_b", "own_a", "own_b", "own_ab", "tile_2x4", "tile_2x4_columns",
                "tile_4x4", "tile_4x8"]


def tensor_operands():
    cases = [(kernel, 1) for kernel in MMA_CHAINS] + [(kernel, warps) for kernel in MMA_OPERANDS for warps in (1, 8)]
    return {"micro_tensor_operands": [text for kernel, warps in cases for text in per_sm(kernel, TENSOR_TRIPS, warps=warps, size=8)]}


MMA_BESIDE = ["ffma_1", "ffma_2", "ffma_4", "ffma_6", "ffma_8", "ffma_3_4", "lop3_1", "lop3_2", "lop3_4", "imad_2", "imad_4", "fmnmx_2", "ex2_1", "ex2_2",
              "hfma2_1", "hfma2_2", "hfma2_4", "pack_2", "lds_1", "lds_2", "sts_1", "ldsm_of_1", "ldsm_of_2", "ldsm_of_4", "copy_of_4", "copy_of_8"]
MMA_PAIRS = [f"f16_16816_f32_and_{other}" for other in ("f16_1688_f32", "f16_16816_f16", "bf16_16816", "tf32_1688", "s8_16832", "f64_884",
                                                         "sp_f16_16832")] + ["f16_1688_f32_and_s8_16816"]


def tensor_beside():
    cases = []
    for kernel, warps in [(kernel, warps) for kernel in MMA_BESIDE for warps in (4, 16)] + [(kernel, warps) for kernel in MMA_PAIRS for warps in (1, 16)]:
        cases += counted(f"{kernel}_w{warps}", kernel, TENSOR_TRIPS, SMS, warps, lambda n: ("out", n, "in"), out=SMS * warps * 256,
                         **{"in": SMS * warps * 512})
    return {"micro_tensor_beside": cases}


# Kernel, bytes from row to row, warps.
LDSM_CASES = ([(f"{kind}_chain", 16, 1) for kind in ("ldsm_1", "ldsm_2", "ldsm_4", "ldsm_1_trans", "ldsm_4_trans", "stsm_ldsm_1", "stsm_ldsm_4")] +
              [("ldsm_1_chain", 128, 1)] + [("ldsm_4_chain", pitch, 1) for pitch in (32, 64, 128)] +
              [(kind, 16, warps) for kind in ("ldsm_1", "ldsm_2", "ldsm_4", "stsm_1", "stsm_2", "stsm_4") for warps in (1, 4, 16)] +
              [(kind, pitch, 16) for kind in ("ldsm_4", "stsm_4") for pitch in (32, 64, 128, 80)] + [("ldsm_4", 128, 1), ("ldsm_1", 128, 16)] +
              [(f"{kind}_4_trans", pitch, 16) for kind in ("ldsm", "stsm") for pitch in (16, 128)] +
              [(f"ldsm_4_{other}", 16, warps) for other in ("lds", "lds_4", "sts", "copy") for warps in (4, 16)] +
              [(kind, 16, warps) for kind in ("movm", "pack_bf16", "pack_e4m3", "unpack_e4m3") for warps in (4, 16)] +
              [(f"{kind}_chain", 16, 1) for kind in ("movm", "pack_bf16", "pack_e4m3", "unpack_e4m3")])
LDSM_TRIPS = (20, 100)


def ldmatrix():
    cases = []
    for kernel, pitch, warps in LDSM_CASES:
        cases += counted(f"{kernel}_p{pitch}_w{warps}", kernel, LDSM_TRIPS, SMS, warps, lambda n: ("out", n, pitch, "in"), out=SMS * warps * 128,
                         **{"in": SMS * warps * 512})
    return {"micro_ldmatrix": cases}


# Four warps: copies into one place merge while the first is under way, and each of four warps has places of its own.
ROWS_CASES = [(row, grid) for row in (16, 32, 64, 128, 512) for grid in (1, SMS)]
ROWS_TRIPS = (20, 60)
BESIDE_COPIES = [(kind, row, copies) for kind in ("chain", "many") for row in (64, 128, 512) for copies in (0, 1, 2, 4)]
BESIDE_COPIES_TRIPS = (20, 100)


def copy_rows():
    region = 8192  # bytes that a warp walks through
    cases = []
    for row, grid in ROWS_CASES:
        for one in counted(f"copy_rows_{row}_b{grid}_w4", f"copy_rows_{row}", ROWS_TRIPS, grid, 4, lambda n: ("out", n, "in", 4 * region, region),
                           out=grid * 512, **{"in": grid * 4 * region}):
            cases.append(one.replace("block: [128, 1, 1]", "block: [128, 1, 1]\n  dynamic_shared_bytes: 20480"))
    for kind, row, copies in BESIDE_COPIES:
        cases += counted(f"copies_beside_{kind}_{row}_c{copies}", f"copies_beside_{kind}_{row}", BESIDE_COPIES_TRIPS, 1, 8,
                         lambda n: ("out", n, "in", copies), out=8 * 128, **{"in": 4 * region})
    return {"micro_copy_rows": cases}


COPY_REQUESTS = [(row, start) for row in (16, 32, 64, 128, 256, 512) for start in (0, 16, 32, 48, 112)]
COPY_REQUESTS_TRIPS = (4, 20)


def copy_requests():
    return {"micro_copy_requests": [one.replace("block: [128, 1, 1]", "block: [128, 1, 1]\n  dynamic_shared_bytes: 2048")
                                    for row, start in COPY_REQUESTS
                                    for one in counted(f"copy_requests_{row}_from_{start}", f"copy_requests_{row}", COPY_REQUESTS_TRIPS, 1, 4,
                                                       lambda n: ("out", n, "in", start), out=512, **{"in": 20 * 4 * 32768 + 1024})]}


COPY_PARTS = [(kind, row, lanes, start) for kind in ("zeros", "off") for row, parts in ((64, (1, 3)), (512, (0, 1, 4, 5, 13, 29)))
              for lanes in parts for start in (0, 16, 48, 112)]


def copy_parts():
    return {"micro_copy_parts": [one.replace("block: [128, 1, 1]", "block: [128, 1, 1]\n  dynamic_shared_bytes: 2048")
                                 for kind, row, lanes, start in COPY_PARTS
                                 for one in counted(f"copy_parts_{kind}_{row}_l{lanes}_from_{start}", f"copy_parts_{kind}_{row}", COPY_REQUESTS_TRIPS,
                                                    1, 4, lambda n: ("out", n, "in", start, lanes), out=512, **{"in": 20 * 4 * 32768 + 1024})]}


STORE_ROWS = [(order, between, warps, grid) for order in ("along", "apart", "mixed") for between in (0, 2, 8)
              for warps, grid in ((1, 1), (2, 1), (4, 1), (8, 1), (8, SMS))]
STORE_ROWS_TRIPS = 16


def store_rows():
    return {"micro_store_rows": [case(f"store_rows_{order}_{between}_w{warps}_b{grid}",
                                      {"out": f"{{bytes: {grid * warps * 4096 * STORE_ROWS_TRIPS}, fill: zero}}"},
                                      launch(f"store_rows_{order}_{between}", grid, 32 * warps, "out", STORE_ROWS_TRIPS))
                                 for order, between, warps, grid in STORE_ROWS]}


LINES = ([("parts", warps, (other,)) for warps in (1, 3, 4, 8) for other in (0x00, 0x01, 0x80, 0x10, 0x0f, 0xf0, 0xaa, 0xfe, 0x7f, 0xff)] +
         [("along", warps, (pitch, start)) for warps in (1, 2, 4, 8) for pitch in (512, 528, 544, 560, 576, 592, 608, 624)
          for start in (0, 16)] +
         [(f"turns_{groups}", warps, (pitch,)) for warps in (1, 2, 4, 8) for groups in (1, 2, 3, 4) for pitch in (512, 560)] +
         [(f"sets_{groups}", warps, (lines,)) for warps in (1, 2, 4, 8, 16) for groups in (1, 2, 3, 4) for lines in (1, 2, 4, 8)] +
         [(f"wide_{order}_{size}", warps, ()) for order in ("close", "row") for size in (1, 2, 4, 8) for warps in (1, 2, 4, 8)] +
         [("warps", warps, ()) for warps in (1, 2, 4, 8, 16, 32)] +
         [("beside", warps, (pitch, width)) for warps in (1, 2, 4, 8, 16) for pitch in (2048, 2000, 1556) for width in (32, 64, 128)])
LINES_REGION, LINES_TRIPS = 1 << 15, 4


def store_lines():
    return {"micro_store_lines": [case(f"lines_{'_'.join(map(str, (kind, *arguments)))}_w{warps}",
                                       {"out": f"{{bytes: {(warps + 16) * LINES_REGION * (LINES_TRIPS + 1)}, fill: zero}}"},
                                       launch(f"lines_{kind}", 1, 32 * warps, "out", LINES_TRIPS, *arguments))
                                  for kind, warps, arguments in LINES]}


# Pitch, lanes a row, rows. Of pitches 3584 and 4608 the first eight lines lie in one bank of tags.
STORE_BANKS = [(512, 1, rows) for rows in (24, 26, 28, 29, 32)] + [(128, 1, rows) for rows in (28, 29)] + [
    (4608, 1, rows) for rows in (6, 7, 8)] + [(3584, 1, rows) for rows in (7, 8, 12)] + [
    (pitch, 1, rows) for pitch in (2000, 1936, 3056, 944) for rows in (16, 20, 24)]
STORE_GAPS = [(pitch, 4, 8) for pitch in (2048, 1088, 1040, 2000)] + [(pitch, 4, 4) for pitch in (2048, 1088, 1040)] + [
    (2048, 4, 2), (2000, 4, 2), (2048, 8, 4), (2080, 8, 4), (2048, 16, 2), (2112, 16, 2), (2048, 32, 1), (2052, 1, 8), (2052, 1, 28)]
STORE_RATES = [(warps, *rows) for warps in (1, 2, 3) for rows in ((2048, 4, 8), (1088, 4, 8), (1040, 4, 8), (2048, 4, 4), (2048, 32, 1))]
STORE_RATE_TRIPS = (16, 64)
STORE_GAP_TRIPS, STORE_REGION = 16, 1 << 17


def store_banks():
    def one(name, kernel, warps, trips, rows, regions):
        return case(name, {"out": f"{{bytes: {warps * STORE_REGION * regions}, fill: zero}}"},
                    launch(kernel, 1, 32 * warps, "out", trips, *rows, 0))

    def named(rows):
        return "_".join(map(str, rows))
    return {"micro_store_banks": [one(f"store_bank_{named(rows)}", "store_gap_1", 1, STORE_GAP_TRIPS, rows, STORE_GAP_TRIPS + 1)
                                  for rows in STORE_BANKS] +
                                 [one(f"store_gap_{fuses}_{named(rows)}", f"store_gap_{fuses}", 1, STORE_GAP_TRIPS, rows, STORE_GAP_TRIPS + 1)
                                  for rows in STORE_GAPS for fuses in range(2, 9)] +
                                 [one(f"store_rate_{named(rows)}_w{warps}_n{trips}", "store_rate", warps, trips, rows, 1)
                                  for warps, *rows in STORE_RATES for trips in STORE_RATE_TRIPS]}


FIRST_TILES = [(kind, columns, pitch, steps, grid) for kind, columns, grid in (
    ("tall", 1, 1), ("wide", 1, 1), ("both", 1, 1), ("tall", 1, 16), ("tall", 1, SMS), ("tall", 32, SMS), ("tall", SMS, SMS),
    ("wide", 1, SMS), ("wide", 32, SMS), ("both", 1, SMS), ("both", 32, SMS)) for pitch in (8192, 10000) for steps in (1, 3, 6)]


def first_tiles():
    cases = [case(f"first_tiles_{kind}_{columns}_p{pitch}_s{steps}_b{grid}",
                  {"out": f"{{bytes: {1024 * grid}, fill: zero}}", "in": f"{{bytes: {(1 << 28) + 200 * 10000}, fill: zero}}"},
                  launch(f"first_tiles_{kind}", grid, 256, "out", "in", columns, pitch, steps))
             for kind, columns, pitch, steps, grid in FIRST_TILES]
    return {"micro_first_tiles": [one.replace("block: [256, 1, 1]", "block: [256, 1, 1]\n  dynamic_shared_bytes: 98304") for one in cases]}


# Products of a trip and warp: twice the tile's.
TILES = [(2, 4), (4, 4), (2, 8), (4, 8)]
TILE_TRIPS = (20, 100)


def tensor_tiles():
    cases = []
    for kind in ("held", "matrix", "word"):
        for rows, columns in TILES:
            for warps in (4, 8):
                cases += counted(f"tile_{kind}_{rows}x{columns}_w{warps}", f"tile_{kind}_{rows}x{columns}", TILE_TRIPS, SMS, warps,
                                 lambda n: ("out", n, "in"), out=SMS * warps * 256, **{"in": 4096})
    return {"micro_tensor_tiles": cases}


# What goes beside a tile of products.
LOADS = ("none_1_of_1", "lds_1_of_4", "lds_1_of_2", "lds_1_of_1", "lds_2_of_1", "lds_4_1_of_4", "lds_4_1_of_2", "sts_1_of_2",
         "sts_1_of_1", "move_1_of_1", "move_2_of_1", "add_1_of_2", "add_1_of_1", "add_2_of_1", "copy_1_of_16")


def tensor_loads():
    return {"micro_tensor_loads": [one for kind in LOADS for warps in (4, 8)
                                   for one in counted(f"tile_{kind}_w{warps}", f"tile_{kind}", TILE_TRIPS, SMS, warps, lambda n: ("out", n, "in"),
                                                      out=SMS * warps * 128, **{"in": SMS * warps * 16384})]}


TURNS = ("mma", "lop3", "imad")
TURN_TRIPS = (20, 100)
TURN_WARPS = (4, 8, 16)


def turns():
    return {"micro_turns": [one for kind in TURNS for warps in TURN_WARPS
                            for one in per_sm(f"turns_{kind}", TURN_TRIPS, warps=warps)]}


def micro():
    parts = (launch_costs, code_size, issue, opcodes, wide, operands, exponentials, beside, order, branch, loops, barrier, arguments, constant, special, shared, l1, l1_tags,
             l1_strides, l2,
             l2_policy, l2_dirty, l2_drift, l2_step, l1_stores, l2_modify, dram, waves, turnover, queue, accept, in_flight,
             scoreboards, last, ports, copy_async, copy_rows, copy_requests, copy_parts, store_rows, store_lines, store_banks, first_tiles, tensor_chains, tensor_operands, tensor_beside, tensor_tiles, ldmatrix, tensor_loads, turns)
    return {stem: cases for part in parts for stem, cases in part().items()}

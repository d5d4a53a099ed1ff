"""The cases of the products by warpgroups (kernels/matmul from 20 on, sm_90 alone), for launches.py."""
from math import ceil

import flash_launches
from launches import BYTES, case, launch, uniform, zero
from tensor_launches import squares, with_sweeps

KIB = 1 << 10
# Rows are whole 16-byte chunks, as tensor maps take them.
CHECKS = [(f"check_{m}x{n}x{k}", m, n, k) for m, n, k in [(64, 64, 64), (136, 264, 104), (129, 72, 416)]]
SIZES = squares(512, 1024, 2048, 4096, 8192, 1000, 3000, 5000) + \
    [("8192x1024x1024", 8192, 1024, 1024), ("256x8192x4096", 256, 8192, 4096)]


def matrix_map(buffer, rows, columns, kind, box_rows):
    """Boxes of 64 columns of a row-major matrix of 16-bit elements."""
    return {"pointer": buffer, "type": kind, "shape": [columns, rows], "strides": [columns * BYTES[kind]], "box": [64, box_rows],
            "swizzle": "128B"}


def product(kernel, name, m, n, k, tile_n, threads, kib, kind, maps):
    buffers = {"a": uniform(m * k, 1, kind), "b": uniform(k * n, 2, kind), "c": zero(m * n, 2)}
    factors = (matrix_map("a", m, k, kind, 128), matrix_map("b", k, n, kind, 64)) if maps else ("a", "b")
    return case(f"{kernel}_{name}", buffers,
                launch(kernel, (ceil(n / tile_n), ceil(m / 128)), threads, *factors, "c", m, n, k) |
                {"dynamic_shared_bytes": str(kib * KIB)})


def ladder(kernel, kind, sizes, tile_n, threads, kib, maps=True):
    return [product(f"{kernel}_{kind}", *of, tile_n, threads, kib, kind, maps) for of in sizes + CHECKS]


def persistent(kernel, name, m, n, k, kind, blocks=132):
    """Blocks that stay, whose results leave by TMA; `drawn` has a counter."""
    drawn = "drawn" in kernel
    buffers = {"a": uniform(m * k, 1, kind), "b": uniform(k * n, 2, kind), "c": zero(m * n, 2)} | ({"counter": zero(1)} if drawn else {})
    maps = matrix_map("a", m, k, kind, 128), matrix_map("b", k, n, kind, 64), matrix_map("c", m, n, kind, 64)
    return case(f"{kernel}_{name}", buffers,
                launch(kernel, min(blocks, ceil(m / 128) * ceil(n / 256)), 384, *maps, m, n, k, *(["counter"] if drawn else [])) |
                {"dynamic_shared_bytes": str(225 * KIB)})


# Several tiles a block: products of 1 to 4 tiles by two.
PERSISTENT_CHECKS = [(f"check_{m}x{n}x{k}", m, n, k, blocks)
                     for m, n, k, blocks in [(64, 64, 64, 1), (136, 520, 200, 2), (257, 264, 328, 3)]]


def persistents(kernel, kind, sizes):
    return [persistent(kernel, *of, kind) for of in sizes] + \
           [persistent(kernel, *of, kind, blocks) for *of, blocks in PERSISTENT_CHECKS]


def sequences_map(buffer, length, heads, head, kind, box_rows):
    """Boxes of 64 columns of [heads][length][head]."""
    row = head * BYTES[kind]
    return {"pointer": buffer, "type": kind, "shape": [head, length, heads], "strides": [row, row * length],
            "box": [64, box_rows, 1], "swizzle": "128B"}


def flash3(kind, head, causal, name, length, heads, group=1):
    buffers = flash_launches.inputs(length, heads, group, head, kind) | {"o": zero(heads * length * head, 2)}
    maps = (sequences_map("q", length, heads, head, kind, 128), sequences_map("k", length, heads // group, head, kind, 128),
            sequences_map("v", length, heads // group, head, kind, 128), sequences_map("o", length, heads, head, kind, 64))
    return case(f"flash3_{kind}_{head}_{flash_launches.prefix(causal)}{name}", buffers,
                launch(f"flash3_{kind}_{head}", (ceil(length / 128), heads), 384, *maps, length, group, head ** -0.5, causal) |
                {"dynamic_shared_bytes": str((1 + 5 * head // 4) * KIB)})


def attention():
    lengths = [flash_launches.batch(length, head, group) + (head,) for head in (64, 128)
               for length, group in ((512, 1), (1024, 1), (2048, 1), (4096, 1), (8192, 1), (16384, 1), (4096, 4))]
    return [flash3("f16", head, causal, *of) for causal in (0, 1) for *of, head in lengths] + \
           [flash3("bf16", head, causal, *flash_launches.batch(length, head)) for causal in (0, 1) for head in (64, 128)
            for length in (1024, 4096)] + \
           [flash3("f16", 64, causal, f"{n}_heads_100", n, 100) for causal, n in ((0, 1000), (1, 777))] + \
           [flash3(kind, head, causal, *of) for kind in ("f16", "bf16") for head in (64, 128) for causal in (0, 1)
            for of in flash_launches.CHECKS]
def clustered(kernel, kind, sizes, rows_of_cluster, kib):
    """Blocks of 128 x 256, a cluster's one above the other: x runs along the rows of C."""
    def one(name, m, n, k):
        grid = (rows_of_cluster * ceil(m / (128 * rows_of_cluster)), ceil(n / 256))
        return case(f"{kernel}_{kind}_{name}", {"a": uniform(m * k, 1, kind), "b": uniform(k * n, 2, kind), "c": zero(m * n, 2)},
                    launch(f"{kernel}_{kind}", grid, 384, matrix_map("a", m, k, kind, 128), matrix_map("b", k, n, kind, 64), "c",
                           m, n, k) | {"cluster": f"[{rows_of_cluster}, 1, 1]", "dynamic_shared_bytes": str(kib * KIB)})
    return [one(*of) for of in sizes + CHECKS]


def numbers(elements, high, seed):
    return f"{{bytes: {elements * 4}, fill: {{lcg: {{seed: {seed}, modulus: {high}}}}}}}"


def clusters():
    """Blocks that reach each other's shared memory (kernels/reduce/04)."""
    def histogram(name, n, bins, size, grid):
        return case(f"histogram_cluster_{name}", {"in": numbers(n, 1 << 16, 1), "out": zero(bins)},
                    launch("histogram_cluster", grid, 256, "in", "out", n, bins) |
                    {"cluster": f"[{size}, 1, 1]", "dynamic_shared_bytes": str(4 * bins // size)})

    def sums(name, rows, n, size):
        return case(f"sum_rows_cluster_{name}", {"in": uniform(rows * n, 1), "out": zero(rows)},
                    launch("sum_rows_cluster", rows * size, 256, "in", "out", n) | {"cluster": f"[{size}, 1, 1]"})

    def shift(name, n, kernel="shift_cluster"):
        return case(f"{kernel}_{name}", {"in": uniform(n, 1), "out": zero(n)},
                    launch(kernel, n // 128, 128, "in", "out") | {"cluster": "[2, 1, 1]"})
    return [histogram("4mi_2", 4 << 20, 2048, 2, 264), histogram("4mi_4", 4 << 20, 2048, 4, 256),
            histogram("4mi_8", 4 << 20, 2048, 8, 256), sums("4096x16384_4", 4096, 16384, 4), sums("4096x16384_8", 4096, 16384, 8),
            shift("1mi", 1 << 20), shift("1mi", 1 << 20, "push_cluster"), histogram("check_1000_4", 1000, 64, 4, 8), histogram("check_5000_2", 5000, 512, 2, 6),
            sums("check_3x777_2", 3, 777, 2), sums("check_2x3000_8", 2, 3000, 8), shift("check_512", 512),
            shift("check_512", 512, "push_cluster")]


def hopper():
    few = squares(1024, 4096)
    return with_sweeps({
        "matmul_20_wgmma": ladder("wgmma", "bf16", SIZES, 128, 128, 33, False) +
                           ladder("wgmma", "f16", few, 128, 128, 33, False),
        "matmul_21_tma": ladder("tma", "bf16", SIZES, 128, 128, 33) + ladder("tma", "f16", few, 128, 128, 33),
        "matmul_22_pipeline": ladder("pipeline_3", "bf16", SIZES, 128, 128, 97) +
                              ladder("pipeline_6", "bf16", SIZES, 128, 128, 193) +
                              ladder("pipeline_2", "f16", few, 128, 128, 65) +
                              ladder("pipeline_3", "f16", few, 128, 128, 97),
        "matmul_23_warp_specialised": ladder("specialised", "bf16", SIZES, 256, 384, 193) +
                                      ladder("specialised", "f16", few, 256, 384, 193),
        "matmul_24_cluster_multicast": clustered("multicast", "bf16", SIZES, 2, 193) +
                                       clustered("multicast", "f16", few, 2, 193),
        "matmul_25_persistent": persistents("persistent_static_bf16", "bf16", SIZES) + persistents("persistent_static_f16", "f16", few) +
                                persistents("persistent_drawn_bf16", "bf16", squares(512, 1024, 2048, 4096, 3000)),
        "reduce_04_clusters": clusters(),
        "attention_08_flash3": attention()})


TRIPS = (100, 500)
PHASE_TRIPS = (50, 250)
# Boxes of so many rows, so many under way, by one SM or all, out of L2 or memory.
BOX_CASES = [(box, ahead, grid, "l2") for box, ahead in ((8, 1), (64, 1), (256, 1), (8, 4), (64, 4), (128, 4), (256, 4)) for grid in (1, 132)] + \
            [(box, ahead, 132, "dram") for box, ahead in ((64, 4), (128, 4), (256, 4))]
# Rows that begin anywhere in a line by 16, 32 and 64 bytes, or at a line, with others between them.
ROW_PITCHES = (144, 160, 192, 256)
ROW_BOXES = ((64, 1), (64, 4))
ROW_GROUPS = (1, 4, 16, 132)
APART_PITCHES, APART_GROUPS = (1040, 1088, 1184), (4, 16)  # rows that share no line
# SMs that read the same lines: so many, so far apart, so long behind each other.
SHARED_BYTES, SHARED_TRIPS = 128 * KIB, (32, 128)
SHARED_KINDS = ("loads", "copies", "boxes")
# sectors read first, and after so many times 4 cycles; of four SMs and of two
SECTOR_CASES = [(first, 0, 0) for first in (15, 14, 8, 6, 3, 1)] + \
               [(1, second, gap) for second in (14, 12) for gap in (0, 8, 16, 32, 64, 256)] + [(3, 12, gap) for gap in (0, 16, 256)] + \
               [(first, second, gap) for first, second in ((15, 15), (3, 3), (15, 3), (3, 15)) for gap in (0, 16, 64)]
SHARED_SETS = [(1, 1, 0), (2, 1, 0), (4, 1, 0), (8, 1, 0), (16, 1, 0), (132, 1, 0), (2, 2, 0), (4, 4, 0), (2, 66, 0), (4, 33, 0),
               (4, 1, 16), (4, 1, 64), (132, 1, 4)]
SHARED_LAGS = (8, 32, 128, 256)  # times 29 cycles
# What an entry of the coalescer remembers: lines asked for once or twice, after so many times round (16 trips each).
STATE_GROUPS = (1, 2, 4)
STATE_CASES = [(15, 0, 0)] + [(first, second, gap) for first, second in ((1, 14), (15, 15), (3, 12), (15, 3), (3, 15)) for gap in (0, 256)]
STATE_TRIPS = tuple(16 * rounds for rounds in (1, 2, 3, 4, 6, 8))
STATE_PLACES = ((8, (1, 2, 3, 4, 8, 16, 64)), (32, (4, 8, 12, 16, 32)))  # KiB of a set, trips

# Arithmetic beside products: 64 operations so many times while a group multiplies for 512 cycles, which take longer or less
# than the products.
FENCES = [f"{before}_fence_{kind}" for before, kinds in (
    ("alone", ("block", "view")), ("store", ("none", "block", "view")), ("copies", ("none", "view")), ("waited", ("none", "view")),
    ("load", ("none", "view"))) for kind in kinds]
FENCE_WARPS = (1, 4, 8)
REDUCTION_CASES = ((1, 1024), (8, 1024), (8, 0))  # warps, words that their places are apart
# Name, blocks (0: one an SM), lanes a row, words between them, words a row; words between blocks, tile a block begins with, tiles.
REDUCTION_ROWS = (("own_1", 0, 1, 1, 64, 16384, 0, 1), ("own_2", 0, 2, 1, 64, 8192, 0, 1), ("own_4", 0, 4, 1, 64, 4096, 0, 1),
                  ("own_8", 0, 8, 1, 64, 2048, 0, 1), ("own_4_by_2", 0, 4, 2, 64, 4096, 0, 1), ("own_8_by_2", 0, 8, 2, 64, 2048, 0, 1),
                  ("own_4_by_2_wide", 0, 4, 2, 128, 8192, 0, 1), ("alone_1", 1, 1, 1, 64, 16384, 0, 1),
                  ("alone_4_by_2", 1, 4, 2, 64, 4096, 0, 1), ("few_4_by_2", 16, 4, 2, 64, 4096, 0, 1),
                  ("step_4_by_2", 0, 4, 2, 64, 0, 0, 64), ("apart_4_by_2", 0, 4, 2, 64, 0, 7, 64),
                  ("step_4_by_2_wide", 0, 4, 2, 128, 0, 0, 64), ("apart_4_by_2_wide", 0, 4, 2, 128, 0, 7, 64))
BESIDE_TRIPS = (10, 50)
BESIDE_MANY = {"ffma": 14, "ffma_3": 12, "fadd": 14, "fmul_1": 14, "fmnmx": 8, "lop3": 8, "imad": 8, "ex2": 2, "pack": 8, "weights": 5}
BESIDE_FEW = {"ffma": 6, "ffma_3": 5, "fmnmx": 3, "ex2": 1, "weights": 2}
BESIDE_PRODUCTS = ("ss_64", "ss_128", "ss_256", "rs_64", "rs_128")
# operation, products (none: the arithmetic alone), warps of arithmetic a sub-partition, trips
BESIDE_CASES = [(kind, products, 1, trips) for kind, trips in BESIDE_MANY.items() for products in ("none", *BESIDE_PRODUCTS)] + \
               [(kind, products, 1, trips) for kind, trips in BESIDE_FEW.items() for products in BESIDE_PRODUCTS] + \
               [(kind, products, 2, BESIDE_MANY[kind]) for kind in ("ffma_3", "ex2", "weights") for products in ("none", "ss_128", "rs_128")]


def beside_name(kind, products, warps, trips):
    return f"beside_{kind}_{products}_w{warps}_t{trips}"


def micro():
    """Launches that calibrate: a quantity is the slope between two trip counts."""
    sms = 132

    def counted(name, kernel, trips, grid, threads, kib, arguments, buffers):
        return [case(f"{name}_n{n}", buffers, launch(kernel, grid, threads, *arguments(n)) |
                     ({"dynamic_shared_bytes": str(int(kib * KIB))} if kib else {})) for n in trips]

    products = [one for columns in (128, 256) for kind in ("1", "2", "4", "8") for groups in (1, 2)
                for one in counted(f"wgmma_{columns}_{kind}_g{groups}", f"wgmma_{columns}_{kind}", TRIPS, sms, 128 * groups, 72,
                                   lambda n: ("out", n), {"out": zero(sms * 256)})]
    arithmetic = [one for of in BESIDE_CASES for kind, beside, warps, trips in (of,)
                  for one in counted(beside_name(*of), f"{kind}_{'ss_128' if beside == 'none' else beside}", BESIDE_TRIPS, sms,
                                     128 + 128 * warps, 72, lambda n, beside=beside, trips=trips: ("out", 0 if beside == "none" else n, n * trips),
                                     {"out": zero(sms * 384)})]
    phases = [one for kernel, threads in (("arrive_wait", 32), ("ping_pong", 64), ("arrive_only", 32))
              for one in counted(kernel, kernel, PHASE_TRIPS, sms, threads, 0, lambda n: ("out", n), {"out": zero(sms * 2)})]

    def boxes(box, ahead, grid, rows, place, pitch=128):
        tensor = {"pointer": "in", "type": "bf16", "shape": [64, rows], "strides": [pitch], "box": [64, box], "swizzle": "128B"}
        step = box * grid % rows
        return counted(f"boxes_{box}_{ahead}_b{grid}_{place}" + (f"_p{pitch}" if pitch != 128 else ""), f"boxes_{box}_{ahead}",
                       PHASE_TRIPS, grid, 32, ahead * box / 8, lambda n: (tensor, "out", n, step, rows),
                       {"in": uniform(rows * pitch // 2, 1, "bf16"), "out": zero(grid)})
    small, large = 16896, 16896 * 64  # rows of 128 bytes: 2 MiB stays in L2, 132 MiB does not
    copies = [one for box, ahead, grid, place in BOX_CASES for one in boxes(box, ahead, grid, small if place == "l2" else large, place)]

    def read_together(kind, group, stride, delay, pitch=128):
        mask, rows = SHARED_BYTES - 1, sms * SHARED_BYTES // 128
        tensor = {"pointer": "in", "type": "bf16", "shape": [64, rows], "strides": [pitch], "box": [64, 64], "swizzle": "128B"}
        first = {"boxes": lambda n: (tensor, "out", n)}.get(kind, lambda n: ("out", n, "in"))
        threads = 32 if kind == "boxes" else 512
        return counted(f"shared_{kind}_{group}_s{stride}_d{delay}" + (f"_p{pitch}" if pitch != 128 else ""), f"shared_{kind}",
                       SHARED_TRIPS, sms, threads, 128, lambda n: (*first(n), mask, group, stride, delay),
                       {"in": uniform(rows * pitch // 2, 1, "bf16"), "out": zero(sms * threads)})

    def asked_twice(group, first, second, gap, trips, place=SHARED_BYTES):
        return counted(f"shared_sectors_{group}_{first}_{second}_g{gap}" + (f"_k{place // KIB}" if place != SHARED_BYTES else ""),
                       "shared_sectors", trips, sms, 128, 128, lambda n: ("out", n, "in", place - 1, group, first, second, gap),
                       {"in": uniform(sms * SHARED_BYTES // 2, 1, "bf16"), "out": zero(sms * 128)})
    sectors = [one for group in (2, 4) for of in SECTOR_CASES for one in asked_twice(group, *of, SHARED_TRIPS)]
    states = [one for group in STATE_GROUPS for of in STATE_CASES for one in asked_twice(group, *of, STATE_TRIPS)] + \
             [one for group in (1, 2) for kib, trips in STATE_PLACES for one in asked_twice(group, 1, 14, 256, trips, kib * KIB)]
    lagging = [one for kind in SHARED_KINDS for delay in SHARED_LAGS for one in read_together(kind, 4, 1, delay)]
    pitched = [one for pitch in ROW_PITCHES for box, ahead in ROW_BOXES for grid in (1, sms)
               for one in boxes(box, ahead, grid, small, "l2", pitch)]
    pitched_together = [one for pitches, groups in ((ROW_PITCHES, ROW_GROUPS), (APART_PITCHES, APART_GROUPS)) for pitch in pitches
                        for group in groups for one in read_together("boxes", group, 1, 0, pitch)]
    together = [one for kind in SHARED_KINDS for of in SHARED_SETS for one in read_together(kind, *of)]

    def sent(kernel, box, ahead, grid, rows, place, kind="bf16"):
        tensor = {"pointer": "to", "type": kind, "shape": [128 // BYTES[kind], rows], "strides": [128],
                  "box": [128 // BYTES[kind], box], "swizzle": "128B"}
        beside = kernel == "beside"
        return counted(f"{kernel}_{box}_{ahead}_b{grid}_{place}", f"{kernel}_{box}" + ("" if beside else f"_{ahead}"), PHASE_TRIPS,
                       grid, 128 if beside else 32, ahead * box / 8, lambda n: (tensor, *(["out"] if beside else []), n, box * grid % rows, rows),
                       {"to": zero(rows * 128, 1)} | ({"out": zero(grid * 128)} if beside else {}))
    sending = [one for kernel, box, ahead in (("stored", 8, 1), ("stored", 64, 1), ("stored", 64, 4), ("stored", 256, 4),
                                              ("written", 8, 1), ("written", 64, 1), ("written", 64, 4), ("beside", 64, 4))
               for grid in (1, sms) for one in sent(kernel, box, ahead, grid, small, "l2")] + \
              [one for box, ahead in ((8, 1), (64, 4)) for grid in (1, sms) for one in sent("added", box, ahead, grid, small, "l2", "f32")] + \
              sent("stored", 256, 4, sms, large, "dram")
    def with_boxes(columns, groups, boxes, grid):
        tensor = {"pointer": "in", "type": "bf16", "shape": [64, 512], "strides": [128], "box": [64, 64], "swizzle": "128B"}
        return counted(f"products_{columns}_g{groups}_boxes_{boxes}_b{grid}", f"products_{columns}_{groups}", PHASE_TRIPS, grid,
                       128 * groups + 32, 1 + 8 + columns / 8 + 32, lambda n: (tensor, "out", n, boxes),
                       {"in": uniform(512 * 64, 1, "bf16"), "out": zero(grid * 128 * groups)})
    mixed = [one for columns, groups in ((128, 1), (128, 2), (256, 2)) for boxes in (0, 2, 4, 6, 8) for grid in (1, sms)
             for one in with_boxes(columns, groups, boxes, grid)]

    def clustered(name, kernel, size, blocks, threads, kib, arguments, buffers):
        return [case(f"{name}_n{n}", buffers, launch(kernel, blocks, threads, *arguments(n)) | {"cluster": f"[{size}, 1, 1]"} |
                     ({"dynamic_shared_bytes": str(int(kib * KIB))} if kib else {})) for n in PHASE_TRIPS]

    def multicast(size, blocks):
        tensor = {"pointer": "in", "type": "bf16", "shape": [64, small], "strides": [128], "box": [64, 64 // size], "swizzle": "128B"}
        return clustered(f"multicast_c{size}_b{blocks}", "multicast_boxes", size, blocks, 32, 32,
                         lambda n: (tensor, "out", n, 64 * blocks // size % small, small),
                         {"in": uniform(small * 64, 1, "bf16"), "out": zero(blocks * 32)})
    plain = lambda n: ("out", n)
    joined = [one for size in (2, 4, 8) for warps in (1, 8) for fence in ("relaxed", "fenced")
              for one in clustered(f"meet_{fence}_c{size}_w{warps}", f"meet_{fence}", size, size, 32 * warps, 0, plain,
                                   {"out": zero(size * 32 * warps)})] + \
             [one for size, away in ((2, 0), (2, 1), (8, 1), (8, 4), (8, 7))
              for one in clustered(f"far_chase_c{size}_a{away}", "far_chase", size, size, 32, 0, lambda n, away=away: ("out", n, away),
                                   {"out": zero(size * 32)})] + \
             [one for kind in ("loads", "stores") for size, blocks in ((2, 2), (2, sms), (4, 128), (8, 128))
              for one in clustered(f"far_{kind}_c{size}_b{blocks}", f"far_{kind}", size, blocks, 512, 8, plain,
                                   {"out": zero(blocks * 512)})] + \
             clustered("far_ping_pong", "far_ping_pong", 2, 2, 32, 0, plain, {"out": zero(64)}) + \
             [one for size, blocks in ((1, 1), (2, 2), (2, sms), (4, 4), (4, 128), (8, 128)) for one in multicast(size, blocks)]
    fenced = [one for kernel in FENCES for warps in FENCE_WARPS
              for one in counted(f"{kernel}_w{warps}", kernel, TRIPS, sms, 32 * warps, 36, lambda n: ("out", n, "in"),
                                 {"out": zero(sms * 256), "in": zero(20480)})]
    reduced = [one for words in (1, 2, 4) for warps, apart in REDUCTION_CASES
               for one in counted(f"reduce_{words}_w{warps}_a{apart}", f"reduce_{words}", TRIPS, sms, 32 * warps, 0,
                                  lambda n, apart=apart: ("out", n, apart), {"out": zero(sms * warps * 1024)})]
    rows = [one for name, blocks, lanes, spread, pitch, apart, start, tiles in REDUCTION_ROWS
            for one in counted(f"rows_{name}", "reduce_rows", TRIPS, blocks or sms, 256, 0,
                               lambda n, of=(lanes, spread, pitch, apart, start, tiles): ("out", n, *of, 256 // of[0] * of[2]),
                               {"out": zero(max(sms * apart, tiles * (256 // lanes) * pitch) + 64)})]
    return {"micro_fences": fenced, "micro_reductions": reduced + rows, "micro_box_store": sending, "micro_product_boxes": mixed, "micro_clusters": joined, "micro_warpgroup": products,
            "micro_warpgroup_beside": arithmetic, "micro_phases": phases + copies,
            "micro_phases.rows": pitched, "micro_l2_shared": together, "micro_l2_shared.rows": pitched_together,
            "micro_l2_shared.sectors": sectors, "micro_l2_shared.states": states + lagging}

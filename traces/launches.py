"""The launch files: which sizes of each kernel are replayed, with which geometry and buffers. build.py writes them as YAML."""
from decimal import Decimal
from math import ceil

FP32 = 4
FP16 = 2


def zero(elements, size=FP32):
    return f"{{bytes: {elements * size}, fill: zero}}"


BYTES = {"f64": 8, "f32": FP32, "f16": FP16, "bf16": 2, "e4m3": 1, "s8": 1}


def uniform(elements, seed, kind="f32", most=1):
    return (f"{{bytes: {elements * BYTES[kind]}, fill: {{uniform: {{type: {kind}, low: {-most}, high: {most}, "
            f"seed: {seed}}}}}}}")


def args(*values):
    """Names of buffers are pointers, (name, offset) pointers into them, tensor_map()s what they are, whole numbers i32, the others
    f32."""
    def one(value):
        if isinstance(value, dict):
            return f"{{tensor_map: {{{', '.join(f'{key}: {what}' for key, what in value.items())}}}}}"
        if isinstance(value, str):
            return f"{{pointer: {value}}}"
        if isinstance(value, tuple):
            return f"{{pointer: {value[0]}, offset: {value[1]}}}"
        return f"{{i32: {value}}}" if isinstance(value, int) else f"{{f32: {Decimal(repr(value)):f}}}"
    return f"[{', '.join(map(one, values))}]"


def dim3(value):
    sizes = value if isinstance(value, tuple) else (value,)
    return f"[{', '.join(map(str, sizes + (1,) * (3 - len(sizes))))}]"


def launch(kernel, grid, block, *values):
    return {"kernel": kernel, "grid": dim3(grid), "block": dim3(block), "args": args(*values)}


def case(name, buffers, *launched):
    """One case as YAML: a single launch is written open, several as a list with one a line."""
    lines = [f"{name}:"]
    if len(launched) == 1:
        lines += [f"  {key}: {value}" for key, value in launched[0].items() if key != "args"]
    lines += ["  buffers:", *(f"    {key}: {value}" for key, value in buffers.items())]
    if len(launched) == 1:
        lines += [f"  args: {launched[0]['args']}"]
    else:
        lines += ["  launches:", *("    - {" + ", ".join(f"{k}: {v}" for k, v in one.items()) + "}" for one in launched)]
    return "\n".join(lines)


PRODUCT_SIZES = [512, 1024, 2048, 4096, 1000, 1023, 1025, 777]
PRODUCT_CHECKS = [64, 100, 129]


def products(kernel, tile_m, tile_n, block, rows_on_x=False, more=()):
    """`more` adds products that are not square, or of sizes of their own: (name, m, n, k)."""
    def product(name, m, n, k):
        grid = (ceil(n / tile_n), ceil(m / tile_m))
        return case(f"{kernel}_{name}", {"a": uniform(m * k, 1), "b": uniform(k * n, 2), "c": zero(m * n)},
                    launch(kernel, grid[::-1] if rows_on_x else grid, block, "a", "b", "c", m, n, k))
    squares = [(f"{n}", n) for n in PRODUCT_SIZES] + [(f"check_{n}", n) for n in PRODUCT_CHECKS]
    return [product(name, n, n, n) for name, n in squares] + [product(*of) for of in more]


def matmul():
    # 14 x 14 tiles of 128 fit one wave of 2 blocks on each of 108 SMs, 15 x 15 do not; one column more needs half as many tiles
    # again; rows of the GPT-2 vocabulary, as it is and padded.
    quantized = [("1792", 1792, 1792, 1792), ("1793", 1793, 1793, 1793), ("1796", 1796, 1796, 1796),
                 ("256x256", 256, 256, 256), ("256x257", 256, 257, 256), ("256x260", 256, 260, 256),
                 ("vocabulary_50257", 1024, 50257, 768), ("vocabulary_50304", 1024, 50304, 768)]
    return {
        "matmul_01_naive_uncoalesced": products("sgemm_naive_uncoalesced", 32, 32, (32, 32), rows_on_x=True),
        "matmul_02_coalesced": products("sgemm_coalesced", 32, 32, (32, 32)),
        "matmul_03_shared_tiled": products("sgemm_shared_tiled", 32, 32, (32, 32)),
        "matmul_04_coarsened_1d": products("sgemm_coarsened_1d", 64, 64, 512),
        "matmul_05_coarsened_2d": products("sgemm_coarsened_2d", 128, 128, 256),
        "matmul_06_vectorized": products("sgemm_vectorized", 128, 128, 256, more=quantized),
        "matmul_07_warp_tiled_double_buffered": products("sgemm_warp_tiled", 128, 128, 256, more=quantized),
    }


HEAD = 64
SCALE = 1 / HEAD ** 0.5
# Name, length, heads.
ATTENTION_SIZES = [(f"{n}", n, 16) for n in (512, 1024, 2048)] + [(f"check_{n}", n, 2) for n in (64, 96, 130)]
MASKS = [("", 0), ("causal_", 1)]


def heads_of(length, heads):
    """The inputs and the output of attention."""
    elements = heads * length * HEAD
    return {"q": uniform(elements, 1), "k": uniform(elements, 2), "v": uniform(elements, 3), "o": zero(elements)}


def unfused(name, length, heads, causal):
    tiles = ceil(length / 64)
    scores = {"s": zero(heads * length * length), "p": zero(heads * length * length)}
    return case(f"attention_unfused_{name}", heads_of(length, heads) | scores,
                launch("attention_qk", (tiles, tiles, heads), 256, "q", "k", "s", length, SCALE, causal),
                launch("attention_softmax_rows", heads * length, 256, "s", "p", length),
                launch("attention_pv", (tiles, heads), 256, "p", "v", "o", length))


def flash(name, length, heads, causal):
    return case(f"flash_attention_{name}", heads_of(length, heads),
                launch("flash_attention", (ceil(length / 64), heads), 128, "q", "k", "v", "o", length, SCALE, causal))


def student(name, n, rows, shared):
    """A pair of launches for every tile of `rows` queries and 64 keys."""
    pairs = []
    for row0 in range(0, n, rows):
        for col0 in range(0, n, 64):
            pairs += [launch("student_qk", (2, rows // 32), (32, 32), "q", "k", "s", n, rows, row0, col0, SCALE),
                      launch(f"student_softmax_pv_{shared}", rows // 32, 32, "s", "v", "o", "row_max", "row_sum", n, rows,
                             row0, col0)]
    running = {"s": zero(rows * 64), "row_max": zero(n), "row_sum": zero(n)}
    return case(f"student_{shared}_{name}_rows_{rows}", heads_of(n, 1) | running, *pairs)


def attention():
    masked = [(prefix + name, length, heads, causal) for prefix, causal in MASKS for name, length, heads in ATTENTION_SIZES]
    return {
        "attention_01_unfused": [unfused(*of) for of in masked],
        "attention_02_student":
            [student(f"{n}", n, rows, "24k") for n, rows in
             [(512, 32), (512, 64), (512, 128), (512, 512), (1024, 1024), (2048, 2048)]] +
            [student(f"{n}", n, n, "16k") for n in (512, 1024, 2048)] +
            [student(f"check_{n}", n, rows, shared) for n, rows in [(64, 32), (96, 32), (130, 64)]
             for shared in ("24k", "16k")],
        "attention_03_flash": [flash(*of) for of in masked],
    }


# Elements of 1-D cases: beyond every cache, within L2, and for checking values.
LENGTHS = [("64mi", 64 << 20), ("1mi", 1 << 20), ("check_1000", 1000)]


def elements(kernel, n, *values, per_block=256):
    return launch(kernel, ceil(n / per_block), 256, *values)


def elementwise():
    sin_cos, elu, sigmoids, relu = [], [], [], []
    for name, n in LENGTHS:
        x = uniform(n, 1)
        sin_cos += [
            case(f"sin_cos_unfused_{name}",
                 {"x": x, "sine": zero(n), "sine2": zero(n), "cosine": zero(n), "cosine2": zero(n), "y": zero(n)},
                 elements("sin_elements", n, "x", "sine", n), elements("square_elements", n, "sine", "sine2", n),
                 elements("cos_elements", n, "x", "cosine", n), elements("square_elements", n, "cosine", "cosine2", n),
                 elements("add_elements", n, "sine2", "cosine2", "y", n)),
            case(f"sin_cos_fused_{name}", {"x": x, "y": zero(n)}, elements("sin_cos_fused", n, "x", "y", n))]
        elu += [
            case(f"elu_unfused_{name}", {"x": x, "mask": zero(n, 1), "e": zero(n), "y": zero(n)},
                 elements("elu_negative", n, "x", "mask", n), elements("elu_exponential", n, "x", "e", 1.0, n),
                 elements("elu_where", n, "mask", "e", "x", "y", n)),
            case(f"elu_fused_{name}", {"x": x, "y": zero(n)}, elements("elu_fused", n, "x", "y", 1.0, n))]
        ends = {"x": x, "out": zero(n), "grad_out": uniform(n, 2), "grad_in": zero(n)}
        sigmoids += [
            case(f"sigmoids_stored_{name}", ends | {"s1": zero(n), "s2": zero(n)},
                 elements("sigmoids_forward_stored", n, "x", "s1", "s2", "out", n),
                 elements("sigmoids_backward_stored", n, "s1", "s2", "grad_out", "grad_in", n)),
            case(f"sigmoids_recomputed_{name}", ends,
                 elements("sigmoids_forward_recomputed", n, "x", "out", n),
                 elements("sigmoids_backward_recomputed", n, "x", "grad_out", "grad_in", n))]
        halves = {"x": uniform(n, 1, "f16"), "y": zero(n, FP16)}
        relu += [
            case(f"relu_f32_{name}", {"x": x, "y": zero(n)}, elements("relu_f32", n, "x", "y", n)),
            case(f"relu_f16_{name}", halves, elements("relu_f16", n, "x", "y", n)),
            case(f"relu_f16_pairs_{name}", halves, elements("relu_f16_pairs", n, "x", "y", n, per_block=512))]
    return {"elementwise_01_sin_cos": sin_cos, "elementwise_02_elu": elu, "elementwise_03_sigmoids": sigmoids,
            "elementwise_04_relu": relu}


def divergence():
    def ways(kernel, name, n, steps, block=256):
        return case(f"{kernel}_{name}", {"x": uniform(n, 1), "y": zero(n)},
                    launch(kernel, ceil(n / block), block, "x", "y", n, steps))
    cases = []
    for name, n, steps in [("256ki", 256 << 10, 64), ("check_1000", 1000, 3)]:
        cases += [ways("divergence_first_four", f"block_{block}_{name}", n, steps, block) for block in (256, 32)]
        cases += [ways(f"divergence_by_{by}_{count}", name, n, steps) for count in (2, 4, 8, 32) for by in ("lane", "warp")]
    return {"divergence_01_branch_ways": cases}


# Name, rows, columns.
MATRICES = [("8192", 8192, 8192), ("1024", 1024, 1024), ("check_100x130", 100, 130)]


def copy():
    def two(elements_in, elements_out):
        return {"in": uniform(elements_in, 1), "out": zero(elements_out)}

    def matrix(kernel, name, rows, cols, tile, rows_on_x=False):
        grid = (ceil(rows / tile[0]), ceil(cols / tile[1])) if rows_on_x else (ceil(cols / tile[0]), ceil(rows / tile[1]))
        return case(f"{kernel}_{name}", two(rows * cols, rows * cols), launch(kernel, grid, (32, 8), "in", "out", rows, cols))

    def strided(name, n, stride):
        return case(f"copy_strided_{name}_stride_{stride}", two(n * stride, n * stride),
                    elements("copy_strided", n, "in", "out", n, stride))

    def offset(name, n, by):
        return case(f"copy_offset_{name}_offset_{by}", two(n + by, n), elements("copy_offset", n, "in", "out", n, by))

    def column_sums(name, rows, cols, pitch):
        buffers = {"in": uniform(rows * pitch, 1), "sums": zero(ceil(rows / 32) * cols)}
        return case(f"tile_column_sums_{name}_pitch_{pitch}", buffers,
                    launch("tile_column_sums", (ceil(cols / 32), ceil(rows / 32)), (32, 32), "in", "sums", rows, cols, pitch))

    return {
        "copy_01_row_column": [matrix("copy_along_rows", *of, (32, 8)) for of in MATRICES] +
                              [matrix("copy_down_columns", *of, (32, 8), rows_on_x=True) for of in MATRICES],
        "copy_02_strided": [strided("8mi", 8 << 20, stride) for stride in (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48)] +
                           [strided("64ki", 64 << 10, stride) for stride in (1, 8, 32)] + [strided("check_1000", 1000, 3)],
        "copy_03_offset": [offset("64mi", 64 << 20, by) for by in (0, 1, 2, 4, 8, 16, 31, 32)] +
                          [offset("1mi", 1 << 20, by) for by in (0, 1)] + [offset("check_1000", 1000, 3)],
        "copy_04_tile_loads": [column_sums("8192x4096", 8192, 4096, 4096), column_sums("8192x4097", 8192, 4097, 4097),
                               column_sums("8192x4097", 8192, 4097, 4128), column_sums("1024x1024", 1024, 1024, 1024),
                               column_sums("1024x1025", 1024, 1025, 1025), column_sums("1024x1025", 1024, 1025, 1056),
                               column_sums("check_100x130", 100, 130, 131)],
        "copy_06_streams": [case(f"stream_scale_{name}", {"a": zero(n, 8), "b": zero(n, 8)},
                                 launch("stream_scale", ceil(n / block), block, "a", "b", n) |
                                 ({"dynamic_shared_bytes": str(80 << 10)} if shared else {}))
                            for name, n, block, shared in
                            [(f"block_{b}", 16 << 20, b, True) for b in (64, 128, 256, 512, 1024)] +
                            [(f"n_{n}", n, 256, False) for n in (4096, 65320, 6613527)] + [("check_1000", 1000, 64, False)]],
        "copy_07_async": [case(f"staged_{way}_{name}", {"in": uniform(n * width, 1), "out": zero(n * width)},
                               launch(f"staged_{way}", grid, 256, "in", "out", n))
                          for way, width in [("by_registers", 1024), *((f"async_{stages}", 1024) for stages in (1, 2, 3, 4, 8)),
                                             ("async_words", 256)]
                          for name, n, grid in [("32ki", 32 << 10, 264), ("8ki_1056", 8 << 10, 1056), ("check_20", 20, 6)]],
        "copy_05_transpose": [matrix(f"transpose_{tile}", *of, (32, 32)) for tile in ("unpadded", "padded") for of in MATRICES],
    }


def reduce():
    def softmax(name, rows, cols):
        return case(f"softmax_rows_{name}", {"in": uniform(rows * cols, 1), "out": zero(rows * cols)},
                    launch("softmax_rows", rows, 256, "in", "out", cols))

    def layer_norm(name, rows, cols):
        return case(f"layer_norm_rows_{name}", {"in": uniform(rows * cols, 1), "gamma": uniform(cols, 2),
                                                "beta": uniform(cols, 3), "out": zero(rows * cols)},
                    launch("layer_norm_rows", rows, 256, "in", "gamma", "beta", "out", cols, 1e-5))

    def total(by, name, n):
        return case(f"sum_atomic_{by}_{name}", {"in": uniform(n, 1), "sum": zero(1)},
                    elements(f"sum_atomic_{by}", n, "in", "sum", n))

    return {
        "reduce_01_softmax_rows": [softmax("16384x4096", 16384, 4096), softmax("1024x1024", 1024, 1024),
                                   softmax("check_5x300", 5, 300)],
        "reduce_02_layer_norm_rows": [layer_norm("65536x768", 65536, 768), layer_norm("1024x768", 1024, 768),
                                      layer_norm("check_5x300", 5, 300)],
        "reduce_03_sum_atomic": [total(by, *of) for by in ("threads", "blocks") for of in LENGTHS],
    }


def occupancy():
    return {"occupancy_01_registers": [
        case(f"hold_{held}_check_{n}", {"in": uniform(n, 1), "out": zero(n)},
             launch(f"hold_{held}", ceil(n / (64 * held)), 64, "in", "out", n, 3))
        for held, n in [(8, 1000), (32, 5000), (160, 10000)]]}


def files():
    """The text of every launch file, by stem or, where another file launches the same code, STEM.sweep,
    STEM.waves or STEM.large."""
    from fault_launches import faults  # these files use this one
    from field_launches import field
    from flash_launches import flash_attention
    from hopper_launches import hopper
    from hopper_launches import micro as hopper_micro
    from large_launches import large
    from micro_launches import micro
    from sweep_launches import sweeps
    from tensor_launches import tensor
    from triton_launches import triton
    from wave_launches import waves
    return {stem: f"# Written by launches.py: launches of the kernels in {stem.split('.')[0]}.cubin.\n\n" +
                  "\n\n".join(cases) + "\n"
            for folder in (matmul, attention, elementwise, divergence, copy, reduce, occupancy, field, faults, tensor, hopper, flash_attention, triton, micro,
                       hopper_micro, sweeps, waves, large)
            for stem, cases in folder().items()}

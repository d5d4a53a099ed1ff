"""The cases of kernels/field, for launches.py: everyday kernels at sizes people run them at. Nothing was calibrated on them; they
show what forewarp says of a kernel it has not met."""
from math import ceil

from launches import case, dim3, launch

MI = 1 << 20
SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2}


def random(count, kind="f32", low=-1, high=1, seed=1):
    return f"{{bytes: {count * SIZES[kind]}, fill: {{uniform: {{type: {kind}, low: {low}, high: {high}, seed: {seed}}}}}}}"


def integers(count, modulus, seed=1):
    return f"{{bytes: {4 * count}, fill: {{lcg: {{seed: {seed}, modulus: {modulus}}}}}}}"


def zero_bytes(size):
    return f"{{bytes: {size}, fill: zero}}"


def reduce_scan_sort():
    sums = launch("dynamic_smem_sum", 2048, 512, "in", "out", 16) | {"dynamic_shared_bytes": "2048"}
    return [
        case("histogram_16mi", {"in": integers(16 * MI, 1 << 24), "out": zero_bytes(1024)},
             launch("histogram", 528, 256, "in", "out", 16 * MI)),
        case("scan_block_8mi", {"in": random(8 * MI), "out": zero_bytes(32 * MI), "sums": zero_bytes(65536)},
             launch("scan_block", 16384, 512, "in", "out", "sums", 8 * MI)),
        case("bitonic_2mi", {"data": random(2 * MI)}, launch("bitonic", 2048, 1024, "data")),
        case("dynamic_smem_sum_16mi", {"in": random(16 * MI), "out": zero_bytes(8192)}, sums),
        case("dp4a_gemv_8192x8192", {"a": integers(16 * MI, 1 << 24), "x": integers(2048, 1 << 24), "y": zero_bytes(32768)},
             launch("dp4a_gemv", 8192, 256, "a", "x", "y", 2048)),
        case("cas_loop_64ki", {"total": zero_bytes(4096), "in": random(65536)},
             launch("cas_loop", 256, 256, "total", "in", 65536)),
    ]


def stencils():
    volume = 384 * 384 * 128
    return [
        case("stencil2d_4096", {"in": random(16 * MI), "out": zero_bytes(64 * MI)},
             launch("stencil2d", (128, 256), (32, 16), "in", "out", 4096, 4096)),
        case("stencil3d_384x384x128", {"in": random(volume), "out": zero_bytes(4 * volume)},
             launch("stencil3d", (12, 96), (32, 4), "in", "out", 384, 384, 128)),
        case("conv2d_2048", {"in": random(4 * MI), "out": zero_bytes(16 * MI)},
             launch("conv2d", (64, 256), (32, 8), "in", "out", 2048, 2048)),
    ]


def sparse():
    def gather(name, words):
        return case(f"gather_{name}", {"index": integers(4 * MI, 1 << 24), "x": random(16 * MI), "y": zero_bytes(16 * MI)},
                    launch("gather", 16384, 256, "index", "x", "y", 4 * MI, words - 1))
    return [
        case("spmv_scalar_256ki", {"columns": integers(4 * MI + 64, MI), "x": random(MI), "y": zero_bytes(MI)},
             launch("spmv_scalar", 1024, 256, "columns", "x", "y", 1 << 18)),
        gather("from_64mib", 16 * MI), gather("from_256kib", 1 << 16),
        case("scatter_max_4mi", {"index": integers(4 * MI, 1 << 24), "x": random(4 * MI), "y": zero_bytes(4 * MI)},
             launch("scatter_max", 16384, 256, "index", "x", "y", 4 * MI, MI - 1)),
        case("tree_256ki", {"left": integers(1 << 17, MI), "key": random(1 << 17), "query": random(1 << 18, seed=3),
                            "out": zero_bytes(MI)},
             launch("tree", 1024, 256, "left", "key", "query", "out", 1 << 18, 16)),
    ]


def math():
    options = {name: random(4 * MI, low=0, seed=seed) for seed, name in enumerate(("spot", "strike", "years"), 1)}
    return [
        case("nbody_16384", {"p": random(65536), "a": zero_bytes(262144)}, launch("nbody", 64, 256, "p", "a", 16384)),
        case("black_scholes_4mi", options | {"call": zero_bytes(16 * MI), "put": zero_bytes(16 * MI)},
             launch("black_scholes", 1056, 256, "spot", "strike", "years", "call", "put", 4 * MI)),
        case("mandelbrot_2048", {"out": zero_bytes(16 * MI)}, launch("mandelbrot", (64, 128), (32, 16), "out", 2048, 2048, 256)),
        case("dgemm_1024", {"a": random(MI, "f64"), "b": random(MI, "f64", seed=2), "c": zero_bytes(8 * MI)},
             launch("dgemm", (64, 64), (16, 16), "a", "b", "c", 1024)),
        case("long_math_512ki", {"x": random(MI // 2, "f64"), "y": zero_bytes(4 * MI)},
             launch("long_math", 2048, 256, "x", "y", MI // 2)),
        case("transcendental_1mi", {"x": random(MI), "y": zero_bytes(4 * MI)},
             launch("transcendental", 4096, 256, "x", "y", MI)),
    ]


def control():
    return [
        case("call_device_1mi", {"x": random(MI), "y": zero_bytes(4 * MI)}, launch("call_device", 4096, 256, "x", "y", MI)),
        case("interpreter_128ki", {"code": integers(64, 1 << 24), "y": zero_bytes(MI // 2)},
             launch("interpreter", 512, 256, "code", "y", MI // 8, 64)),
        case("local_array_256ki", {"select": integers(MI // 4, 32), "y": zero_bytes(MI)},
             launch("local_array", 1024, 256, "select", "y", MI // 4)),
        case("warp_tricks_1mi", {"x": integers(MI, 1 << 24), "y": zero_bytes(4 * MI)},
             launch("warp_tricks", 4096, 256, "x", "y", MI)),
        case("int_div_1mi", {"x": integers(MI, 1 << 24), "y": zero_bytes(8 * MI)},
             launch("int_div", 4096, 256, "x", "y", MI, 17, 123457)),
        case("coop_4mi", {"x": random(4 * MI), "y": zero_bytes(2 * MI)}, launch("coop", 16384, 256, "x", "y", 4 * MI)),
    ]


def half():
    return [
        case("half2_axpy_8mi", {"x": random(16 * MI, "f16"), "y": random(16 * MI, "f16", seed=2)},
             launch("half2_axpy", 32768, 256, "x", "y", 1.5, 8 * MI)),
        case("bf16_rmsnorm_4096x4096", {"x": random(16 * MI, "bf16"), "y": zero_bytes(32 * MI)},
             launch("bf16_rmsnorm", 4096, 256, "x", "y", 4096)),
        case("lds_transpose_half_4096", {"in": random(16 * MI, "f16"), "out": zero_bytes(32 * MI)},
             launch("lds_transpose_half", (64, 64), (32, 8), "in", "out", 4096)),
        case("stream_hints_4mi", {"x": random(16 * MI), "y": zero_bytes(64 * MI)},
             launch("stream_hints", 16384, 256, "x", "y", 4 * MI)),
    ]


def uneven():
    """Causal attention in pieces of a model of 12 heads of 64 at length 1024, in batches of 8, and others whose blocks differ."""
    def attention(name, batches, time, heads, size):
        rows = batches * heads * time
        qkv, scores = random(3 * rows * size), random(rows * time, seed=2)
        row = lambda count: zero_bytes(4 * count)
        shape = (batches, time, heads, size)
        return [
            case(f"uneven_scores_{name}", {"qkv": qkv, "scores": row(rows * time)},
                 launch("uneven_scores", ceil(rows * time / 32), 32, "qkv", "scores", *shape)),
            case(f"uneven_scale_masked_{name}", {"scores": scores},
                 launch("uneven_scale_masked", ceil(rows * time / 256), 256, "scores", 0.125, batches, heads, time)),
            case(f"uneven_softmax_{name}", {"scores": scores, "weights": row(rows * time)},
                 launch("uneven_softmax", ceil(rows / 256), 256, "scores", "weights", rows, time)),
            case(f"uneven_values_{name}", {"weights": scores, "qkv": qkv, "out": row(rows * size)},
                 launch("uneven_values", ceil(rows / 256), 256, "weights", "qkv", "out", *shape)),
            case(f"uneven_permute_{name}", {"qkv": qkv, "q": row(rows * size), "k": row(rows * size), "v": row(rows * size)},
                 launch("uneven_permute", ceil(rows * size / 32), 32, "qkv", "q", "k", "v", *shape)),
        ]

    def heat(name, rows, columns, steps):
        inside = 16 - 2 * steps
        return case(f"uneven_heat_{name}",
                    {"power": random(rows * columns), "before": random(rows * columns, seed=2), "after": zero_bytes(4 * rows * columns)},
                    launch("uneven_heat", (ceil(columns / inside), ceil(rows / inside)), (16, 16), "power", "before", "after",
                           columns, rows, steps, 0.1, 0.1, 0.05, 0.5))

    def tiles(name, count, blocks):
        return case(f"uneven_tiles_{name}", {"in": random(1024 * count), "out": zero_bytes(4096 * count), "counter": zero_bytes(4)},
                    launch("uneven_tiles", blocks, 256, "in", "out", "counter", count))

    copy = case("uneven_half_copy_64mi", {"in": integers(32 * MI, 1 << 24), "out": zero_bytes(128 * MI)},
                launch("uneven_half_copy", 64 * MI // 256, 256, "in", "out", 64 * MI))
    return (attention("8x1024x12x64", 8, 1024, 12, 64) + attention("check_2x100x3x20", 2, 100, 3, 20) +
            [heat("8192", 8192, 8192, 2), heat("check_70x50", 70, 50, 3), tiles("20000", 20000, 528), tiles("check_40", 40, 8), copy])


def arguments():
    """A struct by value, and matrices that arrays of pointers name."""
    def view(buffer, columns, rows):
        return f"{{size: 24, fields: [{{at: 0, pointer: {buffer}}}, {{at: 8, i64: {columns}}}, {{at: 16, i32: {rows}}}, {{at: 20, i32: {columns}}}]}}"

    def scale(name, rows, columns):
        fields = (f"{{at: 0, struct: {view('in', columns, rows)}}}, {{at: 24, struct: {view('out', columns, rows)}}}, "
                  f"{{at: 48, f32: 0.5}}, {{at: 52, bytes: '01'}}")
        return case(f"arguments_scale_{name}", {"in": random(rows * columns), "out": zero_bytes(4 * rows * columns)},
                    {"kernel": "arguments_scale", "grid": dim3((ceil(columns / 256), rows)), "block": dim3(256),
                     "args": f"[{{struct: {{size: 56, fields: [{fields}]}}}}]"})

    def batched(name, count, m, n, k):
        def parts(buffer, size):
            pointers = ", ".join(f"{{pointer: {buffer}, offset: {4 * size * i}}}" for i in range(count))
            return f"{{bytes: {8 * count}, fill: {{pointers: [{pointers}]}}}}"
        return case(f"arguments_batched_{name}",
                    {"a": random(count * m * k), "b": random(count * k * n, seed=2), "c": zero_bytes(4 * count * m * n),
                     "as": parts("a", m * k), "bs": parts("b", k * n), "cs": parts("c", m * n)},
                    launch("arguments_batched", (ceil(n / 16), ceil(m / 16), count), (16, 16), "as", "bs", "cs", m, n, k))

    return [scale("4096", 4096, 4096), scale("check_30x1000", 30, 1000),
            batched("64x256", 64, 256, 256, 256), batched("check_3x40x50x30", 3, 40, 50, 30)]


def inference():
    """A model of width 4096 with 32 heads of 128, batches of a server, and the rows of a training step."""
    half = lambda count, seed=1: random(count, "f16", seed=seed)
    brain = lambda count, seed=1: random(count, "bf16", seed=seed)

    def gemv(rows, n):
        return case(f"gemv_half_{rows}x{n}", {"w": half(rows * n), "x": half(n, 2), "y": zero_bytes(2 * rows)},
                    launch("gemv_half", rows // 8, 256, "w", "x", "y", n))

    def paged(sequences, most, pages=1024):
        cache = pages * 32 * 16 * 128
        return case(f"paged_attention_{sequences}x{most}",
                    {"q": half(sequences * 4096), "keys": half(cache, 2), "values": half(cache, 3),
                     "pages": integers(sequences * most // 16, pages), "lengths": integers(sequences, most, 5),
                     "out": zero_bytes(sequences * 8192)},
                    launch("paged_attention", (32, sequences), 128, "q", "keys", "values", "pages", "lengths", "out", 32, most // 16))

    return [
        gemv(4096, 4096), gemv(14336, 4096),
        case("gemv_int4_14336x4096", {"w": integers(14336 * 512, 1 << 24), "scales": half(14336 * 32, 2), "x": half(4096, 3),
                                      "y": zero_bytes(28672)},
             launch("gemv_int4", 1792, 256, "w", "scales", "x", "y", 4096)),
        case("residual_rmsnorm_2048x4096", {"x": brain(8 * MI), "residual": brain(8 * MI, 2), "gain": brain(4096, 3),
                                            "out": zero_bytes(16 * MI)},
             launch("residual_rmsnorm", 2048, 512, "x", "residual", "gain", "out", 4096)),
        case("rotary_2048x32", {"q": half(8 * MI), "turns": random(2048 * 128, seed=2)},
             launch("rotary", 2048, 256, "q", "turns", 32)),
        case("swiglu_2048x14336", {"in": brain(2048 * 28672), "out": zero_bytes(2048 * 28672)},
             launch("swiglu", (7, 2048), 256, "in", "out", 14336)),
        paged(32, 1024), paged(4, 2048),
        case("embedding_8192x2048", {"tokens": integers(8192, 32000), "table": half(32000 * 2048), "out": zero_bytes(8192 * 4096)},
             launch("embedding", 8192, 128, "tokens", "table", "out", 256)),
        case("argmax_rows_64x50304", {"logits": half(64 * 50304), "best": zero_bytes(256)},
             launch("argmax_rows", 64, 1024, "logits", "best", 50304)),
        case("route_64ki", {"expert": integers(65536, 64), "counts": zero_bytes(256), "place": zero_bytes(4 * 65536)},
             launch("route", 256, 256, "expert", "counts", "place", 65536)),
        case("quantise_rows_4096x4096", {"in": random(16 * MI), "out": zero_bytes(16 * MI), "scales": zero_bytes(16384)},
             launch("quantise_rows", 4096, 256, "in", "out", "scales", 1024)),
        case("cross_entropy_512x50304", {"logits": random(512 * 50304), "targets": integers(512, 50304), "loss": zero_bytes(2048)},
             launch("cross_entropy", 512, 1024, "logits", "targets", "loss", 50304)),
        case("column_sums_4096x4096", {"dy": random(16 * MI), "x": random(16 * MI, seed=2), "out": zero_bytes(16384)},
             launch("column_sums", 128, (32, 8), "dy", "x", "out", 4096, 4096)),
        case("recurrence_8x1024x2048", {"decay": random(16 * MI), "in": random(16 * MI, seed=2), "out": zero_bytes(64 * MI)},
             launch("recurrence", (16, 8), 128, "decay", "in", "out", 1024, 2048)),
        case("ragged_softmax_16384x1024", {"lengths": integers(16384, 1024), "in": random(16 * MI), "out": zero_bytes(64 * MI)},
             launch("ragged_softmax", 2048, 256, "lengths", "in", "out", 16384, 1024)),
        case("depthwise_256x112x112", {"in": half(256 * 12544), "weights": half(2304, 2), "out": zero_bytes(512 * 12544)},
             launch("depthwise", (4, 14, 256), (32, 8), "in", "weights", "out", 112, 112)),
        case("channels_last_32x256x3136", {"in": half(32 * 256 * 3136), "out": zero_bytes(64 * 256 * 3136)},
             launch("channels_last", (98, 4, 32), (32, 8), "in", "out", 256, 3136)),
    ]


def grid_barrier():
    """What a trace of one block after another never ends: blocks that wait for each other."""
    return [case("uneven_grid_barrier_4mi", {"in": random(4 * MI), "middle": zero_bytes(16 * MI), "out": zero_bytes(16 * MI),
                                             "arrived": zero_bytes(4), "opened": zero_bytes(4)},
                 launch("uneven_grid_barrier", 264, 256, "in", "middle", "out", "arrived", "opened", 4 * MI))]


def field():
    return {"field_01_reduce_scan_sort": reduce_scan_sort(), "field_02_stencils": stencils(), "field_03_sparse": sparse(),
            "field_04_math": math(), "field_05_control": control(), "field_06_half": half(),
            "field_07_uneven": uneven(), "field_07_uneven.barrier": grid_barrier(),
            "field_08_arguments": arguments(), "field_09_inference": inference()}

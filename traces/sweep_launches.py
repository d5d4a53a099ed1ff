"""Sweeps over the kernels of the ladders and of kernels/field, for launches.py: block sizes, occupancy, waves, odd sizes and
durations. They go into launch files of their own, STEM.sweep.yaml for the code of STEM.cubin, so that suites of the first
sizes stay what they were. validation/README.md says which of them are sealed.
"""
from math import ceil

from launches import SCALE, case, elements, heads_of, launch, uniform, zero

KI, MI = 1 << 10, 1 << 20
SMS = 132  # what "a wave" below means: blocks of the swept kernel that an H200 holds


def shared(launched, kib):
    return launched | {"dynamic_shared_bytes": str(kib * KI)}


def linear(kernel, name, n, block, per_thread=1, more=(), kib=0, kind="f32", **buffers):
    """A kernel over n elements, a thread `per_thread` of them."""
    names = list(buffers) or ["x", "y"]
    buffers = buffers or {"x": uniform(n, 1, kind), "y": zero(n, 4 if kind == "f32" else 2)}
    one = launch(kernel, ceil(n / (block * per_thread)), block, *names, *more, n)
    return case(f"{kernel}_{name}", buffers, shared(one, kib) if kib else one)


def relu():
    sizes = [linear("relu_f32", f"4mi_block_{b}", 4 * MI, b) for b in (32, 64, 96, 128, 192, 384, 512, 640, 768, 1024)]
    occupancy = [linear("relu_f32", f"8mi_shared_{kib}k", 8 * MI, 256, kib=kib) for kib in (16, 24, 32, 48, 64, 100, 220)]
    small = [linear("relu_f32", f"blocks_{blocks}", 1024 * blocks, 1024) for blocks in (1, 17, 131, 132, 133, 264, 265, 529)]
    odd = [linear("relu_f32", f"odd_{n}", n, 256) for n in (65537, 1299709, 10000019)]
    waves = [linear("relu_f32", "16mi_block_64", 16 * MI, 64), linear("relu_f16", "16mi_block_128", 16 * MI, 128, kind="f16")]
    return sizes + occupancy + small + odd + waves


def sin_cos():
    return [linear("sin_cos_fused", f"block_{b}", 999983, b) for b in (32, 64, 128, 512, 1024)] + \
           [linear("sin_cos_fused", f"4mi_shared_{kib}k", 4 * MI, 256, kib=kib) for kib in (28, 112)] + \
           [linear("add_elements", f"{name}", n, b, x=uniform(n, 1), y=uniform(n, 2), out=zero(n))
            for name, n, b in (("2mi_block_64", 2 * MI, 64), ("2mi_block_1024", 2 * MI, 1024), ("odd_524287", 524287, 256))]


def sigmoids():
    return [linear("sigmoids_forward_recomputed", f"2mi_block_{b}", 2 * MI, b) for b in (32, 128, 512, 1024)] + \
           [linear("sigmoids_forward_recomputed", f"2mi_shared_{kib}k", 2 * MI, 256, kib=kib) for kib in (28, 56, 112)]


def divergence():
    def ways(kernel, name, blocks, steps, block=256, kib=0):
        n = blocks * block
        one = launch(kernel, blocks, block, "x", "y", n, steps)
        return case(f"{kernel}_{name}", {"x": uniform(n, 1), "y": zero(n)}, shared(one, kib) if kib else one)
    wave = 8 * SMS
    return [ways(f"divergence_{kind}", f"block_{b}", 256 * KI // b, 64, b)
            for kind in ("by_lane_4", "by_warp_4", "first_four") for b in (64, 128, 512, 1024)] + \
           [ways("divergence_by_warp_2", f"blocks_{n}", n, 256)
            for n in (1, 66, SMS - 1, SMS, SMS + 1, wave - 1, wave, wave + 1, 2 * wave - 1, 2 * wave, 2 * wave + 1)] + \
           [ways("divergence_by_lane_2", f"blocks_{n}", n, 256) for n in (97, wave + 66)] + \
           [ways("divergence_by_warp_4", f"shared_{kib}k", 1024, 128, kib=kib) for kib in (28, 56, 112, 220)] + \
           [ways("divergence_by_lane_8", "200_waves", 200 * wave, 4), ways("divergence_by_warp_8", "100_waves", 100 * wave, 7),
            ways("divergence_by_lane_32", "long", 2 * wave, 8192), ways("divergence_first_four", "long_one_block", 1, 30000)]


def copies():
    def two(n_in, n_out):
        return {"in": uniform(n_in, 1), "out": zero(n_out)}

    def strided(n, stride, block=256):
        return case(f"copy_strided_{n}_stride_{stride}_block_{block}", two(n * stride, n * stride),
                    launch("copy_strided", ceil(n / block), block, "in", "out", n, stride))

    def matrix(kernel, rows, cols, tile, rows_on_x=False, kib=0):
        grid = (ceil(rows / tile[0]), ceil(cols / tile[1])) if rows_on_x else (ceil(cols / tile[0]), ceil(rows / tile[1]))
        one = launch(kernel, grid, (32, 8), "in", "out", rows, cols)
        name = f"{kernel}_{rows}x{cols}" + (f"_shared_{kib}k" if kib else "")
        return case(name, two(rows * cols, rows * cols), shared(one, kib) if kib else one)

    def offset(n, by, block):
        return case(f"copy_offset_{n}_offset_{by}_block_{block}", two(n + by, n),
                    launch("copy_offset", ceil(n / block), block, "in", "out", n, by))

    def sums(rows, cols, pitch):
        return case(f"tile_column_sums_{rows}x{cols}_pitch_{pitch}",
                    {"in": uniform(rows * pitch, 1), "sums": zero(ceil(rows / 32) * cols)},
                    launch("tile_column_sums", (ceil(cols / 32), ceil(rows / 32)), (32, 32), "in", "sums", rows, cols, pitch))

    return {
        "copy_01_row_column": [matrix("copy_along_rows", *of, (32, 8)) for of in ((4099, 1021), (509, 8191), (2048, 2048))] +
                              [matrix("copy_down_columns", *of, (32, 8), rows_on_x=True)
                               for of in ((2039, 521), (512, 512), (4096, 1000))],
        "copy_02_strided": [strided(1000003, s) for s in (1, 7, 9, 13, 31, 33, 64, 100)] +
                           [strided(2 * MI, 4, 64), strided(2 * MI, 4, 1024), strided(2 * MI, 2, 512), strided(300007, 16, 128)],
        "copy_03_offset": [offset(4 * MI, 1, 128), offset(4 * MI, 3, 1024), offset(1000003, 7, 256), offset(16 * MI, 5, 512)],
        "copy_04_tile_loads": [sums(2039, 1021, 1021), sums(2039, 1021, 1056), sums(1024, 4099, 4099)],
        "copy_05_transpose": [matrix(f"transpose_{tile}", *of, (32, 32))
                              for tile in ("unpadded", "padded") for of in ((1021, 2039), (4096, 4096), (330, 500))] +
                             [matrix("transpose_padded", 4096, 2048, (32, 32), kib=kib) for kib in (28, 108)],
    }


def reduce():
    def softmax(rows, cols, block=256, kib=0):
        one = launch("softmax_rows", rows, block, "in", "out", cols)
        return case(f"softmax_rows_{rows}x{cols}_block_{block}" + (f"_shared_{kib}k" if kib else ""),
                    {"in": uniform(rows * cols, 1), "out": zero(rows * cols)}, shared(one, kib) if kib else one)

    def norm(rows, cols, block=256):
        return case(f"layer_norm_rows_{rows}x{cols}_block_{block}",
                    {"in": uniform(rows * cols, 1), "gamma": uniform(cols, 2), "beta": uniform(cols, 3), "out": zero(rows * cols)},
                    launch("layer_norm_rows", rows, block, "in", "gamma", "beta", "out", cols, 1e-5))

    def total(by, n, block=256):
        return case(f"sum_atomic_{by}_{n}_block_{block}", {"in": uniform(n, 1), "sum": zero(1)},
                    launch(f"sum_atomic_{by}", ceil(n / block), block, "in", "sum", n))

    return {
        "reduce_01_softmax_rows": [softmax(2048, 1024, b) for b in (32, 64, 128, 512, 1024)] +
                                  [softmax(8 * SMS + by, 1024) for by in (-1, 0, 1)] +
                                  [softmax(4096, 2048, kib=kib) for kib in (56, 110)] +
                                  [softmax(1021, 4093), softmax(331, 32003), softmax(30011, 67), softmax(16, 65536, 1024)],
        "reduce_02_layer_norm_rows": [norm(4096, 768, b) for b in (32, 96, 128, 384, 768)] +
                                     [norm(16 * SMS, 512), norm(16 * SMS + 1, 512), norm(3001, 1021), norm(40, 8192)],
        "reduce_03_sum_atomic": [total("blocks", 4 * MI, b) for b in (64, 128, 512, 1024)] +
                                [total("threads", 65536, b) for b in (32, 256)] + [total("blocks", 1000003)],
    }


def matmul():
    def product(kernel, tile, block, m, n, k, kib=0, rows_on_x=False):
        grid = (ceil(n / tile), ceil(m / tile))
        one = launch(kernel, grid[::-1] if rows_on_x else grid, block, "a", "b", "c", m, n, k)
        return case(f"{kernel}_{m}x{n}x{k}" + (f"_shared_{kib}k" if kib else ""),
                    {"a": uniform(m * k, 1), "b": uniform(k * n, 2), "c": zero(m * n)}, shared(one, kib) if kib else one)

    def tiles(kernel, tile, block, counts, k):
        """As many tiles as this, as near a square as their number allows."""
        return [product(kernel, tile, block, rows * tile, blocks // rows * tile, k)
                for blocks in counts for rows in [max(r for r in range(1, int(blocks ** 0.5) + 1) if blocks % r == 0)]]

    def of(kernel, tile, block, rows_on_x=False, odd=(), occupancy=(), counts=(), k=256):
        return [product(kernel, tile, block, *size, rows_on_x=rows_on_x) for size in odd] + \
               [product(kernel, tile, block, *size, kib=kib) for size, kib in occupancy] + tiles(kernel, tile, block, counts, k)

    odd = [(509, 509, 509), (1531, 1021, 761), (37, 4099, 129), (2048, 64, 1024)]
    square = (1024, 1024, 1024)
    one, two = SMS, 2 * SMS
    return {
        "matmul_01_naive_uncoalesced": of("sgemm_naive_uncoalesced", 32, (32, 32), True, odd[:1] + [(256, 384, 640)]),
        "matmul_02_coalesced": of("sgemm_coalesced", 32, (32, 32), False, odd, [((768, 768, 768), 110)], (two - 1, two, two + 1)),
        "matmul_03_shared_tiled": of("sgemm_shared_tiled", 32, (32, 32), False, odd, [((768, 768, 768), 110)],
                                     (two, two + 1, 2 * two, 2 * two + 1)),
        "matmul_04_coarsened_1d": of("sgemm_coarsened_1d", 64, 512, False, odd, [(square, 100)], (two, two + 1)),
        "matmul_05_coarsened_2d": of("sgemm_coarsened_2d", 128, 256, False, odd[:3], (), (one, one + 1)),
        "matmul_06_vectorized": of("sgemm_vectorized", 128, 256, False, odd + [(3001, 3001, 3001)], [((2048, 2048, 1024), 110)],
                                   (one - 1, one, one + 1, two - 1, two, two + 1, 2 * two - 1, 2 * two, 2 * two + 1)),
        "matmul_07_warp_tiled_double_buffered": of("sgemm_warp_tiled", 128, 256, False, odd, (),
                                                   (one - 1, one, one + 1, two, two + 1, 3 * one + 1)),
    }


def attention():
    def flash(length, heads, causal=0, kib=0):
        one = launch("flash_attention", (ceil(length / 64), heads), 128, "q", "k", "v", "o", length, SCALE, causal)
        return case(f"flash_attention_{length}_heads_{heads}" + ("_causal" if causal else "") + (f"_shared_{kib}k" if kib else ""),
                    heads_of(length, heads), shared(one, kib) if kib else one)

    def unfused(length, heads):
        tiles = ceil(length / 64)
        scores = {"s": zero(heads * length * length), "p": zero(heads * length * length)}
        return case(f"attention_unfused_{length}_heads_{heads}", heads_of(length, heads) | scores,
                    launch("attention_qk", (tiles, tiles, heads), 256, "q", "k", "s", length, SCALE, 0),
                    launch("attention_softmax_rows", heads * length, 256, "s", "p", length),
                    launch("attention_pv", (tiles, heads), 256, "p", "v", "o", length))

    return {
        "attention_01_unfused": [unfused(509, 7), unfused(768, 12), unfused(256, 3)],
        # 33 heads of 4 tiles are 132 blocks, 66 of 8 a wave of 528.
        "attention_03_flash": [flash(256, 33), flash(448, 19), flash(512, 66), flash(512, 67), flash(509, 7), flash(1021, 3, 1),
                               flash(256, 132, 1), flash(128, 1)] + [flash(512, 40, 0, 60)],
    }


def occupancy():
    def hold(held, name, n, rounds, block=256, kib=0):
        one = launch(f"hold_{held}", ceil(n / (block * held)), block, "in", "out", n, rounds)
        return case(f"hold_{held}_{name}", {"in": uniform(n, 1), "out": zero(n)}, shared(one, kib) if kib else one)
    held = (8, 16, 32, 64, 96, 160)
    return {"occupancy_01_registers":
            [hold(h, "copy", 12 * MI, 1) for h in held] + [hold(h, "fma", 6 * MI, 200) for h in held] +
            [hold(h, f"block_{b}", 3 * MI, 32, b) for h in (8, 32, 96) for b in (32, 64, 128)] +
            [hold(32, f"blocks_{blocks}", blocks * 8192, 500) for blocks in (1, 131, 132, 133, 4 * SMS, 4 * SMS + 1)] +
            [hold(8, f"shared_{kib}k", 6 * MI, 8, kib=kib) for kib in (28, 56, 112)] +
            [hold(16, "odd", 3000017, 3, 96), hold(160, "long", 4 * SMS * 256 * 160, 70000)]}


def field():
    from field_launches import integers, random, zero_bytes
    mixed = {"x": random(MI // 4), "y": zero_bytes(MI)}

    def stencil(kernel, tile, w, h):
        return case(f"{kernel}_{w}x{h}", {"in": random(w * h), "out": zero_bytes(4 * w * h)},
                    launch(kernel, (ceil(w / tile[0]), ceil(h / tile[1])), tile, "in", "out", w, h))

    def spmv(rows):
        return case(f"spmv_scalar_{rows}", {"columns": integers(16 * rows + 64, 1 << 16), "x": random(1 << 16),
                                            "y": zero_bytes(4 * rows)},
                    launch("spmv_scalar", ceil(rows / 128), 128, "columns", "x", "y", rows))

    def gather(n, words, block):
        return case(f"gather_{n}_from_{words}_block_{block}",
                    {"index": integers(n, 1 << 24), "x": random(words), "y": zero_bytes(4 * n)},
                    launch("gather", ceil(n / block), block, "index", "x", "y", n, words - 1))

    def nbody(n):
        return case(f"nbody_{n}", {"p": random(4 * n), "a": zero_bytes(16 * n)}, launch("nbody", n // 256, 256, "p", "a", n))

    def dgemm(n):
        return case(f"dgemm_{n}", {"a": random(n * n, "f64"), "b": random(n * n, "f64", seed=2), "c": zero_bytes(8 * n * n)},
                    launch("dgemm", (n // 16, n // 16), (16, 16), "a", "b", "c", n))

    def options(n, blocks, block):
        inputs = {name: random(n, low=0, seed=seed) for seed, name in enumerate(("spot", "strike", "years"), 1)}
        return case(f"black_scholes_{n}_block_{block}", inputs | {"call": zero_bytes(4 * n), "put": zero_bytes(4 * n)},
                    launch("black_scholes", blocks, block, "spot", "strike", "years", "call", "put", n))

    volume = 130 * 97 * 66
    return {
        "field_01_reduce_scan_sort": [
            case("histogram_1mi_block_1024", {"in": integers(MI, 1 << 24), "out": zero_bytes(1024)},
                 launch("histogram", 264, 1024, "in", "out", MI)),
            case("scan_block_1000003", {"in": random(1000003), "out": zero_bytes(4 * 1000003), "sums": zero_bytes(65536)},
                 launch("scan_block", 977, 1024, "in", "out", "sums", 1000003)),
            case("bitonic_133ki", {"data": random(133 * KI)}, launch("bitonic", 133, 1024, "data")),
            case("dynamic_smem_sum_4mi", {"in": random(4 * MI), "out": zero_bytes(8192)},
                 launch("dynamic_smem_sum", 1024, 128, "in", "out", 32) | {"dynamic_shared_bytes": "512"}),
            case("dp4a_gemv_1000x4096", {"a": integers(MI, 1 << 24), "x": integers(1024, 1 << 24), "y": zero_bytes(4096)},
                 launch("dp4a_gemv", 1000, 128, "a", "x", "y", 1024))],
        "field_02_stencils": [
            stencil("stencil2d", (32, 16), 1021, 2039), stencil("stencil2d", (32, 16), 300, 300),
            stencil("conv2d", (32, 8), 1000, 777), stencil("conv2d", (32, 8), 4096, 1024),
            case("stencil3d_130x97x66", {"in": random(volume), "out": zero_bytes(4 * volume)},
                 launch("stencil3d", (5, 25), (32, 4), "in", "out", 130, 97, 66))],
        "field_03_sparse": [spmv(10007), spmv(100003), gather(MI, 1 << 20, 128), gather(300007, 1 << 12, 512)],
        "field_04_math": [nbody(33792), nbody(131072), dgemm(512), dgemm(1536), options(1000003, 264, 256), options(MI, 2048, 512),
                          case("long_math_20011", {"x": random(20011, "f64"), "y": zero_bytes(8 * 20011)},
                               launch("long_math", 157, 128, "x", "y", 20011)),
                          case("transcendental_300007", {"x": random(300007), "y": zero_bytes(4 * 300007)},
                               launch("transcendental", 1172, 256, "x", "y", 300007))],
        "field_05_control": [case("call_device_block_1024", mixed, launch("call_device", 256, 1024, "x", "y", MI // 4)),
                             case("coop_2mi_block_512", {"x": random(2 * MI), "y": zero_bytes(MI)},
                                  launch("coop", 4096, 512, "x", "y", 2 * MI)),
                             case("int_div_300007", {"x": integers(300007, 1 << 24), "y": zero_bytes(8 * 300007)},
                                  launch("int_div", 1172, 256, "x", "y", 300007, 17, 123457))],
        "field_06_half": [case("half2_axpy_1000003", {"x": random(2000006, "f16"), "y": random(2000006, "f16", seed=2)},
                               launch("half2_axpy", 3907, 256, "x", "y", 1.5, 1000003)),
                          case("bf16_rmsnorm_777x4096", {"x": random(777 * 4096, "bf16"), "y": zero_bytes(2 * 777 * 4096)},
                               launch("bf16_rmsnorm", 777, 256, "x", "y", 4096)),
                          case("bf16_rmsnorm_5000x1024_block_128", {"x": random(5000 * KI, "bf16"), "y": zero_bytes(10000 * KI)},
                               launch("bf16_rmsnorm", 5000, 128, "x", "y", 1024)),
                          case("lds_transpose_half_1024", {"in": random(MI, "f16"), "out": zero_bytes(2 * MI)},
                               launch("lds_transpose_half", (16, 16), (32, 8), "in", "out", 1024)),
                          case("stream_hints_500009", {"x": random(4 * 500009), "y": zero_bytes(16 * 500009)},
                               launch("stream_hints", 3907, 128, "x", "y", 500009))],
    }


def sweeps():
    """{STEM.sweep: cases}"""
    folders = [{"elementwise_01_sin_cos": sin_cos(), "elementwise_03_sigmoids": sigmoids(), "elementwise_04_relu": relu(),
                "divergence_01_branch_ways": divergence()}, copies(), reduce(), matmul(), attention(), occupancy(), field()]
    return {f"{stem}.sweep": cases for folder in folders for stem, cases in folder.items()}

"""The cases of the kernels in Triton (kernels/triton), for launches.py. What a launch must know of an image, its threads and
shared memory, is what kernels/triton/instances.py prints."""
from math import ceil

from launches import BYTES, args, case, dim3, uniform, zero

SCRATCH = ["{u64: 0}", "{u64: 0}"]  # two pointers end every list of arguments: memory that no kernel here asks for


def launch(kernel, grid, threads, shared, *values):
    """As launches.launch, with what is peculiar to Triton: maps with their shapes and strides behind them, scratch at the end."""
    given = []
    for value in values:
        if isinstance(value, dict):
            shape, stride = list(reversed(value["shape"])), value["strides"][0] // BYTES[value["type"]]
            given += [args(value)[1:-1], *(f"{{i32: {n}}}" for n in shape), f"{{i64: {stride}}}", "{i64: 1}"]
        else:
            given += [args(value)[1:-1]]
    return {"kernel": kernel, "grid": dim3(grid), "block": dim3(threads), "dynamic_shared_bytes": str(shared),
            "args": f"[{', '.join(given + SCRATCH)}]"}


def matrix_map(buffer, rows, columns, kind, box_rows, box_columns=64):
    return {"pointer": buffer, "type": kind, "shape": [columns, rows], "strides": [columns * BYTES[kind]],
            "box": [box_columns, box_rows], "swizzle": "128B"}


def below(most, elements, seed):
    return f"{{bytes: {4 * elements}, fill: {{lcg: {{seed: {seed}, modulus: {most}}}}}}}"


def named(*sizes):
    """Sizes with a name in front; the first is small, for comparing values."""
    names = ["x".join(map(str, size)) for size in sizes]
    return [(name, *size) for name, size in zip([f"check_{names[0]}", *names[1:]], sizes)]


def elementwise():
    def bias_gelu(name, rows, columns):
        n = rows * columns
        return case(f"triton_bias_gelu_{name}", {"x": uniform(n, 1, "bf16", 3), "bias": uniform(columns, 2, "bf16"), "y": zero(n, 2)},
                    launch("bias_gelu", ceil(n / 1024), 128, 0, "x", "bias", "y", n, columns))

    def dropout_add(name, n):
        return case(f"triton_dropout_add_{name}", {"x": uniform(n, 1, "f16"), "residual": uniform(n, 2, "f16"), "y": zero(n, 2)},
                    launch("dropout_add", ceil(n / 2048), 256, 0, "x", "residual", "y", n, 0.9, 1232))

    def rotary(name, positions, heads):
        n = positions * heads * 128
        return case(f"triton_rotary_{name}",
                    {"x": uniform(n, 1, "bf16"), "cosine": uniform(positions * 64, 2), "sine": uniform(positions * 64, 3), "y": zero(n, 2)},
                    launch("rotary", (positions, heads), 32, 0, "x", "cosine", "sine", "y", heads))

    return {"triton_01_bias_gelu": [bias_gelu(*of) for of in named((16, 1008), (4096, 4096), (8192, 11008))],
            "triton_01_dropout_add": [dropout_add(*of) for of in named((20000,), (4096 * 4096,), (8192 * 5120,))],
            "triton_01_rotary": [rotary(*of) for of in named((32, 16), (4096, 32))]}


def rows():
    def softmax(name, n, columns):
        return case(f"triton_softmax_{name}", {"x": uniform(n * columns, 1, "f16", 4), "y": zero(n * columns, 2)},
                    launch("softmax", n, 256, 32, "x", "y", columns, columns))

    def layer_norm(name, n, columns):
        buffers = {"x": uniform(n * columns, 1, "f16"), "weight": uniform(columns, 2), "bias": uniform(columns, 3),
                   "y": zero(n * columns, 2), "mean": zero(n), "rstd": zero(n)}
        return case(f"triton_layer_norm_{name}", buffers, launch("layer_norm", n, 128, 16, *buffers, columns, 0.00001))

    def cross_entropy(name, n, columns):
        return case(f"triton_cross_entropy_{name}", {"logits": uniform(n * columns, 1, "bf16", 4), "labels": below(columns, n, 2), "losses": zero(n)},
                    launch("cross_entropy", n, 256, 32, "logits", "labels", "losses", columns))

    def scan(name, n):
        return case(f"triton_scan_{name}", {"x": uniform(n, 1), "y": zero(n)}, launch("scan", ceil(n / 2048), 128, 64, "x", "y", n))

    def best_of(name, n, columns):
        return case(f"triton_best_of_{name}", {"x": uniform(n * columns, 1), "y": zero(n), "which": zero(n)},
                    launch("best_of", n, 128, 32, "x", "y", "which", columns))

    return {"triton_02_softmax": [softmax(*of) for of in named((20, 1008), (8192, 4096), (16384, 2048))],
            "triton_02_layer_norm": [layer_norm(*of) for of in named((20, 1520), (8192, 4096), (32768, 768))],
            "triton_02_cross_entropy": [cross_entropy(*of) for of in named((8, 3008), (4096, 32000))],
            "triton_02_scan": [scan(*of) for of in named((20000,), (1 << 24,))],
            "triton_02_best_of": [best_of(*of) for of in named((20, 800), (65536, 1024))]}


def products():
    def by_pointers(stem, name, m, n, k, kind, result, tile, threads, shared):
        buffers = {"a": uniform(m * k, 1, kind), "b": uniform(k * n, 2, kind), "c": zero(m * n, result)}
        if kind == "s8":
            buffers |= {"a": uniform(m * k, 1, kind, 8), "b": uniform(k * n, 2, kind, 8)}
        return case(f"triton_{stem}_{name}", buffers,
                    launch("product", ceil(m / tile[0]) * ceil(n / tile[1]), threads, shared, "a", "b", "c", m, n, k, k, n, n))

    def split(name, m, n, k):
        return case(f"triton_split_product_{name}", {"a": uniform(m * k, 1, "bf16"), "b": uniform(k * n, 2, "bf16"), "c": zero(m * n)},
                    launch("split_product", (m // 64, n // 128, 8), 128, 73728, "a", "b", "c", m, n, k))

    def four_bits(name, m, n, k):
        buffers = {"a": uniform(m * k, 1, "f16"), "packed": uniform(k // 2 * n, 2, "s8", 127),
                   "scales": uniform(k // 128 * n, 3, "f16"), "c": zero(m * n, 2)}
        return case(f"triton_four_bit_product_{name}", buffers,
                    launch("four_bit_product", (ceil(m / 16), n // 128), 128, 172032, *buffers, m, n, k))

    def by_maps(kernel, kind, tile_n, shared, blocks, name, m, n, k):
        buffers = {"a": uniform(m * k, 1, kind), "b": uniform(k * n, 2, kind), "c": zero(m * n, 2)}
        maps = matrix_map("a", m, k, kind, 128), matrix_map("b", k, n, kind, 64), matrix_map("c", m, n, kind, 128)
        tiles = ceil(m / 128) * ceil(n / tile_n)
        return case(f"triton_{kernel}_{name}", buffers, launch(kernel, min(blocks, tiles), 256, shared, *maps, m, n, k))

    sizes = named((208, 272, 144), (1024, 1024, 1024), (4096, 4096, 4096))
    ladder = {"product_f16": ("f16", 2, (128, 256), 256, 147456), "product_f16_small": ("f16", 2, (64, 64), 128, 32768),
              "product_tf32": ("f32", 4, (128, 128), 256, 98304), "product_s8": ("s8", 4, (128, 128), 256, 65536),
              "product_fp8": ("e4m3", 2, (128, 128), 256, 65536)}
    return {f"triton_03_{stem}": [by_pointers(stem, *size, *of) for size in sizes] for stem, of in ladder.items()} | {
        "triton_03_split_product": [split(*of) for of in named((128, 256, 1024), (512, 1024, 16384))],
        "triton_03_four_bit_product": [four_bits(*of) for of in named((32, 256, 256), (16, 11008, 4096), (256, 8192, 4096))],
        "triton_03_product_by_maps": [by_maps("product_by_maps", "f16", 256, 147480, 1 << 16, *size) for size in sizes],
        "triton_03_persistent_product": [
            *(by_maps("persistent_product", "bf16", 128, 163872, 3, *of) for of in named((400, 272, 144))),
            *(by_maps("persistent_product", "bf16", 128, 163872, 132, f"{n}", n, n, n) for n in (2048, 4096))]}


def attention():
    def by_pointers(stem, head, kind, threads, shared, name, length, heads):
        n = heads * length * head
        buffers = {name: uniform(n, seed, kind) for seed, name in enumerate("qkv", 1)} | {"o": zero(n, 2), "lse": zero(heads * length)}
        return case(f"triton_{stem}_{name}", buffers,
                    launch("attention", (length // 128, heads), threads, shared, *buffers, head ** -0.5, length))

    def by_maps(name, length, heads, head=128, kind="f16"):
        n = heads * length * head
        buffers = {name: uniform(n, seed, kind) for seed, name in enumerate("qkv", 1)} | {"o": zero(n, 2)}
        maps = [matrix_map(name, heads * length, head, kind, 128 if name in "qo" else 64) for name in buffers]
        return case(f"triton_attention_by_maps_{name}", buffers,
                    launch("attention_by_maps", (length // 128, heads), 256, 131128, *maps, head ** -0.5, length))

    def backward(name, length, heads, head=64, kind="f16"):
        n = heads * length * head
        buffers = {name: uniform(n, seed, kind) for seed, name in enumerate(("q", "k", "v", "go"), 1)}
        buffers |= {"gq": zero(n), "gk": zero(n, 2), "gv": zero(n, 2), "lse": uniform(heads * length, 5), "delta": uniform(heads * length, 6)}
        return case(f"triton_attention_backward_{name}", buffers,
                    launch("attention_backward", (length // 128, heads), 256, 66048, *buffers, head ** -0.5, length))

    sizes = [("check_256_heads_2", 256, 2), ("1024_heads_64", 1024, 64), ("4096_heads_16", 4096, 16)]
    return {"triton_04_attention_64_causal": [by_pointers("attention_64_causal", 64, "f16", 128, 65536, *of) for of in sizes],
            "triton_04_attention_128": [by_pointers("attention_128", 128, "bf16", 256, 131072, *of) for of in sizes],
            "triton_04_attention_by_maps": [by_maps(*of) for of in sizes],
            "triton_04_attention_backward": [backward(*of) for of in sizes]}


def triton():
    return elementwise() | rows() | products() | attention()

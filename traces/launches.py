"""The launch files: which sizes of each kernel are replayed, with which geometry and buffers. build.py writes them as YAML."""
from math import ceil

FP32 = 4
FP16 = 2


def zero(elements, size=FP32):
    return f"{{bytes: {elements * size}, fill: zero}}"


def uniform(elements, seed, kind="f32"):
    size = {"f32": FP32, "f16": FP16}[kind]
    return f"{{bytes: {elements * size}, fill: {{uniform: {{type: {kind}, low: -1, high: 1, seed: {seed}}}}}}}"


def args(*values):
    """Names of buffers are pointers, (name, offset) pointers into them, whole numbers i32, the others f32."""
    def one(value):
        if isinstance(value, str):
            return f"{{pointer: {value}}}"
        if isinstance(value, tuple):
            return f"{{pointer: {value[0]}, offset: {value[1]}}}"
        return f"{{i32: {value}}}" if isinstance(value, int) else f"{{f32: {value!r}}}"
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
        lines += [f"  {key}: {launched[0][key]}" for key in ("kernel", "grid", "block")]
    lines += ["  buffers:", *(f"    {key}: {value}" for key, value in buffers.items())]
    if len(launched) == 1:
        lines += [f"  args: {launched[0]['args']}"]
    else:
        lines += ["  launches:", *("    - {" + ", ".join(f"{k}: {v}" for k, v in one.items()) + "}" for one in launched)]
    return "\n".join(lines)


PRODUCT_SIZES = [512, 1024, 2048, 4096, 1000, 1023, 1025, 777]
PRODUCT_CHECKS = [64, 100, 129]


def products(kernel, tile_m, tile_n, block, rows_on_x=False):
    def product(name, n):
        grid = (ceil(n / tile_n), ceil(n / tile_m))
        return case(name, {"a": uniform(n * n, 1), "b": uniform(n * n, 2), "c": zero(n * n)},
                    launch(kernel, grid[::-1] if rows_on_x else grid, block, "a", "b", "c", n, n, n))
    return [product(f"{kernel}_{n}", n) for n in PRODUCT_SIZES] + \
           [product(f"{kernel}_check_{n}", n) for n in PRODUCT_CHECKS]


def matmul():
    return {
        "matmul_01_naive_uncoalesced": products("sgemm_naive_uncoalesced", 32, 32, (32, 32), rows_on_x=True),
        "matmul_02_coalesced": products("sgemm_coalesced", 32, 32, (32, 32)),
        "matmul_03_shared_tiled": products("sgemm_shared_tiled", 32, 32, (32, 32)),
        "matmul_04_coarsened_1d": products("sgemm_coarsened_1d", 64, 64, 512),
        "matmul_05_coarsened_2d": products("sgemm_coarsened_2d", 128, 128, 256),
        "matmul_06_vectorized": products("sgemm_vectorized", 128, 128, 256),
        "matmul_07_warp_tiled_double_buffered": products("sgemm_warp_tiled", 128, 128, 256),
    }


def files():
    """The text of every launch file, by stem."""
    head = "# Written by launches.py. {}\n\n"
    return {stem: head.format(f"Launches of the kernels in {stem}.cubin.") + "\n\n".join(cases) + "\n"
            for stem, cases in matmul().items()}

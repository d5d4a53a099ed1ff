"""The cases of the tensor-core products (kernels/matmul from 08 on), for launches.py."""
import re
from math import ceil
from pathlib import Path

from launches import BYTES, case, launch, uniform, zero

KIB = 1 << 10
CHECKS = [(f"check_{m}x{n}x{k}", m, n, k) for m, n, k in [(64, 64, 64), (136, 264, 104), (129, 77, 35)]]


def squares(*sizes):
    return [(f"{n}", n, n, n) for n in sizes]


def product(kernel, name, m, n, k, tile, threads, kib=0, kind="f16", out=None, *more, flat=False):
    """One product in tiles of `tile` = (m, n); `flat` hands them out along x alone."""
    tiles = (ceil(n / tile[1]), ceil(m / tile[0]))
    most = 127 if kind == "s8" else 1
    buffers = {"a": uniform(m * k, 1, kind, most), "b": uniform(k * n, 2, kind, most), "c": zero(m * n, out or BYTES[kind])}
    one = launch(kernel, tiles[0] * tiles[1] if flat else tiles, threads, "a", "b", "c", m, n, k, *more)
    return case(f"{kernel}_{name}", buffers, one | ({"dynamic_shared_bytes": str(int(kib * KIB))} if kib else {}))


def ladder(kernel, sizes, *how, checks=CHECKS, **more):
    return [product(kernel, *of, *how, **more) for of in sizes + checks]


def steps():
    small, large = (64, 64), (128, 128)
    bank = squares(1024, 2048, 4096, 1000)
    warp_tiled = squares(512, 1024, 2048, 4096, 8192, 777, 1000, 1792, 3000, 5000) + \
        [("8192x1024x1024", 8192, 1024, 1024), ("256x8192x4096", 256, 8192, 4096), ("1000x2000x4000", 1000, 2000, 4000)]
    return {
        "matmul_08_mma_global": ladder("mma_global_f16", squares(512, 1024, 2048, 4096, 1000, 777), small, 128) +
                                ladder("mma_global_bf16", squares(1024), small, 128, kind="bf16"),
        "matmul_09_shared_ldmatrix": ladder("mma_shared_f16", bank + squares(777), large, 256) +
                                     ladder("mma_shared_bf16", squares(2048), large, 256, kind="bf16"),
        "matmul_10_bank_conflicts": ladder("mma_padded_f16", bank, large, 256) +
                                    ladder("mma_swizzled_f16", bank + squares(777), large, 256) +
                                    ladder("mma_padded_bf16", squares(2048), large, 256, kind="bf16") +
                                    ladder("mma_swizzled_bf16", squares(2048), large, 256, kind="bf16"),
        "matmul_11_async_stages": [one for stages in (2, 3, 4) for one in
                                   ladder(f"mma_async_{stages}_f16", bank + squares(777), large, 256, 16 * stages)] +
                                  ladder("mma_async_3_bf16", squares(2048, 4096), large, 256, 48, kind="bf16"),
        "matmul_12_tensor": ladder("tensor_f16", warp_tiled, (128, 256), 256, 96) +
                            ladder("tensor_bf16", squares(1024, 4096, 8192, 1023), (128, 256), 256, 96, kind="bf16"),
    }


def block_order():
    def grouped(name, m, n, k, group):
        return product("tensor_grouped_f16", f"{name}_by_{group}", m, n, k, (128, 256), 256, 96, "f16", None, group, flat=True)
    return [grouped("8192", 8192, 8192, 8192, group) for group in (1, 2, 4, 8, 16, 32)] + \
           [grouped("4096", 4096, 4096, 4096, group) for group in (1, 8)] + [grouped("5000", 5000, 5000, 5000, 8)] + \
           [grouped(f"check_{m}x{n}x{k}", m, n, k, group)
            for m, n, k, group in [(300, 600, 64, 2), (640, 264, 40, 4), (131, 517, 33, 1)]]


def split_k():
    def split(name, m, n, k, parts):
        buffers = {"a": uniform(m * k, 1, "f16"), "b": uniform(k * n, 2, "f16"), "sums": zero(parts * m * n), "c": zero(m * n, 2)}
        return case(f"tensor_split_f16_{name}_parts_{parts}", buffers,
                    launch("tensor_split_f16", (ceil(n / 256), ceil(m / 128), parts), 256, "a", "b", "sums", m, n, k) |
                    {"dynamic_shared_bytes": str(96 * KIB)},
                    launch("sum_parts", ceil(m * n / 256), 256, "sums", "c", m * n, parts))
    return [split("512x512x8192", 512, 512, 8192, parts) for parts in (1, 2, 4, 8, 16)] + \
           [split("1024x1024x4096", 1024, 1024, 4096, 4), split("777x300x5000", 777, 300, 5000, 3)] + \
           [split("check_64x64x256", 64, 64, 256, 2), split("check_136x264x200", 136, 264, 200, 3),
            split("check_70x33x129", 70, 33, 129, 7)]


def persistent():
    few = [(f"check_{m}x{n}x{k}_blocks_{blocks}", m, n, k, blocks) for m, n, k, blocks in
           [(300, 600, 96, 2), (264, 264, 40, 5), (131, 517, 33, 1)]]

    def one(kernel, kind, name, m, n, k, blocks):
        buffers = {"a": uniform(m * k, 1, kind), "b": uniform(k * n, 2, kind), "c": zero(m * n, 2)}
        return case(f"{kernel}_{name}", buffers, launch(kernel, blocks, 256, "a", "b", "c", m, n, k) |
                    {"dynamic_shared_bytes": str(96 * KIB)})
    return [one("tensor_persistent_f16", "f16", *of, 132) for of in squares(1024, 2048, 4096, 8192, 5000, 777)] + \
           [one("tensor_persistent_bf16", "bf16", *of, 132) for of in squares(4096)] + \
           [one(f"tensor_persistent_{kind}", kind, *of) for kind in ("f16", "bf16") for of in few]


def types():
    def of_type(kind, sizes, tile, kib, out, kernel=None):
        checks = [(f"check_{m}x{n}x{k}", m, n, k) for m, n, k in [(64, 64, 64), (136, 264, 112), (129, 77, 35)]]
        return ladder(f"tensor_{kernel or kind}", sizes, tile, 256, kib, kind, out, checks=checks)
    most = squares(512, 1024, 2048, 4096, 1000, 777)
    return of_type("f32", most + squares(8192), (128, 256), 96, 4, "tf32") + \
        of_type("s8", most + squares(8192), (128, 256), 96, 4) + of_type("e4m3", most, (128, 128), 64, 4) + \
        of_type("f64", squares(512, 1024, 2048, 1000), (128, 64), 96, 8)


def up_to(multiple, x):
    return ceil(x / multiple) * multiple


def sparse():
    def two_of_four(name, m, n, k):
        rows, depth = up_to(16, m), up_to(64, k)
        buffers = {"a": uniform(m * k, 1, "f16"), "kept": zero(rows * depth // 2, 2), "places": zero(rows * depth // 32),
                   "b": uniform(k * n, 2, "f16"), "c": zero(m * n, 2)}
        return case(f"tensor_sparse_f16_{name}", buffers,
                    launch("sparse_compress_f16", ceil(rows * depth // 32 / 256), 256, "a", "kept", "places", m, k),
                    launch("tensor_sparse_f16", (ceil(n / 256), ceil(m / 128)), 256, "kept", "places", "b", "c", m, n, k) |
                    {"dynamic_shared_bytes": str(123 * KIB)})

    def blocks(name, m, n, k, keep):
        words = ceil(m / 128) * ceil(k / 64)
        buffers = {"a": uniform(m * k, 1, "f16"), "blocks": f"{{bytes: {4 * words}, fill: {{lcg: {{seed: 3, modulus: 100}}}}}}",
                   "b": uniform(k * n, 2, "f16"), "c": zero(m * n, 2)}
        return case(f"tensor_block_sparse_f16_{name}_keep_{keep}", buffers,
                    launch("tensor_block_sparse_f16", (ceil(n / 128), ceil(m / 128)), 128, "a", "blocks", "b", "c", m, n, k,
                           keep) | {"dynamic_shared_bytes": str(96 * KIB)})
    odd = [(f"check_{m}x{n}x{k}", m, n, k) for m, n, k in [(64, 64, 64), (136, 264, 200), (129, 77, 99)]]
    return {"matmul_17_sparse_2_4": [two_of_four(*of) for of in squares(1024, 2048, 4096, 8192, 1000) + odd],
            "matmul_18_block_sparse": [blocks("4096", 4096, 4096, 4096, keep) for keep in (10, 25, 50, 75, 100)] +
                                      [blocks("1000", 1000, 1000, 1000, 50), blocks("2048", 2048, 2048, 2048, 50)] +
                                      [blocks(*of, 60) for of in odd]}


PUBLISHED_TILE = "tiles_f16_128x128x32_64x64_4"


def tiles():
    """The instances of kernels/matmul/19_tiles.cu, as listed there."""
    def instance(kind, m, n, k, warp_m, warp_n, stages):
        kernel = f"tiles_{kind}_{m}x{n}x{k}_{warp_m}x{warp_n}_{stages}"
        threads, shared = m // warp_m * (n // warp_n) * 32, stages * (m + n) * k * BYTES[{"tf32": "f32"}.get(kind, kind)]

        def one(name, *of):
            return product(kernel, name, *of, (m, n), threads, shared / KIB, {"tf32": "f32"}.get(kind, kind),
                           4 if kind in ("tf32", "s8") else 2)
        # The tile and the sizes of published figures; no profile of them was taken.
        published = [("2048", 2048, 2048, 2048), ("3456x4096x4096", 3456, 4096, 4096), ("1152x7680x8192", 1152, 7680, 8192),
                     ("640x5120x8192", 640, 5120, 8192)] if kernel == PUBLISHED_TILE else []
        return [one("4096", 4096, 4096, 4096), one("check_72x136x80", 72, 136, 80), *(one(*of) for of in published)]
    listed = (Path(__file__).parent.parent / "kernels/matmul/19_tiles.cu").read_text()
    rows = re.findall(r"^(F16|BF16|TF32|S8)\((\d+), (\d+), (\d+), (\d+), (\d+), (\d+)\)$", listed, re.MULTILINE)
    return [one for kind, *sizes in rows for one in instance(kind.lower(), *map(int, sizes))]


# What stays beside the checks of a stem: the size at which the steps are compared. All else is in STEM.sweep, a third of it sealed.
COMPARED = re.compile(r"_check_|^(?!tiles).*_4096$|_4096_by_|_4096_keep_(25|50|100)$|_parts_(1|8)$|64x6x256$|^flash.*_2048$|^tiles(?!.*_4096$)")


def with_sweeps(stems):
    """The cases of each stem in its own launch file and in STEM.sweep."""
    parted = {}
    for stem, cases in stems.items():
        stays = [bool(COMPARED.search(text.split(":")[0])) for text in cases]
        parted[stem] = [text for text, stay in zip(cases, stays) if stay]
        if not all(stays):
            parted[f"{stem}.sweep"] = [text for text, stay in zip(cases, stays) if not stay]
    return parted


def tensor():
    return with_sweeps(steps() | sparse() | {
        "matmul_13_block_order": block_order(), "matmul_14_split_k": split_k(), "matmul_15_persistent": persistent(),
        "matmul_16_types": types(), "matmul_19_tiles": tiles()})

"""Launch files of what the gallery alone replays, with the project's kernels: nanoGPT's attention as its training
configuration for Shakespeare has it (batch 64, length 256, 6 heads of 64, width 384), forward, in fp32 and without dropout;
and products of the shapes that docs/examples/scenarios sketches.

  sequences.py nanogpt|sketches FOLDER     writes FOLDER/STEM.yaml for each cubin's stem
"""
import os
import sys
from math import ceil

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "traces"))

import launches  # noqa: E402
import tensor_launches  # noqa: E402

BATCH, LENGTH, HEADS, WIDTH = 64, 256, 6, 384
ROWS = BATCH * LENGTH


def product(name, n, k):
    return launches.case(f"nanogpt_{name}", {"a": launches.uniform(ROWS * k, 1), "b": launches.uniform(k * n, 2),
                                             "c": launches.zero(ROWS * n)},
                         launches.launch("sgemm_warp_tiled", (ceil(n / 128), ceil(ROWS / 128)), 256, "a", "b", "c", ROWS, n, k))


def nanogpt():
    return {
        "matmul_07_warp_tiled_double_buffered": [product("qkv", 3 * WIDTH, WIDTH), product("projection", WIDTH, WIDTH)],
        "attention_01_unfused": [launches.unfused("nanogpt", LENGTH, BATCH * HEADS, 1)],
        "attention_03_flash": [launches.flash("nanogpt", LENGTH, BATCH * HEADS, 1)],
    }


def sketches():
    def product(kernel, m, n, k, tile, threads, kib, kind):
        name = f"{n}" if m == n == k else f"{m}x{n}x{k}"
        return tensor_launches.product(kernel, name, m, n, k, tile, threads, kib, kind)
    waves = [(1792, 1792, 1792), (1800, 1800, 1800), (2048, 2048, 1792), (2048, 2056, 1792)]
    square = [(4096, 50264, 768), (4096, 50304, 768), (4096, 4096, 1024)]
    return {"matmul_19_tiles": [product("tiles_f16_256x128x32_64x64_3", *of, (256, 128), 256, 72, "f16") for of in waves] +
                               [product("tiles_bf16_128x128x32_64x64_4", *of, (128, 128), 128, 64, "bf16") for of in square]}


def main(what, folder):
    os.makedirs(folder, exist_ok=True)
    for stem, cases in {"nanogpt": nanogpt, "sketches": sketches}[what]().items():
        with open(os.path.join(folder, stem + ".yaml"), "w", encoding="utf-8") as file:
            file.write("\n\n".join(cases) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

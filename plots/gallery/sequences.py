"""Launch files of what the gallery alone replays: nanoGPT's attention as its training configuration for Shakespeare has it
(batch 64, length 256, 6 heads of 64, width 384), forward, in fp32 and without dropout, with the project's kernels.

  sequences.py FOLDER     writes FOLDER/STEM.yaml for each cubin's stem
"""
import os
import sys
from math import ceil

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "traces"))

import launches  # noqa: E402

BATCH, LENGTH, HEADS, WIDTH = 64, 256, 6, 384
ROWS = BATCH * LENGTH


def product(name, n, k):
    return launches.case(f"nanogpt_{name}", {"a": launches.uniform(ROWS * k, 1), "b": launches.uniform(k * n, 2),
                                             "c": launches.zero(ROWS * n)},
                         launches.launch("sgemm_warp_tiled", (ceil(n / 128), ceil(ROWS / 128)), 256, "a", "b", "c", ROWS, n, k))


def files():
    return {
        "matmul_07_warp_tiled_double_buffered": [product("qkv", 3 * WIDTH, WIDTH), product("projection", WIDTH, WIDTH)],
        "attention_01_unfused": [launches.unfused("nanogpt", LENGTH, BATCH * HEADS, 1)],
        "attention_03_flash": [launches.flash("nanogpt", LENGTH, BATCH * HEADS, 1)],
    }


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for stem, cases in files().items():
        with open(os.path.join(folder, stem + ".yaml"), "w", encoding="utf-8") as file:
            file.write("\n\n".join(cases) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Sizes far beyond those that are profiled, for launches.py: what a prediction costs must hardly grow with the work it is of
(validation/speed). They go into launch files of their own, STEM.large.yaml for the code of STEM.cubin.
"""
from launches import flash, products

SIZES = [4096, 8192, 16384]


def square(kernel, tile, block, rows_on_x=False):
    named = products(kernel, tile, tile, block, rows_on_x, more=[(f"{n}", n, n, n) for n in SIZES])
    return named[-len(SIZES):]


def large():
    return {
        "attention_03_flash.large": [flash(f"{n}", n, 16, 0) for n in SIZES],
        "matmul_01_naive_uncoalesced.large": square("sgemm_naive_uncoalesced", 32, (32, 32), rows_on_x=True),
        "matmul_03_shared_tiled.large": square("sgemm_shared_tiled", 32, (32, 32)),
        "matmul_06_vectorized.large": square("sgemm_vectorized", 128, 256),
        "matmul_07_warp_tiled_double_buffered.large": square("sgemm_warp_tiled", 128, 256),
    }

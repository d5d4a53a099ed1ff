"""Grids just under, at and just over one to three waves, for launches.py: what one block more costs (validation/tables.py --waves). They go
into launch files of their own, STEM.waves.yaml for the code of STEM.cubin. None of them is sealed, and nothing is fitted to them.

A wave is here what keeps every SM equally busy: SMS blocks, times the blocks that an SM needs before more of them take longer.
The work of a block does not depend on how many there are, so that nothing but the wave changes from one case to the next.
"""
from launches import case, launch, uniform, zero

SMS = 132  # of an H200
WAVES = (1, 2, 3)


def around(an_sm):
    """Numbers of blocks: one under, at, and one over each wave of `an_sm` blocks on each SM."""
    return [wave * an_sm * SMS + by for wave in WAVES for by in (-1, 0, 1)]


def linear(kernel, block, an_sm, *values, held=1):
    """A kernel of which each block takes block * held elements."""
    def one(blocks):
        n = blocks * block * held
        names = ("in", "out") if held > 1 else ("x", "y")
        return case(f"{kernel}_waves_{blocks}", {names[0]: uniform(n, 1), names[1]: zero(n)},
                    launch(kernel, blocks, block, *names, n, *values))
    return [one(blocks) for blocks in around(an_sm)]


def product(kernel, tile, block, an_sm, k):
    """One row of tiles: each block has a column of B of its own, all read the same rows of A."""
    def one(blocks):
        m, n = tile, blocks * tile
        return case(f"{kernel}_waves_{blocks}", {"a": uniform(m * k, 1), "b": uniform(k * n, 2), "c": zero(m * n)},
                    launch(kernel, (blocks, 1), block, "a", "b", "c", m, n, k))
    return [one(blocks) for blocks in around(an_sm)]


def rows(kernel, cols, an_sm):
    """A block a row."""
    def one(blocks):
        return case(f"{kernel}_waves_{blocks}", {"in": uniform(blocks * cols, 1), "out": zero(blocks * cols)},
                    launch(kernel, blocks, 256, "in", "out", cols))
    return [one(blocks) for blocks in around(an_sm)]


def waves():
    """{STEM.waves: cases}"""
    return {
        "divergence_01_branch_ways.waves": linear("divergence_by_lane_2", 256, 8, 256) +
                                           linear("divergence_by_warp_4", 512, 4, 512),
        "matmul_03_shared_tiled.waves": product("sgemm_shared_tiled", 32, (32, 32), 2, 1024),
        "matmul_06_vectorized.waves": product("sgemm_vectorized", 128, 256, 1, 512),
        "matmul_07_warp_tiled_double_buffered.waves": product("sgemm_warp_tiled", 128, 256, 1, 512),
        "occupancy_01_registers.waves": linear("hold_32", 256, 1, 300, held=32) +
                                          linear("hold_96", 128, 3, 100, held=96),
        "reduce_01_softmax_rows.waves": rows("softmax_rows", 4096, 8),
    }

"""The cases of kernels/faults, for launches.py: each fault beside its mended twin, on as little data as shows it. Grids that speak
of waves are for the 132 SMs of an H200."""
from field_launches import integers, random, zero_bytes
from launches import case, launch

KI, MI = 1 << 10, 1 << 20
IOTA = f"{{bytes: {MI}, fill: iota}}"


def pair(name, buffers, fault, mended):
    """Launches are lists for launch(); a dictionary at their end holds more of their keys."""
    def one(role, of):
        more = of[-1] if isinstance(of[-1], dict) else {}
        values = of[:-1] if more else of
        used = {key: fill for key, fill in buffers.items() if key in values}
        return case(f"{role}_{name}", used, launch(*values) | {key: str(value) for key, value in more.items()})
    return [one("fault", fault), one("mended", mended)]


def brief(name, buffers, *values):
    return case(f"brief_{name}", buffers, launch(*values))


def memory():
    matrix = {"in": random(MI), "out": zero_bytes(4 * MI)}
    tiles = (32, 128), (32, 8)
    copied = ["row_copy", *tiles, "in", "out", KI]
    indexed = {"index": integers(256 * KI, 1 << 24), "ordered": IOTA, "in": random(MI), "out": zero_bytes(4 * MI)}
    fits = 132 * 8
    return [
        *pair("column_load", matrix, ["column_load", *tiles, "in", "out", KI], copied),
        *pair("column_store", matrix, ["column_store", *tiles, "in", "out", KI], copied),
        *pair("fields_apart", {"in": random(2 * MI), "out": zero_bytes(512 * KI)},
              ["fields_apart", 512, 256, "in", "out", 128 * KI], ["fields_together", 512, 256, "in", "out", 128 * KI]),
        *pair("one_field", {"in": random(2 * MI), "out": zero_bytes(MI)}, ["one_field", 1024, 256, "in", "out", 8],
              ["one_field", 1024, 256, "in", "out", 1]),
        *pair("strided", {"in": random(2 * MI), "out": zero_bytes(8 * MI)}, ["strided", 1024, 256, "in", "out", 8],
              ["strided", 1024, 256, "in", "out", 1]),
        *pair("store_pieces", {"out": zero_bytes(4 * MI)}, ["store_pieces", 128, 256, "out", 32],
              ["store_steps", 128, 256, "out", 32]),
        *pair("gather", indexed, ["gather", 1024, 256, "index", "in", "out", MI - 1],
              ["gather", 1024, 256, "ordered", "in", "out", MI - 1]),
        *pair("scatter", indexed, ["scatter", 1024, 256, "index", "in", "out", MI - 1],
              ["scatter", 1024, 256, "ordered", "in", "out", MI - 1]),
        *pair("piece_a_thread", {"in": random(2 * MI), "out": zero_bytes(256 * KI)},
              ["piece_a_thread", 256, 256, "in", "out", 32], ["piece_a_step", 256, 256, "in", "out", 32]),
        *pair("row_a_thread", {"a": random(8 * MI), "x": random(64), "y": zero_bytes(512 * KI)},
              ["row_a_thread", 1024, 128, "a", "x", "y", 64], ["row_transposed", 1024, 128, "a", "x", "y", 64]),
        *pair("tile_columns", {"in": random(KI), "out": zero_bytes(4 * fits * 256)},
              ["tile_columns", fits, 256, "in", "out", 64], ["tile_padded", fits, 256, "in", "out", 64]),
        *pair("shared_stride", {"out": zero_bytes(4 * fits * 256)}, ["shared_stride", fits, 256, "out", 8, 64],
              ["shared_stride", fits, 256, "out", 1, 64]),
        *pair("shared_counters", {"in": integers(256, 256), "out": zero_bytes(4 * 528 * 256)},
              ["shared_counters", 528, 256, "in", "out", 3, 32], ["shared_counters", 528, 256, "in", "out", 255, 32]),
        *pair("one_counter", {"in": random(128 * KI), "out": zero_bytes(16 * KI)},
              ["one_counter", 512, 256, "in", "out", 128 * KI], ["counter_a_block", 512, 256, "in", "out", 128 * KI]),
        *pair("few_bins", {"in": integers(128 * KI, 1 << 24), "out": zero_bytes(512 * KI)},
              ["few_bins", 512, 256, "in", "out", 128 * KI], ["own_bins", 512, 256, "in", "out", 128 * KI]),
        *pair("indexed_array", {"in": integers(132 * 256, 64), "out": zero_bytes(4 * 132 * 256)},
              ["indexed_array", 132, 256, "in", "out", 64], ["computed_array", 132, 256, "in", "out", 64]),
        *pair("spilled", {"in": random(MI), "out": zero_bytes(4 * 264 * 256)}, ["spilled", 264, 256, "in", "out", 4],
              ["kept", 264, 256, "in", "out", 4]),
        *pair("own_tables", {"in": random(16 * MI), "out": zero_bytes(MI)}, ["own_tables", 1024, 256, "in", "out", 1023],
              ["own_tables", 1024, 256, "in", "out", 63]),
        *pair("table_words", {"in": random(4 * KI), "out": zero_bytes(4 * 528 * 256)},
              ["table_words", 528, 256, "in", "out", 64], ["table_kept", 528, 256, "in", "out", 64]),
        *pair("shared_words", {"out": zero_bytes(4 * fits * 256)}, ["shared_words", fits, 256, "out", 32, 64],
              ["shared_kept", fits, 256, "out", 32, 64]),
        # For tests that have little time.
        brief("table_words", {"in": random(4 * KI), "out": zero_bytes(4 * 264 * 256)}, "table_words", 264, 256, "in", "out", 32),
        brief("shared_words", {"out": zero_bytes(4 * 264 * 256)}, "shared_words", 264, 256, "out", 32, 32),
    ]


def execution():
    fits = 132 * 8
    out = {"out": zero_bytes(4 * 132 * 2048)}
    loads = {"in": random(132 * 128 * 64), "out": zero_bytes(4 * 132 * 2048)}
    table = {"table": zero_bytes(64 * KI), "out": zero_bytes(4 * 132 * 256)}
    more = {"in": random(132 * 2048), "out": zero_bytes(4 * 132 * 2048)}
    alone = {"dynamic_shared_bytes": 120000}  # one block on an SM
    held = {"dynamic_shared_bytes": 45000}
    return [
        *pair("two_ways", out, ["two_ways", fits, 256, "out", 0, 48], ["two_ways", fits, 256, "out", 5, 48]),
        *pair("eight_ways", out, ["eight_ways", fits, 256, "out", 0, 16], ["eight_ways", fits, 256, "out", 5, 16]),
        *pair("uneven_turns", out, ["uneven_turns", 528, 256, "out", 64], ["even_turns", 528, 256, "out", 64]),
        *pair("one_lane", out, ["one_lane", 264, 256, "out", 8], ["all_lanes", 264, 256, "out", 8]),
        *pair("barrier_a_turn", out, ["barrier_a_turn", 132, 1024, "out", 200], ["no_barrier", 132, 1024, "out", 200]),
        *pair("fence_a_turn", out, ["fence_a_turn", 528, 256, "out", 32], ["no_barrier", 528, 256, "out", 32]),
        *pair("long_code", out, ["long_code", 132, 128, "out", 0.5, 1], ["short_code", 132, 128, "out", 0.5, 1]),
        *pair("short_launch", out, ["plain_work", 132, 32, "out", 256], ["plain_work", 132, 32, "out", 4096]),
        *pair("one_block_more", {"out": zero_bytes(4 * 133 * 1024)}, ["plain_work", 133, 1024, "out", 128, alone],
              ["plain_work", 132, 1024, "out", 128, alone]),
        *pair("few_blocks", out, ["plain_work", 16, 256, "out", 4096], ["plain_work", 128, 256, "out", 512]),
        *pair("partial_wave", {"out": zero_bytes(4 * 140 * 256)}, ["plain_work", 140, 256, "out", 512, alone],
              ["plain_work", 132, 256, "out", 512, alone]),
        *pair("long_block", out, ["long_block", 132, 256, "out", 4096, 256], ["long_block", 132, 256, "out", 285, 285]),
        *pair("one_chain", out, ["one_chain", 132, 128, "out", 0.5, 128], ["eight_chains", 132, 128, "out", 0.5, 128]),
        *pair("chase", table, ["chase", 132, 64, "table", "out", 64], ["no_chase", 132, 64, "table", "out", 64]),
        *pair("one_load", loads, ["one_load", 132, 128, "in", "out", 64], ["many_loads", 2112, 128, "in", "out", 4]),
        *pair("shared_chase", table, ["shared_chase", 132, 256, "out", 256], ["shared_no_chase", 132, 256, "out", 256]),
        *pair("doubles", more, ["doubles", fits, 256, "in", "out", 0.5, 1.0, 384],
              ["floats", fits, 256, "in", "out", 0.5, 1.0, 384]),
        *pair("special", more, ["special", fits, 256, "in", "out", 256], ["polynomial", fits, 256, "in", "out", 256]),
        *pair("large_shared", more, ["hide", 2112, 128, "in", "out", 16, held], ["hide", 2112, 128, "in", "out", 16]),
        *pair("small_blocks", more, ["hide", 8448, 32, "in", "out", 16], ["hide", 2112, 128, "in", "out", 16]),
        # For tests that have little time.
        brief("doubles", more, "doubles", 528, 256, "in", "out", 0.5, 1.0, 96),
        brief("special", more, "special", 528, 256, "in", "out", 64),
    ]


def limits():
    """No pairs of a fault and its twin, but kernels that meet a limit and others that do not."""
    def one(name, buffers, *of, **more):
        return case(name, buffers, launch(*of) | {key: str(value) for key, value in more.items()})

    def blocks(name, kernel, count, *values):
        return one(name, {"out": zero_bytes(4 * count * 256)}, kernel, count, 256, "out", *values)

    data = {"in": random(2 * MI), "out": zero_bytes(132 * KI)}
    some = {"in": random(64 * KI), "out": zero_bytes(4 * 2112 * 128)}
    return [
        one("again_all", data, "again", 132, 256, "in", "out", 512 * KI - 1, 32),
        one("again_part", data, "again", 132, 256, "in", "out", 32 * KI - 1, 32),
        one("many_registers", some, "many_registers", 2112, 128, "in", "out", 16),
        one("few_registers", some, "few_registers", 2112, 128, "in", "out", 16),
        one("much_shared", some, "few_registers", 2112, 128, "in", "out", 16, dynamic_shared_bytes=45000),
        one("small_blocks", some, "few_registers", 8448, 32, "in", "out", 16),
        *(blocks(name, name, 528, 3, 5, 64) for name in ("logic", "integer_products", "halves", "floats_of_words")),
        blocks("products", "products", 132, 0, 0, 256),
        blocks("constants_by_index", "constants_by_index", 264, 3, 64),
    ]


def faults():
    return {"faults_01_memory": memory(), "faults_02_execution": execution(), "faults_03_limits": limits()}

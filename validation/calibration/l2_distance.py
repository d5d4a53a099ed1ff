#!/usr/bin/env python3
"""What the case distance_n4 of kernels/micro/l2_drift.cu says: how far each SM is from L2.

  forewarp-run traces/sm_90/micro_l2_drift.cubin --launch traces/micro_l2_drift.yaml --case distance_n4 --dump out=FILE
  l2_distance.py FILE > validation/profiles/GPU/l2_distance.csv

One line an SM: its GPC, as far as SMs are numbered a TPC of each GPC in turn; the mean cycles of a load of a line of
the half that is nearer to it, and of the other; then the means behind crossbar.tpc_cycles, slice_cycles and
copy_cycles.
"""
import statistics
import struct
import sys
from pathlib import Path

LINES = 4096
GPCS, FULL_ROWS = 8, 4  # of the card measured: SMs 0 to 63 are four TPCs of each GPC


def read(path):
    """{SM: cycles of each line}"""
    words = struct.unpack(f"<{Path(path).stat().st_size // 4}I", Path(path).read_bytes())
    table = {}
    for block in range(len(words) // (2 * LINES)):
        pairs = words[2 * LINES * block:2 * LINES * (block + 1)]
        table[pairs[0]] = pairs[1::2]
    return table


def main(path):
    table = read(path)
    gpc_of = {sm: sm // 2 % GPCS for sm in range(2 * GPCS * FULL_ROWS)}
    by_gpc = [[statistics.mean(table[sm][line] for sm in gpc_of if gpc_of[sm] == gpc) for line in range(LINES)] for gpc in range(GPCS)]
    lower = [sum(by_gpc[gpc][line] for gpc in range(GPCS // 2)) < sum(by_gpc[gpc][line] for gpc in range(GPCS // 2, GPCS))
             for line in range(LINES)]
    print("sm,gpc,near,far")
    near_of_all, far_of_all = [], []
    for sm in sorted(table):
        halves = [statistics.mean(c for c, low in zip(table[sm], lower) if low == half) for half in (True, False)]
        near_of_all.append(min(halves))
        far_of_all.append(max(halves))
        print(f"{sm},{gpc_of.get(sm, '')},{min(halves):.1f},{max(halves):.1f}")
    mean = statistics.mean(statistics.mean(cycles) for cycles in table.values())
    rows = [statistics.mean(statistics.mean(table[sm]) for sm in range(2 * GPCS * row, 2 * GPCS * (row + 1))) - mean
            for row in range(FULL_ROWS)]
    ends = sorted((by_gpc[0][line] + by_gpc[1][line] - by_gpc[2][line] - by_gpc[3][line]) / 2 for line in range(LINES) if lower[line])
    print(f"# mean {mean:.1f}; copies {statistics.mean(far_of_all) - statistics.mean(near_of_all):.1f} more", file=sys.stderr)
    print(f"# first TPCs of all GPCs: {', '.join(f'{row:+.1f}' for row in rows)}", file=sys.stderr)
    print(f"# two GPCs less the other two of their half: {ends[len(ends) // 50]:+.0f} to {ends[-len(ends) // 50]:+.0f}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])

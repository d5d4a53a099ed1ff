// Calibration: what a launch costs.
//
// Isolates  start and end of a grid (one block), the rate blocks are handed out at (many more blocks than fit: slope over
//           blocks), starting the warps of a block (slope over block sizes at one block an SM), the turn-over of a block slot.
// Supports  launch.start_cycles, end_cycles, blocks_per_cycle_x16, block_start_cycles, warp_start_interval, block_end_cycles,
//           issue.exit_cycles.
// Launch    any. No arguments.

extern "C" __global__ void empty() {}

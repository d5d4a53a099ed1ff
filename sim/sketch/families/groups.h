// What kernels of warpgroups share: factors of wgmma in shared memory, boxes that TMA brings there, and barriers with
// phases. sm_90 alone.
#pragma once

#include "sketch/families/tensor.h"

namespace forewarp::sketch {

inline constexpr int kGroupThreads = 128;
inline constexpr int kGroupRows = 64;  ///< of a product
inline constexpr int kRowBytes = 128;  ///< of a tile: chunks of a row change places within it
inline constexpr int kAtomBytes = 8 * kRowBytes;
inline constexpr int kPanel = 64;  ///< columns side by side in shared memory
inline constexpr int kBarrierBytes = 8;
inline constexpr std::uint32_t kSwizzled = 0x40000000;  ///< upper word of a factor's description: rows of 128 bytes
/// The upper word: groups of eight rows behind one another.
inline constexpr std::uint32_t kFactorHigh = kSwizzled | kAtomBytes / kChunk;

/// The map of a matrix, or of several behind one another, in boxes of so many rows of 128 bytes.
Argument map_of(int buffer, Type, std::int64_t rows, std::int64_t columns, int box_rows, std::int64_t matrices = 0);

/// The map of rows of floats, in boxes of so many.
Argument map_of_floats(int buffer, std::int64_t rows, std::int64_t columns, int box);

Value uniform_number(Writer&, std::uint32_t bits);
Value uniform_add(Writer&, Value a, int by);
Value to_uniform(Writer&, Value a);
inline Arg at(Value uniform) { return shared(kRZ, 0, uniform); }

/// Addresses of tensor maps among the parameters.
void find_maps(Writer&, const int* parameters, Value* maps, int count);
void start_barrier(Writer&, Value address, int arrivals);
/// Until the phase of that parity (in bit 31) is over.
void wait_for_phase(Writer&, Value barrier, Value parity, bool clustered = false);
/// A box of the map to `to` + `offset`, of the columns from `x` + `x_offset` and the rows from `y` on. `blocks`: those
/// of the cluster that get it, where that is not this one alone.
void fetch_box(Writer&, Value map, Value to, int offset, Value barrier, Value x, int x_offset, Value y,
               Value blocks = {-1, 0, File::Uniform});

/// Where a warp is in a ring of stages with a barrier each.
struct RingTurn {
  Value stage, barrier, parity;  ///< bytes into the ring, bytes from the first barrier, bit 31
};
RingTurn first_turn(Writer&);
void next_turn(Writer&, const RingTurn&, int stages, int stage_bytes);
/// Uniform: `base` + `offset` + `further`.
Value in_ring(Writer&, Value base, Value offset, int further = 0);

/// The lower word of a factor's description: where it starts, and the distance of panels in chunks (1 where k runs
/// along the rows).
Value factor_start(Writer&, Value byte, std::uint32_t panel);

}  // namespace forewarp::sketch

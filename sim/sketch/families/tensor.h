// What kernels on tensor cores share: tiles of swizzled 16-byte chunks in shared memory, the copies that fill them, and
// the words of mma that ldmatrix takes from them.
#pragma once

#include <vector>

#include "sketch/families/common.h"

namespace forewarp::sketch {

inline constexpr int kChunk = 16;      ///< bytes of a copy
inline constexpr int kStepBytes = 32;  ///< of k in a product of tensor cores
inline constexpr int kStrip = 16;      ///< rows of A, or columns of B, whose words one ldmatrix takes

inline int step_depth(Type type) { return kStepBytes / bytes_of(type); }

/// Arithmetic on pairs: 64-bit addresses.
Value further(Writer&, Value pair, Value by);
void advance_by(Writer&, Value pair, Value by);
/// The address of element (row, column) of a matrix with so many in a row.
Value element_address(Writer&, int parameter, Value row, Value pitch, Value column, Type);

/// One thread's share of filling a tile of `rows` rows, row-major in memory and in shared memory.
class TileCopy {
 public:
  TileCopy() = default;
  TileCopy(Writer&, int rows, int row_bytes, int threads, Value thread);

  int passes() const { return rows_ * chunks_ / threads_; }
  int rows_a_pass() const { return threads_ / chunks_; }
  int pitch() const { return chunks_ * kChunk; }
  int bytes() const { return rows_ * pitch(); }
  Value row() const { return row_; }      ///< of this thread's first copy
  Value chunk() const { return chunk_; }  ///< of all its copies

  /// Bytes from the tile's start, by pass; `base` is added where it is given.
  void find_places(Value base = kURZ);
  Value place(int pass) const { return places_[static_cast<std::size_t>(pass)]; }
  /// What a pass adds to its place.
  int offset(int pass) const;

  Value at;         ///< address of this thread's first chunk
  Value rows_left;  ///< from its first row on
  Value step;       ///< bytes from pass to pass: a pair, or
  int step_bytes = 0;
  bool whole_lines = false;  ///< L2 fetches all of a line for a copy by cp.async that misses

  /// One pass by cp.async to `to` + offset, zero outside, from so many bytes `along` the rows. `inside`: as for the
  /// chunk (none: always).
  void copy(int pass, Value to, int offset, Value inside, Value when = kPT, int along = 0);
  /// One pass into four registers (new ones where there are none yet), zero outside.
  void fetch(int pass, Value& into, Value inside, int along = 0);

 private:
  Value begin(int pass, Value inside, int& distance);

  Writer* w_ = nullptr;
  int rows_ = 0, chunks_ = 1, threads_ = 1;
  Value row_, chunk_, at_pass_;
  std::vector<Value> places_;
};

/// The words that a lane takes from a tile.
enum class Factor : std::uint8_t {
  A,        ///< rows of m, along k
  ATurned,  ///< rows of k, along m
  B,        ///< rows of k, along n
  BTurned,  ///< rows of n, along k
};
class TileWords {
 public:
  TileWords() = default;
  /// `first`: the warp's first row of m or n (A, BTurned), or its first chunk of them (ATurned, B). `turns`: steps that
  /// are taken along k, or strips along m or n, whichever lies along a row; `first` chunk is a multiple of them.
  /// `panel_bytes`: of a panel, where a row is parted into panels of `row_bytes` that lie behind one another.
  TileWords(Writer&, Factor, int row_bytes, Value first, Value lane, int turns, int panel_bytes = 0);
  /// Four words of a strip and a step of k, of the tile `offset` bytes from `base`.
  void load(Value words, int strip, int step, Value base, int offset) const;

 private:
  Writer* w_ = nullptr;
  bool turns_with_step_ = true;
  bool transposes_ = false;
  int pitch_ = 0, next_ = 0;  ///< bytes to the next row, and to the next chunks along a row that change places
  std::vector<Value> from_;
};

/// sum = a b + other, of 16 x 8 results.
void multiply(Writer&, Type, Value sum, Value a, Value b, Value other);
/// Two floats as a word.
Value pack(Writer&, Type, Value low, Value high);
void pack(Writer&, Type, Value into, Value low, Value high);
Value zero_sums(Writer&);  ///< four registers

/// Waits until at most so many groups of copies are on their way, and for all threads.
void wait_for_copies(Writer&, int groups);

}  // namespace forewarp::sketch

// Where the elements of a factor are of which two of four neighbours are kept.
#pragma once

#include <cstdint>

namespace forewarp::emulation {

/// Which of the second factor's rows an element of a sparse one meets: two of four neighbours are kept, of 32-bit
/// elements one of two, and two bits say which of four (halves of) elements it is. The selector says which lanes of
/// four hold them: of 16-bit elements and larger those of rows g and g + 8 in the two halves of a word, of bytes those
/// of a row each, in turn. (As an H200 reads them; testdata/fragments_h200.txt.)
class SparseFactor {
 public:
  SparseFactor(const std::uint32_t* words, int bits, int depth, int selector)
      : words_(words), pieces_(bits == 32 ? 2 : 1), bytes_(bits == 8) {
    lanes_ = depth * pieces_ / 8;  // pieces of a row come to depth / 2 of two bits; 16 rows over 8 groups of four lanes
    first_ = lanes_ >= 4 ? 0 : selector * lanes_;
    if (lanes_ > 4) lanes_ = 4;
  }

  /// Of element k of the sparse row that is kept.
  int depth_of(int row, int k) const {
    const int piece = k * pieces_;
    const int high = row / 8;
    const int lane = bytes_ ? piece / 16 * 2 + high : piece / 8;
    const int bit = bytes_ ? piece % 16 * 2 : piece % 8 * 2 + high * 16;
    const int at = static_cast<int>(words_[row % 8 * 4 + first_ + lane] >> bit & 3u);
    return pieces_ == 2 ? k * 2 + at / 2 : k / 2 * 4 + at;
  }

 private:
  const std::uint32_t* words_;
  int pieces_;  ///< of two bits an element
  bool bytes_;
  int lanes_, first_ = 0;
};

}  // namespace forewarp::emulation

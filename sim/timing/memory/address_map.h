// Where a line lives: home partition, L2 slice, HBM pseudo-channel, bank and row. NVIDIA does not publish the hash;
// what is known comes from timing maps: the half is an XOR of a few address bits (l2.partition_bits), the slice is XORs
// of higher bits and, where the count is not a power of two, a digit that behaves like a modulo and changes every KiB.
// The map here has those properties: any power-of-two stride spreads over everything, a window of consecutive chunks is
// exactly even, and it is a bijection, so that rows and sets are real places. The bits above a 2 MB page come from
// virtual addresses, which stand in for physical ones.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "hardware/gpu_model.h"

namespace forewarp {

/// Division by a run-time constant as one multiplication; exact for values below 2^64 / divisor.
class FastDivisor {
 public:
  FastDivisor() = default;
  explicit FastDivisor(std::uint64_t d) : divisor_(d), magic_(d == 1 ? 0 : ~std::uint64_t{0} / d + 1) {}
  std::uint64_t divisor() const { return divisor_; }
  std::uint64_t quotient(std::uint64_t x) const {
    return magic_ == 0 ? x : static_cast<std::uint64_t>((static_cast<Wide>(x) * magic_) >> 64);
  }
  std::uint64_t remainder(std::uint64_t x) const { return x - quotient(x) * divisor_; }

 private:
  __extension__ using Wide = unsigned __int128;
  std::uint64_t divisor_ = 1;
  std::uint64_t magic_ = 0;
};

/// One of `divisor` places for x, rotated by a hash of the quotient. (place, quotient) is a bijection of x that keeps
/// neighbours apart and spreads strides that are multiples of the divisor.
struct Placement {
  std::uint32_t place = 0;
  std::uint64_t quotient = 0;
};

/// Rotation of a row of places: the upper bits of a multiplicative hash.
inline std::uint64_t rotation(std::uint64_t quotient, const FastDivisor& places) {
  return places.remainder((quotient * 0x9E3779B97F4A7C15ull) >> 40);
}

inline Placement place_rotated(std::uint64_t x, const FastDivisor& places) {
  Placement p;
  p.quotient = places.quotient(x);
  std::uint64_t place = x - p.quotient * places.divisor() + rotation(p.quotient, places);
  if (place >= places.divisor()) place -= places.divisor();
  p.place = static_cast<std::uint32_t>(place);
  return p;
}

/// The x of a placement.
inline std::uint64_t unplace_rotated(Placement p, const FastDivisor& places) {
  const std::uint64_t turn = rotation(p.quotient, places);
  const std::uint64_t digit = p.place >= turn ? p.place - turn : p.place + places.divisor() - turn;
  return p.quotient * places.divisor() + digit;
}

class AddressMap {
 public:
  /// A slice and the line's number within it; the home partition is slice / slices_per_partition().
  struct Home {
    std::uint32_t slice = 0;
    std::uint32_t partition = 0;
    std::uint64_t index = 0;
  };
  struct Dram {
    std::uint32_t channel = 0;
    std::uint32_t bank = 0;  ///< its group is bank % bank_groups, so neighbouring chunks alternate between groups
    std::uint32_t row = 0;
    std::uint32_t line_in_row = 0;
  };

  explicit AddressMap(const GpuModel&);

  Home home(std::uint64_t line) const {
    Home h;
    std::uint64_t local = line;
    if (halves_) {
      // The parity replaces its lowest bit, so the remaining bits number the lines of one half without gaps.
      h.partition =
          static_cast<std::uint32_t>((static_cast<unsigned>(std::popcount(line & half_mask_)) & 1) ^ page_turn(line));
      const std::uint64_t below = (std::uint64_t{1} << half_bit_) - 1;
      local = (line & below) | ((line >> 1) & ~below);
    }
    const std::uint64_t offset = local & ((1u << chunk_bits_) - 1);
    const std::uint64_t chunk = local >> chunk_bits_;
    const std::uint64_t quotient = odd_.quotient(chunk);
    const std::uint64_t digit = odd_.remainder((chunk - quotient * odd_.divisor()) * digit_step_);
    const std::uint64_t high = quotient >> fold_bits_;
    const std::uint64_t low = (quotient ^ fold(high)) & ((std::uint64_t{1} << fold_bits_) - 1);
    const std::uint64_t unit = h.partition * units_per_partition_ + (digit << fold_bits_) + low;
    h.slice = static_cast<std::uint32_t>(units_per_slice_.quotient(unit));
    const std::uint64_t unit_in_slice = unit - h.slice * units_per_slice_.divisor();
    h.index = ((high * units_per_slice_.divisor() + unit_in_slice) << chunk_bits_) | offset;
    return h;
  }
  Dram dram(std::uint32_t slice, std::uint64_t index) const;
  std::uint32_t slices_per_partition() const { return slices_per_partition_; }

 private:
  static constexpr int kPageBits = 21 - 7;  ///< of a line number: the pages of 2 MB in which CUDA hands out memory

  /// Which way round the halves of a page are: physical pages come in no order that a program can see.
  static std::uint64_t page_turn(std::uint64_t line) {
    return (((line >> kPageBits) * 0x9E3779B97F4A7C15ull) >> 63) & 1;
  }
  /// XOR of all digits of fold_bits_ bits, by repeated halving.
  std::uint64_t fold(std::uint64_t x) const {
    for (int shift = fold_from_; shift >= fold_bits_; shift >>= 1) x ^= x >> shift;
    return x & ((std::uint64_t{1} << fold_bits_) - 1);
  }
  void order_units(std::uint32_t units);

  int chunk_bits_ = 0;           ///< of a line number: 2^chunk_bits_ neighbours stay together in one slice
  std::uint64_t half_mask_ = 0;  ///< line bits whose parity is the partition
  int half_bit_ = 0;             ///< the lowest of them, which the parity replaces
  bool halves_ = false;
  std::uint32_t slices_per_partition_ = 0;
  std::uint32_t units_per_partition_ = 0;  ///< a unit lies in one slice and one channel
  std::uint32_t digit_step_ = 1;           ///< distance of neighbouring chunks, in 2^fold_bits_ units
  int fold_bits_ = 0;                      ///< units of a partition = odd_ * 2^fold_bits_
  int fold_from_ = -1;                     ///< half of the digits in 64 bits, a power of two of them
  std::vector<std::uint8_t> unit_orders_;  ///< in the channel of each unit, for each value of the folded bits
  FastDivisor odd_, units_per_slice_, units_per_channel_, chunks_per_row_, banks_;
};

}  // namespace forewarp

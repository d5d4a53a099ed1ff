#include "timing/memory/address_map.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"

namespace forewarp {
namespace {

void require(bool ok, const std::string& what) {
  if (!ok) throw InputError("the GPU model's memory does not fit together: " + what, "correct the l2 and hbm sections");
}

}  // namespace

AddressMap::AddressMap(const GpuModel& model) {
  const auto& l2 = model.l2;
  const auto& hbm = model.hbm;
  require(l2.partitions == 1 || l2.partitions == 2, "partitions must be 1 or 2");
  require(l2.slices > 0 && l2.slices % l2.partitions == 0, "slices must be a multiple of partitions");
  require(hbm.channels > 0 && hbm.channels % l2.partitions == 0, "channels must be a multiple of partitions");
  require(std::has_single_bit(static_cast<unsigned>(l2.chunk_bytes)) && l2.chunk_bytes >= kLineBytes,
          "chunk_bytes must be a power of two of at least a line");
  chunk_bits_ = std::countr_zero(static_cast<unsigned>(l2.chunk_bytes / kLineBytes));
  require(hbm.row_bytes > 0 && hbm.row_bytes % l2.chunk_bytes == 0, "row_bytes must be a multiple of chunk_bytes");
  require(hbm.bank_groups > 0 && hbm.banks_per_group > 0, "banks must be positive");
  halves_ = l2.partitions == 2;
  for (const int bit : l2.partition_bits) half_mask_ |= (std::uint64_t{1} << bit) / kLineBytes;
  require(half_mask_ != 0, "partition_bits must name address bits above a line");
  half_bit_ = std::countr_zero(half_mask_);
  const auto slices = static_cast<std::uint32_t>(l2.slices), channels = static_cast<std::uint32_t>(hbm.channels);
  const std::uint32_t units = std::lcm(slices, channels);
  units_per_slice_ = FastDivisor(units / slices);
  units_per_channel_ = FastDivisor(units / channels);
  slices_per_partition_ = slices / static_cast<std::uint32_t>(l2.partitions);
  units_per_partition_ = units / static_cast<std::uint32_t>(l2.partitions);
  fold_bits_ = std::countr_zero(units_per_partition_);
  for (int shift = fold_bits_; shift > 0 && shift < 64; shift <<= 1) fold_from_ = shift;
  odd_ = FastDivisor(units_per_partition_ >> fold_bits_);
  // Neighbouring chunks go to units far apart, so that a few KiB lie in as many slices and channels.
  digit_step_ = std::max(1u, static_cast<std::uint32_t>(static_cast<double>(odd_.divisor()) * 0.618));
  while (std::gcd<std::uint64_t, std::uint64_t>(digit_step_, odd_.divisor()) != 1) --digit_step_;
  chunks_per_row_ = FastDivisor(static_cast<std::uint64_t>(hbm.row_bytes / kLineBytes) >> chunk_bits_);
  banks_ = FastDivisor(static_cast<std::uint64_t>(hbm.bank_groups) * static_cast<std::uint64_t>(hbm.banks_per_group));
  order_units(units);
}

/// Numbers the units of each channel in the order in which consecutive chunks come to them, for each way of folding, so
/// that what lies together in memory lies in banks that follow each other: reads within 128 KB are held up by refresh
/// together (validation/calibration/refresh.csv on H200: the ends of their waits keep a common phase, beyond 512 KB
/// none).
void AddressMap::order_units(std::uint32_t units) {
  const auto per_channel = static_cast<std::uint32_t>(units_per_channel_.divisor());
  const auto odd = static_cast<std::uint32_t>(odd_.divisor());
  require(per_channel <= 256, "at most 256 of the places that slices and channels have in common lie in a channel");
  std::vector<std::uint32_t> turn(odd);  // of a digit, in the order of chunks
  for (std::uint32_t i = 0; i < odd; ++i) turn[i * digit_step_ % odd] = i;
  const std::uint32_t lows = 1u << fold_bits_;
  unit_orders_.resize(std::size_t{units} << fold_bits_);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> visits(per_channel);
  for (std::uint32_t first = 0; first < units; first += per_channel) {
    for (std::uint32_t folded = 0; folded < lows; ++folded) {
      for (std::uint32_t i = 0; i < per_channel; ++i) {
        const std::uint32_t unit = (first + i) % units_per_partition_;
        visits[i] = {((unit & (lows - 1)) ^ folded) * odd + turn[unit >> fold_bits_], i};
      }
      std::sort(visits.begin(), visits.end());
      for (std::uint32_t i = 0; i < per_channel; ++i)
        unit_orders_[(std::size_t{first} << fold_bits_) + std::size_t{folded} * per_channel + visits[i].second] =
            static_cast<std::uint8_t>(i);
    }
  }
}

AddressMap::Dram AddressMap::dram(std::uint32_t slice, std::uint64_t index) const {
  const std::uint64_t chunk = index >> chunk_bits_;
  const std::uint64_t high = units_per_slice_.quotient(chunk);
  const std::uint64_t unit = slice * units_per_slice_.divisor() + (chunk - high * units_per_slice_.divisor());
  Dram d;
  d.channel = static_cast<std::uint32_t>(units_per_channel_.quotient(unit));
  const std::uint64_t per_channel = units_per_channel_.divisor();
  const std::uint64_t first = d.channel * per_channel;
  const std::uint64_t order = unit_orders_[(first << fold_bits_) + fold(high) * per_channel + (unit - first)];
  // Neighbouring chunks of a channel lie in different banks; those of one row are bank after bank apart. So single
  // pieces of chunks open a row each, however near they are: 64 bytes at strides of 256 to 4096 bytes come at 35 to 43
  // a ns (kernels/micro dram_strided on H200), the rate of activations.
  const std::uint64_t chunk_in_channel = high * per_channel + order;
  const Placement p = place_rotated(chunk_in_channel, banks_);
  d.bank = p.place;
  const std::uint64_t row = chunks_per_row_.quotient(p.quotient);
  const std::uint64_t chunk_in_row = p.quotient - row * chunks_per_row_.divisor();
  d.row = static_cast<std::uint32_t>(row);
  d.line_in_row = static_cast<std::uint32_t>((chunk_in_row << chunk_bits_) | (index & ((1u << chunk_bits_) - 1)));
  return d;
}

}  // namespace forewarp

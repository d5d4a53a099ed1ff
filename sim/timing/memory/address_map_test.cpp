#include "timing/memory/address_map.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "timing/memory/memory_test_model.h"

using namespace forewarp;

namespace {

GpuModel shaped(int sm, int slices, int channels) {
  GpuModel m = test_model();
  m.sm = sm;
  if (sm >= 90) m.l2.partition_bits = {12, 13, 16, 17, 19};
  m.l2.slices = slices;
  m.hbm.channels = channels;
  return m;
}

/// Largest number of hits of one bin over the mean.
double unevenness(const std::vector<int>& bins) {
  double sum = 0;
  for (const int b : bins) sum += b;
  return *std::max_element(bins.begin(), bins.end()) * static_cast<double>(bins.size()) / sum;
}

}  // namespace

TEST_CASE("division by multiplication is exact") {
  for (const std::uint64_t d : {1ull, 2ull, 3ull, 5ull, 15ull, 80ull, 267ull, 320ull, 4096ull}) {
    const FastDivisor f(d);
    for (std::uint64_t x = 0; x < 2000; ++x) REQUIRE(f.quotient(x) == x / d);
    for (std::uint64_t x = (1ull << 43) - 500; x < (1ull << 43) + 500; ++x) {
      REQUIRE(f.quotient(x) == x / d);
      REQUIRE(f.remainder(x) == x % d);
    }
  }
}

TEST_CASE("rotated placement is a bijection") {
  for (const std::uint64_t d : {1ull, 16ull, 48ull, 267ull}) {
    const FastDivisor f(d);
    for (std::uint64_t x = 0; x < 5000; ++x) {
      const Placement p = place_rotated(x, f);
      REQUIRE(p.place < d);
      REQUIRE(unplace_rotated(p, f) == x);
    }
  }
}

TEST_CASE("halves follow the published address bits") {
  const AddressMap a100(shaped(80, 80, 80)), h100(shaped(90, 96, 160));
  const auto bit = [](std::uint64_t address, int b) { return static_cast<std::uint32_t>(address >> b & 1); };
  for (std::uint64_t line = 0; line < (1u << 18); line += 37) {
    const std::uint64_t a = line * kLineBytes, page = line >> 14 << 14;
    REQUIRE(a100.home(line).partition == (a100.home(page).partition ^ bit(a, 13) ^ bit(a, 17) ^ bit(a, 20)));
    REQUIRE(h100.home(line).partition ==
            (h100.home(page).partition ^ bit(a, 12) ^ bit(a, 13) ^ bit(a, 16) ^ bit(a, 17) ^ bit(a, 19)));
    REQUIRE(a100.home(line).slice / a100.slices_per_partition() == a100.home(line).partition);
  }
}

TEST_CASE("every line has a place of its own in L2 and in DRAM") {
  for (const auto& m : {shaped(80, 80, 80), shaped(90, 96, 160), shaped(90, 96, 192), shaped(90, 64, 128)}) {
    const AddressMap map(m);
    std::set<std::pair<std::uint32_t, std::uint64_t>> homes;
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> cells;
    const std::uint64_t first = 0x7f0000000000ull / kLineBytes, lines = 1 << 16;
    for (std::uint64_t line = first; line < first + lines; ++line) {
      const auto h = map.home(line);
      REQUIRE(h.slice < static_cast<std::uint32_t>(m.l2.slices));
      homes.emplace(h.slice, h.index);
      const auto d = map.dram(h.slice, h.index);
      REQUIRE(d.channel < static_cast<std::uint32_t>(m.hbm.channels));
      REQUIRE(d.bank < 16);
      // A channel belongs to one partition, as its slices do.
      REQUIRE(d.channel / static_cast<std::uint32_t>(m.hbm.channels / 2) == h.partition);
      cells.emplace(d.channel, d.bank, d.row, d.line_in_row);
    }
    CHECK(homes.size() == lines);
    CHECK(cells.size() == lines);
  }
}

TEST_CASE("pairs of lines share a DRAM row, neighbouring pairs do not, and streams cover all slices evenly") {
  const GpuModel m = test_model();
  const AddressMap map(m);
  for (std::uint64_t line = 0; line < 4096; line += 2) {
    const auto h0 = map.home(line);
    const auto d0 = map.dram(h0.slice, h0.index);
    const auto h = map.home(line + 1);
    const auto d = map.dram(h.slice, h.index);
    REQUIRE(std::tie(d.channel, d.bank, d.row) == std::tie(d0.channel, d0.bank, d0.row));
    const auto next_home = map.home(line + 2);
    const auto next = map.dram(next_home.slice, next_home.index);
    REQUIRE(std::tie(next.channel, next.bank, next.row) != std::tie(d0.channel, d0.bank, d0.row));
  }
  std::vector<int> slices(80), channels(80);
  for (std::uint64_t line = 0; line < 80 * 8 * 16; ++line) {
    const auto h = map.home(line);
    ++slices[h.slice];
    ++channels[map.dram(h.slice, h.index).channel];
  }
  CHECK(unevenness(slices) < 1.15);
  CHECK(unevenness(channels) < 1.15);
}

TEST_CASE("what lies together lies in banks that follow each other") {
  GpuModel m = shaped(90, 96, 188);
  m.hbm.row_bytes = 256;
  const AddressMap map(m);
  const std::uint32_t banks = 16;
  std::vector<int> apart(banks);  // of the chunks of a channel, as they come
  std::vector<std::uint32_t> last(188, banks);
  const std::uint64_t first = 0x7f1234000000ull / kLineBytes;
  for (std::uint64_t line = first; line < first + (1u << 16); line += 2) {
    const auto h = map.home(line);
    const auto d = map.dram(h.slice, h.index);
    if (last[d.channel] != banks) ++apart[(d.bank + banks - last[d.channel]) % banks];
    last[d.channel] = d.bank;
  }
  CHECK(apart[1] * 10 > 9 * std::accumulate(apart.begin(), apart.end(), 0));
}

TEST_CASE("power-of-two strides spread over slices, channels, banks and sets") {
  for (const auto& m : {shaped(80, 80, 80), shaped(90, 96, 160), shaped(90, 96, 192), shaped(80, 64, 64)}) {
    const AddressMap map(m);
    const FastDivisor sets(256);
    for (int shift = 0; shift <= 16; ++shift) {  // 128 B to 8 MB
      CAPTURE(m.l2.slices, m.hbm.channels, shift);
      std::vector<int> slices(static_cast<std::size_t>(m.l2.slices)),
          channels(static_cast<std::size_t>(m.hbm.channels)), banks(16), places(256);
      const std::uint64_t base = 0x7f1234000000ull / kLineBytes;
      for (std::uint64_t i = 0; i < (1u << 18); ++i) {
        const auto h = map.home(base + (i << shift));
        const auto d = map.dram(h.slice, h.index);
        ++slices[h.slice];
        ++channels[d.channel];
        ++banks[d.bank];
        ++places[place_rotated(h.index, sets).place];
      }
      CHECK(unevenness(slices) < 1.35);
      CHECK(unevenness(channels) < 1.45);
      CHECK(unevenness(banks) < 1.35);
      CHECK(unevenness(places) < 1.5);
    }
  }
}

TEST_CASE("a model whose memory does not fit together is refused") {
  CHECK_THROWS_AS(AddressMap(shaped(80, 81, 80)), InputError);
  CHECK_THROWS_AS(AddressMap(shaped(80, 80, 81)), InputError);
}

#include "timing/skipped_accesses.h"

#include <catch2/catch.hpp>

#include "timing/memory_test_model.h"

using namespace forewarp;

namespace {

constexpr std::uint32_t kLines = 64;

/// Lines read anew when `sm` reads what SMs have walked over before.
int read_again(const std::vector<std::uint16_t>& walkers, std::uint16_t sm) {
  GpuModel m = test_model();
  m.l2.replicate_far_lines = true;
  MemorySystem memory(m);
  SkippedAccesses skipped(memory);
  for (const std::uint16_t walker : walkers) skipped.add(0, kLineBytes, 15, false, walker, kLines);
  CHECK(skipped.apply(~std::uint64_t{0}).read == kLines * 4);  // however many walk over it
  const MemoryCounters before = memory.counters();
  std::vector<MemoryReply> replies;
  Cycle now = 0;
  for (std::uint32_t line = 0; line < kLines; ++line) {
    MemoryRequest r;
    r.line = line;
    r.sm = sm;
    r.sectors = 15;
    while (!memory.accepts(sm, now)) memory.run_until(now = memory.next_event(), replies);
    memory.push(r, now);
  }
  while (memory.next_event() != kNever) memory.run_until(memory.next_event(), replies);
  CHECK(memory.counters().dram_read_bytes == before.dram_read_bytes);
  return static_cast<int>(memory.counters().miss_sectors - before.miss_sectors) / 4;
}

/// The first SM near the other partition than SM 0.
std::uint16_t across() {
  MemorySystem memory(test_model());
  std::uint16_t sm = 1;
  while (memory.partition(sm) == memory.partition(0)) ++sm;
  return sm;
}

}  // namespace

TEST_CASE("what SMs of both partitions walk over has a copy in each afterwards") {
  CHECK(read_again({0}, 0) == 0);
  CHECK(read_again({0}, across()) > static_cast<int>(kLines) / 4);  // lines that are far from it
  CHECK(read_again({0, across()}, across()) == 0);
  CHECK(read_again({0, across()}, 0) == 0);
}

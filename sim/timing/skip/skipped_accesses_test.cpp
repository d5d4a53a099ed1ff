#include "timing/skip/skipped_accesses.h"

#include <catch2/catch.hpp>

#include "timing/memory/memory_test_model.h"

using namespace forewarp;

namespace {

constexpr std::uint32_t kLines = 64;

/// Lines read anew when `sm` reads what SMs have walked over before.
int read_again(const std::vector<std::uint16_t>& walkers, std::uint16_t sm) {
  GpuModel m = test_model();
  m.l2.replicate_far_lines = true;
  MemorySystem memory(m);
  Crew crew(1);
  SkippedAccesses skipped(memory, crew);
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

TEST_CASE("however many threads touch L2 for skipped iterations, it moves the same") {
  const auto moved = [](unsigned threads) {
    MemorySystem memory(test_model());
    Crew crew(threads);
    SkippedAccesses skipped(memory, crew);
    for (std::uint16_t walker = 0; walker < 108; ++walker)
      for (std::uint64_t line = 0; line < 20; ++line)
        skipped.add((std::uint64_t{walker} * 4096 + line * 32) * kLineBytes, kLineBytes, 15, line % 2 != 0, walker, 30);
    const L2Traffic t = skipped.apply(~std::uint64_t{0});
    return std::vector{t.read, t.written, t.missed, t.fetched, t.fabric_hits, t.fabric_misses, memory.dirty_bytes()};
  };
  const std::vector<std::uint64_t> one = moved(1);
  CHECK(one.front() > 0);
  CHECK(moved(2) == one);
  CHECK(moved(4) == one);
}

TEST_CASE("what SMs of both partitions walk over has a copy in each afterwards") {
  CHECK(read_again({0}, 0) == 0);
  CHECK(read_again({0}, across()) > static_cast<int>(kLines) / 4);  // lines that are far from it
  CHECK(read_again({0, across()}, across()) == 0);
  CHECK(read_again({0, across()}, 0) == 0);
}

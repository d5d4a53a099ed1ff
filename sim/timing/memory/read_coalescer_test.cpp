#include "timing/memory/read_coalescer.h"

#include <catch2/catch.hpp>
#include <vector>

#include "timing/memory/address_map.h"
#include "timing/memory/memory.h"
#include "timing/memory/memory_test_model.h"

using namespace forewarp;
using Outcome = ReadCoalescer::Outcome;

TEST_CASE("reads of a line by one GPC join the first, up to a number") {
  ReadCoalescer c(3);
  CHECK(c.read(7, false, 0, 0, 15, 100, 10).outcome == Outcome::First);
  const auto joined = c.read(7, false, 0, 1, 15, 101, 20);
  CHECK(joined.outcome == Outcome::Waits);
  CHECK(joined.leader == 100);
  CHECK(c.read(7, false, 1, 2, 15, 102, 20).outcome == Outcome::First);  // another GPC
  CHECK(c.read(7, true, 0, 3, 15, 103, 20).outcome == Outcome::First);   // the copy of the other partition's line
  c.answer(7, false, 0, 100, 50, 90);
  const auto late = c.read(7, false, 0, 4, 15, 104, 49);
  CHECK(late.outcome == Outcome::Answered);
  CHECK(late.response == 90);
  CHECK(c.read(7, false, 0, 5, 15, 105, 49).outcome == Outcome::First);  // three already
}

TEST_CASE("reads join for the same sectors alone, and not when the time is over") {
  ReadCoalescer c(4);
  c.read(7, false, 0, 0, 3, 100, 10);
  CHECK(c.read(7, false, 0, 1, 1, 101, 11).outcome == Outcome::First);  // fewer: it ends the merging ...
  CHECK(c.read(7, false, 0, 2, 1, 102, 12).outcome == Outcome::First);  // ... and is not joined itself
  CHECK(c.read(7, false, 0, 3, 1, 103, 13).outcome == Outcome::Waits);
  c.answer(7, false, 0, 100, 60, 90);  // not the first any more
  CHECK(c.read(7, false, 0, 4, 1, 104, 70).outcome == Outcome::Waits);
  c.answer(7, false, 0, 102, 80, 90);
  CHECK(c.read(7, false, 0, 5, 1, 105, 80).outcome == Outcome::First);
  ReadCoalescer over(4);
  over.read(7, false, 0, 0, 3, 100, 10);
  over.read(7, false, 0, 1, 12, 101, 11);
  over.answer(7, false, 0, 100, 60, 90);  // comes too late to open it again
  CHECK(over.read(7, false, 0, 2, 3, 102, 20).outcome == Outcome::First);
  ReadCoalescer none(1);
  none.read(7, false, 0, 0, 15, 100, 10);
  CHECK(none.read(7, false, 0, 1, 15, 101, 10).outcome == Outcome::First);
}

TEST_CASE("a line goes to four SMs in a packet, half a line to two, a sector to one") {
  const auto packets = [](std::uint8_t sectors, std::vector<std::uint16_t> sms) {
    ReadCoalescer c(4);
    int count = 0;
    for (std::size_t i = 0; i < sms.size(); ++i)
      count += !c.read(7, false, 0, sms[i], sectors, static_cast<std::uint32_t>(i), 10).shares_packet;
    return count;
  };
  CHECK(packets(15, {0, 1, 2, 3}) == 1);
  CHECK(packets(7, {0, 1, 2, 3}) == 2);
  CHECK(packets(12, {0, 1, 2, 3}) == 2);
  CHECK(packets(3, {0, 1}) == 1);
  CHECK(packets(8, {0, 1, 2, 3}) == 4);
  CHECK(packets(15, {0, 0}) == 2);  // one SM's two reads
  CHECK(packets(15, {0, 1, 0, 1}) == 2);
}

TEST_CASE("merged reads are looked up once and answered all") {
  GpuModel m = test_model();
  m.l2.coalescer_requests = 4;
  MemorySystem memory(m);
  for (std::uint16_t sm = 0; sm < 6; ++sm) {  // of one GPC
    MemoryRequest r;
    r.line = 99;
    r.sectors = 15;
    r.sm = sm;
    memory.push(r, 10);
  }
  std::vector<MemoryReply> replies;
  drain(memory, replies);
  CHECK(replies.size() == 6);
  CHECK(memory.counters().merged_requests == 4);
  CHECK(memory.counters().merged_sectors == 16);
  CHECK(memory.counters().hit_sectors + memory.counters().miss_sectors == 8);
  CHECK(memory.counters().read_replies == 6);
}

TEST_CASE("reads meet the coalescer when those before them have been looked up") {
  const auto merged = [](int cycles) {
    GpuModel m = one_partition_model();
    m.l2.coalescer_requests = 4;
    m.l2.coalescer_cycles = cycles;
    m.l2.slice_bytes_per_cycle = 8;  // a line in 16 cycles
    const AddressMap map(m);
    std::uint64_t other = 1;
    while (map.home(other).slice != map.home(0).slice) ++other;
    MemorySystem memory(m, MemorySystem::L2Start::Empty);
    const auto read = [&](std::uint64_t line, std::uint16_t sm, Cycle now) {
      memory.touch(line, 15, RequestKind::Read, sm);
      MemoryRequest r;
      r.line = line;
      r.sectors = 15;
      r.sm = sm;
      memory.push(r, now);
    };
    // The second SM comes a cycle after the first, but behind two more lines.
    read(0, 0, 10);
    read(other, 2, 11);
    read(other, 4, 12);
    read(0, 1, 13);
    std::vector<MemoryReply> replies;
    drain(memory, replies);
    CHECK(replies.size() == 4);
    return memory.counters().merged_requests;
  };
  CHECK(merged(60) == 2);
  CHECK(merged(1) == 0);
}

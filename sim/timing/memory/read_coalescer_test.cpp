#include "timing/memory/read_coalescer.h"

#include <catch2/catch.hpp>

#include "timing/memory/memory.h"
#include "timing/memory/memory_test_model.h"

using namespace forewarp;
using Outcome = ReadCoalescer::Outcome;

TEST_CASE("reads of a line by one GPC join the first, up to a number") {
  ReadCoalescer c(3);
  CHECK(c.read(7, false, 0, 15, 100, 10).outcome == Outcome::First);
  const auto joined = c.read(7, false, 0, 3, 101, 20);
  CHECK(joined.outcome == Outcome::Waits);
  CHECK(joined.leader == 100);
  CHECK(c.read(7, false, 1, 15, 102, 20).outcome == Outcome::First);  // another GPC
  CHECK(c.read(7, true, 0, 15, 103, 20).outcome == Outcome::First);   // the copy of the other partition's line
  c.answer(7, false, 0, 100, 50, 90);
  const auto late = c.read(7, false, 0, 15, 104, 49);
  CHECK(late.outcome == Outcome::Answered);
  CHECK(late.response == 90);
  CHECK(c.read(7, false, 0, 15, 105, 49).outcome == Outcome::First);  // three already
}

TEST_CASE("reads do not join for sectors not asked for, nor when the time is over") {
  ReadCoalescer c(4);
  c.read(7, false, 0, 1, 100, 10);
  CHECK(c.read(7, false, 0, 3, 101, 11).outcome == Outcome::First);
  c.answer(7, false, 0, 100, 60, 90);  // not the first any more
  CHECK(c.read(7, false, 0, 3, 102, 70).outcome == Outcome::Waits);
  c.answer(7, false, 0, 101, 80, 90);
  CHECK(c.read(7, false, 0, 3, 103, 80).outcome == Outcome::First);
  ReadCoalescer none(1);
  none.read(7, false, 0, 15, 100, 10);
  CHECK(none.read(7, false, 0, 15, 101, 10).outcome == Outcome::First);
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

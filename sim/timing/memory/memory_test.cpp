// The memory system request by request: latencies to the cycle, merging, write-back, atomics, copies, touch.
#include "timing/memory/memory.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.h"
#include "timing/memory/address_map.h"
#include "timing/memory/l2_traffic.h"
#include "timing/memory/memory_test_model.h"

using namespace forewarp;

namespace {

GpuModel quiet() {
  GpuModel m = test_model();
  m.hbm.t_refi = 0;
  return m;
}

MemoryRequest request(std::uint64_t line, std::uint8_t sectors = 1, RequestKind kind = RequestKind::Read,
                      std::uint16_t sm = 0) {
  MemoryRequest r;
  r.line = line;
  r.sectors = sectors;
  r.kind = kind;
  r.sm = sm;
  return r;
}

/// The first line from `from` whose home is partition 0 (near SM 0) or 1 (far).
std::uint64_t line_in(const GpuModel& m, std::uint32_t partition, std::uint64_t from = 0) {
  const AddressMap map(m);
  while (map.home(from).partition != partition) ++from;
  return from;
}

/// A line of the same bank as `line`, but another row.
std::uint64_t same_bank(const GpuModel& m, std::uint64_t line) {
  const AddressMap map(m);
  const auto h = map.home(line);
  const auto d = map.dram(h.slice, h.index);
  for (std::uint64_t other = line + 1;; ++other) {
    const auto oh = map.home(other);
    const auto o = map.dram(oh.slice, oh.index);
    if (o.channel == d.channel && o.bank == d.bank && o.row != d.row) return other;
  }
}

constexpr Cycle kHit = 70 + 80 + 50;               // request, slice, response
constexpr Cycle kMiss = kHit + 101 + 14 + 14 + 4;  // controller, tRCD, tCL, burst
constexpr Cycle kFar = 181;

}  // namespace

TEST_CASE("a sample of slices has its share of the lines and of what is dirty in them") {
  MemorySystem memory(quiet());
  constexpr std::uint64_t kAll = 80 * 64;
  std::vector<std::uint64_t> lines(kAll);
  std::iota(lines.begin(), lines.end(), std::uint64_t{0});
  std::vector<LinePlace> all, some;
  CHECK(memory.pick(lines, 1, all).size() == kAll);
  const std::span<const LinePlace> sample = memory.pick(lines, 8, some);  // ten of eighty
  CHECK(sample.size() == kAll / 8);
  for (const LinePlace& place : sample) {
    CHECK(place.slice == all[place.which].slice);
    CHECK(place.index == all[place.which].index);
    memory.touch(place, 15, RequestKind::Write, 0, true, 0);
  }
  CHECK(memory.dirty_bytes(8) == sample.size() * kLineBytes);
  CHECK(memory.dirty_bytes() == sample.size() * kLineBytes);
}

TEST_CASE("near reads take the sum of their parts") {
  const GpuModel m = quiet();
  const std::uint64_t line = line_in(m, 0);
  MemorySystem memory(m);
  CHECK(memory.next_event() == kNever);
  CHECK(latency_of(memory, request(line), 1000) == kMiss);
  CHECK(latency_of(memory, request(line), 2000) == kHit);
  CHECK(latency_of(memory, request(line, 2), 3000) == kHit);                     // came along in the 64 B burst
  CHECK(latency_of(memory, request(line, 4), 4000) == kMiss - 14);               // the row is open
  CHECK(latency_of(memory, request(line, 15), 5000) == kHit + 2);                // three more sectors at 64 B a cycle
  CHECK(latency_of(memory, request(same_bank(m, line)), 6000) == kMiss + 14);    // precharge
  CHECK(latency_of(memory, request(line + 1, 15), 7000) == kMiss + 14 + 6 + 2);  // two bursts of one bank: tCCD_L
  const MemoryCounters& c = memory.counters();
  CHECK(c.read_requests == 7);
  CHECK(c.read_sectors == 5 + 4 + 4);
  CHECK(c.hit_sectors == 2 + 4);
  CHECK(c.miss_sectors == 3 * 2 + 4);  // single sectors bring their neighbours
  CHECK(c.dram_read_bytes == 5 * 64);
  CHECK(c.row_hits == 2);
  CHECK(c.row_misses == 1);
  CHECK(c.row_conflicts == 2);
  CHECK(c.read_replies == 7);
  CHECK(c.read_latency_cycles == 3 * kHit + 2 + kMiss + (kMiss - 14) + (kMiss + 14) + (kMiss + 22));
  CHECK(c.fabric_sectors == 0);
}

TEST_CASE("far reads take far_cycles more") {
  GpuModel m = quiet();
  const std::uint64_t line = line_in(m, 1);
  SECTION("and leave a copy on the near side") {
    MemorySystem memory(m);
    CHECK(latency_of(memory, request(line), 1000) == kMiss + kFar);
    CHECK(latency_of(memory, request(line), 2000) == kHit);
    CHECK(latency_of(memory, request(line, 1, RequestKind::Read, 107), 3000) == kHit);  // near for the other side
    CHECK(latency_of(memory, request(line, 2), 4000) == kHit);                          // came along
    CHECK(memory.counters().fabric_sectors == 2);
    CHECK(memory.counters().fabric_hit_sectors == 0);
    CHECK(memory.counters().fabric_miss_sectors == 2);
    CHECK(memory.counters().hit_sectors == 3);
    CHECK(memory.counters().miss_sectors == 2);
    CHECK(memory.counters().dram_read_bytes == 64);
  }
  SECTION("every time where no copies are kept") {
    m.l2.replicate_far_lines = false;
    MemorySystem memory(m);
    CHECK(latency_of(memory, request(line), 1000) == kMiss + kFar);
    CHECK(latency_of(memory, request(line), 2000) == kHit + kFar);
    CHECK(latency_of(memory, request(line, 1, RequestKind::Read, 107), 3000) == kHit);
    CHECK(memory.counters().fabric_sectors == 2);
  }
  SECTION("and one partition has no far side") {
    GpuModel one = one_partition_model();
    one.hbm.t_refi = 0;
    MemorySystem memory(one);
    CHECK(latency_of(memory, request(line), 1000) == kMiss);
  }
}

TEST_CASE("a write without room at the fabric holds up all that its CPC writes, and nobody else") {
  GpuModel m = quiet();
  m.crossbar.fabric_bytes_per_cycle = 32;  // a line in four cycles; an SM sends one in two
  const std::uint64_t near = line_in(m, 0);
  constexpr std::uint32_t kFarWrites = 40, kOwn = 100, kOther = 101;
  std::vector<Cycle> acknowledged(kOther + 1, 0);
  MemorySystem memory(m);
  const auto run = [&](Cycle until) {
    std::vector<MemoryReply> replies;
    for (Cycle at = memory.next_event(); at <= until && at != kNever; at = memory.next_event()) {
      replies.clear();
      memory.run_until(at, replies);
      for (const MemoryReply& r : replies) acknowledged[r.tag] = at;
    }
  };
  const auto push = [&](std::uint64_t line, std::uint16_t sm, std::uint32_t tag, Cycle at) {
    run(at);
    MemoryRequest r = request(line, 15, RequestKind::Write, sm);
    r.tag = tag;
    memory.push(r, at);
  };
  Cycle now = 1000;
  std::uint64_t far = line_in(m, 1);
  for (std::uint32_t i = 0; i < kFarWrites; ++i, now += 2, far = line_in(m, 1, far + 1)) push(far, 0, i, now);
  push(near, 0, kOwn, now);
  push(line_in(m, 0, near + 1), 17, kOther, now);
  run(kNever);
  CHECK(acknowledged[kOther] == now + kHit);
  // It leaves once the last far write has found room, which is when the ninth before it has gone.
  const Cycle gone = 1000 + (kFarWrites - static_cast<Cycle>(m.crossbar.cpc_fabric_writes) - 1) * 4;
  CHECK(acknowledged[kOwn] >= gone + kHit);
  CHECK(acknowledged[kOwn] <= gone + kHit + 8);
  CHECK(acknowledged[kFarWrites - 1] >= 1000 + kFarWrites * 4 + kHit + kFar - 4);
}

TEST_CASE("writes are acknowledged after the slice, atomics return with data") {
  const GpuModel m = quiet();
  const std::uint64_t near = line_in(m, 0), far = line_in(m, 1);
  MemorySystem memory(m);
  CHECK(latency_of(memory, request(near, 15, RequestKind::Write), 1000) == kHit);
  CHECK(latency_of(memory, request(far, 15, RequestKind::Write), 2000) == kHit + kFar);
  CHECK(latency_of(memory, request(near, 1, RequestKind::Atomic), 3000) == kHit);
  CHECK(latency_of(memory, request(far, 1, RequestKind::Reduction), 4000) == kHit + kFar);
  CHECK(latency_of(memory, request(far, 1, RequestKind::Atomic), 5000) == kHit + kFar);
  CHECK(latency_of(memory, request(line_in(m, 0, 1 << 20), 1, RequestKind::Atomic), 6000) == kMiss);
  const MemoryCounters& c = memory.counters();
  CHECK(c.write_requests == 2);
  CHECK(c.write_sectors == 8);
  CHECK(c.atomic_requests == 4);
  CHECK(c.reduction_requests == 1);
  CHECK(c.atomic_sectors == 3);
  CHECK(c.reduction_sectors == 1);
  CHECK(memory.dirty_bytes() == 9 * 32);
}

TEST_CASE("a write to the far side leaves a copy on the near one") {
  const GpuModel m = quiet();
  const std::uint64_t far = line_in(m, 1);
  MemorySystem memory(m);
  latency_of(memory, request(far, 15, RequestKind::Write), 1000);
  CHECK(latency_of(memory, request(far, 15), 2000) == kHit + 2);  // four sectors
  CHECK(memory.dirty_bytes() == kLineBytes);
  MemoryRequest part = request(far, 15, RequestKind::Write);
  part.full_sectors = false;
  latency_of(memory, part, 3000);
  CHECK(latency_of(memory, request(far, 15), 4000) > kHit + kFar);  // what is written in part is merged at home
  MemorySystem touched(m);
  touched.touch(far, 15, RequestKind::Write, 0);
  CHECK(latency_of(touched, request(far, 15), 1000) == kHit + 2);
}

TEST_CASE("what is changed passes by L2 as its request would: at home, dirty, without a copy") {
  const GpuModel m = quiet();
  const std::uint64_t far = line_in(m, 1);
  for (const RequestKind kind : {RequestKind::Reduction, RequestKind::Atomic}) {
    MemorySystem touched(m);
    const L2Traffic first = touched.touch(far, 0b0001, kind, 0);
    CHECK(first.read >= 1);
    CHECK(first.missed == 1);
    CHECK(touched.dirty_bytes() == kSectorBytes);
    CHECK(touched.touch(far, 0b0001, kind, 0).missed == 0);
    CHECK(touched.touch(far, 0b0001, RequestKind::Read, 0).missed == 1);  // there was no copy
    CHECK(touched.dirty_bytes() == kSectorBytes);
    CHECK(touched.touch(far, 0b0001, kind, 107).missed == 0);
    CHECK(touched.touch(far, 0b0001, RequestKind::Read, 0).missed == 1);  // and is taken away
  }
}

TEST_CASE("a write takes away the copy of the other side") {
  const GpuModel m = quiet();
  const std::uint64_t far = line_in(m, 1);
  MemorySystem memory(m);
  latency_of(memory, request(far), 1000);
  CHECK(latency_of(memory, request(far), 2000) == kHit);
  latency_of(memory, request(far, 1, RequestKind::Write, 107), 3000);
  CHECK(latency_of(memory, request(far), 4000) == kHit + kFar);
  latency_of(memory, request(far, 1, RequestKind::Reduction, 107), 5000);
  CHECK(latency_of(memory, request(far), 6000) == kHit + kFar);
}

TEST_CASE("simultaneous misses of all SMs become one DRAM read") {
  const GpuModel m = quiet();
  for (const std::uint32_t partition : {0u, 1u}) {
    const std::uint64_t line = line_in(m, partition);
    MemorySystem memory(m);
    for (std::uint16_t sm = 0; sm < 108; ++sm) memory.push(request(line, 15, RequestKind::Read, sm), 0);
    std::vector<MemoryReply> replies;
    drain(memory, replies);
    CHECK(replies.size() == 108);
    CHECK(memory.counters().dram_read_bytes == 128);
    CHECK(memory.counters().fabric_sectors == 4);  // once for all SMs of the other side
    CHECK(memory.counters().miss_sectors == 8);
    CHECK(memory.counters().hit_sectors == 106 * 4);
  }
}

TEST_CASE("atomics on one line follow each other, those on one word at its own interval") {
  GpuModel m = quiet();
  m.l2.atomic_interval = 2;
  m.l2.atomic_word_interval = 3;
  const std::uint64_t line = line_in(m, 0);
  const auto last = [&](int requests, std::uint8_t sectors, std::uint8_t rounds) {
    MemorySystem memory(m);
    latency_of(memory, request(line, 15), 0);
    std::vector<MemoryReply> replies;
    memory.run_until(1000, replies);
    for (int i = 0; i < requests; ++i) {
      MemoryRequest r = request(line, sectors, RequestKind::Reduction, static_cast<std::uint16_t>(i));
      r.rounds = rounds;
      memory.push(r, 1000);
    }
    return drain(memory, replies) - 1000;
  };
  CHECK(last(1, 1, 1) == kHit);
  CHECK(last(50, 1, 1) == kHit + 49 * 3);
  CHECK(last(50, 3, 1) == kHit + 50 * 3 - 2);
  CHECK(last(50, 15, 1) == kHit + 50 * 5 - 2);  // a sector a pass after the first
  CHECK(last(50, 1, 8) == kHit + 50 * 24 - 2);  // eight lanes on one word
}

TEST_CASE("lanes that meet on one word are requests of their own to L2") {
  MemorySystem memory(quiet());
  const std::uint64_t line = line_in(quiet(), 0);
  latency_of(memory, request(line, 15), 0);
  std::vector<MemoryReply> replies;
  memory.run_until(1000, replies);
  const MemoryCounters before = memory.counters();
  MemoryRequest r = request(line, 3, RequestKind::Reduction);
  r.rounds = 8;
  memory.push(r, 1000);
  drain(memory, replies);
  const MemoryCounters& after = memory.counters();
  CHECK(after.atomic_requests == 8);
  CHECK(after.reduction_sectors == 16);
  CHECK(after.hit_sectors - before.hit_sectors == 16);
}

TEST_CASE("GPCs, what is below their ports and DRAM may run apart, an answer's way ahead of each other") {
  GpuModel m = quiet();
  m.hbm.controller_ns = 100;
  MemorySystem together(m), apart(m);
  std::vector<MemoryReply> one, other;
  const Cycle ahead = together.answer_cycles();
  CHECK(ahead == 50);
  CHECK(together.channel_cycles() == 50);
  Cycle now = 0;
  for (std::uint64_t i = 0; i < 200; ++i, now += ahead) {
    const auto sm = static_cast<std::uint16_t>(i * 37 % 108);
    const RequestKind kind = i % 3 == 0 ? RequestKind::Write : RequestKind::Read;
    together.run_until(now, one);
    together.push(request(i * 5, 15, kind, sm), now);
    // What is below is behind by as much as an answer takes; the GPCs have theirs up to now.
    for (int g = 0; g < apart.gpcs(); ++g) apart.take_answers(g, now, other);
    apart.push(request(i * 5, 15, kind, sm), now);
    for (std::size_t group = 0; group < apart.channel_groups(); ++group) apart.run_channels(group, now);
    apart.run_below(now);
    apart.exchange();
  }
  drain(together, one);
  drain(apart, other);
  REQUIRE(one.size() == 200);
  REQUIRE(other.size() == 200);
  CHECK(together.counters().read_latency_cycles == apart.counters().read_latency_cycles);
  CHECK(together.counters().hit_sectors == apart.counters().hit_sectors);
}

TEST_CASE("a slice takes what is written flit by flit") {
  GpuModel m = quiet();
  m.crossbar.slice_write_bytes_per_cycle = 8;  // a line in 16 cycles, of whose five flits one is the header
  const auto spacing = [&](std::uint8_t sectors, bool full) {
    MemorySystem memory(m);
    std::vector<MemoryReply> replies;
    std::vector<Cycle> done;
    for (std::uint16_t sm = 0; sm < 16; sm = static_cast<std::uint16_t>(sm + 2)) {
      MemoryRequest write = request(0, sectors, RequestKind::Write, sm);
      write.full_sectors = full;
      memory.push(write, 0);
    }
    for (Cycle at = memory.next_event(); at != kNever; at = memory.next_event()) {
      memory.run_until(at, replies);
      done.resize(replies.size(), at);
    }
    REQUIRE(done.size() == 8);
    return done.back() - done.front();
  };
  CHECK(spacing(15, true) == 7 * 16);
  CHECK(spacing(1, true) == Approx(7 * 6.4).margin(1));
  CHECK(spacing(1, false) == Approx(7 * 9.6).margin(1));
}

TEST_CASE("dirty data goes to DRAM when the footprint exceeds L2, and only then") {
  GpuModel m = quiet();
  m.l2.replicate_far_lines = false;          // copies of what is written would take places, too
  const std::uint64_t lines = 80 * 16 * 16;  // sixteen sets a slice
  m.l2.bytes = static_cast<std::int64_t>(lines) * kLineBytes;
  for (const std::uint64_t times : {1u, 4u}) {
    MemorySystem memory(m);
    const std::uint64_t total = times == 1 ? lines / 2 : lines * times;
    std::uint64_t cursor = 0;
    run_load(memory, 108, 16, 0, [&](int, std::uint64_t, MemoryRequest& r) {
      if (cursor == total) return false;
      r = request(cursor++, 15, RequestKind::Write, r.sm);
      return true;
    });
    CHECK(memory.counters().dram_write_bytes + memory.dirty_bytes() == total * 128);
    CHECK(memory.counters().dram_read_bytes == 0);
    if (times == 1) {
      CHECK(memory.counters().dram_write_bytes < total * 128 / 20);  // hashed sets: a few overflow early
    } else {
      CHECK(memory.dirty_bytes() == lines * kLineBytes);
    }
  }
}

TEST_CASE("a write of one sector moves a whole burst, a partial sector is read first") {
  GpuModel m = quiet();
  m.l2.bytes = 80 * 16 * kLineBytes;  // one set a slice
  for (const bool full : {true, false}) {
    MemorySystem memory(m);
    MemoryRequest r = request(0, 1, RequestKind::Write);
    r.full_sectors = full;
    r.bytes = full ? 0 : 4;
    latency_of(memory, r, 0);
    Cycle now = 1000;
    const AddressMap map(m);
    const auto slice = map.home(0).slice;
    int others = 0;
    for (std::uint64_t line = 1; others < 16; ++line) {
      if (map.home(line).slice != slice) continue;
      latency_of(memory, request(line, 15, RequestKind::Write), now += 1000);
      ++others;
    }
    std::vector<MemoryReply> replies;
    drain(memory, replies);
    CHECK(memory.counters().merge_sectors == (full ? 0 : 1));
    CHECK(memory.counters().dram_write_bytes == 64);
    CHECK(memory.counters().dram_read_bytes == (full ? 0 : 64));
  }
}

TEST_CASE("touch leaves the state that the timed path leaves, and counts the same traffic") {
  GpuModel m = quiet();
  m.l2.bytes = 1 << 20;
  for (const bool copies : {true, false}) {
    m.l2.replicate_far_lines = copies;
    MemorySystem timed(m), touched(m);
    std::mt19937 random(7);
    L2Traffic passed;
    Cycle now = 0;
    for (int i = 0; i < 40000; ++i) {
      const bool write = random() % 3 == 0;
      MemoryRequest r =
          request(random() % 12000, static_cast<std::uint8_t>(1 + random() % 15),
                  write ? RequestKind::Write : RequestKind::Read, static_cast<std::uint16_t>(random() % 108));
      latency_of(timed, r, now += 1000);
      const L2Traffic t = touched.touch(r.line, r.sectors, r.kind, r.sm);
      passed += t;
    }
    std::vector<MemoryReply> replies;
    drain(timed, replies);
    CHECK(timed.counters().dram_read_bytes == passed.read * 32);
    const MemoryCounters& c = timed.counters();
    CHECK(c.dram_write_bytes == passed.written * 32);
    CHECK(c.hit_sectors == c.read_sectors + c.write_sectors - passed.missed);
    CHECK(c.miss_sectors == passed.fetched);
    CHECK(c.fabric_hit_sectors == passed.fabric_hits);
    CHECK(c.fabric_miss_sectors == passed.fabric_misses);
    CHECK(timed.dirty_bytes() == touched.dirty_bytes());
    // The same hits from here on; only DRAM's open rows differ.
    now += 100000;
    const MemoryCounters before = timed.counters();
    for (std::uint64_t line = 0; line < 12000; line += 7) {
      latency_of(timed, request(line, 2), now);
      latency_of(touched, request(line, 2), now);
      now += 5000;
      REQUIRE(timed.counters().hit_sectors - before.hit_sectors == touched.counters().hit_sectors);
      REQUIRE(timed.counters().fabric_hit_sectors - before.fabric_hit_sectors == touched.counters().fabric_hit_sectors);
    }
    CHECK(touched.counters().hit_sectors > 100);
  }
}

TEST_CASE("pushing into a full port and empty requests are refused") {
  MemorySystem memory(quiet());
  Cycle now = 5;
  int pushed = 0;
  while (memory.accepts(0, now)) memory.push(request(static_cast<std::uint64_t>(pushed++)), now);
  CHECK(pushed == 4);
  CHECK_THROWS_AS(memory.push(request(1), now), InternalError);
  const Cycle again = memory.accepts_again(0, now);
  CHECK(again == now + 1);
  CHECK(memory.accepts(0, again));
  CHECK_THROWS_AS(memory.push(request(1, 0), again), InternalError);
}

TEST_CASE("an SM whose writes are not acknowledged is held back") {
  MemorySystem memory(quiet());
  Cycle now = 0;
  int pushed = 0;
  std::vector<MemoryReply> replies;
  // 2000 flits, five a line. No event is handled meanwhile.
  while (memory.accepts_again(0, now) != kNever) {
    now = memory.accepts_again(0, now);
    memory.push(request(static_cast<std::uint64_t>(pushed++), 15, RequestKind::Write), now);
  }
  CHECK(pushed == 400);
  memory.run_until(now, replies);
  CHECK(!replies.empty());
  CHECK(memory.accepts_again(0, now) == now + 2);  // the port is still sending
}

TEST_CASE("CPCs have their turn one after another, at a slice and at the fabric") {
  GpuModel m = quiet();
  m.crossbar.cpc_fabric_writes = 1;
  std::uint32_t side = 0;
  SECTION("at a slice") { m.crossbar.slice_write_bytes_per_cycle = 8; }  // a line in 16 cycles
  SECTION("at the fabric") { m.crossbar.fabric_bytes_per_cycle = 8, side = 1; }
  MemorySystem memory(m, MemorySystem::L2Start::Empty);
  const std::uint64_t line = line_in(m, side);
  // Four of SM 0, then one of SM 16, which is another CPC's.
  for (std::uint32_t i = 0; i < 5; ++i) {
    MemoryRequest write = request(line, 15, RequestKind::Write, i < 4 ? 0 : 16);
    write.tag = i;
    memory.push(write, memory.accepts_again(write.sm, 0));
  }
  std::vector<Cycle> at(5, 0);
  std::vector<MemoryReply> replies;
  for (Cycle now = 0; now < 2000; ++now) {
    replies.clear();
    memory.run_until(now, replies);
    for (const MemoryReply& reply : replies) at[reply.tag] = now;
  }
  CHECK(at[0] == kHit + side * kFar);
  CHECK(at[4] == at[0] + 16);
  for (std::size_t i = 1; i < 4; ++i) CHECK(at[i] == at[0] + 16 * (i + 1));
}

TEST_CASE("a CPC has so many reads below its port; the next goes when one of them is answered") {
  GpuModel m = quiet();
  m.crossbar.cpc_reads = 1;
  MemorySystem memory(m, MemorySystem::L2Start::Empty);
  const std::uint64_t line = line_in(m, 0);
  memory.touch(line, 15, RequestKind::Read, 0);
  // Three of SMs 0 and 1, then one of SM 16, which is another CPC's.
  for (std::uint32_t i = 0; i < 4; ++i) {
    MemoryRequest read = request(line, 1, RequestKind::Read, i < 3 ? i % 2 : 16);
    read.tag = i;
    memory.push(read, memory.accepts_again(read.sm, 0));
  }
  std::vector<Cycle> at(4, 0);
  std::vector<MemoryReply> replies;
  for (Cycle now = 0; now < 2000; ++now) {
    replies.clear();
    memory.run_until(now, replies);
    for (const MemoryReply& reply : replies) at[reply.tag] = now;
  }
  CHECK(at[0] == kHit);
  CHECK(at[1] == at[0] + m.crossbar.request_cycles);
  CHECK(at[2] == at[1] + m.crossbar.request_cycles);
  CHECK(at[3] == kHit + 1);  // the slice has looked up the first then
}

TEST_CASE("reads wait behind reductions of their GPC that L2 does not take") {
  const auto latency = [](std::uint16_t reader) {
    MemorySystem memory(test_model(), MemorySystem::L2Start::Empty);
    memory.touch(0, 15, RequestKind::Read, 0);
    memory.touch(1, 15, RequestKind::Read, reader);
    std::vector<MemoryReply> replies;
    Cycle now = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
      now = std::max(now, memory.accepts_again(static_cast<std::uint16_t>(i % 8), now));
      memory.run_until(now, replies);
      memory.push({.line = 0,
                   .tag = 1,
                   .sm = static_cast<std::uint16_t>(i % 8),
                   .sectors = 1,
                   .kind = RequestKind::Reduction,
                   .rounds = 4,
                   .full_sectors = false,
                   .bytes = 4},
                  now);
    }
    now += 1000;
    memory.run_until(now, replies);
    memory.push({.line = 1, .tag = 2, .sm = reader, .sectors = 15}, now);
    for (Cycle at = now;; at = memory.next_event()) {
      replies.clear();
      memory.run_until(at, replies);
      for (const MemoryReply& reply : replies)
        if (reply.tag == 2) return at - now;
    }
  };
  CHECK(latency(9) > latency(40) + 1000);  // of the same GPC, of another
}

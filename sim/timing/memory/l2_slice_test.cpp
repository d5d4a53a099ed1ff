#include "timing/memory/l2_slice.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "timing/memory/memory_test_model.h"

using namespace forewarp;
using Outcome = L2Slice::Outcome;

namespace {

/// One set of four ways, so that every line competes; eight sectors may be in flight.
GpuModel tiny(int access_bytes = 32) {
  GpuModel m = test_model();
  m.l2.bytes = 80 * 4 * kLineBytes;
  m.l2.ways = 4;
  m.l2.miss_entries = 8;
  m.hbm.access_bytes = access_bytes;
  return m;
}

/// Reads and lets the data come at once.
L2Slice::Access load(L2Slice& s, std::uint64_t index, std::uint8_t sectors = 15, bool copy = false) {
  const auto a = s.read(index, copy, sectors);
  if (a.outcome == Outcome::Wait) {
    s.arrive(a.miss, a.fetch);
    s.release(a.miss);
  }
  s.written_back(std::popcount(unsigned{a.evicted.dirty}));
  return a;
}

}  // namespace

TEST_CASE("a sector misses once, is waited for while it comes, then hits") {
  const L2Geometry g(tiny());
  L2Slice s(g);
  const auto first = s.read(5, false, 0b0011);
  CHECK(first.outcome == Outcome::Wait);
  CHECK(first.fetch == 0b0011);
  const auto second = s.read(5, false, 0b0110);  // one on its way, one new
  CHECK(second.outcome == Outcome::Wait);
  CHECK(second.miss == first.miss);
  CHECK(second.missing == 0b0110);
  CHECK(second.missed == 0b0100);
  CHECK(second.fetch == 0b0100);
  CHECK(s.in_flight(false) == 3);
  s.arrive(first.miss, 0b0011);
  CHECK(s.valid(5, false) == 0b0011);
  CHECK(s.read(5, false, 0b0010).outcome == Outcome::Hit);
  s.arrive(first.miss, 0b0100);
  s.release(first.miss);
  CHECK(s.in_flight(false) == 0);
  CHECK(s.read(5, false, 0b0111).outcome == Outcome::Hit);
}

TEST_CASE("what is on its way to a slice has arrived where its lines are copied to") {
  const L2Geometry g(tiny());
  L2Slice s(g), copy(g);
  load(s, 5, 0b0001);
  const auto miss = s.read(5, false, 0b0110);
  copy.copy_lines(s);
  CHECK(copy.valid(5, false) == 0b0111);
  CHECK(copy.in_flight(false) == 0);
  CHECK(copy.read(5, false, 0b0111).outcome == Outcome::Hit);
  CHECK(copy.read(5, false, 0b1000).outcome == Outcome::Wait);
  CHECK(s.in_flight(false) == 2);
  s.arrive(miss.miss, 0b0110);
  s.release(miss.miss);
  CHECK(s.valid(5, false) == 0b0111);
}

TEST_CASE("a fetch brings whole bursts") {
  const L2Geometry g64(tiny(64)), g128(tiny(128));
  CHECK(g64.whole_bursts(0b0100) == 0b1100);
  CHECK(g64.whole_bursts(0b1010) == 0b1111);
  CHECK(g128.whole_bursts(0b0010) == 0b1111);
  L2Slice s(g64);
  const auto a = load(s, 1, 0b0001);
  CHECK(a.missed == 0b0001);
  CHECK(a.fetch == 0b0011);
  CHECK(s.read(1, false, 0b0010).outcome == Outcome::Hit);
  CHECK(s.read(1, false, 0b0100).outcome == Outcome::Wait);
}

TEST_CASE("the least recently used line leaves and takes its dirty sectors along") {
  const L2Geometry g(tiny());
  REQUIRE(g.sets.divisor() == 1);
  L2Slice s(g);
  s.write(10, 0b0101, true, 0);
  for (std::uint64_t i = 11; i < 14; ++i) load(s, i);
  CHECK(s.dirty_sectors() == 2);
  s.read(10, false, 0b0001);  // 11 is the oldest now
  CHECK(load(s, 14).evicted.dirty == 0);
  CHECK(s.valid(11, false) == 0);
  for (std::uint64_t i = 15; i < 17; ++i) CHECK(load(s, i).evicted.dirty == 0);
  const auto a = load(s, 17);
  CHECK(a.evicted.dirty == 0b0101);
  CHECK(a.evicted.index == 10);
  CHECK(a.evicted.partial == 0);
  CHECK(s.dirty_sectors() == 0);
}

TEST_CASE("too many sectors in flight, or a set full of misses, stall without a trace") {
  const L2Geometry g(tiny());
  L2Slice s(g);
  const auto a = s.read(1, false, 15);
  s.read(2, false, 15);
  CHECK(s.read(3, false, 1).outcome == Outcome::Stall);
  CHECK(s.read(1, false, 15).outcome == Outcome::Wait);  // nothing new
  CHECK(s.write(3, 15, true, 0).outcome == Outcome::Hit);
  CHECK_FALSE(s.may_fetch(false, 1));
  s.arrive(a.miss, 15);
  s.release(a.miss);
  CHECK(s.read(4, false, 0b0011).outcome == Outcome::Wait);
  CHECK(s.read(5, false, 0b0011).outcome == Outcome::Wait);  // replaces 1: the only one neither in flight nor newer
  CHECK(s.valid(1, false) == 0);
  CHECK(s.valid(3, false) == 15);
}

TEST_CASE("write-backs that DRAM has not taken hold further evictions up") {
  const L2Geometry g(tiny());
  L2Slice s(g);
  for (std::uint64_t i = 0; i < 4; ++i) s.write(i, 15, true, 0);
  CHECK(s.write(4, 15, true, 0).evicted.dirty == 15);
  CHECK(s.write(5, 15, true, 0).evicted.dirty == 15);
  CHECK(s.write(6, 15, true, 0).outcome == Outcome::Stall);
  CHECK(s.read(7, false, 1).outcome == Outcome::Stall);
  s.written_back(4);
  CHECK(s.write(6, 15, true, 0).outcome == Outcome::Hit);
}

TEST_CASE("sectors written in part") {
  const L2Geometry g(tiny());
  L2Slice s(g);
  SECTION("are fetched when read and stay dirty") {
    s.write(1, 0b0001, false, 4);
    CHECK(s.valid(1, false) == 0);
    CHECK(load(s, 1, 0b0001).fetch == 0b0001);
    CHECK(s.valid(1, false) == 1);
    for (std::uint64_t i = 2; i < 5; ++i) load(s, i);
    const auto e = load(s, 5).evicted;
    CHECK(e.dirty == 1);
    CHECK(e.partial == 0);
  }
  SECTION("are read and written when evicted") {
    s.write(1, 0b0011, false, 8);
    for (std::uint64_t i = 2; i < 5; ++i) load(s, i);
    const auto e = load(s, 5).evicted;
    CHECK(e.dirty == 0b0011);
    CHECK(e.partial == 0b0011);
  }
  SECTION("are complete when the pieces add up") {
    for (int i = 0; i < 7; ++i) s.write(1, 0b0001, false, 4);
    CHECK(s.valid(1, false) == 0);
    s.write(1, 0b0001, false, 4);
    CHECK(s.valid(1, false) == 1);
  }
  SECTION("are complete when written in full, or present before") {
    s.write(1, 0b0001, false, 4);
    s.write(1, 0b0001, true, 0);
    CHECK(s.valid(1, false) == 1);
    s.write(1, 0b0001, false, 4);
    CHECK(s.valid(1, false) == 1);
  }
}

TEST_CASE("what is here or on its way is not fetched again") {
  GpuModel m = tiny();
  m.l2.fetch_bytes = 64;
  const L2Geometry g(m);
  L2Slice s(g);
  s.write(1, 0b0001, true, 0);
  const auto beside = s.read(1, false, 0b0010);
  CHECK(beside.fetch == 0b0010);
  const auto both = s.read(1, false, 0b0110);
  CHECK(both.missed == 0b0100);
  CHECK(both.fetch == 0b1100);
  CHECK(both.added == 0b1100);
  CHECK(s.read(2, true, 0b1000).fetch == 0b1100);  // copies too
}

TEST_CASE("a request may have more fetched at once") {
  GpuModel m = tiny();
  m.l2.fetch_bytes = 64;
  const L2Geometry g(m);
  L2Slice s(g);
  const auto first = s.read(1, false, 0b0001, 4);
  CHECK(first.missing == 0b0001);
  CHECK(first.added == 0b1111);
  s.arrive(first.miss, first.fetch);
  s.release(first.miss);
  CHECK(s.read(1, false, 0b1000).outcome == Outcome::Hit);
  CHECK(s.read(2, true, 0b0010, 4).added == 0b1111);   // copies too
  CHECK(s.read(3, false, 0b0010, 1).added == 0b0011);  // never less than usual
  CHECK(s.touch(4, false, 0b0001, false, true, 0, 4).added == 0b1111);
}

TEST_CASE("beyond its share of dirty lines a slice writes the oldest back and keeps it") {
  GpuModel m = tiny();
  m.l2.dirty_share = 0.5;
  const L2Geometry g(m);
  L2Slice s(g);
  CHECK(s.write(1, 15, true, 0).cleaned.dirty == 0);
  CHECK(s.write(2, 15, true, 0).cleaned.dirty == 0);
  CHECK(s.write(1, 15, true, 0).cleaned.dirty == 0);  // dirty already
  const auto third = s.write(3, 15, true, 0);
  CHECK(third.cleaned.index == 2);
  CHECK(third.cleaned.dirty == 15);
  CHECK(s.dirty_sectors() == 8);
  CHECK(s.valid(2, false) == 15);
  CHECK(s.write(4, 15, true, 0).cleaned.index == 1);
  // Eight write-backs are on their way, as many as may be: the next write waits for DRAM to take some.
  CHECK(s.write(2, 15, true, 0).outcome == Outcome::Stall);
  s.written_back(8);
  CHECK(s.write(2, 15, true, 0).outcome == Outcome::Hit);
}

TEST_CASE("a lookup that makes no line dirty leaves fewer dirty ones than a write does") {
  GpuModel m = tiny();
  m.l2.dirty_share_read = 0.5;  // of four ways
  m.l2.miss_entries = 64;
  const L2Geometry g(m);
  for (const bool timed : {true, false}) {
    L2Slice s(g);
    const auto use = [&](std::uint64_t line, bool copy, bool write) {
      if (!timed) return s.touch(line, copy, 15, write);
      return write ? s.write(line, 15, true, 0) : s.read(line, copy, 15);
    };
    for (std::uint64_t line = 1; line <= 3; ++line) CHECK(use(line, false, true).cleaned.dirty == 0);
    SECTION(timed ? "read" : "read, touched") {
      CHECK(use(3, false, false).cleaned.index == 1);
      CHECK(use(3, false, false).cleaned.dirty == 0);
    }
    SECTION(timed ? "written again" : "written again, touched") {
      CHECK(use(1, false, true).cleaned.index == 2);
      CHECK(use(1, false, true).cleaned.dirty == 0);
    }
    SECTION(timed ? "a copy" : "a copy, touched") CHECK(use(4, true, false).cleaned.dirty == 0);
  }
}

TEST_CASE("a share of dirty lines that is no whole number of ways holds on average over the sets") {
  GpuModel m = tiny();
  m.l2.bytes *= 256;
  m.l2.dirty_share = 0.625;  // of four ways
  const L2Geometry g(m);
  L2Slice s(g);
  for (std::uint64_t line = 0; line < 4 * 256; ++line) {
    const auto a = s.write(line, 15, true, 0);
    s.written_back(std::popcount(unsigned{a.cleaned.dirty}));
  }
  CHECK(s.dirty_sectors() / 4 == Approx(2.5 * 256).epsilon(0.01));
}

TEST_CASE("while DRAM is behind with reads a clean line leaves instead of a dirty one, unless it is of others") {
  GpuModel m = tiny();
  m.l2.spare_dirty = 1;
  m.l2.miss_entries = 4;
  const L2Geometry g(m);
  for (const bool others : {false, true}) {
    for (const bool behind : {false, true}) {
      L2Slice s(g);
      s.write(1, 15, true, 0);
      s.write(2, 15, true, 0);
      if (others) s.spare_nothing_so_far();
      load(s, 3);
      behind ? s.read(4, false, 15) : load(s, 4);
      const bool spared = behind && !others;
      CHECK(s.write(5, 15, true, 0).evicted.dirty == (spared ? 0 : 15));
      CHECK(s.valid(3, false) == (spared ? 0 : 15));
    }
  }
  L2Slice s(g);
  for (std::uint64_t line = 1; line < 5; ++line) s.write(line, 15, true, 0);
  const auto last = s.read(5, false, 15);  // nothing clean is left to leave
  CHECK(last.evicted.index == 1);
  s.written_back(4);
  for (std::uint64_t line = 10; line < 400; ++line)
    s.written_back(std::popcount(unsigned{s.write(line, 15, true, 0).evicted.dirty}));
  s.arrive(last.miss, 15);
  s.release(last.miss);
  s.touch(500, false, 15, false);  // no time passes: what was the rule lately still is
  CHECK(s.valid(5, false) == 0);
}

TEST_CASE("where no time passes dirty lines are spared as lately, or as seldom as what is touched comes") {
  GpuModel m = tiny();
  m.l2.spare_dirty = 1;
  m.l2.miss_entries = 4;
  const L2Geometry g(m);
  for (const bool slow : {false, true}) {
    L2Slice s(g);
    const auto under_way = s.read(5, false, 15);
    for (std::uint64_t line = 10; line < 400; ++line)
      s.written_back(std::popcount(unsigned{s.write(line, 15, true, 0).evicted.dirty}));
    s.read(5, false, 15);  // clean, and used last
    s.arrive(under_way.miss, 15);
    s.release(under_way.miss);
    if (slow) s.fetch_at_most(0);
    CHECK((s.touch(500, false, 15, false).evicted.dirty != 0) == slow);
    CHECK(s.valid(5, false) == (slow ? 15 : 0));
  }
}

TEST_CASE("where a read finds its line, the next to leave a full set is written back, unless it would be spared") {
  GpuModel m = tiny();
  m.l2.spare_dirty = 1;
  m.l2.miss_entries = 4;
  const L2Geometry g(m);
  for (const bool timed : {true, false}) {
    L2Slice s(g);
    const auto find = [&](std::uint64_t line) {
      const auto a = timed ? s.read(line, false, 15) : s.touch(line, false, 15, false);
      CHECK(a.outcome == Outcome::Hit);
      if (timed) s.written_back(std::popcount(unsigned{a.cleaned.dirty}));
      return a.cleaned;
    };
    s.write(1, 0b0110, true, 0);
    load(s, 2);
    load(s, 3);
    CHECK(find(3).dirty == 0);  // there is room yet
    const auto fourth = s.read(4, false, 15);
    if (timed) CHECK(find(3).dirty == 0);  // DRAM is behind
    s.arrive(fourth.miss, 15);
    s.release(fourth.miss);
    const auto cleaned = find(3);
    CHECK(cleaned.index == 1);
    CHECK(cleaned.dirty == 0b0110);
    CHECK(s.dirty_sectors() == 0);
    CHECK(s.valid(1, false) == 0b0110);
    CHECK(find(3).dirty == 0);
  }
}

TEST_CASE("dirty lines count, however little of them was written") {
  GpuModel m = tiny();
  m.l2.dirty_share = 0.5;
  const L2Geometry g(m);
  L2Slice s(g);
  s.write(1, 0b0001, true, 0);
  s.write(1, 0b1000, true, 0);
  CHECK(s.write(2, 0b0001, true, 0).cleaned.dirty == 0);
  const auto third = s.write(3, 0b0001, true, 0);
  CHECK(third.cleaned.index == 1);
  CHECK(third.cleaned.dirty == 0b1001);
}

TEST_CASE("one of the two oldest lines leaves, so that lines read in turn are found again now and then") {
  GpuModel m = tiny();
  const auto misses = [&](int choices) {
    m.l2.victim_choices = choices;
    const L2Geometry g(m);
    L2Slice s(g);
    int missed = 0;
    for (int pass = 0; pass < 40; ++pass)
      for (std::uint64_t line = 0; line < 5; ++line) missed += load(s, line).missed != 0 ? 1 : 0;
    return missed;
  };
  CHECK(misses(1) == 200);
  CHECK(misses(2) < 150);
}

TEST_CASE("beyond its share of partly written lines a slice reads, merges and writes back the oldest") {
  GpuModel m = tiny();
  m.l2.partial_share = 0.25;
  const L2Geometry g(m);
  L2Slice s(g);
  CHECK(s.write(1, 0b0011, false, 16).cleaned.dirty == 0);
  CHECK(s.write(2, 15, true, 0).cleaned.dirty == 0);  // whole: does not count
  const auto second = s.write(3, 0b0001, false, 4);
  CHECK(second.cleaned.index == 1);
  CHECK(second.cleaned.dirty == 0b0011);
  CHECK(second.cleaned.partial == 0b0011);
  CHECK(s.valid(1, false) == 0b0011);
  s.written_back(2);
  CHECK(s.write(3, 0b0001, false, 28).cleaned.dirty == 0);  // complete now
  CHECK(s.write(4, 0b0001, false, 4).cleaned.dirty == 0);
}

TEST_CASE("copies are lines of their own, lose written sectors and age as home lines do") {
  const L2Geometry g(tiny());
  L2Slice s(g);
  load(s, 1);
  CHECK(load(s, 1, 15, true).missed == 15);
  CHECK(s.read(1, true, 15).outcome == Outcome::Hit);
  s.invalidate_copy(1, 0b0011);
  CHECK(s.valid(1, true) == 0b1100);
  CHECK(s.valid(1, false) == 15);
  s.invalidate_copy(1, 0b1100);
  load(s, 2, 15, true);
  load(s, 3);
  load(s, 4);
  load(s, 5);
  CHECK(s.valid(2, true) == 15);
  CHECK(s.valid(1, false) == 0);
  load(s, 6);
  CHECK(s.valid(2, true) == 0);
}

TEST_CASE("a line written through here stays as a copy, and the oldest line gives way to it") {
  const L2Geometry g(tiny());
  L2Slice s(g);
  s.write(1, 15, true, 0);
  load(s, 2);
  load(s, 3);
  load(s, 4);
  const Eviction e = s.keep_copy(5, 0b0110, true);
  CHECK(e.index == 1);
  CHECK(e.dirty == 15);
  CHECK(s.valid(5, true) == 0b0110);
  CHECK(s.valid(5, false) == 0);
  CHECK(s.keep_copy(5, 0b0001, true).dirty == 0);
  CHECK(s.valid(5, true) == 0b0111);
  CHECK(s.keep_copy(5, 0b1010, false).dirty == 0);  // written in part: not in the copy
  CHECK(s.valid(5, true) == 0b0101);
  CHECK(s.dirty_sectors() == 0);
  s.written_back(4);
}

TEST_CASE("copies in flight leave a way for home lines") {
  GpuModel m = tiny();
  m.l2.miss_entries = 16;
  const L2Geometry g(m);
  L2Slice s(g);
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(s.read(i, true, 1).outcome == Outcome::Wait);
  CHECK(s.read(7, true, 1).outcome == Outcome::Stall);  // the last way, though free
  CHECK(s.read(7, false, 1).outcome == Outcome::Wait);
}

TEST_CASE("a slice that cannot work is refused") {
  GpuModel m = tiny();
  m.hbm.access_bytes = 48;
  CHECK_THROWS_AS(L2Geometry(m), InputError);
  m = tiny();
  m.l2.miss_entries = 2;
  CHECK_THROWS_AS(L2Geometry(m), InputError);
}

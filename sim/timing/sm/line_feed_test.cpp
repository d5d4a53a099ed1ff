#include "timing/sm/line_feed.h"

#include <catch2/catch.hpp>

#include "timing/sm/sm_test_support.h"

using namespace forewarp;

namespace {

InstructionCacheSpec spec() {
  InstructionCacheSpec s;
  s.feed_cycles = 2;
  s.feed_line_cycles = 2;
  s.feed_interval_cycles = 3;
  s.feed_lines = 4;
  return s;
}

/// Serves the next line; what is said is whose it is and when it goes.
void check_served(LineFeed& feed, int slot, Cycle at) {
  REQUIRE(feed.next() == at);
  CHECK(feed.serve(spec()) == slot);
}

}  // namespace

TEST_CASE("a jump brings its line and the next one, then lines follow up to as many as a warp has") {
  LineFeed feed;
  CHECK(feed.next() == kNever);
  feed.jump(3, 10);
  CHECK(feed.waiting() == 1u << 3);
  check_served(feed, 3, 10);
  CHECK(feed.waiting() == 0);
  CHECK(feed.arrival(3, spec()) == 12);
  check_served(feed, 3, 16);  // three cycles after the second
  check_served(feed, 3, 19);
  CHECK(feed.next() == kNever);  // four lines
  CHECK(feed.step(3, spec()));
  check_served(feed, 3, 22);  // has been asked for all the time
  CHECK(feed.next() == kNever);
}

TEST_CASE("lines go to whoever has asked first, one every two cycles") {
  LineFeed feed;
  feed.jump(5, 10);
  feed.jump(0, 11);
  feed.jump(9, 17);
  check_served(feed, 5, 10);
  check_served(feed, 0, 14);  // two lines took four cycles
  CHECK(feed.arrival(0, spec()) == 16);
  check_served(feed, 5, 18);  // since 16
  check_served(feed, 9, 20);  // since 17
  CHECK(feed.arrival(9, spec()) == 22);
}

TEST_CASE("a warp that runs out of lines waits; one that jumps or ends gives up what it asked for") {
  LineFeed feed;
  feed.jump(1, 0);
  check_served(feed, 1, 0);
  CHECK(feed.step(1, spec()));
  CHECK(feed.arrival(1, spec()) == 5);  // an interval behind the first
  CHECK_FALSE(feed.step(1, spec()));
  CHECK(feed.waiting() == 1u << 1);
  check_served(feed, 1, 6);
  CHECK(feed.arrival(1, spec()) == 8);
  feed.jump(1, 40);
  check_served(feed, 1, 40);
  feed.leave(1);
  CHECK(feed.next() == kNever);
}

TEST_CASE("warps that branch at once wait for their lines one after another") {
  // Ten times a line of code; one warp a sub-partition or two.
  GpuModel gpu = sm_model();
  gpu.issue.first_cycles = 2;
  gpu.icache.feed_cycles = 2;
  gpu.icache.feed_line_cycles = 4;
  gpu.icache.feed_interval_cycles = 4;
  const auto simulate = [&](int warps) {
    HandMadeTrace trace(std::vector<Instruction>(8, plain(Pipe::Alu, 2)), warps);
    std::vector<Run> runs(10, Run{0, 8});
    return trace.runs(runs).simulate(gpu);
  };
  const TimingResult one = simulate(1), eight = simulate(8);
  CHECK(stalled(one, Stall::NoInstruction) == 10 * 2);  // at the start and after each branch the line's way
  // Of two warps that want theirs in the same cycle the second waits 8 more; later they are out of step.
  CHECK(stalled(eight, Stall::NoInstruction) >= 8 * 10 * 2 + 4 * 8);
}

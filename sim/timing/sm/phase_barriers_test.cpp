#include "timing/sm/phase_barriers.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {

PhaseRecord change(std::uint32_t barrier, std::uint32_t arrivals, std::int32_t bytes) {
  PhaseRecord record;
  record.action = PhaseRecord::Action::Arrive;
  record.barrier = barrier;
  record.arrivals = arrivals;
  record.bytes = bytes;
  return record;
}

}  // namespace

TEST_CASE("a phase ends with its last arrival and its last byte, whichever comes later") {
  PhaseBarriers barriers;
  std::vector<std::pair<std::uint16_t, Cycle>> woken;
  const auto wake = [&](const PhaseBarriers::Waiter& waiter, Cycle at) { woken.push_back({waiter.warp, at}); };
  barriers.init(64, 2);
  CHECK(barriers.await({7, 0, 64, 1}) == kNever);
  CHECK(barriers.await({8, 0, 64, 2}) == kNever);
  barriers.change(change(64, 1, 1024), 10, wake);
  barriers.change(change(64, 1, 0), 20, wake);
  CHECK(woken.empty());
  CHECK(!barriers.over(64, 1));
  barriers.change(change(64, 0, -1000), 30, wake);
  barriers.change(change(64, 0, -24), 40, wake);
  CHECK(woken == std::vector<std::pair<std::uint16_t, Cycle>>{{7, 40}});
  CHECK(barriers.over(64, 1));
  CHECK(barriers.await({9, 0, 64, 1}) == 40);
  // The next phase expects as many.
  barriers.change(change(64, 1, 0), 50, wake);
  CHECK(woken.size() == 1);
  barriers.change(change(64, 1, 0), 60, wake);
  CHECK(woken.back() == std::pair<std::uint16_t, Cycle>{8, 60});
}

TEST_CASE("barriers are told apart, and who leaves one is not expected again") {
  PhaseBarriers barriers;
  const auto nobody = [](const PhaseBarriers::Waiter&, Cycle) {};
  barriers.init(0, 1);
  barriers.init(8, 2);
  barriers.change(change(0, 1, 0), 5, nobody);
  CHECK(barriers.over(0, 1));
  CHECK(!barriers.over(8, 1));
  PhaseRecord leaves = change(8, 1, 0);
  leaves.leaves = true;
  barriers.change(leaves, 6, nobody);
  barriers.change(change(8, 1, 0), 7, nobody);
  CHECK(barriers.over(8, 1));
  barriers.change(change(8, 1, 0), 8, nobody);
  CHECK(barriers.over(8, 2));
}

#include "timing/memory/distances.h"

#include <catch2/catch.hpp>

#include "timing/memory/memory_test_model.h"

using namespace forewarp;

TEST_CASE("the way to L2: by the TPC's place in its GPC, the end of the partition at which a slice lies, and copies") {
  GpuModel gpu = test_model();  // two partitions of 40 slices, TPCs of two SMs in GPCs of 8, 8, 8, 8, 8, 7, 7
  CHECK(Distances(gpu).cycles(0, 0, true) == 0);
  gpu.crossbar.tpc_cycles = {3, -2};
  gpu.crossbar.slice_cycles = 9;
  gpu.crossbar.copy_cycles = 29;
  const Distances distances(gpu);
  // A copy takes as much longer as a line at home takes less.
  CHECK(distances.cycles(0, 0, true) - distances.cycles(0, 0, false) == 29);
  CHECK(distances.cycles(0, 0, false) - distances.cycles(2, 0, false) == 5);     // another TPC
  CHECK(distances.cycles(0, 0, false) == distances.cycles(4, 0, false));         // places are counted anew
  CHECK(distances.cycles(0, 0, false) == distances.cycles(16, 0, false));        // the next GPC, at the same end
  CHECK(distances.cycles(0, 0, false) - distances.cycles(32, 0, false) == -16);  // the third GPC, at the other
  CHECK(distances.cycles(0, 39, false) - distances.cycles(32, 39, false) == 16);
  CHECK(distances.cycles(0, 40, false) == distances.cycles(0, 0, false));  // the other partition's first slice
}

TEST_CASE("data of slices that are far comes later") {
  GpuModel gpu = test_model();
  gpu.crossbar.slice_cycles = 9;
  std::vector<Cycle> took;
  for (const std::uint16_t sm : {std::uint16_t{0}, std::uint16_t{32}}) {
    MemorySystem memory(gpu, MemorySystem::L2Start::Empty);
    memory.touch(0, 15, RequestKind::Read, sm);
    memory.push({.line = 0, .tag = 1, .sm = sm, .sectors = 15}, 0);
    std::vector<MemoryReply> replies;
    Cycle at = 0;
    while (replies.empty()) memory.run_until(at = memory.next_event(), replies);
    took.push_back(at);
  }
  CHECK(took[0] != took[1]);
}

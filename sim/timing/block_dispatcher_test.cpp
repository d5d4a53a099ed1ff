// The order in which blocks are dealt to SMs, as an H200 was seen to do it.
#include "timing/block_dispatcher.h"

#include <catch2/catch.hpp>
#include <map>

using namespace forewarp;

namespace {

GpuModel h200_like() {
  GpuModel m;
  m.chip = {132, 2, {9, 9, 8, 8, 8, 8, 8, 8}, 1980};
  m.launch.dispatch_groups = {8, 8, 8, 8, 7, 7, 7, 7, 2, 1, 1, 1, 1};
  m.launch.blocks_per_cycle_x16 = 16;
  return m;
}

/// SM of each block that can start at once.
std::vector<int> dealt(const GpuModel& gpu, std::uint64_t blocks, int per_sm) {
  BlockDispatcher dispatcher(gpu, blocks, per_sm);
  std::vector<int> sms;
  for (Cycle now = 0; now < 100000; now += 16)
    for (auto grant = dispatcher.next(now); grant.sm >= 0; grant = dispatcher.next(now)) sms.push_back(grant.sm);
  return sms;
}

std::vector<int> group_of_sm(const GpuModel& gpu) {
  std::vector<int> group(132);
  const auto groups = dispatch_groups(gpu);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const int tpc : groups[g])
      group[static_cast<std::size_t>(2 * tpc)] = group[static_cast<std::size_t>(2 * tpc + 1)] = static_cast<int>(g);
  return group;
}

}  // namespace

TEST_CASE("a level deals to both SMs of a TPC, to single TPCs first, then to the group with the most left") {
  const GpuModel gpu = h200_like();
  const std::vector<int> sms = dealt(gpu, 400, 1), group = group_of_sm(gpu);
  REQUIRE(sms.size() == 132);
  std::string order;  // of TPCs, by group; seen on the card as JJJJ ABCD ABCD EFGH ...
  for (std::size_t i = 0; i < sms.size(); i += 2) {
    CHECK(sms[i] / 2 == sms[i + 1] / 2);
    order += static_cast<char>('A' + std::min(9, group[static_cast<std::size_t>(sms[i])]));
  }
  CHECK(order == "JJJJABCDABCDEFGHABCDEFGHABCDEFGHABCDEFGHABCDEFGHABCDEFGHIABCDEFGHI");
}

TEST_CASE("a grid that does not fill the GPU is spread evenly") {
  const GpuModel gpu = h200_like();
  const std::vector<int> sms = dealt(gpu, 256, 4), group = group_of_sm(gpu);
  REQUIRE(sms.size() == 256);
  std::map<int, int> held;
  for (const int sm : sms) ++held[sm];
  CHECK(held.size() == 132);
  int singles = 0;
  for (const auto& [sm, blocks] : held) {
    CHECK(blocks <= 2);
    if (blocks == 2) continue;
    ++singles;
    CHECK(sm % 2 == 1);
    CHECK(group[static_cast<std::size_t>(sm)] >= 7);  // seen: the last six TPCs of H and both of I
    CHECK(group[static_cast<std::size_t>(sm)] <= 8);
  }
  CHECK(singles == 8);
}

TEST_CASE("a slot that a block leaves takes the next one") {
  GpuModel gpu = h200_like();
  gpu.launch.block_end_cycles = 20;
  BlockDispatcher dispatcher(gpu, 133, 1);
  for (Cycle now = 0; now < 4000; now += 16)
    while (dispatcher.next(now).sm >= 0) {
    }
  CHECK(dispatcher.dispatched() == 132);
  dispatcher.finished(17, 5000);
  CHECK(dispatcher.wake(4999) == 5020);
  CHECK(dispatcher.next(5019).sm == -1);
  CHECK(dispatcher.next(5020).sm == 17);
  CHECK(dispatcher.exhausted());
}

TEST_CASE("blocks that end together are taken back one after another") {
  GpuModel gpu = h200_like();
  gpu.launch.blocks_back_per_cycle_x16 = 4;
  gpu.launch.block_end_cycles = 20;
  BlockDispatcher dispatcher(gpu, 134, 1);
  for (Cycle now = 0; now < 4000; now += 16)
    while (dispatcher.next(now).sm >= 0) {
    }
  dispatcher.finished(17, 5000);
  dispatcher.finished(18, 5000);
  CHECK(dispatcher.all_back() == 5008);
  const auto granted = [&](Cycle from, Cycle to) {
    std::vector<int> sms;
    for (Cycle now = from; now <= to; ++now)
      if (const auto grant = dispatcher.next(now); grant.sm >= 0) sms.push_back(grant.sm);
    return sms;
  };
  CHECK(granted(5000, 5023).empty());
  CHECK(granted(5024, 5027).size() == 1);
  CHECK(granted(5028, 5028).size() == 1);
  CHECK(dispatcher.all_back() == 5008);
}

TEST_CASE("of SMs with several blocks that have ended, one after the other is served") {
  GpuModel gpu = h200_like();
  gpu.launch.blocks_back_per_cycle_x16 = 4;
  BlockDispatcher dispatcher(gpu, 270, 2);
  for (Cycle now = 0; now < 5000; now += 16)
    while (dispatcher.next(now).sm >= 0) {
    }
  for (const int sm : {17, 17, 40, 40}) dispatcher.finished(sm, 6000);
  std::vector<int> sms;
  for (Cycle now = 6000; now < 6100; ++now)
    if (const auto grant = dispatcher.next(now); grant.sm >= 0) sms.push_back(grant.sm);
  REQUIRE(sms.size() == 4);
  CHECK(sms[0] != sms[1]);
  CHECK(sms[2] != sms[3]);
}

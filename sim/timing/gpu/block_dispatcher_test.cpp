// The order in which blocks are dealt to SMs, as an H200 was seen to do it.
#include "timing/gpu/block_dispatcher.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>

using namespace forewarp;

namespace {

GpuModel h200_like() {
  GpuModel m;
  m.chip = {132, 2, {8, 8, 8, 8, 8, 8, 9, 9}, 1980};
  m.launch.gpc_after_gpc = true;
  m.launch.tpcs_apart = 4;
  m.launch.blocks_per_cycle_x16 = 16;
  return m;
}

/// SM of each block that can start at once.
std::vector<int> dealt(const GpuModel& gpu, std::uint64_t blocks, int per_sm, int cluster = 0) {
  BlockDispatcher dispatcher(gpu, blocks, per_sm, cluster);
  std::vector<int> sms;
  for (Cycle now = 0; now < 100000; now += 16)
    for (auto grant = dispatcher.next(now); grant.sm >= 0; grant = dispatcher.next(now)) sms.push_back(grant.sm);
  return sms;
}

}  // namespace

TEST_CASE("a level deals to both SMs of a TPC, to all of a GPC, then to the next GPC") {
  const std::vector<int> sms = dealt(h200_like(), 400, 1);
  REQUIRE(sms.size() == 132);
  for (int i = 0; i < 8; ++i) CHECK(sms[static_cast<std::size_t>(i)] == 8 + i);  // those apart
  for (int i = 8; i < 16; ++i) CHECK(sms[static_cast<std::size_t>(i)] == i - 8);
  for (int i = 16; i < 132; ++i) CHECK(sms[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("or to a TPC of each GPC in turn") {
  GpuModel gpu = h200_like();
  gpu.launch.gpc_after_gpc = false;
  gpu.launch.tpcs_apart = 0;
  const std::vector<int> sms = dealt(gpu, 400, 1);
  REQUIRE(sms.size() == 132);
  CHECK(std::vector<int>(sms.begin(), sms.begin() + 6) == std::vector<int>{0, 1, 16, 17, 32, 33});
  CHECK(std::vector<int>(sms.end() - 4, sms.end()) == std::vector<int>{112, 113, 130, 131});
}

TEST_CASE("a grid that does not fill the GPU is spread evenly") {
  const GpuModel gpu = h200_like();
  const std::vector<int> sms = dealt(gpu, 256, 4);
  REQUIRE(sms.size() == 256);
  std::map<int, int> held;
  for (const int sm : sms) ++held[sm];
  CHECK(held.size() == 132);
  std::vector<int> singles;
  for (const auto& [sm, blocks] : held) {
    CHECK(blocks <= 2);
    if (blocks == 1) singles.push_back(sm);
  }
  // Seen: the second SM of the last TPCs of six GPCs, and of the ninth of two.
  CHECK(singles == std::vector<int>{47, 63, 79, 95, 111, 113, 129, 131});
  // Seen: both SMs of those apart, then one SM of a TPC each, GPC after GPC.
  const std::vector<int> half = dealt(gpu, 64, 4);
  REQUIRE(half.size() == 64);
  CHECK(std::vector<int>(half.begin(), half.begin() + 14) ==
        std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15, 0, 2, 4, 6, 16, 18});
  std::map<int, int> of_gpc;
  for (const int sm : half) ++of_gpc[gpc_of_sms(gpu.chip)[static_cast<std::size_t>(sm)]];
  CHECK(of_gpc == std::map<int, int>{{0, 12}, {1, 8}, {2, 8}, {3, 8}, {4, 7}, {5, 7}, {6, 7}, {7, 7}});
  CHECK(dealt(gpu, 4, 4) == std::vector<int>{8, 10, 12, 14});
  CHECK(dealt(gpu, 12, 4) == std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15, 0, 16, 32, 48});
}

TEST_CASE("some SMs alone take blocks, evenly among all") {
  BlockDispatcher dispatcher(h200_like(), 100, 2);
  dispatcher.keep_to(12, 2);
  std::map<int, int> held;
  for (Cycle now = 0; now < 1000; now += 16)
    for (auto grant = dispatcher.next(now); grant.sm >= 0; grant = dispatcher.next(now)) ++held[grant.sm];
  CHECK(held.size() == 12);
  for (const auto& [sm, blocks] : held) CHECK(blocks == 2);
  CHECK(held.begin()->first < 24);
  CHECK(held.rbegin()->first >= 120);
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

namespace {

/// GPCs of 16 SMs, the last two of 18.
int gpc_of(int sm) { return sm < 96 ? sm / 16 : 6 + (sm - 96) / 18; }

}  // namespace

TEST_CASE("clusters go to each GPC in turn, to both SMs of a TPC first", "[cluster]") {
  const std::vector<int> sms = dealt(h200_like(), 4000, 1, 4);
  REQUIRE(sms.size() == 120);  // of a GPC of 18 SMs two stay empty, of the first the eight that stand apart
  CHECK(std::vector<int>(sms.begin(), sms.begin() + 4) == std::vector<int>{0, 1, 2, 3});
  CHECK(std::vector<int>(sms.begin() + 4, sms.begin() + 8) == std::vector<int>{16, 17, 18, 19});
  std::map<int, int> in_gpc;
  for (std::size_t i = 0; i < sms.size(); ++i) {
    CHECK(gpc_of(sms[i]) == gpc_of(sms[i / 4 * 4]));
    ++in_gpc[gpc_of(sms[i])];
  }
  for (const auto& [gpc, blocks] : in_gpc) CHECK(blocks == (gpc == 0 ? 8 : 16));
  CHECK(dealt(h200_like(), 4000, 1, 16).size() == 7 * 16);
  CHECK(dealt(h200_like(), 4000, 1, 2).size() == 132);
  CHECK(dealt(h200_like(), 4000, 3, 8).size() == 24 + 7 * 48);
}

namespace {

/// The card's number of an SM as this model's: the card counts a TPC of each GPC, then the next of each; the first GPC
/// has but four of those, and its others, the last four numbers, stand apart.
int model_sm(int sm) {
  int gpc = sm % 16 / 2, tpc = sm / 16;
  if (sm >= 124) {
    gpc = 0;
    tpc = 4 + (sm - 124) / 2;
  } else if (sm >= 120) {
    gpc = 6 + (sm - 120) / 2;
    tpc = 8;
  } else if (sm >= 64) {
    gpc = 1 + (sm - 64) % 14 / 2;
    tpc = 4 + (sm - 64) / 14;
  }
  return (gpc < 7 ? gpc * 16 : 114) + tpc * 2 + sm % 2;
}

struct Placed {
  int size = 0, room = 0, blocks = 0;
  std::vector<int> sms;  ///< by block
};

/// The launches of cluster_places.csv whose blocks stay until all are there, in order.
std::vector<Placed> placed_on_a_card() {
  std::ifstream file(FOREWARP_SOURCE_DIR "/validation/calibration/cluster_places.csv");
  std::vector<Placed> launches;
  std::string line;
  while (std::getline(file, line)) {
    std::array<int, 6> n{};
    if (std::sscanf(line.c_str(), "place,%d,%d,%d,%d,%d,%d,", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]) != 6) continue;
    if (n[3] == 0 && n[4] == 0) launches.push_back({n[0], n[1], n[2], {}});
    launches.back().sms.push_back(model_sm(n[5]));
  }
  return launches;
}

}  // namespace

TEST_CASE("every cluster goes where an H200 was seen to place it", "[cluster]") {
  const std::vector<Placed> launches = placed_on_a_card();
  REQUIRE(launches.size() == 54);
  int gpc = 0;
  for (const Placed& launch : launches) {
    std::vector<int> sms;
    for (int time = 0; time < 2; ++time) {  // the program runs each twice and prints the second
      BlockDispatcher dispatcher(h200_like(), static_cast<std::uint64_t>(launch.blocks), launch.room, launch.size, gpc);
      sms.clear();
      for (Cycle now = 0; !dispatcher.exhausted(); now += 16)
        for (auto grant = dispatcher.next(now); grant.sm >= 0; grant = dispatcher.next(now)) sms.push_back(grant.sm);
      gpc = dispatcher.next_gpc();
    }
    INFO(launch.size << " blocks a cluster, room for " << launch.room << ", " << launch.blocks << " blocks");
    CHECK(sms == launch.sms);
  }
}

TEST_CASE("clusters begin one after another", "[cluster]") {
  GpuModel gpu = h200_like();
  gpu.cluster.interval_x16 = 64;
  BlockDispatcher dispatcher(gpu, 8, 1, 2);
  const auto at_once = [&](Cycle now) {
    int blocks = 0;
    while (dispatcher.next(now).sm >= 0) ++blocks;
    return blocks;
  };
  CHECK(at_once(0) == 2);
  CHECK(dispatcher.wake(0) == 6);  // 16 blocks in 16 cycles, 4 cycles a cluster
  CHECK(at_once(5) == 0);
  CHECK(at_once(6) == 2);
  CHECK(dispatcher.wake(6) == 12);
}

TEST_CASE("a cluster waits until its GPC has room for all of it", "[cluster]") {
  GpuModel gpu = h200_like();
  gpu.chip = {4, 2, {2}, 1980};
  gpu.launch.tpcs_apart = 0;
  gpu.launch.blocks_back_per_cycle_x16 = 16;
  gpu.launch.block_end_cycles = 10;
  BlockDispatcher dispatcher(gpu, 8, 1, 4);
  for (int i = 0; i < 4; ++i) {
    const auto grant = dispatcher.next(0);  // all at once
    CHECK(grant.block == static_cast<std::uint64_t>(i));
    CHECK(grant.sm == i);
  }
  CHECK(dispatcher.next(0).sm == -1);
  CHECK(dispatcher.next(100).sm == -1);
  CHECK(dispatcher.wake(100) == kNever);
  for (const int sm : {0, 1, 2}) dispatcher.finished(sm, 200);
  CHECK(dispatcher.next(300).sm == -1);
  dispatcher.finished(3, 400);
  CHECK(dispatcher.next(410).sm == -1);
  CHECK(dispatcher.wake(410) == 411);  // retired in a cycle, free after 10 more
  for (int i = 0; i < 4; ++i) CHECK(dispatcher.next(411).sm == i);
  CHECK(dispatcher.exhausted());
}

TEST_CASE("few clusters are spread over the GPCs", "[cluster]") {
  const std::vector<int> sms = dealt(h200_like(), 32, 1, 4);
  REQUIRE(sms.size() == 32);
  std::map<int, int> in_gpc;
  for (const int sm : sms) ++in_gpc[gpc_of(sm)];
  CHECK(in_gpc.size() == 8);
}

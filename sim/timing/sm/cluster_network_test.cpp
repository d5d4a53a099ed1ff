// Barriers of clusters and the way from SM to SM, to the cycle.
#include "timing/sm/cluster_network.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {

ClusterSpec spec() {
  ClusterSpec s;
  s.hop_cycles = 80;
  s.arrive_cycles = 90;
  s.sm_bytes_per_cycle = 32;
  s.load_bytes_per_cycle = 16;
  s.cpc_bytes_per_cycle = 64;
  s.cpc_atomics_x16 = 16;
  s.barrier_cycles = 250;
  return s;
}

/// A GPC that begins with SM 4: two CPCs, of four SMs and of two.
ClusterNetwork gpc() { return {spec(), 4, {7, 7, 8, 8, 7, 7}}; }

/// Two blocks of two warps, on SMs 4 and 5.
struct Pair {
  ClusterNetwork network = gpc();
  std::uint32_t index = network.start(7, 0, {4, 0, 14, true}, 2, 2);

  Pair() { CHECK(network.start(7, 1, {5, 0, 15, true}, 2, 2) == index); }
};

}  // namespace

TEST_CASE("the last warp to arrive ends a phase of the cluster's barrier", "[cluster]") {
  Pair pair;
  ClusterNetwork& network = pair.network;
  for (const Cycle now : {100, 110, 120}) network.arrive(pair.index, now);
  CHECK(network.phases(pair.index) == 0);
  CHECK(network.next() == kNever);
  network.arrive(pair.index, 200);
  CHECK(network.phases(pair.index) == 1);
  CHECK(network.phase_over_at(pair.index) == 450);
  for (const std::uint16_t sm : {4, 5}) {
    CHECK(network.next() == 450);
    const ClusterNetwork::Message told = network.take();
    CHECK(told.kind == ClusterNetwork::Message::Kind::BarrierOver);
    CHECK(told.to.sm == sm);
  }
}

TEST_CASE("warps that exit are not waited for", "[cluster]") {
  Pair pair;
  ClusterNetwork& network = pair.network;
  network.arrive(pair.index, 100);
  network.arrive(pair.index, 100);
  network.exit(pair.index, true, 150);  // had arrived
  network.exit(pair.index, false, 160);
  CHECK(network.phases(pair.index) == 0);
  network.exit(pair.index, false, 300);
  CHECK(network.phases(pair.index) == 1);
  CHECK(network.next() == 550);
}

TEST_CASE("arrivals get there in the order in which they leave", "[cluster]") {
  Pair pair;
  ClusterNetwork& network = pair.network;
  PhaseRecord first, second;
  first.barrier = 8;
  second.barrier = 16;
  CHECK(network.send(pair.index, 1, first, 30) == 120);
  CHECK(network.send(pair.index, 0, second, 30) == 120);
  const ClusterNetwork::Message one = network.take(), other = network.take();
  CHECK(one.to.block == 15);
  CHECK(one.record.barrier == 8);
  CHECK(other.to.block == 14);
  CHECK(network.next() == kNever);
  network.end(pair.index, 1);
  network.send(pair.index, 1, first, 200);  // to a block that has left
  CHECK(network.next() == kNever);
}

TEST_CASE("data wait for the ports of both SMs", "[cluster]") {
  ClusterNetwork network = gpc();
  CHECK(network.load(4, 5, 128, 1000).there == 1000 + 80 + 8 + 80);
  // The same target takes it 8 cycles later; the source sends in 4, and for another one after that.
  CHECK(network.load(4, 5, 128, 1000).there == 1000 + 80 + 16 + 80);
  CHECK(network.load(6, 5, 128, 1000).there == 1000 + 80 + 12 + 80);
  // The way takes the next load when the data of this one would have come but for the hops.
  CHECK(network.load(8, 9, 128, 3000).free == 3000 + 8);
  CHECK(network.store(9, 4, 64, 5000).there == 5000 + 2 + 80);
  CHECK(network.store(9, 4, 64, 5000).free == 5000 + 4);
}

TEST_CASE("the SMs of a CPC share its switch with what leaves them", "[cluster]") {
  ClusterNetwork network = gpc();
  // 256 bytes pass a port in 8 cycles and a switch in 4.
  CHECK(network.store(4, 5, 256, 1000).free == 1000 + 8);
  CHECK(network.store(5, 4, 256, 1000).free == 1000 + 8);
  CHECK(network.store(8, 9, 256, 1000).free == 1000 + 3 * 4);
  CHECK(network.store(6, 7, 256, 1000).free == 1000 + 8);
  ClusterNetwork other = gpc();
  CHECK(other.store(6, 7, 256, 1000).free == 1000 + 8);
  CHECK(other.store(4, 6, 256, 1000).free == 1000 + 8);  // the switch of 6 is not asked
  CHECK(other.store(8, 9, 256, 1000).free == 1000 + 8);
}

TEST_CASE("atomics go by sectors, there and back", "[cluster]") {
  ClusterNetwork network = gpc();
  // Four sectors leave in 4 cycles and come back in 8; the switch takes them and their 64 bytes in 5, the answers in 4.
  CHECK(network.atomic(4, 5, 4, 64, 1000).free == 1000 + 5 + 4);
  ClusterNetwork apart = gpc();
  // Of another CPC: nothing waits for the requests.
  CHECK(apart.atomic(4, 6, 4, 64, 1000).free == 1000 + 8);
  // Who serves one sends its own less soon: both ports are taken.
  CHECK(apart.atomic(6, 4, 4, 64, 1000).free == 1000 + 4 + 8);
}

TEST_CASE("what comes back stands in line where it was asked for", "[cluster]") {
  ClusterNetwork network = gpc();
  // A load's answer leaves 5 after 8 cycles; what 5 stores then does not wait for the hop there.
  CHECK(network.load(4, 5, 128, 1000).there == 1000 + 8 + 2 * 80);
  CHECK(network.store(5, 4, 128, 1010).free == 1010 + 4);
}

TEST_CASE("the place of a cluster that has ended is taken by another", "[cluster]") {
  Pair pair;
  ClusterNetwork& network = pair.network;
  const std::uint32_t beside = network.start(8, 0, {6, 0, 16, true}, 2, 2);
  CHECK(beside != pair.index);
  network.end(pair.index, 0);
  network.end(pair.index, 1);
  CHECK(network.has(pair.index, 15));
  CHECK(network.start(9, 0, {4, 1, 18, true}, 2, 2) == pair.index);
  CHECK_FALSE(network.has(pair.index, 15));
  CHECK(network.phases(pair.index) == 0);
}

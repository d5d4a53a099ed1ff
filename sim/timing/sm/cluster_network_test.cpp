// Barriers of clusters and the way from SM to SM, to the cycle.
#include "timing/sm/cluster_network.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {

ClusterSpec spec() {
  ClusterSpec s;
  s.hop_cycles = 80;
  s.sm_bytes_per_cycle = 16;
  s.barrier_cycles = 250;
  return s;
}

/// Two blocks of two warps, on SMs 4 and 5 of a GPC that begins with SM 4.
struct Pair {
  ClusterNetwork network{spec(), 4, 10};
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

TEST_CASE("arrivals take one hop, in the order in which they leave", "[cluster]") {
  Pair pair;
  ClusterNetwork& network = pair.network;
  PhaseRecord first, second;
  first.barrier = 8;
  second.barrier = 16;
  CHECK(network.send(pair.index, 1, first, 30) == 110);
  CHECK(network.send(pair.index, 0, second, 30) == 110);
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
  ClusterNetwork network(spec(), 4, 10);
  CHECK(network.load(4, 5, 128, 1000) == 1000 + 80 + 8 + 80);
  // The same source, 8 cycles later; another target meanwhile has to wait for it.
  CHECK(network.load(4, 5, 128, 1000) == 1000 + 80 + 16 + 80);
  CHECK(network.load(6, 5, 128, 1000) == 1000 + 80 + 24 + 80);
  CHECK(network.load(7, 8, 128, 1000) == 1000 + 80 + 8 + 80);
  CHECK(network.store(9, 4, 32, 5000) == 5000 + 2 + 80);
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

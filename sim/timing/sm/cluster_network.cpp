#include "timing/sm/cluster_network.h"

#include "base/error.h"

namespace forewarp {

std::uint32_t ClusterNetwork::start(std::uint64_t cluster, std::size_t rank, const Place& place, std::size_t blocks,
                                    std::size_t warps) {
  FW_CHECK(blocks <= kMostClusterBlocks, "a cluster has more blocks than there can be");
  std::size_t index = clusters_.size();
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    if (clusters_[i].used && clusters_[i].id == cluster) {
      index = i;
      break;
    }
    if (!clusters_[i].used) index = std::min(index, i);
  }
  if (index == clusters_.size()) clusters_.emplace_back();
  Cluster& one = clusters_[index];
  if (!one.used || one.id != cluster) {
    one = {};
    one.id = cluster;
    one.used = true;
    one.blocks = blocks;
    one.live = blocks * warps;
  }
  one.places[rank] = place;
  one.places[rank].here = true;
  return static_cast<std::uint32_t>(index);
}

void ClusterNetwork::end(std::uint32_t index, std::size_t rank) {
  Cluster& cluster = clusters_[index];
  cluster.places[rank].here = false;
  if (++cluster.ended == cluster.blocks) cluster.used = false;
}

void ClusterNetwork::arrive(std::uint32_t index, Cycle now) {
  ++clusters_[index].arrived;
  release_if_all(clusters_[index], now);
}

void ClusterNetwork::exit(std::uint32_t index, bool arrived, Cycle now) {
  Cluster& cluster = clusters_[index];
  --cluster.live;
  if (arrived) --cluster.arrived;
  release_if_all(cluster, now);
}

void ClusterNetwork::release_if_all(Cluster& cluster, Cycle now) {
  if (cluster.arrived == 0 || cluster.arrived < cluster.live) return;
  cluster.arrived = 0;
  ++cluster.phases;
  cluster.over_at = now + static_cast<Cycle>(spec_.barrier_cycles);
  for (std::size_t rank = 0; rank < cluster.blocks; ++rank)
    if (cluster.places[rank].here) post(Message::Kind::BarrierOver, cluster.places[rank], {}, cluster.over_at);
}

}  // namespace forewarp

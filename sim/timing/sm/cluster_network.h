// What joins the SMs of a GPC for the clusters that run there: the clusters' barriers, and the way from SM to SM that
// arrivals, bytes and data take. One for each GPC, whose SMs one thread runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <queue>
#include <vector>

#include "base/limits.h"
#include "hardware/gpu_model.h"
#include "timing/engine/rate_server.h"
#include "trace/trace.h"

namespace forewarp {

class ClusterNetwork {
 public:
  /// For SMs from `first_sm` on, whose CPCs are given.
  ClusterNetwork(const ClusterSpec& spec, std::size_t first_sm, std::vector<std::uint16_t> cpcs)
      : spec_(spec),
        first_sm_(first_sm),
        cpc_(std::move(cpcs)),
        out_(cpc_.size()),
        in_(cpc_.size()),
        cpc_ways_(cpc_.empty() ? 0 : *std::max_element(cpc_.begin(), cpc_.end()) + 1u) {}

  /// Where a block of a cluster runs.
  struct Place {
    std::uint16_t sm = 0, slot = 0;
    std::uint32_t block = 0;  ///< linear index
    bool here = false;        ///< it has started and not ended
  };
  /// What reaches a block from elsewhere.
  struct Message {
    enum class Kind : std::uint8_t { Phase /* at one of its barriers in shared memory */, BarrierOver };
    Kind kind{};
    Cycle at = 0;
    std::uint64_t order = 0;  ///< of messages of one cycle
    Place to;
    PhaseRecord record;
  };

  /// A block of a cluster starts; `blocks` of `warps` each make the cluster. An index for the calls that follow.
  std::uint32_t start(std::uint64_t cluster, std::size_t rank, const Place& place, std::size_t blocks,
                      std::size_t warps);
  void end(std::uint32_t index, std::size_t rank);
  /// Whether a block belongs to the cluster that has this index now.
  bool has(std::uint32_t index, std::uint32_t block) const {
    const Cluster& one = clusters_[index];
    return std::any_of(one.places.begin(), one.places.begin() + static_cast<std::ptrdiff_t>(one.blocks),
                       [&](const Place& place) { return place.block == block; });
  }
  const Place& place(std::uint32_t index, std::size_t rank) const { return clusters_[index].places[rank]; }

  // The cluster's barrier. So many of its phases are over.
  std::uint32_t phases(std::uint32_t index) const { return clusters_[index].phases; }
  /// When the last of them was.
  Cycle phase_over_at(std::uint32_t index) const { return clusters_[index].over_at; }
  /// A warp arrives; the last one tells all blocks.
  void arrive(std::uint32_t index, Cycle now);
  /// A warp exits, which may have arrived in the phase under way.
  void exit(std::uint32_t index, bool arrived, Cycle now);

  /// Arrivals and bytes that leave an SM for a barrier in a block's shared memory. Returns when they are there.
  Cycle send(std::uint32_t index, std::size_t rank, const PhaseRecord& record, Cycle leaves) {
    const Cycle at = leaves + static_cast<Cycle>(spec_.arrive_cycles);
    post(Message::Kind::Phase, clusters_[index].places[rank], record, at);
    return at;
  }
  /// The same without the way: the data of a copy that reach all its blocks at once.
  void complete(std::uint32_t index, std::size_t rank, const PhaseRecord& record, Cycle at) {
    post(Message::Kind::Phase, clusters_[index].places[rank], record, at);
  }
  /// Bytes that an SM stores in another one's shared memory, and those that it loads from there.
  struct Carried {
    Cycle there = 0;  ///< the last of them
    Cycle free = 0;   ///< when the SM's way takes its next access
  };
  Carried store(std::uint16_t from, std::uint16_t to, std::uint32_t bytes, Cycle now) {
    const FineCycle port = fine_cost(spec_.sm_bytes_per_cycle, bytes);
    return carried(carry(from, to, {port, port, fine_cost(spec_.cpc_bytes_per_cycle, bytes)}, now), 1);
  }
  /// What comes back takes its place in the queues when it is asked for. Who asks takes it more slowly than it is sent.
  Carried load(std::uint16_t to, std::uint16_t from, std::uint32_t bytes, Cycle now) {
    return carried(carry(from, to, answer(bytes, fine_cost(spec_.cpc_bytes_per_cycle, bytes)), now), 2);
  }
  /// Atomics on words of `bytes` in all that lie in so many sectors, there and back. A switch takes a sector at a time,
  /// however few words of it there are.
  Carried atomic(std::uint16_t from, std::uint16_t to, std::uint32_t sectors, std::uint32_t bytes, Cycle now) {
    const std::uint32_t whole = sectors * static_cast<std::uint32_t>(kSectorBytes);
    const FineCycle port = fine_cost(spec_.sm_bytes_per_cycle, whole);
    const FineCycle way = fine_cost(spec_.cpc_atomics_x16 / 16.0, sectors);
    const FineCycle asked = carry(from, to, {port, port, way + fine_cost(spec_.cpc_bytes_per_cycle, bytes)}, now);
    return carried(std::max(asked, carry(to, from, answer(whole, way), now)), 2);
  }

  Cycle next() const { return messages_.empty() ? kNever : messages_.top().at; }
  /// Takes a message that is due; there is one.
  Message take() {
    const Message first = messages_.top();
    messages_.pop();
    return first;
  }

 private:
  struct Cluster {
    std::uint64_t id = 0;
    bool used = false;
    std::size_t blocks = 0, ended = 0;
    std::size_t live = 0, arrived = 0;  ///< warps
    std::uint32_t phases = 0;
    Cycle over_at = 0;
    std::array<Place, kMostClusterBlocks> places{};
  };
  struct Later {
    bool operator()(const Message& a, const Message& b) const { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  };

  void post(Message::Kind kind, const Place& to, const PhaseRecord& record, Cycle at) {
    if (to.here) messages_.push({kind, at, order_++, to, record});
  }
  void release_if_all(Cluster& cluster, Cycle now);
  Carried carried(FineCycle passed, Cycle hops) const {
    return {fine_ceil(passed) + hops * static_cast<Cycle>(spec_.hop_cycles), fine_floor(passed)};
  }
  /// What data take of the port that they leave by, the one that they arrive at, and the switch.
  struct Cost {
    FineCycle out = 0, in = 0, way = 0;
  };
  Cost answer(std::uint32_t bytes, FineCycle way) const {
    return {fine_cost(spec_.sm_bytes_per_cycle, bytes), fine_cost(spec_.load_bytes_per_cycle, bytes), way};
  }
  /// Through the port of the one, the switch of its CPC, and the port of the other. An SM has no more than one access
  /// on its way to them, so that all three are queues in the order of accesses.
  FineCycle carry(std::uint16_t from, std::uint16_t to, const Cost& cost, Cycle now) {
    const std::size_t source = from - first_sm_, target = to - first_sm_;
    const FineCycle from_now = to_fine(now);
    const FineCycle out = out_[source].take(from_now, cost.out) + cost.out;
    const FineCycle in = in_[target].take(from_now, cost.in) + cost.in;
    const FineCycle way = cpc_ways_[cpc_[source]].take(from_now, cost.way) + cost.way;
    return std::max({out, in, way});
  }

  ClusterSpec spec_;
  std::size_t first_sm_;
  std::vector<Cluster> clusters_;
  std::vector<std::uint16_t> cpc_;    ///< of each SM
  std::vector<RateServer> out_, in_;  ///< by SM
  std::vector<RateServer> cpc_ways_;
  std::priority_queue<Message, std::vector<Message>, Later> messages_;
  std::uint64_t order_ = 0;
};

}  // namespace forewarp

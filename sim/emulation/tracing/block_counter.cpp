#include "emulation/tracing/block_counter.h"

#include <algorithm>
#include <atomic>
#include <deque>

#include "base/crew.h"
#include "emulation/tracing/trace_observer.h"
#include "trace/builder.h"

namespace forewarp::emulation {
namespace {

constexpr std::uint64_t kPiece = 16;  ///< blocks that a thread takes at a time

/// What one thread needs.
class Counter {
 public:
  Counter(const LaunchState& launch, GlobalView::Writes writes, TracePools& pools) : executor_(launch, writes) {
    for (std::size_t rank = 0; rank < executor_.size(); ++rank) parts_.emplace_back(launch, executor_.warps(), pools);
  }

  /// Runs its cluster; the other blocks of that count when their turn comes.
  void count(const Dim3& block) {
    const std::size_t own = executor_.rank_of(block);
    executor_.run(block, [&](std::size_t rank) -> CountObserver& {
      return rank == own ? parts_[rank].observer : parts_[rank].beside;
    });
    parts_[own].builder.next_block();
  }
  void add_counts(std::vector<InstructionCount>& totals) {
    for (Part& part : parts_) part.builder.add_counts(totals);
  }

 private:
  struct Part {
    Part(const LaunchState& launch, int warps, TracePools& pools)
        : builder(*launch.kernel->kernel, warps, pools),
          unused(*launch.kernel->kernel, warps, pools),
          observer(builder),
          beside(unused) {
      builder.count_only();
      unused.count_only();
    }
    BlockTraceBuilder builder, unused;
    CountObserver observer, beside;
  };
  ClusterExecutor executor_;
  std::deque<Part> parts_;
};

}  // namespace

void count_blocks(const LaunchState& launch, const KernelTrace& trace, const std::vector<std::uint64_t>& blocks,
                  unsigned threads, std::vector<InstructionCount>& totals) {
  const bool any_order = launch.global->any_order();
  KernelTrace unused;  // nothing is added to it where only counts matter
  TracePools pools(unused);
  Crew crew(any_order ? threads : 1);
  std::deque<Counter> counters;
  for (unsigned member = 0; member < crew.size(); ++member)
    counters.emplace_back(launch, any_order ? GlobalView::Writes::Noted : GlobalView::Writes::Done, pools);
  std::atomic<bool> failed{false};
  const auto pieces = static_cast<std::uint32_t>((blocks.size() + kPiece - 1) / kPiece);
  crew.run(pieces, [&](std::uint32_t piece, unsigned member) {
    if (failed) return;  // what the others would count is no use any more
    try {
      const std::size_t end = std::min<std::size_t>((piece + 1) * kPiece, blocks.size());
      for (std::size_t i = piece * kPiece; i < end; ++i) counters[member].count(trace.block_index(blocks[i]));
    } catch (...) {
      failed = true;
      throw;
    }
  });
  for (Counter& counter : counters) counter.add_counts(totals);
}

}  // namespace forewarp::emulation

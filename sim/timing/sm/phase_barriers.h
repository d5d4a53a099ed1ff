// The barriers in shared memory of one block (mbarrier): arrivals and bytes that a phase still lacks, who waits for its
// end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.h"
#include "trace/trace.h"

namespace forewarp {

class PhaseBarriers {
 public:
  struct Waiter {
    std::uint16_t warp = 0;
    std::uint8_t scoreboard = 0;
    std::uint32_t barrier = 0, phase = 0;
  };

  void clear() {
    barriers_.clear();
    waiters_.clear();
  }

  void init(std::uint32_t offset, std::uint32_t arrivals) {
    Barrier* found = find(offset);
    Barrier& barrier = found != nullptr ? *found : barriers_.emplace_back();
    barrier = {offset, arrivals, arrivals, 0, 0, 0};
  }

  /// Arrivals and bytes, announced or (negative) completed, that reach the barrier at `at`. Calls wake(waiter, at) for
  /// those whose phase this ends.
  template <class Wake>
  void change(const PhaseRecord& record, Cycle at, Wake&& wake) {
    Barrier* barrier = find(record.barrier);
    if (barrier == nullptr) return;
    barrier->missing -= static_cast<std::int64_t>(record.arrivals);
    barrier->bytes += record.bytes;
    if (record.leaves) barrier->expected -= std::min(barrier->expected, record.arrivals);
    if (barrier->missing != 0 || barrier->bytes != 0) return;
    barrier->missing = barrier->expected;
    ++barrier->completed;
    barrier->completed_at = at;
    std::erase_if(waiters_, [&](const Waiter& waiter) {
      if (waiter.barrier != barrier->offset || waiter.phase > barrier->completed) return false;
      wake(waiter, at);
      return true;
    });
  }

  /// When so many phases were over; kNever: they are not, and the waiter is kept.
  Cycle await(const Waiter& waiter) {
    const Barrier* barrier = find(waiter.barrier);
    if (barrier != nullptr && barrier->completed >= waiter.phase) return barrier->completed_at;
    waiters_.push_back(waiter);
    return kNever;
  }
  bool over(std::uint32_t offset, std::uint32_t phase) const {
    const Barrier* barrier = find(offset);
    return barrier != nullptr && barrier->completed >= phase;
  }
  /// Phases that are over.
  std::uint32_t completed(std::uint32_t offset) const {
    const Barrier* barrier = find(offset);
    return barrier == nullptr ? 0 : barrier->completed;
  }

 private:
  struct Barrier {
    std::uint32_t offset = 0;
    std::uint32_t expected = 0;
    std::int64_t missing = 0;
    std::int64_t bytes = 0;
    std::uint32_t completed = 0;
    Cycle completed_at = 0;
  };
  const Barrier* find(std::uint32_t offset) const {
    for (const Barrier& one : barriers_)
      if (one.offset == offset) return &one;
    return nullptr;
  }
  Barrier* find(std::uint32_t offset) { return const_cast<Barrier*>(std::as_const(*this).find(offset)); }

  std::vector<Barrier> barriers_;
  std::vector<Waiter> waiters_;
};

}  // namespace forewarp

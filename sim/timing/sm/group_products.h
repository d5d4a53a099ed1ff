// A sub-partition's share in the products of warpgroups. They follow one another on its tensor pipe, in slabs of so
// many columns. For each slab the pipe reads and writes the sums over the ports of the register file, in a burst that
// begins in a cycle in which no instruction reads there, and that none interrupts (kernels/micro warpgroup_beside).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>

#include "base/error.h"
#include "base/types.h"
#include "hardware/tensor.h"

namespace forewarp {

class GroupProducts {
 public:
  using Number = std::uint32_t;  ///< products are counted from 1

  /// Another product, behind all others. What ran until now has been said by advance().
  Number push(const MatrixSlabs& slabs, Cycle now) {
    if (left_ == 0) next_ = std::max(next_, now);
    queue_.push_back(slabs);
    if (left_ == 0) begin();
    return ++last_;
  }

  bool busy() const { return left_ > 0; }

  /// Slabs begin that can before `now`.
  void advance(Cycle now) {
    while (left_ > 0) {
      const Cycle from = std::max(next_, read_until_);
      if (from >= now) return;
      const MatrixSlabs& slabs = queue_.front();
      // The first goes alone if a fetch makes it longer.
      const int fetch = left_ == slabs.count ? slabs.fetch_cycles : 0;
      const Cycle begun = fetch > 0 ? 1 : std::min<Cycle>(left_, (now - from + slabs.cycles - 1) / slabs.cycles);
      next_ = from + begun * slabs.cycles + static_cast<Cycle>(fetch);
      burst_until_ = next_ - slabs.cycles + slabs.port_cycles;
      left_ -= static_cast<std::uint32_t>(begun);
      if (left_ > 0) continue;
      done_[++finished_ % done_.size()] = next_;
      queue_.pop_front();
      if (queue_.empty()) return;
      begin();
    }
  }

  /// Until when the burst under way holds the ports.
  Cycle burst_until() const { return burst_until_; }

  /// An instruction reads registers before `until`.
  void read_until(Cycle until) { read_until_ = until; }

  /// What leaves a queue to read a register comes amid a burst: cycles until it ends, on average. The next burst waits
  /// for it.
  Cycle wait_for_ports() {
    next_ += 1;
    return (queue_.front().port_cycles + 1u) / 2;
  }

  /// When a product has ended; kNever: it has not, or so many after it have that it is forgotten.
  Cycle ended(Number number) const {
    return number <= finished_ && finished_ - number < done_.size() ? done_[number % done_.size()] : kNever;
  }

  /// When a product has ended or, if nothing more reads registers meanwhile, will.
  Cycle done(Number number) const {
    if (finished_ >= number) return finished_ - number < done_.size() ? done_[number % done_.size()] : 0;
    FW_CHECK(number <= last_, "a product that has not been issued is waited for");
    Cycle at = std::max(next_, read_until_) + left_ * static_cast<Cycle>(queue_.front().cycles) +
               (left_ == queue_.front().count ? queue_.front().fetch_cycles : 0u);
    for (Number other = finished_ + 1; other < number; ++other) {
      const MatrixSlabs& slabs = queue_[other - finished_];
      at += slabs.lead_cycles + slabs.fetch_cycles + static_cast<Cycle>(slabs.count) * slabs.cycles;
    }
    return at;
  }

 private:
  void begin() {
    left_ = queue_.front().count;
    next_ += queue_.front().lead_cycles;
  }

  std::deque<MatrixSlabs> queue_;  ///< the one under way, and those behind it
  std::uint32_t left_ = 0;         ///< slabs of the first that have not begun; 0: nothing is under way
  Cycle next_ = 0;                 ///< when the next may begin
  Cycle read_until_ = 0;
  Cycle burst_until_ = 0;
  Number last_ = 0, finished_ = 0;
  std::array<Cycle, 64> done_{};  ///< of the last to end
};

}  // namespace forewarp

// A sub-partition's share in the products of warpgroups. They follow one another on its tensor pipe, in slabs of so
// many columns. For each slab the pipe reads and writes the sums over the port of each bank of the register file, in a
// burst that begins in a cycle in which no instruction reads that bank, and that none interrupts (kernels/micro
// warpgroup_beside).
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
  static constexpr std::size_t kBanks = 2;
  static constexpr unsigned kAllBanks = (1u << kBanks) - 1;  ///< sets of banks: a bit each

  /// Another product, behind all others. What ran until now has been said by advance().
  Number push(const MatrixSlabs& slabs, Cycle now) {
    if (left_ == 0) next_ = std::max(next_, now);
    queue_.push_back(slabs);
    if (left_ == 0) begin();
    return ++last_;
  }

  bool busy() const { return left_ > 0; }

  /// Bursts begin that can before `now`.
  void advance(Cycle now) {
    while (left_ > 0) {
      const MatrixSlabs& slabs = queue_.front();
      // The first goes alone if a fetch makes it longer.
      const int fetch = left_ == slabs.count ? slabs.fetch_cycles : 0;
      const Cycle from = begin_bursts(now, slabs.port_cycles + fetch);
      if (from == kNever) return;
      const bool alone = fetch > 0 || from > next_;
      const Cycle begun = alone ? 1 : std::min<Cycle>(left_, (now - from + slabs.cycles - 1) / slabs.cycles);
      next_ = from + begun * slabs.cycles + static_cast<Cycle>(fetch);
      if (begun > 1) burst_until_.fill(next_ - slabs.cycles + slabs.port_cycles);
      left_ -= static_cast<std::uint32_t>(begun);
      if (left_ > 0) continue;
      done_[++finished_ % done_.size()] = next_;
      queue_.pop_front();
      if (queue_.empty()) return;
      begin();
    }
  }

  /// Until when bursts under way hold the port of one of these banks.
  Cycle burst_until(unsigned banks) const {
    return std::max((banks & 1u) != 0 ? burst_until_[0] : 0, (banks & 2u) != 0 ? burst_until_[1] : 0);
  }

  /// An instruction reads registers of a bank before `until`.
  void read_until(std::size_t bank, Cycle until) { read_until_[bank] = std::max(read_until_[bank], until); }

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
    Cycle at = next_;
    for (std::size_t b = 0; b < kBanks; ++b) at = std::max(at, (begun_ >> b & 1u) != 0 ? begun_at_ : read_until_[b]);
    at += left_ * static_cast<Cycle>(queue_.front().cycles) +
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

  /// The slab's bursts begin, each in the first cycle from next_ on in which its bank is not read, if that is before
  /// `now`. Returns when the later one has; kNever: it has not.
  Cycle begin_bursts(Cycle now, int cycles) {
    for (std::size_t b = 0; b < kBanks; ++b) {
      if ((begun_ >> b & 1u) != 0) continue;
      const Cycle from = std::max(next_, read_until_[b]);
      if (from >= now) continue;
      burst_until_[b] = from + static_cast<Cycle>(cycles);
      begun_at_ = begun_ == 0 ? from : std::max(begun_at_, from);
      begun_ |= 1u << b;
    }
    if (begun_ != kAllBanks) return kNever;
    begun_ = 0;
    return begun_at_;
  }

  std::deque<MatrixSlabs> queue_;  ///< the one under way, and those behind it
  std::uint32_t left_ = 0;         ///< slabs of the first that have not begun; 0: nothing is under way
  Cycle next_ = 0;                 ///< when the next may begin
  unsigned begun_ = 0;             ///< banks with a burst for that slab
  Cycle begun_at_ = 0;             ///< ... the last of them
  std::array<Cycle, kBanks> read_until_{}, burst_until_{};
  Number last_ = 0, finished_ = 0;
  std::array<Cycle, 64> done_{};  ///< of the last to end
};

}  // namespace forewarp

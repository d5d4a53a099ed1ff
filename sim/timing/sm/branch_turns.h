// Whose turn it is once a warp takes a branch. Other stalls let the oldest block's warp go on; a taken branch hands the
// sub-partition to the warp that took one last before, whatever its age. Two warps whose loops only branches interrupt
// so change places, a whole turn each, while older ones wait, ready, until one of the two stalls for another reason.
#pragma once

#include <array>

namespace forewarp {

/// Of one sub-partition, by warp slot.
class BranchTurns {
 public:
  static constexpr int kNobody = -1;

  /// The warp that goes before all but the one that issued last; kNobody after anything but a taken branch.
  int next() const { return next_; }
  /// A warp issues something: a turn that nobody was ready to take is lost.
  void issue() { next_ = kNobody; }
  /// What the warp in `slot` has issued is a taken branch.
  void branch(int slot) {
    if (recent_[0] != slot) recent_ = {slot, recent_[0]};
    next_ = recent_[1];
  }
  /// The warp in `slot` has ended.
  void leave(int slot) {
    if (recent_[0] == slot) recent_ = {recent_[1], kNobody};
    if (recent_[1] == slot) recent_[1] = kNobody;
    if (next_ == slot) next_ = kNobody;
  }

 private:
  std::array<int, 2> recent_{kNobody, kNobody};  ///< the warps that took a branch last, the latest first
  int next_ = kNobody;
};

}  // namespace forewarp

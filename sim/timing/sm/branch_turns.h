// Whose turn it is after a taken branch. Other stalls hand the sub-partition to the oldest block's warp; a taken branch
// hands it to the warp that took the previous one, whatever its age. Two warps that stall only at branches therefore
// alternate, a whole trip each, while older ready warps wait, until one of the two stalls for another reason.
#pragma once

#include <array>

namespace forewarp {

/// Of one sub-partition, by warp slot.
class BranchTurns {
 public:
  static constexpr int kNobody = -1;

  /// The warp with priority over all but the last issuer; kNobody after anything but a taken branch.
  int next() const { return next_; }
  /// A warp issues: a turn that was not taken is lost.
  void issue() { next_ = kNobody; }
  /// The warp in `slot` issued a taken branch.
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
  std::array<int, 2> recent_{kNobody, kNobody};  ///< the last two warps that took a branch, latest first
  int next_ = kNobody;
};

}  // namespace forewarp

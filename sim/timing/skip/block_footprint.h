// What blocks that are left out would have read and written below L1, in the order in which their wave would have: L2
// is as full and as dirty afterwards as if they had run, and their DRAM traffic is counted rather than scaled.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "timing/memory/l2_traffic.h"
#include "timing/memory/touch_lists.h"
#include "timing/skip/rest_schedule.h"
#include "timing/skip/steps_in_time.h"
#include "timing/sm/sm.h"

namespace forewarp {

/// In lines. All slices are touched for up to `touched`; of more, every second, fourth or eighth slice; of more than
/// `seen`, `in_stretches` spread over the time. The last ones, `at_the_end`, are touched in any case, and in all
/// slices.
struct TouchEffort {
  std::uint64_t touched = 0, seen = 0, in_stretches = 0, at_the_end = 0;
};

class BlockFootprint {
 public:
  /// The crew's threads share what is touched.
  BlockFootprint(const LaunchContext&, Crew&);

  static constexpr std::size_t kKeptClasses = 256;  ///< kept; a launch of more has a class for nearly every block
  bool keeps_all() const { return context_.trace.classes.size() <= kKeptClasses; }

  /// Lines that have been listed or touched so far; four that were no more than looked through count as one.
  std::uint64_t work() const { return work_; }
  /// At most so many lines are touched by a block, in the mean over the grid.
  std::uint64_t lines_per_block() const { return lines_per_block_; }
  /// Touches L2 for parts of blocks as time passes, or for as much of them as the effort allows: then what some slices
  /// do in the middle of the time stands for all, and only those of the last sample are as all would be afterwards.
  L2Traffic follow(std::span<const RestPart>, const TouchEffort&, MemorySystem&);

  /// L1 of an SM holds what the last lines leave in it that parts of its blocks ask for.
  void fill_l1(std::span<const RestPart> of_sm, Sm&);

 private:
  struct Line {
    std::uint64_t line = 0;  ///< of the class's representative
    std::uint32_t slope = 0;
    std::uint8_t sectors = 0;
    RequestKind kind = RequestKind::Read;
    std::uint8_t bytes = 0;  ///< of the sectors
    std::uint8_t fetch = 0;  ///< LineSectors::fetch
    bool by_l1 = false;      ///< L1 holds it then
  };
  /// A class's lines in order of time; begin[s] is the first of step s.
  struct Footprint {
    std::vector<Line> lines;
    std::vector<std::uint32_t> begin;
    BlockSteps steps;  ///< that have lines

    /// Lines before a place on its way.
    std::uint32_t before(double position) const;
    /// Those of a step that lie in a part.
    std::span<const Line> of_step(std::uint32_t step, const RestPart&) const;
  };
  /// How far a block lies from its class's representative. One that the representative stands for without proof may lie
  /// sectors beyond whole lines: they move within each line, so that blocks less than a line apart ask for all of it.
  struct Shift {
    std::uint64_t lines = 0;
    int sectors = 0;

    std::uint8_t of(std::uint8_t mask) const {
      constexpr int kAll = kLineBytes / kSectorBytes;
      return static_cast<std::uint8_t>((mask << sectors | mask >> (kAll - sectors)) & ((1 << kAll) - 1));
    }
  };
  struct Running {
    std::shared_ptr<const Footprint> footprint;
    std::uint16_t sm = 0;
    std::vector<Shift> shifts;  ///< by slope
  };
  static constexpr std::size_t kAtOnce = 8192;  // lines; more would not stay in the host's near caches

  Footprint gather(const BlockClass&) const;
  /// The last kKeptClasses that were asked for are kept, but for all of them now and then.
  std::shared_ptr<const Footprint> footprint(std::uint32_t cls);
  /// What a part of a block asks L2 for: lines to read, sectors to write.
  double asked(const RestPart&, std::uint64_t Asked::*count);
  /// Before each step of a class, and in all.
  const std::vector<Asked>& asked_by_step(std::uint32_t cls);
  void start(std::uint64_t block, std::uint16_t sm, Running&);
  /// A block's lines of a step.
  struct Due {
    const Running* block = nullptr;
    std::span<const Line> lines;
  };
  /// Touches what is due.
  TouchLists::Counted touch_due(std::uint32_t every, MemorySystem&);

  LaunchContext context_;
  std::uint64_t lines_per_block_ = 0, work_ = 0;
  std::unordered_map<std::uint32_t, std::shared_ptr<const Footprint>> by_class_;
  std::unordered_map<std::uint32_t, std::vector<Asked>> asked_;
  std::vector<Due> due_;
  std::size_t lines_due_ = 0;
  TouchLists lists_;
};

}  // namespace forewarp

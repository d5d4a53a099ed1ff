// Watches the warps in flight go round their loops until they do so at a steady rate.
#pragma once

#include <optional>
#include <vector>

#include "timing/gpu/gpu.h"
#include "timing/skip/gpu_loops.h"
#include "timing/skip/loop_progress.h"

namespace forewarp {

class LoopWatch {
 public:
  /// `line_period`: iterations after which accesses have moved by whole lines; `budget`: warp instructions that are
  /// worth simulating.
  LoopWatch(const Gpu& gpu, const Loops& loops, std::uint32_t line_period, std::uint64_t budget)
      : gpu_(gpu), loops_(loops), line_period_(line_period), budget_(static_cast<double>(budget)) {}

  /// A stretch at a steady rate that ends now.
  struct Steady {
    LoopProgress progress;
    std::vector<double> expected;  ///< iterations a block is reckoned to move on in a time like this stretch
    double moved = 0;              ///< ... the mean of all
    double rate = 0, other = 0;    ///< iterations a cycle of the mean; what it agrees with
    bool dear = false;             ///< to look again would cost more than the budget
    bool alone = false;            ///< it is the first
    bool agrees = true;            ///< with another; else it is all that was seen of these loops
    std::uint64_t loops = 0;       ///< of loops_in_flight()
    Cycle cycles = 0;
    TimingCounters since;    ///< when it began
    TimingCounters entered;  ///< when the blocks in flight entered these loops
  };
  /// To be called now and then, every warp being simulated. `known`: the rate of an earlier wave, which a stretch need
  /// only confirm; 0: none.
  std::optional<Steady> look(double known);

  /// Stretches before and after a part that was left out agree when their rates differ by less; where L2 has filled in
  /// between, only one that hardly differs is the same, unless it is dear to look once more.
  static constexpr double kAgreeAcross = 0.06, kAgreeFull = 0.02, kAgreeFullDear = 0.05;
  /// Blocks have been moved on; they went at `rate` until then (0: that says nothing of what follows).
  void restart(double rate, double limit);

 private:
  /// Changes whenever a block or a warp comes or goes, or a warp goes on to another loop.
  struct Residents {
    std::uint64_t dispatched = 0, finished = 0;
    int warps = 0;
    std::uint64_t loops = 0;
    bool operator==(const Residents&) const = default;
  };
  struct Mark {
    Cycle at = 0;
    std::uint64_t issued = 0;
    LoopProgress progress, half_way;  ///< now, and about half way through the window that ends here
    TimingCounters counters;
  };

  /// None: a warp is in no loop.
  std::optional<Residents> residents() const;
  Mark mark() const { return {gpu_.now(), gpu_.issued(), loop_progress(gpu_, loops_), {}, gpu_.counters()}; }
  bool window_is_over();
  double least_move() const;
  double moved(const Mark& from, const Mark& to) const;
  double rate(const Mark& from, const Mark& to) const;
  std::optional<Steady> judge(double known) const;

  const Gpu& gpu_;
  const Loops& loops_;
  std::uint32_t line_period_ = 1;
  double budget_ = 0;
  std::optional<Residents> residents_;  ///< of the marks; none: not all were inside their loops
  TimingCounters entered_;              ///< when these were all inside
  std::vector<Mark> marks_;             ///< windows lie between them
  LoopProgress half_way_;               ///< of the window under way
  bool settling_ = false;               ///< just after blocks were moved on
  double target_ = 0;                   ///< iterations that the window under way is to last, once known
  double before_ = 0, limit_ = 0;       ///< rate before blocks were moved on; how far the next may be off it
};

}  // namespace forewarp

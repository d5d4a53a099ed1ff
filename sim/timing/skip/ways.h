// The ways of blocks through the code, as skipping sees them: the loop in which each warp spends its time, and how many
// instructions lie before any point of its path.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "timing/skip/loops.h"
#include "timing/sm/sm.h"

namespace forewarp {

struct PathShape {
  PathLoop loop;
  std::vector<std::uint64_t> before;  ///< instructions before each run, and in all
  std::uint64_t whole = 0;            ///< equal for paths of the same runs
  std::uint64_t body = 0;             ///< equal for loops of the same runs; 0: no loop

  bool in_loop(std::uint32_t run) const {
    return loop.period != 0 && run >= loop.first_run && run < loop.end_run();
  }
  std::uint64_t loop_begin() const { return loop.period == 0 ? before.back() : before[loop.first_run]; }
  std::uint64_t loop_end() const { return loop.period == 0 ? before.back() : before[loop.end_run()]; }
};

/// Instructions of all warps of a block: before their loops, in them, and in all.
struct BlockWay {
  double before_loop = 0, in_loop = 0, all = 0;
  double iteration = 0;           ///< of one iteration of every warp
  std::uint32_t line_period = 1;  ///< iterations after which accesses have moved by whole lines
};

/// Made for each class when it is first asked for.
class Ways {
 public:
  explicit Ways(const LaunchContext& context);
  const std::vector<PathShape>& shapes(std::uint32_t cls) { return of(cls).shapes; }
  const BlockWay& way(std::uint32_t cls) { return of(cls).way; }

 private:
  struct ClassWays {
    std::vector<PathShape> shapes;
    BlockWay way;
  };
  const ClassWays& of(std::uint32_t cls);

  LaunchContext context_;
  std::vector<std::unique_ptr<ClassWays>> by_class_;
};

}  // namespace forewarp

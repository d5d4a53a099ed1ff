#include "timing/skip/ways.h"

namespace forewarp {
namespace {

std::uint64_t hash_of(const std::vector<Run>& runs, std::size_t first, std::size_t end) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (std::size_t r = first; r < end; ++r)
    hash = ((hash ^ runs[r].first) * 0x100000001B3ull ^ runs[r].count) * 0x9E3779B97F4A7C15ull;
  return hash | 1;
}

}  // namespace

Ways::Ways(const LaunchContext& context) : context_(context), by_class_(context.trace.classes.size()) {}

const Ways::ClassWays& Ways::of(std::uint32_t index) {
  std::unique_ptr<ClassWays>& known = by_class_[index];
  if (known != nullptr) return *known;
  known = std::make_unique<ClassWays>();
  const BlockClass& cls = context_.trace.classes[index];
  for (const WarpPath& path : cls.paths) {
    PathShape shape;
    shape.loop = find_loop(path, context_.program);
    for (std::uint64_t sum = 0; const Run& run : path.runs) {
      shape.before.push_back(sum);
      sum += run.count;
    }
    shape.before.push_back(path.instructions);
    shape.whole = hash_of(path.runs, 0, path.runs.size());
    if (shape.loop.period != 0)
      shape.body = hash_of(path.runs, shape.loop.first_run, shape.loop.first_run + shape.loop.period);
    known->shapes.push_back(std::move(shape));
  }
  BlockWay& way = known->way;
  for (const WarpTrace& warp : cls.warps) {
    PathShape& shape = known->shapes[warp.path];
    if (shape.loop.line_period == 1 && shape.loop.period != 0)
      shape.loop.line_period = find_line_period(shape.loop, warp, context_.trace);
    way.before_loop += static_cast<double>(shape.loop_begin());
    way.in_loop += static_cast<double>(shape.loop_end() - shape.loop_begin());
    way.all += static_cast<double>(shape.before.back());
    way.iteration += static_cast<double>(shape.loop.instructions);
    way.line_period = std::max(way.line_period, shape.loop.line_period);
  }
  return *known;
}

}  // namespace forewarp

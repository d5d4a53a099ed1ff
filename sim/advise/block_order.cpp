#include "advise/block_order.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace forewarp::advise {

namespace {

/// Stripes as wide as this, or the divisors of the grid that are nearest to it.
constexpr std::array<std::uint32_t, 3> kWidths{4, 8, 16};

std::uint32_t nearest_divisor(std::uint32_t n, std::uint32_t wanted) {
  std::uint32_t best = 1;
  const auto distance = [&](std::uint32_t d) { return d > wanted ? d - wanted : wanted - d; };
  for (std::uint32_t d = 1; d <= std::min(n, 2 * wanted); ++d)
    if (n % d == 0 && distance(d) < distance(best)) best = d;
  return best;
}

/// The old index as a function of the new one: new (in stripe, along, stripe).
struct Turn {
  BlockOrder order;

  BlockSlope slope(const BlockSlope& old) const {
    const std::int64_t across = order.rows ? old.y : old.x, along = order.rows ? old.x : old.y;
    BlockSlope s = old;
    s.x = across;
    s.y = along;
    s.z = across * order.width;
    return s;
  }
  Dim3 index(const Dim3& old) const {
    const std::uint32_t across = order.rows ? old.y : old.x, along = order.rows ? old.x : old.y;
    return {across % order.width, along, across / order.width};
  }
};

}  // namespace

std::string BlockOrder::text() const {
  return "in stripes of " + std::to_string(width) + (rows ? " rows" : " columns");
}

std::vector<BlockOrder> block_orders(const KernelTrace& trace) {
  std::vector<BlockOrder> orders;
  const LaunchInfo& l = trace.launch;
  if (l.grid.x < 2 || l.grid.y < 2 || l.grid.z != 1 || l.cluster.count() > 1) return orders;
  if (l.inferred_blocks > 0 || l.side_by_side > 0) return orders;
  for (const bool rows : {true, false}) {
    const std::uint32_t all = rows ? l.grid.y : l.grid.x;
    for (const std::uint32_t wanted : kWidths) {
      const std::uint32_t width = nearest_divisor(all, wanted);
      // One row at a time is the grid's own order; all columns at a time, too.
      if ((rows && width == 1) || (!rows && width == all)) continue;
      if (std::none_of(orders.begin(), orders.end(),
                       [&](const BlockOrder& o) { return o.rows == rows && o.width == width; }))
        orders.push_back({rows, width});
    }
  }
  return orders;
}

std::shared_ptr<const KernelTrace> reordered(const KernelTrace& trace, const BlockOrder& order) {
  const Dim3 grid = trace.launch.grid;
  const std::uint32_t across = order.rows ? grid.y : grid.x, along = order.rows ? grid.x : grid.y;
  FW_CHECK(grid.z == 1 && order.width > 0 && across % order.width == 0, "a stripe that does not divide the grid");
  const Turn turn{order};
  auto out = std::make_shared<KernelTrace>(trace);
  out->launch.grid = {order.width, along, across / order.width};
  for (BlockSlope& slope : out->slopes) slope = turn.slope(slope);
  for (BlockQuotient& quotient : out->quotients) quotient.numerator = turn.slope(quotient.numerator);
  for (BlockClass& cls : out->classes) {
    cls.representative = turn.index(cls.representative);
    for (BlockCondition& condition : cls.conditions) condition.coefficient = turn.slope(condition.coefficient);
  }
  return out;
}

}  // namespace forewarp::advise

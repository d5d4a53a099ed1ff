// The same blocks in another order of dispatch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace forewarp::advise {

/// How blocks of a two-dimensional grid follow one another: in stripes of so many rows or columns, each walked along
/// its length, its width first. A stripe as wide as the grid is the grid column by column.
struct BlockOrder {
  bool rows = true;     ///< stripes of rows; otherwise of columns
  std::uint32_t width;  ///< divides the grid's rows, or columns
  std::string text() const;
};

/// Orders that differ from the grid's own; none where it has a single row or column, or its blocks are not told apart
/// by their place alone.
std::vector<BlockOrder> block_orders(const KernelTrace&);

/// A linear change of coordinates, so that classes stay what they are.
std::shared_ptr<const KernelTrace> reordered(const KernelTrace&, const BlockOrder&);

}  // namespace forewarp::advise

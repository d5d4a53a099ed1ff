#include "trace/class_index.h"

#include <algorithm>

#include "base/error.h"

namespace forewarp {
namespace {

constexpr std::size_t kManyClasses = 16;
constexpr std::uint64_t kMostListed = std::uint64_t{1} << 25;

bool is_stretch(const BlockClass& c, const Dim3& grid) {
  if (c.single || c.conditions.size() != 1) return false;
  const BlockCondition& only = c.conditions[0];
  return only.modulus == 1 && only.low > INT64_MIN && only.high < INT64_MAX && only.coefficient == linear_slope(grid);
}

}  // namespace

void ClassFinder::add(std::uint32_t index) {
  const BlockClass& c = trace_.classes[index];
  const BlockPlace at = trace_.place(c.representative);
  Known known{index, static_cast<std::uint32_t>(bounds_.size()), static_cast<std::uint32_t>(c.conditions.size()), {}};
  known.next.fill(kUnknown);
  constexpr Wide kFar = Wide{1} << 120;
  for (const BlockCondition& condition : c.conditions) {
    std::size_t form = 0;
    while (form < forms_.size() && forms_[form] != condition.coefficient) ++form;
    if (form == forms_.size()) {
      forms_.push_back(condition.coefficient);
      values_.emplace_back(0, 0);
    }
    const Wide here = condition.coefficient.exactly_over(at);
    bounds_.push_back({static_cast<std::uint32_t>(form), condition.low == INT64_MIN ? -kFar : here + condition.low,
                       condition.high == INT64_MAX ? kFar : here + condition.high, here, condition.modulus});
  }
  known_.push_back(known);
}

void ClassFinder::clear() {
  known_.clear();
  bounds_.clear();
  forms_.clear();
  values_.clear();
  latest_ = 0;
}

bool ClassFinder::holds(std::size_t i, const BlockPlace& place) {
  const Known& known = known_[i];
  for (std::uint32_t b = known.first; b < known.first + known.count; ++b) {
    const Bound& bound = bounds_[b];
    auto& [asked, value] = values_[bound.form];
    if (asked != asked_) {
      asked = asked_;
      value = forms_[bound.form].exactly_over(place);
    }
    if (value >= bound.low && value <= bound.high &&
        (bound.modulus <= 1 || (value - bound.origin) % bound.modulus == 0))
      continue;
    // What failed here is asked first the next time.
    if (b != known.first) std::swap(bounds_[b], bounds_[known.first]);
    return false;
  }
  return true;
}

std::uint32_t ClassFinder::find_first(const BlockPlace& place) const {
  for (const Known& known : known_) {
    const BlockClass& c = trace_.classes[known.index];
    if (c.contains({trace_.place(c.representative), place})) return known.index;
  }
  return kNone;
}

std::uint32_t ClassFinder::find(const BlockPlace& place) {
  ++asked_;
  if (known_.size() > kFew) {
    // What came after this class before mostly comes again.
    auto& next = known_[latest_].next;
    for (std::size_t n = 0; n < next.size() && next[n] != kUnknown; ++n) {
      ++tests_;
      if (!holds(next[n], place)) continue;
      const std::uint32_t found = next[n];
      std::rotate(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(n),
                  next.begin() + static_cast<std::ptrdiff_t>(n) + 1);
      latest_ = found;
      return known_[found].index;
    }
  }
  for (std::uint32_t i = 0; i < known_.size(); ++i) {
    ++tests_;
    if (!holds(i, place)) continue;
    auto& next = known_[latest_].next;
    std::rotate(next.begin(), next.end() - 1, next.end());
    next[0] = i;
    latest_ = i;
    return known_[i].index;
  }
  return kNone;
}

ClassIndex::ClassIndex(const KernelTrace& trace) : trace_(trace), shared_(trace) {
  for (std::uint32_t i = 0; i < trace.classes.size(); ++i) {
    const BlockClass& c = trace.classes[i];
    const std::uint64_t linear =
        (std::uint64_t{c.representative.z} * trace.launch.grid.y + c.representative.y) * trace.launch.grid.x +
        c.representative.x;
    if (is_stretch(c, trace.launch.grid)) {
      // The classes before it in the list, which go first, are all among the others.
      stretches_.emplace_back(linear + static_cast<std::uint64_t>(c.conditions[0].low), i);
    } else if (c.single) {
      singles_.emplace(linear, i);
    } else {
      shared_.add(i);
    }
  }
  std::sort(stretches_.begin(), stretches_.end());
  const std::uint64_t blocks = trace.launch.grid.count();
  if (shared_.size() <= kManyClasses || blocks > kMostListed) return;
  std::vector<std::uint32_t> of_block(blocks);
  for (std::uint64_t b = 0; b < blocks; ++b) {
    const auto single = singles_.find(b);
    const BlockPlace place = trace.place(trace.block_index(b));
    of_block[b] = single != singles_.end() ? single->second : shared_.find(place);
    if (of_block[b] == ClassFinder::kNone) of_block[b] = search(b, place);
  }
  of_block_ = std::move(of_block);
}

std::uint32_t ClassIndex::class_of(std::uint64_t linear_block) const {
  if (!of_block_.empty()) return of_block_[linear_block];
  if (!singles_.empty()) {
    const auto found = singles_.find(linear_block);
    if (found != singles_.end()) return found->second;
  }
  return search(linear_block, trace_.place(trace_.block_index(linear_block)));
}

std::uint32_t ClassIndex::search(std::uint64_t linear_block, const BlockPlace& place) const {
  const std::uint32_t known = shared_.find_first(place);
  if (known != ClassFinder::kNone) return known;
  const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), std::pair{linear_block, ~0u});
  if (after != stretches_.begin()) {
    const std::uint32_t at = std::prev(after)->second;
    if (trace_.classes[at].contains({trace_.place(trace_.classes[at].representative), place})) return at;
  }
  throw InternalError("block " + std::to_string(linear_block) + " belongs to no class of the trace");
}

}  // namespace forewarp

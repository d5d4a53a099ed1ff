#include "emulation/classes/block_conditions.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace forewarp::emulation {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

constexpr std::int64_t kFar = std::int64_t{1} << 61;

/// Clamps instead of overflowing.
std::int64_t times(std::int64_t c, std::int64_t n) {
  if (n == 0 || c == 0) return 0;
  if (std::abs(c) > kFar / n) return c < 0 ? -kFar : kFar;
  return c * n;
}

Span along(std::int64_t c, std::uint32_t at, std::uint32_t extent) {
  const std::int64_t back = times(-c, at), ahead = times(c, std::int64_t{extent} - 1 - at);
  return {std::min(back, ahead), std::max(back, ahead)};
}

}  // namespace

void BlockConditions::start(const Dim3& representative) {
  representative_ = representative;
  fixed_ = 0;
  data_dependent_ = false;
  intervals_.clear();
  residues_.clear();
}

Span BlockConditions::reach(const BlockSlope& c) const {
  const Span x = along(c.x, representative_.x, grid_.x), y = along(c.y, representative_.y, grid_.y),
             z = along(c.z, representative_.z, grid_.z);
  return {x.low + y.low + z.low, x.high + y.high + z.high};
}

BlockSlope BlockConditions::without_fixed(BlockSlope c) const {
  if ((fixed_ & 1) != 0 || grid_.x == 1) c.x = 0;
  if ((fixed_ & 2) != 0 || grid_.y == 1) c.y = 0;
  if ((fixed_ & 4) != 0 || grid_.z == 1) c.z = 0;
  return c;
}

void BlockConditions::interval(const BlockSlope& coefficient, std::int64_t low, std::int64_t high) {
  FW_CHECK(low <= 0 && high >= 0, "a condition that its own representative breaks");
  BlockSlope c = without_fixed(coefficient);
  if (is_zero(c)) return;
  // Parallel directions share one interval: divide by the common factor, let the first part be positive.
  std::int64_t factor = std::gcd(std::gcd(c.x, c.y), c.z);
  if ((c.x != 0 ? c.x : c.y != 0 ? c.y : c.z) < 0) factor = -factor;
  c = {c.x / factor, c.y / factor, c.z / factor};
  if (factor < 0) {
    std::swap(low, high);
    low = low == kHighest ? kLowest : -low;
    high = high == kLowest ? kHighest : -high;
    factor = -factor;
  }
  low = low == kLowest ? kLowest : -floor_divide(-low, factor);
  high = high == kHighest ? kHighest : floor_divide(high, factor);
  const Span reached = reach(c);
  if (low <= reached.low && high >= reached.high) return;
  for (Interval& i : intervals_) {
    if (i.coefficient != c) continue;
    i.low = std::max(i.low, low);
    i.high = std::min(i.high, high);
    return;
  }
  intervals_.push_back({c, low, high});
}

void BlockConditions::residue(const BlockSlope& coefficient, std::int64_t modulus) {
  BlockSlope c = without_fixed(coefficient);
  const auto reduce = [&](std::int64_t v) { return ((v % modulus) + modulus) % modulus; };
  c = {reduce(c.x), reduce(c.y), reduce(c.z)};
  if (is_zero(c)) return;
  for (const Residue& r : residues_) {
    if (r.coefficient == c && r.modulus == modulus) return;
  }
  residues_.push_back({c, modulus});
}

std::uint8_t BlockConditions::extended_dims() const {
  return static_cast<std::uint8_t>((grid_.x > 1 ? 1 : 0) | (grid_.y > 1 ? 2 : 0) | (grid_.z > 1 ? 4 : 0));
}

void BlockConditions::fix(std::uint8_t dims) {
  data_dependent_ |= (dims & kDataDim) != 0;
  fixed_ = static_cast<std::uint8_t>(fixed_ | (dims & extended_dims()));
}

bool BlockConditions::single() const { return fixed_ != 0 && fixed_ == extended_dims(); }

std::vector<BlockCondition> BlockConditions::list() const {
  std::vector<BlockCondition> out;
  const BlockSlope axes[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (int i = 0; i < 3; ++i) {
    if ((fixed_ >> i & 1) != 0) out.push_back({axes[i], 0, 0, 1});
  }
  for (const Interval& i : intervals_) {
    if (!is_zero(without_fixed(i.coefficient))) out.push_back({i.coefficient, i.low, i.high, 1});
  }
  for (const Residue& r : residues_) {
    if (!is_zero(without_fixed(r.coefficient))) out.push_back({r.coefficient, kLowest, kHighest, r.modulus});
  }
  return out;
}

}  // namespace forewarp::emulation

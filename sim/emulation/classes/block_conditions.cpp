#include "emulation/classes/block_conditions.h"

#include <algorithm>
#include <cmath>
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
constexpr std::size_t kMostForms = 48;

/// Clamps instead of overflowing.
std::int64_t times(std::int64_t c, std::int64_t n) {
  if (n == 0 || c == 0) return 0;
  if (std::abs(c) > kFar / n) return c < 0 ? -kFar : kFar;
  return c * n;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::clamp<BlockSlope::Wide>(BlockSlope::Wide{a} * b, -kFar, kFar));
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
  forget_forms();
  place_ = {representative.x, representative.y, representative.z, {}};
  for (std::size_t i = 0; i < quotients_->size(); ++i) place_.quotients[i] = (*quotients_)[i].at(place_);
}

int BlockConditions::quotient(const BlockSlope& numerator, BlockSlope::Wide now, std::int64_t divisor) {
  for (std::size_t i = 0; i < quotients_->size(); ++i)
    if ((*quotients_)[i].numerator == numerator && (*quotients_)[i].divisor == divisor) {
      place_.quotients[i] = (*quotients_)[i].at(place_);  // another block of the cluster may have made it
      return static_cast<int>(i);
    }
  const BlockSlope::Wide offset = now - numerator.exactly_over(place_);
  const std::size_t i = quotients_->size();
  if (i == kMostQuotients || offset != static_cast<std::int64_t>(offset)) return -1;
  quotients_->push_back({numerator, static_cast<std::int64_t>(offset), divisor});
  place_.quotients[i] = quotients_->back().at(place_);
  forget_forms();
  return static_cast<int>(i);
}

/// How far a quotient can move.
Span BlockConditions::quotient_reach(std::size_t i) const {
  const BlockQuotient& q = (*quotients_)[i];
  const Span argument = reach(q.numerator);
  const BlockSlope::Wide now = q.numerator.exactly_over(place_) + q.offset;
  const auto at = [&](std::int64_t moved) {
    const BlockSlope::Wide n = now + moved, d = n / q.divisor - (n % q.divisor < 0 ? 1 : 0) - place_.quotients[i];
    return static_cast<std::int64_t>(std::clamp<BlockSlope::Wide>(d, -kFar, kFar));
  };
  return {at(argument.low), at(argument.high)};
}

Span BlockConditions::reach(const BlockSlope& c) const {
  const Span x = along(c.x, representative_.x, grid_.x), y = along(c.y, representative_.y, grid_.y),
             z = along(c.z, representative_.z, grid_.z);
  Span all{x.low + y.low + z.low, x.high + y.high + z.high};
  bool moves = false;
  for (std::size_t i = 0; i < quotients_->size(); ++i) {
    if (c.quotients[i] == 0) continue;
    moves = true;
    const Span q = quotient_reach(i);
    const std::int64_t m = c.quotients[i];
    const std::int64_t a = product(m, q.low), b = product(m, q.high);
    all.low = std::max(-kFar, all.low + std::min(a, b));
    all.high = std::min(kFar, all.high + std::max(a, b));
  }
  if (!moves) return all;
  const Span real = real_reach(c);
  return {std::max(all.low, real.low), std::min(all.high, real.high)};
}

/// The same by real division: a quotient is its argument by the divisor, less a fraction. What a remainder can be,
/// which the parts alone do not tell.
Span BlockConditions::real_reach(const BlockSlope& c) const {
  std::array<double, 3> axis{static_cast<double>(c.x), static_cast<double>(c.y), static_cast<double>(c.z)};
  std::array<double, kMostQuotients> part{};
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<double>(c.quotients[i]);
  double low = 0, high = 0, size = 0;
  for (std::size_t i = quotients_->size(); i-- > 0;) {
    if (part[i] == 0) continue;
    const BlockQuotient& q = (*quotients_)[i];
    const double divisor = static_cast<double>(q.divisor), f = part[i] / divisor;
    const auto rest = static_cast<double>(q.numerator.exactly_over(place_) + q.offset -
                                          BlockSlope::Wide{place_.quotients[i]} * q.divisor);
    // -f times what the remainder moves by, from -rest to divisor - 1 - rest.
    const double a = f * rest, b = -f * (divisor - 1 - rest);
    low += std::min(a, b);
    high += std::max(a, b);
    axis[0] += f * static_cast<double>(q.numerator.x);
    axis[1] += f * static_cast<double>(q.numerator.y);
    axis[2] += f * static_cast<double>(q.numerator.z);
    for (std::size_t j = 0; j < i; ++j) part[j] += f * static_cast<double>(q.numerator.quotients[j]);
    size += std::abs(part[i]) * (1 + std::abs(static_cast<double>(place_.quotients[i])));
  }
  const std::uint32_t at[] = {representative_.x, representative_.y, representative_.z},
                      extent[] = {grid_.x, grid_.y, grid_.z};
  for (std::size_t i = 0; i < 3; ++i) {
    const double back = -axis[i] * at[i], ahead = axis[i] * (static_cast<double>(extent[i]) - 1 - at[i]);
    low += std::min(back, ahead);
    high += std::max(back, ahead);
    size += std::abs(static_cast<double>(i == 0 ? c.x : i == 1 ? c.y : c.z)) * extent[i];
  }
  // Rounding errors are far below this.
  const double margin = 2 + (size + std::abs(low) + std::abs(high)) * 1e-13;
  const double far = static_cast<double>(kFar);
  return {static_cast<std::int64_t>(std::max(-far, std::floor(low - margin))),
          static_cast<std::int64_t>(std::min(far, std::ceil(high + margin)))};
}

BlockSlope BlockConditions::without_fixed(BlockSlope c) const {
  if ((fixed_ & 1) != 0 || grid_.x == 1) c.x = 0;
  if ((fixed_ & 2) != 0 || grid_.y == 1) c.y = 0;
  if ((fixed_ & 4) != 0 || grid_.z == 1) c.z = 0;
  for (std::size_t i = 0; i < quotients_->size(); ++i) {
    if (c.quotients[i] == 0) continue;
    const bool fixed = (fixed_ >> (kFirstQuotientDim + i) & 1) != 0;
    if (fixed || is_zero(without_fixed((*quotients_)[i].numerator))) c.quotients[i] = 0;
  }
  return c;
}

const BlockConditions::Normal& BlockConditions::normal(const BlockSlope& from) {
  for (std::size_t i = forms_.size(); i-- > 0;)
    if (forms_[i].from == from) return forms_[i];
  if (forms_.size() == kMostForms) forms_.clear();
  Normal form{from, without_fixed(from), 1, {}};
  BlockSlope& c = form.coefficient;
  if (!is_zero(c)) {
    // Parallel directions share one interval: divide by the common factor, let the first part be positive.
    std::int64_t factor = 0, first = 0;
    for_each_part(c, [&](const std::int64_t& part) {
      factor = std::gcd(factor, part);
      if (first == 0) first = part;
    });
    if (first < 0) factor = -factor;
    for_each_part(c, [&](std::int64_t& part) { part /= factor; });
    form.factor = factor;
    form.reach = reach(c);
  }
  forms_.push_back(form);
  return forms_.back();
}

void BlockConditions::interval(const BlockSlope& coefficient, std::int64_t low, std::int64_t high) {
  FW_CHECK(low <= 0 && high >= 0, "a condition that its own representative breaks");
  const Normal& form = normal(coefficient);
  const BlockSlope& c = form.coefficient;
  if (is_zero(c)) return;
  std::int64_t factor = form.factor;
  if (factor < 0) {
    std::swap(low, high);
    low = low == kHighest ? kLowest : -low;
    high = high == kLowest ? kHighest : -high;
    factor = -factor;
  }
  low = low == kLowest ? kLowest : -floor_divide(-low, factor);
  high = high == kHighest ? kHighest : floor_divide(high, factor);
  if (low <= form.reach.low && high >= form.reach.high) return;
  for (Interval& i : intervals_) {
    if (i.coefficient != c) continue;
    i.low = std::max(i.low, low);
    i.high = std::min(i.high, high);
    return;
  }
  intervals_.push_back({c, low, high});
}

void BlockConditions::residue(const BlockSlope& coefficient, std::int64_t modulus) {
  for (const Residue& known : known_residues_)
    if (known.modulus == modulus && known.coefficient == coefficient) return;
  if (known_residues_.size() == kMostForms) known_residues_.clear();
  known_residues_.push_back({coefficient, modulus});
  BlockSlope c = without_fixed(coefficient);
  const auto reduce = [&](std::int64_t v) { return ((v % modulus) + modulus) % modulus; };
  for_each_part(c, [&](std::int64_t& part) { part = reduce(part); });
  if (is_zero(c)) return;
  for (const Residue& r : residues_) {
    if (r.coefficient == c && r.modulus == modulus) return;
  }
  residues_.push_back({c, modulus});
}

Dims BlockConditions::extended_dims() const {
  return static_cast<Dims>((grid_.x > 1 ? 1 : 0) | (grid_.y > 1 ? 2 : 0) | (grid_.z > 1 ? 4 : 0));
}

void BlockConditions::fix(Dims dims) {
  data_dependent_ |= (dims & kDataDim) != 0;
  const auto quotients = static_cast<Dims>(~0u << kFirstQuotientDim);
  if ((dims & (extended_dims() | quotients) & ~fixed_) != 0) forget_forms();
  fixed_ = static_cast<Dims>(fixed_ | (dims & (extended_dims() | quotients)));
}

bool BlockConditions::single() const { return (fixed_ & kAllDims) != 0 && (fixed_ & kAllDims) == extended_dims(); }

std::vector<BlockCondition> BlockConditions::list() const {
  std::vector<BlockCondition> out;
  const BlockSlope axes[] = {{1, 0, 0, {}}, {0, 1, 0, {}}, {0, 0, 1, {}}};
  for (int i = 0; i < 3; ++i) {
    if ((fixed_ >> i & 1) != 0) out.push_back({axes[i], 0, 0, 1});
  }
  for (int i = 0; i < kMostQuotients; ++i) {
    const bool moves = static_cast<std::size_t>(i) < quotients_->size() &&
                       !is_zero(without_fixed((*quotients_)[static_cast<std::size_t>(i)].numerator));
    if ((fixed_ >> (kFirstQuotientDim + i) & 1) != 0 && moves) out.push_back({quotient_slope(i), 0, 0, 1});
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

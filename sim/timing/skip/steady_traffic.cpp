#include "timing/skip/steady_traffic.h"

#include <cmath>

namespace forewarp {
namespace {

constexpr double kAgree = 0.005;         // of a quarter's sectors, both directions taken together
constexpr std::uint64_t kLookAgain = 4;  // after a quarter more of the steps

double difference(std::uint64_t a, std::uint64_t b) {
  return std::abs(static_cast<double>(a) - static_cast<double>(b));
}

}  // namespace

void SteadyTraffic::add(std::uint64_t lines, const L2Traffic& traffic) {
  Sum sum = so_far_.back();
  sum.lines += lines;
  sum.traffic += traffic;
  so_far_.push_back(sum);
}

SteadyTraffic::Sum SteadyTraffic::between(std::uint64_t first, std::uint64_t last) const {
  const Sum &a = so_far_[first], &b = so_far_[last];
  return {b.lines - a.lines, b.traffic - a.traffic};
}

std::uint64_t SteadyTraffic::may_skip(std::uint64_t left) {
  const std::uint64_t n = steps();
  if (n < next_look_) return 0;
  next_look_ = n + 1 + n / kLookAgain;
  const std::uint64_t quarter = n / 4;
  if (quarter < period_ || so_far_.back().lines < l2_lines_) return 0;
  const Sum earlier = between(n - 2 * quarter, n - quarter), later = between(n - quarter, n);
  const L2Traffic &a = earlier.traffic, &b = later.traffic;
  const double off = difference(a.read, b.read) + difference(a.written, b.written);
  if (later.lines == 0 || off > kAgree * static_cast<double>(b.read + b.written)) return 0;
  const std::uint64_t tail = (l2_lines_ * quarter + later.lines - 1) / later.lines;
  return left > tail ? left - tail : 0;
}

L2Traffic SteadyTraffic::expected(std::uint64_t count) const {
  const std::uint64_t n = steps(), seen = n / 4 * 2;
  return between(n - seen, n).traffic.scaled(static_cast<double>(count) / static_cast<double>(seen));
}

}  // namespace forewarp

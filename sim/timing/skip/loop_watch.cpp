#include "timing/skip/loop_watch.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace forewarp {
namespace {

constexpr Cycle kLeastWindow = 4096;      // a window lasts at least so long
constexpr Cycle kSettle = 4096;           // what was on its way when blocks were moved on has arrived by then
constexpr double kSettleShare = 0.5;      // ... and a window goes by, where one costs less of the budget: blocks keep
                                          // step for so long that did not before
constexpr double kPartOfIteration = 0.1;  // may be missing from a window
constexpr double kWindows = 8;            // the budget pays for so many
constexpr double kAlone = 2;              // ... where it does not for these, the first of them is shown, too
constexpr double kMostIterations = 32;    // of a window
constexpr std::size_t kMostMarks = 33;
// Two stretches agree when their rates differ by less: usually, if it is dear to look again, if an earlier wave went
// so.
constexpr double kAgree = 0.01, kAgreeDear = 0.02, kAgreeKnown = 0.04;

}  // namespace

void LoopWatch::restart(double rate, double limit) {
  residents_ = residents();
  half_way_ = {};
  marks_.clear();
  marks_.push_back(mark());
  settling_ = true;
  target_ = 0;
  before_ = rate;
  limit_ = limit;
}

std::optional<LoopWatch::Steady> LoopWatch::look(double known) {
  const std::optional<Residents> now = residents();
  if (!now) {
    residents_.reset();
    return std::nullopt;
  }
  if (residents_ != now) {
    restart(0, 0);
    entered_ = marks_.back().counters;
    settling_ = false;
    return std::nullopt;
  }
  if (!window_is_over()) return std::nullopt;
  target_ = 0;
  if (marks_.size() == kMostMarks) marks_.erase(marks_.begin());
  marks_.push_back(mark());
  marks_.back().half_way = std::exchange(half_way_, {});
  return judge(known);
}

std::optional<LoopWatch::Residents> LoopWatch::residents() const {
  const std::optional<std::uint64_t> loops = loops_in_flight(gpu_, loops_);
  if (!loops) return std::nullopt;
  return Residents{gpu_.dispatcher().dispatched(), gpu_.finished_blocks(), gpu_.live_warps(), *loops};
}

bool LoopWatch::window_is_over() {
  const Mark& last = marks_.back();
  // In instructions, so that a window need not start and end where iterations do.
  const double moved =
      static_cast<double>(gpu_.issued() - last.issued) / static_cast<double>(last.progress.iteration_instructions);
  const Cycle cycles = gpu_.now() - last.at;
  if (settling_) {
    const double share = least_move() * static_cast<double>(last.progress.iteration_instructions) / budget_;
    const bool whole = share <= kSettleShare;
    if (moved < (whole ? least_move() : 1) && (whole || cycles < kSettle)) return false;
    settling_ = false;
    marks_.assign(1, mark());
    half_way_ = {};
    return false;
  }
  if (half_way_.blocks.empty() && 2 * moved >= least_move()) half_way_ = loop_progress(gpu_, loops_);
  if (cycles < kLeastWindow) return false;
  // Whole iterations, and whole lines: blocks that start together do the same part of them at the same time.
  const double least = least_move();
  const double unit = std::fmod(least, line_period_) == 0 ? line_period_ : 1;
  if (target_ == 0) target_ = std::max(least, std::ceil((moved - kPartOfIteration) / unit) * unit);
  return moved >= target_;
}

/// Iterations a window spans: a share of the budget, so that short bodies are averaged over many, and whole lines.
double LoopWatch::least_move() const {
  const double iterations = budget_ / static_cast<double>(marks_.back().progress.iteration_instructions);
  const double share = std::ceil(std::clamp(iterations / kWindows, 1.0, kMostIterations));
  return line_period_ > 2 * iterations ? share : std::ceil(share / line_period_) * line_period_;
}

double LoopWatch::moved(const Mark& from, const Mark& to) const {
  return static_cast<double>(to.issued - from.issued) / static_cast<double>(to.progress.iteration_instructions);
}

double LoopWatch::rate(const Mark& from, const Mark& to) const {
  return moved(from, to) / static_cast<double>(to.at - from.at);
}

std::optional<LoopWatch::Steady> LoopWatch::judge(double known) const {
  const std::size_t n = marks_.size() - 1;
  const Mark& now = marks_[n];
  const double window = least_move() * static_cast<double>(now.progress.iteration_instructions);
  const bool dear = window > budget_;
  const auto agree = [](double a, double b, double limit) { return std::abs(a - b) < limit * a; };
  const double last = rate(marks_[n - 1], now);
  std::size_t width = 1;
  double other = 0;
  bool alone = false, agrees = true;
  if (known > 0 && agree(last, known, kAgreeKnown)) {
    other = known;
  } else if (before_ > 0 && n == 1 && agree(last, before_, limit_)) {
    other = before_;
  } else if (n == 1 && before_ == 0 && kAlone * window > budget_) {
    other = last;
    alone = true;
    agrees = false;
  } else {
    // Where SMs keep step, rates swing: longer and longer stretches are compared.
    for (; 2 * width <= n; width *= 2) {
      other = rate(marks_[n - 2 * width], marks_[n - width]);
      if (agree(rate(marks_[n - width], now), other, dear ? kAgreeDear : kAgree)) break;
    }
    if (2 * width > n) {
      agrees = false;
      width = n;
      other = rate(marks_.front(), marks_[(n + 1) / 2]);
    }
  }
  const Mark& from = marks_[n - width];
  if (!keep_step(from.progress, now.progress)) return std::nullopt;
  Steady steady;
  steady.progress = now.progress;
  steady.moved = moved(from, now);
  steady.rate = rate(from, now);
  steady.other = other;
  steady.dear = dear;
  steady.alone = alone;
  steady.agrees = agrees;
  steady.entered = entered_;
  steady.loops = residents_->loops;
  steady.cycles = now.at - from.at;
  steady.since = from.counters;
  steady.expected = steady_moves(now.progress, moved_between(from.progress, now.progress),
                                 moved_between(width > 1 ? marks_[n - width / 2].progress : now.half_way, now.progress),
                                 moved_between(marks_.front().progress, now.progress));
  return steady;
}

}  // namespace forewarp

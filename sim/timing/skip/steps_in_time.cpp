#include "timing/skip/steps_in_time.h"

#include <algorithm>
#include <cmath>

namespace forewarp {
namespace {

constexpr double kRounding = 1e-6;  // of a step

/// When a step of a part begins.
double begins(const RestPart& part, std::uint32_t step) {
  const double share = (static_cast<double>(step) / kBlockSteps - part.from) / (part.to - part.from);
  return part.at + std::max(0.0, share) * (part.until - part.at);
}

std::uint32_t first_step(const RestPart& part) {
  return std::min(kBlockSteps - 1, static_cast<std::uint32_t>(std::floor(part.from * kBlockSteps + kRounding)));
}

/// The one before which it ends.
std::uint32_t end_step(const RestPart& part) {
  return static_cast<std::uint32_t>(std::ceil(part.to * kBlockSteps - kRounding));
}

}  // namespace

StepsInTime::StepsInTime(std::span<const RestPart> parts, std::span<const BlockSteps* const> wanted, double from,
                         double until)
    : parts_(parts), wanted_(wanted), until_(until) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RestPart& part = parts[i];
    if (part.until < from || part.at >= until) continue;
    Start start{part.at, i, first_step(part)};
    const std::uint32_t end = end_step(part);
    while (start.step < end && begins(part, start.step) < from) ++start.step;
    start.step = wanted_from(i, start.step);
    if (start.step < end) by_start_.push_back(start);
  }
  std::stable_sort(by_start_.begin(), by_start_.end(), [](const Start& a, const Start& b) { return a.at < b.at; });
}

bool StepsInTime::next(Step& step) {
  for (; started_ < by_start_.size(); ++started_) {
    const Start& start = by_start_[started_];
    if (!queue_.empty() && queue_.top().at < start.at) break;
    push(start.part, start.step);
  }
  if (queue_.empty()) return false;
  step = queue_.top();
  queue_.pop();
  push(step.part, step.step + 1);
  return true;
}

std::uint32_t StepsInTime::wanted_from(std::size_t part, std::uint32_t step) const {
  if (wanted_.empty()) return step;
  while (step < kBlockSteps && !(*wanted_[part])[step]) ++step;
  return step;
}

void StepsInTime::push(std::size_t part, std::uint32_t step) {
  const std::uint32_t end = end_step(parts_[part]);
  step = wanted_from(part, step);
  if (step >= end) return;
  const double at = begins(parts_[part], step);
  if (at < until_) queue_.push({at, part, step, wanted_from(part, step + 1) >= end});
}

WorkInTime::WorkInTime(std::span<const RestPart> parts, const std::function<double(std::uint64_t)>& work)
    : done_(kBuckets + 1, 0) {
  double end = 0;
  for (const RestPart& part : parts) end = std::max(end, part.until);
  bucket_ = std::max(end, 1.0) / kBuckets;
  // Each part adds its rate from its start on, and takes it away at its end.
  std::vector<double> rate(kBuckets + 2, 0), within(kBuckets + 2, 0);
  const auto add = [&](double at, double more) {
    const double place = std::min(at / bucket_, static_cast<double>(kBuckets));
    const auto next = static_cast<std::size_t>(place) + 1;
    rate[next] += more;
    within[next] += more * (static_cast<double>(next) - place);
  };
  for (const RestPart& part : parts) {
    const double each = (part.to - part.from) * work(part.block) / std::max(1e-9, (part.until - part.at) / bucket_);
    add(part.at, each);
    add(part.until, -each);
  }
  double now = 0;
  for (std::size_t b = 1; b <= kBuckets; ++b) {
    done_[b] = done_[b - 1] + now + within[b];
    now += rate[b];
  }
}

double WorkInTime::by(double time) const {
  const double place = std::clamp(time / bucket_, 0.0, static_cast<double>(kBuckets));
  const std::size_t b = std::min(kBuckets - 1, static_cast<std::size_t>(place));
  return done_[b] + (place - static_cast<double>(b)) * (done_[b + 1] - done_[b]);
}

double WorkInTime::when(double done) const {
  const auto after = std::upper_bound(done_.begin(), done_.end(), done);
  if (after == done_.end()) return bucket_ * kBuckets;
  if (after == done_.begin()) return 0;
  const double before = *std::prev(after);
  return bucket_ * (static_cast<double>(after - done_.begin() - 1) + (done - before) / (*after - before));
}

}  // namespace forewarp

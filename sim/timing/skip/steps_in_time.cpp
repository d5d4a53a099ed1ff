#include "timing/skip/steps_in_time.h"

#include <algorithm>
#include <cmath>

namespace forewarp {
namespace {

/// When a step of a part begins.
double begins(const RestPart& part, std::uint32_t step) {
  const double share = (static_cast<double>(step) / kBlockSteps - part.from) / (part.to - part.from);
  return part.at + std::max(0.0, share) * (part.until - part.at);
}

}  // namespace

std::uint32_t step_at(double position) { return static_cast<std::uint32_t>(std::ceil(position * kBlockSteps - 1e-6)); }

std::uint32_t first_step(const RestPart& part) {
  const std::uint32_t step = step_at(part.from);
  return part.at == 0 && part.from < 1 ? std::min(step, kBlockSteps - 1) : step;
}

StepsInTime::StepsInTime(std::span<const RestPart> parts, std::span<const BlockSteps* const> wanted, double from,
                         double until)
    : parts_(parts), wanted_(wanted), until_(until) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RestPart& part = parts[i];
    if (part.until < from || part.at >= until) continue;
    Start start{part.at, i, first_step(part)};
    const std::uint32_t end = step_at(part.to);
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
  const std::uint32_t end = step_at(parts_[part].to);
  step = wanted_from(part, step);
  if (step >= end) return;
  const double at = begins(parts_[part], step);
  if (at < until_) queue_.push({at, part, step, wanted_from(part, step + 1) >= end});
}

StepTimes::StepTimes(std::span<const RestPart> parts) : begun_(kBuckets + 1, 0) {
  for (const RestPart& part : parts) end_ = std::max(end_, part.until);
  // Each part adds its rate to the buckets in which it runs.
  std::vector<double> rate(kBuckets + 1, 0);
  for (const RestPart& part : parts) {
    const std::size_t first = bucket(part.at), last = bucket(part.until);
    const double by_bucket = (step_at(part.to) - first_step(part)) / static_cast<double>(last - first + 1);
    rate[first] += by_bucket;
    rate[last + 1] -= by_bucket;
  }
  double now = 0;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    now += rate[b];
    begun_[b + 1] = begun_[b] + now;
  }
}

double StepTimes::at(double share) const {
  const auto after = std::upper_bound(begun_.begin(), begun_.end(), share * begun_.back());
  return end_ * static_cast<double>(after - begun_.begin() - 1) / kBuckets;
}

std::size_t StepTimes::bucket(double at) const {
  return end_ <= 0 ? 0 : std::min(kBuckets - 1, static_cast<std::size_t>(at / end_ * kBuckets));
}

}  // namespace forewarp

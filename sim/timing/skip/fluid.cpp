#include "timing/skip/fluid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forewarp {
namespace {
constexpr double kDone = 1e-6;  // of a block's work is left when it has ended, but for rounding
}

Fluid::Fluid(std::vector<std::vector<FluidBlock>> in_flight, std::uint64_t waiting, int blocks_per_sm, SmRate rate,
             std::function<FluidBlock(std::uint64_t)> next)
    : in_flight_(std::move(in_flight)),
      waiting_(waiting),
      rate_(std::move(rate)),
      next_(std::move(next)),
      since_(in_flight_.size(), 0),
      rates_(in_flight_.size()) {
  // Free places are filled in turn, as the dispatcher does.
  for (int place = 0; place < blocks_per_sm; ++place)
    for (std::vector<FluidBlock>& blocks : in_flight_)
      if (blocks.size() <= static_cast<std::size_t>(place) && started_ < waiting_) blocks.push_back(next_(started_++));
  for (std::vector<FluidBlock>& blocks : in_flight_)
    for (FluidBlock& block : blocks) block.from = block.done;
  for (std::size_t sm = 0; sm < in_flight_.size(); ++sm) plan(sm);
}

/// The rate of each block of an SM, and when the first of them ends.
void Fluid::plan(std::size_t sm) {
  const std::vector<FluidBlock>& blocks = in_flight_[sm];
  const std::size_t n = blocks.size();
  if (n == 0) return;
  const auto share = [this](std::size_t i) { return i < rate_.shares.size() ? rate_.shares[i] : 1.0; };
  double left = rate_.with(n), shares = 0, first = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < n; ++i) shares += share(i);
  rates_[sm].resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double part = shares > 0 ? share(i) / shares : 1 / static_cast<double>(n - i);
    const double mine = std::min(rate_.alone, left * part);
    shares -= share(i);
    left -= mine;
    rates_[sm][i] = mine * blocks[i].speed;
    if (mine > 0) first = std::min(first, (blocks[i].all - blocks[i].done) / rates_[sm][i]);
  }
  queue_.push({since_[sm] + std::max(0.0, first), sm});
}

void Fluid::pass(std::size_t sm, double until) {
  const double passed = until - since_[sm];
  since_[sm] = until;
  if (in_flight_[sm].empty()) return;
  sm_cycles_ += passed;
  block_cycles_ += passed * static_cast<double>(in_flight_[sm].size());
  for (std::size_t i = 0; i < in_flight_[sm].size(); ++i) {
    const double moved = passed * rates_[sm][i];
    in_flight_[sm][i].done += moved;
    work_ += moved;
  }
}

void Fluid::cut(std::size_t sm, FluidBlock& block, std::vector<FluidPart>* parts) const {
  if (parts != nullptr && block.done > block.from)
    parts->push_back({block.block, block.from / block.all, block.done / block.all, block.at, since_[sm],
                      static_cast<std::uint16_t>(sm)});
  block.from = block.done;
  block.at = since_[sm];
}

void Fluid::advance(double until, std::vector<FluidPart>* parts) {
  while (!queue_.empty() && queue_.top().at <= until) {
    const auto [at, sm] = queue_.top();
    queue_.pop();
    now_ = at;
    pass(sm, at);
    std::vector<FluidBlock>& blocks = in_flight_[sm];
    std::size_t kept = 0, ended = 0;
    std::vector<FluidBlock> next;
    for (FluidBlock& block : blocks) {
      if (block.all - block.done > kDone * block.all) {
        blocks[kept++] = block;
        continue;
      }
      block.done = block.all;
      cut(sm, block, parts);
      ++ended;
      if (started_ == waiting_) {
        if (first_idle_ < 0) first_idle_ = at;
        continue;
      }
      next.push_back(next_(started_++));
      next.back().slot = block.slot;
      next.back().at = at;
    }
    if (ended == 0 && kept == blocks.size()) now_ = at;
    blocks.resize(kept);
    blocks.insert(blocks.end(), next.begin(), next.end());
    plan(sm);
  }
  if (queue_.empty()) return;
  now_ = until;
  for (std::size_t sm = 0; sm < in_flight_.size(); ++sm) {
    pass(sm, until);
    for (FluidBlock& block : in_flight_[sm]) cut(sm, block, parts);
  }
}

}  // namespace forewarp

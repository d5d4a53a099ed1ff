#include "advise/advice.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "report/format.h"

namespace forewarp::advise {

namespace {

/// A unit was the limit if it was so busy.
constexpr double kLimitPct = 60;

/// Cycles of the launches, by what they were spent on.
using Spent = std::map<std::string, double>;

Spent busy(const Outcome& o, double least_pct) {
  Spent spent;
  for (const Prediction& p : o.launches)
    for (const auto* terms : {&p.memory_terms, &p.compute})
      for (const ThroughputTerm& t : *terms)
        if (t.pct >= least_pct) spent[t.label] += t.pct / 100 * p.cycles();
  return spent;
}

Spent waited(const Outcome& o) {
  Spent spent;
  for (const Prediction& p : o.launches)
    for (const StallShare& s : p.stalls)
      if (s.reason != Stall::Selected) spent[stall_name(s.reason)] += s.share_pct / 100 * p.cycles();
  return spent;
}

double idle(const Outcome& o) {
  double cycles = 0;
  for (const Prediction& p : o.launches) cycles += p.waves.idle_sm_pct / 100 * p.cycles();
  return cycles;
}

/// The largest fall from one to the other.
Evidence largest_fall(const Spent& before, const Spent& after) {
  Evidence best;
  for (const auto& [what, cycles] : before) {
    const auto now = after.find(what);
    const double left = now == after.end() ? 0 : now->second;
    if (best.counter.empty() || cycles - left > best.before - best.after) best = {what, cycles, left};
  }
  return best;
}

std::string blocks_text(const Occupancy& o) { return report::count(static_cast<std::uint64_t>(o.blocks_per_sm)); }

}  // namespace

std::string resources_text(const Occupancy& before, const Occupancy& after) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (before.registers_per_thread != after.registers_per_thread)
    add(std::to_string(before.registers_per_thread) + " -> " + std::to_string(after.registers_per_thread) +
        " registers a thread");
  if (before.shared_bytes_per_block != after.shared_bytes_per_block)
    add(report::count(before.shared_bytes_per_block) + " -> " + report::count(after.shared_bytes_per_block) +
        " bytes of shared memory a block");
  if (before.blocks_per_sm != after.blocks_per_sm || before.warps_per_block != after.warps_per_block)
    add(blocks_text(before) + " blocks of " + std::to_string(before.warps_per_block) + " warps -> " +
        blocks_text(after) + " of " + std::to_string(after.warps_per_block) + " on an SM");
  return text;
}

SimulateOptions quick(SimulateOptions options) {
  constexpr double kPart = 0.25;  // a quarter of the launch's own time, which still sees it in its steady state
  options.effort.seconds *= kPart;
  options.detailed_instructions = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(kPart * static_cast<double>(options.detailed_instructions)));
  options.threads = 1;
  return options;
}

double gap_cycles(const Prediction& p) { return p.costs.hand_over_us * p.clock_mhz; }

Outcome outcome_of(std::vector<Prediction> launches) {
  Outcome o;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Prediction& p = launches[i];
    const double gap = i == 0 ? 0 : gap_cycles(p);
    o.cycles += p.cycles() + gap;
    o.low += p.coverage.cycles_low + gap;
    o.high += p.coverage.cycles_high + gap;
    o.time_ns += p.time_ns() + (i == 0 ? 0 : 1e3 * p.costs.hand_over_us);
    o.extrapolated = o.extrapolated || p.coverage.extrapolated;
  }
  o.launches = std::move(launches);
  return o;
}

Gain gain_between(const Outcome& before, double after, double after_low, double after_high) {
  const double ratio = before.cycles > 0 ? after / before.cycles : 1;
  const auto half = [](double low, double high, double middle) { return middle > 0 ? (high - low) / 2 / middle : 0; };
  const double own = half(before.low, before.high, before.cycles), other = half(after_low, after_high, after);
  const double spread = std::sqrt(own * own + other * other);
  return {100 * (1 - ratio), 100 * (1 - ratio * (1 + spread)), 100 * (1 - ratio * (1 - std::min(spread, 1.0)))};
}

const char* basis_name(Basis basis) {
  switch (basis) {
    case Basis::Tried:
      return "tried";
    case Basis::AtMost:
      return "at most";
    case Basis::Counted:
      return "counted";
  }
  return "";
}

Evidence evidence_of(const Outcome& before, const Outcome& after) {
  const double half = (before.cycles - after.cycles) / 2;
  const auto explains = [&](const Evidence& e) { return !e.counter.empty() && e.before - e.after >= half; };
  // A unit that was the limit: what it has to do now, however busy it is.
  if (Evidence unit = largest_fall(busy(before, kLimitPct), busy(after, 0)); explains(unit)) {
    unit.counter += " busy";
    return unit;
  }
  if (const Evidence none{"SMs without a block", idle(before), idle(after)}; explains(none)) return none;
  Evidence wait = largest_fall(waited(before), waited(after));
  wait.counter = wait.counter.empty() ? "elapsed" : "warps wait for " + wait.counter;
  return wait;
}

}  // namespace forewarp::advise

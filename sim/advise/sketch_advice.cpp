#include "advise/sketch_advice.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace forewarp::advise {

namespace {

struct Trial {
  std::vector<const KeyChange*> changes;
  std::optional<Outcome> outcome = {};
  double cycles = 0;  ///< its; 0 where it does not work

  bool touches(const std::string& key) const {
    return std::any_of(changes.begin(), changes.end(), [&](const KeyChange* c) { return c->key == key; });
  }
  std::string key() const {
    std::string text;
    for (const KeyChange* c : changes) text += (text.empty() ? "" : " and ") + c->key;
    return text;
  }
};

constexpr std::size_t kPairs = 3;  ///< that are predicted as precisely as the sketch, for the best of them

/// Whether it is the very kernel that was there: a value that the family takes anyway.
bool same(const Outcome& a, const Outcome& b) {
  const auto equal = [](const Prediction& x, const Prediction& y) {
    return x.cycles() == y.cycles() && x.coverage.warp_instructions == y.coverage.warp_instructions &&
           x.grid.count() == y.grid.count() && x.block.count() == y.block.count();
  };
  return std::equal(a.launches.begin(), a.launches.end(), b.launches.begin(), b.launches.end(), equal);
}

std::string launches_text(const Outcome& before, const Outcome& after) {
  if (before.launches.size() != after.launches.size())
    return std::to_string(before.launches.size()) + " -> " + std::to_string(after.launches.size()) + " launches";
  std::string text;
  for (std::size_t i = 0; i < before.launches.size(); ++i) {
    const std::string one = resources_text(before.launches[i].occupancy, after.launches[i].occupancy);
    if (one.empty()) continue;
    text += (text.empty() ? "" : "; ") + (before.launches.size() > 1 ? "launch " + std::to_string(i) + ": " : "") + one;
  }
  return text;
}

Suggestion suggestion_of(const Trial& t, const Outcome& before) {
  Suggestion s;
  const Outcome& after = *t.outcome;
  s.change = t.key();
  s.cost = launches_text(before, after);
  for (const KeyChange* c : t.changes) {
    s.what += (s.what.empty() ? "" : ", ") + c->text();
    s.where += (s.where.empty() ? "" : ", ") + c->where;
    if (!c->cost.empty()) s.cost += (s.cost.empty() ? "" : "; ") + c->cost;
  }
  s.cycles = after.cycles;
  s.time_ns = after.time_ns;
  s.gain = gain_between(before, after.cycles, after.low, after.high);
  s.evidence = evidence_of(before, after);
  return s;
}

}  // namespace

Advice advise_sketch(const std::string& id, const config::Node& sketch, const PredictSketch& predict,
                     const ForEach& each, std::size_t top) {
  const config::Node own = with_changes(id, sketch, {});
  Outcome before, rough;
  each(2, [&](std::size_t i) { (i == 0 ? before : rough) = outcome_of(predict(own, i == 1)); });
  const std::vector<KeyChange> changes = key_changes(id, sketch);
  Advice advice;
  advice.case_id = id;
  advice.gpu = before.launches.front().gpu;
  advice.cycles = before.cycles;
  advice.low = before.low;
  advice.high = before.high;
  advice.time_ns = before.time_ns;

  if (before.launches.size() == 1) advice.verdict = before.launches.front().bottleneck.sentence;

  const auto look = [&](std::vector<Trial>& trials, bool quick) {
    each(trials.size(), [&](std::size_t i) {
      Trial& t = trials[i];
      t.outcome.reset();
      t.cycles = 0;
      try {
        t.outcome = outcome_of(predict(with_changes(id, sketch, t.changes), quick));
        t.cycles = t.outcome->cycles;
      } catch (const InputError&) {     // the family does not take it
      } catch (const InternalError&) {  // the assembler runs out of registers of some kind
      }
    });
  };
  const auto count = [&](std::vector<Trial>& trials) {
    for (const Trial& t : trials)
      if (!t.outcome)
        ++advice.refused;
      else if (!same(*t.outcome, rough))
        ++advice.tried;
    const double most = rough.cycles * (1 - kNoticeablePct / 100);
    std::erase_if(trials, [&](const Trial& t) { return !t.outcome || t.cycles > most; });
    std::stable_sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.cycles < b.cycles; });
  };

  std::vector<Trial> trials;
  for (const KeyChange& change : changes) trials.push_back({{&change}});
  look(trials, true);
  count(trials);

  // The best of each key; and on top of the very best, every other key once more.
  std::vector<Trial> best;
  for (Trial& t : trials)
    if (std::none_of(best.begin(), best.end(), [&](const Trial& b) { return b.touches(t.changes.front()->key); }))
      best.push_back(std::move(t));
  std::vector<Trial> pairs;
  for (const KeyChange& change : changes)
    if (!best.empty() && !best.front().touches(change.key)) pairs.push_back({{best.front().changes.front(), &change}});
  look(pairs, true);
  count(pairs);
  std::erase_if(pairs, [&](const Trial& t) { return t.cycles > best.front().cycles * (1 - kNoticeablePct / 100); });
  if (pairs.size() > kPairs) pairs.resize(kPairs);
  if (best.size() > top) best.resize(top);
  look(pairs, false);
  look(best, false);
  std::erase_if(pairs, [](const Trial& t) { return !t.outcome; });
  std::stable_sort(pairs.begin(), pairs.end(), [](const Trial& a, const Trial& b) { return a.cycles < b.cycles; });
  if (!pairs.empty()) best.push_back(std::move(pairs.front()));
  for (const Trial& t : best)
    if (t.outcome) advice.suggestions.push_back(suggestion_of(t, before));
  std::erase_if(advice.suggestions, [](const Suggestion& s) { return s.gain.pct < kNoticeablePct; });
  std::stable_sort(advice.suggestions.begin(), advice.suggestions.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.gain.pct > b.gain.pct; });
  if (advice.suggestions.size() > top) advice.suggestions.resize(top);
  return advice;
}

}  // namespace forewarp::advise

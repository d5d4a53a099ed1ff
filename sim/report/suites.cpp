#include "report/suites.h"

#include <algorithm>
#include <cstdint>

#include "config/config.h"

namespace forewarp {

namespace {

SuiteTrace read_trace(const config::Node& node) {
  SuiteTrace trace;
  trace.where = node.where();
  if (node.is_scalar()) {
    trace.stem = node.string();
    return trace;
  }
  node.read_map([&](config::Map& m) {
    trace.stem = m.at("stem").string();
    for (const config::Node& id : m.at("cases").list(1)) trace.cases.push_back(id.string());
  });
  return trace;
}

Tolerance read_tolerance(const config::Node& node) {
  Tolerance tolerance;
  node.read_map([&](config::Map& m) {
    tolerance.mean_pct = m.at("mean_pct").number(0.001, 1e6);
    if (const auto n = m.find("p90_pct")) tolerance.p90_pct = n->number(0.001, 1e6);
    if (const auto n = m.find("worst_pct")) tolerance.worst_pct = n->number(0.001, 1e6);
  });
  return tolerance;
}

}  // namespace

bool is_sealed(const std::string& stem, const std::string& case_id) {
  if (!stem.ends_with(".sweep")) return false;
  std::uint32_t hash = 2166136261u;
  for (const char c : case_id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash % 3 == 0;
}

std::vector<Suite> read_suites(const std::string& path) {
  std::vector<Suite> suites;
  for (const config::Entry& entry : config::read_file(path).entries()) {
    Suite suite;
    suite.name = entry.key;
    entry.value.read_map([&](config::Map& m) {
      suite.title = m.at("title").string();
      suite.gpu = m.at("gpu").string();
      suite.caches = m.at("cache").choice({"cold", "warm"}) == 0 ? CacheState::Cold : CacheState::Warm;
      if (const auto n = m.find("part"))
        suite.part = n->choice({"looked_at", "sealed"}) == 0 ? SuitePart::LookedAt : SuitePart::Sealed;
      for (const config::Node& trace : m.at("traces").list(1)) suite.traces.push_back(read_trace(trace));
      suite.tolerance = read_tolerance(m.at("tolerance"));
    });
    suites.push_back(std::move(suite));
  }
  return suites;
}

const Suite& find_suite(const std::vector<Suite>& suites, const std::string& name, const std::string& path) {
  const auto found = std::find_if(suites.begin(), suites.end(), [&](const Suite& s) { return s.name == name; });
  if (found != suites.end()) return *found;
  std::string names;
  for (const Suite& s : suites) names += (names.empty() ? "" : ", ") + s.name;
  throw InputError({path}, "there is no suite '" + name + "'", "suites: " + names);
}

}  // namespace forewarp

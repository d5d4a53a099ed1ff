#include "report/json.h"

#include <nlohmann/json.hpp>

#include "report/format.h"

namespace forewarp {

namespace {

using Json = nlohmann::ordered_json;

Json extent_json(const Dim3& d) { return Json::array({d.x, d.y, d.z}); }

const char* space_name(MemorySpace space) {
  switch (space) {
    case MemorySpace::Global:
      return "global";
    case MemorySpace::Shared:
      return "shared";
    case MemorySpace::Local:
      return "local";
    case MemorySpace::Generic:
      return "generic";
    case MemorySpace::Constant:
      return "constant";
    case MemorySpace::None:
      break;
  }
  return "none";
}

Json coverage_json(const Coverage& c) {
  Json j;
  j["warp_instructions"] = c.warp_instructions;
  j["simulated_warp_instructions"] = c.simulated_warp_instructions;
  j["extrapolated"] = c.extrapolated;
  j["method"] = c.method;
  j["uncertainty_pct"] = c.uncertainty_pct;
  return j;
}

Json memory_json(const Prediction& p) {
  Json list = Json::array();
  for (const MemoryRow& row : p.memory) {
    Json j;
    j["pc"] = std::uint64_t{row.instruction} * 16;
    j["sass"] = row.text;
    j["space"] = space_name(row.space);
    j["executed"] = row.executed;
    j["requests"] = row.requests;
    j["bytes"] = row.bytes;
    j["sectors"] = row.sectors;
    j["sectors_needed"] = row.ideal_sectors;
    j["wavefronts"] = row.wavefronts;
    j["bank_conflicts"] = row.conflicts;
    list.push_back(std::move(j));
  }
  return list;
}

Json divergence_json(const Divergence& d) {
  Json j;
  j["branches_executed"] = d.executed;
  j["branches_divergent"] = d.divergent;
  j["idle_lanes_pct"] = d.idle_lane_pct;
  j["branches"] = Json::array();
  for (const BranchRow& row : d.branches) {
    j["branches"].push_back({{"pc", std::uint64_t{row.instruction} * 16},
                             {"sass", row.text},
                             {"executed", row.executed},
                             {"divergent", row.divergent},
                             {"active_lanes", row.active_lanes}});
  }
  return j;
}

Json stalls_json(const Prediction& p) {
  Json list = Json::array();
  for (const StallShare& s : p.stalls)
    list.push_back({{"reason", stall_name(s.reason)}, {"per_issue", s.per_issue}, {"share_pct", s.share_pct}});
  return list;
}

Json hot_spots_json(const Prediction& p) {
  Json list = Json::array();
  for (const HotSpot& h : p.hot_spots) {
    list.push_back({{"pc", std::uint64_t{h.instruction} * 16},
                    {"sass", h.text},
                    {"warp_cycles", h.warp_cycles},
                    {"share_pct", h.share_pct},
                    {"reason", stall_name(h.reason)}});
  }
  return list;
}

Json roofline_json(const Roofline& r) {
  Json j;
  j["precision"] = r.precision;
  j["attained_per_second"] = r.attained;
  j["ceiling_per_second"] = r.ceiling;
  j["binding"] = r.binding;
  j["attained_of_ceiling_pct"] = r.attained_pct;
  j["ridge"] = r.ridge;
  j["work"] = Json::array();
  for (const RooflineWork& w : r.work)
    j["work"].push_back({{"precision", w.name}, {"operations", w.operations}, {"peak_per_second", w.peak_per_second}});
  j["levels"] = Json::array();
  for (const RooflineLevel& l : r.levels) {
    j["levels"].push_back({{"level", l.name},
                           {"bytes", l.bytes},
                           {"bytes_per_second", l.bytes_per_second},
                           {"peak_bytes_per_second", l.peak_bytes_per_second},
                           {"intensity", l.intensity},
                           {"ceiling_per_second", l.ceiling}});
  }
  return j;
}

Json waves_json(const Waves& w) {
  Json j;
  j["blocks"] = w.blocks;
  j["blocks_per_sm"] = w.blocks_per_sm;
  j["blocks_per_wave"] = w.blocks_per_wave;
  j["full_waves"] = w.full_waves;
  j["last_wave_blocks"] = w.last_wave_blocks;
  j["last_wave_fill_pct"] = w.last_wave_fill_pct;
  j["tail_pct"] = w.tail_pct;
  j["idle_sm_pct"] = w.idle_sm_pct;
  j["seen_in_simulation"] = w.from_spans;
  return j;
}

Json throughput_json(const std::vector<ThroughputTerm>& terms) {
  Json list = Json::array();
  for (const ThroughputTerm& t : terms) list.push_back({{"unit", t.metric}, {"label", t.label}, {"pct", t.pct}});
  return list;
}

Json case_json(const Prediction& p) {
  Json j;
  j["id"] = p.case_id;
  j["launch"] = p.launch;
  j["kernel"] = p.kernel;
  j["grid"] = extent_json(p.grid);
  j["block"] = extent_json(p.block);
  j["metrics"] = Json::object();
  for (const auto& [name, value] : p.metrics) j["metrics"][name] = value;
  j["coverage"] = coverage_json(p.coverage);
  j["warnings"] = p.warnings;
  j["cache"] = p.caches == CacheState::Cold ? "cold" : "warm";
  j["bottleneck"] = {{"kind", bottleneck_name(p.bottleneck.kind)}, {"sentence", p.bottleneck.sentence}};
  j["occupancy"] = {{"theoretical_pct", p.occupancy.theoretical_pct},
                    {"blocks_per_sm", p.occupancy.blocks_per_sm},
                    {"limiter", p.occupancy.limiter}};
  j["roofline"] = roofline_json(p.roofline);
  j["compute_throughput"] = throughput_json(p.compute);
  j["memory_throughput"] = throughput_json(p.memory_terms);
  j["waves"] = waves_json(p.waves);
  j["stalls"] = stalls_json(p);
  j["hot_spots"] = hot_spots_json(p);
  j["memory"] = memory_json(p);
  j["divergence"] = divergence_json(p.divergence);
  return j;
}

}  // namespace

std::string write_json(const std::string& gpu, std::span<const Prediction> predictions) {
  Json j;
  j["forewarp"] = FOREWARP_VERSION;
  j["gpu"] = gpu;
  j["cases"] = Json::array();
  for (const Prediction& p : predictions) j["cases"].push_back(case_json(p));
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace forewarp

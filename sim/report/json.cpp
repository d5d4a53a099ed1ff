#include "report/json.h"

#include <algorithm>

#include "report/case_json.h"
#include "report/format.h"

namespace forewarp {

namespace report {

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
  j["counters_exact"] = c.counters_exact;
  j["method"] = c.method;
  j["cycles_interval_95"] = {c.cycles_low, c.cycles_high};
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

Json choices_json(const std::vector<OccupancyChoice>& choices) {
  Json values = Json::array(), warps = Json::array();
  for (const OccupancyChoice& c : choices) {
    values.push_back(c.value);
    warps.push_back(c.warps);
  }
  return {{"value", std::move(values)}, {"warps_per_sm", std::move(warps)}};
}

Json occupancy_json(const Prediction& p) {
  const Occupancy& o = p.occupancy;
  Json j;
  j["theoretical_pct"] = o.theoretical_pct;
  j["blocks_per_sm"] = o.blocks_per_sm;
  j["limiter"] = o.limiter;
  j["warps_per_block"] = o.warps_per_block;
  j["shared_bytes_per_block"] = o.shared_bytes_per_block;
  j["limits"] = {{"registers", o.limit_registers},
                 {"shared memory", o.limit_shared},
                 {"warps", o.limit_warps},
                 {"blocks", o.limit_blocks}};
  return j;
}

Json instructions_json(const Prediction& p) {
  Json list = Json::array();
  for (const InstructionRow& row : p.instructions) {
    Json j{{"pc", std::uint64_t{row.instruction} * 16},
           {"sass", row.text},
           {"executed", row.executed},
           {"active_lanes", row.active_lanes},
           {"enabled_lanes", row.enabled_lanes}};
    if (!row.source.empty()) j["source"] = row.source;
    if (row.sectors > 0) {
      j["sectors"] = row.sectors;
      j["sectors_needed"] = row.ideal_sectors;
    }
    if (row.wavefronts > 0) {
      j["wavefronts"] = row.wavefronts;
      j["bank_conflicts"] = row.conflicts;
    }
    j["warp_cycles"] = Json::object();
    for (std::size_t r = 0; r < kStallReasons; ++r)
      if (row.stalls[r] > 0) j["warp_cycles"][stall_name(static_cast<Stall>(r))] = row.stalls[r];
    list.push_back(std::move(j));
  }
  return list;
}

Json examples_json(const Prediction& p) {
  Json list = Json::array();
  for (const AccessExample& e : p.examples) {
    Json offsets = Json::array();
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
      offsets.push_back((e.lanes >> lane & 1) != 0 ? Json(e.offsets[lane]) : Json(nullptr));
    list.push_back({{"pc", std::uint64_t{e.instruction} * 16},
                    {"space", space_name(e.space)},
                    {"bytes_per_lane", e.bytes},
                    {"offsets", std::move(offsets)}});
  }
  return list;
}

Json stream_json(const WarpStream& stream) {
  Json pc = Json::array(), count = Json::array(), lanes = Json::array();
  for (const StreamStep& step : stream.steps) {
    pc.push_back(std::uint64_t{step.instruction} * 16);
    count.push_back(step.count);
    lanes.push_back(step.active_lanes);
  }
  return {{"instructions", stream.instructions},
          {"pc", std::move(pc)},
          {"count", std::move(count)},
          {"active_lanes", std::move(lanes)}};
}

Json spans_json(const Prediction& p) {
  Json block = Json::array(), sm = Json::array(), start = Json::array(), end = Json::array(), skipped = Json::array();
  for (const BlockSpan& s : p.spans) {
    block.push_back(s.block);
    sm.push_back(s.sm);
    start.push_back(s.start);
    end.push_back(s.end);
  }
  for (const SkippedTime& s : p.skipped) skipped.push_back({{"from", s.from}, {"to", s.to}});
  Json j{{"unit", "cycle"},           {"block", std::move(block)}, {"sm", std::move(sm)},
         {"start", std::move(start)}, {"end", std::move(end)},     {"extrapolated", std::move(skipped)}};
  if (!p.residency.blocks.empty())
    j["residency"] = {{"sms_per_row", p.residency.sms_per_row},
                      {"cycles_per_column", p.residency.cycles_per_column},
                      {"blocks", p.residency.blocks}};
  return j;
}

Json place_json(const CausePlace& place) {
  Json j{{"pc", std::uint64_t{place.instruction} * 16}, {"sass", place.text}};
  if (!place.source.empty()) j["source"] = place.source;
  return j;
}

Json accounting_json(const Prediction& p) {
  const Accounting& a = p.accounting;
  const double cycles = std::max(1.0, p.cycles());
  Json j{{"simulated", a.simulated}, {"simulations", a.simulations}, {"method", a.method}, {"causes", Json::array()}};
  for (const Cause& c : a.causes) {
    Json one{{"cause", cause_name(c.kind)},
             {"title", cause_title(c.kind)},
             {"share_pct", c.share_pct},
             {"cycles", c.cycles},
             {"time_ns", c.cycles / cycles * p.time_ns()}};
    if (c.gain_cycles) {
      one["gain_cycles"] = *c.gain_cycles;
      one["gain_ns"] = *c.gain_cycles / cycles * p.time_ns();
    }
    if (!c.evidence.empty()) one["evidence"] = c.evidence;
    if (c.place) one["place"] = place_json(*c.place);
    if (c.waits) one["waits"] = place_json(*c.waits);
    j["causes"].push_back(std::move(one));
  }
  return j;
}

Json findings_json(const Prediction& p) {
  Json list = Json::array();
  for (const Finding& f : p.accounting.findings)
    list.push_back({{"cause", cause_name(f.kind)},
                    {"what", f.what},
                    {"why", f.why},
                    {"advice", f.advice},
                    {"saved_pct", f.speedup_pct},
                    {"section", f.section}});
  return list;
}

}  // namespace

void add_launch_json(const Prediction& p, Json& j) {
  j["grid"] = extent_json(p.grid);
  j["block"] = extent_json(p.block);
  j["metrics"] = Json::object();
  for (const auto& [name, value] : p.metrics) j["metrics"][name] = value;
  j["coverage"] = coverage_json(p.coverage);
  j["warnings"] = p.warnings;
  j["cache"] = cache_state_name(p.caches);
  j["bottleneck"] = {{"kind", cause_name(p.bottleneck.kind)}, {"sentence", p.bottleneck.sentence}};
  j["occupancy"] = occupancy_json(p);
  j["roofline"] = roofline_json(p.roofline);
  j["compute_throughput"] = throughput_json(p.compute);
  j["memory_throughput"] = throughput_json(p.memory_terms);
  j["waves"] = waves_json(p.waves);
  j["stalls"] = stalls_json(p);
}

void add_detail_json(const Prediction& p, Json& j) {
  j["accounting"] = accounting_json(p);
  j["findings"] = findings_json(p);
  j["hot_spots"] = hot_spots_json(p);
  j["memory"] = memory_json(p);
  j["divergence"] = divergence_json(p.divergence);
  j["instructions"] = instructions_json(p);
  j["access_examples"] = examples_json(p);
  j["warp_stream"] = stream_json(p.stream);
  j["occupancy"]["choices"] = {{"registers_per_thread", choices_json(p.choices.registers)},
                               {"shared_bytes_per_block", choices_json(p.choices.shared_bytes)},
                               {"threads_per_block", choices_json(p.choices.threads)}};
  j["block_spans"] = spans_json(p);
  if (p.timeline) j["warp_timeline"] = timeline_json(*p.timeline);
}

void add_changes(const std::vector<LeafChange>& changes, Json& j) {
  for (const LeafChange& change : changes) {
    const Json value = Json::parse(change.value, nullptr, false);
    j["gpu_changes"][change.path] = value.is_discarded() ? Json(change.value) : value;
  }
}

void add_changes(const std::vector<std::string>& changes, Json& j) {
  for (const std::string& change : changes) add_changes(std::vector{parse_change(change)}, j);
}

Json machine_json(const Prediction& p) {
  Json numbers = Json::object();
  for (std::size_t i = 0; i < p.leaves.size(); ++i) numbers[provenance_text(static_cast<Provenance>(i))] = p.leaves[i];
  Json roofs = Json::array();
  for (const Peak& roof : p.roofs)
    roofs.push_back({{"name", roof.name}, {"peak_per_second", roof.per_second}, {"unit", roof.unit}});
  return {{"title", p.gpu_title},
          {"numbers", numbers},
          {"sm_count", p.sm_count},
          {"clock_mhz", p.clock_mhz},
          {"roofs", std::move(roofs)},
          {"stream_gap_us", p.costs.stream_gap_us},
          {"graph_gap_us", p.costs.graph_gap_us},
          {"hand_over_us", p.costs.hand_over_us},
          {"empty_launch_us", p.costs.empty_us}};
}

}  // namespace report

std::string write_json(const GpuModel& gpu, std::span<const Prediction> predictions, const ResultInputs* inputs) {
  using Json = nlohmann::ordered_json;
  Json j;
  j["forewarp"] = FOREWARP_VERSION;
  j["gpu"] = gpu.name;
  report::add_changes(gpu.changes, j);
  j["cases"] = Json::array();
  for (const Prediction& p : predictions) {
    Json item{{"id", p.case_id}, {"launch", p.launch}, {"kernel", p.kernel}};
    report::add_launch_json(p, item);
    report::add_detail_json(p, item);
    j["cases"].push_back(std::move(item));
  }
  if (!predictions.empty()) j["machine"] = report::machine_json(predictions.front());
  if (inputs != nullptr) j["inputs"] = report::inputs_json(*inputs);
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace forewarp

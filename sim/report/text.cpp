#include "report/text.h"

#include <algorithm>
#include <numeric>

#include "report/format.h"
#include "report/table.h"

namespace forewarp {

namespace {

using namespace report;

constexpr std::size_t kTop = 8;  ///< rows of a table by instruction; JSON has all of them

constexpr std::size_t kTopInstructions = 10;

/// The report as far as it is written.
struct Page {
  std::string text;
  Style style;
};

class Section {
 public:
  Section(Page& page, const std::string& title) : out_(page.text), style_(page.style) {
    out_ += "\n" + style_.paint(Tone::Heading, title) + "\n" + style_.paint(Tone::Dim, std::string(title.size(), '-')) +
            "\n";
  }
  void line(std::string_view label, const std::string& value, std::string_view metric = {}) {
    std::string text = "  " + left(label, 40) + right(value, 18);
    if (!metric.empty()) text += "  " + style_.paint(Tone::Dim, metric);
    out_ += text + "\n";
  }
  void note(const std::string& text, Tone tone = Tone::Plain) { out_ += "  " + style_.paint(tone, text) + "\n"; }
  void table(const Table& t) { out_ += t.text("  ", style_); }
  Style style() const { return style_; }

 private:
  std::string& out_;
  Style style_;
};

std::string rate_unit(const Roofline& r) {
  const std::string_view precision = r.precision;
  return precision == "none" || precision.starts_with("tensor_int") ? "OP/s" : "FLOP/s";
}

std::string precision_text(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// What the prediction rests on: numbers of the GPU's model, with those that were neither measured nor published.
std::string leaves_text(const Prediction& p, const Style& style) {
  const int all = std::accumulate(p.leaves.begin(), p.leaves.end(), 0);
  const auto of = [&](Provenance source) { return std::to_string(p.leaves[static_cast<std::size_t>(source)]); };
  std::string out =
      "  " +
      style.paint(Tone::Dim, "model   " + std::to_string(all) + " numbers of that GPU take part, " +
                                 of(Provenance::Fitted) + " of them fitted, " + of(Provenance::Transferred) +
                                 " transferred from other GPUs, " + of(Provenance::Assumed) + " assumed") +
      "\n";
  for (const LeafChange& c : p.gpu_changes)
    out += "  with    " + c.path + " " + c.value + " in place of " + c.was + "\n";
  return out;
}

/// The sentence with its verdict, which ends at the colon, emphasised.
std::string verdict_text(const Prediction& p, const Style& style) {
  const std::string& sentence = p.bottleneck.sentence;
  const std::size_t end = sentence.find(':');
  if (end == std::string::npos) return sentence;
  return style.paint(Tone::Verdict, sentence.substr(0, end + 1)) + sentence.substr(end + 1);
}

void head(Page& page, const Prediction& p) {
  const Style& style = page.style;
  std::string& out = page.text;
  out += style.paint(Tone::Heading, "forewarp " FOREWARP_VERSION "  " + p.case_id +
                                        (p.launch > 0 ? " (launch " + std::to_string(p.launch) + ")" : "")) +
         "\n";
  out += "  kernel  " + p.kernel + "\n";
  out += "  grid    " + extent(p.grid) + " = " + count(p.grid.count()) + " blocks of " + extent(p.block) + " = " +
         count(p.block.count()) + " threads\n";
  out += "  on      " + p.gpu + " (" + p.gpu_title + "), " + std::to_string(p.sm_count) + " SMs at " +
         fixed(p.clock_mhz, 0) + " MHz, " + cache_state_name(p.caches) + " caches\n" + leaves_text(p, style) + "\n";
  out += "  " + verdict_text(p, style) + "\n";
}

std::string place_text(const CausePlace& place) {
  return (place.source.empty() ? "" : place.source + ", ") + address(place.instruction) + " " + place.text;
}

void causes_section(Page& page, const Prediction& p) {
  constexpr std::ptrdiff_t kVerdicts = 3;
  const Accounting& a = p.accounting;
  if (a.causes.empty()) return;
  Section s(page, "Where the time goes");
  const auto time = [&](double cycles) { return duration(cycles / std::max(1.0, p.cycles()) * p.time_ns()); };
  Table t({{"cause", Table::Left},
           {"of the time", Table::Right},
           {"time", Table::Right},
           {"saved without it", Table::Right}});
  for (const Cause& c : a.causes)
    t.row({{cause_title(c.kind), &c - a.causes.data() < kVerdicts ? Tone::Verdict : Tone::Plain},
           percent_text(c.share_pct),
           time(c.cycles),
           c.gain_cycles ? time(*c.gain_cycles) : "-"});
  s.table(t);
  s.note("Sizes add up; they are from " + a.method +
             (a.simulated ? " (" + std::to_string(a.simulations) + " simulations)." : "."),
         Tone::Dim);
  for (std::size_t i = 0; i < std::min<std::size_t>(kVerdicts, a.causes.size()); ++i) {
    const Cause& c = a.causes[i];
    s.note("");
    s.note(std::to_string(i + 1) + ". " + s.style().paint(Tone::Verdict, std::string(cause_title(c.kind)) + ":") + " " +
           cause_meaning(c.kind));
    if (!c.evidence.empty()) s.note("   " + c.evidence);
    if (c.place) s.note("   at " + place_text(*c.place));
    if (c.waits) s.note("   waited for by " + place_text(*c.waits));
    for (const Finding& f : a.findings)
      if (f.kind == c.kind)
        s.note("   " + f.advice + " Saves up to " + percent_text(f.speedup_pct) + "; see \"" + f.section + "\".");
  }
}

void speed_of_light(Page& page, const Prediction& p) {
  const MetricSet& m = p.metrics;
  Section s(page, "GPU speed of light");
  s.line("Elapsed cycles", count(static_cast<std::uint64_t>(p.cycles())), "gpc__cycles_elapsed.max");
  s.line("Duration", duration(p.time_ns()), "gpu__time_duration.sum");
  s.line("SM active cycles", fixed(m.get("sm__cycles_active.avg"), 0), "sm__cycles_active.avg");
  const auto pct = [&](std::string_view label, const std::string& name) {
    s.line(label, percent_text(m.get(name)), name);
  };
  pct("Compute throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed");
  pct("Memory throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed");
  pct("L1 throughput", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed");
  pct("L2 throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed");
  pct("DRAM throughput", "dram__throughput.avg.pct_of_peak_sustained_elapsed");
}

void roofline(Page& page, const Prediction& p) {
  const Roofline& r = p.roofline;
  Section s(page, "Roofline");
  if (r.attained == 0) {
    s.note("No arithmetic but on integers: the kernel moves data and computes indices.");
  } else {
    s.line("Attained, " + precision_text(r.precision), si(r.attained, rate_unit(r)));
    s.line("Lowest ceiling, " + precision_text(r.binding), si(r.ceiling, rate_unit(r)));
    s.line("Attained of that ceiling", percent_text(r.attained_pct));
    s.line("Ridge at HBM", fixed(r.ridge, 1) + " FLOP/B");
  }
  Table t({{"level", Table::Left},
           {"bytes", Table::Right},
           {"rate", Table::Right},
           {"peak rate", Table::Right},
           {"FLOP/B", Table::Right},
           {"ceiling", Table::Right}});
  for (const RooflineLevel& l : r.levels) {
    t.row({l.name, bytes_text(l.bytes), si(l.bytes_per_second, "B/s"), si(l.peak_bytes_per_second, "B/s"),
           r.attained == 0 ? "-" : fixed(l.intensity, 2), r.attained == 0 ? "-" : si(l.ceiling, rate_unit(r))});
  }
  s.table(t);
}

void breakdown(Section& s, const std::vector<ThroughputTerm>& terms, std::size_t most) {
  for (std::size_t i = 0; i < std::min(most, terms.size()); ++i)
    if (terms[i].pct > 0) s.line("  " + terms[i].label, percent_text(terms[i].pct), terms[i].metric);
}

void compute_section(Page& page, const Prediction& p) {
  const MetricSet& m = p.metrics;
  Section s(page, "Compute workload");
  s.line("Instructions executed", fixed(m.get("smsp__inst_executed.sum"), 0), "smsp__inst_executed.sum");
  s.line("Executed per active cycle and SM", fixed(m.get("sm__inst_executed.avg.per_cycle_active"), 2),
         "sm__inst_executed.avg.per_cycle_active");
  s.note("How busy units are, of their peak over the elapsed cycles:", Tone::Dim);
  breakdown(s, p.compute, 6);
}

void memory_section(Page& page, const Prediction& p) {
  const MetricSet& m = p.metrics;
  Section s(page, "Memory workload");
  s.line("HBM read", bytes_text(m.get("dram__bytes_read.sum")), "dram__bytes_read.sum");
  s.line("HBM written", bytes_text(m.get("dram__bytes_write.sum")), "dram__bytes_write.sum");
  s.line("L1 hit rate", percent_text(m.get("l1tex__t_sector_hit_rate.pct")), "l1tex__t_sector_hit_rate.pct");
  s.line("L2 hit rate", percent_text(m.get("lts__t_sector_hit_rate.pct")), "lts__t_sector_hit_rate.pct");
  s.line("L2 sectors read", fixed(m.get("lts__t_sectors_srcunit_tex_op_read.sum"), 0),
         "lts__t_sectors_srcunit_tex_op_read.sum");
  s.line("L2 sectors written", fixed(m.get("lts__t_sectors_srcunit_tex_op_write.sum"), 0),
         "lts__t_sectors_srcunit_tex_op_write.sum");
  s.note("How busy units are, of their peak over the elapsed cycles:", Tone::Dim);
  breakdown(s, p.memory_terms, 6);
}

void coalescing(Page& page, const Prediction& p) {
  std::vector<const MemoryRow*> rows;
  for (const MemoryRow& row : p.memory)
    if (row.sectors > 0) rows.push_back(&row);
  if (rows.empty()) return;
  Section s(page, "Coalescing");
  s.line("Sectors touched", count(p.sectors()));
  s.line("Sectors beyond need",
         count(p.wasted_sectors()) + " (" +
             percent_text(p.sectors() == 0
                              ? 0
                              : 100.0 * static_cast<double>(p.wasted_sectors()) / static_cast<double>(p.sectors())) +
             ")",
         "forewarp__wasted_sectors.sum");
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->wasted_sectors() != b->wasted_sectors() ? a->wasted_sectors() > b->wasted_sectors()
                                                      : a->sectors > b->sectors;
  });
  Table t({{"pc", Table::Left},
           {"instruction", Table::Left},
           {"executed", Table::Right},
           {"sectors", Table::Right},
           {"needed", Table::Right},
           {"per request", Table::Right},
           {"bytes", Table::Right}});
  for (std::size_t i = 0; i < std::min(kTop, rows.size()); ++i) {
    const MemoryRow& r = *rows[i];
    const double requests = static_cast<double>(std::max<std::uint64_t>(r.requests, 1));
    t.row({address(r.instruction), left(r.text, std::min<std::size_t>(r.text.size(), 44)), count(r.executed),
           count(r.sectors), count(r.ideal_sectors),
           fixed(static_cast<double>(r.sectors) / requests, 1) + " of " +
               fixed(static_cast<double>(r.ideal_sectors) / requests, 1),
           bytes_text(static_cast<double>(r.bytes))});
  }
  s.table(t);
  if (rows.size() > kTop) s.note(count(rows.size() - kTop) + " more in the JSON result", Tone::Dim);
}

void bank_conflicts(Page& page, const Prediction& p) {
  std::vector<const MemoryRow*> rows;
  std::uint64_t wavefronts = 0, conflicts = 0;
  for (const MemoryRow& row : p.memory) {
    if (row.wavefronts == 0) continue;
    rows.push_back(&row);
    wavefronts += row.wavefronts;
    conflicts += row.conflicts;
  }
  if (rows.empty()) return;
  Section s(page, "Shared memory");
  s.line("Wavefronts", count(wavefronts));
  s.line("  of those, bank conflicts",
         count(conflicts) + " (" +
             percent_text(100.0 * static_cast<double>(conflicts) / static_cast<double>(wavefronts)) + ")");
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->conflicts != b->conflicts ? a->conflicts > b->conflicts : a->wavefronts > b->wavefronts;
  });
  Table t({{"pc", Table::Left},
           {"instruction", Table::Left},
           {"executed", Table::Right},
           {"wavefronts", Table::Right},
           {"conflicts", Table::Right}});
  for (std::size_t i = 0; i < std::min(kTop, rows.size()); ++i) {
    const MemoryRow& r = *rows[i];
    t.row({address(r.instruction), left(r.text, std::min<std::size_t>(r.text.size(), 44)), count(r.executed),
           count(r.wavefronts), count(r.conflicts)});
  }
  s.table(t);
}

void warp_states(Page& page, const Prediction& p) {
  const MetricSet& m = p.metrics;
  Section s(page, "Scheduler and warp states");
  s.line("Issue slots busy", percent_text(100 * m.get("smsp__issue_active.avg.per_cycle_active")),
         "smsp__issue_active.avg.per_cycle_active");
  s.line("Active warps per scheduler", fixed(m.get("smsp__warps_active.avg.per_cycle_active"), 2),
         "smsp__warps_active.avg.per_cycle_active");
  s.line("Eligible warps per scheduler", fixed(m.get("smsp__warps_eligible.avg.per_cycle_active"), 2),
         "smsp__warps_eligible.avg.per_cycle_active");
  s.line("Warp cycles per issued instruction", fixed(m.get("smsp__average_warp_latency_per_inst_issued.ratio"), 2),
         "smsp__average_warp_latency_per_inst_issued.ratio");
  Table t(
      {{"state", Table::Left}, {"of warp time", Table::Right}, {"per issue", Table::Right}, {"the warp", Table::Left}});
  for (const StallShare& stall : p.stalls) {
    if (stall.share_pct < 0.1) continue;
    t.row({stall_name(stall.reason), percent_text(stall.share_pct), fixed(stall.per_issue, 2),
           stall_meaning(stall.reason)});
  }
  s.table(t);
  if (p.hot_spots.empty()) return;
  s.note("");
  s.note("Where warps spend their time:");
  const auto row_of = [&](const HotSpot& spot) {
    return std::find_if(p.instructions.begin(), p.instructions.end(),
                        [&](const InstructionRow& r) { return r.instruction == spot.instruction; });
  };
  const bool lines = std::any_of(p.instructions.begin(), p.instructions.end(),
                                 [](const InstructionRow& r) { return !r.source.empty(); });
  Table h({{"pc", Table::Left},
           {"instruction", Table::Left},
           {lines ? "source" : "", Table::Left},
           {"of warp time", Table::Right},
           {"mostly", Table::Left},
           {"sectors", Table::Right}});
  for (std::size_t i = 0; i < std::min(kTopInstructions, p.hot_spots.size()); ++i) {
    const HotSpot& spot = p.hot_spots[i];
    const auto row = row_of(spot);
    const bool found = row != p.instructions.end();
    h.row({address(spot.instruction), left(spot.text, std::min<std::size_t>(spot.text.size(), 44)),
           found ? row->source : "", percent_text(spot.share_pct), stall_name(spot.reason),
           found && row->sectors > 0 ? count(row->sectors) : ""});
  }
  s.table(h);
}

void timeline_section(Page& page, const Prediction& p) {
  if (!p.timeline) return;
  constexpr std::size_t kStates = 4;
  const WarpTimeline& t = *p.timeline;
  const BlockRecord& record = *t.record;
  Section s(page, record.blocks.size() > 1 ? "The cluster of block " + count(record.request.block)
                                           : "Block " + count(record.request.block));
  s.line("Watched cycles", count(record.end - record.start));
  if (t.from > record.start) s.line("Shares are of those from", count(t.from - record.start));
  if (t.tensor_pct > 0) s.line("Tensor pipes busy for it", percent_text(t.tensor_pct));
  if (!record.copies.empty()) {
    s.line("Bulk copies under way", percent_text(t.copying_pct));
    s.line("Bytes that they bring", fixed(t.copied_bytes_per_cycle, 1) + " a cycle");
  }
  Table table({{"warps", Table::Left}, {"mostly", Table::Left}});
  for (const RoleTime& time : t.times) {
    if (time.all == 0) continue;
    std::vector<std::pair<std::uint64_t, std::string>> states;
    for (std::size_t r = 0; r < kStallReasons; ++r) {
      std::uint64_t cycles = time.cycles[r];
      if (r == static_cast<std::size_t>(Stall::LongScoreboard)) cycles -= time.at_full + time.at_empty;
      states.emplace_back(cycles, stall_name(static_cast<Stall>(r)));
    }
    states.emplace_back(time.at_full, "copies to end");
    states.emplace_back(time.at_empty, "stages to be free");
    std::stable_sort(states.begin(), states.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (std::size_t i = 0; i < kStates && states[i].first > 0; ++i)
      text += (text.empty() ? "" : ", ") + states[i].second + " " +
              percent_text(100 * static_cast<double>(states[i].first) /
                           static_cast<double>(std::max<std::uint64_t>(1, time.all)));
    table.row({count(time.warps) + " " + role_name(time.role), text});
  }
  s.table(table);
  for (const BlockRecord::LeftOut& gap : record.left_out)
    s.note("The record ends where simulating did: " + count(gap.cycles) + " cycles of the launch were left out after " +
           count(gap.at - record.start) + " of these.");
  if (record.filled) s.note("The record is full: it ends before the cycles that were asked for.");
  if (!t.sentence.empty()) s.note("Which wait binds: " + t.sentence + ".");
}

void occupancy_section(Page& page, const Prediction& p) {
  const Occupancy& o = p.occupancy;
  Section s(page, "Occupancy");
  s.line("Theoretical", percent_text(o.theoretical_pct), "sm__maximum_warps_per_active_cycle_pct");
  s.line("Achieved", percent_text(p.metrics.get("sm__warps_active.avg.pct_of_peak_sustained_active")),
         "sm__warps_active.avg.pct_of_peak_sustained_active");
  s.line("Blocks per SM", std::to_string(o.blocks_per_sm) + " (" + o.limiter + ")");
  s.line("  limit by registers", std::to_string(o.limit_registers), "launch__occupancy_limit_registers");
  s.line("  limit by shared memory", std::to_string(o.limit_shared), "launch__occupancy_limit_shared_mem");
  s.line("  limit by warps", std::to_string(o.limit_warps), "launch__occupancy_limit_warps");
  s.line("  limit by blocks", std::to_string(o.limit_blocks), "launch__occupancy_limit_blocks");
  s.line("Registers per thread", fixed(p.metrics.get("launch__registers_per_thread"), 0),
         "launch__registers_per_thread");
  s.line("Shared memory per block", bytes_text(o.shared_bytes_per_block), "launch__shared_mem_per_block_allocated");
}

void waves_section(Page& page, const Prediction& p) {
  const Waves& w = p.waves;
  Section s(page, "Waves");
  s.line("Waves", fixed(p.occupancy.waves, 2), "launch__waves_per_multiprocessor");
  s.line("Blocks of a wave", count(w.blocks_per_wave));
  s.line("Full waves", count(w.full_waves));
  if (w.last_wave_blocks > 0)
    s.line("Last wave", count(w.last_wave_blocks) + " blocks, " + percent_text(w.last_wave_fill_pct) + " full");
  s.line("Tail of the run", percent_text(w.tail_pct), "forewarp__waves_tail.pct");
  s.line("SM-time without a block", percent_text(w.idle_sm_pct), "forewarp__idle_sms.pct");
  s.note(w.from_spans ? "Tail and idle time are those of the simulated blocks."
                      : "Tail and idle time are computed from the counts of blocks.",
         Tone::Dim);
}

void divergence_section(Page& page, const Prediction& p) {
  const Divergence& d = p.divergence;
  Section s(page, "Divergence");
  s.line("Active lanes of an instruction", fixed(d.active_lanes, 2),
         "smsp__thread_inst_executed_per_inst_executed.ratio");
  s.line("  of those, not predicated off", fixed(d.enabled_lanes, 2),
         "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio");
  s.line("Idle lane slots", percent_text(d.idle_lane_pct), "forewarp__idle_lanes.pct");
  s.line("Branches executed", count(d.executed));
  s.line("  of those, divergent",
         count(d.divergent) + " (" + percent_text(p.metrics.get("forewarp__divergent_branches.pct")) + ")",
         "forewarp__divergent_branches.pct");
  std::vector<const BranchRow*> rows;
  for (const BranchRow& row : d.branches)
    if (row.divergent > 0) rows.push_back(&row);
  if (rows.empty()) return;
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->divergent > b->divergent; });
  Table t({{"pc", Table::Left},
           {"branch", Table::Left},
           {"executed", Table::Right},
           {"divergent", Table::Right},
           {"active lanes", Table::Right}});
  for (std::size_t i = 0; i < std::min(kTop, rows.size()); ++i) {
    const BranchRow& r = *rows[i];
    t.row({address(r.instruction), left(r.text, std::min<std::size_t>(r.text.size(), 44)), count(r.executed),
           count(r.divergent), fixed(r.active_lanes, 1)});
  }
  s.table(t);
}

void coverage_section(Page& page, const Prediction& p) {
  const Coverage& c = p.coverage;
  Section s(page, "Coverage");
  s.line("Warp instructions of the launch", count(c.warp_instructions));
  const double all = static_cast<double>(std::max<std::uint64_t>(c.warp_instructions, 1));
  s.line("  simulated in detail", count(c.simulated_warp_instructions) + " (" +
                                      percent_text(100 * static_cast<double>(c.simulated_warp_instructions) / all) +
                                      ")");
  if (c.extrapolated) {
    s.note("The rest is extrapolated: " + c.method + ".");
    s.line("95 % confidence interval of the cycles",
           count(static_cast<std::uint64_t>(c.cycles_low)) + " to " + count(static_cast<std::uint64_t>(c.cycles_high)));
  } else {
    s.note("Every instruction of every block was simulated.");
  }
  for (const std::string& warning : p.warnings) s.note(s.style().paint(Tone::Warning, "Warning:") + " " + warning);
}

std::string full_report(const Prediction& p, Style style) {
  Page page{{}, style};
  head(page, p);
  causes_section(page, p);
  speed_of_light(page, p);
  roofline(page, p);
  compute_section(page, p);
  memory_section(page, p);
  coalescing(page, p);
  bank_conflicts(page, p);
  warp_states(page, p);
  timeline_section(page, p);
  occupancy_section(page, p);
  waves_section(page, p);
  divergence_section(page, p);
  coverage_section(page, p);
  return page.text;
}

std::string overview(std::span<const Prediction> predictions, Style style) {
  const Prediction& first = predictions.front();
  std::string out = style.paint(Tone::Heading, "forewarp " FOREWARP_VERSION "  " + first.gpu + " (" + first.gpu_title +
                                                   "), " + cache_state_name(first.caches) + " caches") +
                    "\n\n";
  Table t({{"case", Table::Left},
           {"cycles", Table::Right},
           {"time", Table::Right},
           {"rate", Table::Right},
           {"of ceiling", Table::Right},
           {"compute", Table::Right},
           {"memory", Table::Right},
           {"waste", Table::Right},
           {"lanes", Table::Right},
           {"waves", Table::Right},
           {"top stall", Table::Left},
           {"bound by", Table::Left}});
  for (const Prediction& p : predictions) {
    const MetricSet& m = p.metrics;
    t.row({launch_label(p),
           count(static_cast<std::uint64_t>(p.cycles())),
           duration(p.time_ns()),
           p.roofline.attained == 0 ? "-" : si(p.roofline.attained, "FLOP/s"),
           roofline_position(p),
           percent_text(m.get("sm__throughput.avg.pct_of_peak_sustained_elapsed")),
           percent_text(m.get("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")),
           percent_text(m.get("forewarp__wasted_sectors.pct")),
           fixed(p.divergence.enabled_lanes, 1),
           fixed(p.occupancy.waves, 2),
           top_stall(p),
           {cause_title(p.bottleneck.kind), Tone::Verdict}});
  }
  out += t.text("", style) + "\n";
  const auto label = [&](const Prediction& p) { return style.paint(Tone::Heading, launch_label(p) + ":") + " "; };
  for (const Prediction& p : predictions) out += label(p) + verdict_text(p, style) + "\n";
  for (const Prediction& p : predictions)
    for (const std::string& warning : p.warnings)
      out += label(p) + style.paint(Tone::Warning, "warning:") + " " + warning + "\n";
  return out + "\n" +
         style.paint(Tone::Dim,
                     "One case at a time (--case ID) prints its whole report; the JSON result (--json FILE) holds all "
                     "of them.") +
         "\n";
}

}  // namespace

std::string write_text(std::span<const Prediction> predictions, Style style) {
  if (predictions.empty()) return "Nothing was predicted.\n";
  return predictions.size() == 1 ? full_report(predictions.front(), style) : overview(predictions, style);
}

}  // namespace forewarp

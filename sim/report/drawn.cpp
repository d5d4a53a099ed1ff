// What plots and the instruction view need beyond the tables: rows of all instructions, example accesses, a warp's
// instruction stream, other occupancies, and block spans.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "report/analysis.h"
#include "trace/coalesce.h"
#include "trace/events.h"

namespace forewarp::report {

namespace {

constexpr std::size_t kMostSpans = 6000;          ///< blocks in one picture
constexpr std::size_t kMostSingle = 1200;         ///< blocks that a picture shows one by one
constexpr int kColumns = 120, kMostRows = 72;     ///< of a picture that does not
constexpr std::size_t kMostSteps = 2000;          ///< of a warp's stream
constexpr std::uint64_t kMostWalked = 2'000'000;  ///< instructions looked at for example accesses
constexpr int kRegisterStep = 8;
constexpr int kSharedStep = 2048;

/// The class with the most blocks stands for the launch.
const BlockClass* largest_class(const KernelTrace& trace) {
  const auto largest = std::max_element(trace.classes.begin(), trace.classes.end(),
                                        [](const auto& a, const auto& b) { return a.population < b.population; });
  return largest == trace.classes.end() || largest->warps.empty() ? nullptr : &*largest;
}

/// How often the inspected warps used a pattern at an instruction.
using Meetings = std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>>;

void count_meetings(const Inputs& in, const EventTable& events, const BlockClass& cls, const WarpTrace& warp,
                    std::uint64_t walked, Meetings& meetings) {
  const WarpCursor start(cls.paths[warp.path], warp);
  start.for_each_record(
      events, [&](std::uint32_t pc, const TraceEvent& event, std::span<const Access> records, std::uint64_t at) {
        const std::uint32_t pattern = records.front().pattern;
        if (event.kind != EventKind::Arrive && event.kind != EventKind::Cluster && event.kind != EventKind::Phase &&
            in.trace.patterns[pattern].lanes != 0)
          ++meetings[pc][pattern];
        return walked + at < kMostWalked;
      });
}

/// The most frequent pattern among those with the most frequent number of sectors: rows that begin anywhere make many
/// patterns, and the few aligned ones would not be a fair example.
std::uint32_t typical_pattern(const Inputs& in, const std::map<std::uint32_t, std::uint64_t>& patterns) {
  const auto sections_of = [&](std::uint32_t pattern) { return coalesce(in.trace.patterns[pattern]).sectors; };
  std::map<std::uint16_t, std::uint64_t> by_sections;
  for (const auto& [pattern, times] : patterns) by_sections[sections_of(pattern)] += times;
  const auto more = [](const auto& a, const auto& b) { return a.second < b.second; };
  const std::uint16_t sections = std::max_element(by_sections.begin(), by_sections.end(), more)->first;
  std::uint32_t best = patterns.begin()->first;
  std::uint64_t most = 0;
  for (const auto& [pattern, times] : patterns) {
    if (times <= most || sections_of(pattern) != sections) continue;
    best = pattern;
    most = times;
  }
  return best;
}

AccessExample make_example(std::uint32_t instruction, const AccessPattern& pattern) {
  AccessExample e;
  e.instruction = instruction;
  e.space = pattern.space;
  e.lanes = pattern.lanes;
  e.bytes = pattern.bytes;
  std::int32_t lowest = INT32_MAX;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
    if ((pattern.lanes >> lane & 1) != 0) lowest = std::min(lowest, pattern.offsets[lane]);
  // Relative to the line of the lowest byte.
  const std::int32_t at = lowest + pattern.base_offset;
  constexpr auto kLine = static_cast<std::int32_t>(kLineBytes);
  const std::int32_t boundary = at - ((at % kLine) + kLine) % kLine;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
    if ((pattern.lanes >> lane & 1) != 0) e.offsets[lane] = pattern.offsets[lane] + pattern.base_offset - boundary;
  return e;
}

/// Warps on an SM with other registers or another block size; 0 if no block fits.
int resident_warps(const Inputs& in, const Kernel& kernel, const Dim3& block, std::uint32_t dynamic) {
  try {
    const Occupancy o = compute_occupancy(in.model, kernel, in.trace.launch.grid, block, dynamic);
    return o.blocks_per_sm * o.warps_per_block;
  } catch (const InputError&) {  // a choice that the GPU refuses is a point of the plot, not an error
    return 0;
  }
}

}  // namespace

std::vector<InstructionRow> instruction_rows(const Inputs& in) {
  std::vector<InstructionRow> rows;
  for (std::size_t i = 0; i < in.totals.size(); ++i) {
    const InstructionCount& t = in.totals[i];
    if (t.executed == 0) continue;
    InstructionRow row;
    row.instruction = static_cast<std::uint32_t>(i);
    row.text = instruction_text(in.kernel, i);
    if (i < in.kernel.source.size()) row.source = in.kernel.source[i];
    row.executed = t.executed;
    row.active_lanes = ratio(static_cast<double>(t.active_lanes), static_cast<double>(t.executed));
    row.enabled_lanes = ratio(static_cast<double>(t.enabled_lanes), static_cast<double>(t.executed));
    row.sectors = t.sectors;
    row.ideal_sectors = t.ideal_sectors;
    row.wavefronts = t.wavefronts;
    row.conflicts = t.bank_conflicts;
    if (i < in.timing.instruction_stalls.size()) row.stalls = in.timing.instruction_stalls[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<AccessExample> access_examples(const Inputs& in) {
  const BlockClass* cls = largest_class(in.trace);
  Meetings meetings;
  if (cls == nullptr) return {};
  const EventTable events(in.kernel);
  std::uint64_t walked = 0;
  for (const WarpTrace& warp : cls->warps) {
    if (walked > kMostWalked) break;
    count_meetings(in, events, *cls, warp, walked, meetings);
    walked += cls->paths[warp.path].instructions;
  }
  std::vector<AccessExample> examples;
  for (const auto& [instruction, patterns] : meetings) {
    examples.push_back(make_example(instruction, in.trace.patterns[typical_pattern(in, patterns)]));
  }
  return examples;
}

WarpStream warp_stream(const Inputs& in) {
  WarpStream stream;
  const BlockClass* cls = largest_class(in.trace);
  if (cls == nullptr) return stream;
  const WarpPath& path = cls->paths[cls->warps.front().path];
  stream.instructions = path.instructions;
  for (const Run& run : path.runs) {
    for (std::uint32_t i = run.first; i < run.first + run.count; ++i) {
      const InstructionCount& t = cls->counts[i];
      const double lanes = ratio(static_cast<double>(t.active_lanes), static_cast<double>(t.executed));
      if (i != run.first && stream.steps.back().active_lanes == lanes) {
        ++stream.steps.back().count;
        continue;
      }
      if (stream.steps.size() == kMostSteps) return stream;
      stream.steps.push_back({i, 1, lanes});
    }
  }
  return stream;
}

OccupancyChoices occupancy_choices(const Inputs& in) {
  OccupancyChoices c;
  const LaunchInfo& launch = in.trace.launch;
  const OccupancySpec& limits = in.model.occupancy;
  Kernel kernel;  // what occupancy depends on; the code itself does not matter
  kernel.name = in.kernel.name;
  kernel.registers = in.kernel.registers;
  kernel.static_shared_bytes = in.kernel.static_shared_bytes;
  for (int registers = 16; registers <= limits.registers_per_thread_max + 1; registers += kRegisterStep) {
    kernel.registers = std::min(registers, limits.registers_per_thread_max);
    c.registers.push_back({kernel.registers, resident_warps(in, kernel, launch.block, launch.dynamic_shared_bytes)});
  }
  kernel.registers = in.kernel.registers;
  for (std::uint32_t threads = kWarpLanes; threads <= static_cast<std::uint32_t>(limits.max_threads_per_block);
       threads += kWarpLanes)
    c.threads.push_back(
        {static_cast<int>(threads), resident_warps(in, kernel, {threads, 1, 1}, launch.dynamic_shared_bytes)});
  kernel.static_shared_bytes = 0;
  for (int bytes = 0; bytes <= limits.shared_block_max_bytes; bytes += kSharedStep)
    c.shared_bytes.push_back({bytes, resident_warps(in, kernel, launch.block, static_cast<std::uint32_t>(bytes))});
  return c;
}

std::vector<BlockSpan> drawn_spans(const Inputs& in) {
  std::vector<BlockSpan> spans = in.timing.spans;
  std::stable_sort(spans.begin(), spans.end(), [](const BlockSpan& a, const BlockSpan& b) {
    return a.sm != b.sm ? a.sm < b.sm : a.start < b.start;
  });
  if (spans.size() > kMostSpans) {
    // Whole SMs only: a truncated SM would look idle.
    const std::uint16_t cut = spans[kMostSpans].sm;
    std::erase_if(spans, [&](const BlockSpan& s) { return s.sm >= cut && cut > 0; });
    if (spans.size() > kMostSpans) spans.resize(kMostSpans);
  }
  return spans;
}

Residency residency(const Inputs& in) {
  Residency r;
  if (in.timing.spans.size() <= kMostSingle) return r;
  const int sms = in.model.chip.sm_count;
  r.sms_per_row = (sms + kMostRows - 1) / kMostRows;
  r.cycles_per_column = in.cycles / kColumns;
  const auto rows = static_cast<std::size_t>((sms + r.sms_per_row - 1) / r.sms_per_row);
  r.blocks.assign(rows, std::vector<double>(kColumns, 0.0));
  for (const BlockSpan& s : in.timing.spans) {
    if (s.sm >= static_cast<std::uint32_t>(sms)) continue;
    std::vector<double>& row = r.blocks[s.sm / static_cast<std::uint32_t>(r.sms_per_row)];
    const double from = static_cast<double>(s.start) / r.cycles_per_column,
                 to = std::min(static_cast<double>(s.end) / r.cycles_per_column, static_cast<double>(kColumns));
    for (double at = from; at < to;) {
      const double next = std::min(std::floor(at) + 1, to);
      row[static_cast<std::size_t>(at)] += next - at;
      at = next;
    }
  }
  for (std::size_t row = 0; row < rows; ++row) {
    const int first = static_cast<int>(row) * r.sms_per_row;
    const int count = std::min(r.sms_per_row, sms - first);
    for (double& blocks : r.blocks[row]) blocks = std::round(blocks / count * 100) / 100;
  }
  return r;
}

LaunchCosts launch_costs(const Inputs& in) {
  const LaunchSpec& launch = in.model.launch;
  return {launch.stream_gap_us, launch.graph_gap_us, launch.hand_over_us,
          (launch.start_cycles + launch.end_cycles) / in.model.chip.sm_clock_mhz};
}

}  // namespace forewarp::report

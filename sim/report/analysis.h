// The steps of build_prediction; each is a function of the same inputs.
#pragma once

#include "report/prediction.h"

namespace forewarp::report {

/// The inputs of a prediction, and the derived numbers that every step needs.
struct Inputs {
  const GpuModel& model;
  const Kernel& kernel;
  const KernelTrace& trace;
  const Occupancy& occupancy;
  const TimingResult& timing;
  std::vector<InstructionCount> totals;  ///< of the grid, by instruction
  double cycles = 0;                     ///< elapsed, at least 1
  double seconds = 0;
  double sms = 0;
  double sub_partitions = 0;  ///< of the whole GPU

  Inputs(const GpuModel&, const Kernel&, const KernelTrace&, const Occupancy&, const TimingResult&);
};

/// a / b, 0 when b is 0.
inline double ratio(double a, double b) { return b == 0 ? 0 : a / b; }
inline double percent(double a, double b) { return 100 * ratio(a, b); }
/// The disassembly of an instruction, or its opcode if there is none.
std::string instruction_text(const Kernel&, std::size_t instruction);

void add_timed_metrics(const Inputs&, MetricSet&);
void add_launch_metrics(const Inputs&, MetricSet&);
void add_own_metrics(const Prediction&, MetricSet&);

/// Constituents of sm__throughput and gpu__compute_memory_throughput, largest first.
std::vector<ThroughputTerm> compute_throughputs(const Inputs&);
std::vector<ThroughputTerm> memory_throughputs(const Inputs&);

/// The label of a pipe's term among them, "" for one that has none.
const char* throughput_label(Pipe);

Roofline make_roofline(const Inputs&);
Waves make_waves(const Inputs&);
std::vector<MemoryRow> memory_rows(const Inputs&);
Divergence make_divergence(const Inputs&);
std::vector<StallShare> stall_shares(const Inputs&);
std::vector<HotSpot> hot_spots(const Inputs&);
std::vector<InstructionRow> instruction_rows(const Inputs&);
std::vector<AccessExample> access_examples(const Inputs&);
WarpStream warp_stream(const Inputs&);
OccupancyChoices occupancy_choices(const Inputs&);
std::vector<BlockSpan> drawn_spans(const Inputs&);
Residency residency(const Inputs&);
LaunchCosts launch_costs(const Inputs&);
/// Of the block that was watched, or nothing.
std::shared_ptr<const WarpTimeline> warp_timeline(const Inputs&, const Prediction&);

}  // namespace forewarp::report

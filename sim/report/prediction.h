// Everything a report says about one predicted launch. Text and JSON are both written from this value, so they cannot
// disagree.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "counters/metrics.h"
#include "hardware/gpu_model.h"
#include "hardware/occupancy.h"
#include "hardware/peaks.h"
#include "program/program.h"
#include "report/causes.h"
#include "report/warp_timeline.h"
#include "timing/result.h"
#include "timing/simulate.h"
#include "trace/trace.h"

namespace forewarp {

/// One memory instruction of the code over the whole grid.
struct MemoryRow {
  std::uint32_t instruction = 0;  ///< index; its byte address in the kernel is 16 times that
  std::string text;
  MemorySpace space{};
  MemoryKind kind{};
  std::uint64_t executed = 0, requests = 0, bytes = 0;
  std::uint64_t sectors = 0, ideal_sectors = 0;  ///< global and local memory
  std::uint64_t wavefronts = 0, conflicts = 0;   ///< shared memory; conflicts: passes added by bank conflicts
  std::uint64_t wasted_sectors() const { return sectors > ideal_sectors ? sectors - ideal_sectors : 0; }
};

/// One branch of the code over the whole grid.
struct BranchRow {
  std::uint32_t instruction = 0;
  std::string text;
  std::uint64_t executed = 0, divergent = 0;
  double active_lanes = 0;  ///< mean, when it executes
};

struct Divergence {
  std::vector<BranchRow> branches;  ///< in code order
  std::uint64_t executed = 0, divergent = 0;
  double active_lanes = 0;   ///< smsp__thread_inst_executed_per_inst_executed.ratio
  double enabled_lanes = 0;  ///< of those, with a true guard
  double idle_lane_pct = 0;  ///< lane slots of issued instructions that did nothing
  double lost_lane_pct = 0;  ///< of them, those of lanes that parted from others (lost_lanes)
};

/// Lane slots of an instruction that are lost because lanes of a warp part. Where the guard is false for all of them
/// they agree, and only lanes that were off before it are lost.
double lost_lanes(const InstructionCount&);

/// An instruction at which warps waited.
struct HotSpot {
  std::uint32_t instruction = 0;
  std::string text;
  std::uint64_t warp_cycles = 0;
  double share_pct = 0;  ///< of all warp-cycles
  Stall reason{};        ///< the largest one
};

/// One executed instruction of the code over the whole grid, for the view by instruction.
struct InstructionRow {
  std::uint32_t instruction = 0;
  std::string text, source;                      ///< source: "file.cu:12", empty where it is not known
  std::uint64_t executed = 0;                    ///< warp instructions
  double active_lanes = 0, enabled_lanes = 0;    ///< mean, when it executes
  std::uint64_t sectors = 0, ideal_sectors = 0;  ///< global and local memory
  std::uint64_t wavefronts = 0, conflicts = 0;   ///< shared memory
  StallCycles stalls{};                          ///< warp-cycles before its issue, in what was simulated
};

/// The bytes that the lanes of a memory instruction access: the most typical pattern of the warps of the largest block
/// class.
struct AccessExample {
  std::uint32_t instruction = 0;
  MemorySpace space{};
  LaneMask lanes = 0;
  int bytes = 0;                                   ///< per lane
  std::array<std::int32_t, kWarpLanes> offsets{};  ///< from a line boundary, for the lanes in the mask
};

/// Consecutive instructions of a warp with the same number of active lanes.
struct StreamStep {
  std::uint32_t instruction = 0, count = 0;
  double active_lanes = 0;  ///< mean of the instruction over the warps
};

/// What a warp executes from its first instruction on, up to a limit.
struct WarpStream {
  std::vector<StreamStep> steps;
  std::uint64_t instructions = 0;  ///< of the warp, beyond the limit too
};

/// Warps resident on an SM if one parameter were different.
struct OccupancyChoice {
  int value = 0;  ///< registers per thread, bytes of shared memory per block, or threads per block
  int warps = 0;
};
struct OccupancyChoices {
  std::vector<OccupancyChoice> registers, shared_bytes, threads;
};

/// How many blocks are resident over time, on all SMs: for launches with more blocks than a picture can show one by
/// one.
struct Residency {
  int sms_per_row = 0;
  double cycles_per_column = 0;
  std::vector<std::vector<double>>
      blocks;  ///< by row and column: mean of an SM; empty: the blocks are shown themselves
};

/// What a sequence of launches costs besides the kernels.
struct LaunchCosts {
  double stream_gap_us = 0, graph_gap_us = 0;  ///< minimum time from start to start
  double hand_over_us = 0;                     ///< from the end of one to the start of the next
  double empty_us = 0;                         ///< duration of a kernel that does nothing
};

struct StallShare {
  Stall reason{};
  double per_issue = 0;  ///< warps in this state per issue-active cycle
  double share_pct = 0;  ///< of all warp-cycles
};

struct Waves {
  std::uint64_t blocks = 0, blocks_per_wave = 0;
  int blocks_per_sm = 0;
  std::uint64_t full_waves = 0, last_wave_blocks = 0;  ///< last_wave_blocks is 0 when the last wave is full
  double last_wave_fill_pct = 0;                       ///< 100 when it is full
  double tail_pct = 0;      ///< part of the elapsed cycles after the first SM ran out of blocks
  double idle_sm_pct = 0;   ///< share of SM time, between launch and end, without a resident block
  bool from_spans = false;  ///< observed in the simulation rather than computed from counts
};

/// One memory level of the roofline.
struct RooflineLevel {
  const char* name = "";  ///< "L1", "L2", "HBM"
  double bytes = 0;
  double peak_bytes_per_second = 0;
  double bytes_per_second = 0;
  double intensity = 0;  ///< operations of the leading precision per byte; 0 when nothing moved
  double ceiling = 0;    ///< operations per second that this level allows at this intensity
};

struct RooflineWork {
  const char* name = "";  ///< "fp32", "fp16", "fp64", "tensor_fp16", "tensor_int8", ...
  double operations = 0;
  double peak_per_second = 0;
};

struct Roofline {
  std::vector<RooflineWork> work;     ///< fp32, fp16, fp64, also when zero; then what the tensor pipe did
  std::vector<RooflineLevel> levels;  ///< L1, L2, HBM
  const char* precision = "none";     ///< the leading one: the one that would take longest at its peak
  double attained = 0;                ///< operations per second of the leading precision
  double ridge = 0;                   ///< intensity at HBM where its peak meets the HBM slope
  std::string binding;                ///< the lowest ceiling: "fp32", "L1", "L2", "HBM"
  double ceiling = 0;                 ///< operations per second there
  double attained_pct = 0;            ///< of that ceiling
};

/// A constituent of a throughput, in percent of its peak over the elapsed cycles.
struct ThroughputTerm {
  std::string metric;
  std::string label;
  double pct = 0;
};

/// The first cause in a sentence.
struct Bottleneck {
  CauseKind kind = CauseKind::Issue;
  std::string sentence;
};

struct Prediction {
  std::string case_id;
  int launch = 0;
  std::string kernel;
  Dim3 grid, block, cluster{0, 0, 0};
  std::string gpu, gpu_title;
  std::vector<LeafChange> gpu_changes;  ///< numbers that the command line changed
  std::array<int, static_cast<std::size_t>(Provenance::Count)>
      leaves{};  ///< the GPU's numbers, by where they come from
  int sm_count = 0;
  double clock_mhz = 0;
  std::vector<Peak> roofs;  ///< of every type of number, whether the kernel computes with it or not
  CacheState caches = CacheState::Cold;

  MetricSet metrics;
  Occupancy occupancy;
  Coverage coverage;
  std::vector<std::string> warnings;
  std::vector<MemoryRow> memory;  ///< in code order
  Divergence divergence;
  std::vector<StallShare> stalls;  ///< largest first, without zeros
  std::vector<HotSpot> hot_spots;  ///< largest first, at most 20
  Waves waves;
  Roofline roofline;
  std::vector<ThroughputTerm> compute, memory_terms;  ///< largest first
  Accounting accounting;
  Bottleneck bottleneck;

  // For pictures and the view by instruction.
  std::vector<InstructionRow> instructions;  ///< executed ones, in code order
  std::vector<AccessExample> examples;       ///< of memory instructions, in code order
  WarpStream stream;
  OccupancyChoices choices;
  std::vector<BlockSpan> spans;  ///< of the first SMs, as many as a plot shows; by SM and start
  Residency residency;           ///< of all SMs, where the spans are of the first ones alone
  std::vector<SkippedTime> skipped;
  LaunchCosts costs;
  std::shared_ptr<const WarpTimeline> timeline;  ///< of a block that was watched

  double cycles() const;   ///< gpc__cycles_elapsed.max
  double time_ns() const;  ///< gpu__time_duration.sum
  std::uint64_t wasted_sectors() const;
  std::uint64_t sectors() const;
};

Prediction build_prediction(const GpuModel&, const Kernel&, const KernelTrace&, const Occupancy&, const TimingResult&,
                            CacheState = CacheState::Cold);

}  // namespace forewarp

// A whole small machine and hand-made kernels for the tests of the SM: one SM, round numbers, sums by hand.
#pragma once

#include <memory>
#include <optional>

#include "timing/memory/memory_test_model.h"
#include "timing/simulate.h"
#include "trace/events.h"
#include "trace/trace.h"

namespace forewarp {

/// One SM of the machine of memory_test_model.h; launch overheads are zero so that the numbers are the SM's own.
inline GpuModel sm_model(int sms = 1) {
  GpuModel m = one_partition_model();
  m.sm = 90;
  m.chip = {sms, 1, {sms}, 1000};
  m.occupancy.max_warps = 64;
  m.issue.sub_partitions = 4;
  m.issue.branch_cycles = 8;
  m.issue.barrier_release_cycles = 10;
  m.issue.barrier_per_warp_cycles = 0;
  m.issue.exit_cycles = 1;
  m.issue.constant_hit_cycles = 20;
  m.issue.constant_miss_cycles = 100;
  m.issue.constant_line_bytes = 64;
  m.issue.wide_product_interval = 4;
  m.issue.wide_product_dispatch_cycles = 3;
  m.issue.wide_product_operand_cycles = 7;
  m.issue.wide_product_chain_cycles = 9;
  for (PipeSpec& pipe : m.pipes) pipe.interval = 1;
  m.pipes[static_cast<std::size_t>(Pipe::FmaHeavy)].interval = 0;
  m.pipes[static_cast<std::size_t>(Pipe::Alu)].interval = 2;
  m.pipes[static_cast<std::size_t>(Pipe::Xu)].interval = 8;
  m.tensor = {.product_bits = 8192,
              .fp64_products = 32,
              .fp64_least_cycles = 16,
              .fetch_cycles = 2,
              .fetch_pair_cycles = 2,
              .fetch_metadata_cycles = 2,
              .fp64_result_cycles = 18};
  m.icache = {32768, 131072, 131072, 128, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 4};
  m.icache.feed_lines = 2;  // in no time
  m.latency.mufu = 18;
  m.latency.shuffle = 23;
  m.latency.shared_load = 23;
  m.latency.shared_atomic = 40;
  m.latency.shared_store_read = 9;
  m.latency.global_read_release = 11;
  m.latency.s2r = 20;
  m.latency.movm = 24;
  m.latency.queued_behind = 3;
  m.latency.queued_read_release = 5;
  m.memory_pipe = {.queue_entries = 4,
                   .shared_queue_entries = 20,
                   .lsu_interval = 1,
                   .lead_cycles = 4,
                   .shuffle_interval = 2,
                   .shared_wavefront_cycles = 1,
                   .shared_conflict_latency = 2,
                   .register_cycles = 2,
                   .movm_interval = 4};
  m.l1.hit_cycles = 33;
  m.l1.data_bytes_per_cycle = 128;
  m.l1.tags_per_cycle = 4;
  m.l1.ways = 4;
  m.l1.loads_in_flight = 512;
  m.l1.miss_lines = 256;
  m.launch = {};
  m.launch.blocks_per_cycle_x16 = 16;
  return m;
}

/// With boxes, barriers in shared memory and products of warpgroups.
inline GpuModel model_with_boxes(int sms) {
  GpuModel gpu = sm_model(sms);
  gpu.async = {.product_result_cycles = 1,
               .group_release_cycles = 1,
               .phase_interval = 1,
               .phase_check_cycles = 20,
               .phase_complete_cycles = 40,
               .box_start_cycles = 20,
               .box_line_x16 = 16,
               .box_complete_cycles = 20};
  return gpu;
}

/// The register file's read ports of the H200.
inline GpuModel model_with_ports() {
  GpuModel gpu = sm_model();
  gpu.issue.register_bank_count = 2;
  gpu.issue.register_window_cycles = 3;
  return gpu;
}

inline Instruction plain(Pipe pipe, int stall) {
  Instruction in;
  in.opcode = Opcode::FFMA;
  in.pipe = pipe;
  in.control.stall = static_cast<std::uint8_t>(stall);
  in.control.yield = true;  // goes on
  return in;
}

inline Instruction waiting(Instruction in, int scoreboard) {
  in.control.wait_mask = static_cast<std::uint8_t>(1 << scoreboard);
  return in;
}

inline Instruction memory_instruction(Opcode op, MemorySpace space, MemoryKind kind, int write_barrier = 7,
                                      int read_barrier = 7) {
  Instruction in;
  in.opcode = op;
  in.pipe = Pipe::Lsu;
  in.space = space;
  in.memory = kind;
  in.access_bytes = 4;
  in.control.stall = 1;
  in.control.yield = true;
  in.control.write_barrier = static_cast<std::uint8_t>(write_barrier);
  in.control.read_barrier = static_cast<std::uint8_t>(read_barrier);
  return in;
}

/// Copies a box into shared memory.
inline Instruction box_copy() {
  Instruction copy = memory_instruction(Opcode::UTMALDG, MemorySpace::Global, MemoryKind::AsyncCopy);
  copy.pipe = Pipe::Tma;
  copy.access_bytes = 0;
  return copy;
}

/// What a warp does to a barrier in shared memory.
inline Instruction phase(int scoreboard = 7) {
  return memory_instruction(Opcode::SYNCS, MemorySpace::Shared, MemoryKind::Atomic, scoreboard);
}

inline Instruction exit_instruction() {
  Instruction in;
  in.opcode = Opcode::EXIT;
  in.pipe = Pipe::Cbu;
  in.control.stall = 1;
  in.control.yield = true;
  return in;
}

/// A launch in which every warp of every block runs the whole kernel once, or `body` instructions `iterations` times.
class HandMadeTrace {
 public:
  HandMadeTrace(std::vector<Instruction> instructions, int warps, std::uint32_t blocks = 1) {
    kernel_ = std::make_shared<Kernel>();
    kernel_->name = "hand_made";
    kernel_->instructions = std::move(instructions);
    trace_.launch.grid = {blocks, 1, 1};
    trace_.launch.block = {static_cast<std::uint32_t>(warps * kWarpLanes), 1, 1};
    trace_.kernel = kernel_;
    trace_.slopes.push_back({});
    BlockClass cls;
    cls.population = blocks;
    const auto count = static_cast<std::uint32_t>(kernel_->instructions.size());
    cls.paths.push_back({{{0, count}}, count});
    cls.warps.resize(static_cast<std::size_t>(warps));
    trace_.classes.push_back(cls);
    occupancy_.blocks_per_sm = 1;
    occupancy_.warps_per_block = warps;
    occupancy_.l1_bytes = 128 << 10;
  }

  /// Lane l of the next access of `warp` is at base + l * stride.
  HandMadeTrace& access(int warp, std::uint64_t base, int stride, MemorySpace space, MemoryKind kind = MemoryKind::Load,
                        std::uint8_t bytes = 4) {
    AccessPattern pattern;
    pattern.lanes = ~LaneMask{0};
    pattern.space = space;
    pattern.kind = kind;
    pattern.bytes = bytes;
    pattern.base_offset = static_cast<std::uint8_t>(base % kLineBytes);
    for (int l = 0; l < kWarpLanes; ++l) pattern.offsets[static_cast<std::size_t>(l)] = l * stride;
    return record(warp, base, pattern);
  }

  /// The next record of `warp` is a barrier's.
  HandMadeTrace& arrive(int warp, const BarrierArrival& arrival, LaneMask lanes = ~LaneMask{0}) {
    AccessPattern pattern;
    pattern.lanes = lanes;
    return record(warp, arrival.packed(), pattern);
  }

  /// The next record of `warp` is about a barrier in shared memory.
  HandMadeTrace& phase(int warp, const PhaseRecord& of) {
    AccessPattern pattern;
    pattern.lanes = 1;
    return record(warp, of.packed(), pattern);
  }

  /// The next records of `warp` are a box's: eight lines in a row from `base` on.
  HandMadeTrace& box(int warp, std::uint64_t base, std::uint32_t barrier) {
    AccessPattern box;
    box.lanes = 3;
    box.space = MemorySpace::Global;
    box.kind = MemoryKind::AsyncCopy;
    box.offsets[0] = kLineBytes;
    box.offsets[1] = 8;
    box.offsets[kBoxPitch + 1] = kLineBytes;
    record(warp, base, box);
    return record(warp, BoxTarget{0, barrier, 8 * kLineBytes, 0}.packed(), AccessPattern{});
  }

  HandMadeTrace& runs(std::vector<Run> runs) {
    trace_.classes[0].paths[0] = path_of(std::move(runs));
    return *this;
  }
  /// Another way through the code, which this warp takes.
  HandMadeTrace& runs_of(int warp, std::vector<Run> runs) {
    BlockClass& cls = trace_.classes[0];
    cls.warps[static_cast<std::size_t>(warp)].path = static_cast<std::uint32_t>(cls.paths.size());
    cls.paths.push_back(path_of(std::move(runs)));
    return *this;
  }

  HandMadeTrace& watch(const RecordRequest& request) {
    record_ = request;
    return *this;
  }

  Kernel& kernel() { return *kernel_; }
  KernelTrace& trace() { return trace_; }
  Occupancy& occupancy() { return occupancy_; }
  TimingResult simulate(const GpuModel& gpu, bool full = true, std::uint64_t budget = 20000,
                        unsigned threads = 1) const {
    SimulateOptions options;
    options.threads = threads;
    options.full = full;
    options.effort.seconds *= static_cast<double>(budget) / static_cast<double>(options.detailed_instructions);
    options.detailed_instructions = budget;
    return simulate(gpu, options);
  }
  TimingResult simulate(const GpuModel& gpu, SimulateOptions options) const {
    options.record = record_;
    KernelTrace trace = trace_;
    add_arrivals(trace);
    return forewarp::simulate(gpu, trace, occupancy_, options);
  }

 private:
  /// The next record of `warp`, with a pattern of its own.
  HandMadeTrace& record(int warp, std::uint64_t value, const AccessPattern& pattern) {
    trace_.patterns.push_back(pattern);
    trace_.classes[0].warps[static_cast<std::size_t>(warp)].accesses.push_back(
        {value, static_cast<std::uint32_t>(trace_.patterns.size() - 1), 0});
    return *this;
  }

  /// Warps that nobody gave arrivals meet whole, with all others, at barrier 0.
  static void add_arrivals(KernelTrace& trace) {
    const EventTable events(*trace.kernel);
    AccessPattern all;
    all.lanes = ~LaneMask{0};
    trace.patterns.push_back(all);
    const Access arrival{BarrierArrival{0, 0, true}.packed(), static_cast<std::uint32_t>(trace.patterns.size() - 1), 0};
    for (BlockClass& cls : trace.classes) {
      for (WarpTrace& warp : cls.warps) {
        const std::vector<Run>& runs = cls.paths[warp.path].runs;
        if (warp.accesses.size() >= events.records(runs)) continue;
        std::vector<Access> records;
        auto given = warp.accesses.begin();
        for (const Run& run : runs) {
          for (std::uint32_t pc = run.first; pc < run.first + run.count; ++pc) {
            for (int n = events[pc].records; n > 0 && events[pc].kind != EventKind::Arrive; --n)
              if (given != warp.accesses.end()) records.push_back(*given++);
            if (events[pc].kind == EventKind::Arrive) records.push_back(arrival);
          }
        }
        warp.accesses = std::move(records);
      }
    }
  }

  static WarpPath path_of(std::vector<Run> runs) {
    WarpPath path{std::move(runs), 0};
    for (const Run& run : path.runs) path.instructions += run.count;
    return path;
  }

  std::shared_ptr<Kernel> kernel_;
  KernelTrace trace_;
  Occupancy occupancy_;
  std::optional<RecordRequest> record_;
};

/// A loop of a load that walks over memory, some arithmetic on it, and a branch.
inline HandMadeTrace streaming_loop(int iterations, int warps, std::uint32_t blocks) {
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  Instruction branch = plain(Pipe::Cbu, 5);
  branch.opcode = Opcode::BRA;
  HandMadeTrace made({plain(Pipe::Fma, 4), load, waiting(plain(Pipe::Fma, 4), 0), branch, exit_instruction()}, warps,
                     blocks);
  std::vector<Run> runs{{0, 4}};
  for (int i = 1; i < iterations; ++i) runs.push_back({1, 3});
  runs.push_back({4, 1});
  made.runs(runs);
  for (int w = 0; w < warps; ++w)
    for (int i = 0; i < iterations; ++i)
      made.access(w, (std::uint64_t{1} << 24) + static_cast<std::uint64_t>((w * iterations + i) * kLineBytes), 4,
                  MemorySpace::Global);
  // Every block has lines of its own.
  made.trace().slopes.push_back({std::int64_t{warps} * iterations * kLineBytes, 0, 0});
  for (WarpTrace& warp : made.trace().classes[0].warps)
    for (Access& access : warp.accesses) access.slope = 1;
  return made;
}

inline std::uint64_t stalled(const TimingResult& result, Stall reason) {
  return result.counters.stalls[static_cast<std::size_t>(reason)];
}

}  // namespace forewarp

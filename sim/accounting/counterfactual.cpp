#include "accounting/counterfactual.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "report/prediction.h"
#include "trace/coalesce.h"
#include "trace/events.h"

namespace forewarp::accounting {

namespace {

constexpr std::uint64_t kMostFollowed = 16'000'000;  ///< instructions that following all warps has to look at
constexpr int kAmple = 16;                           ///< times a rate, so that it is never the limit

bool has(const Removed& removed, CauseKind kind) { return removed.test(static_cast<std::size_t>(kind)); }

// ---- the GPU ----

void free_pipes(GpuModel& m, std::initializer_list<Pipe> pipes) {
  for (const Pipe pipe : pipes) {
    PipeSpec& spec = m.pipes[static_cast<std::size_t>(pipe)];
    if (spec.interval == 0) continue;
    spec.interval = 1;
    spec.per_sm = false;
  }
}

void free_launch(GpuModel& m) {
  m.launch.start_cycles = m.launch.end_cycles = 0;
  m.launch.block_start_cycles = 0;
  m.launch.read_bytes = 0;
  m.icache.first_cycles = m.icache.warm_first_cycles = 0;
  m.icache.memory_cycles = m.icache.memory_line_cycles = 0;  // the code is there
}

void free_fetch(GpuModel& m) {
  InstructionCacheSpec& i = m.icache;
  i.l1_hit_cycles = i.l2_hit_cycles = i.memory_cycles = i.first_cycles = i.warm_first_cycles = 0;
  i.l1_line_cycles = i.l2_line_cycles = i.memory_line_cycles = 0;
  m.issue.constant_miss_cycles = 0;
}

void free_tensor(GpuModel& m) {
  TensorSpec& t = m.tensor;
  t.product_bits *= kAmple;
  t.fp64_products *= kAmple;
  t.fp64_least_cycles = std::min(t.fp64_least_cycles, 1);
  t.fetch_cycles = std::min(t.fetch_cycles, 1);
  t.fetch_pair_cycles = t.fetch_metadata_cycles = 0;
}

void free_l1(GpuModel& m) {
  m.l1.data_bytes_per_cycle *= kAmple;
  m.l1.tags_per_cycle = 64;
  m.l1.tag_bank_masks.clear();
  m.l1.loads_in_flight *= kAmple;
  m.l1.miss_lines *= kAmple;
  m.memory_pipe.lead_cycles = m.memory_pipe.lsu_interval = 1;
  m.memory_pipe.register_cycles = 0;
}

void free_l2(GpuModel& m) {
  CrossbarSpec& x = m.crossbar;
  for (int* rate : {&x.sm_requests_per_cycle_x16, &x.sm_response_bytes_per_cycle, &x.tpc_response_bytes_per_cycle,
                    &x.gpc_response_bytes_per_cycle, &x.sm_write_bytes_per_cycle, &x.cpc_write_bytes_per_cycle,
                    &x.slice_write_bytes_per_cycle, &x.fabric_bytes_per_cycle, &m.l2.slice_bytes_per_cycle,
                    &m.l2.slice_tags_per_cycle, &x.sm_write_flits, &x.cpc_fabric_writes, &x.cpc_reads})
    *rate *= kAmple;
  m.l2.atomic_interval = std::min(m.l2.atomic_interval, 1);
  m.l2.atomic_word_interval = std::min(m.l2.atomic_word_interval, 1);
}

/// What misses L2 finds its data there all the same: at any rate, and without the way to memory.
void free_dram(GpuModel& m) {
  HbmSpec& h = m.hbm;
  h.bytes_per_ns *= kAmple;
  h.controller_ns = 0;
  for (double* time : {&h.t_cl, &h.t_rcd, &h.t_rp, &h.t_ras, &h.t_wr, &h.t_rtp, &h.t_cwl, &h.t_ccd_s, &h.t_ccd_l,
                       &h.t_rrd, &h.t_faw, &h.t_wtr, &h.t_rtw, &h.t_rfc})
    *time /= kAmple;
  m.l2.miss_entries = std::min(m.l2.miss_entries * 4, 4096);
}

/// Data to be written back leave it as before.
void larger_l2(GpuModel& m) {
  m.l2.bytes *= kAmple;
  m.l2.dirty_share /= kAmple;
  m.l2.dirty_share_read /= kAmple;
  m.l2.partial_share /= kAmple;
}

/// Results are there at once.
void free_results(GpuModel& m) {
  m.issue.wide_product_operand_cycles = m.issue.wide_product_chain_cycles = 0;
  m.issue.scoreboard_limit = 250;
}

/// Blocks come and go at any rate.
void free_turnover(GpuModel& m) {
  m.launch.blocks_per_cycle_x16 *= kAmple;
  m.launch.blocks_back_per_cycle_x16 *= kAmple;
  m.launch.block_end_cycles = 0;
}

void change_model(GpuModel& m, const Removed& removed) {
  if (has(removed, CauseKind::Launch)) free_launch(m);
  if (has(removed, CauseKind::Fetch)) free_fetch(m);
  if (has(removed, CauseKind::L2Capacity)) larger_l2(m);
  if (has(removed, CauseKind::BlockSlots)) free_turnover(m);
  if (has(removed, CauseKind::Latency)) free_results(m);
  if (has(removed, CauseKind::PipeAlu)) free_pipes(m, {Pipe::Alu});
  if (has(removed, CauseKind::PipeFma)) {
    free_pipes(m, {Pipe::Fma, Pipe::FmaHeavy});
    m.issue.wide_product_interval = m.issue.wide_product_dispatch_cycles = 1;
  }
  if (has(removed, CauseKind::PipeFp16)) free_pipes(m, {Pipe::Fp16});
  if (has(removed, CauseKind::PipeFp64)) free_pipes(m, {Pipe::Fp64});
  if (has(removed, CauseKind::PipeXu)) free_pipes(m, {Pipe::Xu});
  if (has(removed, CauseKind::PipeTensor)) free_tensor(m);
  if (has(removed, CauseKind::PipeOther)) free_pipes(m, {Pipe::Uniform, Pipe::Cbu, Pipe::Adu});
  if (has(removed, CauseKind::L1)) free_l1(m);
  if (has(removed, CauseKind::L2)) free_l2(m);
  if (has(removed, CauseKind::Dram)) free_dram(m);
}

// ---- the occupancy ----

void change_occupancy(Occupancy& o, const KernelTrace& trace, const Removed& removed) {
  int blocks = o.limit_warps;
  if (!has(removed, CauseKind::Registers)) blocks = std::min(blocks, o.limit_registers);
  if (!has(removed, CauseKind::SharedSize) && uses_shared(trace)) blocks = std::min(blocks, o.limit_shared);
  if (!has(removed, CauseKind::BlockSlots)) blocks = std::min(blocks, o.limit_blocks);
  o.blocks_per_sm = std::max(o.blocks_per_sm, blocks);
}

// ---- the kernel ----

/// Who waits for a phase of a barrier in shared memory waits for others, not for a result: the first instruction behind
/// each that asks for its scoreboard.
std::vector<std::uint8_t> waits_for_phases(const Kernel& kernel) {
  const std::vector<Instruction>& code = kernel.instructions;
  std::vector<std::uint8_t> kept(code.size(), 0);
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::uint8_t s = code[i].control.write_barrier;
    if (code[i].opcode != Opcode::SYNCS || s == kNoScoreboard) continue;
    for (std::size_t j = i + 1; j < code.size(); ++j) {
      if ((code[j].control.wait_mask >> s & 1) == 0) continue;
      kept[j] = static_cast<std::uint8_t>(kept[j] | 1u << s);
      break;
    }
  }
  return kept;
}

std::shared_ptr<const Kernel> without_waits(const Kernel& kernel) {
  auto copy = std::make_shared<Kernel>(kernel);
  const std::vector<std::uint8_t> kept = waits_for_phases(kernel);
  for (std::size_t i = 0; i < copy->instructions.size(); ++i) {
    Instruction& in = copy->instructions[i];
    in.control.stall = 1;
    in.control.yield = true;  // a stall count of 1 without it takes 2 cycles
    in.control.wait_mask = kept[i];
    if (in.opcode == Opcode::DEPBAR) {
      in.opcode = in.native = Opcode::NOP;
      in.operand_count = in.destination_count = 0;
    }
  }
  return copy;
}

bool is_plain_global(const AccessPattern& p) {
  return p.lanes != 0 && p.bytes != 0 && (p.space == MemorySpace::Global || p.space == MemorySpace::Generic) &&
         (p.kind == MemoryKind::Load || p.kind == MemoryKind::Store || p.kind == MemoryKind::AsyncCopy);
}

bool is_atomic(const AccessPattern& p) { return p.kind == MemoryKind::Atomic || p.kind == MemoryKind::Reduction; }

/// Bytes from each lane's address to the next one's; 0 where they differ.
std::int64_t stride_of(const AccessPattern& p) {
  std::int64_t stride = 0, last = 0;
  int last_lane = -1;
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    if ((p.lanes >> lane & 1) == 0) continue;
    const std::int64_t offset = p.offsets[static_cast<std::size_t>(lane)];
    if (last_lane >= 0) {
      const std::int64_t step = lane - last_lane, difference = offset - last;
      if (difference % step != 0 || (stride != 0 && difference / step != stride)) return 0;
      stride = difference / step;
    }
    last = offset;
    last_lane = lane;
  }
  return stride;
}

/// Lanes side by side from `base_offset` 0 on, in the order of their addresses; equal addresses stay equal.
AccessPattern side_by_side(const AccessPattern& p) {
  std::vector<std::int32_t> addresses;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
    if ((p.lanes >> lane & 1) != 0) addresses.push_back(p.offsets[lane]);
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  AccessPattern out = p;
  int atomics = 0;  // each lane of an atomic gets a word of its own
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((p.lanes >> lane & 1) == 0) continue;
    if (is_atomic(p)) {
      out.offsets[lane] = atomics++ * p.bytes;
      continue;
    }
    const auto rank = std::lower_bound(addresses.begin(), addresses.end(), p.offsets[lane]) - addresses.begin();
    out.offsets[lane] = static_cast<std::int32_t>(rank) * p.bytes;
  }
  // Offsets count from the lowest lane's address.
  const std::int32_t first = out.offsets[static_cast<std::size_t>(std::countr_zero(p.lanes))];
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
    if ((p.lanes >> lane & 1) != 0) out.offsets[lane] -= first;
  out.base_offset = static_cast<std::uint8_t>(first % kLineBytes);
  return out;
}

/// Where data are stored if what lay `stride` apart for 32 lanes lies side by side: a place in a tile of 32 x stride
/// bytes goes from (row, column) to (column, row), elements of `bytes`. One to one, so that what other accesses of
/// the same shape touch stays apart.
struct Turned {
  std::int64_t stride = 0, bytes = 0;

  std::int64_t operator()(std::int64_t address) const {
    const std::int64_t tile = stride * kWarpLanes;
    const std::int64_t in_tile = ((address % tile) + tile) % tile;
    const std::int64_t column = in_tile % stride, row = in_tile / stride;
    return address - in_tile + column / bytes * bytes * kWarpLanes + row * bytes + column % bytes;
  }
};

std::uint64_t line_start(std::uint64_t address) { return address & ~std::uint64_t{kLineBytes - 1}; }

/// New patterns and addresses of global accesses whose lanes lie apart.
class Gathering {
 public:
  Gathering(KernelTrace& trace, const CoalescedPatterns& coalesced) : trace_(trace) {
    turned_.resize(trace.patterns.size());
    moved_.resize(trace.patterns.size(), false);
    for (std::size_t i = 0; i < trace.patterns.size(); ++i) {
      AccessPattern& p = trace.patterns[i];
      const CoalescedCounts& counts = coalesced.counts(static_cast<std::uint32_t>(i));
      if (!is_plain_global(p) || counts.sectors <= counts.ideal_sectors) continue;
      const std::int64_t stride = std::abs(stride_of(p));
      if (stride > p.bytes && stride % p.bytes == 0) turned_[i] = {stride, p.bytes};
      p = side_by_side(p);
      moved_[i] = true;
    }
  }

  /// Afterwards, an access is where its data are.
  void move(Access& access) {
    if (!moved_[access.pattern]) return;
    const Turned& turned = turned_[access.pattern];
    const auto offset = trace_.patterns[access.pattern].base_offset;
    if (turned.stride != 0) access.base = static_cast<std::uint64_t>(turned(static_cast<std::int64_t>(access.base)));
    access.base = line_start(access.base) + offset;
    if (turned.stride != 0) access.slope = slope_of(access.slope, turned);
  }

 private:
  std::uint32_t slope_of(std::uint32_t slope, const Turned& turned) {
    const auto [place, fresh] = slopes_.try_emplace({slope, turned.stride, turned.bytes}, 0);
    if (!fresh) return place->second;
    BlockSlope moved = trace_.slopes[slope];
    const auto turn = [&](std::int64_t& bytes) {
      const std::int64_t to = turned(bytes);
      bytes = to - ((to % kLineBytes) + kLineBytes) % kLineBytes;
    };
    turn(moved.x), turn(moved.y), turn(moved.z);
    for (std::int64_t& bytes : moved.quotients) turn(bytes);
    place->second = static_cast<std::uint32_t>(trace_.slopes.size());
    trace_.slopes.push_back(moved);
    return place->second;
  }

  KernelTrace& trace_;
  std::vector<Turned> turned_;  ///< by pattern; stride 0: lanes lie anywhere
  std::vector<bool> moved_;     ///< by pattern
  std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t>, std::uint32_t> slopes_;
};

bool is_fence(const Instruction& in) {
  return in.opcode == Opcode::MEMBAR || in.opcode == Opcode::ERRBAR || in.opcode == Opcode::CCTL;
}

/// Barriers and fences do nothing.
std::shared_ptr<const Kernel> without_barriers(const Kernel& kernel) {
  const EventTable events(kernel);
  auto copy = std::make_shared<Kernel>(kernel);
  for (std::size_t i = 0; i < copy->instructions.size(); ++i) {
    Instruction& in = copy->instructions[i];
    if (events[static_cast<std::uint32_t>(i)].kind != EventKind::Arrive && !is_fence(in)) continue;
    const Control control = in.control;
    in = Instruction{};
    in.opcode = in.native = Opcode::NOP;
    in.control = control;
    in.control.write_barrier = in.control.read_barrier = kNoScoreboard;
  }
  return copy;
}

/// What remains of the way of each warp when barriers do nothing, or lanes are packed.
class Thinning {
 public:
  Thinning(const Kernel& kernel, const std::vector<InstructionCount>& totals, const Removed& removed)
      : events_(kernel), keep_(kernel.instructions.size(), 1.0), silent_(kernel.instructions.size(), false) {
    for (std::size_t i = 0; i < keep_.size(); ++i) {
      const Instruction& in = kernel.instructions[i];
      const EventKind event = events_[static_cast<std::uint32_t>(i)].kind;
      if (has(removed, CauseKind::Barrier)) silent_[i] = event == EventKind::Arrive || is_fence(in);
      if (!has(removed, CauseKind::Divergence) || i >= totals.size() || totals[i].executed == 0) continue;
      const bool needed = in.opcode == Opcode::EXIT || (event != EventKind::Issue && event != EventKind::Access);
      keep_[i] = needed ? kAlways : 1 - lost_lanes(totals[i]) / (static_cast<double>(totals[i].executed) * kWarpLanes);
    }
  }

  /// Straight stretches are left out as a whole, by error diffusion along each warp's way: the credit of those that
  /// are left out adds up to one that executes.
  void thin(BlockClass& cls) const {
    std::vector<WarpPath> paths;
    std::vector<WarpTrace> warps;
    for (std::size_t w = 0; w < cls.warps.size(); ++w) {
      const WarpTrace& warp = cls.warps[w];
      WarpPath path;
      WarpTrace out;
      double credit = static_cast<double>(w % 8) / 8;  // warps of a block differ in what they leave out
      const Access* record = warp.accesses.data();
      for (const Run& run : cls.paths[warp.path].runs) {
        double part = 0;
        for (std::uint32_t pc = run.first; pc < run.first + run.count; ++pc) part += keep_[pc];
        part = std::min(1.0, part / run.count);
        credit += part;
        const bool kept = credit >= 1;
        if (kept) {
          credit -= 1;
          path.runs.push_back(run);
          path.instructions += run.count;
        }
        for (std::uint32_t pc = run.first; pc < run.first + run.count; ++pc) {
          const unsigned records = events_[pc].records;
          if (kept && !silent_[pc]) out.accesses.insert(out.accesses.end(), record, record + records);
          record += records;
        }
      }
      const auto same = std::find(paths.begin(), paths.end(), path);
      out.path = static_cast<std::uint32_t>(same - paths.begin());
      if (same == paths.end()) paths.push_back(std::move(path));
      warps.push_back(std::move(out));
    }
    cls.paths = std::move(paths);
    cls.warps = std::move(warps);
  }

 private:
  static constexpr double kAlways = 1e12;  ///< as a part of any stretch

  EventTable events_;
  std::vector<double> keep_;  ///< by instruction: the part of its executions that remains
  std::vector<bool> silent_;  ///< by instruction: it does nothing
};

/// Takes instructions out of the code, of the ways of the warps and of what is counted by instruction.
class LeavingOut {
 public:
  LeavingOut(KernelTrace& trace, const std::vector<bool>& leaves)
      : leaves_(leaves), events_(*trace.kernel), before_(leaves.size() + 1, 0) {
    for (std::size_t i = 0; i < leaves.size(); ++i) before_[i + 1] = before_[i] + (leaves[i] ? 0 : 1);
    auto kernel = std::make_shared<Kernel>(*trace.kernel);
    keep(kernel->instructions), keep(kernel->text), keep(kernel->source);
    trace.kernel = std::move(kernel);
    keep(trace.launch.counted);
    const BlockClass* last = nullptr;
    SharedCounts last_counts;  // as they were: many classes share theirs
    for (BlockClass& cls : trace.classes) {
      const SharedCounts as_was = cls.counts;
      if (last != nullptr && as_was.shares(last_counts))
        cls.counts = last->counts;
      else
        keep(cls.counts.edit());
      last = &cls;
      last_counts = as_was;
      shorten(cls);
    }
  }

 private:
  template <typename T>
  void keep(std::vector<T>& of_instructions) const {
    std::size_t to = 0;
    for (std::size_t i = 0; i < of_instructions.size(); ++i)
      if (i >= leaves_.size() || !leaves_[i]) std::swap(of_instructions[to++], of_instructions[i]);
    of_instructions.resize(to);
  }

  void shorten(BlockClass& cls) const {
    for (WarpTrace& warp : cls.warps) {
      std::vector<Access> left;
      const Access* record = warp.accesses.data();
      for (const Run& run : cls.paths[warp.path].runs)
        for (std::uint32_t pc = run.first; pc < run.first + run.count; ++pc) {
          const unsigned records = events_[pc].records;
          if (!leaves_[pc]) left.insert(left.end(), record, record + records);
          record += records;
        }
      warp.accesses = std::move(left);
    }
    for (WarpPath& path : cls.paths) {
      path.instructions = 0;
      for (Run& run : path.runs) {
        const std::uint32_t end = before_[run.first + run.count];
        run = {before_[run.first], end - before_[run.first]};
        path.instructions += run.count;
      }
      std::erase_if(path.runs, [](const Run& run) { return run.count == 0; });
    }
  }

  const std::vector<bool>& leaves_;    ///< by instruction
  EventTable events_;                  ///< of the code as it was
  std::vector<std::uint32_t> before_;  ///< by instruction, and one more: those before it that stay
};

bool changes_trace(const Removed& removed) {
  for (const CauseKind kind :
       {CauseKind::Uncoalesced, CauseKind::BankConflicts, CauseKind::Atomics, CauseKind::LocalMemory,
        CauseKind::Divergence, CauseKind::Barrier, CauseKind::Latency, CauseKind::Shared})
    if (has(removed, kind)) return true;
  return false;
}

std::shared_ptr<const KernelTrace> change_trace(const KernelTrace& from, const Removed& removed) {
  auto trace = std::make_shared<KernelTrace>(from);
  if (has(removed, CauseKind::Barrier)) trace->kernel = without_barriers(*trace->kernel);
  if (has(removed, CauseKind::Latency)) trace->kernel = without_waits(*trace->kernel);
  if (has(removed, CauseKind::Divergence) || has(removed, CauseKind::Barrier)) {
    const Thinning thinning(*from.kernel, from.totals(), removed);
    for (BlockClass& cls : trace->classes) thinning.thin(cls);
  }
  if (has(removed, CauseKind::Uncoalesced)) {
    Gathering gathering(*trace, CoalescedPatterns(from.patterns));
    for (BlockClass& cls : trace->classes)
      for (WarpTrace& warp : cls.warps)
        for (Access& access : warp.accesses) gathering.move(access);
  }
  for (AccessPattern& p : trace->patterns) {
    if (p.space == MemorySpace::Shared && p.lanes != 0 && p.bytes != 0 && p.kind != MemoryKind::None) {
      if (has(removed, CauseKind::Shared))
        p.lanes = 0;
      else if (has(removed, CauseKind::BankConflicts))
        p = side_by_side(p);
    }
    if (p.space == MemorySpace::Global && is_atomic(p) && has(removed, CauseKind::Atomics)) p.lanes = 0;
    if (p.space == MemorySpace::Local && has(removed, CauseKind::LocalMemory)) p.lanes = 0;
  }
  if (has(removed, CauseKind::LocalMemory)) {
    std::vector<bool> leaves;
    for (const Instruction& in : trace->kernel->instructions)
      leaves.push_back(in.space == MemorySpace::Local && in.memory != MemoryKind::None);
    if (std::find(leaves.begin(), leaves.end(), true) != leaves.end()) LeavingOut(*trace, leaves);
  }
  return trace;
}

}  // namespace

bool uses_shared(const KernelTrace& trace) {
  return trace.kernel->static_shared_bytes + trace.launch.dynamic_shared_bytes > 0;
}

bool removable(CauseKind kind) {
  return kind != CauseKind::Tail && kind != CauseKind::Issue && kind != CauseKind::Count;
}

bool can_be_followed(const KernelTrace& trace) {
  std::uint64_t sum = 0;
  for (const BlockClass& cls : trace.classes)
    for (const WarpTrace& warp : cls.warps) sum += cls.paths[warp.path].instructions;
  return sum <= kMostFollowed;
}

Scene without(const Scene& scene, const Removed& removed) {
  Scene out = scene;
  change_model(out.model, removed);
  change_occupancy(out.occupancy, *scene.trace, removed);
  if (changes_trace(removed)) out.trace = change_trace(*scene.trace, removed);
  return out;
}

}  // namespace forewarp::accounting

#include "report/accounting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/error.h"
#include "program/traits.h"
#include "report/format.h"
#include "trace/events.h"

namespace forewarp {

namespace {

struct CauseText {
  const char *name, *title, *meaning;
};
constexpr CauseText kTexts[] = {
#define X(id, name, title, meaning) {name, title, meaning},
    FW_CAUSES(X)
#undef X
};

}  // namespace

const char* cause_name(CauseKind kind) { return kTexts[static_cast<std::size_t>(kind)].name; }
const char* cause_title(CauseKind kind) { return kTexts[static_cast<std::size_t>(kind)].title; }
const char* cause_meaning(CauseKind kind) { return kTexts[static_cast<std::size_t>(kind)].meaning; }

namespace report {

namespace {

CauseKind cause_of(Pipe pipe) {
  switch (pipe) {
    case Pipe::Alu:
      return CauseKind::PipeAlu;
    case Pipe::Fma:
    case Pipe::FmaHeavy:
      return CauseKind::PipeFma;
    case Pipe::Fp16:
      return CauseKind::PipeFp16;
    case Pipe::Fp64:
      return CauseKind::PipeFp64;
    case Pipe::Xu:
      return CauseKind::PipeXu;
    case Pipe::Tensor:
      return CauseKind::PipeTensor;
    case Pipe::Lsu:
    case Pipe::Tma:
    case Pipe::Tex:
      return CauseKind::L1;
    case Pipe::Adu:
    case Pipe::Cbu:
    case Pipe::Uniform:
    case Pipe::None:
    case Pipe::Count:
      break;
  }
  return CauseKind::PipeOther;
}

bool is_pipe(CauseKind kind) { return kind >= CauseKind::PipeAlu && kind <= CauseKind::PipeOther; }

bool is_global(const MemoryRow& row) { return row.space == MemorySpace::Global || row.space == MemorySpace::Generic; }
bool is_atomic(const MemoryRow& row) { return row.kind == MemoryKind::Atomic || row.kind == MemoryKind::Reduction; }

/// What a throughput of throughput.cpp is the load of.
CauseKind cause_of_term(const ThroughputTerm& term, const TimingCounters& c) {
  const std::string& m = term.metric;
  if (m.starts_with("dram")) return CauseKind::Dram;
  if (m.starts_with("lts") || m.starts_with("forewarp__xbar") || m.starts_with("l1tex__m_")) return CauseKind::L2;
  if (m == "l1tex__data_pipe_lsu_wavefronts" && c.shared_wavefronts > c.l1_data_wavefronts) return CauseKind::Shared;
  return CauseKind::L1;
}

std::uint64_t of(const StallCycles& stalls, Stall reason) { return stalls[static_cast<std::size_t>(reason)]; }

bool is_latency(Stall reason) {
  switch (reason) {
    case Stall::LongScoreboard:
    case Stall::ShortScoreboard:
    case Stall::Wait:
    case Stall::BranchResolving:
    case Stall::Gmma:
    case Stall::Products:
    case Stall::Drain:
    case Stall::Misc:
    case Stall::Sleeping:
      return true;
    default:
      return false;
  }
}

/// The lines of the kernel's own file. Instructions inlined from another, such as the toolkit's headers, stand for the
/// statement whose instructions are nearest before them.
std::vector<std::string> own_lines(const Kernel& kernel) {
  const auto file = [](const std::string& line) { return line.substr(0, line.rfind(':')); };
  std::vector<std::string> lines = kernel.source;
  const auto first = std::find_if(lines.begin(), lines.end(), [](const std::string& l) { return !l.empty(); });
  if (first == lines.end()) return lines;
  const std::string own = file(*first);
  std::string last = *first;
  for (std::string& line : lines) {
    if (file(line) == own)
      last = line;
    else
      line = last;
  }
  return lines;
}

/// By source line where there are lines, by instruction otherwise: the largest blame, and in it the instruction that
/// has most of it.
std::optional<CausePlace> most_blamed(const Inputs& in, const std::vector<double>& blame) {
  const std::vector<std::string> lines = own_lines(in.kernel);
  const auto line_of = [&](std::size_t i) { return i < lines.size() ? lines[i] : std::string(); };
  std::map<std::string, double> by_line;
  for (std::size_t i = 0; i < blame.size(); ++i)
    if (blame[i] > 0) by_line[line_of(i)] += blame[i];
  if (by_line.empty()) return std::nullopt;
  const auto best = std::max_element(by_line.begin(), by_line.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::size_t at = blame.size();
  for (std::size_t i = 0; i < blame.size(); ++i)
    if (blame[i] > 0 && line_of(i) == best->first && (at == blame.size() || blame[i] > blame[at])) at = i;
  return CausePlace{static_cast<std::uint32_t>(at), instruction_text(in.kernel, at), line_of(at)};
}

/// Instructions whose results `waiter` waits for: of each scoreboard the last one before it that sets it, or the last
/// of all in a loop that comes round.
std::vector<std::size_t> waited_for(const Kernel& kernel, std::size_t waiter, Stall reason) {
  std::vector<std::size_t> found;
  const auto& code = kernel.instructions;
  for (unsigned mask = code[waiter].control.wait_mask; mask != 0; mask &= mask - 1) {
    const int s = std::countr_zero(mask);
    const auto sets = [&](std::size_t i) {
      return code[i].control.write_barrier == s || code[i].control.read_barrier == s;
    };
    std::size_t at = waiter;
    while (at > 0 && !sets(at - 1)) --at;
    if (at == 0) {
      at = code.size();
      while (at > waiter && !sets(at - 1)) --at;
      if (at == waiter) continue;
    }
    found.push_back(at - 1);
  }
  // A wait for several is named after the slowest: global memory or a phase's end, or anything else.
  const auto is_far = [&](std::size_t i) {
    return (code[i].memory != MemoryKind::None && code[i].space != MemorySpace::Shared) || waits_for_phase(code[i]);
  };
  const auto wrong = [&](std::size_t i) { return is_far(i) != (reason == Stall::LongScoreboard); };
  if (std::any_of(found.begin(), found.end(), [&](std::size_t i) { return !wrong(i); })) std::erase_if(found, wrong);
  return found;
}

/// Warp-cycles of each instruction that wait for a result, and on which instructions' account.
struct Waits {
  std::vector<double> waiting, blame;
};

Waits find_waits(const Inputs& in) {
  const std::size_t size = in.kernel.instructions.size();
  Waits waits{std::vector<double>(size, 0.0), std::vector<double>(size, 0.0)};
  for (std::size_t i = 0; i < std::min(size, in.timing.instruction_stalls.size()); ++i) {
    for (std::size_t r = 0; r < kStallReasons; ++r) {
      const auto cycles = static_cast<double>(in.timing.instruction_stalls[i][r]);
      const auto reason = static_cast<Stall>(r);
      if (cycles == 0 || !is_latency(reason)) continue;
      waits.waiting[i] += cycles;
      std::vector<std::size_t> producers;
      if (reason == Stall::LongScoreboard || reason == Stall::ShortScoreboard)
        producers = waited_for(in.kernel, i, reason);
      if (producers.empty()) producers.push_back(i);
      for (const std::size_t producer : producers)
        waits.blame[producer] += cycles / static_cast<double>(producers.size());
    }
  }
  return waits;
}

bool synchronises(const Instruction& in) {
  return in.opcode == Opcode::MEMBAR || in.opcode == Opcode::ERRBAR || event_of(in).kind == EventKind::Arrive;
}

/// A warp at a barrier waits before it issues what follows: the barrier is the last one before that, or the last of all
/// in a loop that comes round.
std::vector<double> at_barriers(const Kernel& kernel, const std::vector<double>& waiting) {
  std::vector<double> blame(waiting.size(), 0.0);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i] == 0) continue;
    std::size_t at = i + 1;
    while (at > 0 && !synchronises(kernel.instructions[at - 1])) --at;
    if (at == 0) {
      at = waiting.size();
      while (at > i + 1 && !synchronises(kernel.instructions[at - 1])) --at;
    }
    blame[at - 1] += waiting[i];
  }
  return blame;
}

/// How much each instruction has to do with a cause.
std::vector<double> blame_of(const Inputs& in, const Prediction& p, CauseKind kind) {
  std::vector<double> blame(in.kernel.instructions.size(), 0.0);
  const auto rows = [&](const auto& amount) {
    for (const MemoryRow& row : p.memory) blame[row.instruction] = static_cast<double>(amount(row));
  };
  const auto stalls = [&](std::initializer_list<Stall> reasons) {
    for (std::size_t i = 0; i < std::min(blame.size(), in.timing.instruction_stalls.size()); ++i)
      for (const Stall reason : reasons) blame[i] += static_cast<double>(of(in.timing.instruction_stalls[i], reason));
  };
  using Amount = std::uint64_t;
  switch (kind) {
    case CauseKind::Uncoalesced:
      rows([](const MemoryRow& r) -> Amount { return is_global(r) && !is_atomic(r) ? r.wasted_sectors() : 0; });
      break;
    case CauseKind::BankConflicts:
      rows([](const MemoryRow& r) -> Amount { return r.conflicts; });
      break;
    case CauseKind::Atomics:
      rows([](const MemoryRow& r) -> Amount { return is_global(r) && is_atomic(r) ? r.requests : 0; });
      break;
    case CauseKind::LocalMemory:
      rows([](const MemoryRow& r) -> Amount { return r.space == MemorySpace::Local ? r.sectors : 0; });
      break;
    case CauseKind::L2Capacity:
    case CauseKind::L2:
    case CauseKind::Dram:
    case CauseKind::L1:
      rows([](const MemoryRow& r) -> Amount { return r.space != MemorySpace::Shared ? r.sectors : 0; });
      break;
    case CauseKind::Shared:
      rows([](const MemoryRow& r) -> Amount { return r.wavefronts; });
      break;
    case CauseKind::Divergence: {
      for (const BranchRow& b : p.divergence.branches) blame[b.instruction] = static_cast<double>(b.divergent);
      for (std::size_t i = 0; i < in.totals.size(); ++i)  // some lanes go on without the others
        if (const InstructionCount& t = in.totals[i];
            in.kernel.instructions[i].opcode == Opcode::EXIT && t.executed_on > 0 &&
            static_cast<double>(t.enabled_lanes) / static_cast<double>(t.executed_on) <
                static_cast<double>(t.active_lanes) / static_cast<double>(t.executed))
          blame[i] = static_cast<double>(t.executed_on);
      if (std::any_of(blame.begin(), blame.end(), [](double b) { return b > 0; })) break;
      for (std::size_t i = 0; i < in.totals.size(); ++i) blame[i] = lost_lanes(in.totals[i]);
      break;
    }
    case CauseKind::Fetch:
      stalls({Stall::NoInstruction, Stall::ImcMiss});
      break;
    case CauseKind::Barrier:
      stalls({Stall::Barrier, Stall::Membar});
      blame = at_barriers(in.kernel, blame);
      break;
    case CauseKind::Latency:
      blame = find_waits(in).blame;
      break;
    case CauseKind::Issue:
      for (std::size_t i = 0; i < in.totals.size(); ++i) blame[i] = static_cast<double>(in.totals[i].executed);
      break;
    default:
      if (!is_pipe(kind)) break;
      for (std::size_t i = 0; i < in.totals.size(); ++i)
        if (cause_of(in.kernel.instructions[i].pipe) == kind) blame[i] = static_cast<double>(in.totals[i].executed);
  }
  return blame;
}

std::string evidence_of(const Inputs& in, const Prediction& p, CauseKind kind) {
  const TimingCounters& c = in.timing.counters;
  const auto metric = [&](const char* name) { return p.metrics.get(name); };
  const Traffic traffic(p);
  const auto load = [&](const std::vector<ThroughputTerm>& terms, CauseKind wanted) {
    for (const ThroughputTerm& t : terms)
      if (cause_of_term(t, c) == wanted) return t.label + " busy " + percent_text(t.pct);
    return std::string();
  };
  const auto waiting = [&](std::initializer_list<Stall> reasons) {
    return percent_text(100 * stalled_part(p, reasons)) + " of warp time";
  };
  const auto blocks = [&](int limit) {
    return count(static_cast<std::uint64_t>(limit)) + " blocks of " +
           count(static_cast<std::uint64_t>(p.occupancy.warps_per_block)) + " warps fit an SM, and " +
           count(static_cast<std::uint64_t>(p.occupancy.limit_warps)) + " would by warps";
  };
  switch (kind) {
    case CauseKind::Launch:
      return count(static_cast<std::uint64_t>(in.model.launch.start_cycles)) + " cycles before the first block, " +
             count(static_cast<std::uint64_t>(in.model.launch.end_cycles)) + " after the last";
    case CauseKind::Tail:
      return count(p.waves.blocks) + " blocks make " + fixed(p.occupancy.waves, 2) + " waves of " +
             count(p.waves.blocks_per_wave) + "; " + percent_text(p.waves.idle_sm_pct) + " of SM time has no block";
    case CauseKind::Uncoalesced:
      return count(p.wasted_sectors()) + " of " + count(p.sectors()) + " sectors beyond need (" +
             percent_text(percent(static_cast<double>(p.wasted_sectors()), static_cast<double>(p.sectors()))) + ")";
    case CauseKind::BankConflicts:
      return count(traffic.conflicts) + " of " + count(traffic.wavefronts) + " wavefronts are conflicts (" +
             percent_text(percent(static_cast<double>(traffic.conflicts), static_cast<double>(traffic.wavefronts))) +
             ")";
    case CauseKind::Atomics:
      return count(traffic.atomic_requests) + " requests of atomics and reductions";
    case CauseKind::LocalMemory:
      return count(traffic.local) + " sectors of local memory, " +
             count(static_cast<std::uint64_t>(in.kernel.local_bytes)) + " bytes a thread";
    case CauseKind::Divergence:
      return fixed(p.divergence.enabled_lanes, 1) + " of 32 lanes work; " +
             percent_text(
                 percent(static_cast<double>(p.divergence.divergent), static_cast<double>(p.divergence.executed))) +
             " of branches part the lanes";
    case CauseKind::Fetch:
      return waiting({Stall::NoInstruction, Stall::ImcMiss}) + " without the next instruction; code of " +
             bytes_text(static_cast<double>(in.kernel.instructions.size()) * 16);
    case CauseKind::Barrier:
      return waiting({Stall::Barrier, Stall::Membar}) + " at barriers and fences";
    case CauseKind::L2Capacity:
      return "L2 hit rate " + percent_text(metric("lts__t_sector_hit_rate.pct")) + "; HBM read " +
             bytes_text(metric("dram__bytes_read.sum"));
    case CauseKind::Registers:
      return count(static_cast<std::uint64_t>(p.occupancy.registers_per_thread)) +
             " registers a thread: " + blocks(p.occupancy.limit_registers);
    case CauseKind::SharedSize:
      return bytes_text(p.occupancy.shared_bytes_per_block) +
             " of shared memory a block: " + blocks(p.occupancy.limit_shared);
    case CauseKind::BlockSlots:
      return "at most " + blocks(p.occupancy.limit_blocks);
    case CauseKind::Latency:
      return waiting({Stall::LongScoreboard}) + " waits for global memory, " + waiting({Stall::ShortScoreboard}) +
             " for shared memory and special functions, " + waiting({Stall::Wait, Stall::BranchResolving}) +
             " for fixed latencies; " + fixed(metric("smsp__warps_active.avg.per_cycle_active"), 1) +
             " warps a scheduler";
    case CauseKind::L1:
    case CauseKind::Shared:
    case CauseKind::L2:
    case CauseKind::Dram:
      return load(p.memory_terms, kind);
    case CauseKind::Issue:
      return "issue slots busy " + percent_text(100 * metric("smsp__issue_active.avg.per_cycle_active")) +
             " of active cycles";
    default:
      for (const ThroughputTerm& t : p.compute)
        for (std::size_t pipe = 0; pipe < static_cast<std::size_t>(Pipe::Count); ++pipe)
          if (t.label == throughput_label(static_cast<Pipe>(pipe)) && cause_of(static_cast<Pipe>(pipe)) == kind)
            return t.label + " busy " + percent_text(t.pct);
      return "";
  }
}

constexpr double kRounding = 1e-6;  ///< of the elapsed cycles: what sums of doubles may be off by

struct Rule {
  const char* advice;
  const char* section;
};

/// What to do about each cause, and the section of the report that has its numbers.
Rule rule_of(CauseKind kind) {
  switch (kind) {
    case CauseKind::Launch:
      return {"Give one launch more work, fuse kernels, or replay them from a CUDA graph.", "GPU speed of light"};
    case CauseKind::Tail:
      return {"Choose block and grid so that waves are full, or let a grid of one wave loop over the work.", "Waves"};
    case CauseKind::Uncoalesced:
      return {
          "Let neighbouring lanes access neighbouring addresses from a 128-byte boundary on: another layout, or a "
          "tile in shared memory.",
          "Coalescing"};
    case CauseKind::BankConflicts:
      return {"Pad the rows of the shared array by a word, or swizzle its columns.", "Shared memory"};
    case CauseKind::Atomics:
      return {"Reduce in the warp and the block first, and issue one atomic for each block.", "Memory workload"};
    case CauseKind::LocalMemory:
      return {"Index arrays by constants (unroll), raise the limit of registers, or keep less alive.", "Coalescing"};
    case CauseKind::Divergence:
      return {
          "Let the lanes of a warp take the same way: sort or regroup the work, or make branches depend on the warp.",
          "Divergence"};
    case CauseKind::Fetch:
      return {"Unroll less, so that the loop fits the instruction cache.", "Scheduler and warp states"};
    case CauseKind::Barrier:
      return {"Synchronise less often, between warps rather than blocks, or use smaller blocks.",
              "Scheduler and warp states"};
    case CauseKind::L2Capacity:
      return {"Work on tiles that fit L2 before going on to the next.", "Memory workload"};
    case CauseKind::Registers:
      return {"Use fewer registers (__launch_bounds__, smaller tiles).", "Occupancy"};
    case CauseKind::SharedSize:
      return {"Use less shared memory in a block.", "Occupancy"};
    case CauseKind::BlockSlots:
      return {"Use larger blocks.", "Occupancy"};
    case CauseKind::Latency:
      return {"Have more in flight: more warps, several independent operations or loads a thread.",
              "Scheduler and warp states"};
    case CauseKind::PipeFp64:
      return {"Compute in fp32 where its precision is enough; look for constants without an f.", "Compute workload"};
    case CauseKind::PipeXu:
      return {"Replace special functions and conversions, or evaluate some of them by polynomials.",
              "Compute workload"};
    case CauseKind::L1:
      return {"Access more bytes with each instruction, and keep what is used again in registers.", "Memory workload"};
    case CauseKind::Shared:
      return {"Keep what is used again in registers, and access 8 or 16 bytes a lane.", "Shared memory"};
    case CauseKind::L2:
      return {"Reuse data in shared memory or registers, so that less is asked of L2.", "Memory workload"};
    case CauseKind::Dram:
      return {"Move fewer bytes: smaller types, fused kernels, reuse in caches.", "Memory workload"};
    case CauseKind::Issue:
      return {"Execute fewer instructions: wider accesses, less index arithmetic, tensor cores.", "Compute workload"};
    default:
      return {"Use another pipe for a part of the work, or execute fewer of these instructions.", "Compute workload"};
  }
}

/// Elapsed cycles from which on SMs run out of blocks, beyond what the same rate as before would have taken.
double beyond_full_rate(const Inputs& in) {
  Cycle first = kNever, last = 0, end = 0;
  for (const BlockSpan& span : in.timing.spans) {
    first = std::min(first, span.start);
    last = std::max(last, span.start);
    end = std::max(end, span.end);
  }
  double done = 0;
  for (const BlockSpan& span : in.timing.spans)
    done += span.end <= last
                ? 1.0
                : ratio(static_cast<double>(last - span.start), static_cast<double>(span.end - span.start));
  const auto all = static_cast<double>(in.timing.spans.size());
  if (last <= first || done <= 0) return 0;
  const double rate = done / static_cast<double>(last - first);
  return static_cast<double>(end - last) - (all - done) / rate;
}

}  // namespace

Traffic::Traffic(const Prediction& p) {
  for (const MemoryRow& row : p.memory) {
    sectors += row.sectors;
    wavefronts += row.wavefronts;
    conflicts += row.conflicts;
    if (row.space == MemorySpace::Local) local += row.sectors;
    if (!is_global(row)) continue;
    if (is_atomic(row)) {
      atomic_requests += row.requests;
      atomic_sectors += row.sectors;
    } else {
      wasted += row.wasted_sectors();
    }
  }
}

double stalled_part(const Prediction& p, std::initializer_list<Stall> reasons) {
  double share = 0;
  for (const StallShare& s : p.stalls)
    if (std::find(reasons.begin(), reasons.end(), s.reason) != reasons.end()) share += s.share_pct / 100;
  return share;
}

double idle_cycles(const GpuModel& model, const std::vector<BlockSpan>& spans) {
  Cycle first = kNever, end = 0;
  std::vector<std::vector<std::pair<Cycle, Cycle>>> stays(static_cast<std::size_t>(model.chip.sm_count));
  for (const BlockSpan& span : spans) {
    if (span.sm < stays.size()) stays[span.sm].emplace_back(span.start, span.end);
    first = std::min(first, span.start);
    end = std::max(end, span.end);
  }
  if (end <= first) return 0;
  double busy = 0;
  for (auto& sm : stays) {
    std::sort(sm.begin(), sm.end());
    Cycle reached = 0;
    for (const auto& [from, to] : sm) {
      if (to > reached) busy += static_cast<double>(to - std::max(from, reached));
      reached = std::max(reached, to);
    }
  }
  return std::max(0.0, static_cast<double>(end - first) - busy / static_cast<double>(stays.size()));
}

double tail_cycles(const Inputs& in) {
  const auto blocks = in.trace.launch.grid.count();
  const std::uint64_t wave = blocks_at_once(in.model, in.occupancy.blocks_per_sm, in.trace.launch.cluster.count());
  const Waves waves = make_waves(in);
  const double outside = in.model.launch.start_cycles + in.model.launch.end_cycles;
  const double body = std::max(0.0, in.cycles - outside);
  if (!waves.from_spans) return waves.idle_sm_pct / 100 * body;
  // What is before and behind is the launch's, or memory's that has yet to finish.
  const double idle = idle_cycles(in.model, in.timing.spans);
  return std::min(body, blocks > wave ? std::max(idle, beyond_full_rate(in)) : idle);
}

std::array<double, kCauses> demands(const Inputs& in, const Prediction& p) {
  std::array<double, kCauses> all{};
  const auto add = [&](CauseKind kind, double pct) {
    double& demand = all[static_cast<std::size_t>(kind)];
    demand = std::max(demand, pct / 100 * in.cycles);
  };
  for (const ThroughputTerm& t : p.memory_terms) add(cause_of_term(t, in.timing.counters), t.pct);
  for (const ThroughputTerm& t : p.compute) {
    CauseKind kind = CauseKind::Issue;
    if (t.metric == "sm__inst_executed_pipe_lsu") kind = CauseKind::L1;
    for (std::size_t pipe = 0; pipe < static_cast<std::size_t>(Pipe::Count); ++pipe)
      if (t.label == throughput_label(static_cast<Pipe>(pipe))) kind = cause_of(static_cast<Pipe>(pipe));
    add(kind, t.pct);
  }
  return all;
}

CauseSizes outside_sizes(const Inputs& in) {
  CauseSizes sizes;
  const LaunchSpec& launch = in.model.launch;
  sizes[CauseKind::Launch] =
      std::min<double>(launch.start_cycles + launch.block_start_cycles + launch.end_cycles, in.cycles);
  sizes[CauseKind::Tail] = std::min(tail_cycles(in), in.cycles - sizes[CauseKind::Launch]);
  for (const CauseKind kind : {CauseKind::Launch, CauseKind::Tail}) sizes.gain(kind) = sizes[kind];
  return sizes;
}

CauseSizes counted_sizes(const Inputs& in, const Prediction& p) {
  CauseSizes sizes = outside_sizes(in);
  double left = in.cycles - sizes[CauseKind::Launch] - sizes[CauseKind::Tail];
  const std::array<double, kCauses> demand = demands(in, p);
  const auto most = std::max_element(demand.begin(), demand.end());
  const double taken = std::min(*most, left);
  sizes.cycles[static_cast<std::size_t>(most - demand.begin())] += taken;
  left -= taken;

  // The larger of the pipes, for warps that wait for a pipe.
  CauseKind pipe = CauseKind::PipeAlu;
  for (std::size_t k = 0; k < kCauses; ++k)
    if (is_pipe(static_cast<CauseKind>(k)) && demand[k] > demand[static_cast<std::size_t>(pipe)])
      pipe = static_cast<CauseKind>(k);
  const bool shared = in.timing.counters.shared_wavefronts > 0;
  double all = 0;
  std::array<double, kCauses> waiting{};
  for (std::size_t r = 0; r < kStallReasons; ++r) {
    const auto reason = static_cast<Stall>(r);
    CauseKind kind = CauseKind::Issue;
    if (reason == Stall::Selected || reason == Stall::NotSelected) continue;  // these do not wait
    if (is_latency(reason)) kind = CauseKind::Latency;
    if (reason == Stall::Barrier || reason == Stall::Membar) kind = CauseKind::Barrier;
    if (reason == Stall::NoInstruction || reason == Stall::ImcMiss) kind = CauseKind::Fetch;
    if (reason == Stall::LgThrottle || reason == Stall::TexThrottle) kind = CauseKind::L1;
    if (reason == Stall::MioThrottle) kind = shared ? CauseKind::Shared : CauseKind::PipeXu;
    if (reason == Stall::MathPipeThrottle) kind = pipe;
    const auto cycles = static_cast<double>(in.timing.counters.stalls[r]);
    waiting[static_cast<std::size_t>(kind)] += cycles;
    all += cycles;
  }
  if (all == 0) sizes[CauseKind::Issue] += left;
  for (std::size_t k = 0; k < kCauses && all > 0; ++k) sizes.cycles[k] += left * waiting[k] / all;
  return sizes;
}

std::vector<CauseKind> named_order(const CauseSizes& sizes, double elapsed) {
  std::vector<CauseKind> order;
  for (std::size_t k = 0; k < kCauses; ++k)
    if (sizes.cycles[k] > 0) order.push_back(static_cast<CauseKind>(k));
  const auto size = [&](CauseKind kind) { return sizes[kind]; };
  std::stable_sort(order.begin(), order.end(), [&](CauseKind a, CauseKind b) { return size(a) > size(b); });
  if (order.size() > 1 && order.front() == CauseKind::Issue && size(CauseKind::Issue) <= elapsed / 2)
    std::swap(order[0], order[1]);
  return order;
}

void fill_accounting(const Inputs& in, const Prediction& p, const CauseSizes& sizes, Accounting& out) {
  double all = 0;
  for (const double cycles : sizes.cycles) {
    FW_CHECK(cycles >= -kRounding * in.cycles, "a cause takes less than no time");
    all += cycles;
  }
  FW_CHECK(std::abs(all - in.cycles) <= kRounding * in.cycles, "causes do not add up to the elapsed cycles");
  describe_causes(in, p, sizes, out);
}

void describe_causes(const Inputs& in, const Prediction& p, const CauseSizes& sizes, Accounting& out) {
  out.causes.clear();
  out.findings.clear();
  for (const CauseKind kind : named_order(sizes, in.cycles)) {
    Cause cause;
    cause.kind = kind;
    cause.cycles = sizes[kind];
    cause.share_pct = percent(cause.cycles, in.cycles);
    cause.gain_cycles = sizes.gain(kind);
    out.causes.push_back(std::move(cause));
  }
  for (Cause& cause : out.causes) {
    if (cause.cycles < kNoticeable * in.cycles) continue;
    cause.evidence = evidence_of(in, p, cause.kind);
    cause.place = most_blamed(in, blame_of(in, p, cause.kind));
    if (cause.kind == CauseKind::Latency) {
      cause.waits = most_blamed(in, find_waits(in).waiting);
      if (cause.waits && cause.place && cause.waits->instruction == cause.place->instruction) cause.waits.reset();
    }
    const double saved = percent(cause.gain_cycles.value_or(cause.cycles), in.cycles);
    if (saved < 100 * kNoticeable) continue;
    const Rule rule = rule_of(cause.kind);
    out.findings.push_back({cause.kind, std::string(cause_title(cause.kind)) + ": " + cause_meaning(cause.kind),
                            cause.evidence, rule.advice, saved, rule.section});
  }
}

Bottleneck verdict(const Inputs& in, const Accounting& accounting) {
  if (accounting.causes.empty()) return {CauseKind::Issue, "It takes no time."};
  const Cause& first = accounting.causes.front();
  const auto time = [&](double cycles) { return duration(cycles / in.cycles * in.seconds * 1e9); };
  std::string text = std::string("Bound by ") + cause_title(first.kind) + ": " + percent_text(first.share_pct) +
                     " of its time (" + time(first.cycles) + ")";
  if (first.gain_cycles) text += "; removing it saves " + time(std::max(0.0, *first.gain_cycles));
  if (!first.evidence.empty()) text += "; " + first.evidence;
  if (first.place) {
    text += "; at " + (first.place->source.empty() ? "" : first.place->source + ", ") +
            address(first.place->instruction) + " " + first.place->text;
    if (first.waits) text += ", for which " + address(first.waits->instruction) + " " + first.waits->text + " waits";
  }
  return {first.kind, text + "."};
}

}  // namespace report

}  // namespace forewarp

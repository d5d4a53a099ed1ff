#include "advise/mendings.h"

#include <algorithm>
#include <iterator>

#include "report/accounting.h"

namespace forewarp::advise {

namespace {

using report::kNoticeable;  // part of a counter below which nothing can be gained from it

constexpr std::size_t kMostLimits = 3;  ///< units tried: the busiest
constexpr double kBusyPct = 25;         ///< a unit less busy than this is no limit

/// Whether more blocks wait than are resident, and one limit alone keeps them out.
bool limited_by(int limit, const Prediction& p, const accounting::Scene& scene) {
  const Occupancy& o = scene.occupancy;
  const auto resident =
      static_cast<std::uint64_t>(o.blocks_per_sm) * static_cast<std::uint64_t>(scene.model.chip.sm_count);
  return p.grid.count() > resident && limit == o.blocks_per_sm && o.limit_warps > limit;
}

struct Term {
  const char* metric;
  CauseKind kind;
};
/// Units by the throughput that shows how busy they are.
constexpr Term kTerms[] = {
    {"sm__issue_active", CauseKind::Issue},
    {"sm__pipe_alu_cycles_active", CauseKind::PipeAlu},
    {"sm__pipe_fma_cycles_active", CauseKind::PipeFma},
    {"sm__pipe_fmaheavy_cycles_active", CauseKind::PipeFma},
    {"sm__inst_executed_pipe_fp16", CauseKind::PipeFp16},
    {"sm__pipe_fp64_cycles_active", CauseKind::PipeFp64},
    {"sm__pipe_tensor_cycles_active", CauseKind::PipeTensor},
    {"sm__inst_executed_pipe_xu", CauseKind::PipeXu},
    {"sm__inst_executed_pipe_lsu", CauseKind::L1},
    {"l1tex__data_pipe_lsu_wavefronts", CauseKind::L1},
    {"l1tex__f_wavefronts", CauseKind::L1},
    {"l1tex__lsuin_requests", CauseKind::L1},
    {"l1tex__lsu_writeback_active", CauseKind::L1},
    {"l1tex__m_xbar2l1tex_read_sectors", CauseKind::L2},
    {"l1tex__m_l1tex2xbar_req_cycles_active", CauseKind::L2},
    {"lts__t_sectors", CauseKind::L2},
    {"lts__t_tag_requests", CauseKind::L2},
    {"lts__lts2xbar_cycles_active", CauseKind::L2},
    {"forewarp__xbar2gpc", CauseKind::L2},
    {"dram__throughput", CauseKind::Dram},
};

}  // namespace

const std::vector<Mending>& mendings() {
  static const std::vector<Mending> all = {
      {CauseKind::Launch, true, "fuse this launch with its neighbours, or give it more work",
       "a longer kernel, registers of both"},
      {CauseKind::Uncoalesced, true,
       "let neighbouring lanes access neighbouring addresses from a 128-byte boundary on: pad the pitch, lay the data "
       "out the other way round, or go through a tile in shared memory",
       "the new layout's other readers, or shared memory and a barrier"},
      {CauseKind::BankConflicts, true, "pad the rows of the shared array by a word, or swizzle its columns",
       "a word of shared memory a row"},
      {CauseKind::Atomics, true, "reduce in the warp and the block first, and issue one atomic for each block",
       "shuffles or shared memory, and the atomics of the blocks"},
      {CauseKind::LocalMemory, true, "keep values in registers: constant indices, a higher limit, fewer alive",
       "registers: fewer blocks may fit an SM"},
      {CauseKind::Divergence, true, "let the lanes of a warp go the same way: regroup the work by warps",
       "sorting or compacting it"},
      {CauseKind::Fetch, true, "unroll less, so that the loop fits the instruction cache",
       "branches and index arithmetic"},
      {CauseKind::Barrier, true, "synchronise less often, or fewer warps at a time", "shared memory for a second tile"},
      {CauseKind::L2Capacity, true, "work on tiles that fit L2 before going on", "index arithmetic of the block"},
      {CauseKind::Registers, true, "use fewer registers a thread (__launch_bounds__, smaller tiles)",
       "spills, where the values are needed"},
      {CauseKind::SharedSize, true, "use less shared memory a block", "smaller tiles are loaded more often"},
      {CauseKind::BlockSlots, true, "use larger blocks", "barriers of more warps"},
      {CauseKind::Latency, false,
       "have more in flight: more warps, or several independent loads and operations a thread", "registers"},
      {CauseKind::PipeAlu, false, "execute fewer integer and logic instructions: indices outside the loop", ""},
      {CauseKind::PipeFma, false, "execute fewer fp32 and integer multiply-adds, or use tensor cores", "precision"},
      {CauseKind::PipeFp16, false, "execute fewer fp16 instructions, or use tensor cores", ""},
      {CauseKind::PipeFp64, false, "compute in fp32 where its precision is enough; look for constants without an f",
       "precision"},
      {CauseKind::PipeXu, false, "replace special functions and conversions, or evaluate some of them by polynomials",
       "instructions of the FMA pipe"},
      {CauseKind::PipeTensor, false, "use a type with a higher rate, or skip products of zeros", "precision"},
      {CauseKind::PipeOther, false, "execute fewer uniform and branch instructions: unroll", "code size"},
      {CauseKind::L1, false, "access 8 or 16 bytes a lane, and keep what is used again in registers", "registers"},
      {CauseKind::Shared, false, "keep what is used again in registers, and access 8 or 16 bytes a lane", "registers"},
      {CauseKind::L2, false, "reuse data in shared memory or registers: larger tiles", "shared memory and registers"},
      {CauseKind::Dram, false, "move fewer bytes: smaller types, fused kernels, reuse in caches", "precision"},
  };
  return all;
}

bool worth_trying(const Mending& mending, const Prediction& p, const accounting::Scene& scene) {
  const report::Traffic t(p);
  const Occupancy& o = scene.occupancy;
  switch (mending.kind) {
    case CauseKind::Launch: {
      const LaunchSpec& launch = scene.model.launch;
      return launch.start_cycles + launch.end_cycles > kNoticeable * p.cycles();
    }
    case CauseKind::Uncoalesced:
      return report::part_of(t.wasted, t.sectors) >= kNoticeable;
    case CauseKind::BankConflicts:
      return report::part_of(t.conflicts, t.wavefronts) >= kNoticeable;
    case CauseKind::Atomics:
      return report::part_of(t.atomic_sectors, t.sectors) >= kNoticeable;
    case CauseKind::LocalMemory:
      return report::part_of(t.local, t.sectors) >= kNoticeable;
    case CauseKind::Divergence:
      return p.divergence.lost_lane_pct / 100 >= kNoticeable && accounting::can_be_followed(*scene.trace);
    case CauseKind::Fetch:
      return report::stalled_part(p, {Stall::NoInstruction, Stall::ImcMiss}) >= kNoticeable;
    case CauseKind::Barrier:
      return report::stalled_part(p, {Stall::Barrier, Stall::Membar}) >= kNoticeable &&
             accounting::can_be_followed(*scene.trace);
    case CauseKind::L2Capacity:
      return p.metrics.get("dram__bytes_read.sum") + p.metrics.get("dram__bytes_write.sum") >
             static_cast<double>(scene.model.l2.bytes);
    case CauseKind::Registers:
      return limited_by(o.limit_registers, p, scene);
    case CauseKind::SharedSize:
      return limited_by(o.limit_shared, p, scene);
    case CauseKind::BlockSlots:
      return limited_by(o.limit_blocks, p, scene);
    default: {
      const std::vector<CauseKind> limits = limits_of(p);
      return std::find(limits.begin(), limits.end(), mending.kind) != limits.end();
    }
  }
}

std::vector<CauseKind> limits_of(const Prediction& p) {
  struct Busy {
    CauseKind kind;
    double pct;
  };
  std::vector<Busy> busy;
  const bool shared = std::any_of(p.memory.begin(), p.memory.end(),
                                  [](const MemoryRow& row) { return row.space == MemorySpace::Shared; });
  for (const auto* terms : {&p.memory_terms, &p.compute})
    for (const ThroughputTerm& t : *terms) {
      const auto* known =
          std::find_if(std::begin(kTerms), std::end(kTerms), [&](const Term& term) { return t.metric == term.metric; });
      if (known == std::end(kTerms) || known->kind == CauseKind::Issue || t.pct < kBusyPct) continue;
      busy.push_back({known->kind, t.pct});
      if (known->kind == CauseKind::L1 && shared) busy.push_back({CauseKind::Shared, t.pct});
    }
  std::stable_sort(busy.begin(), busy.end(), [](const Busy& a, const Busy& b) { return a.pct > b.pct; });
  std::vector<CauseKind> kinds;
  for (const Busy& b : busy)
    if (kinds.size() < kMostLimits && std::find(kinds.begin(), kinds.end(), b.kind) == kinds.end())
      kinds.push_back(b.kind);
  kinds.push_back(CauseKind::Latency);
  return kinds;
}

}  // namespace forewarp::advise

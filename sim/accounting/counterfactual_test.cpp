#include "accounting/counterfactual.h"

#include <catch2/catch.hpp>
#include <set>

#include "trace/coalesce.h"

using namespace forewarp;
using namespace forewarp::accounting;

namespace {

Instruction instruction(Opcode opcode, MemorySpace space = MemorySpace::None, MemoryKind kind = MemoryKind::None) {
  Instruction i;
  i.opcode = i.native = opcode;
  i.pipe = kind == MemoryKind::None ? Pipe::Alu : Pipe::Lsu;
  i.space = space;
  i.memory = kind;
  i.access_bytes = kind == MemoryKind::None ? 0 : 4;
  i.control.stall = 4;
  i.control.wait_mask = 1;
  return i;
}

AccessPattern strided(MemorySpace space, MemoryKind kind, std::int32_t stride) {
  AccessPattern p;
  p.lanes = ~LaneMask{0};
  p.space = space;
  p.kind = kind;
  p.bytes = 4;
  for (int lane = 0; lane < kWarpLanes; ++lane) p.offsets[static_cast<std::size_t>(lane)] = lane * stride;
  return p;
}

/// One block of two warps: a load, an atomic, a shared load, a barrier, IADD3 with half of the lanes, EXIT.
Scene scene(std::int32_t stride) {
  auto kernel = std::make_shared<Kernel>();
  kernel->instructions = {instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load),
                          instruction(Opcode::RED, MemorySpace::Global, MemoryKind::Reduction),
                          instruction(Opcode::LDS, MemorySpace::Shared, MemoryKind::Load),
                          instruction(Opcode::BAR),
                          instruction(Opcode::IADD3),
                          instruction(Opcode::EXIT)};
  auto trace = std::make_shared<KernelTrace>();
  trace->kernel = kernel;
  trace->sm = 90;
  trace->launch.grid = {1, 1, 1};
  trace->launch.block = {64, 1, 1};
  trace->slopes.resize(1);
  trace->patterns = {strided(MemorySpace::Global, MemoryKind::Load, stride),
                     strided(MemorySpace::Global, MemoryKind::Reduction, 0),
                     strided(MemorySpace::Shared, MemoryKind::Load, 128), AccessPattern{}};
  BlockClass cls;
  cls.population = 1;
  cls.paths = {{{{0, 6}}, 6}};
  for (std::uint64_t w = 0; w < 2; ++w)
    cls.warps.push_back({0, {{0x10000 + w * 4, 0, 0}, {0x20000, 1, 0}, {0, 2, 0}, {0, 3, 0}}});
  cls.counts.edit().resize(6);
  for (InstructionCount& count : cls.counts.edit()) {
    count.executed = count.executed_on = 2;
    count.active_lanes = count.enabled_lanes = 64;
  }
  cls.counts.edit()[4].enabled_lanes = 32;
  trace->classes = {cls};
  Scene s;
  s.model = load_gpu_model("h200-sxm");
  s.trace = trace;
  s.occupancy.limit_warps = 32;
  s.occupancy.limit_registers = 8;
  s.occupancy.limit_shared = s.occupancy.limit_blocks = 16;
  s.occupancy.blocks_per_sm = 8;
  return s;
}

CoalescedCounts counts(const Scene& s, std::size_t pattern) { return coalesce(s.trace->patterns[pattern]); }

}  // namespace

TEST_CASE("lanes of scattered accesses lie side by side, and what was apart stays apart") {
  const Scene as_is = scene(4096), gathered = without(as_is, only(CauseKind::Uncoalesced));
  CHECK(counts(as_is, 0).sectors == 32);
  CHECK(counts(gathered, 0).sectors == 4);
  CHECK(as_is.trace->classes[0].warps[0].accesses[0].base == 0x10000);  // the original is not touched
  std::set<std::uint64_t> lines;
  for (const WarpTrace& warp : gathered.trace->classes[0].warps) {
    CHECK(warp.accesses[0].base % kLineBytes == gathered.trace->patterns[0].base_offset);
    lines.insert(warp.accesses[0].base / kLineBytes);
  }
  CHECK(lines.size() == 2);  // neighbouring columns: two lines
}

TEST_CASE("accesses that need all they touch stay as they are") {
  const Scene as_is = scene(4), gathered = without(as_is, only(CauseKind::Uncoalesced));
  CHECK(gathered.trace->patterns == as_is.trace->patterns);
  CHECK(gathered.trace->classes == as_is.trace->classes);
}

TEST_CASE("bank conflicts go, and nothing else") {
  const Scene as_is = scene(4), other = without(as_is, only(CauseKind::BankConflicts));
  CHECK(counts(as_is, 2).wavefronts == 32);
  CHECK(counts(other, 2).wavefronts == 1);
  CHECK(other.trace->patterns[0] == as_is.trace->patterns[0]);
}

TEST_CASE("atomics access nothing") {
  const Scene other = without(scene(4), only(CauseKind::Atomics));
  CHECK(other.trace->patterns[1].lanes == 0);
  CHECK(other.trace->patterns[0].lanes != 0);
}

TEST_CASE("barriers issue and do nothing") {
  const Scene other = without(scene(4), only(CauseKind::Barrier));
  CHECK(other.trace->kernel->instructions[3].opcode == Opcode::NOP);
  const BlockClass& cls = other.trace->classes[0];
  for (const WarpTrace& warp : cls.warps) {
    CHECK(cls.paths[warp.path].instructions == 6);
    CHECK(warp.accesses.size() == 3);
  }
}

TEST_CASE("of stretches with half of the lanes half remain, and what ends a warp always") {
  Scene as_is = scene(4);
  auto trace = std::make_shared<KernelTrace>(*as_is.trace);
  BlockClass& cls = trace->classes[0];
  cls.paths = {{{}, 0}};
  WarpPath& path = cls.paths.front();
  for (int turn = 0; turn < 8; ++turn) path.runs.push_back({4, 1});
  path.runs.push_back({5, 1});
  path.instructions = 9;
  for (WarpTrace& warp : cls.warps) warp.accesses.clear();
  as_is.trace = trace;
  const Scene other = without(as_is, only(CauseKind::Divergence));
  for (const WarpTrace& warp : other.trace->classes[0].warps) {
    const WarpPath& left = other.trace->classes[0].paths[warp.path];
    CHECK(left.instructions == 5);
    CHECK(left.runs.back() == Run{5, 1});
  }
}

TEST_CASE("without latency nothing waits") {
  const Scene other = without(scene(4), only(CauseKind::Latency));
  for (const Instruction& in : other.trace->kernel->instructions) {
    CHECK(in.control.stall == 1);
    CHECK(in.control.wait_mask == 0);
  }
}

TEST_CASE("a limit of occupancy goes, the others stay") {
  CHECK(without(scene(4), only(CauseKind::Registers)).occupancy.blocks_per_sm == 16);
  CHECK(without(scene(4), only(CauseKind::SharedSize)).occupancy.blocks_per_sm == 8);
}

TEST_CASE("everything that can be removed changes the launch, and leaves the original alone") {
  const Scene as_is = scene(4096);
  for (std::size_t k = 0; k < kCauses; ++k) {
    const auto kind = static_cast<CauseKind>(k);
    CHECK(removable(kind) == (kind != CauseKind::Tail && kind != CauseKind::Issue));
    if (!removable(kind)) continue;
    INFO(cause_name(kind));
    const Scene other = without(as_is, only(kind));
    CHECK(other.trace->launch == as_is.trace->launch);
    CHECK(other.occupancy.blocks_per_sm >= as_is.occupancy.blocks_per_sm);
    CHECK(other.model.hbm.bytes_per_ns >= as_is.model.hbm.bytes_per_ns);
    CHECK(other.model.launch.start_cycles <= as_is.model.launch.start_cycles);
  }
}

TEST_CASE("without local memory its instructions are gone, and what follows is as before") {
  Scene as_is = scene(4);
  auto kernel = std::make_shared<Kernel>(*as_is.trace->kernel);
  kernel->instructions[2] = instruction(Opcode::LDL, MemorySpace::Local, MemoryKind::Load);
  auto trace = std::make_shared<KernelTrace>(*as_is.trace);
  trace->kernel = kernel;
  trace->patterns[2] = strided(MemorySpace::Local, MemoryKind::Load, 4);
  as_is.trace = trace;
  const Scene other = without(as_is, only(CauseKind::LocalMemory));
  REQUIRE(other.trace->kernel->instructions.size() == 5);
  CHECK(other.trace->kernel->instructions[2].opcode == Opcode::BAR);
  const BlockClass& cls = other.trace->classes[0];
  CHECK(cls.counts.size() == 5);
  for (const WarpTrace& warp : cls.warps) {
    CHECK(cls.paths[warp.path].instructions == 5);
    CHECK(cls.paths[warp.path].runs == std::vector<Run>{{0, 5}});
    REQUIRE(warp.accesses.size() == 3);
    CHECK(warp.accesses[2].pattern == 3);  // the barrier's
  }
  CHECK(without(scene(4), only(CauseKind::LocalMemory)).trace->kernel->instructions.size() == 6);
}

TEST_CASE("larger blocks fill an SM and need not be handed out faster") {
  Scene as_is = scene(4);
  as_is.occupancy.limit_registers = 32;
  as_is.occupancy.limit_shared = 8;
  const Scene other = without(as_is, only(CauseKind::BlockSlots));
  CHECK(other.occupancy.blocks_per_sm == 32);  // the driver's shared memory is no limit of a launch without any
  CHECK(other.model.launch.blocks_back_per_cycle_x16 > as_is.model.launch.blocks_back_per_cycle_x16);
  auto trace = std::make_shared<KernelTrace>(*as_is.trace);
  trace->launch.dynamic_shared_bytes = 1024;
  as_is.trace = trace;
  CHECK(without(as_is, only(CauseKind::BlockSlots)).occupancy.blocks_per_sm == 8);
}

// Clusters of two blocks on two SMs of a GPC: their barrier, each other's shared memory, copies to both.
#include <catch2/catch.hpp>

#include "timing/sm/sm_test_support.h"

using namespace forewarp;

namespace {

GpuModel two_sms() {
  GpuModel gpu = model_with_boxes(2);
  gpu.cluster = {.hop_cycles = 80,
                 .arrive_cycles = 90,
                 .sm_bytes_per_cycle = 32,
                 .load_bytes_per_cycle = 16,
                 .cpc_bytes_per_cycle = 64,
                 .cpc_atomics_x16 = 16,
                 .barrier_cycles = 250,
                 .fence_cycles = 200,
                 .multicast_cycles = 100};
  return gpu;
}

Instruction cluster_barrier(Opcode opcode) {
  Instruction in = plain(Pipe::Adu, 1);
  in.opcode = opcode;
  return in;
}

/// Of each rank a class, of one warp; rank 1 leaves out the first `left_out` instructions.
class PairOfBlocks {
 public:
  PairOfBlocks(std::vector<Instruction> instructions, std::uint32_t left_out) : made_(std::move(instructions), 1, 2) {
    KernelTrace& trace = made_.trace();
    trace.launch.cluster = {2, 1, 1};
    BlockClass& first = trace.classes[0];
    first.single = true;
    first.population = 1;
    BlockClass other = first;
    other.representative = {1, 0, 0};
    const auto count = static_cast<std::uint32_t>(trace.kernel->instructions.size()) - left_out;
    other.paths[0] = {{{left_out, count}}, count};
    trace.classes.push_back(other);
  }

  PairOfBlocks& record(std::size_t rank, std::uint64_t value, AccessPattern pattern, BlockMask blocks = 0) {
    if (blocks != 0) pattern.offsets[0] = blocks;
    KernelTrace& trace = made_.trace();
    trace.patterns.push_back(pattern);
    trace.classes[rank].warps[0].accesses.push_back({value, static_cast<std::uint32_t>(trace.patterns.size() - 1), 0});
    return *this;
  }
  PairOfBlocks& record(std::size_t rank, std::uint64_t value, BlockMask blocks = 0) {
    AccessPattern pattern;
    pattern.lanes = ~LaneMask{0};
    return record(rank, value, pattern, blocks);
  }
  PairOfBlocks& meet(std::size_t rank) {
    for (int i = 0; i < 2; ++i) record(rank, BarrierArrival{0, 0, true}.packed());
    return *this;
  }

  TimingResult run(const GpuModel& gpu) const { return made_.simulate(gpu); }
  /// When the block of a rank is over.
  Cycle end(const GpuModel& gpu, std::size_t rank) const {
    for (const BlockSpan& span : run(gpu).spans)
      if (span.block == rank) return span.end;
    return 0;
  }

 private:
  HandMadeTrace made_;
};

const std::vector<Instruction> kMeet = {cluster_barrier(Opcode::UCGABAR_ARV), cluster_barrier(Opcode::UCGABAR_WAIT),
                                        exit_instruction()};

std::vector<Instruction> after(int count, std::vector<Instruction> rest) {
  rest.insert(rest.begin(), static_cast<std::size_t>(count), plain(Pipe::Fma, 10));
  return rest;
}

AccessPattern words(MemoryKind kind) {
  AccessPattern pattern;
  pattern.lanes = ~LaneMask{0};
  pattern.space = MemorySpace::Shared;
  pattern.kind = kind;
  pattern.bytes = 4;
  for (int l = 0; l < kWarpLanes; ++l) pattern.offsets[static_cast<std::size_t>(l)] = 4 * l;
  return pattern;
}

PhaseRecord begin(std::uint32_t arrivals, std::uint32_t barrier = 0) {
  PhaseRecord record;
  record.action = PhaseRecord::Action::Init;
  record.barrier = barrier;
  record.arrivals = arrivals;
  return record;
}
PhaseRecord await() {
  PhaseRecord record;
  record.action = PhaseRecord::Action::Await;
  record.phase = 1;
  return record;
}
PhaseRecord arrive(std::int32_t bytes = 0) {
  PhaseRecord record;
  record.action = PhaseRecord::Action::Arrive;
  record.arrivals = 1;
  record.bytes = bytes;
  return record;
}

}  // namespace

TEST_CASE("who is first at the cluster's barrier waits for the last, and for the barrier", "[cluster]") {
  const GpuModel gpu = two_sms();
  PairOfBlocks at_once(after(1, kMeet), 1), late(after(51, kMeet), 51);
  for (const std::size_t rank : {0, 1}) {
    at_once.meet(rank);
    late.meet(rank);
  }
  const Cycle end = at_once.end(gpu, 1);
  CHECK(at_once.end(gpu, 0) == end);
  CHECK(late.end(gpu, 0) == end + 500);
  CHECK(late.end(gpu, 1) == end + 500);
  GpuModel slow = gpu;
  slow.cluster.barrier_cycles += 70;
  CHECK(late.end(slow, 1) == end + 570);
}

TEST_CASE("clusters go out one after another, whatever their shape", "[cluster]") {
  HandMadeTrace made(after(5, {exit_instruction()}), 1, 4);
  made.trace().launch.grid = {2, 2, 1};
  made.trace().launch.cluster = {1, 2, 1};
  std::vector<std::uint32_t> blocks;
  for (const BlockSpan& span : made.simulate(two_sms()).spans) blocks.push_back(span.block);
  CHECK(blocks == std::vector<std::uint32_t>{0, 2, 1, 3});
}

TEST_CASE("a cluster that no GPC can hold is refused", "[cluster]") {
  HandMadeTrace made({exit_instruction()}, 1, 4);
  made.trace().launch.cluster = {4, 1, 1};
  CHECK_THROWS_WITH(made.simulate(two_sms()), Catch::Contains("a cluster of 4 blocks does not fit a GPC"));
}

TEST_CASE("a load from another SM takes a hop there, one back and the ports' time", "[cluster]") {
  // The other block is still there when its memory is read.
  std::vector<Instruction> code = after(60, {exit_instruction()});
  code.front() = waiting(code.front(), 0);
  code.insert(code.begin(), memory_instruction(Opcode::LD, MemorySpace::Generic, MemoryKind::Load, 0));
  PairOfBlocks pair(code, 1), own(code, 1);
  pair.record(0, remote_address(1, 0), words(MemoryKind::Load));
  own.record(0, 0, words(MemoryKind::Load));
  const GpuModel gpu = two_sms();
  // 128 bytes pass the banks in a cycle and the ports in 8.
  CHECK(pair.end(gpu, 0) == own.end(gpu, 0) + 2 * 80 + 8 + 1);
  GpuModel narrow = gpu;
  narrow.cluster.load_bytes_per_cycle = 8;
  CHECK(pair.end(narrow, 0) == pair.end(gpu, 0) + 8);
}

TEST_CASE("words that lie in sectors of their own take a sector's time each", "[cluster]") {
  std::vector<Instruction> code = after(60, {exit_instruction()});
  code.front() = waiting(code.front(), 0);
  code.insert(code.begin(), memory_instruction(Opcode::LD, MemorySpace::Generic, MemoryKind::Load, 0));
  const auto ends = [&](int apart) {
    AccessPattern pattern = words(MemoryKind::Load);
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
      pattern.offsets[lane] = static_cast<std::int32_t>(lane) * apart;
    PairOfBlocks pair(code, 1), own(code, 1);
    pair.record(0, remote_address(1, 0), pattern);
    own.record(0, 0, pattern);
    const GpuModel gpu = two_sms();
    return pair.end(gpu, 0) - own.end(gpu, 0);
  };
  // 4 sectors, and 32, whose words lie in banks of their own: 36 bytes are 9 banks.
  CHECK(ends(36) - ends(4) == (32 - 4) * 32 / 16);
}

TEST_CASE("an arrival at another block's barrier takes its time", "[cluster]") {
  PairOfBlocks far({phase(), phase(), phase(), waiting(exit_instruction(), 0)}, 0);
  far.record(0, begin(1).packed()).record(0, arrive().packed(), 2).record(0, begin(1, 8).packed());
  far.record(1, begin(1).packed()).record(1, begin(1, 8).packed());
  far.record(1, await().packed());
  // The same instructions with a scoreboard for the third, which waits in rank 1.
  PairOfBlocks pair({phase(), phase(), phase(0), waiting(exit_instruction(), 0)}, 0);
  pair.record(0, begin(1).packed()).record(0, arrive().packed(), 2).record(0, begin(1, 8).packed());
  pair.record(1, begin(1).packed()).record(1, begin(1, 8).packed()).record(1, await().packed());
  const GpuModel gpu = two_sms();
  GpuModel further = gpu;
  further.cluster.arrive_cycles += 33;
  CHECK(pair.end(further, 1) == pair.end(gpu, 1) + 33);
  CHECK(pair.end(gpu, 1) > 90 + 40);
}

TEST_CASE("a wait for the end of a phase counts as one for global memory", "[cluster]") {
  const auto run = [](bool polls) {
    Instruction third = phase(0);
    if (polls) third.modifiers.set(static_cast<std::size_t>(Modifier::TRYWAIT));
    PairOfBlocks pair({phase(), phase(), third, waiting(plain(Pipe::Fma, 10), 0), exit_instruction()}, 0);
    pair.record(0, begin(1).packed()).record(0, arrive().packed(), 2).record(0, begin(1, 8).packed());
    pair.record(1, begin(1).packed()).record(1, begin(1, 8).packed()).record(1, await().packed());
    return pair.run(two_sms());
  };
  const TimingResult poll = run(true), other = run(false);
  CHECK(poll.elapsed_cycles == other.elapsed_cycles);
  CHECK(stalled(poll, Stall::LongScoreboard) > 90);
  CHECK(stalled(poll, Stall::ShortScoreboard) == 0);
  CHECK(stalled(other, Stall::LongScoreboard) == 0);
  CHECK(stalled(other, Stall::ShortScoreboard) == stalled(poll, Stall::LongScoreboard));
}

TEST_CASE("a copy to two blocks is read once and completes both barriers", "[cluster]") {
  Instruction copy = memory_instruction(Opcode::UTMALDG, MemorySpace::Global, MemoryKind::AsyncCopy);
  copy.pipe = Pipe::Tma;
  copy.access_bytes = 0;
  const auto made = [&](BlockMask blocks) {
    PairOfBlocks pair({copy, phase(), phase(), phase(0), waiting(exit_instruction(), 0)}, 1);
    AccessPattern box;  // 8 rows of 128 bytes
    box.lanes = 3;
    box.space = MemorySpace::Global;
    box.kind = MemoryKind::AsyncCopy;
    box.offsets[0] = 128;
    box.offsets[1] = 8;
    box.offsets[kBoxPitch + 1] = 128;
    const BoxTarget target{0, 0, 1024, 0};
    pair.record(0, 1 << 20, box).record(0, target.packed(), blocks);
    for (const std::size_t rank : {0, 1}) {
      const bool waits = rank == 0 || blocks != 0;
      pair.record(rank, begin(1).packed())
          .record(rank, arrive(waits ? 1024 : 0).packed())
          .record(rank, await().packed());
    }
    return pair;
  };
  const GpuModel gpu = two_sms();
  const PairOfBlocks alone = made(0), both = made(3);
  const TimingResult one = alone.run(gpu), two = both.run(gpu);
  CHECK(two.counters.memory.read_sectors == one.counters.memory.read_sectors);
  // What comes to this SM last passes the other's port in 2 cycles more.
  CHECK(both.end(gpu, 0) == alone.end(gpu, 0) + 2 + 100);
  CHECK(both.end(gpu, 1) == both.end(gpu, 0));
}

namespace {

Instruction box_copy(Opcode opcode) {
  Instruction copy = memory_instruction(opcode, MemorySpace::Global, MemoryKind::AsyncCopy);
  copy.pipe = Pipe::Tma;
  copy.access_bytes = 0;
  return copy;
}

Instruction fence(Modifier of, Modifier scope) {
  Instruction in = plain(Pipe::Lsu, 1);
  in.opcode = Opcode::MEMBAR;
  for (const Modifier m : {of, scope}) in.modifiers.set(static_cast<std::size_t>(m));
  return in;
}

AccessPattern rows_of_128_bytes(int rows) {
  AccessPattern box;
  box.lanes = 3;
  box.space = MemorySpace::Global;
  box.kind = MemoryKind::AsyncCopy;
  box.offsets[0] = 128;
  box.offsets[1] = rows;
  box.offsets[kBoxPitch + 1] = 128;
  return box;
}

}  // namespace

TEST_CASE("a fence beyond the block takes its time beside others'", "[cluster]") {
  const auto end = [](const Instruction& in, int warps) {
    return HandMadeTrace({in, exit_instruction()}, warps).simulate(two_sms()).elapsed_cycles;
  };
  const Cycle none = end(fence(Modifier::ALL, Modifier::CTA), 1);
  const Cycle all = end(fence(Modifier::ALL, Modifier::GPU), 1);
  CHECK(all == none + 200 - 1);
  CHECK(end(fence(Modifier::ALL, Modifier::GPU), 4) == all);
  CHECK(end(fence(Modifier::SC, Modifier::GPU), 1) == all);
}

TEST_CASE("a fence beyond the block waits for what other warps of its SM have stored", "[cluster]") {
  const auto waited = [](Modifier scope, int stores) {
    HandMadeTrace trace({memory_instruction(Opcode::STG, MemorySpace::Global, MemoryKind::Store),
                         fence(Modifier::ALL, scope), exit_instruction()},
                        2);
    for (int warp = 0; warp < 2; ++warp) {
      trace.access(warp, 4096 * static_cast<std::uint64_t>(warp + 1), 4, MemorySpace::Global, MemoryKind::Store);
      if (warp >= stores) trace.trace().patterns.back().lanes = 0;
    }
    return stalled(trace.simulate(two_sms()), Stall::Membar);
  };
  CHECK(waited(Modifier::CTA, 1) == waited(Modifier::CTA, 0));
  // The one whose stores they are has its own way to go after them, the other waits nearly as long.
  const std::uint64_t nothing = waited(Modifier::GPU, 0), one = waited(Modifier::GPU, 1),
                      both = waited(Modifier::GPU, 2);
  CHECK(one > nothing);
  CHECK(one - nothing > (both - nothing) / 2);
}

TEST_CASE("a fence beyond the block waits for the boxes that its SM has asked for", "[cluster]") {
  // Block 0 asks for one, block 1 does not.
  const auto end = [](int rows, Modifier scope, std::size_t rank = 0) {
    PairOfBlocks pair({box_copy(Opcode::UTMALDG), phase(), fence(Modifier::ALL, scope), exit_instruction()}, 1);
    pair.record(0, 1 << 20, rows_of_128_bytes(rows))
        .record(0, BoxTarget{0, 0, static_cast<std::uint32_t>(128 * rows), 0}.packed());
    for (const std::size_t r : {0, 1}) pair.record(r, begin(1).packed());
    return pair.end(two_sms(), rank);
  };
  const Cycle some = end(256, Modifier::GPU);
  CHECK(some > 256 + 200);
  // A line takes the SM's way from L2 for 2 cycles.
  CHECK(end(512, Modifier::GPU) == some + 2 * 256);
  CHECK(end(512, Modifier::CTA) == end(256, Modifier::CTA));
  CHECK(end(512, Modifier::GPU, 1) < some);
}

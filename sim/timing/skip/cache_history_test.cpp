// What a launch finds in the caches when launches have run before it.
#include <catch2/catch.hpp>

#include "timing/simulate.h"
#include "timing/sm/sm_test_support.h"
#include "timing/sm/timed_program.h"

using namespace forewarp;

namespace {

/// Every warp of every block reads or writes a line of its own.
HandMadeTrace one_line_each(std::uint64_t base, int warps, std::uint32_t blocks, MemoryKind kind) {
  const bool load = kind == MemoryKind::Load;
  const Instruction access =
      memory_instruction(load ? Opcode::LDG : Opcode::STG, MemorySpace::Global, kind, load ? 0 : kNoScoreboard);
  const Instruction after = load ? waiting(plain(Pipe::Fma, 4), 0) : plain(Pipe::Fma, 4);
  HandMadeTrace made({access, after, exit_instruction()}, warps, blocks);
  for (int w = 0; w < warps; ++w)
    made.access(w, base + static_cast<std::uint64_t>(w * kLineBytes), 4, MemorySpace::Global, kind);
  made.trace().slopes.push_back({std::int64_t{warps} * kLineBytes, 0, 0});
  for (WarpTrace& warp : made.trace().classes[0].warps) warp.accesses[0].slope = 1;
  return made;
}

TimingResult run(const GpuModel& gpu, HandMadeTrace& made, CacheState caches, const CacheHistory* before = nullptr) {
  SimulateOptions options;
  options.caches = caches;
  options.full = true;
  return simulate(gpu, made.trace(), made.occupancy(), options, before);
}

constexpr std::uint64_t kHere = std::uint64_t{1} << 24, kElsewhere = std::uint64_t{1} << 30;

}  // namespace

TEST_CASE("a warm launch finds in L2 what it read before") {
  const GpuModel gpu = sm_model(4);
  HandMadeTrace made = one_line_each(kHere, 8, 40, MemoryKind::Load);
  const TimingResult cold = run(gpu, made, CacheState::Cold), warm = run(gpu, made, CacheState::Warm);
  CHECK(cold.counters.memory.dram_read_bytes == 8u * 40u * kLineBytes);
  CHECK(warm.counters.memory.dram_read_bytes == 0);
  CHECK(warm.elapsed_cycles < cold.elapsed_cycles);
  CHECK(warm.warnings.empty());
  CHECK(run(gpu, made, CacheState::Warm).elapsed_cycles == warm.elapsed_cycles);
}

TEST_CASE("a launch of a sequence finds what the launches before it have left, and nothing else") {
  const GpuModel gpu = sm_model(4);
  HandMadeTrace writer = one_line_each(kHere, 8, 10, MemoryKind::Store),
                reader = one_line_each(kHere, 8, 40, MemoryKind::Load),
                other = one_line_each(kElsewhere, 8, 40, MemoryKind::Load);
  CacheHistory history(gpu);
  CHECK(run(gpu, reader, CacheState::Sequence, &history).counters.memory.dram_read_bytes == 8u * 40u * kLineBytes);
  history.run(other.trace(), other.occupancy());
  CHECK(run(gpu, reader, CacheState::Sequence, &history).counters.memory.dram_read_bytes == 8u * 40u * kLineBytes);
  history.run(writer.trace(), writer.occupancy());
  CHECK(run(gpu, reader, CacheState::Sequence, &history).counters.memory.dram_read_bytes == 8u * 30u * kLineBytes);
  CHECK(history.memory().dirty_bytes() == 8u * 10u * kLineBytes);
  CHECK_THROWS(run(gpu, reader, CacheState::Sequence));
}

TEST_CASE("a launch pays for writing back what the one before it has left dirty") {
  GpuModel gpu = sm_model(4);
  gpu.l2.dirty_share = 0.25;
  const auto blocks = static_cast<std::uint32_t>(gpu.l2.bytes / kLineBytes / 8 / 2);  // half of L2
  HandMadeTrace made = one_line_each(kHere, 8, blocks, MemoryKind::Store);
  const auto written = [&](CacheState caches) { return run(gpu, made, caches).counters.memory.dram_write_bytes; };
  const std::uint64_t all = std::uint64_t{blocks} * 8 * kLineBytes;
  CHECK(written(CacheState::Cold) < all * 6 / 10);
  CHECK(written(CacheState::Warm) > all * 9 / 10);
}

TEST_CASE("a warm launch has its code in the instruction caches, but an SM's first fetch takes its time") {
  GpuModel gpu = sm_model();
  gpu.icache.l1_hit_cycles = 10;
  gpu.icache.l2_hit_cycles = 20;
  gpu.icache.memory_cycles = 100;
  gpu.icache.warm_first_cycles = 7;
  gpu.icache.first_cycles = 50;
  std::vector<Instruction> code(20, plain(Pipe::Fma, 1));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 4);
  const TimingResult warm = run(gpu, made, CacheState::Warm);
  CHECK(warm.counters.icache_l0_misses == 0);
  CHECK(stalled(warm, Stall::NoInstruction) == 4 * 7);
  CHECK(run(gpu, made, CacheState::Cold).counters.icache_l2_misses == 3);
}

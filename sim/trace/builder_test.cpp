#include "trace/builder.h"

#include <catch2/catch.hpp>
#include <memory>
#include <tuple>

#include "base/error.h"
#include "trace/class_index.h"

using namespace forewarp;

namespace {

Instruction memory_instruction(MemorySpace space, MemoryKind kind, int bytes) {
  Instruction i;
  i.space = space;
  i.memory = kind;
  i.access_bytes = static_cast<std::uint8_t>(bytes);
  i.pipe = Pipe::Lsu;
  return i;
}

/// 0: arithmetic, 1: global load, 2: shared store, 3: branch, 4: global reduction, 5: exit
std::shared_ptr<Kernel> small_kernel() {
  auto kernel = std::make_shared<Kernel>();
  kernel->name = "small";
  kernel->instructions.resize(6);
  kernel->instructions[1] = memory_instruction(MemorySpace::Global, MemoryKind::Load, 4);
  kernel->instructions[2] = memory_instruction(MemorySpace::Shared, MemoryKind::Store, 4);
  kernel->instructions[4] = memory_instruction(MemorySpace::Global, MemoryKind::Reduction, 4);
  return kernel;
}

using Addresses = std::array<std::uint64_t, 32>;

Addresses strided(std::uint64_t base, std::uint64_t stride) {
  Addresses a{};
  for (std::size_t l = 0; l < 32; ++l) a[l] = base + l * stride;
  return a;
}

}  // namespace

TEST_CASE("warps that take the same way share a path") {
  const auto kernel = small_kernel();
  KernelTrace trace;
  TracePools pools(trace);
  BlockTraceBuilder builder(*kernel, 3, pools);
  for (int trip = 0; trip < 4; ++trip)
    for (int warp = 0; warp < 3; ++warp) {
      if (warp == 2 && trip == 3) continue;  // the last warp leaves early
      builder.execute(warp, 0, ~0u, ~0u);
      builder.execute(warp, 1, ~0u, ~0u);
      builder.execute(warp, 2, ~0u, ~0u);
      builder.execute(warp, 3, ~0u, trip < 3 ? ~0u : 0u);
    }
  for (int warp = 0; warp < 3; ++warp) builder.execute(warp, warp == 2 ? 5 : 4, ~0u, ~0u);
  const BlockClass c = builder.finish();
  REQUIRE(c.paths.size() == 2);
  CHECK(c.warps[0].path == c.warps[1].path);
  CHECK(c.warps[2].path != c.warps[0].path);
  CHECK(c.paths[0].runs == std::vector<Run>{{0, 4}, {0, 4}, {0, 4}, {0, 5}});
  CHECK(c.paths[0].instructions == 17);
  CHECK(c.paths[1].runs == std::vector<Run>{{0, 4}, {0, 4}, {0, 4}, {5, 1}});
  CHECK(c.counts[0].executed == 11);
  CHECK(c.counts[3].active_lanes == 11 * 32);
  CHECK(c.counts[3].enabled_lanes == 9 * 32);
  CHECK(c.counts[3].executed_on == 9);
}

TEST_CASE("lanes that count in one word of shared memory are added up first") {
  Kernel kernel = *small_kernel();
  Instruction& count = kernel.instructions[2];
  count.opcode = Opcode::ATOMS;
  count.memory = MemoryKind::Atomic;
  const auto wavefronts = [&] {
    KernelTrace trace;
    TracePools pools(trace);
    BlockTraceBuilder builder(kernel, 1, pools);
    builder.execute(0, 2, ~0u, ~0u);
    std::array<std::uint64_t, kWarpLanes> addresses;
    // Three words of one bank, the first two many times over.
    for (std::uint64_t lane = 0; lane < kWarpLanes; ++lane) addresses[lane] = lane == 31 ? 256 : lane % 2 * 128;
    builder.access(0, 2, ~0u, addresses.data(), MemorySpace::Shared, {}, true);
    return builder.finish().counts[2].wavefronts;
  };
  CHECK(wavefronts() == 32);
  count.modifiers.set(static_cast<std::size_t>(Modifier::POPC));
  CHECK(wavefronts() == 3);
}

TEST_CASE("a load says what L2 is to fetch at least") {
  Kernel kernel = *small_kernel();
  Instruction& load = kernel.instructions[1];
  load = memory_instruction(MemorySpace::Global, MemoryKind::Load, 4);
  const auto fetched = [&] {
    KernelTrace trace;
    TracePools pools(trace);
    BlockTraceBuilder builder(kernel, 1, pools);
    builder.execute(0, 1, ~0u, ~0u);
    std::array<std::uint64_t, kWarpLanes> addresses{};
    builder.access(0, 1, ~0u, addresses.data(), MemorySpace::Global, {}, true);
    builder.finish();
    return CoalescedPatterns(trace.patterns).lines(0)[0].fetch;
  };
  CHECK(fetched() == 0);
  const auto set = [&](Modifier modifier) {
    load.modifiers.reset();
    load.modifiers.set(static_cast<std::size_t>(modifier));
  };
  set(Modifier::LTC64B);
  CHECK(fetched() == 2);
  set(Modifier::LTC128B);
  CHECK(fetched() == 4);
  set(Modifier::LTC256B);
  CHECK(fetched() == 4);  // the other line is left out
}

TEST_CASE("lines that an asynchronous copy reads pass the banks one by one") {
  Kernel kernel = *small_kernel();
  kernel.instructions[1] = memory_instruction(MemorySpace::Global, MemoryKind::AsyncCopy, 16);
  const auto wavefronts = [&](std::uint64_t row_bytes) {
    KernelTrace trace;
    TracePools pools(trace);
    BlockTraceBuilder builder(kernel, 1, pools);
    builder.execute(0, 1, ~0u, ~0u);
    std::array<std::uint64_t, kWarpLanes> from{}, to{};
    for (std::uint64_t lane = 0; lane < kWarpLanes; ++lane) {
      from[lane] = 0x10000 + lane * 16 / row_bytes * 4096 + lane * 16 % row_bytes;
      to[lane] = lane * 16;
    }
    builder.access(0, 1, ~0u, from.data(), MemorySpace::Global, {}, true);
    builder.access(0, 1, ~0u, to.data(), MemorySpace::Shared, {}, true);
    return builder.finish().counts[1].wavefronts;
  };
  CHECK(wavefronts(512) == 4);
  CHECK(wavefronts(128) == 4);
  CHECK(wavefronts(64) == 8);
}

TEST_CASE("zeros that a copy writes pass the banks by themselves") {
  // kernels/micro copy_parts: rows of 512 bytes, of which the first 13 lanes read.
  Kernel kernel = *small_kernel();
  kernel.instructions[1] = memory_instruction(MemorySpace::Global, MemoryKind::AsyncCopy, 16);
  const auto counts = [&](std::uint64_t begin, LaneMask reads, std::uint64_t far = 0) {
    KernelTrace trace;
    TracePools pools(trace);
    BlockTraceBuilder builder(kernel, 1, pools);
    Addresses from = strided(0x10000 + begin, 16);
    from[31] += far;
    builder.execute(0, 1, ~0u, ~0u);
    if (reads != ~0u) builder.fill(1, ~0u, reads, from.data());
    builder.access(0, 1, reads, from.data(), MemorySpace::Global, {}, true);
    builder.access(0, 1, ~0u, strided(0, 16).data(), MemorySpace::Shared, {}, true);
    const InstructionCount count = builder.finish().counts[1];
    return std::tuple(int(count.wavefronts), int(count.zero_wavefronts), int(count.sectors));
  };
  CHECK(counts(0, ~0u) == std::tuple(4, 0, 16));
  CHECK(counts(0, 0x1fff) == std::tuple(4, 3, 7));
  CHECK(counts(16, 0x1fff) == std::tuple(12, 3, 13));
  CHECK(counts(48, 0) == std::tuple(16, 4, 0));
  CHECK(counts(0, 0x1fffffff) == std::tuple(4, 1, 15));
  // Where a lane reads nothing its address need not make sense.
  CHECK(counts(0, 0x1fff, std::uint64_t{1} << 40) == std::tuple(5, 3, 7));
}

TEST_CASE("accesses are counted exactly and their patterns and slopes stored once") {
  const auto kernel = small_kernel();
  KernelTrace trace;
  TracePools pools(trace);
  BlockTraceBuilder builder(*kernel, 2, pools);
  const BlockSlope slope{512, 0, 0};
  for (int warp = 0; warp < 2; ++warp) {
    for (std::uint64_t step = 0; step < 8; ++step) {
      builder.execute(warp, 1, ~0u, ~0u);
      builder.access(warp, 1, ~0u, strided(0x10000 + step * 128, 4).data(), MemorySpace::Global, slope, true);
    }
    builder.execute(warp, 1, ~0u, ~0u);
    builder.access(warp, 1, ~0u, strided(0x20000, 128).data(), MemorySpace::Global, {}, true);
    builder.execute(warp, 2, ~0u, 0xff);
    builder.access(warp, 2, 0xff, strided(64, 256).data(), MemorySpace::Shared, {}, true);
    builder.execute(warp, 4, ~0u, ~0u);
    builder.access(warp, 4, ~0u, strided(0x30000, 0).data(), MemorySpace::Global, slope, true);
    builder.execute(warp, 4, ~0u, 0);
    builder.access(warp, 4, 0, strided(1, 7).data(), MemorySpace::Global, slope, true);
  }
  builder.diverge(1, 3);
  const BlockClass c = builder.finish();
  CHECK_FALSE(c.single);
  CHECK(trace.patterns.size() == 5);  // rows, column, shared, one address, nobody
  CHECK(trace.slopes == std::vector<BlockSlope>{{}, slope});
  CHECK(c.counts[1].requests == 18);
  CHECK(c.counts[1].sectors == 2 * (8 * 4 + 32));
  CHECK(c.counts[1].ideal_sectors == 2 * 9 * 4);
  CHECK(c.counts[1].lines == 2 * (8 + 32));
  CHECK(c.counts[1].bytes == 2 * 9 * 128);
  CHECK(c.counts[2].requests == 0);
  CHECK(c.counts[2].shared_requests == 2);
  CHECK(c.counts[2].wavefronts == 2 * 8);
  CHECK(c.counts[2].ideal_wavefronts == 2);
  CHECK(c.counts[4].executed == 4);
  CHECK(c.counts[4].executed_on == 2);
  CHECK(c.counts[4].requests == 2);
  CHECK(c.counts[4].addresses == 2);
  CHECK(c.counts[3].divergent == 1);
  REQUIRE(c.warps[0].accesses.size() == 12);
  CHECK(c.warps[0].accesses[3].base == 0x10000 + 3 * 128);
  CHECK(c.warps[0].accesses[3].slope == 1);
  CHECK(trace.patterns[c.warps[0].accesses[11].pattern].lanes == 0);
  CHECK(trace.patterns[c.warps[0].accesses[9].pattern].base_offset == 64);

  // A second block of the same trace finds everything there.
  builder.execute(0, 1, ~0u, ~0u);
  builder.access(0, 1, ~0u, strided(0x50000, 4).data(), MemorySpace::Global, slope, false);
  const BlockClass second = builder.finish();
  CHECK(second.single);
  CHECK(trace.patterns.size() == 5);
  CHECK(second.warps[0].accesses[0].pattern == c.warps[0].accesses[0].pattern);
  CHECK(second.counts[1].executed == 1);
}

TEST_CASE("a base in the middle of a line is another pattern") {
  const auto kernel = small_kernel();
  KernelTrace trace;
  TracePools pools(trace);
  BlockTraceBuilder builder(*kernel, 1, pools);
  for (std::uint64_t step = 0; step < 64; ++step)
    builder.access(0, 1, ~0u, strided(0x10000 + step * 4, 0).data(), MemorySpace::Global, {}, true);
  const BlockClass c = builder.finish();
  CHECK(trace.patterns.size() == 32);
  CHECK(c.warps[0].accesses[0].pattern == c.warps[0].accesses[32].pattern);
}

TEST_CASE("matrix loads take rows of 16 bytes from their first lanes") {
  const auto kernel = small_kernel();
  for (const int matrices : {1, 2, 4}) {
    kernel->instructions[2] = memory_instruction(MemorySpace::Shared, MemoryKind::Load, 4 * matrices);
    kernel->instructions[2].opcode = Opcode::LDSM;
    KernelTrace trace;
    TracePools pools(trace);
    BlockTraceBuilder builder(*kernel, 1, pools);
    builder.access(0, 2, ~0u, strided(0, 16).data(), MemorySpace::Shared, {}, true);
    const BlockClass c = builder.finish();
    CHECK(c.counts[2].wavefronts == static_cast<unsigned>(matrices));
    CHECK(c.counts[2].bank_conflicts == 0);
    CHECK(c.counts[2].bytes == 128u * static_cast<unsigned>(matrices));
  }
}

TEST_CASE("lanes too far apart are refused with the place") {
  const auto kernel = small_kernel();
  KernelTrace trace;
  TracePools pools(trace);
  BlockTraceBuilder builder(*kernel, 1, pools);
  CHECK_NOTHROW(builder.access(0, 1, 3, strided(0x1000000000, 0x7fffffff).data(), MemorySpace::Global, {}, true));
  CHECK_NOTHROW(builder.access(0, 1, 3, strided(0x1000000000, 0 - std::uint64_t{0x80000000u}).data(),
                               MemorySpace::Global, {}, true));
  CHECK_THROWS_AS(builder.access(0, 1, 3, strided(0, 0x80000000u).data(), MemorySpace::Global, {}, true), InputError);
}

TEST_CASE("classes tell their blocks by conditions") {
  BlockClass c;
  c.representative = {2, 1, 0};
  c.conditions = {{{1, 0, 0}, 0, 4, 1}, {{1, 2, 0}, INT64_MIN, INT64_MAX, 2}};
  const auto holds = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return c.contains({{2, 1, 0, {}}, {x, y, z, {}}});
  };
  CHECK(holds(2, 1, 0));
  CHECK(holds(6, 1, 0));
  CHECK_FALSE(holds(3, 1, 0));
  CHECK_FALSE(holds(0, 1, 0));
  CHECK_FALSE(holds(8, 1, 0));
  CHECK(holds(2, 0, 5));
  c.single = true;
  CHECK_FALSE(holds(6, 1, 0));
  CHECK(holds(2, 1, 0));
}

TEST_CASE("quotients are coordinates of a block") {
  KernelTrace trace;
  trace.launch.grid = {100, 1, 1};
  trace.quotients = {{{3, 0, 0, {}}, 5, 10}, {{0, 0, 0, {1}}, -4, 7}};
  for (std::uint32_t x = 0; x < 100; ++x) {
    const BlockPlace place = trace.place({x, 0, 0});
    const std::int64_t tenth = (3 * x + 5) / 10;
    CHECK(place.quotients[0] == tenth);
    CHECK(place.quotients[1] == (tenth + 3) / 7 - 1);  // rounded down below zero too
  }
  BlockClass c;
  c.conditions = {{{3, 0, 0, {-10}}, -5, 4, 1}};  // the remainder, 5 at the representative
  for (std::uint32_t x = 0; x < 100; ++x) {
    INFO(x);
    CHECK(c.contains(trace.distance({0, 0, 0}, {x, 0, 0})) == ((3 * x + 5) % 10 <= 9));
  }
  c.conditions[0].high = 1;
  for (std::uint32_t x = 0; x < 100; ++x)
    CHECK(c.contains(trace.distance({0, 0, 0}, {x, 0, 0})) == ((3 * x + 5) % 10 <= 6));
}

TEST_CASE("blocks find their class and totals add up") {
  KernelTrace trace;
  trace.kernel = small_kernel();
  trace.launch.grid = {4, 3, 2};
  for (int i = 0; i < 3; ++i) trace.classes.emplace_back();
  trace.classes[0].representative = {0, 0, 0};
  trace.classes[0].conditions = {{{1, 0, 0}, 0, 2, 1}};
  trace.classes[0].population = 18;
  trace.classes[1].representative = {3, 0, 0};
  trace.classes[1].conditions = {{{1, 0, 0}, 0, 0, 1}, {{0, 1, 3}, 0, 4, 1}};
  trace.classes[1].population = 5;
  trace.classes[2].representative = {3, 2, 1};
  trace.classes[2].single = true;
  trace.classes[2].population = 1;
  for (auto& c : trace.classes) c.counts.edit().resize(6);
  trace.classes[0].counts.edit()[1].executed = 2;
  trace.classes[1].counts.edit()[1].sectors = 10;
  trace.classes[2].counts.edit()[1].executed = 7;
  const ClassIndex index(trace);
  std::array<std::uint64_t, 3> population{};
  for (std::uint64_t b = 0; b < trace.launch.grid.count(); ++b) {
    CHECK(trace.class_of(b) == index.class_of(b));
    ++population[trace.class_of(b)];
  }
  CHECK(population == std::array<std::uint64_t, 3>{18, 5, 1});
  CHECK(trace.block_index(23) == Dim3{3, 2, 1});
  CHECK(trace.block_index(5) == Dim3{1, 1, 0});
  const auto totals = trace.totals();
  CHECK(totals[1].executed == 2 * 18 + 7);
  CHECK(totals[1].sectors == 50);
}

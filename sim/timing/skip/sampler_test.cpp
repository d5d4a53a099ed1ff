// Leaving out what is like what was seen must not change what is counted, and hardly what is timed.
#include "timing/skip/sampler.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "timing/sm/sm_test_support.h"

using namespace forewarp;

namespace {

/// 4000 additions, in which nothing repeats.
HandMadeTrace straight_code(int warps, std::uint32_t blocks, int blocks_per_sm) {
  std::vector<Instruction> code(4000, plain(Pipe::Fma, 4));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, warps, blocks);
  made.runs({{0, static_cast<std::uint32_t>(code.size())}});
  made.occupancy().blocks_per_sm = blocks_per_sm;
  return made;
}

double error(Cycle a, Cycle b) {
  return std::abs(static_cast<double>(a) - static_cast<double>(b)) / static_cast<double>(b);
}

/// Of no more than two thirds of the launch its cycles come out as of all of it, but for `most`.
void check_part(const HandMadeTrace& made, const GpuModel& gpu, std::uint64_t budget, double most) {
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, budget);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions * 2 / 3);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < most);
}

}  // namespace

TEST_CASE("iterations that are left out: cycles and traffic as if simulated") {
  const GpuModel gpu = sm_model(4);
  HandMadeTrace made = streaming_loop(400, 8, 4);
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 10000);
  CHECK_FALSE(full.coverage.extrapolated);
  CHECK(part.coverage.extrapolated);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions / 2);
  INFO("dram " << full.counters.memory.dram_read_bytes << " / " << part.counters.memory.dram_read_bytes << " sectors "
               << full.counters.memory.read_sectors << " / " << part.counters.memory.read_sectors);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  // In full the warps, which wait for memory alone, come apart by what they happen to wait for refresh.
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.06);
  CHECK(error(part.counters.memory.dram_read_bytes, full.counters.memory.dram_read_bytes) < 0.02);
  CHECK(error(part.counters.warp_cycles, full.counters.warp_cycles) < 0.05);
}

TEST_CASE("loops that follow each other are looked at one by one") {
  // The second loop does the arithmetic of the first twice.
  constexpr int kIterations = 400, kWarps = 8;
  const GpuModel gpu = sm_model(4);
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  Instruction branch = plain(Pipe::Cbu, 5);
  branch.opcode = Opcode::BRA;
  const Instruction use = waiting(plain(Pipe::Fma, 4), 0);
  HandMadeTrace made({plain(Pipe::Fma, 4), load, use, branch, plain(Pipe::Fma, 4), load, use, use, branch,
                      plain(Pipe::Fma, 4), exit_instruction()},
                     kWarps, 4);
  std::vector<Run> runs{{0, 4}};
  for (int i = 1; i < kIterations; ++i) runs.push_back({1, 3});
  runs.push_back({4, 1});
  for (int i = 0; i < kIterations; ++i) runs.push_back({5, 4});
  runs.push_back({9, 2});
  made.runs(runs);
  for (int w = 0; w < kWarps; ++w)
    for (int i = 0; i < 2 * kIterations; ++i)
      made.access(w, (std::uint64_t{1} << 24) + static_cast<std::uint64_t>((w * 2 * kIterations + i) * kLineBytes), 4,
                  MemorySpace::Global);
  made.trace().slopes.push_back({std::int64_t{2} * kWarps * kIterations * kLineBytes, 0, 0});
  for (WarpTrace& warp : made.trace().classes[0].warps)
    for (Access& access : warp.accesses) access.slope = 1;

  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 10000);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions / 2);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.06);
  CHECK(error(part.counters.memory.dram_read_bytes, full.counters.memory.dram_read_bytes) < 0.02);
}

TEST_CASE("warps that pass a ring of barriers in shared memory on to each other") {
  using Action = PhaseRecord::Action;
  constexpr int kIterations = 1200, kStages = 3;
  const GpuModel gpu = sm_model(4);
  const Instruction change = memory_instruction(Opcode::SYNCS, MemorySpace::Shared, MemoryKind::Atomic, kNoScoreboard);
  const Instruction await = memory_instruction(Opcode::SYNCS, MemorySpace::Shared, MemoryKind::Atomic, 1);
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  Instruction branch = plain(Pipe::Cbu, 5);
  branch.opcode = Opcode::BRA;
  std::vector<Instruction> code(2 * kStages, change);
  code.insert(code.end(),
              {await, waiting(load, 1), waiting(plain(Pipe::Fma, 4), 0), change, branch, exit_instruction()});
  HandMadeTrace made(code, 2, 4);
  std::vector<Run> runs{{0, 2 * kStages + 5}};
  for (int i = 1; i < kIterations; ++i) runs.push_back({2 * kStages, 5});
  runs.push_back({2 * kStages + 5, 1});
  made.runs(runs);
  const auto barrier = [](Action action, int stage, bool full, int phase) {
    PhaseRecord record;
    record.action = action;
    record.barrier = static_cast<std::uint32_t>((stage + (full ? kStages : 0)) * 8);
    record.arrivals = action == Action::Await ? 0 : 1;
    record.phase = static_cast<std::uint32_t>(phase);
    return record;
  };
  for (int w = 0; w < 2; ++w) {
    for (int b = 0; b < 2 * kStages; ++b)
      made.phase(w, w == 0 ? barrier(Action::Init, b % kStages, b >= kStages, 0) : PhaseRecord{});
    for (int i = 0; i < kIterations; ++i) {
      // The first warp waits until a stage is empty and fills it, the second the other way round.
      const int stage = i % kStages, round = i / kStages;
      made.phase(w, barrier(Action::Await, stage, w == 1, w == 1 ? round + 1 : round));
      made.access(w, (std::uint64_t{1} << 24) + static_cast<std::uint64_t>((w * kIterations + i) * kLineBytes), 4,
                  MemorySpace::Global);
      made.phase(w, barrier(Action::Arrive, stage, w == 0, 0));
    }
  }
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 3000);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions / 2);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.06);
}

TEST_CASE("waves that are left out: cycles and traffic as if simulated") {
  const GpuModel gpu = sm_model(4);
  HandMadeTrace made = streaming_loop(6, 4, 4003);
  made.occupancy().blocks_per_sm = 4;
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 60000);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions / 2);
  INFO("dram " << full.counters.memory.dram_read_bytes << " / " << part.counters.memory.dram_read_bytes << " sectors "
               << full.counters.memory.read_sectors << " / " << part.counters.memory.read_sectors);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.04);
  CHECK(error(part.counters.memory.dram_read_bytes, full.counters.memory.dram_read_bytes) < 0.04);
}

TEST_CASE("reductions on one word pile up in L2 while blocks are left out") {
  // Blocks do not wait for them, so they end sooner than L2 adds: the launch lasts as long as the adding.
  GpuModel gpu = sm_model(4);
  gpu.l2.atomic_word_interval = 60;
  constexpr std::uint32_t kBlocks = 6000;
  std::vector<Instruction> code(60, plain(Pipe::Fma, 4));
  code.push_back(memory_instruction(Opcode::RED, MemorySpace::Global, MemoryKind::Reduction));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 1, kBlocks);
  made.runs({{0, 62}});
  made.access(0, std::uint64_t{1} << 24, 1, MemorySpace::Global, MemoryKind::Reduction);
  made.occupancy().blocks_per_sm = 8;
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 60000);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions * 2 / 3);
  CHECK(full.elapsed_cycles > 60 * kBlocks * 9 / 10);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.05);
}

TEST_CASE("a launch that does not settle ends with whole blocks") {
  // Straight code, so nothing repeats; nine blocks on four SMs, one at a time, are three rounds and not two and a
  // quarter.
  const GpuModel gpu = sm_model(4);
  HandMadeTrace made = straight_code(4, 9, 1);
  check_part(made, gpu, 3000, 0.05);
}

TEST_CASE("timing has the seconds that tracing has left, whether a launch is extrapolated or whole") {
  const GpuModel gpu = sm_model(4);
  HandMadeTrace made = straight_code(4, 90, 1);
  const TimingResult full = made.simulate(gpu, true);
  const auto in = [&](double seconds) {
    SimulateOptions options;
    options.effort.seconds = seconds;
    options.effort.precision = 0;
    return made.simulate(gpu, options);
  };
  const double reaches = full.host_seconds / 0.8, part = full.host_seconds / 4;
  const TimingResult whole = in(reaches), some = in(part);
  CHECK(!whole.coverage.extrapolated);
  made.trace().launch.traced_ms = 1'000'000;
  const TimingResult hurried = in(part), cut = in(reaches);
  CHECK(hurried.coverage.simulated_warp_instructions < some.coverage.simulated_warp_instructions * 2 / 3);
  CHECK(cut.coverage.extrapolated);
  CHECK(error(cut.elapsed_cycles, whole.elapsed_cycles) < 0.02);
}

TEST_CASE("where listing the lines of blocks takes too long, the rest moves in proportion to what was seen") {
  const GpuModel gpu = sm_model(4);
  constexpr std::uint32_t kLoads = 64;
  std::vector<Instruction> code(kLoads, memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 4, 4000);
  for (int w = 0; w < 4; ++w)
    for (std::uint32_t i = 0; i < kLoads; ++i) made.access(w, (1u << 24) + i * 8192, 132, MemorySpace::Global);
  std::vector<InstructionCount> counts(code.size());
  for (std::uint32_t i = 0; i < kLoads; ++i) counts[i].lines = 4 * 32;
  made.trace().classes[0].counts = SharedCounts(counts);
  SimulateOptions options;
  options.effort.seconds = 4 * kLoads * 32 / 10e6;  // as long as listing takes
  const TimingResult r = made.simulate(gpu, options);
  CHECK(r.coverage.simulated_warp_instructions > 0);
  CHECK(r.coverage.extrapolated);
  CHECK(r.coverage.cycles_low <= static_cast<double>(r.elapsed_cycles));
  CHECK(r.coverage.cycles_high <= 2 * static_cast<double>(r.elapsed_cycles));
  const auto listing = [](const std::string& warning) { return warning.find("listing the lines") == 0; };
  CHECK(std::any_of(r.warnings.begin(), r.warnings.end(), listing));
}

TEST_CASE("a launch that all of its seconds reach for is simulated whole, with those that its verdict would have had") {
  const GpuModel gpu = sm_model(4);
  const HandMadeTrace made = straight_code(4, 90, 1);
  const TimingResult full = made.simulate(gpu, true);
  const auto in = [&](double seconds) {
    SimulateOptions options;
    options.effort.seconds = seconds;
    return made.simulate(gpu, options);
  };
  const TimingResult whole = in(full.host_seconds / 0.95), part = in(full.host_seconds / 1.2);
  CHECK_FALSE(whole.coverage.extrapolated);
  CHECK(whole.elapsed_cycles == full.elapsed_cycles);
  CHECK(part.coverage.extrapolated);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.02);
}

TEST_CASE("seconds are kept, however few they are") {
  const GpuModel gpu = sm_model(4);
  const HandMadeTrace made = straight_code(4, 90, 1);
  const double all = made.simulate(gpu, true).host_seconds;
  for (const double part : {2., 8.}) {
    SimulateOptions options;
    options.effort.seconds = all / part;
    const TimingResult cut = made.simulate(gpu, options);
    INFO(part << " " << cut.host_seconds / options.effort.seconds);
    CHECK(cut.coverage.extrapolated);
    CHECK(cut.host_seconds < 1.05 * options.effort.seconds);
  }
}

TEST_CASE("a launch may be left between two waves, when no block is resident") {
  // Each wave issues 4 blocks x 4 warps x 4001 instructions; its blocks end together, long before the next begin.
  GpuModel gpu = sm_model(4);
  gpu.launch.block_end_cycles = 1000;
  const HandMadeTrace made = straight_code(4, 90, 1);
  const TimingResult full = made.simulate(gpu, true);
  for (std::uint64_t waves = 2; waves < 6; ++waves) {
    SimulateOptions options;
    options.detailed_instructions = waves * 4 * 4 * 4001;
    options.effort.precision = 1;  // any will do
    const TimingResult part = made.simulate(gpu, options);
    CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions / 2);
    CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.02);
  }
}

TEST_CASE("a block that is alone on its SM in what is left out goes as it does by itself") {
  // Chains of four warps a sub-partition fill the pipe as those of eight do; nothing that was simulated says so.
  const GpuModel gpu = sm_model(4);
  HandMadeTrace made = straight_code(16, 9, 2);
  check_part(made, gpu, 9000, 0.02);
}

TEST_CASE("a block that is alone is looked at for longer than its first loads take, however little is simulated") {
  const GpuModel gpu = sm_model(4);
  constexpr int kLoads = 40, kWarps = 16;
  std::vector<Instruction> code;
  for (int i = 0; i < kLoads; ++i) {
    code.push_back(memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0));
    code.push_back(waiting(plain(Pipe::Fma, 4), 0));
  }
  code.insert(code.end(), 20000, plain(Pipe::Fma, 4));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, kWarps, 9);
  made.runs({{0, static_cast<std::uint32_t>(code.size())}});
  for (int w = 0; w < kWarps; ++w)
    for (int i = 0; i < kLoads; ++i)
      made.access(w, (std::uint64_t{1} << 24) + static_cast<std::uint64_t>((w * kLoads + i) * kLineBytes), 4,
                  MemorySpace::Global);
  made.occupancy().blocks_per_sm = 2;
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 18000);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions / 4);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.1);
}

TEST_CASE("what is extrapolated goes at the rate of whole waves, slow starts and all") {
  // Blocks first wait for one load after the other, then add: how fast a part of a wave was says little about a wave.
  const GpuModel gpu = sm_model(4);
  constexpr int kLoads = 40;
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  std::vector<Instruction> code;
  for (int i = 0; i < kLoads; ++i) {
    code.push_back(load);
    code.push_back(waiting(plain(Pipe::Fma, 4), 0));
  }
  code.insert(code.end(), 4000, plain(Pipe::Fma, 4));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 4, 83);
  made.runs({{0, static_cast<std::uint32_t>(code.size())}});
  for (int w = 0; w < 4; ++w)
    for (int i = 0; i < kLoads; ++i)
      made.access(w, (std::uint64_t{1} << 24) + static_cast<std::uint64_t>((w * kLoads + i) * kLineBytes), 4,
                  MemorySpace::Global);
  made.trace().slopes.push_back({std::int64_t{4} * kLoads * kLineBytes, 0, 0});
  for (WarpTrace& warp : made.trace().classes[0].warps)
    for (Access& access : warp.accesses) access.slope = 1;
  made.occupancy().blocks_per_sm = 1;
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 60000);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method << " "
                 << part.coverage.simulated_warp_instructions << " of " << full.coverage.simulated_warp_instructions);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions / 8);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.04);
}

TEST_CASE("blocks whose loops take unequally long end one after the other, left out or not") {
  // Half of the blocks wait twice as long in each iteration: theirs is the end of the launch.
  const GpuModel gpu = sm_model(4);
  HandMadeTrace made = streaming_loop(400, 4, 4);
  made.occupancy().blocks_per_sm = 1;
  BlockClass slow = made.trace().classes[0];
  slow.representative = {2, 0, 0};
  slow.population = made.trace().classes[0].population = 2;
  made.trace().classes[0].conditions.push_back({{1, 0, 0}, 0, 1, 1});
  slow.conditions.push_back({{1, 0, 0}, 0, 1, 1});
  // Each of its iterations is two of the others'.
  std::vector<Run>& runs = slow.paths[0].runs;
  const std::vector<Run> body(runs.begin() + 1, runs.end() - 1);
  runs.insert(runs.end() - 1, body.begin(), body.end());
  slow.paths[0].instructions += 3 * body.size();
  for (WarpTrace& warp : slow.warps) {
    const std::vector<Access> once(warp.accesses.begin() + 1, warp.accesses.end());
    warp.accesses.insert(warp.accesses.end(), once.begin(), once.end());
  }
  made.trace().classes.push_back(slow);
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 3000);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  INFO("warps " << full.counters.warp_cycles << " / " << part.counters.warp_cycles);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.06);
  CHECK(error(part.counters.warp_cycles, full.counters.warp_cycles) < 0.07);
  CHECK(part.coverage.cycles_low < static_cast<double>(full.elapsed_cycles));
  CHECK(part.coverage.cycles_high > static_cast<double>(full.elapsed_cycles));
}

TEST_CASE("warps that are served one after the other leave one after the other, extrapolated or not") {
  // Sixteen blocks fill an SM's issue slots four times over: the older ones end first.
  const GpuModel gpu = sm_model(4);
  std::vector<Instruction> code(6000, plain(Pipe::Fma, 4));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 4, 64);
  made.runs({{0, 6001}});
  made.occupancy().blocks_per_sm = 16;
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 30000);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method);
  INFO("warps " << full.counters.warp_cycles << " / " << part.counters.warp_cycles);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions * 2 / 3);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.01);
  CHECK(error(part.counters.warp_cycles, full.counters.warp_cycles) < 0.12);
}

TEST_CASE("what warps have left behind them when a launch is extrapolated is read, too") {
  // Eight blocks of eight warps an SM, each warp a load and arithmetic that nothing waits for: the last warps of a
  // block have not loaded yet when the first are nearly done.
  const GpuModel gpu = sm_model(4);
  std::vector<Instruction> code{memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0)};
  code.insert(code.end(), 3000, plain(Pipe::Fma, 1));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 8, 64);
  made.runs({{0, 3002}});
  for (int w = 0; w < 8; ++w)
    made.access(w, (std::uint64_t{1} << 24) + static_cast<std::uint64_t>(w * kLineBytes), 4, MemorySpace::Global);
  made.trace().slopes.push_back({8 * kLineBytes, 0, 0});
  for (WarpTrace& warp : made.trace().classes[0].warps)
    for (Access& access : warp.accesses) access.slope = 1;
  made.occupancy().blocks_per_sm = 8;
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 30000);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions * 2 / 3);
  INFO("read " << full.counters.memory.dram_read_bytes << " / " << part.counters.memory.dram_read_bytes);
  CHECK(error(part.counters.memory.dram_read_bytes, full.counters.memory.dram_read_bytes) < 0.01);
}

TEST_CASE("what is on its way when a launch is extrapolated arrives") {
  // Loads that nothing waits for, far more than memory serves meanwhile.
  constexpr int kLoads = 40, kWarps = 8;
  const GpuModel gpu = sm_model(4);
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  std::vector<Instruction> code(kLoads, load);
  code.insert(code.end(), 20, plain(Pipe::Fma, 1));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, kWarps, 48);
  for (int i = 0; i < kLoads; ++i)
    for (int w = 0; w < kWarps; ++w)
      made.access(w, (std::uint64_t{1} << 24) + static_cast<std::uint64_t>((w * kLoads + i) * kLineBytes), 4,
                  MemorySpace::Global);
  made.trace().slopes.push_back({kWarps * kLoads * kLineBytes, 0, 0});
  for (WarpTrace& warp : made.trace().classes[0].warps)
    for (Access& access : warp.accesses) access.slope = 1;
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 200);
  REQUIRE(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions * 2 / 3);
  CHECK(part.counters.memory.dram_read_bytes == full.counters.memory.dram_read_bytes);
}

TEST_CASE("lines that blocks share come from DRAM once, whether the blocks are simulated or left out") {
  const GpuModel gpu = sm_model(4);
  // As a product: half of what a block reads is its own, half is read by every block.
  HandMadeTrace made = streaming_loop(64, 8, 403);
  for (WarpTrace& warp : made.trace().classes[0].warps)
    for (std::size_t i = 0; i < warp.accesses.size(); i += 2) warp.accesses[i].slope = 0;
  const TimingResult full = made.simulate(gpu, true);
  for (const std::uint64_t budget : {8000, 20000, 60000}) {
    const TimingResult part = made.simulate(gpu, false, budget);
    INFO(budget << ": " << part.coverage.method);
    CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions);
    CHECK(error(part.counters.memory.dram_read_bytes, full.counters.memory.dram_read_bytes) < 0.02);
    CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.04);
  }
}

TEST_CASE("a launch that never settles: unequal blocks, and a last one alone") {
  const GpuModel gpu = sm_model(2);
  HandMadeTrace made = streaming_loop(400, 4, 13);
  // Block 12 goes round its loop three times as often, in a class of its own.
  BlockClass lone = made.trace().classes[0];
  lone.representative = {12, 0, 0};
  lone.single = true;
  lone.population = 1;
  made.trace().classes[0].population = 12;
  made.trace().classes[0].conditions.push_back({{1, 0, 0}, 0, 11, 1});
  lone.paths[0].runs.insert(lone.paths[0].runs.end() - 1, 800, Run{1, 3});
  lone.paths[0].instructions += 2400;
  for (WarpTrace& warp : lone.warps) {
    const std::vector<Access> once = warp.accesses;
    for (int i = 0; i < 800; ++i)
      warp.accesses.push_back(
          {once[0].base + (std::uint64_t{1} << 30) + static_cast<std::uint64_t>(i) * kLineBytes, once[0].pattern, 1});
  }
  made.trace().classes.push_back(lone);
  const TimingResult full = made.simulate(gpu, true), part = made.simulate(gpu, false, 7000);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method << " simulated "
                 << part.coverage.simulated_warp_instructions << " of " << full.coverage.simulated_warp_instructions);
  INFO("dram " << full.counters.memory.dram_read_bytes << " / " << part.counters.memory.dram_read_bytes);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.2);
  CHECK(error(part.counters.memory.dram_read_bytes, full.counters.memory.dram_read_bytes) < 0.02);
}

TEST_CASE("the same launch gives the same numbers twice, by any number of threads") {
  GpuModel gpu = sm_model(16);
  gpu.chip.tpcs_per_gpc = {5, 4, 4, 3};
  HandMadeTrace made = streaming_loop(20, 8, 40);
  for (const bool full : {true, false}) {
    const TimingResult a = made.simulate(gpu, full);
    for (const unsigned threads : {1u, 2u, 3u}) {
      const TimingResult b = made.simulate(gpu, full, 20000, threads);
      CHECK(a.elapsed_cycles == b.elapsed_cycles);
      CHECK(a.counters.stalls == b.counters.stalls);
      CHECK(a.instruction_stalls == b.instruction_stalls);
      CHECK(a.counters.memory.read_latency_cycles == b.counters.memory.read_latency_cycles);
      CHECK(a.spans.size() == b.spans.size());
    }
  }
}

TEST_CASE("windows see what blocks do later, and the interval says how far they differ") {
  // A third of the way at full rate, then half of it: the start sees none of that.
  const GpuModel gpu = sm_model(4);
  std::vector<Instruction> code(2400, plain(Pipe::Fma, 4));
  code.insert(code.end(), 5600, plain(Pipe::Xu, 4));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 8, 4);
  made.runs({{0, static_cast<std::uint32_t>(code.size())}});
  const TimingResult full = made.simulate(gpu, true);
  SimulateOptions options;
  options.detailed_instructions = 20000;
  options.effort.seconds = 0.6 * full.host_seconds;
  const TimingResult part = made.simulate(gpu, options);
  INFO("cycles " << full.elapsed_cycles << " / " << part.elapsed_cycles << " " << part.coverage.method << " "
                 << part.coverage.simulated_warp_instructions << " of " << full.coverage.simulated_warp_instructions);
  CHECK(part.coverage.simulated_warp_instructions < full.coverage.simulated_warp_instructions / 2);
  CHECK(error(part.elapsed_cycles, full.elapsed_cycles) < 0.25);
  CHECK(part.coverage.cycles_low < static_cast<double>(full.elapsed_cycles));
  CHECK(part.coverage.cycles_high > static_cast<double>(full.elapsed_cycles));
}

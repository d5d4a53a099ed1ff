// Blocks that begin in the middle of their ways.
#include "timing/skip/blocks_in_flight.h"

#include <catch2/catch.hpp>

#include "timing/sm/sm_test_support.h"
#include "timing/sm/timed_program.h"

using namespace forewarp;

namespace {

/// A warp adds and meets the others of its block, over and over; the second has twice as much to add between.
struct Launch {
  static constexpr std::uint32_t kTurns = 10, kFirst = 10, kSecond = 20;  ///< instructions of a turn, the barrier last

  explicit Launch(bool named = false) : made(code(), 2, 8), gpu(sm_model(2)) {
    KernelTrace& trace = made.trace();
    BlockClass& cls = trace.classes[0];
    cls.paths.assign(2, {});
    for (std::uint32_t w = 0; w < 2; ++w) {
      const std::uint32_t turn = w == 0 ? kFirst : kSecond;
      for (std::uint32_t i = 0; i < kTurns; ++i) cls.paths[w].runs.push_back({kSecond - turn, turn});
      cls.paths[w].runs.push_back({kSecond, 1});
      cls.paths[w].instructions = kTurns * turn + 1;
      cls.warps[w].path = w;
      for (std::uint32_t i = 0; i < kTurns; ++i)
        cls.warps[w].accesses.push_back(
            {BarrierArrival{static_cast<std::uint8_t>(named ? 1 : 0), 0, true}.packed(), 0, 0});
    }
    trace.patterns.push_back({});
    patterns.extend(trace.patterns);
    timing.resize(trace.patterns.size());
    program.emplace(*trace.kernel, gpu);
    classes.emplace(trace);
  }
  LaunchContext context() { return {gpu, made.trace(), *program, patterns, timing, *classes, 1, 2, 0}; }

  HandMadeTrace made;
  GpuModel gpu;
  std::optional<TimedProgram> program;
  CoalescedPatterns patterns;
  std::optional<ClassIndex> classes;
  std::vector<PatternTiming> timing;

 private:
  static std::vector<Instruction> code() {
    std::vector<Instruction> all(kSecond - 1, plain(Pipe::Fma, 4));
    Instruction barrier = plain(Pipe::None, 5);
    barrier.opcode = Opcode::BAR;
    barrier.modifiers.set(static_cast<std::size_t>(Modifier::SYNC));
    all.push_back(barrier);
    all.push_back(exit_instruction());
    return all;
  }
};

}  // namespace

TEST_CASE("a block is cut where all its warps have passed as many barriers") {
  Launch launch;
  const LaunchContext context = launch.context();
  REQUIRE(context.program[Launch::kSecond - 1].path == Path::Barrier);
  BlockCuts cuts(context);
  REQUIRE(cuts.possible());
  for (double done = 0; done < 1; done += 0.013) {
    const std::vector<std::uint64_t> behind = cuts.at(0, done, {});
    REQUIRE(behind.size() == 2);
    INFO(done);
    // Those in front of a barrier may wait there for the others.
    CHECK(behind[0] / Launch::kFirst <= (behind[1] + 1) / Launch::kSecond);
    CHECK(behind[1] / Launch::kSecond <= (behind[0] + 1) / Launch::kFirst);
    CHECK(behind[0] <= static_cast<std::uint64_t>(done * (Launch::kTurns * Launch::kFirst + 1)));
  }
  // A warp that is ahead is so by no more than it is to the next barrier.
  const std::vector<std::uint64_t> apart = cuts.at(0, 0.42, std::vector<double>{0.3, -0.02});
  CHECK(apart[1] == 80);
  CHECK(apart[0] == 49);
}

TEST_CASE("blocks that begin in the middle end, and do no more than what is left of them") {
  Launch launch;
  const LaunchContext context = launch.context();
  BlockCuts cuts(context);
  std::vector<BlockUnderWay> blocks;
  std::uint64_t left = 0;
  for (std::uint16_t sm = 0; sm < 2; ++sm) {
    blocks.push_back({sm, sm, cuts.at(0, 0.25 + 0.5 * sm, {})});
    left += Launch::kTurns * (Launch::kFirst + Launch::kSecond) + 2 - blocks.back().behind[0] - blocks.back().behind[1];
  }
  const MemorySystem before(launch.gpu, MemorySystem::L2Start::Empty);
  Gpu alone(context, &before, 1, {8, 8, 0, blocks});
  CHECK(alone.run(~std::uint64_t{0}, kNever - 1));
  CHECK(alone.issued() == left);
  // The next blocks follow on the SMs that they leave.
  Gpu all(context, &before, 1, {2, 8, 0, blocks});
  CHECK(all.run(~std::uint64_t{0}, kNever - 1));
  CHECK(all.issued() == left + 6 * (Launch::kTurns * (Launch::kFirst + Launch::kSecond) + 2));
}

TEST_CASE("blocks that meet at barriers with numbers begin at their start alone") {
  Launch launch(true);
  const LaunchContext context = launch.context();
  CHECK_FALSE(BlockCuts(context).possible());
}

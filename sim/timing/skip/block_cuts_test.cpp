// Blocks that begin in the middle of their ways.
#include "timing/skip/block_cuts.h"

#include <catch2/catch.hpp>
#include <random>

#include "timing/gpu/gpu.h"
#include "timing/sm/sm_test_support.h"
#include "timing/sm/timed_program.h"

using namespace forewarp;

namespace {

using Action = PhaseRecord::Action;

struct Launch {
  explicit Launch(HandMadeTrace trace) : made(std::move(trace)), gpu(model_with_boxes(2)) {
    patterns.extend(made.trace().patterns);
    timing.resize(made.trace().patterns.size());
    program.emplace(made.kernel(), gpu);
    classes.emplace(made.trace());
  }
  LaunchContext context() {
    const auto warps = static_cast<int>(cls().warps.size());
    return {gpu, made.trace(), *program, patterns, timing, *classes, 1, warps, 0};
  }
  const BlockClass& cls() { return made.trace().classes[0]; }
  std::uint64_t instructions() {
    std::uint64_t all = 0;
    for (const WarpTrace& warp : cls().warps) all += cls().paths[warp.path].instructions;
    return all;
  }
  std::uint64_t left(const BlockState& state) {
    std::uint64_t left = instructions();
    for (const std::uint64_t behind : state.behind) left -= behind;
    return left;
  }

  HandMadeTrace made;
  GpuModel gpu;
  std::optional<TimedProgram> program;
  CoalescedPatterns patterns;
  std::optional<ClassIndex> classes;
  std::vector<PatternTiming> timing;
};

std::vector<Run> turns(std::uint32_t before, Run turn, int times, std::uint32_t last) {
  std::vector<Run> runs;
  if (before > 0) runs.push_back({0, before});
  for (int i = 0; i < times; ++i) runs.push_back(turn);
  runs.push_back({last, 1});
  return runs;
}

Instruction meet(bool waits = true) {
  Instruction barrier = plain(Pipe::None, 5);
  barrier.opcode = Opcode::BAR;
  barrier.modifiers.set(static_cast<std::size_t>(waits ? Modifier::SYNC : Modifier::ARV));
  return barrier;
}

constexpr std::uint32_t kTurns = 10, kFirst = 10, kSecond = 20;  // instructions of a turn, the barrier last

/// A warp adds and meets the other of its block, over and over; the second has twice as much to add between.
HandMadeTrace side_by_side() {
  std::vector<Instruction> code(kSecond - 1, plain(Pipe::Fma, 4));
  code.push_back(meet());
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 2, 8);
  for (int w = 0; w < 2; ++w) {
    const std::uint32_t turn = w == 0 ? kFirst : kSecond;
    made.runs_of(w, turns(0, {kSecond - turn, turn}, kTurns, kSecond));
    for (std::uint32_t i = 0; i < kTurns; ++i) made.arrive(w, {0, 0, true});
  }
  return made;
}

/// The first warp fills and arrives at barrier 1 without waiting there, the second empties and arrives at barrier 2,
/// one turn apart. A third leaves at once.
HandMadeTrace named_barriers() {
  const Instruction add = plain(Pipe::Fma, 4);
  HandMadeTrace made({meet(false), meet(), add, add, meet(false), exit_instruction()}, 3, 8);
  made.runs_of(0, turns(0, {1, 4}, kTurns, 5));
  made.runs_of(1, turns(1, {1, 4}, kTurns, 5));
  made.runs_of(2, {{5, 1}});
  made.arrive(1, {2, 64, true});
  for (std::uint32_t i = 0; i < kTurns; ++i) {
    made.arrive(0, {2, 64, true}).arrive(0, {1, 64, true});
    made.arrive(1, {1, 64, true}).arrive(1, {2, 64, true});
  }
  return made;
}

/// A warp has boxes copied into a ring of stages for the warps of a group that follow it.
HandMadeTrace ring() {
  constexpr std::uint32_t kStages = 3;
  Instruction group = plain(Pipe::None, 1);
  group.opcode = Opcode::WARPGROUP;
  const Instruction add = plain(Pipe::Fma, 4);
  std::vector<Instruction> code(2 * kStages, phase());
  code.insert(code.end(),
              {meet(), phase(1), waiting(phase(), 1), box_copy(), exit_instruction(),         // 6: to fill
               meet(), phase(1), waiting(add, 1), group, add, phase(), exit_instruction()});  // 11: to empty
  constexpr std::uint32_t kFill = 2 * kStages, kEmpty = kFill + 5;
  HandMadeTrace made(code, 5, 8);
  const auto barrier = [](Action action, std::uint32_t stage, bool full, std::uint32_t arrivals) {
    return PhaseRecord{.action = action, .barrier = 8 * (stage + (full ? kStages : 0)), .arrivals = arrivals};
  };
  for (int w = 0; w < 5; ++w) {
    const bool fills = w == 4;
    std::vector<Run> runs;
    if (w == 0) runs.push_back({0, kFill});
    runs.push_back({fills ? kFill : kEmpty, 1});
    if (w == 0)
      for (std::uint32_t b = 0; b < 2 * kStages; ++b)
        made.phase(w, barrier(Action::Init, b % kStages, b >= kStages, b >= kStages ? 1 : 4));
    made.arrive(w, {0, 0, true});
    for (std::uint32_t i = 0; i < kTurns; ++i) {
      runs.push_back({fills ? kFill + 1 : kEmpty + 1, fills ? 3u : 5u});
      PhaseRecord await = barrier(Action::Await, i % kStages, !fills, 0);
      await.phase = i / kStages + (fills ? 0 : 1);
      made.phase(w, await);
      PhaseRecord arrive = barrier(Action::Arrive, i % kStages, fills, 1);
      arrive.bytes = fills ? 8 * kLineBytes : 0;
      made.phase(w, arrive);
      if (fills) made.box(w, (1 << 20) + i * 8 * kLineBytes, arrive.barrier);
    }
    runs.push_back({fills ? kFill + 4 : kEmpty + 6, 1});
    made.runs_of(w, runs);
  }
  return made;
}

}  // namespace

TEST_CASE("a block is cut where all its warps have passed as many barriers") {
  Launch launch(side_by_side());
  const LaunchContext context = launch.context();
  REQUIRE(context.program[kSecond - 1].path == Path::Barrier);
  BlockCuts cuts(context);
  for (double done = 0; done < 1; done += 0.013) {
    const std::vector<std::uint64_t> behind = cuts.at(0, done, {}).behind;
    REQUIRE(behind.size() == 2);
    INFO(done);
    // Those in front of a barrier may wait there for the others.
    CHECK(behind[0] / kFirst <= (behind[1] + 1) / kSecond);
    CHECK(behind[1] / kSecond <= (behind[0] + 1) / kFirst);
    CHECK(behind[0] <= static_cast<std::uint64_t>(done * (kTurns * kFirst + 1)));
  }
  // A warp that is ahead is so by no more than it is to the next barrier.
  const std::vector<std::uint64_t> apart = cuts.at(0, 0.42, std::vector<double>{0.3, -0.02}).behind;
  CHECK(apart[1] == 80);
  CHECK(apart[0] == 49);
}

TEST_CASE("what warps have arrived at and do not wait for is there when their block begins") {
  Launch launch(named_barriers());
  const LaunchContext context = launch.context();
  BlockCuts cuts(context);
  // The first has filled twice and waits for the second, which has emptied once and is about to again.
  const BlockState state = cuts.at(0, 0.25, std::vector<double>{0, -0.13, 0.5});
  CHECK(state.behind == std::vector<std::uint64_t>{8, 5, 0});
  CHECK(state.barriers[1].arrived == 1);
  CHECK(state.barriers[1].warps == 2);
  CHECK(state.barriers[2].arrived == 0);
}

TEST_CASE("phases of barriers in shared memory are over when what they lack has come") {
  Launch launch(ring());
  const LaunchContext context = launch.context();
  BlockCuts cuts(context);
  const BlockState state = cuts.at(0, 0.4, {});
  // Three stages have been filled and emptied. The first lacks its next box, for which the group waits.
  CHECK(state.behind == std::vector<std::uint64_t>{22, 16, 16, 16, 12});
  for (std::uint32_t barrier = 0; barrier < 6 * 8; barrier += 8) CHECK(state.phases.completed(barrier) == 1);
}

TEST_CASE("blocks that begin in the middle end, and do no more than what is left of them") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> anywhere(0, 1), apart(-0.3, 0.3);
  for (HandMadeTrace made : {side_by_side(), named_barriers(), ring()}) {
    Launch launch(std::move(made));
    const LaunchContext context = launch.context();
    BlockCuts cuts(context);
    const MemorySystem before(launch.gpu, MemorySystem::L2Start::Empty);
    for (int turn = 0; turn < 100; ++turn) {
      std::vector<BlockUnderWay> blocks;
      std::uint64_t left = 0;
      for (std::uint16_t sm = 0; sm < 2; ++sm) {
        std::vector<double> leads;
        for (std::size_t w = 0; w < launch.cls().warps.size(); ++w) leads.push_back(apart(random));
        blocks.push_back({sm, sm, cuts.at(0, anywhere(random), leads)});
        left += launch.left(blocks.back().state);
      }
      Gpu alone(context, &before, 1, {8, 8, 0, blocks});
      REQUIRE(alone.run(~std::uint64_t{0}, kNever - 1));
      CHECK(alone.issued() == left);
      // The next blocks follow on the SMs that they leave.
      Gpu all(context, &before, 1, {2, 8, 0, blocks});
      REQUIRE(all.run(~std::uint64_t{0}, kNever - 1));
      CHECK(all.issued() == left + 6 * launch.instructions());
    }
  }
}

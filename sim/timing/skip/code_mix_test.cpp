// Which code a launch executes as time passes.
#include "timing/skip/code_mix.h"

#include <array>
#include <catch2/catch.hpp>

#include "timing/sm/sm_test_support.h"
#include "timing/sm/timed_program.h"

using namespace forewarp;

namespace {

constexpr std::uint32_t kTurns = 10, kBody = 64;

/// Two warps add for ten turns, then load for as many, and exit.
HandMadeTrace two_loops() {
  std::vector<Instruction> code(kBody, plain(Pipe::Fma, 4));
  code.insert(code.end(), kBody, memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 2, 8);
  for (int w = 0; w < 2; ++w) {
    std::vector<Run> runs(kTurns, {0, kBody});
    runs.insert(runs.end(), kTurns, {kBody, kBody});
    runs.push_back({2 * kBody, 1});
    made.runs_of(w, runs);
    for (std::uint32_t i = 0; i < kTurns * kBody; ++i) made.access(w, 1 << 20, 4, MemorySpace::Global);
  }
  return made;
}

CodeMix mix_of(std::initializer_list<std::pair<int, double>> parts) {
  CodeMix mix = CodeMix::Zero();
  for (const auto& [part, executed] : parts) mix[part] = executed;
  return mix;
}

}  // namespace

TEST_CASE("mixes are apart by the share that is other code, however much is executed") {
  const CodeMix one = mix_of({{0, 10}, {5, 30}}), other = mix_of({{5, 1}, {7, 3}});
  CHECK(apart(one, one) == 0);
  CHECK(apart(one, 7 * one) == Approx(0).margin(1e-12));
  CHECK(apart(one, mix_of({{9, 100}})) == Approx(1));
  CHECK(apart(one, other) == Approx(0.75));
  CHECK(apart(one, other) == apart(other, one));
}

TEST_CASE("what a stretch of a schedule executes is what its blocks do on that part of their ways") {
  HandMadeTrace made = two_loops();
  const GpuModel gpu = sm_model(1);
  CoalescedPatterns patterns;
  const std::vector<PatternTiming> timing;
  const TimedProgram program(made.kernel(), gpu);
  const ClassIndex classes(made.trace());
  const LaunchContext context{gpu, made.trace(), program, patterns, timing, classes, 1, 2, 0};
  CodeOfBlocks code(context);
  // One block in 1000 cycles, and half of another meanwhile.
  const std::vector<RestPart> parts{{0, 0, 1, 0, 1000, 0}, {1, 0.5, 1, 0, 1000, 1}};
  const std::vector<CodeMix> mixes = code.executed(parts, std::array{0.0, 500.0, 900.0}, 500);
  const double adds = 2.0 * kTurns * kBody, all = (mixes[0] + mixes[1]).sum();
  const int add = static_cast<int>(Pipe::Fma);
  // The first has half of one block, all adds, and a fourth of the other, which is in its second half.
  CHECK(mixes[0][add] == Approx(adds).epsilon(0.002));
  CHECK(mixes[1][add] == Approx(0).margin(0.002 * adds));
  const double loads = all - adds;  // of one block and a half
  CHECK(mixes[0].sum() - mixes[0][add] == Approx(loads / 4).epsilon(0.03));
  CHECK(mixes[1].sum() == Approx(loads * 3 / 4).epsilon(0.03));
  CHECK(mixes[2].sum() == Approx(loads * 3 / 20).epsilon(0.03));  // nothing comes after the end
  // A stretch as short as a 250th of a way still tells what it executes, right beside where the loops meet.
  const std::vector<CodeMix> brief = code.executed(std::span(parts).first(1), std::array{495.0, 502.0}, 4);
  CHECK(brief[0][add] > 0.99 * brief[0].sum());
  CHECK(brief[1][add] < 0.01 * brief[1].sum());
  // A load asks for a sector for each of its two lanes' lines.
  const double passes = 1 + static_cast<double>(made.trace().totals()[kBody].sectors) / (8 * 2 * kTurns);
  CHECK(loads == Approx(2 * adds * passes).epsilon(0.03));
  // What was issued so far counts alike.
  std::vector<StallCycles> issued(program.size());
  issued[3][static_cast<std::size_t>(Stall::Selected)] = 7;
  issued[kBody][static_cast<std::size_t>(Stall::Selected)] = 2;
  issued[kBody][static_cast<std::size_t>(Stall::Wait)] = 50;
  const CodeMix so_far = code.issued(issued);
  CHECK(so_far[add] == 7);
  CHECK(so_far.sum() == Approx(7 + 2 * passes));
}

TEST_CASE("two stretches stand for all: one of each kind, or those in the middles of the halves") {
  const CodeMix loop = mix_of({{1, 100}}), store = mix_of({{60, 100}});
  std::vector<CodeMix> mixes(20, loop);
  CHECK(two_for_all(mixes) == std::pair<std::size_t, std::size_t>{4, 14});
  for (const std::size_t i : {8, 9, 10}) mixes[i] = store;
  const auto [one, other] = two_for_all(mixes);
  CHECK((one == 9) != (other == 9));
  CHECK(apart(mixes[one], mixes[other]) == Approx(1));
}

#include "timing/skip/loop_bodies.h"

#include <catch2/catch.hpp>

#include "timing/gpu/gpu.h"
#include "timing/sm/sm_test_support.h"
#include "timing/sm/timed_program.h"

namespace forewarp {
namespace {

TEST_CASE("Two times are as unlike as what one of them does and the other does not") {
  CHECK(unlikeness(BodyVector{1, 1, 2}, BodyVector{10, 10, 20}) == 0);
  CHECK(unlikeness(BodyVector{3, 1, 0}, BodyVector{3, 0, 1}) == Approx(0.25));
  CHECK(unlikeness(BodyVector{1, 0}, BodyVector{0, 5}) == 1);
  CHECK(unlikeness(BodyVector{0, 0}, BodyVector{1, 5}) == 1);
}

TEST_CASE("The time that did most nearly what is left is found, of equal ones the longest") {
  // Forty of the first body were done, ten at a time, then twenty of the second, of which a hundred are left.
  std::vector<BodyVector> left;
  for (const double first : {40, 30, 20, 10, 0}) left.push_back({first, 120});
  left.push_back({0, 110});
  CHECK(most_alike(left, BodyVector{0, 100}) == 4);
  // Where as much of the first is left as of the second: blocks that are still to come go through both.
  for (BodyVector& then : left) then[0] += 100;
  CHECK(most_alike(left, BodyVector{100, 100}) == 2);
  for (BodyVector& then : left) then[0] += 100;
  CHECK(most_alike(left, BodyVector{200, 100}) == 0);
}

TEST_CASE("What follows a block's last loop counts apart from the loop") {
  constexpr std::uint32_t kIterations = 50, kBody = 3, kEnd = 200, kBlocks = 2;
  Instruction branch = plain(Pipe::Cbu, 5);
  branch.opcode = Opcode::BRA;
  std::vector<Instruction> code{plain(Pipe::Fma, 4), plain(Pipe::Fma, 4), branch};
  code.insert(code.end(), kEnd - 1, plain(Pipe::Fma, 4));
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 1, kBlocks);
  std::vector<Run> runs(kIterations, {0, kBody});
  runs.push_back({kBody, kEnd});
  made.runs(runs);
  const GpuModel model = sm_model();
  const TimedProgram program(*made.trace().kernel, model);
  CoalescedPatterns patterns;
  patterns.extend(made.trace().patterns);
  const ClassIndex classes(made.trace());
  const std::vector<PatternTiming> timing(made.trace().patterns.size());
  const LaunchContext context{model, made.trace(), program, patterns, timing, classes, 1, 1, 0};
  const Loops loops = find_loops(made.trace(), program);
  Gpu gpu(context, nullptr, 1, {0, kBlocks});
  LoopBodies bodies(context, loops);
  CHECK(bodies.left(gpu) == BodyVector{kBlocks * kIterations * kBody, kBlocks * kEnd, 0});
  // Blocks run one after the other: while the second is at its end, nothing is left of the loop.
  BodyVector left;
  do {
    REQUIRE_FALSE(gpu.run(~std::uint64_t{0}, gpu.now() + 1));
    gpu.advance_to(gpu.now() + 1);
    left = bodies.left(gpu);
  } while (left[0] > 0);
  CHECK(left[1] == kEnd);
  CHECK(bodies.share_in_flight(gpu) == 1);
}

}  // namespace
}  // namespace forewarp

// Blocks that wait for one another: barriers of the grid, locks, and what never ends.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "base/error.h"
#include "emulation/emulation.h"
#include "emulation/launch_example.h"

using namespace forewarp;

namespace {

constexpr std::uint32_t kBlocks = 50;

// Thread 0 of each block adds one to the first word and waits until all have; then every block adds the count that it
// finds, as many times as there are steps.
const std::string kBarrier = test::kStart + R"(
    MOV R8, c[0x0][0x160]
    MOV R9, c[0x0][0x164]
    MOV R12, c[0x0][0x168]
    MOV R13, c[0x0][0x16c]
    MOV R14, 0x1
    MOV R20, RZ
step:
    BAR.SYNC 0x0
    ISETP.NE.AND P1, PT, R0, RZ, PT
    @P1 BRA $others
    IADD3 R20, R20, 0x32, RZ
    RED.E.ADD.STRONG.GPU [R8.64], R14
again:
    LDG.E.STRONG.SYS R10, [R8.64]
    ISETP.LT.U32.AND P0, PT, R10, R20, PT
    @P0 BRA $again
    LDG.E.STRONG.SYS R11, [R8.64]
    RED.E.ADD.STRONG.GPU [R12.64], R11
others:
    BAR.SYNC 0x0
    IADD3 R6, R6, 0x1, RZ
    ISETP.LT.AND P2, PT, R6, 0x4, PT
    @P2 BRA $step
    EXIT
)";

// Every warp takes a lock, adds one to what it guards and gives it back.
const std::string kLock = test::kStart + R"(
    MOV R8, c[0x0][0x160]
    MOV R9, c[0x0][0x164]
    MOV R12, c[0x0][0x168]
    MOV R13, c[0x0][0x16c]
    MOV R14, RZ
    MOV R15, 0x1
    LOP3.LUT R6, R0, 0x1f, RZ, 0xc0, !PT
    ISETP.NE.AND P1, PT, R6, RZ, PT
    @P1 EXIT
    MOV R7, RZ
round:
again:
    ATOMG.E.CAS.STRONG.GPU PT, R10, [R8], R14, R15
    ISETP.NE.AND P0, PT, R10, RZ, PT
    @P0 BRA $again
    LDG.E.STRONG.SYS R11, [R12.64]
    IADD3 R11, R11, 0x1, RZ
    STG.E.STRONG.SYS [R12.64], R11
    ATOMG.E.EXCH.STRONG.GPU PT, RZ, [R8.64], RZ
    IADD3 R7, R7, 0x1, RZ
    ISETP.LT.AND P0, PT, R7, 0x20, PT
    @P0 BRA $round
    EXIT
)";

// Waits for what nobody writes.
const std::string kForEver = test::kStart + R"(
    MOV R8, c[0x0][0x160]
    MOV R9, c[0x0][0x164]
again:
    LDG.E.STRONG.SYS R10, [R8.64]
    ISETP.EQ.AND P0, PT, R10, RZ, PT
    @P0 BRA $again
    EXIT
)";

test::Example example(const std::string& code) {
  test::Example made(code, {kBlocks, 1, 1});
  for (Buffer& buffer : made.item.buffers) buffer.fill = FillZero{};
  return made;
}

std::uint32_t word(const EmulatedCase& done, std::size_t buffer) {
  std::uint32_t value = 0;
  std::memcpy(&value, done.buffers[buffer].data(), sizeof value);
  return value;
}

std::uint64_t executed(const KernelTrace& trace, Opcode opcode) {
  const std::vector<InstructionCount> totals = trace.totals();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < totals.size(); ++i)
    if (trace.kernel->instructions[i].opcode == opcode) sum += totals[i].executed;
  return sum;
}

}  // namespace

TEST_CASE("blocks wait at a barrier of the grid until all are there", "[meeting]") {
  const test::Example made = example(kBarrier);
  const EmulatedCase done = emulate_values(made.program, made.item, {});
  CHECK(word(done, 0) == 4 * kBlocks);
  // Nobody leaves a barrier before all have come to it.
  CHECK(word(done, 1) >= (1 + 2 + 3 + 4) * kBlocks * kBlocks);
  const auto trace = trace_launch(made.program, made.item, 0, {});
  CHECK(trace->launch.blocks_wait);
  CHECK(trace->launch.side_by_side == kBlocks);
  CHECK(trace->classes.size() == kBlocks);
  CHECK(executed(*trace, Opcode::RED) == 4 * 2 * kBlocks);
  // Blocks that are alike get there together: each asks a few times, not until its turn ends.
  CHECK(executed(*trace, Opcode::LDG) >= 4 * 2 * kBlocks);
  CHECK(executed(*trace, Opcode::LDG) < 4 * 16 * kBlocks);
  CHECK(trace_launch(made.program, made.item, 0, {})->totals() == trace->totals());
}

TEST_CASE("a lock lets one warp in at a time", "[meeting]") {
  const test::Example made = example(kLock);
  const EmulatedCase done = emulate_values(made.program, made.item, {});
  CHECK(word(done, 0) == 0);
  CHECK(word(done, 1) == 32 * 2 * kBlocks);
  const auto trace = trace_launch(made.program, made.item, 0, {});
  CHECK(executed(*trace, Opcode::STG) == 32 * 2 * kBlocks);
}

TEST_CASE("blocks that wait for ever are stopped, and it is said where", "[meeting]") {
  const test::Example made = example(kForEver);
  TraceOptions options;
  options.traced_instructions = 1'000'000;
  options.emulation.instruction_limit = 1'000'000;
  CHECK_THROWS_WITH(trace_launch(made.program, made.item, 0, options),
                    Catch::Contains("wait for one another") && Catch::Contains("LDG.E.STRONG.SYS"));
  CHECK_THROWS_WITH(emulate_values(made.program, made.item, options.emulation),
                    Catch::Contains("wait for one another"));
}

TEST_CASE("the workspace of cooperative launches is there, and zero at first", "[meeting]") {
  const test::Example made = example(test::kStart + R"(
    MOV R8, c[0x0][0x90]
    MOV R9, c[0x0][0x8c]
    LDG.E.STRONG.GPU R10, [R8.64+0x4]
    MOV R12, c[0x0][0x168]
    MOV R13, c[0x0][0x16c]
    IADD3 R10, R10, 0x7, RZ
    STG.E [R12.64], R10
    EXIT
)");
  CHECK(word(emulate_values(made.program, made.item, {}), 1) == 7);
}

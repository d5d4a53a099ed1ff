// How the block index travels through a program: each example is traced by classes and block by block, which must
// agree, and needs no more classes than it should.
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "emulation/classes/classes_support.h"
#include "emulation/emulation.h"
#include "emulation/launch_example.h"

using namespace forewarp;
using forewarp::test::Example;
using forewarp::test::kStart;

namespace {

/// Traces both ways, compares, and gives the number of classes.
std::size_t classes_of(const std::string& source, const Dim3& grid, const Dim3& block = {64, 1, 1},
                       const TraceOptions& options = {}) {
  const Example example(source, grid, block);
  TraceOptions each;
  each.block_classes = false;
  each.all_values = true;
  const auto truth = trace_launch(example.program, example.item, 0, each);
  const auto trace = trace_launch(example.program, example.item, 0, options);
  INFO(source);
  CHECK(test::wrong_blocks(*trace, *truth) == 0);
  CHECK(test::population(*trace) == grid.count());
  return trace->classes.size();
}

/// Numbers below what each call asks for, the same in every run.
auto numbers_from(std::uint32_t state) {
  return [state](std::uint32_t n) mutable {
    state = state * 1664525u + 1013904223u;
    return static_cast<std::uint32_t>(std::uint64_t{state} * n >> 32);
  };
}

// Loads and stores a word at R6.
const std::string kAccess = R"(
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    STG.E [R8.64+0x40], R10
    EXIT
)";

}  // namespace

TEST_CASE("linear addresses make one class", "[shadow]") {
  CHECK(classes_of(kStart + "IMAD R6, R3, c[0x0][0x0], R0" + kAccess, {37, 1, 1}) == 1);
  CHECK(classes_of(kStart + "LEA R6, R3, R0, 0x6\nIMAD R7, R4, 0x4000, RZ\nIADD3 R6, R6, R7, 0x20" + kAccess,
                   {9, 5, 1}) == 1);
  // Downwards, and through a subtraction.
  CHECK(classes_of(kStart + "IMAD R6, R3, -0x40, R0\nIADD3 R6, R6, 0x4000, RZ" + kAccess, {20, 1, 1}) == 1);
  // Uniform registers.
  CHECK(classes_of("S2UR UR4, SR_CTAID.X\nUIMAD UR4, UR4, 0x40, URZ\n" + kStart + "IADD3 R6, R0, UR4, RZ" + kAccess,
                   {20, 1, 1}) == 1);
}

TEST_CASE("64-bit address arithmetic keeps its slope", "[shadow]") {
  const std::string tail = "LDG.E R10, [R8.64]\nEXIT";
  CHECK(classes_of(kStart +
                       "LEA R6, R3, R0, 0x8\nLEA R8, P0, R6, c[0x0][0x160], 0x2\nLEA.HI.X.SX32 R9, R6, c[0x0][0x164], "
                       "0x2, P0\n" +
                       tail,
                   {11, 1, 1}) == 1);
  CHECK(classes_of(kStart +
                       "IMAD.WIDE R6, R3, 0x400, RZ\nIADD3 R8, P0, R6, c[0x0][0x160], RZ\nIADD3.X R9, R7, "
                       "c[0x0][0x164], RZ, P0, !PT\n" +
                       tail,
                   {11, 1, 1}) == 1);
  CHECK(classes_of(kStart +
                       "SHF.L.U32 R6, R3, 0x9, RZ\nSHF.R.S32.HI R7, RZ, 0x1f, R6\nSHF.L.U64.HI R12, R6, 0x2, "
                       "R7\nSHF.L.U32 R13, R6, 0x2, RZ\n"
                       "IADD3 R8, P0, P1, R13, c[0x0][0x160], R0\nIADD3.X R9, R12, c[0x0][0x164], RZ, P0, P1\nLOP3.LUT "
                       "R8, R8, 0xfffffffc, RZ, 0xc0, !PT\n" +
                       tail,
                   {11, 1, 1}) == 1);
  CHECK(classes_of(kStart +
                       "IMAD R6, R3, 0x80, RZ\nIMAD.WIDE.U32 R8, R6, 0x4, RZ\nIADD3 R8, P0, R8, c[0x0][0x160], "
                       "RZ\nIMAD.X R9, R9, 0x1, RZ, P0\n"
                       "IADD3 R9, R9, c[0x0][0x164], RZ\n" +
                       tail,
                   {11, 1, 1}) == 1);
}

TEST_CASE("misaligned steps give a class a residue", "[shadow]") {
  // 60 bytes a block: residues repeat after 32 blocks.
  CHECK(classes_of(kStart + "IMAD R6, R3, 0xf, R0" + kAccess, {100, 1, 1}) == 32);
  CHECK(classes_of(kStart + "IMAD R6, R3, 0x10, R0" + kAccess, {100, 1, 1}) == 2);
}

TEST_CASE("bounds split the grid into its edges", "[shadow]") {
  const std::string guarded = kStart + R"(
    LEA R6, R3, R0, 0x6
    ISETP.GE.AND P0, PT, R6, 0x3e8, PT
    @P0 EXIT
)" + kAccess;
  CHECK(classes_of(guarded, {16, 1, 1}) == 2);  // 15 whole blocks and one of 40 threads
  CHECK(classes_of(guarded, {20, 1, 1}) == 3);  // and some that do nothing
  const std::string both = kStart + R"(
    LEA R6, R3, R0, 0x6
    LEA R7, R4, R0, 0x6
    ISETP.GE.AND P0, PT, R6, 0x12c, PT
    ISETP.GE.OR P0, PT, R7, 0x12c, P0
    @P0 EXIT
    IMAD R6, R7, 0x400, R6
)" + kAccess;
  CHECK(classes_of(both, {5, 5, 1}) == 3);
  // A comparison whose outcome a flag of the launch makes moot.
  const auto flagged = [](const std::string& flag, const std::string& joined) {
    return kStart + "MOV R6, " + flag + "\nISETP.NE.AND P0, PT, R6, RZ, PT\nISETP.LT." + joined +
           " P0, PT, R3, 0x9, P0\nSEL R7, R3, 0x5, P0\nISETP.GT.AND P1, PT, R7, 0x3, PT\n@!P1 EXIT\nLEA R6, R3, R0, "
           "0x6" +
           kAccess;
  };
  CHECK(classes_of(flagged("RZ", "AND"), {12, 1, 1}) == 1);
  CHECK(classes_of(flagged("0x1", "AND"), {12, 1, 1}) == 3);
  CHECK(classes_of(flagged("0x1", "OR"), {12, 1, 1}) == 2);
  CHECK(classes_of(flagged("RZ", "OR"), {12, 1, 1}) == 3);
  // ... and one that is joined with the flag later, or never asked for.
  const auto joined = [](const std::string& flag) {
    return kStart + "MOV R6, " + flag + "\nISETP.LT.AND P0, PT, R3, 0x9, PT\nISETP.EQ.OR P0, PT, R6, RZ, !P0\n" +
           "@P0 EXIT\nLEA R6, R3, R0, 0x6" + kAccess;
  };
  CHECK(classes_of(joined("RZ"), {12, 1, 1}) == 1);
  CHECK(classes_of(kStart +
                       "MOV R6, 0x1\nISETP.LT.AND P0, PT, R3, 0x9, PT\nISETP.EQ.OR P0, PT, R6, RZ, P0\n"
                       "ISETP.EQ.AND P0, PT, R6, 0x1, P0\n@P0 EXIT\nLEA R6, R3, R0, 0x6" +
                       kAccess,
                   {12, 1, 1}) == 2);
  CHECK(classes_of(joined("0x1"), {12, 1, 1}) == 2);
  CHECK(classes_of(kStart + "ISETP.LT.AND P0, PT, R3, 0x9, PT\nISETP.LT.AND P0, PT, R0, 0x9, PT\n@P0 EXIT\n" +
                       "LEA R6, R3, R0, 0x6" + kAccess,
                   {12, 1, 1}) == 1);
  // By a predicate that others read.
  CHECK(classes_of(kStart + "ISETP.LT.AND P0, PT, R3, 0x9, PT\nP2R R6, PR, RZ, 0x1\nLEA R6, R6, R0, 0x6" + kAccess,
                   {12, 1, 1}) == 2);
  CHECK(classes_of(kStart + "ISETP.LT.AND P0, PT, R3, 0x9, PT\nSEL R6, R0, 0x5, P0\nLEA R6, R3, R6, 0x6" + kAccess,
                   {12, 1, 1}) == 2);
  CHECK(classes_of(kStart +
                       "ISETP.LT.AND P0, PT, R3, 0x9, PT\nPLOP3.LUT P0, PT, P0, PT, PT, 0x8, 0x0\n@P0 EXIT\n"
                       "LEA R6, R3, R0, 0x6" +
                       kAccess,
                   {12, 1, 1}) == 2);
  CHECK(classes_of(kStart +
                       "ISETP.LT.AND P0, PT, R3, 0x9, PT\nVOTE.ANY R6, PT, P0\nLOP3.LUT R6, R6, 0x1, RZ, 0xc0, "
                       "!PT\nLEA R6, R6, R0, 0x6" +
                       kAccess,
                   {12, 1, 1}) == 2);
  CHECK(classes_of(
            kStart + "ISETP.LT.AND P1, PT, R3, 0x9, PT\n@PT BRA !P1, $over\nEXIT\nover:\nLEA R6, R3, R0, 0x6" + kAccess,
            {12, 1, 1}) == 2);
  // ... in some lanes only.
  CHECK(classes_of(kStart +
                       "ISETP.LT.AND P0, PT, R0, 0x10, PT\nIMAD R6, R3, 0x4, R0\n"
                       "ISETP.LT.AND P0, PT, R6, 0x18, P0\n@P0 EXIT\nLEA R6, R3, R0, 0x6" +
                       kAccess,
                   {20, 1, 1}) == 5);
  // The unsigned trick: (unsigned)(row - 1) < 4.
  CHECK(classes_of(kStart +
                       "IADD3 R7, R3, -0x1, RZ\nISETP.LT.U32.AND P0, PT, R7, 0x4, PT\n@!P0 EXIT\nLEA R6, R3, R0, 0x6" +
                       kAccess,
                   {9, 1, 1}) <= 3);
  // Minimum of a linear value and a bound steers a loop: one class for each length.
  CHECK(classes_of(kStart + R"(
    IADD3 R6, R3, 0x1, RZ
    IMNMX R6, R6, 0x5, PT
    MOV R7, RZ
  loop:
    IADD3 R7, R7, 0x1, RZ
    ISETP.LT.AND P0, PT, R7, R6, PT
    @P0 BRA $loop
    LEA R6, R3, R0, 0x6
)" + kAccess,
                   {12, 1, 1}) <= 6);
}

TEST_CASE("swizzled block indices", "[shadow]") {
  // x & 7 and x >> 3 steer the address: the first is a residue, the second is not followed.
  const std::size_t classes = classes_of(kStart + R"(
    LOP3.LUT R7, R3, 0x7, RZ, 0xc0, !PT
    LEA R6, R7, R0, 0x6
)" + kAccess,
                                         {64, 1, 1});
  CHECK(classes == 8);
  CHECK(classes_of(kStart + "SHF.R.U32.HI R7, RZ, 0x3, R3\nLEA R6, R7, R0, 0x6" + kAccess, {20, 1, 1}) <= 20);
  // (x * 256 + t) / 32 and % 32: multiples pass through the shift and the mask.
  CHECK(classes_of(kStart + R"(
    LEA R7, R3, R0, 0x8
    SHF.R.U32.HI R6, RZ, 0x5, R7
    LOP3.LUT R7, R7, 0x1f, RZ, 0xc0, !PT
    LEA R6, R6, R7, 0x5
)" + kAccess,
                   {16, 1, 1}) == 1);
  // Signed remainder by 4, as the compiler writes it.
  CHECK(classes_of(kStart + R"(
    LEA R6, R3, R0, 0x6
    SHF.R.S32.HI R7, RZ, 0x1f, R6
    LEA.HI R7, R7, R6, RZ, 0x2
    LOP3.LUT R7, R7, 0xfffffffc, RZ, 0xc0, !PT
    IADD3 R7, R6, -R7, RZ
    ISETP.EQ.AND P0, PT, R7, 0x2, PT
    @P0 EXIT
)" + kAccess,
                   {30, 1, 1}) == 1);
  // Bit fields put together.
  CHECK(classes_of(kStart + "SHF.L.U32 R7, R3, 0x6, RZ\nLOP3.LUT R6, R7, 0xffffffc0, R0, 0xe2, !PT" + kAccess,
                   {30, 1, 1}) == 1);
  CHECK(classes_of(kStart + "PRMT R6, R3, 0x2104, R0" + kAccess, {30, 1, 1}) == 1);
}

TEST_CASE("tags survive guards, selections, shuffles and spills", "[shadow]") {
  CHECK(classes_of(kStart + R"(
    LEA R6, R3, R0, 0x6
    ISETP.LT.AND P0, PT, R0, 0x10, PT
    LEA R7, R3, R0, 0x7
    @P0 MOV R6, R7
    IADD3 R6, R6, 0x1, RZ
    @P0 IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    @!P0 IMAD.WIDE R8, R6, R5, c[0x0][0x168]
    @P0 LDG.E R10, [R8.64]
    @!P0 LDG.E R10, [R8.64]
    EXIT
)",
                   {12, 1, 1}) == 1);
  CHECK(classes_of(
            kStart +
                "LEA R6, R3, R0, 0x6\nISETP.LT.AND P0, PT, R0, 0x10, PT\nIADD3 R7, R6, 0x100, RZ\nSEL R6, R6, R7, P0" +
                kAccess,
            {12, 1, 1}) == 1);
  CHECK(classes_of(kStart + "LEA R6, R3, R0, 0x6\nSHFL.IDX PT, R6, R6, 0x3, 0x1f" + kAccess, {12, 1, 1}) == 1);
  CHECK(classes_of(kStart +
                       "MOV R1, c[0x0][0x28]\nLEA R6, R3, R0, 0x6\nSTL [R1+-0x10], R6\nMOV R6, RZ\nLDL R6, [R1+-0x10]" +
                       kAccess,
                   {12, 1, 1}) == 1);
  CHECK(classes_of(kStart + "LEA R6, R3, R0, 0x6\nR2UR UR4, R6\nIADD3 R6, R0, UR4, RZ" + kAccess, {12, 1, 1}) == 1);
  // What passes through shared memory depends on the block only if what was stored does.
  CHECK(classes_of(kStart + R"(
    SHF.L.U32 R7, R0, 0x2, RZ
    STS [R7], R0
    BAR.SYNC.DEFER_BLOCKING 0x0
    LDS R10, [R7]
    ISETP.GT.AND P0, PT, R10, 0x7, PT
    @P0 EXIT
    LEA R6, R3, R0, 0x6
)" + kAccess,
                   {12, 1, 1}) == 1);
}

TEST_CASE("what cannot be followed is still right", "[shadow]") {
  // A product of block index and thread index, a block index squared, a population count.
  CHECK(classes_of(kStart + "IMAD R6, R3, R0, R0" + kAccess, {9, 2, 1}) <= 9);
  CHECK(classes_of(kStart + "IMAD R6, R3, R3, R0" + kAccess, {9, 2, 1}) <= 9);
  CHECK(classes_of(kStart + "POPC R6, R3\nLEA R6, R6, R0, 0x6" + kAccess, {9, 2, 1}) <= 9);
  // Only along x: blocks that differ in y share a class.
  CHECK(classes_of(kStart + "POPC R6, R3\nLEA R6, R6, R0, 0x6\nIMAD R6, R4, 0x1000, R6" + kAccess, {4, 8, 1}) == 4);
  // Shared memory that holds something of the block.
  CHECK(classes_of(kStart + R"(
    SHF.L.U32 R7, R0, 0x2, RZ
    LEA R6, R3, R0, 0x6
    STS [R7], R6
    LDS R10, [R7]
    ISETP.GT.AND P0, PT, R10, 0x107, PT
    @P0 EXIT
)" + kAccess,
                   {12, 1, 1}) <= 12);
}

TEST_CASE("which lanes of an asynchronous copy read is followed though no value is", "[shadow]") {
  // P1 has another value before: lanes of a block past the bound write zeros and read nothing.
  CHECK(classes_of(kStart + R"(
    LEA R6, R3, R0, 0x6
    ISETP.GE.AND P1, PT, R0, RZ, PT
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    ISETP.LT.AND P1, PT, R6, 0x2a0, PT
    SHF.L.U32 R7, R0, 0x2, RZ
    LDGSTS.E [R7], [R8.64], P1
    LDGDEPBAR
    DEPBAR.LE SB0, 0x0
    EXIT
)",
                   {12, 1, 1}) == 3);
}

TEST_CASE("what depends only on a coordinate that a class shares is the same in all of it", "[shadow]") {
  // The square of x decides a branch, and is part of an address beside y: a class for each x, not for each block.
  CHECK(classes_of(kStart + R"(
    IMAD R11, R3, R3, 0x1
    ISETP.GT.AND P0, PT, R11, 0x8, PT
    @P0 BRA $far
    IADD3 R11, R11, 0x1, RZ
far:
    IMAD R11, R11, R11, RZ
    LEA R6, R4, R0, 0x6
    IADD3 R6, R6, R11, RZ
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    EXIT
)",
                   {5, 40, 1}) == 5);
}

TEST_CASE("ways that depend on data", "[shadow]") {
  // Every block's own: the buffer's values lie below 100.
  const std::string by_data = kStart + R"(
    LEA R6, R3, R0, 0x6
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    ISETP.GT.AND P0, PT, R10, 0x32, PT
    @P0 EXIT
)" + kAccess;
  CHECK(classes_of(by_data, {10, 1, 1}) == 10);
  // A decision that all data take the same way leaves one class.
  const std::string alike = kStart + R"(
    LEA R6, R3, R0, 0x6
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    ISETP.GT.AND P0, PT, R10, 0x3e8, PT
    @P0 EXIT
)" + kAccess;
  CHECK(classes_of(alike, {10, 1, 1}) == 1);
  // Numbers by plane of the grid, which the blocks of a plane share; more blocks than are followed one by one.
  TraceOptions few;
  few.traced_instructions = 50'000;
  CHECK(classes_of(kStart + R"(
    LEA R6, R3, R0, 0x6
    IMAD.WIDE R8, R4, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    LEA R6, R10, R6, 0x6
    IMAD.WIDE R8, R6, R5, c[0x0][0x168]
    LDG.E R11, [R8.64]
    STG.E [R8.64], R11
    EXIT
)",
                   {64, 40, 1}, {64, 1, 1}, few) == 40);
  // ... unless a block changes them: the last one does. Then they are data.
  CHECK(classes_of(kStart + R"(
    LEA R6, R3, R0, 0x6
    IMAD.WIDE R8, R4, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    LEA R6, R10, R6, 0x6
    IMAD.WIDE R12, R6, R5, c[0x0][0x168]
    LDG.E R11, [R12.64]
    ISETP.NE.AND P0, PT, R3, 0x3f, PT
    @!P0 STG.E [R8.64+0x1000], R11
    EXIT
)",
                   {64, 4, 1}) == 256);
  // Gathering: addresses come out of memory.
  CHECK(classes_of(kStart + "LEA R6, R3, R0, 0x6\nIMAD.WIDE R8, R6, R5, c[0x0][0x160]\nLDG.E R6, [R8.64]" + kAccess,
                   {6, 1, 1}) == 6);
}

namespace {

// Each launch adds one to every element and goes a way of its own where an element exceeds 2.
Example three_launches() {
  Example example(kStart + R"(
    LEA R6, R3, R0, 0x6
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    IADD3 R10, R10, 0x1, RZ
    STG.E [R8.64], R10
    ISETP.GT.AND P0, PT, R10, 0x2, PT
    @P0 EXIT
    NOP
    EXIT
)",
                  {4, 1, 1});
  example.item.buffers[0].fill = FillZero{};
  example.item.launches.resize(3, example.item.launches[0]);
  return example;
}

}  // namespace

TEST_CASE("tracing a launch leaves memory to the launches after it", "[shadow]") {
  const Example example = three_launches();
  CaseTracer tracer(example.program, example.item);
  const auto instructions = [&](int launch) {
    std::uint64_t sum = 0;
    for (const InstructionCount& c : tracer.trace(launch)->totals()) sum += c.executed;
    return sum;
  };
  const std::uint64_t first = instructions(0), second = instructions(1), third = instructions(2);
  CHECK(first == second);
  CHECK(third == first - 4 * 2 * 2);  // 8 warps leave before NOP and EXIT
}

TEST_CASE("launches are run for their values whichever of them has been traced before", "[shadow]") {
  // All add one on the way from a buffer to the other; what the first and the third do then depends on it.
  const std::string add_one = kStart + R"(
    LEA R6, R3, R0, 0x6
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    IADD3 R10, R10, 0x1, RZ
    IMAD.WIDE R12, R6, R5, c[0x0][0x168]
    STG.E [R12.64], R10
)";
  Example example(add_one + "ISETP.GT.AND P0, PT, R10, 0x2, PT\n@P0 EXIT\nNOP\nEXIT", {4, 1, 1});
  Kernel straight = test::assemble(add_one + "EXIT");
  straight.name = straight.demangled = "straight";
  straight.parameters = example.program.kernels[0].parameters;
  straight.parameter_bytes = example.program.kernels[0].parameter_bytes;
  example.program.kernels.push_back(std::move(straight));
  example.item.buffers[0].fill = FillZero{};
  example.item.launches.resize(3, example.item.launches[0]);
  example.item.launches[1].kernel = "straight";
  std::swap(example.item.launches[1].arguments[0], example.item.launches[1].arguments[1]);
  const auto third = [&](std::initializer_list<int> before) {
    CaseTracer tracer(example.program, example.item);
    for (const int launch : before) tracer.trace(launch);
    std::uint64_t sum = 0;
    for (const InstructionCount& c : tracer.trace(2)->totals()) sum += c.executed;
    return sum;
  };
  const std::uint64_t in_turn = third({0, 1});
  CHECK(in_turn == 4 * 2 * (4 + 6 + 2));  // 8 warps leave before NOP
  // The first is traced when the second has been: the stores that its trace leaves out are there when the second runs.
  CHECK(third({1}) == in_turn);
  CHECK(third({}) == in_turn);
}

TEST_CASE("a launch that is too long to be run for its values is not begun, whether it was traced or not", "[shadow]") {
  const Example example = three_launches();
  const auto instructions = [](const KernelTrace& trace) {
    std::uint64_t sum = 0;
    for (const InstructionCount& c : trace.totals()) sum += c.executed;
    return sum;
  };
  const std::uint64_t one = instructions(*trace_launch(example.program, example.item, 0));
  TraceOptions options;
  const auto third = [&](std::uint64_t value_instructions, bool in_turn) {
    options.value_instructions = value_instructions;
    CaseTracer tracer(example.program, example.item, options);
    for (int i = 0; in_turn && i < 2; ++i) tracer.trace(i);
    return tracer.trace(2);
  };
  for (const bool in_turn : {false, true}) {
    CHECK_FALSE(third(2 * one, in_turn)->launch.inputs_incomplete);
    CHECK(instructions(*third(2 * one, in_turn)) == one - 4 * 2 * 2);
    for (const std::uint64_t enough : {one - 1, 2 * one - 1}) {
      CHECK(third(enough, in_turn)->launch.inputs_incomplete);
      CHECK(instructions(*third(enough, in_turn)) == one);  // of the first launch's result at most
    }
  }
}

namespace {

// A long loop, so that only some of the blocks are followed, then a way that depends on data, and an update in place.
const std::string kLongAndByData = kStart + test::long_loop("0x9c40") + R"(
    LDG.E R10, [R8.64]
    IADD3 R10, R10, 0x32, RZ
    STG.E [R8.64], R10
    ISETP.GT.AND P0, PT, R10, 0x46, PT
    @P0 EXIT
    NOP
    EXIT
)";

}  // namespace

TEST_CASE("blocks that samples stand for are counted one by one", "[shadow]") {
  const Example example(kLongAndByData, {40, 1, 1});
  TraceOptions each;
  each.block_classes = false;
  each.all_values = true;
  const auto truth = trace_launch(example.program, example.item, 0, each);
  TraceOptions few;
  few.traced_instructions = 24'000'000;
  const auto trace = trace_launch(example.program, example.item, 0, few);
  CHECK(trace->launch.samples_differ);
  CHECK(trace->classes.size() < 40);
  REQUIRE_FALSE(trace->launch.counted.empty());
  CHECK(trace->totals() == truth->totals());
  TraceOptions hurried;
  hurried.counted_instructions = 1000;
  CHECK(trace_launch(example.program, example.item, 0, hurried)->launch.counted.empty());
}

TEST_CASE("lanes that a branch's own predicate keeps are told apart", "[shadow]") {
  const Example example(kStart + R"(
    ISETP.GT.AND P0, PT, R0, 0x7, PT
    ISETP.GT.AND P1, PT, R0, 0xf, PT
    @P0 BRA P1, $end
    NOP
end:
    EXIT
)",
                        {1, 1, 1});
  const InstructionCount branch = trace_launch(example.program, example.item, 0)->totals()[6];
  CHECK(branch.executed == 2);
  CHECK(branch.enabled_lanes == 24 + 32);
  CHECK(branch.held_lanes == 8);
  CHECK(branch.divergent == 1);
}

TEST_CASE("what a slice does not need may be unknown", "[shadow]") {
  const Example example(kStart + "IMAD R6, R3, c[0x0][0x0], R0\nHMMA.SP.16832.F32 R12, R16, R20, R12" + kAccess,
                        {8, 1, 1});
  const auto trace = trace_launch(example.program, example.item, 0);
  CHECK(trace->classes.size() == 1);
  CHECK(trace->totals()[5].executed == 16);
  CHECK_THROWS_AS(emulate_values(example.program, example.item), InputError);
}

// --- quotients -------------------------------------------------------------------------------------------------------

namespace {

// R16 = the element of this thread in a grid of blocks of 64.
const std::string kElement = kStart + "IMAD R16, R3, c[0x0][0x0], R0\n";

/// R`q` = R`u` / d and R`r` = R`u` % d for signed ints as the compiler divides by what it does not know: by the
/// reciprocal, its error mended twice, signs apart. Destroys R30 to R39 and P2 to P4.
std::string divide(int u, const std::string& d, int q, int r) {
  const std::string U = "R" + std::to_string(u), Q = "R" + std::to_string(q), R = "R" + std::to_string(r);
  return "IABS R30, " + d + R"(
    I2F.RP R31, R30
    MUFU.RCP R31, R31
    IADD3 R32, R31, 0xffffffe, RZ
    F2I.FTZ.U32.TRUNC.NTZ R33, R32
    MOV R32, RZ
    IADD3 R34, RZ, -R33, RZ
    IMAD R35, R34, R30, RZ
    IMAD.HI.U32 R33, R33, R35, R32
    IABS R36, )" +
         U + R"(
    IMAD.HI.U32 R37, R33, R36, RZ
    IADD3 R38, -R37, RZ, RZ
    IMAD R39, R30, R38, R36
    ISETP.GT.U32.AND P2, PT, R30, R39, PT
    @!P2 IADD3 R39, R39, -R30, RZ
    @!P2 IADD3 R37, R37, 0x1, RZ
    ISETP.GE.U32.AND P3, PT, R39, R30, PT
    LOP3.LUT R38, )" +
         U + ", " + d + R"(, RZ, 0x3c, !PT
    ISETP.GE.AND P4, PT, R38, RZ, PT
    @P3 IADD3 R37, R37, 0x1, RZ
    @!P4 IADD3 R37, -R37, RZ, RZ
    ISETP.NE.AND P2, PT, RZ, )" +
         d + R"(, PT
    @!P2 LOP3.LUT R37, RZ, )" +
         d + R"(, RZ, 0x33, !PT
    MOV )" +
         Q + R"(, R37
    IADD3 R38, -R37, RZ, RZ
    IMAD )" +
         R + ", " + d + ", R38, " + U + "\n";
}

std::string hex(std::uint32_t v) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", v);
  return text;
}

/// R`q` = R`u` / d as the compiler divides signed ints by what it knows.
std::string divide_by_constant(int u, std::uint32_t d, int q) {
  // The least s for which 2^(32 + s) / d rounded up is right for every u.
  int s = 0;
  std::uint64_t m = 0;
  for (;; ++s) {
    __extension__ using Wide = unsigned __int128;
    const Wide n = Wide{1} << (32 + s);
    m = static_cast<std::uint64_t>((n + d - 1) / d);
    if ((Wide{m} * d - n) <= (Wide{1} << (s + 1))) break;
  }
  const std::string magic = hex(static_cast<std::uint32_t>(m));
  const std::string shift = hex(static_cast<std::uint32_t>(s == 0 ? 0 : 32 - s));
  const std::string U = "R" + std::to_string(u), Q = "R" + std::to_string(q);
  // A multiplier with the upper bit set reads as negative: the dividend is added once.
  const bool negative = (m >> 31 & 1u) != 0;
  return "MOV R30, RZ\nMOV R31, " + (negative ? U : std::string("RZ")) + "\nIMAD.HI R32, " + U + ", " + magic +
         ", R30\nSHF.R.U32.HI R33, RZ, 0x1f, R32\nLEA.HI.SX32 " + Q + ", R32, R33, " + shift + "\n" +
         (s == 0 ? "IADD3 " + Q + ", R32, R33, RZ\n" : "");
}

}  // namespace

TEST_CASE("quotients by launch constants are followed", "[shadow][quotients]") {
  // Rows of 640 elements, ten blocks a row: the quotient is a coordinate, the remainder too, and two classes are
  // enough: the estimate of the quotient is one less at the start of some rows.
  const std::string rows = divide(16, "R6", 17, 18) + "IMAD R6, R17, 0x400, R18" + kAccess;
  CHECK(classes_of(kElement + "MOV R6, 0x280\n" + rows, {400, 1, 1}) <= 2);
  // Rows of 1000 elements: eight of them are 125 blocks, whose lines repeat; blocks that two rows share differ.
  CHECK(classes_of(kElement + "MOV R6, 0x3e8\n" + rows, {500, 1, 1}) <= 40);
  // Powers of two leave no error to mend, and one less does.
  CHECK(classes_of(kElement + "MOV R6, 0x400\n" + rows, {400, 1, 1}) <= 4);
  CHECK(classes_of(kElement + "MOV R6, 0x3ff\n" + rows, {200, 1, 1}) <= 200);
  // By what the compiler knows.
  const std::string to_line = "IMAD R6, R17, 0x80, R0" + kAccess;
  CHECK(classes_of(kElement + divide_by_constant(16, 640, 17) + to_line, {400, 1, 1}) == 1);
  CHECK(classes_of(kElement + divide_by_constant(16, 7 * 64, 17) + to_line, {400, 1, 1}) == 1);
  CHECK(classes_of(kElement + divide_by_constant(16, 3, 17) + to_line, {300, 1, 1}) <= 3);
  // Unsigned, from the upper word of a product.
  CHECK(classes_of(kElement + "IMAD.WIDE.U32 R18, R16, -0x33333333, RZ\nSHF.R.U32.HI R17, RZ, 0x9, R19\n" + to_line,
                   {400, 1, 1}) == 1);
  // A multiplier of 33 bits: u / 448 is ((u - t) / 2 + t) / 2^8 with t the upper word of u times 2^32 (2^9 / 448 - 1).
  CHECK(classes_of(kElement +
                       "IMAD.WIDE.U32 R18, R16, 0x24924925, RZ\nIADD3 R18, -R19, R16, RZ\n"
                       "LEA.HI R18, R18, R19, RZ, 0x1f\nSHF.R.U32.HI R17, RZ, 0x8, R18\n" +
                       to_line,
                   {400, 1, 1}) == 1);
}

TEST_CASE("a triangle needs a class for each way through its diagonal", "[shadow][quotients]") {
  // Element (t, t2) of squares of 128 x 128, as attention scores number them; nothing is done above the diagonal.
  const std::string triangle = kElement + "MOV R20, 0x80\n" + divide(16, "R20", 17, 18) + divide(17, "R20", 21, 22) +
                               "ISETP.GT.AND P0, PT, R18, R22, PT\n@P0 EXIT\nIMAD R6, R21, 0x4000, R18" + kAccess;
  CHECK(classes_of(triangle, {768, 1, 1}) <= 200);
}

TEST_CASE("random divisions are what brute force finds", "[shadow][quotients]") {
  auto below = numbers_from(1);
  for (int round = 0; round < 40; ++round) {
    const std::uint32_t blocks = 20 + below(60), rows = 1 + below(3);
    const std::uint32_t first = 1 + below(round % 2 == 0 ? 40 : 2000), second = 1 + below(12);
    const std::uint32_t end = below(2) == 0 ? 64 * blocks * rows : below(64 * blocks * rows);
    char text[200];
    std::snprintf(
        text, sizeof text,
        "IMAD R16, R4, 0x%x, R16\nISETP.GE.AND P0, PT, R16, 0x%x, PT\n@P0 EXIT\nMOV R20, 0x%x\nMOV R24, 0x%x\n",
        64 * blocks, end, first, second);
    std::string source = kElement + text;
    switch (below(4)) {
      case 0:
        source += divide(16, "R20", 17, 18) + divide(17, "R24", 21, 22);
        break;
      case 1:
        source += divide_by_constant(16, first + 1, 17) + "MOV R20, " + hex(first + 1) +
                  "\nIADD3 R20, -R20, RZ, RZ\nIMAD R18, R17, R20, R16\n" + divide(18, "R24", 21, 22);
        break;
      case 2:
        source += "SHF.R.S32.HI R17, RZ, " + hex(1 + below(9)) + ", R16\nIADD3 R17, R17, -0x5, RZ\n" +
                  divide(17, "R24", 21, 22) + "MOV R18, R16\n";
        break;
      default:
        source += "IADD3 R17, R16, -0x3e8, RZ\n" + divide(17, "R20", 21, 18) + divide(21, "R24", 17, 22);
        break;
    }
    source += below(2) == 0 ? "ISETP.GT.AND P0, PT, R22, 0x1, PT\n@P0 EXIT\n" : "";
    source += "IMAD R6, R21, 0x40, R18\nIMAD R6, R22, 0x20, R6\nIADD3 R6, R6, 0x4000, RZ" + kAccess;
    CHECK(classes_of(source, {blocks, rows, 1}) <= std::size_t{blocks} * rows);
  }
}

TEST_CASE("random predicates are what brute force finds", "[shadow]") {
  auto below = numbers_from(7);
  const auto predicate = [&] { return std::string(below(3) == 0 ? "!" : "") + "P" + std::to_string(below(4)); };
  // R10: what moves by lane and block, R11: by block, R12: what is added to the address; R13: a flag of the launch.
  const auto value = [&] {
    const char* const kept[] = {"R0", "R3", "R10", "R11", "R13", "RZ"};
    return std::string(kept[below(6)]);
  };
  const char* const joins[] = {"AND", "OR", "XOR"};
  const char* const relations[] = {"LT", "EQ", "LE", "GT", "NE", "GE"};
  for (int round = 0; round < 400; ++round) {
    std::string source = kStart + "MOV R12, RZ\nMOV R13, " + (below(2) == 0 ? "0x1" : "RZ") +
                         "\nIMAD R10, R3, 0x4, R0\nIADD3 R11, R3, " + hex(below(9)) + ", RZ\n";
    for (int i = 0; i < 4; ++i)
      source += "ISETP.LT.AND P" + std::to_string(i) + ", PT, " + value() + ", " + hex(below(12)) + ", PT\n";
    for (std::uint32_t i = 4 + below(8); i > 0; --i) {
      const std::string guard = below(4) == 0 ? "@" + predicate() + " " : "";
      switch (below(8)) {
        case 0:
          source += guard + "IADD3 R12, R12, 0x1, RZ\n";
          break;
        case 1:
          source += guard + "SEL R11, R11, " + hex(below(9)) + ", " + predicate() + "\n";
          break;
        case 2:
          source += guard + "PLOP3.LUT P" + std::to_string(below(4)) + ", PT, " + predicate() + ", " + predicate() +
                    ", " + predicate() + ", " + hex(below(256)) + ", 0x0\n";
          break;
        case 3:
          source += guard + "P2R R12, PR, RZ, " + hex(below(16)) + "\n";
          break;
        default:
          source += guard + "ISETP." + relations[below(6)] + "." + joins[below(3)] + " P" + std::to_string(below(4)) +
                    ", " + (below(3) == 0 ? "P" + std::to_string(below(4)) : "PT") + ", " + value() + ", " +
                    (below(2) == 0 ? hex(below(12)) : value()) + ", " + (below(4) == 0 ? "PT" : predicate()) + "\n";
          break;
      }
    }
    source += "@" + predicate() + " EXIT\n@" + predicate() + " IADD3 R12, R12, 0x2, RZ\nLEA R6, R3, R0, 0x6\n" +
              "IMAD R6, R12, 0x40, R6" + kAccess;
    CHECK(classes_of(source, {16, 1, 1}) <= 16);
  }
}

TEST_CASE("blocks that count down from the grid's end are linear, too", "[shadow]") {
  // R3 is the block index; the last block takes the first tile.
  CHECK(classes_of(
            kStart + "LOP3.LUT R7, RZ, R3, RZ, 0x33, !PT\nIADD3 R7, R7, c[0x0][0xc], RZ\nLEA R6, R7, R0, 0x6" + kAccess,
            {9, 1, 1}) == 1);
}

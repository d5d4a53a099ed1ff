// Blocks whose way depends on data, counted side by side where that is right and in order where it is not: the counts
// must be those of every block followed in order, for any number of threads.
#include "emulation/tracing/block_counter.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "base/error.h"
#include "emulation/emulation.h"
#include "emulation/launch_example.h"
#include "emulation/run/launch_setup.h"
#include "program/slice.h"
#include "program/traits.h"

using namespace forewarp;
using emulation::GlobalMemory;

namespace {

constexpr std::uint32_t kBlocks = 100;

// Block 0 leaves at once. In the others a loop, so that only some of them are followed; then R10 is the thread's
// element of the first buffer, at R8, and R12 the place of its element of the second.
const std::string kLoad = test::kStart + R"(
    ISETP.EQ.AND P0, PT, R3, RZ, PT
    @P0 EXIT
)" + test::long_loop("0x2710") +
                          R"(
    IMAD.WIDE R12, R6, R5, c[0x0][0x168]
    LDG.E R10, [R8.64]
)";
// Elements are their index: blocks of odd index go on, if none has changed them.
const std::string kDecide = R"(
    LOP3.LUT R11, R10, 0x40, RZ, 0xc0, !PT
    ISETP.EQ.AND P0, PT, R11, RZ, PT
    @P0 EXIT
    NOP
    EXIT
)";
// P3: elements that blocks 5, 37 and 69 find, none of which is among the blocks that are followed.
const std::string kUnseen = R"(
    LOP3.LUT R11, R10, 0x7c0, RZ, 0xc0, !PT
    ISETP.EQ.AND P3, PT, R11, 0x140, PT
)";

test::Example example(const std::string& source) {
  test::Example made(source, {kBlocks, 1, 1});
  for (Buffer& buffer : made.item.buffers) buffer.fill = FillIota{};
  return made;
}

constexpr std::uint64_t kFew = 24'000'000;  // instructions, with which not every block is followed

struct Traced {
  std::shared_ptr<KernelTrace> trace;
  int begun = 0;  ///< how often block 0 got its class
};

Traced trace(const test::Example& made, unsigned threads) {
  Traced traced;
  TraceOptions options;
  options.traced_instructions = kFew;
  options.threads = threads;
  options.progress = [&](std::uint64_t done, std::uint64_t) { traced.begun += done == 1; };
  traced.trace = trace_launch(made.program, made.item, 0, options);
  return traced;
}

/// Traces with 1, 2 and 4 threads, compares, and gives how often the grid was gone through.
int check_counts(const std::string& source) {
  INFO(source);
  const test::Example made = example(source);
  TraceOptions each;
  each.block_classes = false;
  each.all_values = true;
  const auto truth = trace_launch(made.program, made.item, 0, each);
  const Traced one = trace(made, 1);
  REQUIRE_FALSE(one.trace->launch.counted.empty());
  CHECK(one.trace->totals() == truth->totals());
  for (const unsigned threads : {2u, 4u}) {
    const Traced several = trace(made, threads);
    CHECK(several.begun == one.begun);
    CHECK(several.trace->launch.counted == one.trace->launch.counted);
    CHECK(several.trace->patterns == one.trace->patterns);
    REQUIRE(several.trace->classes.size() == one.trace->classes.size());
    for (std::size_t c = 0; c < one.trace->classes.size(); ++c) {
      CHECK(several.trace->classes[c].counts == one.trace->classes[c].counts);
      CHECK(several.trace->classes[c].population == one.trace->classes[c].population);
    }
  }
  return one.begun;
}

}  // namespace

TEST_CASE("blocks that read what none writes are counted in any order", "[counter]") {
  CHECK(check_counts(kLoad + "STG.E [R12.64], R10" + kDecide) == 1);
}

// Where a launch loads what it stores, the first block says so, and all begins again with the stores carried out.
constexpr int kStoresMatter = 1;

TEST_CASE("blocks that read what others write are counted in order", "[counter]") {
  // Every block takes the oddness of the next one's elements.
  CHECK(check_counts(kLoad + "STG.E [R8.64+0x100], RZ" + kDecide) == 1 + kStoresMatter);
  CHECK(check_counts(kLoad + "MOV R14, RZ\nATOMG.E.EXCH.STRONG.GPU PT, R15, [R8.64+0x100], R14" + kDecide) ==
        1 + kStoresMatter);
}

TEST_CASE("counts start again where blocks turn out to need their order", "[counter]") {
  // Blocks 5, 37 and 69 take the oddness of blocks 21, 53 and 85.
  CHECK(check_counts(kLoad + kUnseen + "@P3 STG.E [R8.64+0x1000], RZ" + kDecide) == 2 + kStoresMatter);
  // The last block has a class of its own, which is begun when the others have been counted; it reads what they write.
  CHECK(check_counts(kLoad + "STG.E [R12.64], RZ\nISETP.GE.AND P4, PT, R3, 0x63, PT\n@P4 LDG.E R10, [R12.64+-0x100]" +
                     kDecide) == 2 + kStoresMatter);
}

TEST_CASE("launches between those that were counted may write what they read", "[counter]") {
  test::Example made = example(kLoad + "IADD3 R10, R10, 0x40, RZ\nSTG.E [R12.64], R10" + kDecide);
  std::vector<Launch>& launches = made.item.launches;
  launches.resize(3, launches[0]);  // from the first buffer to the second, back, and forth again
  std::swap(launches[1].arguments[0], launches[1].arguments[1]);
  TraceOptions each;
  each.block_classes = false;
  each.all_values = true;
  TraceOptions few;
  few.traced_instructions = kFew;
  CaseTracer truth(made.program, made.item, each), tracer(made.program, made.item, few);
  for (int launch = 0; launch < 3; ++launch) {
    const auto trace = tracer.trace(launch);
    CHECK_FALSE(trace->launch.counted.empty());
    CHECK(trace->totals() == truth.trace(launch)->totals());
  }
}

TEST_CASE("the first block that goes astray is the one that is reported", "[counter]") {
  const test::Example made =
      example(kLoad + kUnseen + "MOV R14, 0x10000000\n@P3 IMAD.WIDE R8, R14, R5, R8\n@P3 LDG.E R10, [R8.64]" + kDecide);
  std::string first;
  for (const unsigned threads : {1u, 2u, 4u}) {
    std::string message;
    try {
      trace(made, threads);
    } catch (const InputError& error) {
      message = error.what();
    }
    CHECK(message.find("block (5,0,0), thread (0,0,0)") != std::string::npos);
    if (threads == 1) first = message;
    CHECK(message == first);
  }
}

TEST_CASE("counting in any order leaves memory as it was", "[counter]") {
  const test::Example made = example(kLoad + "STG.E [R12.64], R10" + kDecide);
  std::vector<std::uint64_t> blocks(kBlocks);
  for (std::uint64_t b = 0; b < kBlocks; ++b) blocks[b] = b;
  std::vector<InstructionCount> in_order;
  for (const unsigned threads : {0u, 1u, 3u}) {
    GlobalMemory global(made.item);
    const emulation::LaunchSetup setup(made.program, made.program.kernels[0], made.item.launches[0], global, {});
    KernelTrace trace;
    trace.launch.grid = {kBlocks, 1, 1};
    if (threads != 0) REQUIRE(global.allow_any_order());
    std::vector<InstructionCount> totals;
    count_blocks(setup.state(), trace, blocks, threads, totals);
    const GlobalMemory::Region& written = *global.find(global.addresses()[1], 4);
    CHECK(written.touched == GlobalMemory::kWritten);
    CHECK(written.chunks[0] == (threads == 0 ? GlobalMemory::Chunk::Written : GlobalMemory::Chunk::Absent));
    if (threads == 0) in_order = totals;
    CHECK(totals == in_order);
  }
}

// --- blocks that are like no other
// --------------------------------------------------------------------------------------

namespace {

// A loop as long as the square of the block index: every block is a class of its own.
const std::string kTriangle = test::kStart + R"(
    IMAD R11, R3, R3, 0x1
loop:
    IADD3 R11, R11, -0x1, RZ
    ISETP.GT.AND P1, PT, R11, RZ, PT
    @P1 BRA $loop
    LEA R6, R3, R0, 0x6
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
    LDG.E R10, [R8.64]
    EXIT
)";

}  // namespace

TEST_CASE("blocks that differ are sampled along the grid, and counted", "[counter]") {
  const test::Example made(kTriangle, {200, 1, 1});
  TraceOptions each;
  each.block_classes = false;
  each.all_values = true;
  const auto truth = trace_launch(made.program, made.item, 0, each);
  TraceOptions options;
  options.traced_instructions = 3'000'000;
  const auto trace = trace_launch(made.program, made.item, 0, options);
  CHECK(trace->launch.sampled_blocks >= 3);
  CHECK(trace->launch.sampled_blocks + trace->launch.inferred_blocks == 200);
  CHECK(trace->totals() == truth->totals());
  std::uint64_t population = 0;
  for (const BlockClass& c : trace->classes) population += c.population;
  CHECK(population == 200);
  // A block is represented by one nearby.
  const auto steps = [](const BlockClass& c) { return static_cast<double>(c.paths[c.warps[0].path].instructions); };
  for (std::uint64_t b = 0; b < 200; ++b) {
    const BlockClass& c = trace->classes[trace->class_of(b)];
    const double away = static_cast<double>(c.representative.x) - static_cast<double>(b);
    CHECK(std::abs(away) <= 200.0 / static_cast<double>(trace->launch.sampled_blocks) * 2.7);
    if (c.representative.x == b) CHECK(steps(c) == steps(truth->classes[b]));
  }
  // The rest of a launch that is too long to be counted is estimated, and says so.
  std::vector<std::string> warnings;
  options.counted_instructions = 1000;
  options.emulation.warnings = &warnings;
  const auto estimate = trace_launch(made.program, made.item, 0, options);
  CHECK(estimate->launch.counted.empty());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("estimates") != std::string::npos);
  const auto executed = [](const KernelTrace& t) {
    double sum = 0;
    for (const InstructionCount& c : t.totals()) sum += static_cast<double>(c.executed);
    return sum;
  };
  CHECK(executed(*estimate) == Approx(executed(*truth)).epsilon(0.15));
}

TEST_CASE("blocks are sampled along what decides how long they take", "[counter]") {
  // 128 lengths along x, the same for each of 32 rows of blocks, and for places in a grid of one dimension.
  const std::string derived = R"(
    SHF.R.U32.HI R4, RZ, 0x7, R3
    IMAD R3, R4, -0x80, R3
)";
  const std::string body = kTriangle.substr(test::kStart.size());
  for (const bool flat : {false, true}) {
    const test::Example made(test::kStart + (flat ? derived : "") + body, flat ? Dim3{4096, 1, 1} : Dim3{128, 32, 1});
    TraceOptions options;
    options.counted_instructions = 0;
    options.traced_instructions = 1'000'000;
    std::vector<std::string> warnings;
    options.emulation.warnings = &warnings;
    const auto estimate = trace_launch(made.program, made.item, 0, options);
    CHECK(estimate->launch.samples_differ);
    CHECK(estimate->launch.sampled_blocks < 64);
    double truth = 0, executed = 0;
    for (int x = 0; x < 128; ++x) truth += 32.0 * 2 * (x * x + 1);  // two warps each
    for (std::size_t i = 0; i < made.program.kernels[0].instructions.size(); ++i)
      if (made.program.kernels[0].instructions[i].opcode == Opcode::ISETP)
        executed = static_cast<double>(estimate->totals()[i].executed);
    CHECK(executed == Approx(truth).epsilon(0.02));
  }
}

TEST_CASE("little memory holds fewer blocks, and one that does not fit is refused by name", "[counter]") {
  const test::Example made(kTriangle, {200, 1, 1});
  TraceOptions options;
  options.trace_bytes = 400'000;
  const auto trace = trace_launch(made.program, made.item, 0, options);
  CHECK(trace->launch.inferred_blocks > 0);
  CHECK(trace->classes.size() < 100);
  options.emulation.block_trace_bytes = 10'000;
  CHECK_THROWS_WITH(trace_launch(made.program, made.item, 0, options), Catch::Contains("--memory"));
}

TEST_CASE("a block that never ends is named with the option that would give it more", "[counter]") {
  const test::Example made(test::kStart + "loop:\nBRA $loop\nEXIT", {4, 1, 1});
  TraceOptions options;
  Effort effort;
  effort.seconds = 0.01;
  options.limit(effort);
  CHECK_THROWS_WITH(trace_launch(made.program, made.item, 0, options),
                    Catch::Contains("block (0,0,0)") && Catch::Contains("warp 0") && Catch::Contains("--budget"));
}

TEST_CASE("a grid that no GPU would finish is refused", "[counter]") {
  const test::Example made(test::kStart + "EXIT", {2147483647, 65535, 65535});
  CHECK_THROWS_AS(trace_launch(made.program, made.item, 0), InputError);
}

TEST_CASE("products that wait in shared memory beside what decides are left out, unless they decide", "[counter]") {
  // R7: the thread's word. Its product is stored a kilobyte on, or where what decides is taken from.
  const std::string product = "IMAD.SHL.U32 R7, R0, 0x4, RZ\nHMMA.16816.F32 R20, R16, R14, RZ\nSTS [R7+0x400], R20\n";
  const auto with_memory = [](const std::string& source) {
    test::Example made = example(source);
    made.item.launches[0].dynamic_shared_bytes = 2048;
    return made;
  };
  const auto same = [&](const std::string& from, int times) {
    const test::Example made = with_memory(kLoad + product + "STS [R7], R10\nLDS R10, [R7+" + from + "]" + kDecide);
    const ProgramSlice slice = control_slice(made.program.kernels[0], {.stores = Stores::Left});
    CHECK(std::count(slice.left.begin(), slice.left.end(), 1) == 1);
    CHECK(std::count_if(slice.needed.begin(), slice.needed.end(), [&](const std::uint8_t& needed) {
            return needed != 0 &&
                   multiplies_matrices(made.program.kernels[0]
                                           .instructions[static_cast<std::size_t>(&needed - slice.needed.data())]
                                           .opcode);
          }) == 0);
    TraceOptions each;
    each.block_classes = false;
    each.all_values = true;
    const auto truth = trace_launch(made.program, made.item, 0, each);
    const Traced one = trace(made, 1);
    CHECK(one.trace->totals() == truth->totals());
    CHECK(one.begun == times);
  };
  same("0x0", 1);
  same("0x400", 1 + kStoresMatter);
}

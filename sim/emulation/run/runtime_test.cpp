// Kernels that call the CUDA runtime: what only reports returns at once, with a warning; the rest is named.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "emulation/emulation.h"

using namespace forewarp;

namespace {

const std::string kCubin = std::string(FOREWARP_SOURCE_DIR) + "/sim/program/testdata/runtime_sm90.cubin";

Case launch_of(const std::string& kernel, bool with_bound, std::uint32_t bound = 0) {
  Case item;
  item.id = kernel;
  Buffer buffer;
  buffer.name = "data";
  buffer.bytes = 4096;
  buffer.fill = FillZero{};
  item.buffers.push_back(buffer);
  Launch launch;
  launch.kernel = kernel;
  launch.grid = {4, 1, 1};
  launch.block = {64, 1, 1};
  launch.arguments.push_back(Argument::pointer(0));
  if (with_bound) launch.arguments.push_back(Argument::scalar(ArgumentKind::I32, bound));
  item.launches.push_back(launch);
  return item;
}

std::string error_of(const Program& program, const Case& item) {
  try {
    trace_launch(program, item, 0);
  } catch (const InputError& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a cubin names the functions of the runtime that it calls", "[runtime]") {
  const Program program = load_program(kCubin);
  for (const char* name : {"vprintf", "__assertfail", "malloc"})
    CHECK(std::count(program.outside.begin(), program.outside.end(), name) == 1);
}

TEST_CASE("a linked callee computes what its source says", "[runtime]") {
  for (const char* name : {"separate_sm80.cubin", "separate_sm90.cubin"}) {
    INFO(name);
    const Program program = load_program(std::string(FOREWARP_SOURCE_DIR) + "/sim/program/testdata/" + name);
    Case item;
    for (const char* buffer : {"y", "x"}) item.buffers.push_back({buffer, 512, FillZero{}, {}});
    item.buffers[1].fill = FillUniform{ElementType::F32, -1, 1, 7};
    Launch launch;
    launch.kernel = "separate";
    launch.grid = {2, 1, 1};
    launch.block = {64, 1, 1};
    launch.arguments = {Argument::pointer(0), Argument::pointer(1), Argument::scalar(ArgumentKind::I32, 100)};
    item.launches.push_back(launch);
    const EmulatedCase values = emulate_values(program, item);
    for (int i = 0; i < 128; ++i) {
      float x = 0, y = 0;
      std::memcpy(&x, values.buffers[1].data() + 4 * i, 4);
      std::memcpy(&y, values.buffers[0].data() + 4 * i, 4);
      float sum = x;
      for (int k = 0; k < 3 + (i & 3); ++k) sum = std::fma(sum, x, 1.0f);
      CHECK(y == (i < 100 ? sum * static_cast<float>(1 + (i & 3)) : 0));
    }
    std::uint64_t executed = 0;
    const auto trace = trace_launch(program, item, 0);
    for (const InstructionCount& c : trace->totals()) executed += c.executed;
    CHECK(executed == values.warp_instructions);
  }
}

TEST_CASE("printing returns at once and says so", "[runtime]") {
  const Program program = load_program(kCubin);
  const Case item = launch_of("prints", false);
  std::vector<std::string> warnings;
  TraceOptions options;
  options.emulation.warnings = &warnings;
  const auto trace = trace_launch(program, item, 0, options);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().find("vprintf") != std::string::npos);
  const EmulatedCase values = emulate_values(program, item);
  std::uint64_t executed = 0;
  for (const InstructionCount& c : trace->totals()) executed += c.executed;
  CHECK(executed == values.warp_instructions);
  for (std::size_t i = 0; i < 256; ++i) {
    float value = 0;
    std::memcpy(&value, values.buffers[0].data() + 4 * i, 4);
    CHECK(value == 1);
  }
}

TEST_CASE("an assertion that holds costs nothing, one that fails is an error", "[runtime]") {
  const Program program = load_program(kCubin);
  CHECK(error_of(program, launch_of("asserts", true, 256)).empty());
  const std::string error = error_of(program, launch_of("asserts", true, 200));
  CHECK(error.find("block (3,0,0), thread (8,0,0)") != std::string::npos);
  CHECK(error.find("an assertion fails") != std::string::npos);
}

TEST_CASE("the device heap is named", "[runtime]") {
  const Program program = load_program(kCubin);
  CHECK(error_of(program, launch_of("allocates", false)).find("calls malloc of the CUDA runtime") != std::string::npos);
}

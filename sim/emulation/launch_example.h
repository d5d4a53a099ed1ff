// A launch of a small program on two buffers, for tests of what becomes of its blocks.
#pragma once

#include <string>

#include "emulation/test_support.h"

namespace forewarp::test {

// R0 = thread, R3 = block along x, R4 = block along y, R5 = 4.
inline const std::string kStart = R"(
    S2R R0, SR_TID.X
    S2R R3, SR_CTAID.X
    S2R R4, SR_CTAID.Y
    MOV R5, 0x4
)";

struct Example {
  Program program;
  Case item;

  Example(const std::string& source, const Dim3& grid, const Dim3& block = {64, 1, 1}) {
    program.sm = 80;
    program.kernels.push_back(assemble(source));
    Kernel& kernel = program.kernels.back();
    for (std::uint32_t i = 0; i < 3; ++i) kernel.parameters.push_back({8 * i, 8});
    kernel.parameter_bytes = 24;
    kernel.static_shared_bytes = 1024;
    item.id = "example";
    for (const char* name : {"a", "b"}) {
      Buffer buffer;
      buffer.name = name;
      buffer.bytes = 1 << 22;
      buffer.fill = FillLcg{7, 100};
      item.buffers.push_back(buffer);
    }
    Launch launch;
    launch.kernel = "test";
    launch.grid = grid;
    launch.block = block;
    for (int i = 0; i < 2; ++i) {
      Argument argument;
      argument.kind = ArgumentKind::Pointer;
      argument.buffer = i;
      launch.arguments.push_back(argument);
    }
    Argument number;
    number.kind = ArgumentKind::I64;
    number.bits = 1000;
    launch.arguments.push_back(number);
    item.launches.push_back(launch);
  }
};

}  // namespace forewarp::test

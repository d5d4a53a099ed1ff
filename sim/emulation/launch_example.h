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

/// So many trips that not every block is followed; then R6 is the element of a thread of blocks of 64, R8 its place in
/// the first buffer.
inline std::string long_loop(const std::string& trips) {
  return "    MOV R6, " + trips + R"(
loop:
    IADD3 R6, R6, -0x1, RZ
    ISETP.GT.AND P1, PT, R6, RZ, PT
    ISETP.GT.AND P2, PT, R0, 0xff, PT
    @P1 BRA !P2, $loop
    LEA R6, R3, R0, 0x6
    IMAD.WIDE R8, R6, R5, c[0x0][0x160]
)";
}

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
      launch.arguments.push_back(Argument::pointer(i));
    }
    launch.arguments.push_back(Argument::scalar(ArgumentKind::I64, 1000));
    item.launches.push_back(launch);
  }
};

}  // namespace forewarp::test

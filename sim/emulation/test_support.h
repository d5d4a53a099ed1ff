// Small programs in the disassembler's own language, run on one block: for the tests of this folder.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emulation/machine/executor.h"
#include "launch/launch.h"
#include "program/program.h"

namespace forewarp::test {

using Lanes = std::array<std::uint64_t, kWarpLanes>;

/// Assembles one instruction a line. `name:` alone on a line is a label, `$name` its byte offset in operands. Floats
/// are written as their bits in hexadecimal.
Kernel assemble(const std::string& source, int sm = 80);

/// A kernel with buffers of 64-bit words; parameter i (at 0x160 + 8 i) is the address of buffer i.
class Bench {
 public:
  explicit Bench(const std::string& source, int sm = 80);

  Dim3 block{32, 1, 1};
  Dim3 grid{1, 1, 1}, cluster{0, 0, 0};
  std::uint32_t shared_bytes = 0;
  std::uint64_t instruction_limit = 1'000'000;
  std::vector<std::vector<std::uint64_t>> buffers;
  std::vector<ConstantBank> constants;  ///< banks other than 0

  /// Runs every block of the grid; buffers then hold what was stored. Returns the warp instructions executed.
  std::uint64_t run();

 private:
  Kernel kernel_;
  int sm_;
};

struct Inputs {
  Lanes a{}, b{}, c{};
};

struct Outputs {
  Lanes d{};                   ///< R20 low, R21 high
  std::uint32_t p = 0, q = 0;  ///< P0, P1
};

/// Runs instructions with a in R10:R11, b in R12:R13, c in R14:R15 (one value a lane); what they leave in R20:R21, P0
/// and P1 comes back. P2 is true in even lanes, P3 in lanes 0..15.
Outputs execute(const std::string& body, const Inputs& inputs, int sm = 80);

/// 32 awkward values for integers and shifts.
Lanes edge_integers();
/// 32 float bit patterns: zeros, denormals, ones, large, infinities, NaNs.
Lanes edge_floats();
/// The same values in another order, so that pairs of different ones meet.
Lanes rotated(const Lanes& lanes, int by);

}  // namespace forewarp::test

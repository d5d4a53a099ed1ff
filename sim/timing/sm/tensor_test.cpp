// The tensor pipe to the cycle, and what matrices cost on their way to it.
#include <catch2/catch.hpp>

#include "timing/sm/sm.h"
#include "timing/sm/sm_test_support.h"

using namespace forewarp;

namespace {

/// HMMA.16816.F32 D, A, B, C, or of another depth.
Instruction product(int depth, int stall, int d, int a, int b, int c) {
  Instruction in = plain(Pipe::Tensor, stall);
  in.opcode = in.native = Opcode::HMMA;
  in.operation = OperationClass::Mma;
  in.shape = {16, 8, static_cast<std::uint16_t>(depth)};
  in.modifiers.set(static_cast<std::size_t>(Modifier::F32));
  in.operand_count = 4;
  in.destination_count = 1;
  const int registers[] = {d, a, b, c};
  for (std::size_t i = 0; i < 4; ++i)
    in.operands[i] = {.kind = OperandKind::Register, .index = static_cast<std::uint8_t>(registers[i])};
  return in;
}

/// Doubles: DMMA.16x8x4 with a scoreboard.
Instruction of_doubles(int scoreboard) {
  Instruction in = product(4, 1, 8, 16, 20, 24);
  in.opcode = in.native = Opcode::DMMA;
  in.modifiers.reset();
  in.control.write_barrier = static_cast<std::uint8_t>(scoreboard);
  return in;
}

Instruction reads(Pipe pipe, int a, int b) {
  Instruction in = plain(pipe, 1);
  in.operand_count = 3;
  in.destination_count = 1;
  in.operands[0] = {.kind = OperandKind::Register, .index = 60};
  in.operands[1] = {.kind = OperandKind::Register, .index = static_cast<std::uint8_t>(a)};
  in.operands[2] = {.kind = OperandKind::Register, .index = static_cast<std::uint8_t>(b)};
  return in;
}

Cycle run(std::vector<Instruction> code, const GpuModel& gpu = sm_model(), int warps = 1) {
  code.push_back(exit_instruction());
  return HandMadeTrace(std::move(code), warps).simulate(gpu).elapsed_cycles;
}

}  // namespace

TEST_CASE("products hold the tensor pipe by shape", "[tensor]") {
  // Stall 1 each; the third begins two intervals after the first, EXIT a cycle later.
  const auto three = [](int depth) { return std::vector<Instruction>(3, product(depth, 1, 8, 16, 20, 24)); };
  CHECK(run(three(16)) == 2 * 6 + 2);
  CHECK(run(three(8)) == 2 * 4 + 2);
  // Two shapes in turn: each holds it for its own time.
  CHECK(run({product(16, 1, 8, 16, 20, 24), product(8, 1, 8, 16, 20, 24), product(16, 1, 8, 16, 20, 24)}) == 6 + 4 + 2);
  // Warps of one sub-partition share it; stall counts that are longer hide it.
  CHECK(run(three(16), sm_model(), 5) == 5 * 6 + 2);
  CHECK(run(std::vector<Instruction>(3, product(16, 24, 8, 16, 20, 24))) == 3 * 24 + 1);
}

TEST_CASE("doubles release a scoreboard", "[tensor]") {
  // 512 products at 32 a cycle, then 18 cycles: the second issues at 34, EXIT after its stall.
  CHECK(run({of_doubles(0), waiting(of_doubles(1), 0)}) == 34 + 2);
}

TEST_CASE("a product keeps the register ports from what issues next", "[tensor]") {
  // A: 2 pairs, B: 1, C: 2, read over both ports in cycles 1 to 5. FFMA at 1 finds a free port in its window of three
  // cycles if that reaches cycle 6: it holds dispatch until 4, EXIT issues at 5.
  CHECK(run({product(16, 1, 8, 16, 20, 24), reads(Pipe::Fma, 1, 2)}, model_with_ports()) == 6);
  // Registers that the operand cache holds need no port: only C's two pairs, cycles 1 and 2, are in the way of the
  // second product's neighbour, which reads in cycle 3 of its window 1 to 3.
  Instruction kept = product(16, 1, 8, 16, 20, 24);
  kept.operands[1].reuse = kept.operands[2].reuse = true;
  const Cycle alone = run({kept, kept}, model_with_ports());
  CHECK(run({kept, kept, reads(Pipe::Fma, 1, 2)}, model_with_ports()) == alone + 1);
}

TEST_CASE("registers on their way to memory hold up the operands of a product", "[tensor]") {
  // Of its 6 cycles a product's operands take 5, a register that is sent 2.
  Instruction shuffle = plain(Pipe::Lsu, 1);
  shuffle.opcode = shuffle.native = Opcode::SHFL;
  const Instruction one = product(16, 1, 8, 16, 20, 24);
  CHECK(run({one, one}) == 6 + 2);
  CHECK(run({one, shuffle, one}) == 7 + 2);
  CHECK(run({one, shuffle, shuffle, one}) == 9 + 2);
  // On a quarter of the multipliers the arithmetic takes longer than the operands.
  GpuModel slow = sm_model();
  slow.tensor.product_bits /= 4;
  const Cycle arithmetic = run({one, one}, slow);
  CHECK(run({one, shuffle, one}, slow) == arithmetic);
}

TEST_CASE("warps take turns at a busy pipe", "[tensor]") {
  // Two warps of a sub-partition: four products, 24 cycles of something else, four products. Where one kept the pipe
  // until it pauses, the other's products would fill the pause, and all be done in 92 cycles. In turn, the first pauses
  // in cycle 42, and all eight that are left come after it.
  std::vector<Instruction> some(4, product(16, 6, 8, 16, 20, 24));
  for (int i = 0; i < 6; ++i) some.push_back(plain(Pipe::Fma, 4));
  some.insert(some.end(), 4, product(16, 6, 8, 16, 20, 24));
  CHECK(run(some, sm_model(), 5) == 42 + 24 + 7 * 6 + 2);
}

TEST_CASE("a stall count of one that yields takes two cycles", "[tensor]") {
  Instruction yields = plain(Pipe::Fma, 1), goes_on = yields;
  yields.control.yield = false;
  goes_on.control.yield = true;
  CHECK(run({yields, yields, yields}) == run({goes_on, goes_on, goes_on}) + 3);
}

TEST_CASE("transpositions take turns", "[tensor]") {
  Instruction in = plain(Pipe::Lsu, 1);
  in.opcode = in.native = Opcode::MOVM;
  in.control.write_barrier = 0;
  // Every 4 cycles; the last one's result is waited for.
  CHECK(run({in, in, in, waiting(plain(Pipe::Fma, 1), 0)}) == 2 * 4 + 24 + 2);
}

// The table of opcodes: that its columns fit together for every row, and what follows from them for single
// instructions.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "program/analysis.h"
#include "program/decode.h"
#include "program/traits.h"

using namespace forewarp;

namespace {

Instruction decoded(const std::string& opcode, const std::string& operands, int sm = 90) {
  TextInstruction text;
  text.opcode = opcode;
  text.operands = operands;
  DecodeContext context;
  context.sm = sm;
  context.place = opcode;
  context.operand.code.low = std::uint64_t{kPredicateTrue} << 12;
  context.operand.code_bytes = 16;
  UnknownForms unknown;
  const Instruction instruction = decode(text, context, unknown);
  REQUIRE(unknown.forms.empty());
  return instruction;
}

template <class Check>
void each_opcode(const Check& check) {
  for (std::size_t i = 1; i < static_cast<std::size_t>(Opcode::Count); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    INFO(opcode_text(opcode));
    check(opcode, traits(opcode));
  }
}

bool is_matrix(Width width) {
  return width == Width::HalfMatrix || width == Width::IntegerMatrix || width == Width::ByteMatrix ||
         width == Width::BitMatrix || width == Width::DoubleMatrix;
}

}  // namespace

TEST_CASE("opcodes are found by their names and their codes") {
  std::map<int, int> names;
  each_opcode([&](Opcode opcode, const OpcodeTraits& t) {
    CHECK(find_opcode(opcode_text(opcode)) == opcode);
    for (std::size_t c = 0; c < t.code_count; ++c) {
      CHECK(t.codes[c] < 512);
      CHECK(++names[t.codes[c]] <= 2);
      CHECK(native_opcode(t.codes[c], opcode) == opcode);
    }
  });
  CHECK(native_opcode(0x18e, Opcode::Unknown) == Opcode::RED);
  CHECK(native_opcode(0x18e, Opcode::REDG) == Opcode::REDG);
}

TEST_CASE("columns of the opcode table fit together") {
  each_opcode([](Opcode opcode, const OpcodeTraits& t) {
    const bool constant = t.space == MemorySpace::Constant, moves = t.memory != MemoryKind::None;
    CHECK(moves == (t.space != MemorySpace::None));
    const Timing timing = t.unit.timing;
    const bool to_memory = timing == Timing::Memory || timing == Timing::Box || timing == Timing::Phase;
    CHECK(to_memory == (moves && !constant));
    const bool sized = t.width == Width::Data || t.width == Width::MatrixRows || t.width == Width::BarrierObject;
    if (sized) CHECK(moves);
    if (moves) CHECK((sized || t.width == Width::TensorCopy || t.width == Width::BulkCopy));
    CHECK(multiplies_matrices(opcode) == is_matrix(t.width));
    if (t.operation == OperationClass::Mma) CHECK(is_matrix(t.width));
    CHECK(multiplies_matrices(opcode) == (timing == Timing::Matrix || timing == Timing::Product));
    if (multiplies_matrices(opcode) || t.operation == OperationClass::Uniform) CHECK(t.slice == Slice::Warp);
    CHECK((t.counted == Counted::LaneAttribute) == (t.unit.timing == Timing::LaneAttribute));
    if (leaves_line(t.flow)) CHECK(t.unit.pipe90 == Pipe::Cbu);
    if (t.flow != Flow::Next) CHECK(t.symbolic == Symbolic::Opaque);
    // Where the compiler cannot know when a result is there, there is a latency to release a scoreboard after.
    if (t.unit.pipe90 == Pipe::Xu) CHECK(t.unit.latency == Latency::Variable);
    if (t.unit.at_barrier == AtBarrier::Passes) CHECK(t.unit.latency != Latency::Variable);
    const bool copies = t.slice == Slice::CopyIn || t.slice == Slice::CopyOut || t.slice == Slice::CopyStated ||
                        t.slice == Slice::Prefetch;
    CHECK((t.memory == MemoryKind::AsyncCopy) == copies);
  });
}

TEST_CASE("control keeps what decides the way") {
  CHECK(is_control(Opcode::BAR));
  CHECK(is_control(Opcode::BMOV));
  CHECK_FALSE(is_control(Opcode::IADD3));
  CHECK(leaves_line(Flow::Converge));
  CHECK_FALSE(leaves_line(Flow::Region));
  CHECK(is_branch(Opcode::BRX));
  CHECK_FALSE(is_branch(Opcode::CALL));
}

TEST_CASE("packed halves are compared by the pipe of halves on sm_80, by the ALU on sm_90") {
  const auto pipe = [](const std::string& opcode, int sm) { return decoded(opcode, "R4, R8, R12, PT", sm).pipe; };
  CHECK(pipe("HSET2.BF.LT.AND", 80) == Pipe::Fp16);
  CHECK(pipe("HSET2.BF.LT.AND", 90) == Pipe::Alu);
  CHECK(pipe("HADD2", 90) == Pipe::Fma);
}

TEST_CASE("matrix instructions are operations by type and shape") {
  const auto work = [](const std::string& opcode) { return matrix_work(decoded(opcode, "R4, R8, R12, R4")).value(); };
  const MatrixWork half = work("HMMA.16816.F32");
  CHECK(half.type == MatrixType::Half);
  CHECK(half.operations() == 2 * 16 * 8 * 16);
  CHECK_FALSE(half.sparse);
  CHECK(work("HMMA.16816.F16").type == MatrixType::HalfToHalf);
  CHECK(work("HMMA.16816.F32.BF16").type == MatrixType::Bfloat);
  CHECK(work("HMMA.1688.F32.TF32").type == MatrixType::Tfloat);
  CHECK(work("HMMA.1688.F32.TF32").operations() == 2 * 16 * 8 * 8);
  CHECK(work("IMMA.16832.S8.S8").type == MatrixType::Int8);
  CHECK(work("IMMA.16864.U4.U4").type == MatrixType::Int4);
  CHECK(work("DMMA.884").operations() == 2 * 8 * 8 * 4);
  const Instruction sparse = decoded("HMMA.SP.16832.F32", "R4, R8, R12, R4, R2, 0x0");
  CHECK(matrix_work(sparse)->sparse);
  CHECK(matrix_work(sparse)->operations() == 2 * 16 * 8 * 32);
  CHECK_FALSE(matrix_work(decoded("FFMA", "R4, R8, R12, R4")));
  CHECK(opcode_form(decoded("HMMA.16816.F32.BF16", "R4, R8, R12, R4")) == "HMMA.16x8x16.F32.BF16");
  CHECK(opcode_form(decoded("IMAD.WIDE.U32", "R4, R8, R12, R4")) == "IMAD");
}

TEST_CASE("halves that load a constant or widen are moves") {
  CHECK(is_disguised_move(decoded("HFMA2", "R4, -RZ, RZ, 1.875, 0")));
  CHECK_FALSE(is_disguised_move(decoded("HFMA2", "R4, R5, RZ, 1.875, 0")));
  CHECK_FALSE(is_disguised_move(decoded("HFMA2", "R4, -RZ, RZ, R5")));
  CHECK_FALSE(is_disguised_move(decoded("HFMA2", "R4, R5, R6, R7")));
  CHECK(is_disguised_move(decoded("HADD2.F32", "R4, -RZ, R5.H0_H0")));
  CHECK_FALSE(is_disguised_move(decoded("HADD2", "R4, R6, R5")));
}

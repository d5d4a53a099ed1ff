// Cycles that a fixed-latency result takes to each kind of reader, as ptxas keeps them (sass.md 3.1, 3.2), and what the
// schedule plans for results that come through a scoreboard (the GPU's model).
#include <algorithm>

#include "program/traits.h"
#include "sketch/assembler/code.h"

namespace forewarp::sketch {
namespace {

enum class Writer : std::uint8_t { Alu, Fma, Wide, Double, Matrix, LongMatrix, Uniform, Count };
enum class Reader : std::uint8_t { Alu, Fma, Half, Double, Matrix, Decoupled, Address, Uniform, Count };

// Rows: who reads; columns: who wrote.
constexpr std::uint8_t kDistances[static_cast<int>(Reader::Count)][static_cast<int>(Writer::Count)] = {
    //            Alu Fma Wide Double Matrix LongMatrix Uniform
    /* Alu */ {4, 5, 5, 10, 16, 24, 6},
    /* Fma */ {5, 4, 5, 10, 16, 24, 6},
    /* Half */ {5, 5, 5, 10, 16, 24, 6},
    /* Double */ {6, 6, 6, 8, 16, 24, 6},
    /* Matrix */ {7, 7, 7, 11, 16, 24, 9},
    /* Decoupled */ {4, 4, 5, 6, 15, 23, 9},
    /* Address */ {5, 5, 6, 7, 15, 23, 9},
    /* Uniform */ {4, 4, 4, 6, 15, 23, 4},
};
constexpr int kToUniform = 13;  ///< R2UR to whoever reads it
constexpr int kPredicateToGuard = 13, kPredicateToOperand = 5;

bool is_wide_product(const Instruction& in) {
  return traits(in.opcode).width == Width::Product && (in.has(Modifier::WIDE) || in.has(Modifier::HI));
}

Writer writer_of(const Instruction& in) {
  switch (in.pipe) {
    case Pipe::Fma:
    case Pipe::FmaHeavy:
    case Pipe::Fp16:
      return is_wide_product(in) ? Writer::Wide : Writer::Fma;
    case Pipe::Fp64:
      return Writer::Double;
    case Pipe::Tensor:
      return in.shape.k * (in.has(Modifier::TF32) ? 2 : 1) > 8 ? Writer::LongMatrix : Writer::Matrix;
    case Pipe::Uniform:
      return Writer::Uniform;
    default:
      return traits(in.opcode).operation == OperationClass::Uniform ? Writer::Uniform : Writer::Alu;
  }
}

Reader reader_of(const Instruction& in) {
  switch (in.pipe) {
    case Pipe::Fma:
    case Pipe::FmaHeavy:
    case Pipe::Fp16:
      return traits(in.opcode).operation == OperationClass::Hfma ? Reader::Half : Reader::Fma;
    case Pipe::Fp64:
      return Reader::Double;
    case Pipe::Tensor:
      return Reader::Matrix;
    case Pipe::Lsu:
      return Reader::Address;
    case Pipe::Uniform:
      return Reader::Uniform;
    case Pipe::Alu:
      return Reader::Alu;
    default:
      return Reader::Decoupled;
  }
}

}  // namespace

int result_distance(const Instruction& writer, File file, const Instruction& reader, bool as_guard) {
  if (file == File::Predicate)
    return as_guard || reader_of(reader) >= Reader::Decoupled ? kPredicateToGuard : kPredicateToOperand;
  if (writer.opcode == Opcode::R2UR) return kToUniform;
  return kDistances[static_cast<int>(reader_of(reader))][static_cast<int>(writer_of(writer))];
}

int planned_distance(const Instruction& writer, File file, const Instruction& reader, bool as_guard,
                     const GpuModel& model) {
  if (!writer.variable_latency) return result_distance(writer, file, reader, as_guard);
  switch (traits(writer.opcode).unit.timing) {
    case Timing::Memory:
      // As early as can be: what lies between a load from memory and its use is never enough.
      return writer.space == MemorySpace::Shared ? model.latency.shared_load : model.l1.hit_cycles * 100;
    case Timing::SpecialFunction:
      return model.latency.mufu;
    case Timing::Conversion:
      return model.latency.conversion;
    case Timing::Shuffle:
      return model.latency.shuffle;
    case Timing::ConstantLoad:
    case Timing::Index:
    case Timing::LaneAttribute:
      return model.l1.hit_cycles * 200;  // before those
    default:
      return model.latency.s2r;
  }
}

int pipe_distance(const Instruction& in, const GpuModel& model) {
  if (in.pipe == Pipe::Tensor) {
    // ptxas keeps products of 16 words of k 6 cycles apart on sm_90, shorter ones 4; 8 and 4 on sm_80 (sass.md 3.2).
    const bool is_long = writer_of(in) == Writer::LongMatrix;
    return is_long ? (model.sm >= 90 ? 6 : 8) : 4;
  }
  // Memory instructions 4 cycles apart, functions 8 (of 5,000 pairs in the project's own kernels, 97 %).
  if (in.memory != MemoryKind::None && in.space != MemorySpace::Constant) return 4;
  if (in.pipe == Pipe::Xu) return 8;
  if (in.pipe == Pipe::Lsu || in.pipe == Pipe::Adu || in.pipe == Pipe::Cbu) return 1;
  return std::clamp(model.pipe(in.pipe).interval, 1, 4);
}

}  // namespace forewarp::sketch

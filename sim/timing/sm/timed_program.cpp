#include "timing/sm/timed_program.h"

#include <algorithm>

#include "hardware/tensor.h"
#include "program/analysis.h"
#include "program/traits.h"
#include "trace/coalesce.h"

namespace forewarp {
namespace {

/// Cycles until the result of an instruction that completes through a scoreboard.
int result_latency(Timing timing, const VariableLatencySpec& latency) {
  switch (timing) {
    case Timing::SpecialFunction:
      return latency.mufu;
    case Timing::Conversion:
      return latency.conversion;
    case Timing::BitCount:
      return latency.popc;
    case Timing::Match:
      return latency.match;
    case Timing::Redux:
      return latency.redux;
    case Timing::Vote:
      return latency.vote;
    case Timing::Double:
      return latency.fp64;
    case Timing::Transpose:
      return latency.movm;
    case Timing::Pipe:
    case Timing::Commit:
    case Timing::Index:
    case Timing::LaneAttribute:
      return latency.s2r;
    case Timing::Memory:
    case Timing::Shuffle:
    case Timing::ConstantLoad:
    case Timing::Barrier:
    case Timing::ClusterBarrier:
    case Timing::Fence:
    case Timing::Depbar:
    case Timing::Exit:
    case Timing::Matrix:
    case Timing::Phase:
    case Timing::Box:
    case Timing::BoxCommit:
    case Timing::Group:
    case Timing::Product:
      break;
  }
  return 0;
}

bool reads_constant(const Instruction& in, TimedInstruction& out, int line_bytes) {
  for (int i = 0; i < in.operand_count; ++i) {
    const Operand& operand = in.operands[static_cast<std::size_t>(i)];
    if (operand.kind != OperandKind::Constant) continue;
    // Banks share the cache; give each its own range of lines.
    out.constant_line = static_cast<std::uint16_t>((operand.bank * 65536 + std::max(operand.offset, 0)) / line_bytes);
    return true;
  }
  return false;
}

/// IMAD.WIDE and IMAD.HI take two passes through the multiplier; aliases (IMAD.MOV and others) take one.
bool is_wide_product(const Instruction& in) {
  return traits(in.opcode).width == Width::Product && in.pipe != Pipe::Uniform &&
         (in.has(Modifier::WIDE) || in.has(Modifier::HI));
}

/// FP64 reads its pairs beside the ports of the others: DADD and FFMA or LOP3 in turn take 1.07 and 1.10 cycles each,
/// with four 32-bit reads a DADD (kernels/micro opcodes).
void register_reads(const Instruction& in, TimedInstruction& out) {
  if (in.pipe == Pipe::Fp64) return;
  // Sums of two have the second in the place of the addend, as their encoding and its reuse bits do.
  const bool sum = in.operation == OperationClass::Fadd || in.operation == OperationClass::Hadd;
  int slot = 0;
  for (int i = in.destination_count; i < in.operand_count && slot < 3; ++i) {
    const Operand& operand = in.operands[static_cast<std::size_t>(i)];
    if (operand.kind == OperandKind::Predicate || operand.kind == OperandKind::UniformPredicate) continue;
    if (operand.kind == OperandKind::Register && operand.index != kRegisterZero) {
      out.source[slot] = operand.index;
      if (operand.reuse) out.reuse = static_cast<std::uint8_t>(out.reuse | (1 << slot));
    }
    slot += sum ? 2 : 1;
  }
}

/// Registers of its addresses and values that an instruction sends to the memory pipe.
int registers_sent(const Instruction& in) {
  const Effects e = effects(in);
  int registers = 0;
  for (const SpanList* list : {&e.value_reads.registers, &e.address_reads.registers})
    for (const RegisterSpan& span : *list) registers += span.count;
  return std::max(1, registers);
}

Path path_of(const Instruction& in, Timing timing) {
  switch (timing) {
    case Timing::Pipe:
    case Timing::Double:
    case Timing::Matrix:
    case Timing::Transpose:
    case Timing::Vote: {
      const bool scoreboards = in.control.write_barrier != kNoScoreboard || in.control.read_barrier != kNoScoreboard;
      return scoreboards ? Path::Scoreboarded : Path::Fixed;
    }
    case Timing::SpecialFunction:
    case Timing::Conversion:
    case Timing::BitCount:
    case Timing::Match:
    case Timing::Redux:
      return Path::Queued;
    case Timing::Memory:
      return in.memory == MemoryKind::AsyncCopy ? Path::Copy : Path::Memory;
    case Timing::Commit:
      return Path::CopyCommit;
    case Timing::Shuffle:
      return Path::Shuffle;
    case Timing::ConstantLoad:
      return Path::ConstantLoad;
    case Timing::Index:
      return Path::Index;
    case Timing::LaneAttribute:
      return reads_lane_attribute(in) ? Path::Scoreboarded : Path::Index;
    case Timing::Barrier:
      return in.has(Modifier::ARV) ? Path::BarrierArrive : Path::Barrier;
    case Timing::ClusterBarrier:
      return in.opcode == Opcode::UCGABAR_ARV ? Path::ClusterArrive : Path::ClusterWait;
    case Timing::Fence:
      return Path::Membar;
    case Timing::Phase:
      return Path::Phase;
    case Timing::Box:
      return Path::Box;
    case Timing::BoxCommit:
      return Path::BoxCommit;
    case Timing::Group:
      return in.has(Modifier::DEPBAR) ? Path::GroupWait : Path::GroupMeet;
    case Timing::Product:
      return Path::GroupProduct;
    case Timing::Depbar:
      return Path::Depbar;
    case Timing::Exit:
      return Path::Exit;
  }
  return Path::Fixed;
}

TimedInstruction make(const Instruction& in, TraceEvent event, const GpuModel& gpu) {
  TimedInstruction out;
  const OpcodeTraits& t = traits(in.opcode);
  const UnitTraits& unit = t.unit;
  out.event = event;
  out.path = path_of(in, unit.timing);
  out.pipe = in.pipe;
  out.space = in.space;
  out.memory = in.memory;
  // A stall count of 1 without the bit by which a warp goes on lets others issue first, and takes 2 cycles
  // (kernels/micro tensor_chains: HMMA.16x8x8 and such a NOP 17.0 cycles, of stall counts 15 and 1).
  out.stall = in.control.stall == 1 && !in.control.yield ? 2 : std::max<std::uint8_t>(1, in.control.stall);
  out.wait_mask = in.control.wait_mask;
  out.write_barrier = in.control.write_barrier;
  out.read_barrier = in.control.read_barrier;
  out.interval = static_cast<std::uint8_t>(std::max(1, gpu.pipe(in.pipe).interval));
  const std::optional<MatrixWork> matrix = matrix_work(in);
  if (matrix)
    out.interval = static_cast<std::uint8_t>(
        std::clamp(matrix_interval(gpu.tensor, *matrix, gpu.l1.data_bytes_per_cycle), 1, 255));
  // sm__inst_executed_pipe_fmaheavy and _fmalite both count each of them (kernels/micro opcodes: hadd2, hmul2,
  // hfma2_bf16).
  out.both_halves =
      in.pipe == Pipe::Fma && (in.operation == OperationClass::Hadd || in.operation == OperationClass::Hmul ||
                               in.operation == OperationClass::Hfma);
  if (unit.timing == Timing::Transpose) out.interval = static_cast<std::uint8_t>(gpu.memory_pipe.movm_interval);
  if (is_wide_product(in)) {
    out.product = true;
    out.interval = static_cast<std::uint8_t>(gpu.issue.wide_product_interval);
    out.dispatch = static_cast<std::uint8_t>(gpu.issue.wide_product_dispatch_cycles);
  }
  if (out.path == Path::ConstantLoad || out.path == Path::Index)
    out.interval = static_cast<std::uint8_t>(std::max(1, gpu.pipe(Pipe::Adu).interval));
  // Rows of matrices are spread over the banks as words of lanes are: LDSM takes no longer for being wide
  // (kernels/micro ldmatrix: 28.6, 30.8, 34.8 cycles for 1, 2, 4 matrices, 2 a wavefront).
  const bool rows = t.width == Width::MatrixRows;
  if (in.memory == MemoryKind::Load && !rows)
    out.wide = static_cast<std::uint8_t>(std::max(4, int{in.access_bytes}) / 4 - 1);
  out.control = leaves_line(t.flow);
  out.passes_barrier = out.path == Path::Fixed && unit.at_barrier == AtBarrier::Passes;
  out.bypass_l1 = in.has(Modifier::STRONG) && (in.has(Modifier::GPU) || in.has(Modifier::SYS));
  if (out.path == Path::Copy) out.bypass_l1 = in.has(Modifier::BYPASS);
  out.memory_queue =
      out.path == Path::Memory || out.path == Path::Shuffle || out.path == Path::Copy || out.path == Path::CopyCommit;
  if (out.memory_queue) out.send = static_cast<std::uint8_t>(registers_sent(in) * gpu.memory_pipe.register_cycles);
  out.long_wait = out.memory_queue ? out.path != Path::Shuffle && in.space != MemorySpace::Shared : waits_for_phase(in);
  if (matrix) {
    out.matrix = true;
    for (int i = 0; i < 3; ++i) out.pairs[i] = static_cast<std::uint8_t>((operand_width(in, i + 1) + 1) / 2);
    out.metadata_pairs = matrix->sparse ? 1 : 0;
    out.operand_pairs = static_cast<std::uint8_t>(out.pairs[0] + out.pairs[1] + out.pairs[2] + out.metadata_pairs);
  }
  if (out.path == Path::GroupProduct) out.slabs = matrix_slabs(gpu, *matrix, operand_width(in, 0));
  const bool constant = reads_constant(in, out, std::max(1, gpu.issue.constant_line_bytes));
  out.constant_operand = constant && out.path != Path::ConstantLoad;
  if (out.path == Path::Queued || out.path == Path::Scoreboarded || out.path == Path::Index)
    out.latency = static_cast<std::uint16_t>(result_latency(unit.timing, gpu.latency));
  if (matrix && out.path == Path::Scoreboarded)
    out.latency = static_cast<std::uint16_t>(matrix_latency(gpu.tensor, *matrix));
  if (out.path == Path::GroupWait || out.path == Path::GroupProduct) {
    for (int i = 0; i < in.operand_count; ++i) {
      const Operand& operand = in.operands[static_cast<std::size_t>(i)];
      out.commits |= operand.kind == OperandKind::Scoreboard;
      if (operand.kind == OperandKind::Immediate) out.count = static_cast<std::uint8_t>(operand.immediate);
    }
  }
  out.prefetch = t.slice == Slice::Prefetch;
  out.block_fence = out.path == Path::Membar && in.has(Modifier::CTA);
  out.fences_all = out.path == Path::Membar && !out.block_fence && gpu.sm >= 90;
  if (out.path == Path::Depbar) {
    // SB0, limit {, the set of those that must be zero}
    int immediates = 0;
    for (int i = 0; i < in.operand_count; ++i) {
      const Operand& operand = in.operands[static_cast<std::size_t>(i)];
      if (operand.kind == OperandKind::Scoreboard) out.depbar_scoreboard = operand.index;
      if (operand.kind != OperandKind::Immediate) continue;
      if (immediates++ == 0)
        out.count = static_cast<std::uint8_t>(operand.immediate);
      else
        out.wait_mask = static_cast<std::uint8_t>(out.wait_mask | (operand.immediate & ((1u << kScoreboards) - 1)));
    }
    if (out.count == 0) out.wait_mask = static_cast<std::uint8_t>(out.wait_mask | 1u << out.depbar_scoreboard);
  }
  out.wavefront_factor = static_cast<std::uint8_t>(wavefront_factor(in));
  register_reads(in, out);
  out.reads_registers = out.path != Path::GroupProduct &&
                        (out.memory_queue || std::any_of(std::begin(out.source), std::end(out.source),
                                                         [](std::uint8_t source) { return source != kRegisterZero; }));
  return out;
}

bool writes_any(const Instruction& in, const SpanList& registers) {
  const SpanList written = effects(in).writes.registers;
  return std::any_of(registers.begin(), registers.end(),
                     [&](const RegisterSpan& r) { return written.contains(r.first); });
}

/// A 64-bit product reads its factors later than stall counts allow: where they are too fresh, the instruction before
/// it stalls for longer. Looks back along the straight line only.
void wait_for_factors(const Kernel& kernel, const IssueSpec& spec, std::vector<TimedInstruction>& timed) {
  const int furthest = std::max(spec.wide_product_operand_cycles, spec.wide_product_chain_cycles);
  for (std::size_t i = 1; i < timed.size(); ++i) {
    if (!timed[i].product) continue;
    const Instruction& product = kernel.instructions[i];
    SpanList factors;
    for (std::size_t f = 0; f < 2; ++f) {
      const Operand& factor = product.operands[product.destination_count + f];
      if (factor.kind == OperandKind::Register) factors.add(factor.index, 1, kRegisterZero);
    }
    int passed = 0;
    for (std::size_t back = 1; back <= i && passed < furthest; ++back) {
      const TimedInstruction& producer = timed[i - back];
      passed += producer.stall + producer.dispatch - 1;
      if (producer.control) break;
      if (producer.path != Path::Fixed || !writes_any(kernel.instructions[i - back], factors)) continue;
      const int needed = producer.product ? spec.wide_product_chain_cycles : spec.wide_product_operand_cycles;
      if (needed > passed) timed[i - 1].stall = static_cast<std::uint8_t>(timed[i - 1].stall + needed - passed);
      break;
    }
  }
}

}  // namespace

TimedProgram::TimedProgram(const Kernel& kernel, const GpuModel& gpu) : events_(kernel) {
  instructions_.reserve(kernel.instructions.size());
  for (const Instruction& in : kernel.instructions)
    instructions_.push_back(make(in, events_[static_cast<std::uint32_t>(instructions_.size())], gpu));
  wait_for_factors(kernel, gpu.issue, instructions_);
  for (const Instruction& in : kernel.instructions)
    stores_boxes_ |= traits(in.opcode).unit.timing == Timing::Box && copies_outward(in);
  for (const TimedInstruction& in : instructions_) {
    if (in.path == Path::Depbar && in.count > 0) counted_scoreboards_ |= 1u << in.depbar_scoreboard;
    phases_ |= in.path == Path::Phase || in.path == Path::ClusterArrive || in.path == Path::ClusterWait;
    copies_ |= in.path == Path::Copy || in.path == Path::CopyCommit;
    stores_boxes_ |= in.path == Path::BoxCommit;
  }
  instructions_per_line_ = static_cast<std::uint32_t>(gpu.icache.line_bytes / 16);
  code_lines_ =
      (static_cast<std::uint32_t>(instructions_.size()) + instructions_per_line_ - 1) / instructions_per_line_;
}

}  // namespace forewarp

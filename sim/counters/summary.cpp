#include "counters/summary.h"

#include "base/error.h"

namespace forewarp {

bool is_counted_branch(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::BRA:
    case Opcode::BRX:
    case Opcode::BRXU:
    case Opcode::JMP:
    case Opcode::JMX:
    case Opcode::JMXU:
    case Opcode::CALL:
    case Opcode::RET:
      return true;
    case Opcode::WARPSYNC:
      return instruction.has(Modifier::EXCLUSIVE);
    default:
      return false;
  }
}

namespace {

/// The part of a count that went to shared memory, and the part that went elsewhere. `executed` and the lanes stay with
/// the space of the instruction itself (generic: global, unless every request was to shared memory).
void add_memory(const Instruction& instruction, const InstructionCount& count, CountSummary& summary) {
  const auto kind = static_cast<std::size_t>(instruction.memory);
  auto& shared = summary.memory[static_cast<std::size_t>(CountedSpace::Shared)][kind];
  auto& other = summary.memory[static_cast<std::size_t>(
      instruction.space == MemorySpace::Local ? CountedSpace::Local : CountedSpace::Global)][kind];
  const bool at_shared =
      instruction.space == MemorySpace::Shared || (count.requests == 0 && count.shared_requests != 0);
  InstructionCount in_shared, elsewhere = count;
  in_shared.shared_requests = count.shared_requests;
  in_shared.wavefronts = count.wavefronts;
  in_shared.ideal_wavefronts = count.ideal_wavefronts;
  in_shared.bank_conflicts = count.bank_conflicts;
  elsewhere.shared_requests = elsewhere.wavefronts = elsewhere.ideal_wavefronts = elsewhere.bank_conflicts = 0;
  if (at_shared) {
    shared.add(count);
  } else {
    shared.add(in_shared);
    other.add(elsewhere);
  }
}

bool counts_as_memory(const Instruction& instruction) {
  if (instruction.memory == MemoryKind::None) return false;
  switch (instruction.space) {
    case MemorySpace::Global:
    case MemorySpace::Local:
    case MemorySpace::Shared:
    case MemorySpace::Generic:
      return true;
    default:
      return false;
  }
}

}  // namespace

CountSummary summarize(const Kernel& kernel, int sm, const std::vector<InstructionCount>& totals) {
  FW_CHECK(totals.size() <= kernel.instructions.size(), "more counts than instructions");
  CountSummary summary;
  summary.sm = sm;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const InstructionCount& count = totals[i];
    if (count.executed == 0) continue;
    const Instruction& instruction = kernel.instructions[i];
    summary.all.add(count);
    summary.pipe[static_cast<std::size_t>(instruction.pipe)].add(count);
    summary.operation[static_cast<std::size_t>(instruction.operation)].add(count);
    if (is_counted_branch(instruction)) summary.branch.add(count);
    const bool on_cbu = instruction.pipe == Pipe::Cbu;
    if (on_cbu && instruction.opcode != Opcode::BMOV && instruction.opcode != Opcode::BSSY)
      summary.control_transfer.add(count);
    const bool half = instruction.operation == OperationClass::Hadd || instruction.operation == OperationClass::Hmul ||
                      instruction.operation == OperationClass::Hfma;
    if (half && instruction.pipe == Pipe::Fma) summary.half_on_fma.add(count);
    if (counts_as_memory(instruction)) add_memory(instruction, count, summary);
  }
  return summary;
}

}  // namespace forewarp

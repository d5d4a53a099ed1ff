#include "counters/summary.h"

#include <algorithm>

#include "base/error.h"
#include "program/analysis.h"
#include "program/traits.h"

namespace forewarp {

namespace {

/// Passes of the data stage, counted with shared memory's, for instructions that move nothing of it: shuffles, lane
/// attributes, memory instructions none of whose lanes takes part (they pass once all the same), fences (two; one
/// within the block), and the zeros that asynchronous copies write.
std::uint64_t other_wavefronts(const Instruction& instruction, const InstructionCount& count) {
  const Timing timing = traits(instruction.opcode).unit.timing;
  if (timing == Timing::Shuffle) return count.executed;
  if (timing == Timing::LaneAttribute) return reads_lane_attribute(instruction) ? count.executed : 0;
  if (timing == Timing::Fence) return count.executed * (instruction.has(Modifier::CTA) ? 1 : 2);
  const bool memory = instruction.memory != MemoryKind::None && instruction.pipe == Pipe::Lsu;
  return count.zero_wavefronts + (memory ? count.executed - count.executed_on : 0);
}

}  // namespace

bool is_counted_branch(const Instruction& instruction) {
  const Flow flow = traits(instruction.opcode).flow;
  return is_branch(instruction.opcode) || flow == Flow::Call || flow == Flow::Return ||
         (flow == Flow::WarpSync && instruction.has(Modifier::EXCLUSIVE));
}

Pipe counted_pipe(const Instruction& instruction) {
  // Solved from an H200's counters over kernels/micro and the ladders (FINDINGS.md).
  switch (traits(instruction.opcode).counted) {
    case Counted::Own:
      return instruction.pipe;
    case Counted::Uncounted:
      return Pipe::None;
    case Counted::Tex:
      return Pipe::Tex;
    case Counted::Adu:
      return Pipe::Adu;
    case Counted::LaneAttribute:
      return reads_lane_attribute(instruction) ? Pipe::Lsu : Pipe::Adu;
  }
  return instruction.pipe;
}

namespace {

void add_matrix(const Instruction& instruction, const InstructionCount& count, CountSummary& summary) {
  const std::optional<MatrixWork> work = matrix_work(instruction);
  if (!work) {
    if (instruction.pipe == Pipe::Tensor) summary.half_on_tensor.add(count);
    return;
  }
  auto& operations = work->of_group() ? summary.group_operations : summary.warp_operations;
  operations[static_cast<std::size_t>(work->type)][work->sparse ? 1 : 0] += work->operations() * count.executed_on;
  if (work->of_group()) {
    InstructionCount product = count;
    product.bytes = count.executed_on * static_cast<std::uint64_t>(work->shared_bytes()) /
                    static_cast<std::uint64_t>(work->rows / MatrixWork::kWarpRows);
    product.wavefronts = product.bytes / kLineBytes;
    summary.group_products.add(product);
  }
  switch (work->type) {
    case MatrixType::Int8:
    case MatrixType::Int4:
    case MatrixType::Bit:
      summary.integer_matrix.add(count);
      break;
    case MatrixType::Double:
      summary.double_matrix.add(count);
      break;
    default:
      summary.float_matrix.add(count);
      break;
  }
}

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
    summary.pipe[static_cast<std::size_t>(counted_pipe(instruction))].add(count);
    summary.operation[static_cast<std::size_t>(instruction.operation)].add(count);
    if (is_counted_branch(instruction)) summary.branch.add(count);
    const Flow flow = traits(instruction.opcode).flow;
    if (instruction.pipe == Pipe::Cbu && flow != Flow::BarrierMove && flow != Flow::Region)
      summary.control_transfer.add(count);
    const bool half = instruction.operation == OperationClass::Hadd || instruction.operation == OperationClass::Hmul ||
                      instruction.operation == OperationClass::Hfma;
    if (half && (instruction.pipe == Pipe::Fma || instruction.pipe == Pipe::FmaHeavy)) summary.half_on_fma.add(count);
    add_matrix(instruction, count, summary);
    summary.other_wavefronts += other_wavefronts(instruction, count);
    if (counts_as_memory(instruction)) add_memory(instruction, count, summary);
    if (instruction.opcode == Opcode::LDSM) summary.matrix_loads.add(count);
    if (instruction.opcode == Opcode::STSM) summary.matrix_stores.add(count);
  }
  return summary;
}

namespace {

bool is_barrier(const Instruction& instruction) { return traits(instruction.opcode).unit.timing == Timing::Barrier; }

/// What a barrier waits for in the data stage: it sends a pass after it, but not after a barrier alone (sync_threads of
/// kernels/micro makes one pass for 250 barriers).
bool passes_data_stage(const Instruction& instruction) {
  const Timing timing = traits(instruction.opcode).unit.timing;
  return (instruction.space == MemorySpace::Shared && instruction.memory != MemoryKind::None) ||
         timing == Timing::Shuffle || (timing == Timing::LaneAttribute && reads_lane_attribute(instruction));
}

/// Barriers on the way of a warp that find passes of the data stage since the one before. `barriers` and `accesses`
/// count those before each instruction of the kernel.
std::uint64_t ordering_barriers(const WarpPath& path, const Kernel& kernel, const std::vector<std::uint32_t>& barriers,
                                const std::vector<std::uint32_t>& accesses) {
  std::uint64_t found = 0;
  bool pending = false;
  for (const Run& run : path.runs) {
    const std::uint32_t end = run.first + run.count;
    if (barriers[end] == barriers[run.first]) {
      pending |= accesses[end] != accesses[run.first];
      continue;
    }
    for (std::uint32_t i = run.first; i < end; ++i) {
      pending |= passes_data_stage(kernel.instructions[i]);
      if (!is_barrier(kernel.instructions[i])) continue;
      found += pending;
      pending = false;
    }
  }
  return found;
}

}  // namespace

std::uint64_t ordering_barriers(const KernelTrace& trace) {
  const Kernel& kernel = *trace.kernel;
  std::vector<std::uint32_t> barriers{0}, accesses{0};
  for (const Instruction& instruction : kernel.instructions) {
    barriers.push_back(barriers.back() + is_barrier(instruction));
    accesses.push_back(accesses.back() + passes_data_stage(instruction));
  }
  if (barriers.back() == 0 || accesses.back() == 0) return 0;
  std::uint64_t sum = 0;
  for (const BlockClass& c : trace.classes)
    if (!c.warps.empty())
      sum += c.population * ordering_barriers(c.paths[c.warps.front().path], kernel, barriers, accesses);
  return sum;
}

}  // namespace forewarp

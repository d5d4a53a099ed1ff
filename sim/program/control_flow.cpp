// Successors and predecessors. A call goes to its target; a return goes behind every call from which it can be reached
// without returning first. BSSY, BSYNC and BREAK do not jump: lanes wait at BSYNC and go on behind it.
#include <algorithm>

#include "program/analysis.h"
#include "program/traits.h"

namespace forewarp {
namespace {

using Edges = std::vector<std::vector<std::uint32_t>>;

const Operand* target_operand(const Instruction& instruction) {
  for (int i = 0; i < instruction.operand_count; ++i) {
    if (instruction.operands[i].kind == OperandKind::Target) return &instruction.operands[i];
  }
  return nullptr;
}

/// The known target of a call; with a register in front (CALL.REL R8, function) it only says where the register counts
/// from.
const Operand* call_target(const Instruction& instruction) {
  return instruction.operands[0].kind == OperandKind::Register ? nullptr : target_operand(instruction);
}

bool has_condition(const Instruction& instruction) {
  if (!always_executes(instruction)) return true;
  for (int i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[i];
    const bool predicate = operand.kind == OperandKind::Predicate || operand.kind == OperandKind::UniformPredicate;
    if (predicate && (operand.index != kPredicateTrue || operand.invert)) return true;
  }
  return instruction.has(Modifier::DIV) || instruction.has(Modifier::CONV);
}

class Builder {
 public:
  explicit Builder(const Kernel& kernel) : kernel_(kernel), edges_(kernel.instructions.size()) {}

  Edges run() {
    const auto count = static_cast<std::uint32_t>(kernel_.instructions.size());
    for (std::uint32_t i = 0; i < count; ++i) add_direct(i);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (calls_function(i)) link_returns(i);
    }
    for (auto& list : edges_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    return std::move(edges_);
  }

 private:
  void add(std::uint32_t from, std::uint32_t to) {
    if (to < edges_.size()) edges_[from].push_back(to);
  }

  void add_direct(std::uint32_t i) {
    const Instruction& instruction = kernel_.instructions[i];
    bool falls_through = true;
    if (may_execute(instruction)) {
      switch (traits(instruction.opcode).flow) {
        case Flow::Jump:
          add_target(i, instruction);
          falls_through = has_condition(instruction);
          break;
        case Flow::Call:
          add_call(i, instruction);
          falls_through = has_condition(instruction) || call_target(instruction) == nullptr;
          break;
        case Flow::WarpSync:
          add_target(i, instruction);
          break;  // .COLLECTIVE names where its section ends
        case Flow::Indirect:
          add_indirect(i);
          falls_through = has_condition(instruction);
          break;
        case Flow::Return:
        case Flow::End:
          falls_through = has_condition(instruction);
          break;
        case Flow::Next:
        case Flow::Region:
        case Flow::Converge:
        case Flow::BarrierMove:
        case Flow::State:
          break;
      }
    }
    if (falls_through) add(i, i + 1);
  }

  void add_target(std::uint32_t i, const Instruction& instruction) {
    if (const Operand* target = target_operand(instruction)) add(i, target->immediate);
  }

  /// A call through a register can reach any function of the kernel.
  void add_call(std::uint32_t i, const Instruction& instruction) {
    if (const Operand* target = call_target(instruction)) {
      add(i, target->immediate);
      return;
    }
    for (const Function& function : kernel_.functions) {
      if (function.first != 0) add(i, function.first);
    }
  }

  /// The compiler records the targets of jump tables; without a record any instruction may follow.
  void add_indirect(std::uint32_t i) {
    for (const IndirectBranch& branch : kernel_.indirect_branches) {
      if (branch.instruction != i) continue;
      for (const std::uint32_t target : branch.targets) add(i, target);
      return;
    }
    for (std::uint32_t to = 0; to < edges_.size(); ++to) add(i, to);
  }

  /// The compiler also uses CALL as a plain jump inside a function; those do not return.
  bool calls_function(std::uint32_t i) const {
    const Instruction& instruction = kernel_.instructions[i];
    if (traits(instruction.opcode).flow != Flow::Call || !may_execute(instruction)) return false;
    const Operand* target = call_target(instruction);
    return target == nullptr || std::any_of(kernel_.functions.begin(), kernel_.functions.end(),
                                            [&](const Function& f) { return f.first == target->immediate; });
  }

  /// Walks from the call's targets over direct edges and lets every return met come back behind the call. Calls of
  /// functions met on the way are stepped over: their returns come back to them.
  void link_returns(std::uint32_t call) {
    std::vector<bool> seen(edges_.size(), false);
    std::vector<std::uint32_t> work;
    const auto visit = [&](std::uint32_t to) {
      if (to < seen.size() && !seen[to]) {
        seen[to] = true;
        work.push_back(to);
      }
    };
    const Instruction& instruction = kernel_.instructions[call];
    if (const Operand* target = call_target(instruction)) {
      visit(target->immediate);
    } else {
      for (const std::uint32_t to : edges_[call]) visit(to);
    }
    while (!work.empty()) {
      const std::uint32_t at = work.back();
      work.pop_back();
      if (traits(kernel_.instructions[at].opcode).flow == Flow::Return) {
        add(at, call + 1);
        if (has_condition(kernel_.instructions[at])) visit(at + 1);
        continue;
      }
      if (calls_function(at)) {
        visit(at + 1);
        continue;
      }
      for (const std::uint32_t to : edges_[at]) visit(to);
    }
  }

  const Kernel& kernel_;
  Edges edges_;
};

}  // namespace

ControlFlow::ControlFlow(const Kernel& kernel) {
  const Edges edges = Builder(kernel).run();
  const std::size_t count = edges.size();
  successors_.offsets.assign(count + 1, 0);
  predecessors_.offsets.assign(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) {
    successors_.offsets[i + 1] = successors_.offsets[i] + static_cast<std::uint32_t>(edges[i].size());
    successors_.targets.insert(successors_.targets.end(), edges[i].begin(), edges[i].end());
    for (const std::uint32_t to : edges[i]) ++predecessors_.offsets[to + 1];
  }
  for (std::size_t i = 0; i < count; ++i) predecessors_.offsets[i + 1] += predecessors_.offsets[i];
  predecessors_.targets.resize(successors_.targets.size());
  std::vector<std::uint32_t> next(predecessors_.offsets.begin(), predecessors_.offsets.end() - 1);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::uint32_t to : edges[i]) predecessors_.targets[next[to]++] = static_cast<std::uint32_t>(i);
  }
}

}  // namespace forewarp

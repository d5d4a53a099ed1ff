#include "program/slice.h"

#include <algorithm>
#include <array>
#include <bitset>

#include "program/analysis.h"
#include "program/traits.h"

namespace forewarp {
namespace {

// One bit a location: general registers, uniform registers, predicates, uniform predicates, convergence barriers, and
// the result of a block's reducing barrier (BAR.RED writes it, B2R.RESULT reads it), and the words of the stack frame
// in which a thread keeps registers that it has no room for.
constexpr std::size_t kUniformBase = 256;
constexpr std::size_t kPredicateBase = kUniformBase + 64;
constexpr std::size_t kUniformPredicateBase = kPredicateBase + 8;
constexpr std::size_t kBarrierBase = kUniformPredicateBase + 8;
constexpr std::size_t kReductionResult = kBarrierBase + 16;
constexpr std::size_t kSlotBase = kReductionResult + 1;
constexpr std::size_t kSlots = 160;  // words of a stack frame that are told apart
constexpr std::size_t kLocations = kSlotBase + kSlots;
using Locations = std::bitset<kLocations>;

void set_spans(Locations& set, const SpanList& spans, std::size_t base) {
  for (const RegisterSpan& span : spans) {
    for (int i = 0; i < span.count; ++i) set.set(base + span.first + static_cast<std::size_t>(i));
  }
}

void set_mask(Locations& set, std::uint32_t mask, std::size_t base) {
  for (std::size_t i = 0; mask != 0; ++i, mask >>= 1) {
    if (mask & 1u) set.set(base + i);
  }
}

Locations locations(const LocationSet& from) {
  Locations set;
  set_spans(set, from.registers, 0);
  set_spans(set, from.uniforms, kUniformBase);
  set_mask(set, from.predicates, kPredicateBase);
  set_mask(set, from.uniform_predicates, kUniformPredicateBase);
  set_mask(set, from.barriers, kBarrierBase);
  return set;
}

/// A predicate with a polarity under which something is demanded: 0 is no condition, then P0, !P0, P1, !P1, ...
/// A value that @P0 reads is not needed where P0 is false, so that what @P0 wrote before is all that matters: without
/// this, guarded address arithmetic in a loop would seem to read what the previous iteration left in its registers.
using Condition = std::size_t;
constexpr Condition kAlways = 0;
constexpr std::size_t kConditions = 1 + 2 * kPredicateTrue;

Condition opposite(Condition condition) { return ((condition - 1) ^ 1) + 1; }

using Demand = std::array<Locations, kConditions>;

/// What the transfer function needs of one instruction.
struct Step {
  Locations guard;   ///< demanded in any case
  Locations always;  ///< demanded where the guard holds: addresses, operands of control
  Locations values;  ///< demanded there if the instruction is needed
  Locations writes;
  Condition condition = kAlways;  ///< the guard, if it is a predicate of lanes
  bool guarded = false;
  bool per_lane = false;  ///< a lane's result depends on that lane alone
  bool root = false;
  bool guard_counts_threads = false;  ///< the guard says nothing but which threads the instruction counts for
  GuardTaken to_fast_path = GuardTaken::Followed;  ///< the guard of a branch between a fast and a slow path
  bool follows_guard = true;
  std::uint8_t writes_predicates = 0;
  MemorySpace reads_space = MemorySpace::None;
  MemorySpace writes_space = MemorySpace::None;
};

constexpr std::int32_t kWordBytes = 4;
constexpr int kStackRegister = 1;

const Operand* memory_operand(const Instruction& instruction) {
  for (int i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i].kind == OperandKind::Memory) return &instruction.operands[i];
  return nullptr;
}

/// Memory whose values an instruction takes and gives. Constants never change and do not count.
void set_spaces(const Instruction& instruction, Step& step) {
  const MemorySpace space = instruction.space == MemorySpace::Constant ? MemorySpace::None : instruction.space;
  switch (instruction.memory) {
    case MemoryKind::Load:
      step.reads_space = space;
      break;
    case MemoryKind::Store:
      step.writes_space = space;
      break;
    case MemoryKind::Atomic:
    case MemoryKind::Reduction:
      step.reads_space = step.writes_space = space;
      break;
    case MemoryKind::AsyncCopy: {
      if (traits(instruction.opcode).slice == Slice::Prefetch) break;
      const bool outward = copies_outward(instruction);
      step.reads_space = outward ? MemorySpace::Shared : MemorySpace::Global;
      step.writes_space = outward ? MemorySpace::Global : MemorySpace::Shared;
      break;
    }
    case MemoryKind::None:
      break;
  }
}

/// Whether the words of a kernel's stack frame can be told apart: every local access is at a constant distance from R1,
/// which stays as it is from the first of them on, within the slots, and nothing else can reach the frame.
bool has_slots(const Kernel& kernel) {
  bool seen = false;
  for (const Instruction& in : kernel.instructions) {
    if (!may_execute(in)) continue;
    if (seen) {
      for (const RegisterSpan& span : effects(in).writes.registers)
        if (span.first <= kStackRegister && kStackRegister < span.first + span.count) return false;
    }
    if (in.space == MemorySpace::Generic) return false;
    if (in.space != MemorySpace::Local || in.memory == MemoryKind::None) continue;
    seen = true;
    const Operand* at = memory_operand(in);
    const bool plain = at != nullptr && at->index == kStackRegister && at->uniform == kUniformRegisterZero &&
                       at->offset >= 0 && at->offset % kWordBytes == 0 && in.access_bytes % kWordBytes == 0;
    if (!plain || static_cast<std::size_t>(at->offset + in.access_bytes) > kSlots * kWordBytes) return false;
  }
  return seen;
}

/// An access to words of the frame reads or writes these as if they were registers.
void set_slots(const Instruction& instruction, Step& step) {
  const Operand& at = *memory_operand(instruction);
  Locations& words = instruction.memory == MemoryKind::Load ? step.values : step.writes;
  for (std::int32_t b = 0; b < instruction.access_bytes; b += kWordBytes)
    words.set(kSlotBase + static_cast<std::size_t>((at.offset + b) / kWordBytes));
  step.reads_space = step.writes_space = MemorySpace::None;
}

Step make_step(const Instruction& instruction) {
  Step step;
  if (!may_execute(instruction)) return step;
  const Effects effect = effects(instruction);
  step.writes = locations(effect.writes);
  step.writes_predicates = effect.writes.predicates;
  step.guarded = !always_executes(instruction);
  if (step.guarded && !instruction.guard_uniform && instruction.guard != kPredicateTrue) {
    step.condition = 1 + 2 * std::size_t{instruction.guard} + (instruction.guard_negated ? 1 : 0);
  }
  const Slice slice = traits(instruction.opcode).slice;
  step.per_lane = slice != Slice::Warp && slice != Slice::BlockResult;
  step.guard = locations(effect.guard);
  step.values = locations(effect.value_reads);
  step.always = locations(effect.address_reads);
  // Barriers in memory and tensor copies steer warps: what they are given decides who waits.
  const bool barrier_object = slice == Slice::BarrierObject;
  step.root = is_control(instruction.opcode) || barrier_object || instruction.pipe == Pipe::Tma;
  if (step.root) step.always |= step.values;
  if (!barrier_object) set_spaces(instruction, step);
  if (instruction.memory == MemoryKind::AsyncCopy) {
    // Its predicate says which lanes read their source; the others write zeros.
    LocationSet readers;
    readers.predicates = effect.value_reads.predicates;
    readers.uniform_predicates = effect.value_reads.uniform_predicates;
    step.always |= locations(readers);
  }
  if (slice == Slice::BlockReduction && instruction.has(Modifier::RED)) {
    // Who takes part is in registers; the predicate is only what the barrier reduces.
    LocationSet participants = effect.value_reads;
    participants.predicates = 0;
    step.always = locations(participants);
    step.writes.set(kReductionResult);
    step.root = false;
  }
  if (slice == Slice::BlockResult && instruction.has(Modifier::RESULT)) step.values.set(kReductionResult);
  return step;
}

/// Pipes of instructions that move data between registers, and do nothing where their guard is false.
bool computes_alone(const Instruction& instruction) {
  if (instruction.memory != MemoryKind::None || is_control(instruction.opcode) || !instruction.understood) return false;
  switch (instruction.pipe) {
    case Pipe::Alu:
    case Pipe::Fma:
    case Pipe::FmaHeavy:
    case Pipe::Fp16:
    case Pipe::Fp64:
    case Pipe::Xu:
    case Pipe::Tensor:
    case Pipe::Uniform:
      return true;
    default:
      return false;
  }
}

/// What ptxas calls for operands that the fast way of an IEEE division, reciprocal or root does not cover, like
/// __cuda_sm20_rcp_rn_f32_slowpath.
bool is_slow_path(const std::string& function) {
  return function.find("__cuda_sm") != std::string::npos && function.ends_with("_slowpath");
}

/// Whether the way from an instruction on calls a slow path before anything else can happen.
bool leads_to_slow_path(const Kernel& kernel, const ControlFlow& flow, std::uint32_t at) {
  while (at < kernel.instructions.size() && !is_control(kernel.instructions[at].opcode)) ++at;
  if (at == kernel.instructions.size() || kernel.instructions[at].opcode != Opcode::CALL) return false;
  const auto next = flow.successors(at);
  return std::any_of(kernel.functions.begin(), kernel.functions.end(), [&](const Function& f) {
    return is_slow_path(f.name) && std::find(next.begin(), next.end(), f.first) != next.end();
  });
}

class Slicer {
 public:
  Slicer(const Kernel& kernel, const SliceOptions& options)
      : kernel_(kernel),
        flow_(kernel),
        stores_left_(options.stores == Stores::Left),
        leaves_stores_(stores_left_),
        left_(kernel.instructions.size(), 0) {
    steps_.reserve(kernel.instructions.size());
    const bool slots = has_slots(kernel);
    for (const Instruction& instruction : kernel.instructions) {
      steps_.push_back(make_step(instruction));
      Step& step = steps_.back();
      if (slots && instruction.space == MemorySpace::Local && instruction.memory != MemoryKind::None &&
          may_execute(instruction))
        set_slots(instruction, step);
      step.guard_counts_threads = step.guarded && !step.root && computes_alone(instruction);
      if (step.condition != kAlways && instruction.opcode == Opcode::BRA && step.always.none())
        step.to_fast_path = fast_path(static_cast<std::uint32_t>(steps_.size() - 1));
      // Who waits for a copy to global memory is decided where it is carried out.
      leaves_stores_ &= !may_execute(instruction) || !copies_outward(instruction);
      hard_.push_back(may_execute(instruction) &&
                      (multiplies_matrices(instruction.opcode) || (options.hard && options.hard(instruction))));
    }
  }

  ProgramSlice run(Guards guards) {
    slice();
    if (stores_left_ && needs_hard()) leave_hard_stores();
    if (guards == Guards::Every || !needs_hard()) return finish();
    const ProgramSlice followed = slice_;
    for (Step& step : steps_)
      step.follows_guard = !step.guard_counts_threads && step.to_fast_path == GuardTaken::Followed;
    slice();
    // What is hard and needed all the same is no reason to leave a guard.
    bool spared = false;
    for (std::size_t i = 0; i < steps_.size(); ++i) spared |= hard_[i] && followed.needed[i] && !slice_.needed[i];
    if (!spared) {
      slice_ = followed;
      for (Step& step : steps_) step.follows_guard = true;
      return finish();
    }
    follow_what_is_known();
    slice();
    return finish();
  }

 private:
  /// What the guard of a branch has to be so that no slow path is called.
  GuardTaken fast_path(std::uint32_t branch) const {
    bool ahead = false, away = false;
    for (const std::uint32_t next : flow_.successors(branch))
      (next == branch + 1 ? ahead : away) |= leads_to_slow_path(kernel_, flow_, next);
    if (ahead == away) return GuardTaken::Followed;
    return ahead ? GuardTaken::Holds : GuardTaken::Fails;
  }

  /// A branch that goes the fast way whatever its guard.
  static bool goes_fast(const Step& step) { return !step.follows_guard && step.to_fast_path != GuardTaken::Followed; }

  void slice() {
    demand_.assign(steps_.size(), Demand{});
    slice_ = ProgramSlice{};
    slice_.needed.assign(steps_.size(), 0);
    do {
      settle();
    } while (find_needed_spaces());
  }

  ProgramSlice finish() {
    slice_.unfollowed.assign(steps_.size(), GuardTaken::Followed);
    slice_.leaves_stores = leaves_stores_ && slice_.needs_global_values;
    slice_.left = left_;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (goes_fast(steps_[i]))
        slice_.unfollowed[i] = steps_[i].to_fast_path;
      else if (!steps_[i].follows_guard && !slice_.needed[i])
        slice_.unfollowed[i] = GuardTaken::Holds;
      if (is_control(kernel_.instructions[i].opcode)) slice_.needed[i] = 1;
    }
    return std::move(slice_);
  }

  bool needs_hard() const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (hard_[i] && slice_.needed[i]) return true;
    }
    return false;
  }

  /// What is there in front of an instruction, of what is behind each.
  Locations any_before(std::uint32_t i, const std::vector<Locations>& behind) const {
    Locations before;
    for (const std::uint32_t from : flow_.predecessors(i)) before |= behind[from];
    return before;
  }

  /// A tile's number is handed on by way of the memory in which products wait to be copied out: where the stores of
  /// what hangs on hard instructions are all that asks for those, they are left out.
  void leave_hard_stores() {
    std::vector<Locations> reached(steps_.size());  // behind each instruction, by way of registers
    const auto in_front = [&](std::uint32_t i) { return any_before(i, reached); };
    for (bool grown = true; grown;) {
      grown = false;
      for (std::uint32_t i = 0; i < steps_.size(); ++i) {
        Locations locations = in_front(i);
        if (hard_[i] || (locations & steps_[i].values).any())
          locations |= steps_[i].writes;
        else if (!steps_[i].guarded)
          locations &= ~steps_[i].writes;
        grown |= (locations & ~reached[i]).any();
        reached[i] |= locations;
      }
    }
    const std::vector<Step> followed = steps_;
    for (std::uint32_t i = 0; i < steps_.size(); ++i) {
      if (kernel_.instructions[i].memory != MemoryKind::Store || steps_[i].writes_space != MemorySpace::Shared)
        continue;
      if ((in_front(i) & steps_[i].values).none()) continue;
      left_[i] = 1;
      steps_[i].writes_space = MemorySpace::None;
    }
    slice();
    if (!needs_hard()) return;
    steps_ = followed;
    left_.assign(steps_.size(), 0);
    slice();
  }

  /// Forward from the hard instructions that only guards ask for: what their results reach, by way of registers and of
  /// memory. Guards that read none of it are followed.
  void follow_what_is_known() {
    std::vector<Locations> reached(steps_.size());  // behind each instruction
    std::array<bool, static_cast<std::size_t>(MemorySpace::Generic) + 1> spaces{};
    const auto space_reached = [&](MemorySpace space) {
      if (space == MemorySpace::Generic) return std::any_of(spaces.begin(), spaces.end(), [](bool r) { return r; });
      return spaces[static_cast<std::size_t>(space)] || spaces[static_cast<std::size_t>(MemorySpace::Generic)];
    };
    const auto in_front = [&](std::uint32_t i) { return any_before(i, reached); };
    for (bool grown = true; grown;) {
      grown = false;
      for (std::uint32_t i = 0; i < steps_.size(); ++i) {
        const Step& step = steps_[i];
        Locations locations = in_front(i);
        const bool loads = step.reads_space != MemorySpace::None && space_reached(step.reads_space);
        const bool carries =
            (hard_[i] && !slice_.needed[i]) || loads || (locations & (step.values | step.always | step.guard)).any();
        const bool leaves = leaves_stores_ && step.writes_space == MemorySpace::Global;
        if (carries && !leaves && step.writes_space != MemorySpace::None && !space_reached(step.writes_space)) {
          spaces[static_cast<std::size_t>(step.writes_space)] = true;
          grown = true;
        }
        if (carries)
          locations |= step.writes;
        else if (!step.guarded)
          locations &= ~step.writes;
        if (locations == reached[i]) continue;
        reached[i] |= locations;
        grown = true;
      }
    }
    for (std::uint32_t i = 0; i < steps_.size(); ++i) steps_[i].follows_guard |= (in_front(i) & steps_[i].guard).none();
  }

  /// Whether what is stored there is needed.
  bool space_needed(MemorySpace space) const {
    switch (space) {
      case MemorySpace::Shared:
        return slice_.needs_shared_values;
      case MemorySpace::Global:
        return slice_.needs_global_values && !leaves_stores_;
      case MemorySpace::Local:
        return slice_.needs_local_values;
      case MemorySpace::Generic:
        return slice_.needs_shared_values || slice_.needs_local_values || space_needed(MemorySpace::Global);
      default:
        return false;
    }
  }

  Demand demand_behind(std::uint32_t i) const {
    Demand behind;
    for (const std::uint32_t next : flow_.successors(i)) {
      if (goes_fast(steps_[i]) && (next == i + 1) != (steps_[i].to_fast_path == GuardTaken::Fails)) continue;
      for (Condition c = 0; c < kConditions; ++c) behind[c] |= demand_[next][c];
    }
    return behind;
  }

  /// In front of where a predicate is written its new value says nothing.
  static void drop_conditions(Demand& demand, std::uint8_t written) {
    for (Condition p = 0; written != 0; ++p, written = static_cast<std::uint8_t>(written >> 1)) {
      if ((written & 1u) == 0) continue;
      for (const Condition c : {1 + 2 * p, 2 + 2 * p}) {
        demand[kAlways] |= demand[c];
        demand[c].reset();
      }
    }
  }

  /// A guarded definition leaves the old value to lanes whose guard is false.
  static void kill(Demand& demand, const Step& step) {
    if (!step.guarded) {
      for (Locations& layer : demand) layer &= ~step.writes;
    } else if (step.condition != kAlways) {
      demand[opposite(step.condition)] |= demand[kAlways] & step.writes;
      demand[kAlways] &= ~step.writes;
      demand[step.condition] &= ~step.writes;
    }
  }

  /// One pass of the transfer function; whether the demand in front of the instruction grew.
  bool update(std::uint32_t i) {
    const Step& step = steps_[i];
    Demand demand = demand_behind(i);
    drop_conditions(demand, step.writes_predicates);

    // Where the results are wanted, in other words, where the sources are.
    std::array<bool, kConditions> wanted{};
    if ((step.root && !goes_fast(step)) || space_needed(step.writes_space)) wanted[step.condition] = true;
    for (Condition c = 0; c < kConditions; ++c) {
      if ((demand[c] & step.writes).none()) continue;
      const bool contradicts = step.condition != kAlways && c == opposite(step.condition);
      if (contradicts) continue;
      wanted[step.condition != kAlways || !step.per_lane ? step.condition : c] = true;
    }
    kill(demand, step);
    for (Condition c = 0; c < kConditions; ++c) {
      if (!wanted[c]) continue;
      slice_.needed[i] = 1;
      demand[c] |= step.values;
    }
    demand[step.condition] |= step.always;
    if (step.follows_guard || slice_.needed[i]) demand[kAlways] |= step.guard;
    if (demand == demand_[i]) return false;
    demand_[i] = demand;
    return true;
  }

  void settle() {
    std::vector<std::uint32_t> work;
    std::vector<std::uint8_t> waiting(steps_.size(), 1);
    for (std::uint32_t i = 0; i < steps_.size(); ++i) work.push_back(i);  // taken from the back: last first
    while (!work.empty()) {
      const std::uint32_t i = work.back();
      work.pop_back();
      waiting[i] = 0;
      if (!update(i)) continue;
      for (const std::uint32_t before : flow_.predecessors(i)) {
        if (waiting[before]) continue;
        waiting[before] = 1;
        work.push_back(before);
      }
    }
  }

  /// Values of memory that needed instructions take. Whether that is news.
  bool find_needed_spaces() {
    const ProgramSlice before = slice_;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!slice_.needed[i]) continue;
      // A copy beside the warps is needed for the barrier that it completes, its data only where they are wanted.
      if (kernel_.instructions[i].pipe == Pipe::Tma && !space_needed(steps_[i].writes_space)) continue;
      const MemorySpace space = steps_[i].reads_space;
      const bool any = space == MemorySpace::Generic;
      slice_.needs_shared_values |= any || space == MemorySpace::Shared;
      slice_.needs_global_values |= any || space == MemorySpace::Global;
      slice_.needs_local_values |= any || space == MemorySpace::Local;
    }
    return slice_.needs_shared_values != before.needs_shared_values ||
           slice_.needs_global_values != before.needs_global_values ||
           slice_.needs_local_values != before.needs_local_values;
  }

  const Kernel& kernel_;
  ControlFlow flow_;
  bool stores_left_, leaves_stores_;
  std::vector<std::uint8_t> left_;
  std::vector<Step> steps_;
  std::vector<bool> hard_;
  std::vector<Demand> demand_;  ///< in front of each instruction
  ProgramSlice slice_;
};

}  // namespace

std::size_t ProgramSlice::count() const {
  return static_cast<std::size_t>(std::count(needed.begin(), needed.end(), std::uint8_t{1}));
}

ProgramSlice control_slice(const Kernel& kernel, const SliceOptions& options) {
  return Slicer(kernel, options).run(options.guards);
}

}  // namespace forewarp

#include "trace/events.h"

#include "program/traits.h"

namespace forewarp {

TraceEvent event_of(const Instruction& in) {
  const Timing timing = traits(in.opcode).unit.timing;
  if (timing == Timing::Barrier) return {EventKind::Arrive, 1};
  if (timing == Timing::ClusterBarrier) return {EventKind::Cluster, 1};
  if (timing == Timing::Depbar) return {EventKind::Wait, 0};
  if (timing == Timing::Commit || timing == Timing::BoxCommit) return {EventKind::Commit, 0};
  if (in.memory == MemoryKind::None) return {};
  if (traits(in.opcode).slice == Slice::BarrierObject) return {EventKind::Phase, 1};
  if (in.opcode == Opcode::STAS || in.opcode == Opcode::REDAS) return {EventKind::RemoteStore, 2};
  switch (in.space) {
    case MemorySpace::Global:
    case MemorySpace::Shared:
    case MemorySpace::Local:
    case MemorySpace::Generic:
      if (in.memory == MemoryKind::AsyncCopy) return {EventKind::Transfer, 2};
      return {EventKind::Access, 1};
    default:
      return {};
  }
}

AccessEffect effect_of(const AccessPattern& pattern) {
  AccessEffect effect;
  switch (pattern.space) {
    case MemorySpace::Shared:
      effect.target = AccessTarget::Banks;
      break;
    case MemorySpace::Global:
    case MemorySpace::Local:
      effect.target = AccessTarget::Lines;
      break;
    default:
      break;
  }
  switch (pattern.kind) {
    case MemoryKind::Store:
      effect.request = RequestKind::Write;
      break;
    case MemoryKind::Atomic:
      effect.request = RequestKind::Atomic;
      break;
    case MemoryKind::Reduction:
      effect.request = RequestKind::Reduction;
      break;
    case MemoryKind::AsyncCopy:
      // Its records: the global side is read, the shared side written.
      effect.request = effect.target == AccessTarget::Banks ? RequestKind::Write : RequestKind::Read;
      break;
    case MemoryKind::Load:
    case MemoryKind::None:
      break;
  }
  return effect;
}

EventTable::EventTable(const Kernel& kernel) {
  events_.reserve(kernel.instructions.size());
  before_.reserve(kernel.instructions.size() + 1);
  std::uint32_t records = 0;
  for (const Instruction& in : kernel.instructions) {
    before_.push_back(records);
    events_.push_back(event_of(in));
    records += events_.back().records;
  }
  before_.push_back(records);
}

}  // namespace forewarp

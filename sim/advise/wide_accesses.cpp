#include "advise/wide_accesses.h"

#include <algorithm>
#include <array>
#include <vector>

#include "trace/coalesce.h"
#include "trace/events.h"

namespace forewarp::advise {

namespace {

constexpr std::size_t kWords = 4;  ///< of 4 bytes: the widest access
constexpr int kWordBytes = 4;

enum class Role : std::uint8_t { AsItIs, Wide, Silent };

bool is_word(const Instruction& in) {
  return in.access_bytes == kWordBytes && (in.memory == MemoryKind::Load || in.memory == MemoryKind::Store) &&
         (in.space == MemorySpace::Global || in.space == MemorySpace::Shared);
}

/// Instructions that another way than from the one before leads to.
std::vector<bool> entries(const KernelTrace& trace) {
  std::vector<bool> found(trace.kernel->instructions.size(), false);
  for (const BlockClass& cls : trace.classes)
    for (const WarpPath& path : cls.paths)
      for (const Run& run : path.runs) found[run.first] = true;
  return found;
}

std::vector<Role> roles_of(const KernelTrace& trace, const EventTable& events) {
  const std::vector<Instruction>& code = trace.kernel->instructions;
  const std::vector<bool> entered = entries(trace);
  std::vector<Role> roles(code.size(), Role::AsItIs);
  // By kind and space, the words of the stretch that wait for their group to be full.
  std::array<std::vector<std::size_t>, 4> waiting;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const EventKind kind = events[static_cast<std::uint32_t>(i)].kind;
    const bool straight = kind == EventKind::Issue || kind == EventKind::Access;
    if (entered[i] || !straight)
      for (auto& group : waiting) group.clear();
    if (!straight || !is_word(code[i])) continue;
    auto& group =
        waiting[(code[i].memory == MemoryKind::Store ? 1u : 0u) + (code[i].space == MemorySpace::Shared ? 2u : 0u)];
    group.push_back(i);
    if (group.size() < kWords) continue;
    for (const std::size_t member : group) roles[member] = Role::Silent;
    roles[group.front()] = Role::Wide;
    group.clear();
  }
  return roles;
}

std::shared_ptr<const Kernel> without_silent(const Kernel& kernel, const std::vector<Role>& roles) {
  auto copy = std::make_shared<Kernel>(kernel);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] != Role::Silent) continue;
    Instruction& in = copy->instructions[i];
    const Control control = in.control;
    in = Instruction{};
    in.opcode = in.native = Opcode::NOP;
    in.control = control;
    in.control.write_barrier = in.control.read_barrier = kNoScoreboard;
  }
  return copy;
}

AccessPattern wide(const AccessPattern& p, const CoalescedCounts& counts) {
  AccessPattern out = p;
  out.bytes = static_cast<std::uint8_t>(p.bytes * kWords);
  const bool side_by_side = p.space == MemorySpace::Shared || counts.sectors <= counts.ideal_sectors;
  if (side_by_side)
    for (std::int32_t& offset : out.offsets) offset *= static_cast<std::int32_t>(kWords);
  return out;
}

}  // namespace

std::shared_ptr<const KernelTrace> widened(const KernelTrace& trace) {
  const EventTable events(*trace.kernel);
  const std::vector<Role> roles = roles_of(trace, events);
  if (std::find(roles.begin(), roles.end(), Role::Wide) == roles.end()) return nullptr;
  auto out = std::make_shared<KernelTrace>(trace);
  out->kernel = without_silent(*trace.kernel, roles);
  const CoalescedPatterns coalesced(trace.patterns);
  std::vector<std::uint32_t> wider(trace.patterns.size(), 0);  // 0: not made yet
  const auto widen = [&](Access access) {
    std::uint32_t& pattern = wider[access.pattern];
    if (pattern == 0) {
      pattern = static_cast<std::uint32_t>(out->patterns.size());
      out->patterns.push_back(wide(trace.patterns[access.pattern], coalesced.counts(access.pattern)));
    }
    access.pattern = pattern;
    return access;
  };
  for (BlockClass& cls : out->classes)
    for (WarpTrace& warp : cls.warps) {
      std::vector<Access> kept;
      const Access* record = warp.accesses.data();
      for (const Run& run : cls.paths[warp.path].runs)
        for (std::uint32_t pc = run.first; pc < run.first + run.count; ++pc) {
          const unsigned records = events[pc].records;
          if (roles[pc] == Role::Wide)
            kept.push_back(widen(*record));
          else if (roles[pc] == Role::AsItIs)
            kept.insert(kept.end(), record, record + records);
          record += records;
        }
      warp.accesses = std::move(kept);
    }
  return out;
}

}  // namespace forewarp::advise

#include "trace/builder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "program/traits.h"

namespace forewarp {

namespace {

/// The lowest lane of each address.
LaneMask first_of_each(LaneMask lanes, const std::uint64_t* addresses) {
  LaneMask first = 0;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    bool seen = false;
    for (LaneMask m = first; m != 0 && !seen; m &= m - 1) seen = addresses[std::countr_zero(m)] == addresses[lane];
    if (!seen) first |= LaneMask{1} << lane;
  }
  return first;
}

}  // namespace

BlockTraceBuilder::BlockTraceBuilder(const Kernel& kernel, int warps, TracePools& pools)
    : kernel_(kernel),
      pools_(pools),
      warps_(static_cast<std::size_t>(warps)),
      counts_(kernel.instructions.size()),
      recent_of_(kernel.instructions.size()),
      slopes_{BlockSlope{}} {}

void BlockTraceBuilder::reserve(std::size_t runs_per_warp, std::size_t accesses_per_warp) {
  for (WarpState& state : warps_) {
    state.runs.reserve(runs_per_warp);
    state.accesses.reserve(accesses_per_warp);
  }
}

void BlockTraceBuilder::start_run(WarpState& state, std::uint32_t pc) {
  if (state.first != kNoRun && keeps_) {
    take_bytes(sizeof(Run));
    state.runs.push_back({state.first, state.next - state.first});
  }
  state.first = pc;
  state.next = pc + 1;
}

void BlockTraceBuilder::fail_size() const {
  throw InputError(
      "kernel " + kernel_.name + ": the trace of one block takes more than " + std::to_string(limit_ >> 20) + " MiB",
      "give it more by --memory, or a smaller problem; a block that waits in a loop for another one never "
      "ends");
}

namespace {

/// What a load or copy asks L2 to fetch at least.
std::uint32_t fetch_bytes(const Instruction& instruction, MemorySpace space) {
  if (space == MemorySpace::Shared) return 0;
  if (instruction.has(Modifier::LTC64B)) return 64;
  if (instruction.has(Modifier::LTC128B)) return 128;
  return instruction.has(Modifier::LTC256B) ? 256 : 0;
}

}  // namespace

namespace {

/// Not zero for lanes further from the first than a pattern's offsets can say, 2 GiB either way.
constexpr std::uint64_t beyond_reach(std::uint64_t offset) { return (offset + 0x80000000u) >> 32; }

}  // namespace

AccessPattern BlockTraceBuilder::make_pattern(const Instruction& instruction, std::uint32_t pc, LaneMask enabled,
                                              const std::uint64_t* lane_addresses, MemorySpace space) const {
  AccessPattern pattern;
  pattern.lanes = enabled;
  pattern.space = space;
  pattern.kind = instruction.memory;
  pattern.bytes = instruction.access_bytes;
  pattern.fetch_bytes = fetch_bytes(instruction, space);
  if (traits(instruction.opcode).width == Width::MatrixRows) {
    // Each of the first 8, 16 or 32 lanes names a row of 16 bytes; access_bytes is what a lane receives.
    const int rows = instruction.access_bytes * 2;
    pattern.bytes = 16;
    if (rows < kWarpLanes) enabled &= (LaneMask{1} << rows) - 1;
    pattern.lanes = enabled;
  }
  if (instruction.space == MemorySpace::Shared && instruction.has(Modifier::POPC)) {
    // Lanes that count in one word are added up first (ATOMS.POPC.INC): the bank sees one of them.
    pattern.lanes = enabled = first_of_each(enabled, lane_addresses);
  }
  if (enabled == 0) return pattern;
  const std::uint64_t base = lane_addresses[std::countr_zero(enabled)];
  pattern.base_offset = static_cast<std::uint8_t>(base % kLineBytes);
  std::uint64_t beyond = 0;
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const std::uint64_t keep = std::uint64_t{0} - ((enabled >> lane) & 1u);
    const std::uint64_t offset = (lane_addresses[lane] - base) & keep;
    beyond |= beyond_reach(offset);
    pattern.offsets[static_cast<std::size_t>(lane)] = static_cast<std::int32_t>(offset);
  }
  if (beyond != 0)
    throw InputError("kernel " + kernel_.name + ", instruction " + std::to_string(pc) +
                         ": the lanes of one access lie more than 2 GiB apart",
                     "place the buffers that one instruction addresses closer together, or make them smaller");
  return pattern;
}

std::uint32_t BlockTraceBuilder::find_pattern(Recent& recent, const AccessPattern& pattern) {
  std::uint32_t& guess = recent.pattern[pattern.base_offset / 4 % kRecentPatterns];
  if (guess != 0 && patterns_[guess - 1] == pattern) return guess - 1;
  const std::uint32_t index = interner_.intern(patterns_, pattern);
  if (index == coalesced_.size()) coalesced_.push_back(coalesce(pattern));
  guess = index + 1;
  return index;
}

std::uint32_t BlockTraceBuilder::find_slope(Recent& recent, const BlockSlope& slope) {
  if (slopes_[recent.slope] != slope) recent.slope = intern_slope(slopes_, slope);
  return recent.slope;
}

void BlockTraceBuilder::count_access(const Instruction& instruction, InstructionCount& count,
                                     const AccessPattern& pattern, const CoalescedCounts& coalesced) {
  const bool copies = pattern.kind == MemoryKind::AsyncCopy;
  if (copies && pattern.space != MemorySpace::Shared)
    copy_requests_ = filled_requests_ != 0 ? std::exchange(filled_requests_, std::uint16_t{0}) : coalesced.requests;
  if (pattern.lanes == 0) return;
  if (pattern.space == MemorySpace::Shared) {
    ++count.shared_requests;
    if (copies && zeros_ != 0) {
      AccessPattern zeros = pattern;
      zeros.lanes = std::exchange(zeros_, 0);
      count.zero_wavefronts += coalesce(zeros).wavefronts;
    }
    // Each line that an asynchronous copy reads passes the banks by itself (eight in all from rows of 64 bytes).
    const int passes = std::max(int{coalesced.wavefronts}, copies ? int{copy_requests_} : 0);
    count.wavefronts += static_cast<unsigned>(passes * wavefront_factor(instruction));
    count.bank_conflicts += coalesced.bank_conflicts;
    count.ideal_wavefronts += coalesced.ideal_wavefronts;
    // The bytes of an asynchronous copy are counted once, where they are read.
    if (copies) return;
  } else {
    // A local store asks once for each word of a lane: words of a lane lie in different lines. Measured on an H200.
    count.requests += pattern.space == MemorySpace::Local && pattern.kind == MemoryKind::Store && pattern.bytes > 4
                          ? pattern.bytes / 4u
                          : 1u;
    count.sectors += coalesced.sectors;
    count.tag_sectors += coalesced.tag_sectors;
    count.ideal_sectors += coalesced.ideal_sectors;
    count.lines += coalesced.lines;
  }
  count.bytes += coalesced.bytes;
  if (pattern.kind == MemoryKind::Atomic || pattern.kind == MemoryKind::Reduction)
    count.addresses += coalesced.addresses;
}

void BlockTraceBuilder::fill(std::uint32_t pc, LaneMask writes, LaneMask reads, const std::uint64_t* lane_addresses) {
  zeros_ = writes & ~reads;
  // Addresses of lanes that read nothing need not make sense.
  LaneMask near = 0;
  for (LaneMask m = writes; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t offset = lane_addresses[lane] - lane_addresses[std::countr_zero(writes)];
    if (beyond_reach(offset) == 0) near |= LaneMask{1} << lane;
  }
  const Instruction& instruction = kernel_.instructions[pc];
  filled_requests_ = coalesce(make_pattern(instruction, pc, near, lane_addresses, MemorySpace::Global)).requests;
}

void BlockTraceBuilder::access(int warp, std::uint32_t pc, LaneMask enabled, const std::uint64_t* lane_addresses,
                               MemorySpace space, BlockSlope slope, bool slope_known) {
  const Instruction& instruction = kernel_.instructions[pc];
  if (recent_of_[pc] == 0) {
    recent_.emplace_back();
    recent_of_[pc] = static_cast<std::uint32_t>(recent_.size());
  }
  Recent& recent = recent_[recent_of_[pc] - 1];
  const AccessPattern pattern = make_pattern(instruction, pc, enabled, lane_addresses, space);
  Access access;
  access.pattern = find_pattern(recent, pattern);
  if (pattern.lanes != 0) {
    access.base = lane_addresses[std::countr_zero(pattern.lanes)];
    if (slope_known)
      access.slope = find_slope(recent, slope);
    else
      single_ = true;
  }
  if (keeps_) {
    take_bytes(sizeof(Access));
    warps_[static_cast<std::size_t>(warp)].accesses.push_back(access);
  }
  CoalescedCounts coalesced = coalesced_[access.pattern];
  if (instruction.space == MemorySpace::Generic && reaches_others(pattern, access.base)) {
    const CoalescedCounts own = own_part(pattern, access.base);
    coalesced.wavefronts = own.wavefronts;
    coalesced.ideal_wavefronts = own.ideal_wavefronts;
    coalesced.bank_conflicts = own.bank_conflicts;
  }
  count_access(instruction, counts_[pc], pattern, coalesced);
}

void BlockTraceBuilder::arrive(int warp, LaneMask enabled, const BarrierArrival& arrival) {
  add_record(warp, enabled, arrival.packed());
}

void BlockTraceBuilder::copy(int warp, std::uint32_t pc, const AccessPattern& box, std::uint64_t base,
                             const BlockSlope& slope, const BoxTarget& target) {
  if (recent_of_[pc] == 0) {
    recent_.emplace_back();
    recent_of_[pc] = static_cast<std::uint32_t>(recent_.size());
  }
  Recent& recent = recent_[recent_of_[pc] - 1];
  Access access;
  access.pattern = find_pattern(recent, box);
  if (box.lanes != 0) {
    access.base = base;
    access.slope = find_slope(recent, slope);
    std::uint64_t bytes = 1;
    for (LaneMask m = box.lanes; m != 0; m &= m - 1)
      bytes *= static_cast<std::uint64_t>(box.offsets[static_cast<std::size_t>(std::countr_zero(m))]);
    counts_[pc].bytes += bytes;
  }
  if (keeps_) {
    take_bytes(sizeof(Access));
    warps_[static_cast<std::size_t>(warp)].accesses.push_back(access);
  }
  add_record(warp, 1, target.packed(), target.blocks);
}

void BlockTraceBuilder::phase(int warp, LaneMask enabled, const PhaseRecord& record) {
  add_record(warp, enabled, record.packed(), record.blocks);
}

void BlockTraceBuilder::add_record(int warp, LaneMask enabled, std::uint64_t packed, BlockMask blocks) {
  if (!keeps_) return;
  AccessPattern pattern;
  pattern.lanes = enabled;
  pattern.offsets[0] = blocks;
  Access record;
  record.base = packed;
  record.pattern = interner_.intern(patterns_, pattern);
  if (record.pattern == coalesced_.size()) coalesced_.push_back({});
  take_bytes(sizeof(Access));
  warps_[static_cast<std::size_t>(warp)].accesses.push_back(record);
}

namespace {

/// Gives equal run sequences one index.
class PathTable {
 public:
  explicit PathTable(std::vector<WarpPath>& paths) : paths_(paths) {}

  std::uint32_t intern(std::vector<Run>&& runs) {
    const std::uint64_t key = XXH3_64bits(runs.data(), runs.size() * sizeof(Run));
    const auto [begin, end] = known_.equal_range(key);
    for (auto it = begin; it != end; ++it)
      if (paths_[it->second].runs == runs) return it->second;
    const std::uint32_t index = static_cast<std::uint32_t>(paths_.size());
    known_.emplace(key, index);
    WarpPath path;
    for (const Run& run : runs) path.instructions += run.count;
    path.runs = std::move(runs);
    path.runs.shrink_to_fit();
    paths_.push_back(std::move(path));
    return index;
  }

 private:
  std::vector<WarpPath>& paths_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> known_;
};

}  // namespace

BlockClass BlockTraceBuilder::finish() {
  BlockClass result;
  result.single = single_;
  std::vector<std::uint32_t> pattern_map, slope_map;
  pattern_map.reserve(patterns_.size());
  for (const AccessPattern& pattern : patterns_) pattern_map.push_back(pools_.pattern(pattern));
  for (const BlockSlope& slope : slopes_) slope_map.push_back(pools_.slope(slope));

  PathTable paths(result.paths);
  result.warps.resize(warps_.size());
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    WarpState& state = warps_[w];
    if (state.first != kNoRun) state.runs.push_back({state.first, state.next - state.first});
    result.warps[w].path = paths.intern(std::move(state.runs));
    for (Access& access : state.accesses) {
      access.pattern = pattern_map[access.pattern];
      access.slope = slope_map[access.slope];
    }
    result.warps[w].accesses = std::move(state.accesses);
    result.warps[w].accesses.shrink_to_fit();
  }
  result.counts = pools_.share(SharedCounts(std::move(counts_)));

  warps_.assign(result.warps.size(), {});
  counts_.assign(kernel_.instructions.size(), {});
  recent_of_.assign(kernel_.instructions.size(), 0);
  recent_.clear();
  patterns_.clear();
  coalesced_.clear();
  slopes_.assign(1, {});
  interner_ = {};
  single_ = false;
  bytes_ = 0;
  return result;
}

void BlockTraceBuilder::add_counts(std::vector<InstructionCount>& totals) {
  totals.resize(counts_.size());
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    totals[i].add(counts_[i]);
    counts_[i] = {};
  }
}

void BlockTraceBuilder::next_block() {
  bytes_ = 0;
  for (WarpState& state : warps_) {
    state.next = state.first = kNoRun;
    state.runs.clear();
    state.accesses.clear();
  }
  // Scattered accesses make a pattern each; keeping all of them would only cost memory.
  if (patterns_.size() < kMostPatterns) return;
  patterns_.clear();
  coalesced_.clear();
  interner_ = {};
  recent_.clear();
  recent_of_.assign(recent_of_.size(), 0);
}

}  // namespace forewarp

#include "emulation/machine/phases.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "emulation/machine/address.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr int kCountBits = 20, kByteBits = 22;
constexpr int kMissingAt = 1, kBytesAt = 21, kExpectedAt = 43, kParityAt = 63;
constexpr u64 kCountMask = (u64{1} << kCountBits) - 1, kByteMask = (u64{1} << kByteBits) - 1;
constexpr std::int64_t kMostBytes = (std::int64_t{1} << 20) - 1;
constexpr u32 kParityBit = 0x80000000u;  // of Split::need: the rest is the barrier's offset

struct Word {
  u32 missing, expected;
  std::int64_t bytes;
  bool parity;

  static Word of(u64 raw) {
    const auto count = [&](int at) {
      return static_cast<u32>(((u64{1} << kCountBits) - (raw >> at & kCountMask)) & kCountMask);
    };
    const auto bytes = static_cast<std::int64_t>((raw >> kBytesAt & kByteMask) << (64 - kByteBits)) >> (64 - kByteBits);
    return {count(kMissingAt), count(kExpectedAt), bytes, raw >> kParityAt != 0};
  }
  u64 raw() const {
    const auto count = [](u32 n) { return ((u64{1} << kCountBits) - n) & kCountMask; };
    return count(missing) << kMissingAt | (static_cast<u64>(bytes) & kByteMask) << kBytesAt |
           count(expected) << kExpectedAt | u64{parity} << kParityAt;
  }
};

u64 load(const BlockState& block, u32 offset) {
  u64 raw = 0;
  std::memcpy(&raw, block.shared.data() + offset, sizeof raw);
  return raw;
}
void store(BlockState& block, u32 offset, u64 raw) { std::memcpy(block.shared.data() + offset, &raw, sizeof raw); }

PhaseBarrier* find(BlockState& block, u32 offset) {
  for (PhaseBarrier& one : block.phase_barriers)
    if (one.offset == offset) return &one;
  return nullptr;
}

std::string hex(u64 v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

[[noreturn]] void fail(const Exec& x, const std::string& what, const std::string& remedy) {
  const int lane = std::countr_zero(x.enabled != 0 ? x.enabled : x.active);
  throw InputError(place_text(*x.block, *x.warp, lane, x.pc) + ": " + what, remedy);
}

std::string name_of(const Exec& x, const BlockState& block, u32 offset) {
  std::string text = "the barrier at shared offset " + hex(offset);
  if (&block != x.block) text += " of block " + std::to_string(block.cluster_rank) + " of the cluster";
  return text;
}

PhaseBarrier& initialised(const Exec& x, BlockState& block, u32 offset) {
  PhaseBarrier* barrier = find(block, offset);
  if (barrier == nullptr)
    fail(x, name_of(x, block, offset) + " was not initialised",
         &block == x.block ? "mbarrier.init comes first"
                           : "mbarrier.init comes first, and a barrier of the cluster between the two");
  return *barrier;
}

/// The phase is over: who waits for it goes on, with the predicate that says so.
void next_phase(BlockState& block, PhaseBarrier& barrier, Word& word) {
  ++barrier.completed;
  word.parity = !word.parity;
  word.missing = word.expected;
  for (Warp& warp : block.warps) {
    for (Split& split : warp.splits) {
      if (split.wait != Wait::Phase || (split.need & ~kParityBit) != barrier.offset) continue;
      if (word.parity == ((split.need & kParityBit) != 0)) continue;
      const Op& op = block.kernel->ops[split.pc];
      warp.predicates[op.pdst[0]] |= split.mask;
      split.wait = Wait::Ready;
      ++split.pc;
    }
  }
}

/// Takes arrivals and bytes off; `bytes` announces, or completes if it is negative.
void change(const Exec& x, BlockState& block, u32 offset, u32 arrivals, std::int64_t bytes, bool leaves) {
  PhaseBarrier& barrier = initialised(x, block, offset);
  Word word = Word::of(load(block, offset));
  if (arrivals > word.missing)
    fail(x,
         "arrives " + std::to_string(arrivals) + " times at " + name_of(x, block, offset) + ", where " +
             std::to_string(word.missing) + " arrivals are missing in this phase",
         "the count given to mbarrier.init is too small, or a thread arrives twice in a phase");
  word.bytes += bytes;
  if (word.bytes > kMostBytes || word.bytes < -kMostBytes)
    fail(x, name_of(x, block, offset) + " counts more than 2^20 bytes", "");
  word.missing -= arrivals;
  if (leaves) word.expected -= std::min(word.expected, arrivals);
  if (word.missing == 0 && word.bytes == 0) next_phase(block, barrier, word);
  store(block, barrier.offset, word.raw());
}

constexpr u64 kOffsetMask = (u64{1} << kRemoteShift) - 1;

/// The barrier that all enabled lanes name, in their own block or in others of the cluster.
u32 common_offset(Exec& x, const Op& op) {
  compute_addresses(x, op);
  const u64 first = x.address[static_cast<std::size_t>(std::countr_zero(x.enabled))] & kOffsetMask;
  for (LaneMask m = x.enabled; m != 0; m &= m - 1) {
    if ((x.address[static_cast<std::size_t>(std::countr_zero(m))] & kOffsetMask) != first)
      fail(x, "the lanes name different barriers in one instruction, which is not emulated", "");
  }
  return static_cast<u32>(first);
}

/// What the lanes that name one block's barrier bring there.
struct Brought {
  u32 arrivals = 0;
  std::int64_t bytes = 0;
  bool operator==(const Brought&) const = default;
};

Brought brought_by(const Exec& x, const Op& op, LaneMask lanes) {
  const u32* value = x.row(op.c);
  Brought sum;
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const u32 own = value[std::countr_zero(m)];
    const auto count = static_cast<PhaseCount>(op.combine);
    sum.arrivals += count == PhaseCount::Register ? own : count == PhaseCount::One ? 1 : 0;
    switch (static_cast<PhaseBytes>(op.immediate)) {
      case PhaseBytes::Zero:
        break;
      case PhaseBytes::One:
        ++sum.bytes;
        break;
      case PhaseBytes::Announced:
        sum.bytes += own;
        break;
      case PhaseBytes::Completed:
        sum.bytes -= own;
        break;
    }
  }
  return sum;
}

/// Lanes whose address lies in the block with the lowest rank, which `rank` is set to.
LaneMask lanes_of_one_block(const Exec& x, LaneMask lanes, u32& rank) {
  LaneMask found = 0;
  rank = ~0u;
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const int far = remote_rank(x.address[static_cast<std::size_t>(std::countr_zero(m))]);
    const u32 own = far < 0 ? x.block->cluster_rank : static_cast<u32>(far);
    if (own < rank) found = 0;
    rank = std::min(rank, own);
    if (own == rank) found |= m & (0 - m);
  }
  return found;
}

/// Calls bring(block, lanes) for each block whose barrier lanes name; their ranks, or none if that is the lanes' own
/// block alone.
template <class Bring>
BlockMask for_each_block(const Exec& x, LaneMask lanes, const Bring& bring) {
  BlockMask blocks = 0;
  for (LaneMask rest = lanes; rest != 0;) {
    u32 rank = 0;
    const LaneMask here = lanes_of_one_block(x, rest, rank);
    rest &= ~here;
    bring(*cluster_block(*x.block, rank), here);
    blocks = static_cast<BlockMask>(blocks | 1u << rank);
  }
  return blocks == 1u << x.block->cluster_rank ? BlockMask{0} : blocks;
}

void arrive(Exec& x, const Op& op, u32 offset, PhaseRecord& record) {
  u32 first = 0;
  const Brought each = brought_by(x, op, lanes_of_one_block(x, x.enabled, first));
  const BlockState& answers = *cluster_block(*x.block, first);
  initialised(x, *cluster_block(*x.block, first), offset);
  const u64 before = load(answers, offset);
  record.action = PhaseRecord::Action::Arrive;
  record.arrivals = each.arrivals;
  record.bytes = static_cast<std::int32_t>(each.bytes);
  record.leaves = op.carry_out;
  record.blocks = for_each_block(x, x.enabled, [&](BlockState& block, LaneMask lanes) {
    if (brought_by(x, op, lanes) != each)
      fail(x, "the lanes bring different counts to the barriers of several blocks, which is not emulated", "");
    change(x, block, offset, each.arrivals, each.bytes, op.carry_out);
  });
  x.full = x.enabled == x.warp->live;
  write_pair(x, op, [&](u32* low, u32* high) {
    FW_LANES {
      low[i] = static_cast<u32>(before);
      high[i] = static_cast<u32>(before >> 32);
    }
  });
}

void exchange(Exec& x, const Op& op, u32 offset, PhaseRecord& record) {
  const int lane = std::countr_zero(x.enabled);
  const u64 raw = x.row(op.c)[lane] | u64{x.high(op.c)[lane]} << 32;
  const Word word = Word::of(raw);
  PhaseBarrier* barrier = find(*x.block, offset);
  if (barrier == nullptr) barrier = &x.block->phase_barriers.emplace_back();
  *barrier = {offset, 0};
  store(*x.block, offset, raw);
  record.action = PhaseRecord::Action::Init;
  record.arrivals = word.expected;
}

}  // namespace

PhaseOutcome execute_phase(Exec& x, const Op& op) {
  PhaseOutcome outcome;
  PhaseRecord& record = outcome.record;
  const u32 offset = common_offset(x, op);
  record.barrier = offset;
  switch (static_cast<PhaseForm>(op.variant)) {
    case PhaseForm::Exchange:
      exchange(x, op, offset, record);
      break;
    case PhaseForm::Arrive:
      arrive(x, op, offset, record);
      break;
    case PhaseForm::Invalidate: {
      record.action = PhaseRecord::Action::Invalidate;
      auto& all = x.block->phase_barriers;
      std::erase_if(all, [&](const PhaseBarrier& one) { return one.offset == offset; });
      break;
    }
    case PhaseForm::Check:
    case PhaseForm::Try: {
      const PhaseBarrier& barrier = initialised(x, *x.block, offset);
      const u32* value = x.row(op.c);
      const u32 wanted = value[std::countr_zero(x.enabled)] & kParityBit;
      for (LaneMask m = x.enabled; m != 0; m &= m - 1) {
        if ((value[std::countr_zero(m)] & kParityBit) != wanted)
          fail(x, "the lanes wait for different phases of a barrier in one instruction, which is not emulated", "");
      }
      const bool over = Word::of(load(*x.block, offset)).parity != (wanted != 0);
      const bool tries = op.variant == static_cast<std::uint8_t>(PhaseForm::Try);
      record.action = tries || over ? PhaseRecord::Action::Await : PhaseRecord::Action::Check;
      record.phase = over ? barrier.completed : barrier.completed + 1;
      outcome.waits = tries && !over;
      if (outcome.waits)
        x.warp->predicates[op.pdst[0]] &= ~x.enabled;  // until it is over
      else
        x.set_predicate(op.pdst[0], over ? ~LaneMask{0} : 0);
      break;
    }
  }
  return outcome;
}

LaneMask phase_wanted(const Exec& x, const Op& op, const PhaseRecord& record) {
  return record.barrier | (x.row(op.c)[std::countr_zero(x.enabled)] & kParityBit);
}

void complete_bytes(Exec& x, BlockMask blocks, std::uint32_t barrier, std::uint32_t bytes) {
  if (blocks == 0) blocks = static_cast<BlockMask>(1u << x.block->cluster_rank);
  for (unsigned m = blocks; m != 0; m &= m - 1)
    change(x, *cluster_block(*x.block, static_cast<u32>(std::countr_zero(m))), barrier, 0,
           -static_cast<std::int64_t>(bytes), false);
}

PhaseRecord complete_stores(Exec& x, const Op& op) {
  Op barrier = op;
  barrier.a.row += kRowBytes;  // a pair: the address, then its barrier's
  barrier.has_uniform = false;
  barrier.offset = 0;
  barrier.bytes = 8;
  PhaseRecord record;
  record.barrier = common_offset(x, barrier);
  record.action = PhaseRecord::Action::Arrive;
  record.blocks = for_each_block(x, x.enabled, [&](BlockState& block, LaneMask lanes) {
    const std::int64_t bytes = std::int64_t{op.bytes} * std::popcount(lanes);
    if (record.bytes != 0 && record.bytes != -bytes)
      fail(x, "the lanes store different numbers of bytes to several blocks, which is not emulated", "");
    record.bytes = static_cast<std::int32_t>(-bytes);
    change(x, block, record.barrier, 0, -bytes, false);
  });
  return record;
}

std::string describe_phase(const BlockState& block, const Split& split) {
  const u32 offset = split.need & ~kParityBit;
  const Word word = Word::of(load(block, offset));
  u32 phase = 0;
  for (const PhaseBarrier& one : block.phase_barriers)
    if (one.offset == offset) phase = one.completed;
  return ": waits at the barrier at shared offset " + hex(offset) + " for the end of phase " + std::to_string(phase) +
         ", in which " + std::to_string(word.missing) + " of " + std::to_string(word.expected) + " arrivals and " +
         std::to_string(word.bytes) + " bytes are missing";
}

}  // namespace forewarp::emulation

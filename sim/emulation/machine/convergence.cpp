#include "emulation/machine/convergence.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "base/error.h"
#include "emulation/machine/phases.h"

namespace forewarp::emulation {
namespace {

bool returns_at_once(std::string_view name) { return name == "vprintf" || name == "free"; }

std::size_t lane_index(LaneMask m) { return static_cast<std::size_t>(std::countr_zero(m)); }

class Controller {
 public:
  Controller(Exec& x, const Op& op, std::size_t& current)
      : x_(x), op_(op), current_(current), warp_(*x.warp), block_(*x.block) {}

  ControlResult run() {
    switch (op_.kind) {
      case OpKind::Branch:
      case OpKind::Call:
        result_.held = x_.enabled & ~x_.predicate(op_.p[0]);
        branch(x_.enabled & ~result_.held);
        break;
      case OpKind::BranchDivergent:
        branch(missing_lanes() != 0 ? x_.enabled & x_.predicate(op_.p[0]) : 0);
        break;
      case OpKind::BranchConverged:
        branch(missing_lanes() == 0 ? x_.enabled & x_.predicate(op_.p[0]) : 0);
        break;
      case OpKind::IndirectBranch:
      case OpKind::Return:
        indirect();
        break;
      case OpKind::Exit:
        exit_lanes(x_.enabled & x_.predicate(op_.p[0]));
        break;
      case OpKind::BarrierSet:
        set_barrier();
        break;
      case OpKind::BarrierBreak:
        break_barrier(x_.enabled & x_.predicate(op_.p[0]));
        break;
      case OpKind::BarrierSync:
        sync(x_.enabled & x_.predicate(op_.p[0]));
        break;
      case OpKind::WarpSync:
        warp_sync(Wait::WarpSync);
        break;
      case OpKind::WarpSyncCollective:
        warp_sync(Wait::Collective);
        break;
      case OpKind::EndCollective:
        end_collective();
        break;
      case OpKind::BlockBarrier:
        block_barrier();
        break;
      case OpKind::PhaseBarrier:
        phase_barrier();
        break;
      case OpKind::WarpGroup:
        warp_group();
        break;
      case OpKind::ClusterBarrier:
        cluster_barrier();
        break;
      case OpKind::Yield:
      case OpKind::Sleep:
        yield();
        break;
      case OpKind::Refused:
        if (x_.enabled != 0) refuse();
        ++self().pc;
        break;
      default:
        ++self().pc;
        break;
    }
    return result_;
  }

 private:
  Split& self() { return warp_.splits[current_]; }

  /// A uniform or per-lane operand's value in the first lane.
  std::uint32_t operand(const Source& s) const {
    const LaneMask lanes = x_.enabled != 0 ? x_.enabled : x_.active;
    return (x_.row(s)[lane_index(lanes)] ^ s.flip) + s.add;
  }

  /// Lanes of the mask operand of BRA.DIV and BRA.CONV that live but are not here.
  LaneMask missing_lanes() const { return operand(op_.a) & warp_.live & ~x_.active; }

  void branch(LaneMask taken) {
    if (op_.carry_out && taken != 0) taken = x_.active;
    const LaneMask stay = x_.active & ~taken;
    if (taken == 0) {
      ++self().pc;
    } else if (stay == 0) {
      self().pc = op_.target;
    } else {
      result_.diverged = true;
      self().mask = stay;
      ++self().pc;
      warp_.splits.push_back({taken, op_.target, Wait::Ready, 0, 0});
    }
  }

  void indirect() {
    const LaneMask lanes = x_.enabled;
    const LaneMask stay = x_.active & ~lanes;
    const std::uint32_t* offset = x_.row(op_.a);
    bool first = true;
    for (LaneMask rest = lanes; rest != 0;) {
      const std::uint32_t to = offset[lane_index(rest)];
      LaneMask group = 0;
      for (LaneMask m = rest; m != 0; m &= m - 1) {
        if (offset[lane_index(m)] == to) group |= m & (0u - m);
      }
      const bool outside = call_outside(group, to);
      place(group, outside ? x_.pc + 1 : op_.target + to / 16, first);
      first = false;
      rest &= ~group;
    }
    if (stay != 0) place(stay, x_.pc + 1, first);
  }

  [[noreturn]] void refuse() const {
    const Instruction& in = block_.kernel->kernel->instructions[x_.pc];
    const std::string place = place_text(block_, warp_, static_cast<int>(lane_index(x_.enabled)), x_.pc);
    if (in.opcode == Opcode::BPT)
      throw InputError(place + ": the kernel stops itself here (a trap or a failed check)",
                       "give it the data and arguments that it expects");
    if (in.pipe == Pipe::Tex)
      throw InputError(place + ": textures and surfaces are not modelled",
                       "load from buffers instead; --assume-opcodes counts these instructions without executing them, "
                       "which leaves their memory traffic out");
    if (!in.understood)
      throw InputError(place + ": this instruction is not understood",
                       "report it; --assume-opcodes takes it for an ordinary ALU instruction, at the price of wrong "
                       "addresses or counts where they depend on it");
    throw InputError(place + ": this instruction is not emulated",
                     "--assume-opcodes counts it without executing it; addresses and ways that depend on it may then "
                     "be wrong");
  }

  /// A call into the CUDA runtime. What only reports or releases returns at once; the rest cannot be followed.
  bool call_outside(LaneMask group, std::uint32_t to) {
    const OutsideCalls* outside = block_.outside;
    const std::uint32_t which = (to - static_cast<std::uint32_t>(kOutsideAddress)) / 16;
    if (outside == nullptr || which >= outside->names.size()) return false;
    const std::string& name = outside->names[which];
    if (returns_at_once(name)) {
      outside->called.fetch_or(std::uint64_t{1} << std::min<std::uint32_t>(which, 63), std::memory_order_relaxed);
      return true;
    }
    const std::string place = place_text(block_, warp_, static_cast<int>(lane_index(group)), x_.pc);
    if (name == "__assertfail")
      throw InputError(place + ": an assertion fails", "give the kernel the data and arguments that it expects");
    throw InputError(place + ": calls " + name + " of the CUDA runtime, which is not emulated",
                     "predict a version of the kernel without it");
  }

  /// Gives lanes a place to go on: the current split for the first group, new splits for the others.
  void place(LaneMask group, std::uint32_t pc, bool first) {
    if (pc >= block_.kernel->ops.size()) {
      throw InputError(
          place_text(block_, warp_, static_cast<int>(lane_index(group)), x_.pc) + ": jumps outside the kernel's code",
          "calls into code outside the cubin are not emulated");
    }
    if (first) {
      self().mask = group;
      self().pc = pc;
    } else {
      result_.diverged = true;
      warp_.splits.push_back({group, pc, Wait::Ready, 0, 0});
    }
  }

  void exit_lanes(LaneMask gone) {
    if (gone == 0) {
      ++self().pc;
      return;
    }
    warp_.live &= ~gone;
    const LaneMask stay = x_.active & ~gone;
    if (stay == 0) {
      warp_.splits.erase(warp_.splits.begin() + static_cast<std::ptrdiff_t>(current_));
      result_.next = Next::Switch;
    } else {
      self().mask = stay;
      ++self().pc;
    }
    if (!warp_.splits.empty()) release_all();
    recount_barriers();
    release_group();
    release_cluster();
  }

  // --- convergence barriers ---

  void set_barrier() {
    auto& barrier = warp_.barrier[op_.immediate];
    for (LaneMask m = x_.enabled; m != 0; m &= m - 1) barrier[lane_index(m)] = x_.enabled;
    ++self().pc;
  }

  void break_barrier(LaneMask lanes) {
    ++self().pc;
    if (lanes == 0) return;
    auto& barrier = warp_.barrier[op_.immediate];
    const LaneMask together = barrier[lane_index(lanes)];
    for (LaneMask& participants : barrier) {
      if (participants == together) participants &= ~lanes;
    }
    release_all();
  }

  /// Leaves the lanes that do not wait as a split of their own behind this instruction.
  bool keep_waiting(LaneMask lanes) {
    if (lanes == 0) {
      ++self().pc;
      return false;
    }
    if (lanes != x_.active) {
      warp_.splits.push_back({x_.active & ~lanes, x_.pc + 1, Wait::Ready, 0, 0});
      self().mask = lanes;
    }
    return true;
  }

  void sync(LaneMask lanes) {
    if (!keep_waiting(lanes)) return;
    if ((warp_.barrier[op_.immediate][lane_index(lanes)] & warp_.live & ~lanes) == 0) {
      ++self().pc;  // nobody to wait for
      return;
    }
    self().wait = Wait::Sync;
    self().barrier = static_cast<std::uint8_t>(op_.immediate);
    wait_or_join();
  }

  /// WARPSYNC.EXCLUSIVE: lanes that name others than the first lane does come after it, by themselves, since what
  /// follows works on all lanes at once (REDUX) by way of registers that they share. The lanes that stay.
  LaneMask part_others() {
    const std::uint32_t* wanted = x_.row(op_.a);
    LaneMask alike = 0;
    for (LaneMask m = x_.enabled; m != 0; m &= m - 1)
      if (wanted[lane_index(m)] == wanted[lane_index(x_.enabled)]) alike |= m & (0 - m);
    if (alike != x_.enabled) {
      warp_.splits.push_back({x_.enabled & ~alike, x_.pc, Wait::Ready, 0, 0});
      self().mask = alike;
    }
    return alike;
  }

  void warp_sync(Wait kind) {
    const LaneMask need = op_.variant != 0 ? warp_.live : operand(op_.a);
    if (!keep_waiting(x_.enabled)) return;
    const LaneMask lanes = op_.carry_out ? part_others() : x_.enabled;
    if (kind == Wait::WarpSync && (need & warp_.live & ~lanes) == 0) {
      ++self().pc;
      return;
    }
    self().wait = kind;
    self().need = need;
    wait_or_join();
  }

  /// The current split waits, unless its arrival releases others and joins it to them: either way choose anew.
  void wait_or_join() {
    release_all();
    result_.next = Next::Switch;
  }

  /// Releases everything in the warp whose condition holds now.
  void release_all() {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = 0; i < warp_.splits.size() && !again; ++i) again = try_release(i);
    }
  }

  bool try_release(std::size_t i) {
    const Split split = warp_.splits[i];
    if (split.wait != Wait::Sync && split.wait != Wait::WarpSync && split.wait != Wait::Collective) return false;
    const LaneMask all = split.wait == Wait::Sync ? warp_.barrier[split.barrier][lane_index(split.mask)] : split.need;
    LaneMask here = 0;
    for (const Split& s : warp_.splits) {
      if (waits_alike(s, split)) here |= s.mask;
    }
    if ((all & warp_.live & ~here) != 0) return false;
    join(split, all | split.mask);
    return true;
  }

  static bool waits_alike(const Split& a, const Split& b) {
    return a.wait == b.wait && (a.wait == Wait::Sync ? a.barrier == b.barrier : a.need == b.need);
  }

  /// Joins the waiting splits among `lanes`, those at the same instruction into one; they go on behind it.
  void join(const Split& like, LaneMask lanes) {
    std::vector<Split> ready;
    const bool collective = like.wait == Wait::Collective;
    for (const Split& s : warp_.splits) {
      if (!waits_alike(s, like) || (s.mask & lanes) == 0) continue;
      if (collective) warp_.resume.push_back({s.mask, block_.kernel->ops[s.pc].target});
      const auto same =
          std::find_if(ready.begin(), ready.end(), [&](const Split& r) { return collective || r.pc == s.pc + 1; });
      if (same != ready.end()) {
        same->mask |= s.mask;
      } else {
        ready.push_back({s.mask, s.pc + 1, Wait::Ready, 0, 0});
      }
    }
    // The current split keeps its place in the list or ends up in a joined one; either way a new choice is made.
    std::erase_if(warp_.splits, [&](const Split& s) { return waits_alike(s, like) && (s.mask & lanes) != 0; });
    warp_.splits.insert(warp_.splits.end(), ready.begin(), ready.end());
    result_.next = Next::Switch;
  }

  void end_collective() {
    const LaneMask lanes = x_.active;
    bool first = true;
    LaneMask placed = 0;
    for (const Resume& r : warp_.resume) {
      if ((r.mask & lanes & ~placed) == 0) continue;
      LaneMask group = 0;
      for (const Resume& other : warp_.resume) {
        if (other.pc == r.pc) group |= other.mask & lanes;
      }
      place(group & ~placed, r.pc, first);
      placed |= group;
      first = false;
    }
    std::erase_if(warp_.resume, [&](const Resume& r) { return (r.mask & lanes) != 0; });
    if (first) ++self().pc;
    if ((lanes & ~placed) != 0 && !first) place(lanes & ~placed, x_.pc + 1, false);
  }

  /// Lets another split go first, if there is one.
  void yield() {
    ++self().pc;
    const Split split = self();
    warp_.splits.erase(warp_.splits.begin() + static_cast<std::ptrdiff_t>(current_));
    warp_.splits.insert(warp_.splits.begin(), split);
    result_.next = Next::Switch;
  }

  // --- block barriers ---

  void block_barrier() {
    if (!keep_waiting(x_.enabled)) return;
    const std::uint32_t first = operand(op_.a);
    const std::size_t id = first & (kBlockBarriers - 1);
    BlockBarrier& barrier = block_.barriers[id];
    const std::uint32_t count = op_.has_uniform ? operand(op_.b) & 0xfffu : op_.carry_out ? first >> 16 & 0xfffu : 0;
    barrier.expected = count;
    const auto action = static_cast<BarrierAction>(op_.variant);
    if (action == BarrierAction::Reduce) reduce_into(barrier);
    warp_.arrived[id] |= x_.enabled;
    result_.arrival = {static_cast<std::uint8_t>(id), static_cast<std::uint16_t>(count),
                       (warp_.live & ~warp_.arrived[id]) == 0};
    if (action == BarrierAction::Arrive) {
      ++self().pc;
    } else {
      self().wait = Wait::Block;
      self().barrier = static_cast<std::uint8_t>(id);
      barrier.waiting = true;
      result_.next = Next::Switch;
    }
    count_arrivals(id);
  }

  // --- barriers in shared memory, warpgroups ---

  void phase_barrier() {
    if (x_.enabled == 0) {
      ++self().pc;
      return;
    }
    const PhaseOutcome outcome = execute_phase(x_, op_);
    result_.phase = outcome.record;
    if (!outcome.waits) {
      ++self().pc;
      // Who asks without waiting lets others go on, lest it ask forever.
      if (outcome.record.action == PhaseRecord::Action::Check) result_.next = Next::Switch;
      return;
    }
    keep_waiting(x_.enabled);
    self().wait = Wait::Phase;
    self().need = phase_wanted(x_, op_, outcome.record);
    result_.next = Next::Switch;
  }

  /// The four warps of a group go on together: products read what all of them have made ready, and nobody gives away
  /// what another still has to read.
  void warp_group() {
    self().wait = Wait::Group;
    result_.next = Next::Switch;
    release_group();
  }

  void release_group() {
    const std::size_t first = static_cast<std::size_t>(warp_.index) / kGroupWarps * kGroupWarps;
    const std::size_t end = std::min(first + kGroupWarps, block_.warps.size());
    for (std::size_t w = first; w < end; ++w) {
      const Warp& one = block_.warps[w];
      if (one.live == 0) continue;
      if (one.splits.size() != 1 || one.splits[0].wait != Wait::Group) return;
    }
    for (std::size_t w = first; w < end; ++w) {
      for (Split& s : block_.warps[w].splits) {
        s.wait = Wait::Ready;
        ++s.pc;
      }
    }
  }

  // --- the cluster's barrier ---

  void cluster_barrier() {
    if (x_.enabled == 0) {
      ++self().pc;
      return;
    }
    if (static_cast<ClusterAction>(op_.variant) == ClusterAction::Arrive) {
      if ((warp_.cluster_arrived & x_.enabled) != 0)
        throw InputError(place_text(block_, warp_, static_cast<int>(lane_index(x_.enabled)), x_.pc) +
                             ": arrives at the cluster's barrier again before it has waited there",
                         "barrier.cluster.wait comes after each barrier.cluster.arrive");
      warp_.cluster_arrived |= x_.enabled;
      result_.arrival.complete = (warp_.live & ~warp_.cluster_arrived) == 0;
      ++self().pc;
      release_cluster();
      return;
    }
    result_.arrival.complete = x_.active == warp_.live;
    if ((warp_.cluster_arrived & x_.enabled) == 0) {  // the phase in which they arrived is over
      ++self().pc;
      return;
    }
    keep_waiting(x_.enabled);
    self().wait = Wait::Cluster;
    result_.next = Next::Switch;
  }

  /// All threads of the cluster that have not exited have arrived: who waits goes on.
  void release_cluster() {
    bool any = false;
    for (const BlockState* block : block_.cluster->blocks) {
      for (const Warp& warp : block->warps) {
        if ((warp.live & ~warp.cluster_arrived) != 0) return;
        any |= warp.live != 0;
      }
    }
    if (!any) return;
    for (BlockState* block : block_.cluster->blocks) {
      for (Warp& warp : block->warps) {
        warp.cluster_arrived = 0;
        for (Split& s : warp.splits) {
          if (s.wait != Wait::Cluster) continue;
          s.wait = Wait::Ready;
          ++s.pc;
        }
      }
    }
  }

  void reduce_into(BlockBarrier& barrier) const {
    const LaneMask yes = x_.enabled & x_.predicate(op_.p[0]);
    barrier.operation = static_cast<ReduceOperation>(op_.combine);
    barrier.popc += static_cast<std::uint32_t>(std::popcount(yes));
    barrier.all &= yes == x_.enabled;
    barrier.any |= yes != 0;
  }

  void recount_barriers() {
    for (std::size_t id = 0; id < kBlockBarriers; ++id) {
      if (block_.barriers[id].waiting) count_arrivals(id);
    }
  }

  /// A warp has arrived when all its living lanes have; it counts as a whole warp of threads.
  void count_arrivals(std::size_t id) {
    BlockBarrier& barrier = block_.barriers[id];
    std::uint32_t living = 0;
    for (Warp& w : block_.warps) {
      living += w.live != 0 ? kWarpLanes : 0;
      if (w.arrived[id] == 0 || (w.live & ~w.arrived[id]) != 0) continue;
      barrier.arrived += kWarpLanes;
      w.arrived[id] = 0;
    }
    const std::uint32_t needed = barrier.expected != 0 ? barrier.expected : living;
    if (barrier.arrived >= needed) open_barrier(id);
  }

  void open_barrier(std::size_t id) {
    BlockBarrier& barrier = block_.barriers[id];
    const std::uint32_t reduced = barrier.operation == ReduceOperation::Popc  ? barrier.popc
                                  : barrier.operation == ReduceOperation::And ? (barrier.all ? ~0u : 0u)
                                                                              : (barrier.any ? ~0u : 0u);
    for (Warp& w : block_.warps) {
      for (Split& s : w.splits) {
        if (s.wait != Wait::Block || s.barrier != id) continue;
        s.wait = Wait::Ready;
        ++s.pc;
        w.barrier_result = reduced;
      }
    }
    barrier = BlockBarrier{};
  }

  Exec& x_;
  const Op& op_;
  std::size_t& current_;
  Warp& warp_;
  BlockState& block_;
  ControlResult result_;
};

std::string hex(std::uint32_t v) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", v);
  return text;
}

}  // namespace

ControlResult execute_control(Exec& x, const Op& op, std::size_t& current) { return Controller(x, op, current).run(); }

bool choose_split(const Warp& warp, std::size_t& current) {
  for (std::size_t i = warp.splits.size(); i-- > 0;) {
    if (warp.splits[i].wait != Wait::Ready) continue;
    current = i;
    return true;
  }
  return false;
}

std::string describe_wait(const BlockState& block, const Warp& warp) {
  std::string text;
  for (const Split& s : warp.splits) {
    text += "\n  warp " + std::to_string(warp.index) + ", lanes " + hex(s.mask) + " at " + hex(s.pc * 16);
    if (s.pc < block.kernel->kernel->text.size()) text += " `" + block.kernel->kernel->text[s.pc] + "`";
    switch (s.wait) {
      case Wait::Block: {
        const BlockBarrier& b = block.barriers[s.barrier];
        text += ": waits at block barrier " + std::to_string(s.barrier) + ", where " + std::to_string(b.arrived) +
                " of " + (b.expected != 0 ? std::to_string(b.expected) : std::string("all")) + " threads have arrived";
        if (warp.arrived[s.barrier] != 0)
          text += "; of this warp lanes " + hex(warp.live & ~warp.arrived[s.barrier]) + " are missing";
        break;
      }
      case Wait::Sync:
        text += ": waits at convergence barrier B" + std::to_string(s.barrier) + " for lanes " +
                hex(warp.barrier[s.barrier][lane_index(s.mask)] & warp.live & ~s.mask);
        break;
      case Wait::WarpSync:
      case Wait::Collective:
        text += ": waits for lanes " + hex(s.need & warp.live & ~s.mask) + " to synchronise";
        break;
      case Wait::Phase:
        text += describe_phase(block, s);
        break;
      case Wait::Group:
        text += ": waits for the other warps of its warpgroup";
        break;
      case Wait::Cluster: {
        std::size_t missing = 0, all = 0;
        for (const BlockState* one : block.cluster->blocks) {
          for (const Warp& other : one->warps) {
            all += other.live != 0 ? 1 : 0;
            missing += (other.live & ~other.cluster_arrived) != 0 ? 1 : 0;
          }
        }
        text += ": waits at the cluster's barrier, where " + std::to_string(missing) + " of " + std::to_string(all) +
                " warps have not arrived";
        break;
      }
      case Wait::Ready:
        text += ": goes on";
        break;
    }
  }
  return text;
}

}  // namespace forewarp::emulation

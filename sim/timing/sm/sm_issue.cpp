// Issue: which warp goes, what holds the others, and what an issued instruction sets in motion.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "timing/sm/sm.h"

namespace forewarp {

Cycle Sm::tick_sub_partition(SubPartition& sub, int index, Cycle now, SharedInstructionCache& gpc) {
  // Warps that begin ask for their first instruction.
  if (sub.starting > 0) {
    for (std::uint32_t mask = sub.live_mask; mask != 0; mask &= mask - 1) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(mask));
      Warp& warp = warps_[sub.warp[slot]];
      if (!warp.needs_fetch || warp.started > now) continue;
      warp.needs_fetch = false;
      --sub.starting;
      warp.fetched_at = fetch_.fetch(index, warp.pc() / context_.program.instructions_per_line(), now, gpc, icache_);
      sub.feed.jump(warp.slot,
                    now + static_cast<Cycle>(context_.gpu.issue.first_cycles - context_.gpu.icache.feed_cycles));
      evaluate(warp, now);
    }
  }
  feed_lines(sub, now);
  if (sub.dispatch_free > now) return sub.next = sub.dispatch_free;
  if (sub.products.busy()) sub.products.advance(now);
  std::uint32_t refused = 0;
  const int slot = choose(sub, now, refused);
  if (slot >= 0) issue(sub, slot, now, gpc);
  if (sub.dispatch_free > now + 1 && slot < 0) return sub.next = sub.dispatch_free;
  Cycle next = kNever;
  for (std::size_t s = 0; s < kWarpSlots; ++s)
    if ((refused >> s & 1u) == 0) next = std::min(next, sub.ready[s]);
  if (sub.feed.waiting() != 0) next = std::min(next, sub.feed.next());
  sub.next = next <= now ? now + 1 : next;
  return sub.next;
}

/// Lines that warps have been given up to now; who waited for one goes on when it comes.
void Sm::feed_lines(SubPartition& sub, Cycle now) {
  while (sub.feed.next() <= now) {
    const std::uint32_t waited = sub.feed.waiting();
    const int slot = sub.feed.serve(context_.gpu.icache);
    if ((waited >> slot & 1u) == 0) continue;
    Warp& warp = warps_[sub.warp[static_cast<std::size_t>(slot)]];
    warp.fetched_at = std::max(warp.fetched_at, sub.feed.arrival(slot, context_.gpu.icache));
    evaluate(warp, now);
  }
}

/// Slots whose warp could issue as far as it itself is concerned.
std::uint32_t Sm::ready_slots(const SubPartition& sub, Cycle now) {
  std::uint32_t ready = 0;
  for (std::size_t s = 0; s < kWarpSlots; ++s) ready |= static_cast<std::uint32_t>(sub.ready[s] <= now) << s;
  return ready;
}

/// With the memory queue full, warps that need it are turned away together; room comes when the memory pipe takes an
/// instruction, and that wakes the sub-partition.
std::uint32_t Sm::turn_away(SubPartition& sub, std::uint32_t ready, Cycle now) {
  const std::uint32_t away = ready & sub.wants_memory;
  sub.waits_for_queue = away != 0;
  // LDS and LDG share the queue; behind others an LDG counts as they do (kernels/micro accept: mio_throttle where the
  // same sub-partition sends LDS, lg_throttle where another does).
  const bool global = sub.queued_global == sub.queued_memory;
  for (std::uint32_t fresh = away & ~sub.turned_away; fresh != 0; fresh &= fresh - 1) {
    Warp& warp = warps_[sub.warp[static_cast<std::size_t>(std::countr_zero(fresh))]];
    warp.refused_at = now;
    warp.sent_before = sub.memory_sent;
    warp.refused_reason = global && context_.program[warp.pc()].long_wait ? Stall::LgThrottle : Stall::MioThrottle;
  }
  sub.turned_away |= away;
  return away;
}

/// The warp to try next: the one that issued last goes on while it can, until a full queue refuses it (else it would
/// take each place that comes free: kernels/micro queue) or, while it waits, another finds a pipe busy; where it took a
/// branch, the one whose turn that makes it; else the oldest block's, of its warps the one that has not issued for
/// longest (kernels/micro order: blocks finish one after another, the warps of a block together).
int Sm::prefer(const SubPartition& sub, std::uint32_t candidates) const {
  if (sub.last >= 0 && ((candidates & ~sub.turned_away) >> sub.last & 1u) != 0) return sub.last;
  const int turn = sub.turns.next();
  if (turn != BranchTurns::kNobody && (candidates >> turn & 1u) != 0) return turn;
  std::uint64_t first = ~std::uint64_t{0};
  int best = -1;
  for (std::uint32_t mask = candidates; mask != 0; mask &= mask - 1) {
    const int s = std::countr_zero(mask);
    const std::uint64_t order = sub.order[static_cast<std::size_t>(s)];
    if (order < first) {
      first = order;
      best = s;
    }
  }
  return best;
}

/// While dispatch is held, stall counts stand still: the end of the warp's, moved by what was held since it was set. Of
/// a count that ended before, this is not after now, as what was held since has passed, too.
/// A product that the warp waits for may have been held up since its end was asked for, and counts by itself.
Cycle Sm::count_down(const SubPartition& sub, Warp& warp, Cycle now) const {
  if (warp.awaits_product != 0) {
    const Cycle result = static_cast<Cycle>(context_.gpu.async.product_result_cycles);
    warp.fixed_at = sub.products.done(warp.awaits_product) + result;
    warp.held_before = sub.held;
    if (warp.fixed_at <= now) warp.awaits_product = 0;
  }
  const Cycle end = warp.fixed_at + (sub.held - warp.held_before);
  if (end > now) {
    warp.fixed_at = end;
    warp.held_before = sub.held;
  }
  return end;
}

int Sm::choose(SubPartition& sub, Cycle now, std::uint32_t& refused) {
  std::uint32_t candidates = ready_slots(sub, now);
  sub.waits_for_queue = false;
  Cycle held_until = kNever;
  if (sub.queued_memory >= context_.gpu.memory_pipe.queue_entries) {
    refused = turn_away(sub, candidates, now);
    candidates &= ~refused;
  }
  while (candidates != 0) {
    const int best = prefer(sub, candidates);
    const auto slot = static_cast<std::size_t>(best);
    Warp& warp = warps_[sub.warp[slot]];
    Cycle until = count_down(sub, warp, now);
    if (until > now) {
      sub.ready[slot] = until;
      candidates &= ~(1u << best);
      continue;
    }
    if (const Cycle burst = burst_ahead(sub, sub.warp[slot], now); burst > now) {
      held_until = std::min(held_until, burst);
      candidates &= ~(1u << best);
      continue;
    }
    Stall reason{};
    if (structurally_free(sub, context_.program[warp.pc()], now, until, reason)) return best;
    // Who finds the pipe busy while the last issuer cannot go is next: warps take turns (kernels/micro turns).
    if (reason == Stall::MathPipeThrottle && best != sub.last) sub.last = -1;
    const std::uint64_t cycles = until - now;
    stalls_[static_cast<std::size_t>(reason)] += cycles;
    (*instruction_stalls_)[warp.pc()][static_cast<std::size_t>(reason)] += cycles;
    warp.throttled += cycles;
    if (warp.recorded != 0) context_.recorder->refuse(warp.recorded, reason, cycles);
    sub.ready[slot] = until;
    candidates &= ~(1u << best);
  }
  if (held_until != kNever) {
    // Nothing but what needs the register ports could go: dispatch stands until a burst of a product's sums ends.
    sub.held += held_until - now;
    sub.dispatch_free = held_until;
  }
  return -1;
}

/// May the instruction enter its pipe now? If not: `until` when, and why. (turn_away() has seen to the memory queue.)
bool Sm::structurally_free(SubPartition& sub, const TimedInstruction& in, Cycle now, Cycle& until, Stall& reason) {
  if (in.constant_operand) {
    const Cycle at = constant_ready(in, now);
    if (at > now) {
      until = at;
      reason = Stall::ImcMiss;
      return false;
    }
  }
  const GpuModel& gpu = context_.gpu;
  if (in.memory_queue) return true;
  if (in.path == Path::ConstantLoad || in.path == Path::Index) {
    // Room in the queue to the ADU comes when it takes the oldest entry.
    const auto places = static_cast<std::uint32_t>(std::min(gpu.memory_pipe.queue_entries, kQueueMost));
    if (sub.index_sent < places) return true;
    until = sub.index_start[(sub.index_sent - places) % kQueueMost];
    reason = Stall::MioThrottle;
    return until <= now;
  }
  const auto pipe = static_cast<std::size_t>(in.pipe);
  if (in.path == Path::GroupProduct) return true;  // it waits beside its warp
  if (in.path == Path::Phase) {
    const Cycle backlog = static_cast<Cycle>(gpu.memory_pipe.queue_entries * gpu.async.phase_interval);
    if (phase_free_ <= now + backlog) return true;
    until = phase_free_ - backlog;
    reason = Stall::MioThrottle;
    return false;
  }
  if (in.path == Path::Queued) {
    const Cycle backlog = static_cast<Cycle>(gpu.memory_pipe.queue_entries) * in.interval;
    if (sub.pipe_free[pipe] <= now + backlog) return true;
    until = sub.pipe_free[pipe] - backlog;
    reason = Stall::MioThrottle;
    return false;
  }
  Cycle free_at = sub.pipe_free[pipe];
  if (gpu.pipe(Pipe::FmaHeavy).interval > 0) {
    if (in.pipe == Pipe::Fma) free_at = std::min(sub.fma_half_free[0], sub.fma_half_free[1]);
    if (in.pipe == Pipe::FmaHeavy) free_at = sub.fma_half_free[0];
  }
  if (free_at > now) {
    until = free_at;
    reason = Stall::MathPipeThrottle;
    return false;
  }
  return true;
}

/// Must operand `s` be read from the register file? Not if the operand cache of its place and bank holds it, nor if an
/// operand before it reads the same register (kernels/micro waves: FFMA of one register three times goes every cycle).
bool Sm::reads_port(const SubPartition& sub, std::uint16_t warp_index, const TimedInstruction& in, std::size_t s) {
  const auto held = [&](std::size_t place) {
    return sub.reused[place][in.source[place] & 1] == operand_key(warp_index, in.source[place]);
  };
  if (in.source[s] == kRegisterZero || held(s)) return false;
  for (std::size_t earlier = 0; earlier < s; ++earlier)
    if (in.source[earlier] == in.source[s] && !held(earlier)) return false;
  return true;
}

/// How many registers the instruction reads of each bank as it issues.
Sm::BankReads Sm::banks_read(const SubPartition& sub, std::uint16_t warp_index, const TimedInstruction& in) {
  BankReads banks;
  if (!in.reads_registers) return banks;
  if (in.memory_queue || in.matrix) return {{1, 1}};
  for (std::size_t s = 0; s < 3; ++s)
    if (reads_port(sub, warp_index, in, s)) ++banks.count[in.source[s] & 1u];
  return banks;
}

/// Until when a burst of a product's sums holds what the warp's next instruction reads; not after `now`: nothing does.
Cycle Sm::burst_ahead(const SubPartition& sub, std::uint16_t warp_index, Cycle now) const {
  if (sub.products.burst_until(GroupProducts::kAllBanks) <= now) return 0;
  const TimedInstruction& in = context_.program[warps_[warp_index].pc()];
  return sub.products.burst_until(banks_read(sub, warp_index, in).set());
}

/// Reads each operand over the port of its bank, one a cycle, as soon as it can within a window that begins with the
/// issue, into the latch of its place and bank. A latch is busy to the end of its instruction's window, so of two
/// instructions in a row that read the same bank in the same place the second has one cycle left for that
/// (kernels/micro operands). Returns the cycles that the instruction waits until all fit.
Cycle Sm::read_operands(SubPartition& sub, std::uint16_t warp_index, const TimedInstruction& in, Cycle now) {
  const auto& issue = context_.gpu.issue;
  if (issue.register_bank_count != 2) return 0;
  if (in.matrix) return read_matrices(sub, warp_index, in, now);
  std::array<std::size_t, 3> reads{};
  std::size_t count = 0;
  for (std::size_t s = 0; s < 3; ++s)
    if (reads_port(sub, warp_index, in, s)) reads[count++] = s;
  for (std::size_t s = 0; s < 3; ++s) {
    const std::uint8_t source = in.source[s];
    if (source == kRegisterZero) continue;
    sub.reused[s][source & 1] = (in.reuse >> s & 1) != 0 ? operand_key(warp_index, source) : 0;
  }
  const std::uint64_t window = (std::uint64_t{1} << issue.register_window_cycles) - 1;
  for (Cycle at = now;; ++at) {
    const Cycle since = at - sub.booked_from;
    std::array<std::uint64_t, 2> booked{};
    if (since < 64) booked = {sub.booked[0] >> since, sub.booked[1] >> since};
    bool placed = true;
    for (std::size_t i = 0; i < count && placed; ++i) {
      const std::size_t bank = in.source[reads[i]] & 1u;
      const Cycle free = sub.latch_free[reads[i]][bank];
      const std::uint64_t open = free > at ? window >> (free - at) << (free - at) : window;
      const std::uint64_t left = open & ~booked[bank];
      placed = left != 0;
      booked[bank] |= left & (~left + 1);
    }
    if (!placed) continue;
    sub.booked = booked;
    sub.booked_from = at;
    for (std::size_t s = 0; s < 3; ++s)
      if (in.source[s] != kRegisterZero)
        sub.latch_free[s][in.source[s] & 1] = at + static_cast<Cycle>(issue.register_window_cycles);
    return at - now;
  }
}

/// The same for a product of matrices: pairs of registers over both ports, in the cycles after the issue but one, so
/// that what issues next waits for the ports (kernels/micro tensor_beside: a product and 4, 6, 8 FFMA take 8.2, 10.1,
/// 12.1 cycles, with factors that are read anew each time).
Cycle Sm::read_matrices(SubPartition& sub, std::uint16_t warp_index, const TimedInstruction& in, Cycle now) {
  int pairs = in.metadata_pairs;
  for (std::size_t s = 0; s < 3; ++s) {
    const std::uint8_t source = in.source[s];
    if (source == kRegisterZero) continue;
    const std::uint32_t key = operand_key(warp_index, source);
    if (sub.reused[s][source & 1] != key) pairs += in.pairs[s];
    sub.reused[s] = {};
    if ((in.reuse >> s & 1) != 0) sub.reused[s][source & 1] = key;
  }
  const std::uint64_t window = ((std::uint64_t{1} << (pairs + 1)) - 1) << 1;
  for (Cycle at = now;; ++at) {
    const Cycle since = at - sub.booked_from;
    std::array<std::uint64_t, 2> booked{};
    if (since < 64) booked = {sub.booked[0] >> since, sub.booked[1] >> since};
    std::uint64_t open = window & ~(booked[0] | booked[1]);
    if (std::popcount(open) < pairs) continue;
    for (int i = 0; i < pairs; ++i) {
      const std::uint64_t first = open & (~open + 1);
      open ^= first;
      for (std::uint64_t& bank : booked) bank |= first;
    }
    sub.booked = booked;
    sub.booked_from = at;
    return at - now;
  }
}

/// Constants: the first touch of a line by this SM waits for it, later ones hit.
Cycle Sm::constant_ready(const TimedInstruction& in, Cycle now) {
  Cycle& arrival = constant_arrival_[in.constant_line % constant_arrival_.size()];
  if (arrival == kNever) arrival = now + static_cast<Cycle>(context_.gpu.issue.constant_miss_cycles);
  return arrival;
}

/// Sends an instruction to the ADU, which serves the whole SM (kernels/micro special: S2R of SM and warp indices and
/// LDC take 2 cycles each, from however many warps). Returns when it is served.
Cycle Sm::enter_adu(SubPartition& sub, const TimedInstruction& in, Cycle now) {
  const Cycle start = std::max(now, adu_free_);
  adu_free_ = start + in.interval;
  sub.index_start[sub.index_sent++ % kQueueMost] = start;
  return start;
}

/// Charges the cycles since the warp's last issue to their reasons, in the order in which they held it.
void Sm::account(const SubPartition& sub, Warp& warp, const TimedInstruction& in, Cycle now) {
  StallCycles& here = (*instruction_stalls_)[warp.pc()];
  for_each_charge(sub, warp, in, now, [&](Cycle from, Cycle to, Stall reason, std::uint8_t) {
    if (reason == kRefused) return;  // charged then
    stalls_[static_cast<std::size_t>(reason)] += to - from;
    here[static_cast<std::size_t>(reason)] += to - from;
  });
  ++stalls_[static_cast<std::size_t>(Stall::Selected)];
  ++here[static_cast<std::size_t>(Stall::Selected)];
  warp.throttled = 0;
  warp.refused_at = kNever;
  warp.first = false;
}

/// What is waited for at a scoreboard is named after the last instruction that has set it.
void Sm::mark_scoreboard(Warp& warp, const TimedInstruction& in, std::uint8_t scoreboard) {
  const auto bit = static_cast<std::uint8_t>(1u << scoreboard);
  warp.long_mask = static_cast<std::uint8_t>(in.long_wait ? warp.long_mask | bit : warp.long_mask & ~bit);
}

void Sm::set_scoreboards(Warp& warp, const TimedInstruction& in, Cycle result_at, Cycle read_at) {
  const auto set = [&](std::uint8_t scoreboard, Cycle at) {
    if (scoreboard == kNoScoreboard) return;
    warp.scoreboard_at[scoreboard] = std::max(warp.scoreboard_at[scoreboard], at);
    mark_scoreboard(warp, in, scoreboard);
  };
  set(in.write_barrier, result_at);
  set(in.read_barrier, read_at);
}

void Sm::send_to_memory(SubPartition& sub, Warp& warp, std::uint16_t warp_index, const TimedInstruction& in,
                        Cycle now) {
  MemoryOperation operation;
  operation.instruction = &in;
  operation.warp = warp_index;
  operation.generation = warp.generation;
  operation.sub_partition = warp.sub_partition;
  if (in.path == Path::Memory || in.path == Path::Copy) {
    const Access& access = *warp.cursor.records();
    operation.pattern = access.pattern;
    operation.effect = context_.patterns.effect(access.pattern);
    const Block& block = blocks_[warp.block_slot];
    operation.line_base = access.base / kLineBytes + static_cast<std::uint64_t>(block.shifts[access.slope]);
    if (in.space == MemorySpace::Local) operation.line_base += local_lines_before(warp.block_slot);
    if (operation.effect.to_lines() && !operation.effect.returns_data()) {
      const std::uint32_t lines = context_.patterns.counts(access.pattern).lines;
      warp.stores_in_flight += lines;
      stores_sent_ += lines;
    }
  }
  if (in.path == Path::Memory && network_ != nullptr) open_remote(warp, in, operation);
  if (in.path == Path::Copy) operation.target = warp.cursor.records()[1].pattern;
  if (in.path == Path::Copy || in.path == Path::CopyCommit) operation.group = copies_.begin(warp_index);
  if (in.path == Path::CopyCommit) copies_.commit(warp_index, in.write_barrier);
  const Cycle start = std::max(now, sub.address_free);
  operation.arrival = start + std::max<Cycle>(pipe_.lead_cycles(), in.send);
  sub.address_free = start + in.send;
  ++sub.queued_memory;
  ++sub.memory_sent;
  sub.queued_global += in.long_wait ? 1 : 0;
  ++warp.queued;
  const auto mark = [&](std::uint8_t scoreboard) {
    if (scoreboard == kNoScoreboard) return;
    ++warp.pending[scoreboard];
    mark_scoreboard(warp, in, scoreboard);
  };
  mark(in.write_barrier);
  mark(in.read_barrier);
  pipe_.push(operation);
  pipe_next_ = std::min(pipe_next_, operation.arrival);
}

void Sm::occupy_pipe(SubPartition& sub, const TimedInstruction& in, Cycle now) {
  const auto pipe = static_cast<std::size_t>(in.pipe);
  sub.pipe_cycles[pipe] += in.interval;
  if (context_.gpu.pipe(Pipe::FmaHeavy).interval > 0 && (in.pipe == Pipe::Fma || in.pipe == Pipe::FmaHeavy)) {
    // Two half-width pipes: an FFMA takes the light one if it is free, integer multiplies only the heavy one, packed
    // halves both.
    const bool light = in.pipe == Pipe::Fma && sub.fma_half_free[1] <= now;
    const int interval = in.product ? in.interval : context_.gpu.pipe(Pipe::FmaHeavy).interval;
    sub.fma_half_free[light ? 1 : 0] = now + static_cast<Cycle>(interval);
    if (in.both_halves) {
      Cycle& other = sub.fma_half_free[light ? 0 : 1];
      other = std::max(other, now) + static_cast<Cycle>(interval);
    }
    return;
  }
  const Cycle start = std::max(sub.pipe_free[pipe], now);
  if (in.matrix) sub.operands_free = start + in.operand_pairs;
  sub.pipe_free[pipe] = start + in.interval;
}

/// Registers on their way to the memory pipe come as the operands of products do, which wait for them (kernels/micro
/// tensor_loads: a product takes 6.0 cycles, of which its operands hold 5; with an LDS after each 7.2, with an
/// STS 9.3).
void Sm::read_amid_products(SubPartition& sub, const TimedInstruction& in, Cycle now) {
  sub.operands_free = std::max(sub.operands_free, now) + in.send;
  Cycle& free = sub.pipe_free[static_cast<std::size_t>(Pipe::Tensor)];
  free = std::max(free, sub.operands_free);
}

void Sm::issue(SubPartition& sub, int slot, Cycle now, SharedInstructionCache& gpc) {
  const std::uint16_t warp_index = sub.warp[static_cast<std::size_t>(slot)];
  Warp& warp = warps_[warp_index];
  const TimedInstruction& in = context_.program[warp.pc()];
  if (warp.recorded != 0) record_issue(sub, warp, in, now);
  account(sub, warp, in, now);
  ++sub.issue_cycles;
  ++issued_;
  sub.last = slot;
  sub.turns.issue();
  sub.turned_away &= ~(1u << slot);
  warp.issued = now;
  sub.order[static_cast<std::size_t>(slot)] = issue_order(warp.age, now);
  const bool reads = in.path == Path::Fixed || in.path == Path::Scoreboarded;
  const BankReads banks = sub.products.busy() ? banks_read(sub, warp_index, in) : BankReads{};
  warp.conflict = reads ? read_operands(sub, warp_index, in, now) : 0;
  for (std::size_t b = 0; b < GroupProducts::kBanks; ++b)
    if (banks.count[b] > 0) sub.products.read_until(b, now + banks.count[b]);
  const Cycle held = in.dispatch - 1u + warp.conflict;
  if (held > 0) {
    sub.held += held;
    sub.dispatch_free = now + 1 + held;
  }
  warp.fixed_at = now + in.stall + held;
  warp.fixed_reason = Stall::Wait;
  warp.held_before = sub.held;
  const GpuModel& gpu = context_.gpu;
  switch (in.path) {
    case Path::Memory:
    case Path::Shuffle:
    case Path::Copy:
    case Path::CopyCommit:
      if (in.path != Path::CopyCommit) read_amid_products(sub, in, now);
      send_to_memory(sub, warp, warp_index, in, now);
      break;
    case Path::Queued: {
      const Cycle free = sub.pipe_free[static_cast<std::size_t>(in.pipe)];
      Cycle start = std::max(now, free);
      if (sub.products.busy()) start += sub.products.wait_for_ports();
      occupy_pipe(sub, in, start);
      const bool follows = free >= now && sub.queued_last == warp_index;
      sub.queued_last = warp_index;
      const auto behind = follows ? static_cast<Cycle>(gpu.latency.queued_behind) : 0;
      const auto release = static_cast<Cycle>(gpu.latency.queued_read_release);
      set_scoreboards(warp, in, start + in.latency + behind, start + in.interval + release);
      break;
    }
    case Path::ConstantLoad: {
      const Cycle start = enter_adu(sub, in, now);
      const Cycle at = std::max(constant_ready(in, now), start) + static_cast<Cycle>(gpu.issue.constant_hit_cycles);
      set_scoreboards(warp, in, at, start + in.interval);
      break;
    }
    case Path::Index: {
      const Cycle start = enter_adu(sub, in, now);
      set_scoreboards(warp, in, start + in.latency, start + in.interval);
      break;
    }
    case Path::Phase:
      operate_on_phase(warp, warp_index, in, now);
      break;
    case Path::Box:
      copy_box(warp, warp_index, in, now);
      break;
    case Path::BoxCommit:
      commit_boxes(warp, warp_index, in, now);
      break;
    case Path::GroupProduct:
      set_scoreboards(warp, in, multiply_group(sub, warp, in, now), now);
      break;
    case Path::GroupWait: {
      // Groups end in order: the one before the last `count` decides.
      if (warp.group_count <= in.count || in.count >= warp.groups.size()) break;
      const GroupProducts::Number last = warp.groups[(warp.group_count - 1 - in.count) % warp.groups.size()];
      const Cycle done = sub.products.done(last) + static_cast<Cycle>(gpu.async.product_result_cycles);
      if (done > warp.fixed_at) {
        warp.awaits_product = last;
        warp.fixed_at = done;
        warp.fixed_reason = Stall::Products;
      }
      break;
    }
    case Path::GroupMeet:
    case Path::Barrier:
    case Path::BarrierArrive:
    case Path::ClusterArrive:
    case Path::ClusterWait:
    case Path::Membar:
    case Path::Depbar:
    case Path::Exit:
      break;
    case Path::Fixed:
    case Path::Scoreboarded:
      occupy_pipe(sub, in, now);
      set_scoreboards(warp, in, now + in.latency, now + in.interval);
      break;
  }
  advance(warp, in, now, gpc);
}

/// Moves to the next instruction of the trace and works out when it may issue.
void Sm::advance(Warp& warp, const TimedInstruction& in, Cycle now, SharedInstructionCache& gpc) {
  const std::uint32_t previous = warp.pc();
  const GpuModel& gpu = context_.gpu;
  SubPartition& sub = subs_[warp.sub_partition];
  const Access* record = warp.cursor.records();
  warp.cursor.step(in.event.records);
  if (warp.cursor.done()) {
    retire(warp, now);
    return;
  }
  const bool jumps = warp.pc() != previous + 1;
  if (jumps) {
    sub.turns.branch(warp.slot);
    const Cycle target = now + static_cast<Cycle>(gpu.issue.branch_cycles - gpu.icache.feed_cycles);
    sub.feed.jump(warp.slot, target);
    if (target > warp.fixed_at) {
      warp.waited_at = warp.fixed_at;
      warp.fixed_at = target;
      warp.fixed_reason = Stall::BranchResolving;
    }
  }
  const std::uint32_t per_line = context_.program.instructions_per_line();
  if (warp.pc() / per_line != previous / per_line) {
    warp.fetched_at = fetch_.fetch(warp.sub_partition, warp.pc() / per_line, now, gpc, icache_);
    if (!jumps && sub.feed.step(warp.slot, gpu.icache))
      warp.fetched_at = std::max(warp.fetched_at, sub.feed.arrival(warp.slot, gpu.icache));
  }
  if (in.path == Path::Barrier || in.path == Path::BarrierArrive) {
    arrive_at_barrier(warp, BarrierArrival::of(*record), now, in.path == Path::Barrier);
  } else if (in.path == Path::ClusterArrive || in.path == Path::ClusterWait) {
    meet_cluster(warp, in, *record, now);
  } else if (in.path == Path::GroupMeet) {
    meet_group(warp, now);
  } else if (in.path == Path::Membar) {
    warp.fixed_reason = Stall::Membar;
    warp.fences_stores = !in.block_fence && warp.stores_in_flight > 0;
    warp.fences_all = in.fences_all;
    warp.boxes_before = in.fences_all ? boxes_.asked() : 0;
    warp.stores_before = in.fences_all ? stores_sent_ : 0;
    if (fence_waits(warp)) {
      warp.wants_fence = true;
      ++fences_waiting_;
      fence_needs_ = std::min(fence_needs_, warp.stores_before);
      warp.fixed_at = kNever;
      pipe_.fence(1);
      pipe_next_ = std::min(pipe_next_, now + 1);
    } else {
      pass_fence(warp, now);
    }
  }
  evaluate(warp, now + 1);
}

}  // namespace forewarp

// What an SM tells the recorder of a block that it watches.
#include "timing/sm/sm.h"

namespace forewarp {

/// What has held a warp since its last issue.
void Sm::record_waits(const SubPartition& sub, const Warp& warp, Cycle now) {
  for_each_charge(sub, warp, context_.program[warp.pc()], now,
                  [&](Cycle, Cycle to, Stall reason, std::uint8_t scoreboard) {
                    if (reason == kRefused)
                      context_.recorder->refused(warp.recorded, to, warp.pc());
                    else
                      context_.recorder->state(warp.recorded, to, warp.pc(), reason, scoreboard);
                  });
}

/// The time up to an instruction's issue, and what it sets in motion.
void Sm::record_issue(const SubPartition& sub, const Warp& warp, const TimedInstruction& in, Cycle now) {
  BlockRecorder& recorder = *context_.recorder;
  const std::uint16_t row = warp.recorded;
  record_waits(sub, warp, now);
  recorder.state(row, now + 1, warp.pc(), Stall::Selected, kNoScoreboard);
  recorder.settle(row, sub.products);
  recorder.sets(row, in.write_barrier, warp.pc());
  recorder.sets(row, in.read_barrier, warp.pc());
  if (in.path == Path::Barrier) recorder.meets(row, BarrierArrival::of(*warp.cursor.records()).id);
  if (in.path == Path::ClusterWait) recorder.meets(row, kClusterBarrier);
  if (in.matrix) {
    const Cycle start = std::max(sub.pipe_free[static_cast<std::size_t>(in.pipe)], now);
    recorder.busy(row, start, start + in.interval);
  }
}

std::uint32_t Sm::record_copy(const Warp& warp, const MemoryPipe::Box& box, const TimedInstruction& in, Cycle now) {
  using Kind = BlockRecord::CopyKind;
  BlockRecord::Copy copy;
  copy.pc = warp.pc();
  copy.kind = in.prefetch                                     ? Kind::Prefetch
              : sends_to_blocks(warp, *warp.cursor.records()) ? Kind::ToBlocks
              : box.request == RequestKind::Read              ? Kind::In
              : box.request == RequestKind::Reduction         ? Kind::Reduction
                                                              : Kind::Out;
  copy.barrier = box.owner.barrier;
  copy.bytes = box.owner.bytes;
  copy.blocks = box.owner.blocks;
  copy.issued = now;
  return context_.recorder->copy(warp.recorded, copy);
}

void Sm::record_phase(const Block& block, std::uint32_t barrier, std::uint32_t before, Cycle at) {
  const std::uint32_t completed = block.phases.completed(barrier);
  if (completed != before) context_.recorder->phase(block.recorded, barrier, completed, at);
}

/// A warp's last stretches, after its EXIT.
void Sm::record_end(const Warp& warp, Cycle waited, Cycle resolved, Cycle end) {
  BlockRecorder& recorder = *context_.recorder;
  const Cycle exit = warp.issued + 1;
  recorder.settle(warp.recorded, subs_[warp.sub_partition].products);
  recorder.state(warp.recorded, exit + waited, warp.pc(), Stall::Wait, kNoScoreboard);
  recorder.state(warp.recorded, exit + waited + resolved, warp.pc(), Stall::BranchResolving, kNoScoreboard);
  recorder.state(warp.recorded, end, warp.pc(), Stall::Drain, kNoScoreboard);
  recorder.end_warp(warp.recorded, end);
}

void Sm::close_record(Cycle now) {
  for (const Warp& warp : warps_) {
    if (!warp.alive || warp.recorded == 0) continue;
    const SubPartition& sub = subs_[warp.sub_partition];
    context_.recorder->settle(warp.recorded, sub.products);
    if (warp.draining)
      context_.recorder->state(warp.recorded, now, warp.pc(), Stall::Drain, kNoScoreboard);
    else
      record_waits(sub, warp, now);
  }
}

}  // namespace forewarp

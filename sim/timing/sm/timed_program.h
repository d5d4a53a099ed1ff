// A kernel's instructions as the timing model sees them: queue or pipe, duration, scoreboards. Built once per launch
// from the program and the GPU model, so that issue reads one small dense record.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware/gpu_model.h"
#include "hardware/tensor.h"
#include "program/program.h"
#include "trace/events.h"

namespace forewarp {

/// How an instruction executes once issued.
enum class Path : std::uint8_t {
  Fixed,          ///< a pipe with a fixed latency; the compiler's stall counts cover it
  Scoreboarded,   ///< a pipe whose result arrives after a known number of cycles and releases a scoreboard
  Queued,         ///< the same behind the sub-partition's memory-input queue (MUFU, conversions)
  Memory,         ///< the memory pipe: global, local or shared
  Shuffle,        ///< the memory pipe, but no address
  Copy,           ///< the memory pipe: from global memory to shared memory, by itself
  CopyCommit,     ///< ends a group of copies, behind them in the memory pipe
  ConstantLoad,   ///< LDC, by way of the SM's ADU
  Index,          ///< S2R and S2UR of warp-uniform values: by way of the ADU too
  Barrier,        ///< BAR.SYNC and BAR.RED
  BarrierArrive,  ///< BAR.ARV
  ClusterArrive,  ///< UCGABAR_ARV
  ClusterWait,    ///< UCGABAR_WAIT
  Membar,
  Phase,         ///< SYNCS: the barriers of the block in shared memory
  Box,           ///< the memory pipe's unit for boxes
  BoxCommit,     ///< ends a group of boxes that leave shared memory
  GroupMeet,     ///< WARPGROUP.ARRIVE: its warps meet
  GroupWait,     ///< WARPGROUP.DEPBAR: until at most `count` groups of products are under way
  GroupProduct,  ///< the tensor pipe, beside its warps
  Depbar,        ///< waits until a scoreboard counts at most `count`, and those of a set none
  Exit,
};

struct TimedInstruction {
  TraceEvent event;  ///< of the trace
  Path path = Path::Fixed;
  Pipe pipe = Pipe::None;
  MemorySpace space = MemorySpace::None;
  MemoryKind memory = MemoryKind::None;
  std::uint8_t stall = 1;  ///< cycles before the warp's next issue, at least 1
  std::uint8_t wait_mask = 0;
  std::uint8_t write_barrier = kNoScoreboard;
  std::uint8_t read_barrier = kNoScoreboard;
  std::uint8_t interval = 1;          ///< cycles the pipe is held
  std::uint8_t dispatch = 1;          ///< cycles in which the sub-partition issues nothing else
  bool product = false;               ///< a 64-bit product, which makes two passes
  bool both_halves = false;           ///< takes both halves of the FMA pipe: packed halves
  std::uint8_t wide = 0;              ///< registers that a lane loads beyond the first
  std::uint8_t send = 0;              ///< cycles that its registers hold the sub-partition's way to the memory pipe
  std::uint8_t wavefront_factor = 1;  ///< passes through the banks per wavefront of the pattern
  std::uint8_t count = 0;             ///< Depbar: the threshold
  std::uint8_t depbar_scoreboard = 0;
  bool memory_queue = false;        ///< takes a place of the sub-partition's queue to the memory pipe
  bool bypass_l1 = false;           ///< .STRONG.GPU and stronger loads go to L2
  bool long_wait = false;           ///< its scoreboards count as long (global, local, a phase's end) rather than short
  bool prefetch = false;            ///< Box: to L2 alone
  bool commits = false;             ///< GroupProduct: the last of a group
  bool block_fence = false;         ///< MEMBAR of the block alone: waits for no store
  bool fences_all = false;          ///< MEMBAR beyond the block, on sm_90: waits for boxes and others' stores, too
  bool reads_registers = false;     ///< over the ports of the register file
  bool control = false;             ///< may leave the straight line
  bool passes_barrier = false;      ///< may issue while its warp waits at a barrier
  bool constant_operand = false;    ///< reads c[][] as an ALU operand
  std::uint16_t constant_line = 0;  ///< of that operand or of LDC: line number in its bank
  std::uint16_t latency = 0;        ///< Scoreboarded, Queued: result after so many cycles
  // Register operands, for the read ports: slot i reads register `source[i]`, 255 = none.
  std::uint8_t source[3] = {255, 255, 255};
  std::uint8_t reuse = 0;
  // Products of matrices read a pair of registers a cycle, over both ports: so many for each slot.
  bool matrix = false;
  std::uint8_t pairs[3] = {0, 0, 0};
  std::uint8_t metadata_pairs = 0;  ///< of a sparse factor
  std::uint8_t operand_pairs = 0;   ///< all of these
  MatrixSlabs slabs;                ///< GroupProduct
};

class TimedProgram {
 public:
  TimedProgram(const Kernel&, const GpuModel&);
  const TimedInstruction& operator[](std::uint32_t pc) const { return instructions_[pc]; }
  std::size_t size() const { return instructions_.size(); }
  const EventTable& events() const { return events_; }
  /// Scoreboards that an instruction waits for to count down to more than zero.
  unsigned counted_scoreboards() const { return counted_scoreboards_; }
  /// Boxes leave shared memory.
  bool stores_boxes() const { return stores_boxes_; }
  bool copies() const { return copies_; }
  /// Its warps wait for phases of barriers in shared memory, or for other blocks of their cluster.
  bool phases() const { return phases_; }
  /// Instruction-cache lines of the code.
  std::uint32_t code_lines() const { return code_lines_; }
  std::uint32_t instructions_per_line() const { return instructions_per_line_; }

 private:
  EventTable events_;
  unsigned counted_scoreboards_ = 0;
  bool copies_ = false;
  bool stores_boxes_ = false;
  bool phases_ = false;
  std::vector<TimedInstruction> instructions_;
  std::uint32_t code_lines_ = 0, instructions_per_line_ = 8;
};

}  // namespace forewarp

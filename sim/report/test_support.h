// A small GPU, kernel, trace and timing result made by hand, so that reports can be checked without any other stage.
#pragma once

#include "report/prediction.h"

namespace forewarp::testing {

/// Two GPCs of two SMs at 1000 MHz; a warp instruction a cycle on the FMA pipe, HBM of 100 bytes a nanosecond.
inline GpuModel small_gpu() {
  GpuModel g;
  g.name = "small";
  g.title = "a GPU of four SMs";
  g.sm = 90;
  g.chip = {4, 2, {1, 1}, 1000};
  g.occupancy.max_warps = 64;
  g.issue.sub_partitions = 4;
  for (const Pipe pipe : {Pipe::Alu, Pipe::Fma, Pipe::Cbu, Pipe::Lsu, Pipe::Fp64})
    g.pipes[static_cast<std::size_t>(pipe)] = {pipe == Pipe::Fma ? 1 : 2, false};
  g.memory_pipe.lsu_interval = 1;
  g.l1.tags_per_cycle = 4;
  g.l1.data_bytes_per_cycle = 128;
  g.crossbar.sm_requests_per_cycle_x16 = 8;
  g.crossbar.sm_response_bytes_per_cycle = 64;
  g.crossbar.gpc_response_bytes_per_cycle = 100;
  g.crossbar.gpc_fanout_bytes_per_cycle = 100;
  g.crossbar.sm_write_bytes_per_cycle = 32;
  g.l2.slices = 4;
  g.l2.slice_bytes_per_cycle = 64;
  g.l2.slice_tags_per_cycle = 1;
  g.hbm.bytes_per_ns = 100;
  g.launch.start_cycles = 100;
  g.launch.end_cycles = 50;
  return g;
}

inline Instruction instruction(Opcode opcode, Pipe pipe, OperationClass operation) {
  Instruction i;
  i.opcode = opcode;
  i.pipe = pipe;
  i.operation = operation;
  return i;
}

inline Instruction memory_instruction(Opcode opcode, MemorySpace space, MemoryKind kind) {
  Instruction i = instruction(opcode, Pipe::Lsu, OperationClass::Memory);
  i.space = space;
  i.memory = kind;
  i.access_bytes = 4;
  i.destination_count = kind == MemoryKind::Load ? 1 : 0;
  return i;
}

/// Load, shared load, multiply-add, guarded branch, store, exit.
inline Kernel small_kernel() {
  Kernel k;
  k.name = "_Z5smallPf";
  k.demangled = "small(float*)";
  k.registers = 32;
  k.static_shared_bytes = 1024;
  k.instructions = {memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load),
                    memory_instruction(Opcode::LDS, MemorySpace::Shared, MemoryKind::Load),
                    instruction(Opcode::FFMA, Pipe::Fma, OperationClass::Ffma),
                    instruction(Opcode::BRA, Pipe::Cbu, OperationClass::Control),
                    memory_instruction(Opcode::STG, MemorySpace::Global, MemoryKind::Store),
                    instruction(Opcode::EXIT, Pipe::Cbu, OperationClass::Control)};
  k.text = {"LDG.E R4, desc[UR4][R2.64]", "LDS R5, [R0]", "FFMA R6, R4, R5, R6", "@P0 BRA 0x0000",
            "STG.E desc[UR4][R2.64], R6", "EXIT"};
  return k;
}

/// Ten blocks of two warps that all execute each instruction once: 20 of each.
inline KernelTrace small_trace() {
  KernelTrace t;
  t.launch.case_id = "hand_made";
  t.launch.grid = {10, 1, 1};
  t.launch.block = {64, 1, 1};
  t.kernel = std::make_shared<const Kernel>(small_kernel());
  t.sm = 90;
  t.slopes.resize(1);
  BlockClass c;
  c.population = 10;
  c.counts.edit().resize(6);
  for (InstructionCount& count : c.counts.edit()) {
    count.executed = 2;
    count.executed_on = 2;
    count.active_lanes = 64;
    count.enabled_lanes = 64;
  }
  InstructionCount& load = c.counts.edit()[0];
  load.requests = 2;
  load.sectors = load.tag_sectors = 64;  // a sector a lane
  load.ideal_sectors = 8;
  load.lines = 64;
  load.bytes = 256;
  InstructionCount& shared = c.counts.edit()[1];
  shared.shared_requests = 2;
  shared.wavefronts = 8;
  shared.ideal_wavefronts = 2;
  shared.bank_conflicts = 6;
  shared.bytes = 256;
  c.counts.edit()[3].divergent = 1;
  c.counts.edit()[3].enabled_lanes = 32;
  InstructionCount& store = c.counts.edit()[4];
  store.requests = 2;
  store.sectors = store.tag_sectors = store.ideal_sectors = 8;
  store.lines = 2;
  store.bytes = 256;
  t.classes.push_back(c);
  return t;
}

inline Occupancy small_occupancy() {
  Occupancy o;
  o.limit_blocks = 32;
  o.limit_registers = 32;
  o.registers_per_thread = 32;
  o.limit_shared = 2;
  o.limit_warps = 32;
  o.blocks_per_sm = 2;
  o.warps_per_block = 2;
  o.shared_bytes_per_block = 2048;
  o.shared_config_bytes = 8192;
  o.waves = 1.25;
  o.theoretical_pct = 6.25;
  o.limiter = "shared memory";
  return o;
}

/// 2000 cycles in which warps mostly wait for global memory.
inline TimingResult small_timing() {
  TimingResult r;
  r.elapsed_cycles = 2000;
  TimingCounters& c = r.counters;
  c.instructions_issued = c.issue_active_cycles = 120;
  c.smsp_active_cycles = 12000;
  c.sm_active_cycles = 6000;
  c.warp_cycles = 20000;
  const auto stall = [&](Stall reason) -> std::uint64_t& { return c.stalls[static_cast<std::size_t>(reason)]; };
  stall(Stall::Selected) = 120;
  stall(Stall::LongScoreboard) = 18000;
  stall(Stall::ShortScoreboard) = 1000;
  stall(Stall::Wait) = 880;
  c.l1_load_sectors = 640;
  c.l1_load_hit_sectors = 160;
  c.l1_store_sectors = 80;
  c.l1_tag_lookups = 660;
  c.l1_data_wavefronts = 180;
  c.shared_wavefronts = 80;
  c.l1_data_cycles = 260;
  c.pipe_cycles[static_cast<std::size_t>(Pipe::Fma)] = 20;
  c.pipe_cycles[static_cast<std::size_t>(Pipe::Cbu)] = 80;
  c.memory.read_requests = 640;
  c.memory.write_requests = 20;
  c.memory.read_sectors = 480;
  c.memory.write_sectors = 80;
  c.memory.hit_sectors = 140;
  c.memory.miss_sectors = 420;
  c.memory.dram_read_bytes = 13440;
  for (std::uint32_t b = 0; b < 10; ++b) {
    const Cycle start = b < 8 ? 100 : 1000;
    r.spans.push_back({b, static_cast<std::uint16_t>(b % 4), start, start + 900});
  }
  r.instruction_stalls.resize(6);
  r.instruction_stalls[2][static_cast<std::size_t>(Stall::LongScoreboard)] = 18000;
  r.instruction_stalls[2][static_cast<std::size_t>(Stall::Selected)] = 20;
  r.instruction_stalls[4][static_cast<std::size_t>(Stall::Wait)] = 880;
  r.coverage = {120, 120, false, true, 0, "", 0};
  return r;
}

inline Prediction small_prediction() {
  const GpuModel gpu = small_gpu();
  const KernelTrace trace = small_trace();
  return build_prediction(gpu, *trace.kernel, trace, small_occupancy(), small_timing());
}

}  // namespace forewarp::testing

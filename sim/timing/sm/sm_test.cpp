// The SM to the cycle: one hand-made kernel a rule, its cycles worked out in the test.
#include "timing/sm/sm.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <string_view>

#include "timing/sm/copy_groups.h"
#include "timing/sm/release_times.h"
#include "timing/sm/sm_test_support.h"

using namespace forewarp;

namespace {

/// n instructions of one kind, then EXIT.
std::vector<Instruction> repeat(const Instruction& in, int n) {
  std::vector<Instruction> code(static_cast<std::size_t>(n), in);
  code.push_back(exit_instruction());
  return code;
}

Instruction special_function(std::uint8_t write_barrier, std::uint8_t read_barrier = kNoScoreboard) {
  Instruction in = plain(Pipe::Xu, 1);
  in.opcode = Opcode::MUFU;
  in.control.write_barrier = write_barrier;
  in.control.read_barrier = read_barrier;
  return in;
}

std::uint64_t all_stalls(const TimingResult& r) {
  return std::accumulate(r.counters.stalls.begin(), r.counters.stalls.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("a dependent chain takes its stall counts") {
  // 10 instructions 4 cycles apart: issues at 0, 4, ..., 36; EXIT at 40, gone one cycle later.
  const TimingResult r = HandMadeTrace(repeat(plain(Pipe::Fma, 4), 10), 1).simulate(sm_model());
  CHECK(r.elapsed_cycles == 41);
  CHECK(r.counters.instructions_issued == 11);
  CHECK(r.counters.issue_active_cycles == 11);
  CHECK(stalled(r, Stall::Selected) == 11);
  CHECK(stalled(r, Stall::Wait) == 30);
  CHECK(r.counters.warp_cycles == 41);
  CHECK(all_stalls(r) == r.counters.warp_cycles);
}

TEST_CASE("four warps on four sub-partitions do not disturb each other") {
  const TimingResult r = HandMadeTrace(repeat(plain(Pipe::Fma, 4), 10), 4).simulate(sm_model());
  CHECK(r.elapsed_cycles == 41);
  CHECK(r.counters.issue_active_cycles == 44);
  CHECK(r.counters.sm_active_cycles == 41);
}

TEST_CASE("two warps of one sub-partition share its issue slot") {
  // Stall 1: each could issue every cycle; together 2 x 11 issues take 22 cycles, the last EXIT included.
  const TimingResult r = HandMadeTrace(repeat(plain(Pipe::Fma, 1), 10), 5).simulate(sm_model());
  CHECK(r.elapsed_cycles == 22);
  CHECK(stalled(r, Stall::NotSelected) > 0);
  CHECK(r.counters.issue_active_cycles == 5 * 11);
}

TEST_CASE("a pipe with an interval holds the next instruction back") {
  // ALU interval 2: issues at 0, 2, ..., 18; EXIT one cycle after the last.
  const TimingResult r = HandMadeTrace(repeat(plain(Pipe::Alu, 1), 10), 1).simulate(sm_model());
  CHECK(r.elapsed_cycles == 20);
  CHECK(stalled(r, Stall::MathPipeThrottle) == 9);
}

TEST_CASE("an FMA pipe of two halves takes an FFMA every cycle but an IMAD or packed halves every second") {
  GpuModel gpu = sm_model();
  gpu.pipes[static_cast<std::size_t>(Pipe::FmaHeavy)].interval = 2;
  CHECK(HandMadeTrace(repeat(plain(Pipe::Fma, 1), 10), 1).simulate(gpu).elapsed_cycles == 11);
  CHECK(HandMadeTrace(repeat(plain(Pipe::FmaHeavy, 1), 10), 1).simulate(gpu).elapsed_cycles == 20);
  Instruction packed = plain(Pipe::Fma, 1);
  packed.operation = OperationClass::Hfma;
  CHECK(HandMadeTrace(repeat(packed, 10), 1).simulate(gpu).elapsed_cycles == 20);
}

namespace {

/// An instruction that multiplies and adds: registers in its first and last place, RZ in the others.
Instruction of_registers(Instruction in, int d, int a, int c) {
  in.operand_count = 4;
  in.destination_count = 1;
  for (Operand& operand : in.operands) operand = {.kind = OperandKind::Register, .index = kRegisterZero};
  in.operands[0].index = static_cast<std::uint8_t>(d);
  in.operands[1].index = static_cast<std::uint8_t>(a);
  in.operands[3].index = static_cast<std::uint8_t>(c);
  return in;
}

/// IMAD.HI of register `a` into register `d`.
Instruction wide_product(int d, int a, int stall) {
  Instruction in = plain(Pipe::FmaHeavy, stall);
  in.opcode = in.native = Opcode::IMAD;
  in.modifiers.set(static_cast<std::size_t>(Modifier::HI));
  return of_registers(in, d, a, kRegisterZero);
}

GpuModel model_with_halves() {
  GpuModel gpu = sm_model();
  gpu.pipes[static_cast<std::size_t>(Pipe::FmaHeavy)].interval = 2;
  return gpu;
}

}  // namespace

TEST_CASE("a 64-bit product holds its pipe for two passes and dispatch for three cycles") {
  // Alone: 10 products 4 cycles apart (0, 4, ..., 36), dispatch free at 39, EXIT there, gone at 40.
  CHECK(HandMadeTrace(repeat(wide_product(4, 6, 1), 10), 1).simulate(model_with_halves()).elapsed_cycles == 40);
  // Before two FFMA: one goes to the lite half at 3, one to the heavy half at 4, which takes the next product at 6.
  std::vector<Instruction> code;
  for (int i = 0; i < 10; ++i)
    code.insert(code.end(), {wide_product(4, 6, 1), plain(Pipe::Fma, 1), plain(Pipe::Fma, 1)});
  code.push_back(exit_instruction());
  CHECK(HandMadeTrace(code, 1).simulate(model_with_halves()).elapsed_cycles == 60);
}

TEST_CASE("dispatch held by one warp's product stops the others and their stall counts") {
  // Warps 0 and 4 share a sub-partition; the youngest goes first. Each product holds dispatch for 3 cycles, and what
  // the other warp still has to stall is counted after that.
  const TimingResult alone = HandMadeTrace(repeat(wide_product(4, 6, 8), 10), 1).simulate(model_with_halves());
  const TimingResult two = HandMadeTrace(repeat(wide_product(4, 6, 8), 10), 5).simulate(model_with_halves());
  CHECK(alone.elapsed_cycles == 10 * (8 + 2) + 1);
  CHECK(two.elapsed_cycles > alone.elapsed_cycles + 10);
  CHECK(stalled(two, Stall::DispatchStall) > 0);
}

TEST_CASE("a 64-bit product waits for a factor that is too fresh") {
  // Each multiplies what the last one made: 9 cycles, where the stall count and the second pass say 6 + 2.
  CHECK(HandMadeTrace(repeat(wide_product(4, 4, 6), 10), 1).simulate(model_with_halves()).elapsed_cycles ==
        9 * 9 + 8 + 1);
  CHECK(HandMadeTrace(repeat(wide_product(4, 5, 6), 10), 1).simulate(model_with_halves()).elapsed_cycles ==
        9 * 8 + 8 + 1);
  // A result of another pipe, 5 cycles before: 2 cycles more.
  Instruction add = plain(Pipe::Fma, 5);
  add.operand_count = 2;
  add.destination_count = 1;
  for (std::size_t i = 0; i < 2; ++i) add.operands[i] = {.kind = OperandKind::Register, .index = 8};
  CHECK(
      HandMadeTrace({add, wide_product(4, 8, 1), exit_instruction()}, 1).simulate(model_with_halves()).elapsed_cycles ==
      11);
  CHECK(
      HandMadeTrace({add, wide_product(4, 6, 1), exit_instruction()}, 1).simulate(model_with_halves()).elapsed_cycles ==
      9);
}

TEST_CASE("a taken branch costs the time to resolve it") {
  std::vector<Instruction> code = repeat(plain(Pipe::Fma, 1), 3);
  code[1].opcode = Opcode::BRA;
  code[1].pipe = Pipe::Cbu;
  // 0, BRA at 1, back to 0 at 9, BRA at 10, falls through to 2 at 11, EXIT at 12.
  const TimingResult r = HandMadeTrace(code, 1).runs({{0, 2}, {0, 4}}).simulate(sm_model());
  CHECK(r.elapsed_cycles == 13);
  CHECK(stalled(r, Stall::BranchResolving) == 7);
  // Of that its own stall count is no wait for the branch.
  code[1] = plain(Pipe::Cbu, 5);
  code[1].opcode = Opcode::BRA;
  const TimingResult counted = HandMadeTrace(code, 1).runs({{0, 2}, {0, 4}}).simulate(sm_model());
  CHECK(stalled(counted, Stall::Wait) == 4 + 4);  // taken and not
  CHECK(stalled(counted, Stall::BranchResolving) == 3);
}

TEST_CASE("special functions queue behind their pipe and release a scoreboard") {
  Instruction mufu = special_function(0);
  // Issue at 0, result at 18.
  const TimingResult r =
      HandMadeTrace({mufu, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 1).simulate(sm_model());
  CHECK(r.elapsed_cycles == 20);
  CHECK(stalled(r, Stall::ShortScoreboard) == 17);
  // Two in a row: the second starts 8 cycles after the first, and right behind it.
  const TimingResult two =
      HandMadeTrace({mufu, mufu, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 1).simulate(sm_model());
  CHECK(two.elapsed_cycles == 28 + 3);
  // A cycle later than the pipe is free it follows none; nor does another warp's.
  mufu.control.stall = 9;
  const TimingResult apart =
      HandMadeTrace({mufu, mufu, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 1).simulate(sm_model());
  CHECK(apart.elapsed_cycles == 9 + 20);
  mufu.control.stall = 1;
  const TimingResult of_two =
      HandMadeTrace({mufu, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 8).simulate(sm_model());
  CHECK(of_two.elapsed_cycles == 8 + 20);
}

TEST_CASE("a special function's sources are free some time after its pipe could take the next") {
  const std::vector<Instruction> code{special_function(kNoScoreboard, 1), waiting(plain(Pipe::Fma, 1), 1),
                                      exit_instruction()};
  CHECK(HandMadeTrace(code, 1).simulate(sm_model()).elapsed_cycles == 8 + 5 + 2);
}

TEST_CASE("shared memory: latency, wavefronts and their order") {
  const Instruction load = memory_instruction(Opcode::LDS, MemorySpace::Shared, MemoryKind::Load, 0);
  const std::vector<Instruction> code{load, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()};
  const TimingResult clean = HandMadeTrace(code, 1).access(0, 0, 4, MemorySpace::Shared).simulate(sm_model());
  CHECK(clean.elapsed_cycles == 25);  // dependent issue at 23
  CHECK(clean.counters.shared_wavefronts == 1);
  // Stride 8 bytes: two lanes a bank, one more wavefront, two cycles of latency.
  const TimingResult conflict = HandMadeTrace(code, 1).access(0, 0, 8, MemorySpace::Shared).simulate(sm_model());
  CHECK(conflict.elapsed_cycles == 27);
  CHECK(conflict.counters.shared_wavefronts == 2);
}

TEST_CASE("lines of one tag bank are looked up one after the other") {
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  // The second load hits; its 32 lines lie in 32 data banks, so tags alone tell.
  const std::vector<Instruction> code{load, waiting(load, 0), waiting(plain(Pipe::Fma, 1), 0), exit_instruction()};
  const auto cycles = [&](std::vector<int> masks) {
    GpuModel m = sm_model();
    m.l1.tag_bank_masks = std::move(masks);
    HandMadeTrace trace(code, 1);
    for (int i = 0; i < 2; ++i) trace.access(0, 0, 132, MemorySpace::Global);
    return trace.simulate(m).elapsed_cycles;
  };
  const Cycle any = cycles({}), spread = cycles({128, 256}), one = cycles({1 << 20, 1 << 21});
  CHECK(spread == any);
  CHECK(one >= any + 24);
}

TEST_CASE("a full memory queue throttles") {
  // The address unit takes one instruction in 4 cycles; 4 wait, so the 6th is refused.
  const Instruction store = memory_instruction(Opcode::STS, MemorySpace::Shared, MemoryKind::Store);
  HandMadeTrace trace(repeat(store, 10), 1);
  for (int i = 0; i < 10; ++i) trace.access(0, 0, 4, MemorySpace::Shared, MemoryKind::Store);
  const TimingResult r = trace.simulate(sm_model());
  CHECK(stalled(r, Stall::MioThrottle) > 0);
  CHECK(r.counters.shared_wavefronts == 10);
}

TEST_CASE("a warp that the full queue has refused does not go before others") {
  // Two warps a sub-partition, each sends 12 instructions of 32 wavefronts; then all meet.
  const Instruction store = memory_instruction(Opcode::STS, MemorySpace::Shared, MemoryKind::Store);
  Instruction barrier = plain(Pipe::Adu, 1);
  barrier.opcode = Opcode::BAR;
  std::vector<Instruction> code = repeat(store, 12);
  code.insert(code.end() - 1, barrier);
  HandMadeTrace trace(code, 8);
  for (int warp = 0; warp < 8; ++warp)
    for (int i = 0; i < 12; ++i) trace.access(warp, 0, 128, MemorySpace::Shared, MemoryKind::Store);
  const TimingResult r = trace.simulate(sm_model());
  CHECK(r.elapsed_cycles > 11 * 8 * 32);
  // Each waits for a round at most, 8 * 32. One after the other, four would wait for half of the time: 6 * 8 * 32 each.
  CHECK(stalled(r, Stall::Barrier) < 4 * 3 * 8 * 32);
  // Of a sub-partition's 24 all but those that the queue holds wait for a place; each that comes free the other one
  // sees.
  CHECK(stalled(r, Stall::NotSelected) >= 4 * (24 - 8));
  CHECK(stalled(r, Stall::NotSelected) <= 4 * 24);
}

TEST_CASE("a queue of global accesses alone throttles as theirs, one that others are in does not") {
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  HandMadeTrace loads(repeat(load, 10), 1);
  for (int i = 0; i < 10; ++i) loads.access(0, 1 << 20, 4, MemorySpace::Global);
  const TimingResult alone = loads.simulate(sm_model());
  CHECK(stalled(alone, Stall::LgThrottle) > 0);
  CHECK(stalled(alone, Stall::MioThrottle) == 0);

  const Instruction store = memory_instruction(Opcode::STS, MemorySpace::Shared, MemoryKind::Store);
  std::vector<Instruction> code = repeat(store, 5);
  code.back() = load;
  code.insert(code.begin(), 4, store);
  code.push_back(exit_instruction());
  HandMadeTrace mixed(code, 1);
  for (int i = 0; i < 9; ++i) mixed.access(0, 0, 4, MemorySpace::Shared, MemoryKind::Store);
  mixed.access(0, 1 << 20, 4, MemorySpace::Global);
  const TimingResult behind = mixed.simulate(sm_model());
  CHECK(stalled(behind, Stall::MioThrottle) > 0);
  CHECK(stalled(behind, Stall::LgThrottle) == 0);
}

TEST_CASE("a global load: a miss takes the memory system's time, the next load of the line hits") {
  const GpuModel gpu = sm_model();
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  const Instruction use = waiting(plain(Pipe::Fma, 1), 0);
  const std::vector<Instruction> code{load, use, load, use, exit_instruction()};
  HandMadeTrace trace(code, 1);
  trace.access(0, 1 << 20, 4, MemorySpace::Global).access(0, 1 << 20, 4, MemorySpace::Global);
  const TimingResult r = trace.simulate(gpu);
  MemorySystem memory(gpu);
  MemoryRequest request;
  request.line = (1 << 20) / kLineBytes;
  request.sectors = 0xf;
  const Cycle below = latency_of(memory, request, 4);
  // Miss: L1's own 33 plus what lies below; then one issue, then the hit.
  CHECK(r.elapsed_cycles == below + 33 + 1 + 33 + 1 + 1);
  CHECK(r.counters.l1_load_sectors == 8);
  CHECK(r.counters.l1_load_hit_sectors == 4);
  CHECK(r.counters.memory.read_sectors == 4);
  CHECK(stalled(r, Stall::LongScoreboard) == below + 32 + 32);
}

TEST_CASE("a full counter holds a warp's next load until data has come") {
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  HandMadeTrace trace({load, load, load, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 1);
  for (int i = 0; i < 3; ++i) trace.access(0, 1 << 20, 4, MemorySpace::Global);
  GpuModel gpu = sm_model();
  MemorySystem memory(gpu);
  MemoryRequest request;
  request.line = (1 << 20) / kLineBytes;
  request.sectors = 0xf;
  const Cycle miss = latency_of(memory, request, 4) + 33;
  const TimingResult free = trace.simulate(gpu);
  gpu.issue.scoreboard_limit = 2;
  const TimingResult held = trace.simulate(gpu);
  // The third goes when the first has its data, and finds its line.
  CHECK(held.elapsed_cycles == miss + 33 + 2);
  CHECK(stalled(held, Stall::Misc) == miss - 2);
  CHECK(free.elapsed_cycles < held.elapsed_cycles);
  CHECK(stalled(free, Stall::Misc) == 0);
}

TEST_CASE("a warp leaves when data that nothing has waited for is there") {
  const GpuModel gpu = sm_model();
  HandMadeTrace trace({memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0), exit_instruction()},
                      1);
  trace.access(0, 1 << 20, 4, MemorySpace::Global);
  MemorySystem memory(gpu);
  MemoryRequest request;
  request.line = (1 << 20) / kLineBytes;
  request.sectors = 0xf;
  const Cycle below = latency_of(memory, request, 4);
  const TimingResult r = trace.simulate(gpu);
  CHECK(r.elapsed_cycles >= below);
  CHECK(r.elapsed_cycles <= below + 33 + 1);
}

TEST_CASE("each block that an SM holds has local memory of its own") {
  const Instruction load = memory_instruction(Opcode::LDL, MemorySpace::Local, MemoryKind::Load, 0);
  for (const std::uint32_t local_bytes : {0u, 4u}) {
    HandMadeTrace made({load, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 1, 8);
    made.access(0, 1 << 20, 4, MemorySpace::Local);
    made.occupancy().blocks_per_sm = 4;
    made.kernel().local_bytes = local_bytes;
    const TimingResult r = made.simulate(sm_model(2));
    CHECK(r.counters.memory.dram_read_bytes == (local_bytes == 0 ? 1u : 8u) * kLineBytes);
  }
}

TEST_CASE("warps that miss the same line share one request") {
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  HandMadeTrace trace({load, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 4);
  for (int w = 0; w < 4; ++w) trace.access(w, 4096, 4, MemorySpace::Global);
  const TimingResult r = trace.simulate(sm_model());
  CHECK(r.counters.memory.read_sectors == 4);
  CHECK(r.counters.memory.dram_read_bytes == 128);
  CHECK(r.counters.l1_load_sectors == 16);
  CHECK(r.counters.l1_load_hit_sectors == 0);  // a tag that waits for its data is a miss
}

TEST_CASE("a warp that walks down a column sends a request a lane") {
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  HandMadeTrace trace({load, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 1);
  trace.access(0, 1 << 20, 4096, MemorySpace::Global);
  const TimingResult r = trace.simulate(sm_model());
  CHECK(r.counters.memory.read_requests == 32);
  CHECK(r.counters.memory.read_sectors == 32);
  CHECK(r.counters.l1_tag_lookups == 32);
}

TEST_CASE("a barrier releases all warps after the last arrival") {
  Instruction barrier = plain(Pipe::Adu, 1);
  barrier.opcode = Opcode::BAR;
  std::vector<Instruction> code{barrier, plain(Pipe::Fma, 1), exit_instruction()};
  GpuModel gpu = sm_model();
  gpu.issue.barrier_per_warp_cycles = 0;
  const TimingResult at_once = HandMadeTrace(code, 4).simulate(gpu);
  CHECK(stalled(at_once, Stall::Barrier) > 0);
  // Two cycles a warp: the last of four is taken six cycles after the first.
  gpu.issue.barrier_per_warp_cycles = 2;
  CHECK(HandMadeTrace(code, 4).simulate(gpu).elapsed_cycles == at_once.elapsed_cycles + 6);
}

TEST_CASE("a barrier holds a warp at what leaves its sub-partition's pipes or the straight line, not before") {
  Instruction barrier = plain(Pipe::Adu, 1);
  barrier.opcode = Opcode::BAR;
  Instruction region = plain(Pipe::Cbu, 1);
  region.opcode = Opcode::BSSY;
  Instruction uniform = plain(Pipe::Uniform, 1);
  uniform.opcode = Opcode::UIADD3;
  Instruction move = uniform;
  move.opcode = Opcode::UMOV;
  const auto elapsed = [&](std::vector<Instruction> behind) {
    behind.insert(behind.begin(), barrier);
    behind.push_back(exit_instruction());
    GpuModel gpu = sm_model();
    gpu.issue.barrier_release_cycles = 14;
    return HandMadeTrace(behind, 4).simulate(gpu).elapsed_cycles;
  };
  const auto work = repeat(plain(Pipe::Fma, 1), 8);
  const std::uint64_t hidden = elapsed(work);
  const auto with = [&](const Instruction& first) {
    std::vector<Instruction> code{first};
    code.insert(code.end(), work.begin(), work.end());
    return elapsed(code);
  };
  // Up to 13 instructions fit into the 14 cycles that the last to arrive waits, too.
  CHECK(elapsed(repeat(plain(Pipe::Fma, 1), 13)) == hidden);
  CHECK(elapsed(repeat(plain(Pipe::Fma, 1), 16)) == hidden + 3);
  CHECK(with(uniform) == hidden);
  CHECK(with(region) == hidden + 9);
  CHECK(with(move) == hidden + 9);
}

TEST_CASE("an SM reads one index every two cycles, for all its sub-partitions together") {
  const auto elapsed = [](SpecialRegister special, int warps) {
    Instruction read = plain(Pipe::Lsu, 1);
    read.opcode = Opcode::S2R;
    read.operands[1].kind = OperandKind::Special;
    read.operands[1].special = special;
    read.operand_count = 2;
    read.control.write_barrier = 0;
    std::vector<Instruction> code = repeat(read, 20);
    code.back() = waiting(exit_instruction(), 0);
    GpuModel gpu = sm_model();
    gpu.pipes[static_cast<std::size_t>(Pipe::Adu)].interval = 2;
    return HandMadeTrace(code, warps).simulate(gpu).elapsed_cycles;
  };
  const std::uint64_t alone = elapsed(SpecialRegister::CtaIdX, 1);
  CHECK(elapsed(SpecialRegister::CtaIdX, 16) >= alone + 15 * 2 * 19);
  CHECK(elapsed(SpecialRegister::CtaIdX, 16) < alone + 15 * 2 * 19 + 40);
  CHECK(elapsed(SpecialRegister::TidX, 16) < alone + 100);
}

TEST_CASE("warps count for the SM from their slot on, and find the way on before they drain") {
  GpuModel gpu = sm_model();
  gpu.launch.block_start_cycles = 20;
  gpu.launch.warp_start_interval = 2;
  gpu.issue.first_cycles = 9;
  gpu.issue.exit_cycles = 30;
  Instruction last = exit_instruction();
  last.control.stall = 5;
  const TimingResult r = HandMadeTrace({last}, 4).simulate(gpu);
  // Each: 20 cycles until its sub-partition has it, 9 until the EXIT, its issue and 30 less that.
  CHECK(r.counters.warp_cycles == 4 * (20 + 9 + 30));
  CHECK(stalled(r, Stall::NoInstruction) == 4 * 9);
  CHECK(stalled(r, Stall::Wait) == 4 * 5);
  CHECK(stalled(r, Stall::BranchResolving) == 4 * 8);
  CHECK(stalled(r, Stall::Drain) == 4 * (30 - 1 - 5 - 8));
  CHECK(all_stalls(r) == r.counters.warp_cycles - 4 * 20);
}

TEST_CASE("a barrier that some warps never reach is a deadlock with the warps named") {
  Instruction barrier = plain(Pipe::Adu, 1);
  barrier.opcode = Opcode::BAR;
  HandMadeTrace trace({barrier, exit_instruction()}, 1);
  trace.arrive(0, {0, 64, true});
  CHECK_THROWS_WITH(trace.simulate(sm_model()), Catch::Contains("barrier 0"));
}

TEST_CASE("warps meet at the barrier that their registers name, and those whose guard is false do not") {
  Instruction barrier = plain(Pipe::Adu, 1);
  barrier.opcode = Opcode::BAR;
  // Long ways of some warps, so that who waits for whom shows: each waits for those of its own barrier alone.
  const auto elapsed_of_short = [&](const std::vector<BarrierArrival>& arrivals, LaneMask lanes) {
    std::vector<Instruction> code = repeat(plain(Pipe::Fma, 4), 40);
    code.insert(code.end() - 1, barrier);
    HandMadeTrace trace(code, 4);
    trace.trace().classes[0].paths.push_back({{{40, 2}}, 2});  // no way at all
    for (int warp = 0; warp < 4; ++warp) {
      trace.trace().classes[0].warps[static_cast<std::size_t>(warp)].path = warp < 2 ? 1u : 0u;
      trace.arrive(warp, arrivals[static_cast<std::size_t>(warp)], warp < 2 ? lanes : ~LaneMask{0});
    }
    return stalled(trace.simulate(sm_model()), Stall::Barrier);
  };
  const BarrierArrival all{0, 0, true}, ones{1, 64, true}, twos{2, 64, true};
  const std::uint64_t together = elapsed_of_short({all, all, all, all}, ~LaneMask{0});
  CHECK(together > 2 * 40);
  CHECK(elapsed_of_short({ones, ones, twos, twos}, ~LaneMask{0}) < together - 2 * 100);
  // Arrivals of parts of a warp wait for nobody.
  CHECK(elapsed_of_short({{}, {}, twos, twos}, 0) < together - 2 * 100);
}

TEST_CASE("the first touch of a constant line is a miss of the constant cache") {
  Instruction in = plain(Pipe::Fma, 1);
  in.operand_count = 1;
  in.operands[0].kind = OperandKind::Constant;
  const TimingResult r = HandMadeTrace(repeat(in, 3), 1).simulate(sm_model());
  CHECK(stalled(r, Stall::ImcMiss) == 100);
  CHECK(r.elapsed_cycles == 104);
}

TEST_CASE("instructions that are not in the caches cost fetch time") {
  GpuModel gpu = sm_model();
  gpu.icache.l1_hit_cycles = 10;
  gpu.icache.l2_hit_cycles = 20;
  gpu.icache.memory_cycles = 100;
  gpu.icache.launch_bytes = 0;
  const TimingResult r = HandMadeTrace(repeat(plain(Pipe::Fma, 1), 20), 1).simulate(gpu);  // three lines of code
  CHECK(r.counters.icache_l2_misses == 3);
  CHECK(stalled(r, Stall::NoInstruction) >= 3 * 128);
  gpu.icache.prefetch_lines = 4;
  const TimingResult ahead = HandMadeTrace(repeat(plain(Pipe::Fma, 1), 20), 1).simulate(gpu);
  CHECK(ahead.elapsed_cycles < r.elapsed_cycles - 200);
}

TEST_CASE("code that the launch has brought along costs no way to memory, but an SM's first fetch its start") {
  GpuModel gpu = sm_model();
  gpu.icache.l1_hit_cycles = 10;
  gpu.icache.l2_hit_cycles = 20;
  gpu.icache.memory_cycles = 100;
  gpu.icache.first_cycles = 50;
  gpu.icache.launch_bytes = 1 << 16;
  const TimingResult r = HandMadeTrace(repeat(plain(Pipe::Fma, 1), 5), 1).simulate(gpu);  // one line of code
  CHECK(stalled(r, Stall::NoInstruction) == 80);
}

TEST_CASE("an instruction cache loses only the sets that overflow") {
  InstructionCacheLevel cache(24, 16, 8);  // two sets of eight ways
  for (std::uint32_t line = 0; line < 16; ++line) cache.insert(line, 0);
  cache.insert(16, 5);
  CHECK_FALSE(cache.holds(0));
  CHECK(cache.seen(0));
  CHECK(cache.holds(1));
  CHECK(cache.arrival(16) == 5);
  cache.touch(2);
  cache.insert(18, 6);
  CHECK(cache.holds(2));
  CHECK_FALSE(cache.holds(4));
  cache.drop(18);
  CHECK_FALSE(cache.holds(18));
  cache.insert(20, 7);
  CHECK(cache.holds(6));
}

TEST_CASE("register-file ports: three operands of one bank hold the dispatcher") {
  const GpuModel gpu = model_with_ports();
  Instruction in = plain(Pipe::Fma, 1);
  in.operand_count = 4;
  in.destination_count = 1;
  for (std::size_t i = 0; i < 4; ++i) {
    in.operands[i].kind = OperandKind::Register;
    in.operands[i].index = static_cast<std::uint8_t>(2 * i + 2);
  }
  const TimingResult conflict = HandMadeTrace(repeat(in, 30), 1).simulate(gpu);
  CHECK(stalled(conflict, Stall::DispatchStall) > 0);
  CHECK(conflict.elapsed_cycles >= 3 * 29);  // one port, three reads an instruction
  for (std::size_t i = 1; i < 4; ++i) in.operands[i].reuse = true;
  const TimingResult reused = HandMadeTrace(repeat(in, 30), 1).simulate(gpu);
  CHECK(reused.elapsed_cycles < 40);
  for (std::size_t i = 1; i < 4; ++i) in.operands[i] = in.operands[1];  // R4 three times is one read
  for (std::size_t i = 1; i < 4; ++i) in.operands[i].reuse = false;
  const TimingResult same = HandMadeTrace(repeat(in, 30), 1).simulate(gpu);
  CHECK(same.elapsed_cycles == 31);
}

TEST_CASE("a register named twice is read once") {
  const GpuModel gpu = model_with_ports();
  Instruction square = plain(Pipe::Fma, 1);
  square.operand_count = 4;
  square.destination_count = 1;
  for (Operand& operand : square.operands) operand = {.kind = OperandKind::Register, .index = 6};
  CHECK(HandMadeTrace(repeat(square, 30), 1).simulate(gpu).elapsed_cycles == 31);
}

TEST_CASE("what one bank's port had free before serves two reads of it, for three instructions") {
  // kernels/micro operands, with registers put into the code by hand: of one pair of reads from the even bank and one
  // from the odd bank, amid FFMAs that read one of each, the first costs a cycle, the second is free up to 3
  // instructions on.
  const GpuModel gpu = model_with_ports();
  const auto fused = [](int a, int c) { return of_registers(plain(Pipe::Fma, 1), kRegisterZero, a, c); };
  const auto elapsed = [&](std::size_t gap) {
    std::vector<Instruction> code(10, fused(2, 3));
    code.push_back(fused(4, 6));
    code.insert(code.end(), gap, fused(2, 3));
    code.push_back(fused(5, 7));
    code.insert(code.end(), 10, fused(2, 3));
    return HandMadeTrace(code, 1).simulate(gpu).elapsed_cycles;
  };
  const std::uint64_t adjacent = elapsed(0);
  CHECK(elapsed(2) == adjacent + 2);
  CHECK(elapsed(3) == adjacent + 3 + 1);
  CHECK(HandMadeTrace(repeat(fused(4, 6), 22), 1).simulate(gpu).elapsed_cycles >= adjacent + 19);
}

TEST_CASE("an operand waits until the latch of its place and bank is free") {
  // Cycles that such FFMAs cost more than their number on the card, registers put into the code by hand: 'eo' reads an
  // even register in its first place and an odd one in its last, '--' none.
  const GpuModel gpu = model_with_ports();
  const auto cost = [&](std::string_view words) {
    const std::string text = std::string(words) + " eo eo eo eo";
    std::vector<Instruction> code;
    for (std::size_t i = 0; i < text.size(); i += 3) {
      const auto number = static_cast<int>(2 * (i / 3 % 20) + 2);  // another register each time
      const auto source = [&](char bank) { return bank == '-' ? kRegisterZero : number + (bank == 'o' ? 1 : 0); };
      Instruction in = of_registers(plain(Pipe::Fma, 1), kRegisterZero, source(text[i]), source(text[i + 1]));
      if (text[i] == text[i + 1] && text[i] != '-')
        in.operands[3].index = static_cast<std::uint8_t>(source(text[i]) + 40);
      code.push_back(in);
    }
    return HandMadeTrace(code, 1).simulate(gpu).elapsed_cycles - code.size();
  };
  const std::string same = "eo eo eo eo eo eo eo eo", turns = "eo oe eo oe eo oe eo oe";
  CHECK(cost(same + " oo") == 1);                    // its latches leave each instruction one cycle to read in
  CHECK(cost(turns + " oo") == 0);                   // here each is free two cycles before: reads are ahead
  CHECK(cost(turns + " oo " + turns + " oo") == 1);  // until they had to wait once
  CHECK(cost(turns + " -- oo " + turns + " -- oo") == 0);
  CHECK(cost(same + " -- eo eo oo") == 0);
  CHECK(cost(same + " -- eo eo eo oo") == 1);
  CHECK(cost(same + " -- -- oo oo") == 1);
  CHECK(cost(same + " -- -- -- -- oo oo oo oo") == 3);
  CHECK(cost(same + " ee ee oo oo ee ee") == 4);
}

TEST_CASE("stall counts stand still while operands of one bank hold dispatch") {
  // Four warps of one sub-partition, each with a chain of 4-cycle instructions of two reads from one bank: dispatch
  // takes 2 cycles for each, and all four still share it evenly, 8 cycles a round (kernels/micro order: order_chain).
  const GpuModel gpu = model_with_ports();
  Instruction in = plain(Pipe::Fma, 4);
  in.operand_count = 3;
  in.destination_count = 1;
  for (std::size_t i = 0; i < 3; ++i)
    in.operands[i] = {.kind = OperandKind::Register, .index = static_cast<std::uint8_t>(2 * i + 2)};
  const std::uint64_t elapsed = HandMadeTrace(repeat(in, 50), 16).simulate(gpu).elapsed_cycles;
  CHECK(elapsed >= 8 * 50);
  CHECK(elapsed <= 8 * 50 + 12);
}

TEST_CASE("older blocks issue first, the warps of a block in turn") {
  // Every instruction can issue at once, so one warp could fill a sub-partition; a long stall after each eighth lets
  // others in.
  std::vector<Instruction> code;
  for (int i = 0; i < 400; ++i) code.push_back(plain(Pipe::Fma, i % 8 == 7 ? 20 : 1));
  code.push_back(exit_instruction());
  const auto mean_stay = [&](int warps, std::uint32_t blocks, int resident) {
    HandMadeTrace trace(code, warps, blocks);
    trace.occupancy().blocks_per_sm = resident;
    const TimingResult r = trace.simulate(sm_model());
    return static_cast<double>(r.counters.warp_cycles) / warps / blocks / static_cast<double>(r.elapsed_cycles);
  };
  CHECK(mean_stay(32, 1, 1) > 0.93);  // eight warps a sub-partition end together
  CHECK(mean_stay(4, 8, 8) < 0.75);   // eight blocks end one after another
}

TEST_CASE("upon a taken branch the turn goes to the warp that took one last before") {
  // Ten instructions, the last of them BRA, twice; one that stalls for 15 cycles; ten again, twice; EXIT. One warp of
  // each of three blocks a sub-partition: A 0 to 9, B 10 to 19, A to its stall at 30, B to its own at 41, C 42 to 51. B
  // stalls until 56, so A goes on at 52, and upon its BRA at 61 it is C's turn, which took the one before, not the
  // older B's, which is ready. C to its stall at 72, A to its end at 83, B 84 to 93, C to 103, B to its end at 114, C
  // to 125.
  std::vector<Instruction> code(21, plain(Pipe::Fma, 1));
  code[9].opcode = code[20].opcode = Opcode::BRA;
  code[9].pipe = code[20].pipe = Pipe::Cbu;
  code[10].control.stall = 15;
  code.push_back(exit_instruction());
  HandMadeTrace trace(code, 4, 3);
  trace.occupancy().blocks_per_sm = 3;
  CHECK(trace.runs({{0, 10}, {0, 21}, {11, 11}}).simulate(sm_model()).elapsed_cycles == 126);
}

TEST_CASE("turns upon branches, warp by warp") {
  BranchTurns turns;
  turns.branch(3);
  CHECK(turns.next() == BranchTurns::kNobody);  // nobody took one before
  turns.branch(5);
  CHECK(turns.next() == 3);
  turns.branch(5);  // its own branches do not count
  CHECK(turns.next() == 3);
  turns.issue();
  CHECK(turns.next() == BranchTurns::kNobody);
  turns.branch(3);
  CHECK(turns.next() == 5);
  turns.leave(5);
  CHECK(turns.next() == BranchTurns::kNobody);
  turns.branch(7);
  turns.leave(7);
  turns.branch(2);
  CHECK(turns.next() == 3);
}

TEST_CASE("blocks start wherever there is room when warps leave unevenly") {
  // The first of each pair leaves at once, so that its sub-partition stays the emptiest and the next one fills up.
  HandMadeTrace trace(repeat(plain(Pipe::Alu, 4), 400), 2, 600);
  BlockClass& cls = trace.trace().classes[0];
  cls.paths.push_back({{{400, 1}}, 1});
  cls.warps[0].path = 1;
  trace.occupancy().blocks_per_sm = 32;
  GpuModel gpu = sm_model();
  gpu.launch.blocks_per_cycle_x16 = 1;
  CHECK(trace.simulate(gpu).counters.instructions_issued == 600 * (401 + 1));
}

TEST_CASE("the first warps of blocks go to sub-partitions in turn") {
  // Of every block the first warp works, the others leave at once: eight blocks' first warps keep all four busy.
  const auto elapsed = [](int warps) {
    HandMadeTrace trace(repeat(plain(Pipe::Alu, 1), 400), warps, 8);
    BlockClass& cls = trace.trace().classes[0];
    cls.paths.push_back({{{400, 1}}, 1});
    for (std::size_t w = 1; w < cls.warps.size(); ++w) cls.warps[w].path = 1;
    trace.occupancy().blocks_per_sm = 8;
    return trace.simulate(sm_model()).elapsed_cycles;
  };
  const std::uint64_t one = elapsed(1);
  for (const int warps : {3, 4, 5, 8}) CHECK(elapsed(warps) < one + one / 10);
  for (const int warps : {2, 6}) CHECK(elapsed(warps) > 2 * one - one / 10);  // two of the four
}

TEST_CASE("a fence waits for the warp's stores") {
  Instruction fence = plain(Pipe::Lsu, 1);
  fence.opcode = Opcode::MEMBAR;
  HandMadeTrace trace({memory_instruction(Opcode::STG, MemorySpace::Global, MemoryKind::Store), fence,
                       plain(Pipe::Fma, 1), exit_instruction()},
                      1);
  trace.access(0, 4096, 4, MemorySpace::Global, MemoryKind::Store);
  const TimingResult r = trace.simulate(sm_model());
  CHECK(stalled(r, Stall::Membar) > 100);
  CHECK(r.counters.memory.write_sectors == 4);
}

TEST_CASE("blocks of one warp spread over the sub-partitions") {
  HandMadeTrace trace(repeat(plain(Pipe::Fma, 1), 20), 1, 32);
  trace.occupancy().blocks_per_sm = 32;
  GpuModel gpu = sm_model();
  gpu.launch.blocks_per_cycle_x16 = 256;
  const TimingResult r = trace.simulate(gpu);
  CHECK(r.counters.instructions_issued == 32 * 21);
  CHECK(r.elapsed_cycles < 32 * 21 / 2);  // four issue slots, not one
}

namespace {

Instruction copy(bool past_l1) {
  Instruction in = memory_instruction(Opcode::LDGSTS, MemorySpace::Global, MemoryKind::AsyncCopy);
  if (past_l1) in.modifiers.set(static_cast<std::size_t>(Modifier::BYPASS));
  return in;
}

Instruction commit(int scoreboard) {
  Instruction in = plain(Pipe::Lsu, 1);
  in.opcode = Opcode::LDGDEPBAR;
  in.control.write_barrier = static_cast<std::uint8_t>(scoreboard);
  in.control.read_barrier = kNoScoreboard;
  return in;
}

/// DEPBAR.LE SBn, limit
Instruction wait_until(int scoreboard, unsigned limit) {
  Instruction in = plain(Pipe::None, 1);
  in.opcode = Opcode::DEPBAR;
  in.operand_count = 2;
  in.operands[0] = {.kind = OperandKind::Scoreboard, .index = static_cast<std::uint8_t>(scoreboard)};
  in.operands[1] = {.kind = OperandKind::Immediate, .immediate = limit};
  return in;
}

/// So many copies of a line each into words `stride` bytes apart, in groups of their own, and a wait for all but
/// `left`.
TimingResult copied(GpuModel gpu, int copies, unsigned left, bool past_l1, int stride = 4, int release = 27) {
  gpu.latency.copy_release = release;
  std::vector<Instruction> code;
  for (int i = 0; i < copies; ++i) code.insert(code.end(), {copy(past_l1), commit(0)});
  code.insert(code.end(), {wait_until(0, left), exit_instruction()});
  HandMadeTrace made(code, 1);
  for (int i = 0; i < copies; ++i) {
    made.access(0, 65536 + static_cast<std::uint64_t>(i) * 128, 4, MemorySpace::Global, MemoryKind::AsyncCopy);
    made.access(0, static_cast<std::uint64_t>(i) * 128, stride, MemorySpace::Shared, MemoryKind::AsyncCopy);
  }
  return made.simulate(gpu);
}

}  // namespace

TEST_CASE("a copy of 60 lines reads 240 sectors and writes shared memory alone") {
  for (const bool past_l1 : {false, true}) {
    const TimingResult r = copied(sm_model(), 60, 0, past_l1);
    CHECK(r.counters.memory.read_sectors == 240);
    CHECK(r.counters.memory.write_sectors == 0);
    CHECK(r.counters.l1_store_sectors == 0);
    CHECK(r.counters.shared_wavefronts == 60);
    // By way of L1 data pass the banks once more.
    CHECK(r.counters.l1_data_wavefronts == (past_l1 ? 0 : 60));
    CHECK(all_stalls(r) == r.counters.warp_cycles);
  }
}

TEST_CASE("a group of copies ends when its data are in shared memory and its scoreboard counts down") {
  // A load's register is there 33 - 4 cycles after its data. The group takes a pass of the banks to be read by way of
  // L1, one to be written, and 27 cycles until the scoreboard counts: the same.
  const std::vector<Instruction> code{memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0),
                                      plain(Pipe::Fma, 1), waiting(plain(Pipe::None, 1), 0), exit_instruction()};
  const Cycle load =
      HandMadeTrace(code, 1).access(0, 65536, 4, MemorySpace::Global).simulate(sm_model()).elapsed_cycles;
  const TimingResult group = copied(sm_model(), 1, 0, false);
  CHECK(group.elapsed_cycles == load);
  CHECK(stalled(group, Stall::LongScoreboard) > 100);
  CHECK(copied(sm_model(), 1, 0, true).elapsed_cycles == load - 1);
  CHECK(copied(sm_model(), 1, 0, false, 4, 37).elapsed_cycles == load + 10);
  CHECK(copied(sm_model(), 1, 0, false, 128).elapsed_cycles == load + 31);  // 32 ways of conflict
}

TEST_CASE("data of copies past L1 hold no bank from loads") {
  // Sixty loads that wait for each other end long after the copy; what it writes comes amid them.
  const auto elapsed = [](bool past_l1, int stride, int fill) {
    GpuModel gpu = sm_model();
    gpu.memory_pipe.fill_wavefront_cycles = fill;
    std::vector<Instruction> code{copy(past_l1), commit(0)};
    for (int i = 0; i < 60; ++i) {
      code.push_back(memory_instruction(Opcode::LDS, MemorySpace::Shared, MemoryKind::Load, 1));
      code.push_back(waiting(plain(Pipe::None, 2), 1));
    }
    code.push_back(exit_instruction());
    HandMadeTrace trace(code, 1);
    trace.access(0, 65536, 4, MemorySpace::Global, MemoryKind::AsyncCopy);
    trace.access(0, 0, stride, MemorySpace::Shared, MemoryKind::AsyncCopy);
    for (int i = 0; i < 60; ++i) trace.access(0, 8192, 4, MemorySpace::Shared);
    return trace.simulate(gpu).elapsed_cycles;
  };
  const Cycle undisturbed = elapsed(true, 4, 0);
  CHECK(elapsed(true, 128, 0) == undisturbed);  // 32 wavefronts
  CHECK(elapsed(true, 128, 1) > undisturbed + 4);
  CHECK(elapsed(true, 128, 1) <= undisturbed + 32);
  CHECK(elapsed(false, 128, 0) > undisturbed + 4);  // through L1 they pass like a store
  // The group ends when the last wavefront is written, at rest whatever it holds.
  const Cycle one = copied(sm_model(), 1, 0, true).elapsed_cycles;
  CHECK(copied(sm_model(), 1, 0, true, 128).elapsed_cycles == one + 31);
}

TEST_CASE("a wait for all but some groups ends with the last of the others") {
  // EXIT waits for the rest: what DEPBAR waits for shows in the stalls.
  const auto waited = [](int groups, unsigned left) {
    return stalled(copied(sm_model(), groups, left, true), Stall::LongScoreboard);
  };
  CHECK(waited(4, 4) == 0);
  CHECK(waited(4, 3) > 0);
  CHECK(waited(4, 3) < waited(1, 0));  // the first group, some issues later
  CHECK(waited(4, 3) < waited(4, 2));
  CHECK(waited(4, 1) < waited(4, 0));
}

TEST_CASE("groups of copies end in order") {
  CopyGroups groups(2, true, 10);
  std::vector<std::pair<int, Cycle>> ended;
  const auto done = [&](std::uint8_t group, Cycle at) {
    groups.done(1, group, at, [&](std::uint8_t scoreboard, Cycle when) { ended.push_back({scoreboard, when}); });
  };
  groups.start(1);
  const std::uint8_t a = groups.begin(1), a_too = groups.begin(1), a_end = groups.begin(1);
  groups.commit(1, 0);
  const std::uint8_t b = groups.begin(1), b_end = groups.begin(1);
  groups.commit(1, 3);
  CHECK(a == a_too);
  CHECK(a != b);
  done(a_end, 5);
  done(b, 20);
  done(b_end, 21);
  done(a, 100);
  CHECK(ended.empty());  // the second group waits for the first
  CHECK_FALSE(groups.idle(1));
  done(a, 40);
  CHECK(ended == std::vector<std::pair<int, Cycle>>{{0, 110}, {3, 110}});
  CHECK(groups.idle(1));
  done(groups.begin(1), 7);  // never committed: nothing counts
  CHECK(ended.size() == 2);
}

TEST_CASE("every group of a warp that never waits ends") {
  CopyGroups groups(1, true, 10);
  constexpr std::uint32_t kMany = 3 * CopyGroups::kMostGroups;
  std::uint32_t ended = 0;
  const auto done = [&](std::uint8_t group, Cycle at) {
    groups.done(0, group, at, [&](std::uint8_t, Cycle) { ++ended; });
  };
  groups.start(0);
  std::vector<std::uint8_t> copies;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    for (int part = 0; part < 2; ++part) copies.push_back(groups.begin(0));
    groups.commit(0, 0);
  }
  for (const std::uint8_t group : copies) done(group, 100);
  CHECK(groups.idle(0));
  CHECK(ended == kMany);
  const std::uint8_t next = groups.begin(0);
  groups.commit(0, 0);
  done(next, 200);
  CHECK(ended == kMany + 1);
}

TEST_CASE("a scoreboard's way down to a number above zero") {
  ReleaseTimes times(2, 1u << 2);
  CHECK(times.watches(2));
  CHECK_FALSE(times.watches(0));
  for (const Cycle at : {50u, 30u, 40u}) times.add(1, 2, at);
  CHECK(times.reaches(1, 2, 3, 0, 10) == 10);
  CHECK(times.reaches(1, 2, 2, 0, 10) == 30);
  CHECK(times.reaches(1, 2, 1, 0, 10) == 40);
  CHECK(times.reaches(1, 2, 0, 0, 10) == 50);
  CHECK(times.reaches(1, 2, 2, 1, 10) == 40);      // another whose end is not known
  CHECK(times.reaches(1, 2, 1, 2, 10) == kNever);  // more than the limit are not known
  CHECK(times.reaches(1, 2, 1, 0, 35) == 40);
  CHECK(times.reaches(1, 2, 2, 0, 35) == 35);
  CHECK(times.reaches(0, 2, 1, 0, 35) == 35);
}

TEST_CASE("a barrier for a number of threads opens for them, whoever else ends") {
  Instruction barrier = plain(Pipe::Adu, 1);
  barrier.opcode = Opcode::BAR;
  barrier.operand_count = 2;
  barrier.operands[0] = {.kind = OperandKind::Immediate, .immediate = 1};
  barrier.operands[1] = {.kind = OperandKind::Immediate, .immediate = 64};
  // A third warp that ends at once leaves two; the barrier is for two in any case.
  HandMadeTrace two({barrier, plain(Pipe::Cbu, 1), exit_instruction()}, 2);
  HandMadeTrace three({barrier, plain(Pipe::Cbu, 1), exit_instruction()}, 3);
  BlockClass& cls = three.trace().classes[0];
  cls.paths.push_back({{{2, 1}}, 1});
  cls.warps[2].path = 1;
  const Cycle together = two.simulate(sm_model()).elapsed_cycles;
  CHECK(three.simulate(sm_model()).elapsed_cycles == together);
  // Held up by the first of two until long after the third has ended: it does not open for one that waits alone.
  HandMadeTrace late({plain(Pipe::Fma, 15), barrier, plain(Pipe::Cbu, 1), exit_instruction()}, 3);
  BlockClass& slow = late.trace().classes[0];
  slow.paths = {{{{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 4}}, 8}, {{{1, 3}}, 3}, {{{3, 1}}, 1}};
  slow.warps[1].path = 1;
  slow.warps[2].path = 2;
  const TimingResult r = late.simulate(sm_model());
  CHECK(stalled(r, Stall::Barrier) > 4 * 15);
  CHECK(r.elapsed_cycles > 5 * 15);
}

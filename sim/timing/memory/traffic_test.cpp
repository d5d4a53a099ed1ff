// What is counted between L1, L2 and DRAM: stores put together, lines that stores take, sectors of launches that are
// extrapolated, code read from memory.
#include <catch2/catch.hpp>

#include "timing/skip/scaled_counters.h"
#include "timing/sm/sm_test_support.h"

using namespace forewarp;

namespace {

const Instruction kStore = memory_instruction(Opcode::STG, MemorySpace::Global, MemoryKind::Store);

/// A warp that stores to as many words of the same sectors, so many cycles apart, in `lines` lines at once.
TimingResult store_words(int store_bank_lines, int apart, int stores, int lines = 1) {
  GpuModel gpu = sm_model();
  gpu.l1.store_bank_lines = store_bank_lines;
  gpu.l1.store_wait_cycles = 12;
  std::vector<Instruction> code;
  for (int i = 0; i < stores; ++i) {
    code.push_back(kStore);
    if (apart > 1) code.push_back(plain(Pipe::Fma, apart - 1));
  }
  code.push_back(exit_instruction());
  HandMadeTrace made(code, 1);
  for (int i = 0; i < stores; ++i)
    made.access(0, 4096 + static_cast<std::uint64_t>(i) * 4, lines * 4, MemorySpace::Global, MemoryKind::Store);
  return made.simulate(gpu);
}

}  // namespace

TEST_CASE("stores to a line that has not left yet go to L2 as one") {
  const TimingResult together = store_words(4, 6, 8, 8);  // lane i: word of the i-th sector
  CHECK(together.counters.l1_store_sectors == 8u * 32u);
  CHECK(together.counters.memory.write_sectors == 32);
  CHECK(together.counters.memory.write_requests == 8);
  CHECK(together.counters.memory.dram_read_bytes == 0);  // all eight words of the sectors: nothing to be merged
  CHECK(store_words(4, 80, 8, 8).counters.memory.write_requests == 8 * 8);
  CHECK(store_words(0, 6, 8, 8).counters.memory.write_sectors == 8 * 32);
  CHECK(store_words(1, 6, 8, 8).counters.memory.write_sectors == 8 * 32);  // no room for all lines of a store
}

TEST_CASE("stores wait for further ones to the same lines until none has come for some cycles in all") {
  GpuModel gpu = sm_model();
  gpu.l1.store_bank_lines = 4;
  gpu.l1.store_wait_cycles = 12;
  /// Eight stores a warp, to a word each of one line or of two in turn.
  const auto requests = [&](int warps, int apart, bool in_turn, bool shared = false) {
    std::vector<Instruction> code;
    for (int i = 0; i < 8; ++i) {
      code.push_back(kStore);
      code.push_back(plain(Pipe::Fma, apart));
    }
    code.push_back(exit_instruction());
    HandMadeTrace made(code, warps);
    for (int w = 0; w < warps; ++w)
      for (int i = 0; i < 8; ++i)
        made.access(w,
                    4096u * (shared ? 1u : static_cast<unsigned>(w + 1)) + (in_turn ? 1024u * (i % 2) : 0u) +
                        4u * static_cast<unsigned>(i),
                    0, MemorySpace::Global, MemoryKind::Store);
    return made.simulate(gpu).counters.memory.write_requests;
  };
  CHECK(requests(1, 4, false) == 1);
  CHECK(requests(1, 9, false) == 1);
  CHECK(requests(1, 30, false) == 8);  // nothing comes for so long that it leaves
  CHECK(requests(1, 4, true) == 2);
  CHECK(requests(1, 9, true) == 8);  // those to the other line come between, but keep the way to L1 for a cycle only
  CHECK(requests(4, 4, false) == 4);
  CHECK(requests(4, 4, false, true) == 1);  // whichever warp they are of
}

TEST_CASE("wavefronts of a store come one by one: nothing leaves meanwhile") {
  GpuModel gpu = sm_model();
  gpu.l1.store_bank_lines = 4;
  gpu.l1.store_wait_cycles = 12;
  const auto requests = [&](int wavefront_cycles) {
    gpu.l1.store_wavefront_cycles = wavefront_cycles;
    std::vector<Instruction> code;
    for (int i = 0; i < 8; ++i) {
      code.push_back(kStore);
      code.push_back(plain(Pipe::Fma, 40));
    }
    code.push_back(exit_instruction());
    HandMadeTrace made(code, 1);
    for (unsigned i = 0; i < 8; ++i) made.access(0, 4096 + 4 * i, 32, MemorySpace::Global, MemoryKind::Store);
    return made.simulate(gpu).counters.memory.write_requests;
  };
  CHECK(requests(1) == 8 * 8);
  CHECK(requests(5) == 8);  // of 41 cycles 36 are a store's
}

TEST_CASE("lines written by bytes take two places each of those for stores that wait") {
  GpuModel gpu = sm_model();
  gpu.l1.store_wait_cycles = 100;
  gpu.l1.store_partial_lines = 2;
  gpu.l1.tags_per_cycle = 1;
  const auto requests = [&](int places, std::uint8_t bytes) {
    gpu.l1.store_bank_lines = places;
    HandMadeTrace made({kStore, kStore, kStore, kStore, exit_instruction()}, 1);
    for (unsigned i = 0; i < 4; ++i)
      made.access(0, 4096 + bytes * i, 32, MemorySpace::Global, MemoryKind::Store, bytes);
    return made.simulate(gpu).counters.memory.write_requests;
  };
  CHECK(requests(8, 4) == 8);
  CHECK(requests(7, 4) == 4 * 8);
  CHECK(requests(16, 2) == 8);
  CHECK(requests(15, 2) == 4 * 8);
  CHECK(requests(1, 2) == 4 * 8);
}

TEST_CASE("each bank of tags holds so many lines of stores") {
  GpuModel gpu = sm_model();
  gpu.l1.store_wait_cycles = 100;
  /// Two stores to eight lines that follow one another.
  const auto requests = [&](std::vector<int> masks, int bank_lines) {
    gpu.l1.tag_bank_masks = std::move(masks);
    gpu.l1.store_bank_lines = bank_lines;
    HandMadeTrace made({kStore, kStore, exit_instruction()}, 1);
    for (unsigned i = 0; i < 2; ++i) made.access(0, 4096 + 4 * i, 32, MemorySpace::Global, MemoryKind::Store);
    return made.simulate(gpu).counters.memory.write_requests;
  };
  const std::vector<int> four = {128, 256}, all_in_one = {1 << 20, 1 << 21};
  CHECK(requests(four, 2) == 8);
  CHECK(requests(four, 1) == 16);
  CHECK(requests(all_in_one, 8) == 8);
  CHECK(requests(all_in_one, 7) == 16);
}

TEST_CASE("stores that wait for others leave when a fence waits for them") {
  GpuModel gpu = sm_model();
  const auto elapsed = [&](int wait) {
    gpu.l1.store_bank_lines = 4;
    gpu.l1.store_wait_cycles = wait;
    Instruction fence = plain(Pipe::Lsu, 1);
    fence.opcode = Opcode::MEMBAR;
    HandMadeTrace made({kStore, kStore, fence, exit_instruction()}, 1);
    for (int i = 0; i < 2; ++i) made.access(0, 4096, 4, MemorySpace::Global, MemoryKind::Store);
    return made.simulate(gpu).elapsed_cycles;
  };
  CHECK(elapsed(512) == elapsed(12));
}

TEST_CASE("stores of more lines than may wait send the oldest on, and all arrive") {
  const TimingResult r = store_words(1, 1, 6, 8);
  CHECK(r.counters.l1_store_sectors == 6u * 32u);
  CHECK(r.counters.memory.write_sectors == 6u * 32u);
}

TEST_CASE("a store takes a line of L1, hits one that is there, and loads find what it wrote in whole sectors") {
  const GpuModel gpu = sm_model();
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  const auto counters = [&](int stride) {
    HandMadeTrace made({kStore, kStore, load, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, 1);
    for (int i = 0; i < 2; ++i) made.access(0, 4096, stride, MemorySpace::Global, MemoryKind::Store);
    made.access(0, 4096, stride, MemorySpace::Global);
    return made.simulate(gpu).counters;
  };
  const TimingCounters whole = counters(4), part = counters(32);
  CHECK(whole.l1_store_hit_sectors == 4);
  CHECK(whole.l1_load_hit_sectors == 4);
  CHECK(part.l1_store_hit_sectors == 32);
  CHECK(part.l1_load_hit_sectors == 0);
}

TEST_CASE("an extrapolated launch has the sectors that its trace has") {
  TimingCounters c;
  c.l1_load_sectors = 100, c.l1_load_hit_sectors = 40;
  c.memory.read_sectors = 60, c.memory.miss_sectors = 30, c.memory.hit_sectors = 30;
  TimingCounters misses_known = c;
  set_sectors(c, {200, 80}, false);  // its stores come at the end, which was not seen
  CHECK(c.l1_load_sectors == 200);
  CHECK(c.l1_load_hit_sectors == 80);
  CHECK(c.memory.read_sectors == 120);
  CHECK(c.memory.miss_sectors == 60);
  CHECK(c.l1_store_sectors == 80);
  CHECK(c.memory.write_sectors == 80);
  CHECK(c.memory.hit_sectors == 60 + 80);
  set_sectors(misses_known, {200, 80}, true);
  CHECK(misses_known.memory.read_sectors == 120);
  CHECK(misses_known.memory.miss_sectors == 30);
  CHECK(misses_known.memory.hit_sectors == 90 + 80);
  TimingCounters changing;
  changing.l1_load_sectors = 100;
  changing.memory.read_sectors = 60, changing.memory.reduction_sectors = 500;
  changing.memory.miss_sectors = 60, changing.memory.hit_sectors = 500;  // all of the reductions
  set_sectors(changing, {200, 0}, true);
  CHECK(changing.memory.hit_sectors == 500 + 60);
}

TEST_CASE("what passed by L2 takes the place of what was scaled up") {
  MemoryCounters before, c;
  before.read_sectors = 100, before.hit_sectors = 40, before.miss_sectors = 60, before.dram_read_bytes = 32;
  c = before;
  c.read_sectors = 1100, c.merged_sectors = 200, c.write_sectors = 50;
  c.hit_sectors = 440, c.miss_sectors = 660, c.dram_read_bytes = 352, c.fabric_hit_sectors = 9;
  set_traffic(c, before, {.read = 7, .written = 3, .missed = 20, .fetched = 24, .fabric_hits = 5, .fabric_misses = 2});
  CHECK(c.hit_sectors == 40 + 850 - 20);
  CHECK(c.miss_sectors == 60 + 24);
  CHECK(c.fabric_hit_sectors == 5);
  CHECK(c.fabric_miss_sectors == 2);
  CHECK(c.dram_read_bytes == 32 + 7 * 32);
  CHECK(c.dram_write_bytes == 3 * 32);
}

TEST_CASE("a launch in cold caches reads its code, and what launches it, from memory") {
  GpuModel gpu = sm_model();
  HandMadeTrace made(std::vector<Instruction>{plain(Pipe::Fma, 1), exit_instruction()}, 1);
  CHECK(made.simulate(gpu).counters.memory.dram_read_bytes == 0);
  gpu.launch.read_bytes = 2304;
  gpu.icache.launch_bytes = 65536;
  CHECK(made.simulate(gpu).counters.memory.dram_read_bytes == 2304u + 128u);
}

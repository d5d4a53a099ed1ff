#include "timing/sm/memory_pipe.h"

#include <catch2/catch.hpp>
#include <utility>

#include "timing/sm/sm_test_support.h"

using namespace forewarp;

namespace {

/// One pipe that accesses shared memory, pattern 0 being all that its sub-partitions ask for.
class SharedLoads {
 public:
  SharedLoads(GpuModel gpu, int wavefronts, int wide, MemoryKind kind = MemoryKind::Load)
      : gpu_(std::move(gpu)), memory_(gpu_), pipe_(gpu_, 0, 1 << 17, patterns_, timing_) {
    timing_[0].wavefronts = static_cast<std::uint16_t>(wavefronts);
    load_.path = Path::Memory;
    load_.space = MemorySpace::Shared;
    load_.memory = kind;
    load_.write_barrier = 0;
    load_.wide = static_cast<std::uint8_t>(wide);
  }

  void push(int sub_partition, Cycle arrival) {
    MemoryOperation operation;
    operation.instruction = &load_;
    operation.warp = static_cast<std::uint16_t>(sub_partition);
    operation.sub_partition = static_cast<std::uint8_t>(sub_partition);
    operation.arrival = arrival;
    operation.effect.target = AccessTarget::Banks;
    pipe_.push(operation);
  }

  /// Serves all that waits, from `now` on. Returns whose turn it was, one after another.
  std::vector<int> serve(Cycle now) {
    releases_.clear();
    std::vector<int> order;
    for (; !pipe_.idle(); ++now) pipe_.tick(now, memory_, releases_);
    for (const Release& release : releases_)
      if (release.kind == Release::Kind::QueueSlot) order.push_back(release.warp);
    return order;
  }

  /// When each of the last served left its sub-partition's queue.
  std::vector<Cycle> taken() const {
    std::vector<Cycle> at;
    for (const Release& release : releases_)
      if (release.kind == Release::Kind::QueueSlot) at.push_back(release.at);
    return at;
  }

  /// When each of the last served has its data.
  std::vector<Cycle> data() const {
    std::vector<Cycle> at;
    for (const Release& release : releases_)
      if (release.kind == Release::Kind::Write) at.push_back(release.at);
    return at;
  }

 private:
  GpuModel gpu_;
  MemorySystem memory_;
  CoalescedPatterns patterns_;
  std::vector<PatternTiming> timing_{PatternTiming{}};
  MemoryPipe pipe_;
  TimedInstruction load_;
  std::vector<Release> releases_;
};

GpuModel pipe_model() {
  GpuModel gpu = sm_model();
  gpu.memory_pipe.queue_entries = 9;
  gpu.memory_pipe.wide_latency = 1;
  gpu.memory_pipe.port_wavefront_cycles = 2;
  gpu.memory_pipe.shared_queue_entries = 20;
  gpu.memory_pipe.tags_ahead_cycles = 32;
  return gpu;
}

std::vector<Cycle> since_first(std::vector<Cycle> at) {
  for (std::size_t i = at.size(); i-- > 0;) at[i] -= at[0];
  return at;
}

}  // namespace

TEST_CASE("lanes of a warp's atomic that meet follow each other two cycles apart, other warps' in between") {
  GpuModel gpu = pipe_model();
  gpu.memory_pipe.warp_wavefront_cycles = 2;
  const auto last = [&](int warps) {
    SharedLoads atomics(gpu, 32, 0, MemoryKind::Atomic);
    for (int i = 0; i < 6; ++i) atomics.push(i % warps, 10);
    atomics.serve(10);
    return since_first(atomics.data()).back();
  };
  CHECK(last(1) == 5 * 64);
  CHECK(last(2) == 5 * 32);
}

TEST_CASE("wavefronts of a warp's stores follow each other at some distance, others' in between") {
  const auto waited = [](MemorySpace space, int warps, int apart) {
    GpuModel gpu = sm_model();
    gpu.memory_pipe.warp_wavefront_cycles = apart;
    gpu.l1.store_bank_lines = 32 / gpu.l1.tags_per_cycle;
    gpu.l1.store_wait_cycles = 1000;  // nothing leaves meanwhile
    const Instruction store =
        memory_instruction(space == MemorySpace::Shared ? Opcode::STS : Opcode::STG, space, MemoryKind::Store);
    const Instruction load = memory_instruction(Opcode::LDS, MemorySpace::Shared, MemoryKind::Load, 0);
    HandMadeTrace made({store, store, store, store, load, waiting(plain(Pipe::Fma, 1), 0), exit_instruction()}, warps);
    for (int w = 0; w < warps; ++w) {
      for (int i = 0; i < 4; ++i) made.access(w, 4096, 128, space, MemoryKind::Store);  // 32 wavefronts
      made.access(w, 0, 4, MemorySpace::Shared);
    }
    return stalled(made.simulate(gpu), Stall::ShortScoreboard);
  };
  CHECK(waited(MemorySpace::Shared, 1, 3) == waited(MemorySpace::Shared, 1, 2) + 3 * 32);
  CHECK(waited(MemorySpace::Global, 1, 3) == waited(MemorySpace::Global, 1, 2) + 3 * 32);
  CHECK(waited(MemorySpace::Shared, 2, 2) == waited(MemorySpace::Shared, 2, 1));
}

TEST_CASE("of sub-partitions that ask the shared unit, the one served longest ago is next") {
  SharedLoads loads(pipe_model(), 1, 0);
  // Three ask at once, the fourth, each in turn, two cycles later: as kernels/micro barrier, release, saw them served.
  const std::vector<std::vector<int>> seen{{1, 2, 0, 3}, {2, 0, 1, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {1, 2, 0, 3}};
  for (std::size_t trip = 0; trip < seen.size(); ++trip) {
    const Cycle start = 100 * trip;
    for (int s = 0; s < 4; ++s) loads.push(s, start + (s == static_cast<int>(trip % 4) ? 2 : 0));
    CHECK(loads.serve(start) == seen[trip]);
  }
}

TEST_CASE("a sub-partition's loads wait for each other at its port, those of others do not") {
  SharedLoads whole(pipe_model(), 4, 3);
  for (int i = 0; i < 4; ++i) whole.push(0, 10 + static_cast<Cycle>(4 * i));
  whole.serve(0);
  CHECK(since_first(whole.data()) == std::vector<Cycle>{0, 8, 16, 24});
  SharedLoads shared(pipe_model(), 2, 3);
  for (int i = 0; i < 4; ++i) shared.push(0, 10 + static_cast<Cycle>(4 * i));
  shared.serve(0);
  CHECK(since_first(shared.data()) == std::vector<Cycle>{0, 4, 8, 12});
  SharedLoads spread(pipe_model(), 4, 3);
  for (int s = 0; s < 4; ++s) spread.push(s, 10);
  spread.serve(0);
  CHECK(since_first(spread.data()) == std::vector<Cycle>{0, 4, 8, 12});
}

TEST_CASE("what sub-partitions send waits in a queue that they share, and then in their own") {
  GpuModel gpu = pipe_model();
  gpu.memory_pipe.shared_queue_entries = 3;
  // The banks are busy with each for 32 cycles: one is there, three wait, each of the others takes a place that has
  // become free.
  SharedLoads loads(gpu, 32, 0);
  for (int i = 0; i < 6; ++i) loads.push(i % 4, 10);
  loads.serve(0);
  CHECK(since_first(loads.taken()) == std::vector<Cycle>{0, 1, 2, 3, 33, 65});
}

TEST_CASE("a wide load takes longer only where it needs more wavefronts") {
  const auto latency = [](int wavefronts, int wide) {
    SharedLoads loads(pipe_model(), wavefronts, wide);
    loads.push(0, 10);
    loads.serve(0);
    return loads.data()[0];
  };
  const Cycle word = latency(1, 0);
  CHECK(latency(1, 1) == word);      // LDS.64 of one place
  CHECK(latency(2, 1) == word + 3);  // of 256 bytes
  CHECK(latency(2, 3) == word + 3);  // LDS.128 of one place
  CHECK(latency(4, 3) == word + 9);  // of 512 bytes
  CHECK(latency(8, 0) == word + 14);
}

TEST_CASE("as many loads, of as many lines together, are under way as may be") {
  // Eight loads, of so many lines each, that nothing waits for but the last instruction.
  const auto elapsed = [](int loads_in_flight, int miss_lines, int lines) {
    GpuModel gpu = sm_model();
    gpu.l1.loads_in_flight = loads_in_flight;
    gpu.l1.miss_lines = miss_lines;
    std::vector<Instruction> code(8, memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0));
    code.push_back(waiting(plain(Pipe::Fma, 1), 0));
    code.push_back(exit_instruction());
    HandMadeTrace made(code, 1);
    for (unsigned i = 0; i < 8; ++i) made.access(0, 65536 + i * 4096, lines * 4, MemorySpace::Global);
    return made.simulate(gpu).elapsed_cycles;
  };
  const Cycle free = elapsed(8, 64, 1);
  CHECK(elapsed(512, 1408, 1) == free);
  const Cycle by_four = elapsed(4, 64, 1), by_two = elapsed(2, 64, 1);
  CHECK(by_four > free + 200);
  CHECK(by_two - free > 2 * (by_four - free));  // four times a trip to memory, not twice, and not once
  CHECK(elapsed(8, 4, 1) == by_four);           // a load of a line each: the same limit
  CHECK(elapsed(8, 64, 8) < elapsed(8, 32, 8));
  CHECK(elapsed(8, 32, 8) < elapsed(8, 16, 8));
  CHECK(elapsed(8, 4, 8) > elapsed(8, 8, 8));  // fewer lines than a single load has: it is sent in parts
}

TEST_CASE("a copy is served as fast as the SM's port takes what it misses") {
  // Eight rows of 64 bytes that begin so many bytes after a line. Cycles until the copy has read its addresses.
  const auto served = [](int requests_per_cycle, int begin) {
    GpuModel gpu = pipe_model();
    gpu.l1.tags_per_cycle = 4;
    gpu.crossbar.sm_requests_per_cycle_x16 = 16 * requests_per_cycle;
    AccessPattern rows;
    rows.lanes = ~LaneMask{0};
    rows.space = MemorySpace::Global;
    rows.kind = MemoryKind::AsyncCopy;
    rows.bytes = 16;
    rows.base_offset = static_cast<std::uint8_t>(begin);
    for (int lane = 0; lane < kWarpLanes; ++lane)
      rows.offsets[static_cast<std::size_t>(lane)] = lane / 4 * 4096 + lane % 4 * 16;
    AccessPattern room = rows;
    room.space = MemorySpace::Shared;
    CoalescedPatterns patterns;
    patterns.extend({rows, room}, {});
    const std::vector<PatternTiming> timing(2);
    MemorySystem memory(gpu);
    MemoryPipe pipe(gpu, 0, 1 << 17, patterns, timing);
    TimedInstruction copy;
    copy.path = Path::Copy;
    copy.space = MemorySpace::Global;
    copy.memory = MemoryKind::AsyncCopy;
    copy.read_barrier = 0;
    copy.bypass_l1 = true;
    MemoryOperation operation;
    operation.instruction = &copy;
    operation.effect = effect_of(rows);
    operation.target = 1;
    pipe.push(operation);
    std::vector<Release> releases;
    for (Cycle now = 0; now < 100; ++now) pipe.tick(now, memory, releases);
    for (const Release& release : releases)
      if (release.kind == Release::Kind::Read) return static_cast<int>(release.at);
    return -1;
  };
  REQUIRE(served(4, 0) > 0);  // as fast as tags are looked up
  CHECK(served(2, 0) == served(4, 0) + 2);
  CHECK(served(1, 0) == served(4, 0) + 6);
  CHECK(served(2, 16) == served(2, 0) + 4);  // two requests a row, of one line
  CHECK(served(1, 16) == served(1, 0) + 8);
}

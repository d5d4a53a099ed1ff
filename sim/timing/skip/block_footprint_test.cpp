#include "timing/skip/block_footprint.h"

#include <catch2/catch.hpp>

#include "timing/sm/sm_test_support.h"
#include "timing/sm/timed_program.h"

using namespace forewarp;

namespace {

constexpr std::uint32_t kBlocks = 64, kLines = 64;  // lines that a block reads, and writes
constexpr std::uint64_t kIn = std::uint64_t{1} << 30, kOut = std::uint64_t{1} << 32;

/// Blocks that read lines in turn and then write lines of their own.
class Launch {
 public:
  /// `shared`: all read the same lines. `threads`: that touch them. `stride`: bytes from lane to lane; `apart`: from
  /// block to block.
  Launch(const GpuModel& gpu, bool shared, unsigned threads = 1, int stride = 4,
         std::int64_t apart = std::int64_t{kLines} * kLineBytes)
      : gpu_(gpu), made_(code(), 1, kBlocks), program_(*made_.trace().kernel, gpu), crew_(threads) {
    KernelTrace& trace = made_.trace();
    trace.slopes.push_back({apart, 0, 0});
    for (std::uint64_t i = 0; i < kLines; ++i)
      made_.access(0, kIn + i * kLineBytes, stride, MemorySpace::Global, MemoryKind::Load);
    for (std::uint64_t i = 0; i < kLines; ++i)
      made_.access(0, kOut + i * kLineBytes, stride, MemorySpace::Global, MemoryKind::Store);
    std::vector<Access>& accesses = trace.classes[0].warps[0].accesses;
    for (std::size_t i = shared ? kLines : 0; i < accesses.size(); ++i) accesses[i].slope = 1;
    patterns_.extend(trace.patterns);
    classes_.emplace(trace);
    timing_.resize(trace.patterns.size());
  }

  BlockFootprint footprint(int blocks_per_sm = 1) const {
    const LaunchContext context{gpu_, trace(), program_, patterns_, timing_, *classes_, blocks_per_sm, 1, 0};
    return BlockFootprint(context, crew_);
  }

 private:
  static std::vector<Instruction> code() {
    std::vector<Instruction> all(kLines, memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0));
    all.resize(2 * kLines, memory_instruction(Opcode::STG, MemorySpace::Global, MemoryKind::Store, kNoScoreboard));
    return all;
  }
  const KernelTrace& trace() const { return const_cast<HandMadeTrace&>(made_).trace(); }

  const GpuModel& gpu_;
  HandMadeTrace made_;
  TimedProgram program_;
  CoalescedPatterns patterns_;
  std::optional<ClassIndex> classes_;
  std::vector<PatternTiming> timing_;
  mutable Crew crew_;
};

constexpr std::uint64_t kEndless = ~std::uint64_t{0};
constexpr TouchEffort kAll{kEndless, kEndless, 0, 0};

GpuModel model() {
  GpuModel gpu = sm_model(2);
  gpu.l2.bytes = 80 * 16 * kLineBytes;  // twenty blocks' lines
  return gpu;
}

/// Two blocks at a time, each for as long as `lasts`; every second one later by `late` of that.
std::vector<RestPart> two_by_two(double lasts, double late) {
  std::vector<RestPart> parts;
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    const double at = lasts * (block / 2 + (block % 2) * late);
    parts.push_back({block, 0, 1, at, at + lasts, static_cast<std::uint16_t>(block % 2)});
  }
  return parts;
}

}  // namespace

TEST_CASE("left-out blocks read and write all that they ask for") {
  const GpuModel gpu = model();
  const Launch launch(gpu, false);
  BlockFootprint footprint = launch.footprint();
  CHECK(footprint.lines_per_block() == 2 * kLines);
  MemorySystem memory(gpu);
  const L2Traffic traffic = footprint.follow(two_by_two(100, 0.5), kAll, memory);
  CHECK(traffic.read == std::uint64_t{kBlocks} * kLines * 4);
  CHECK(traffic.written * kSectorBytes + memory.dirty_bytes() == std::uint64_t{kBlocks} * kLines * kLineBytes);
}

TEST_CASE("blocks that stand less than a line apart write all of it between them") {
  const GpuModel gpu = model();
  // Of each line little more than half, by blocks half a line apart: the last one begins 31 lines and a half after the
  // first.
  const Launch launch(gpu, false, 1, 2, 2 * kSectorBytes);
  BlockFootprint footprint = launch.footprint();
  MemorySystem memory(gpu);
  const L2Traffic traffic = footprint.follow(two_by_two(100, 0.5), kAll, memory);
  CHECK(traffic.written * kSectorBytes + memory.dirty_bytes() == std::uint64_t{kLines + kBlocks / 2 - 1} * kLineBytes);
}

TEST_CASE("work counts the lines of a class once, and those that are touched for its blocks") {
  const GpuModel gpu = model();
  const Launch launch(gpu, false);
  BlockFootprint footprint = launch.footprint();
  CHECK(footprint.work() == 2 * kLines);
  MemorySystem memory(gpu);
  footprint.follow(two_by_two(100, 0.5), kAll, memory);
  CHECK(footprint.work() == (kBlocks + 1) * 2 * kLines);
}

TEST_CASE("a part of the time stands for all of it, wherever the stores lie in it") {
  const GpuModel gpu = model();
  const Launch launch(gpu, false);
  for (const double late : {0.0, 0.5}) {
    for (const std::uint64_t most : {2000u, 2900u, 4100u}) {
      BlockFootprint footprint = launch.footprint();
      MemorySystem memory(gpu);
      const L2Traffic traffic = footprint.follow(two_by_two(100, late), {most, most, most, 0}, memory);
      INFO("late " << late << " most " << most);
      std::uint32_t every = 1;  // slices, of which one is touched
      while (kBlocks * footprint.lines_per_block() > most * every) every *= 2;
      const std::uint64_t dirty = memory.dirty_bytes(every) * every;
      CHECK(static_cast<double>(traffic.read) == Approx(double{kBlocks} * kLines * 4).epsilon(0.01));
      CHECK(static_cast<double>(traffic.written * kSectorBytes + dirty) ==
            Approx(double{kBlocks} * kLines * kLineBytes).epsilon(0.01));
    }
  }
}

TEST_CASE("some slices stand for all of them, and as much is dirty in the end as all of them leave") {
  const GpuModel gpu = model();
  const Launch launch(gpu, false);
  const auto follow = [&](const TouchEffort& effort, MemorySystem& memory) {
    BlockFootprint footprint = launch.footprint();
    return footprint.follow(two_by_two(100, 0.5), effort, memory);
  };
  MemorySystem one(gpu), other(gpu);
  const L2Traffic all = follow(kAll, one), some = follow({2 * kBlocks * kLines / 4, kEndless, 0, 2000}, other);
  CHECK(static_cast<double>(some.read) == Approx(static_cast<double>(all.read)).epsilon(0.02));
  CHECK(static_cast<double>(some.written) == Approx(static_cast<double>(all.written)).epsilon(0.02));
  CHECK(static_cast<double>(other.dirty_bytes()) == Approx(static_cast<double>(one.dirty_bytes())).epsilon(0.05));
}

TEST_CASE("blocks that are all but done when the rest begins still store, once") {
  const GpuModel gpu = model();
  const Launch launch(gpu, false);
  BlockFootprint footprint = launch.footprint();
  MemorySystem memory(gpu);
  const std::vector<RestPart> parts{{0, 0.994, 0.996, 0, 10, 0}, {0, 0.996, 1, 10, 20, 0}, {1, 0.999, 1, 0, 5, 1}};
  const L2Traffic traffic = footprint.follow(parts, kAll, memory);
  CHECK(traffic.read == 0);
  CHECK(memory.dirty_bytes() == 2 * kLineBytes);
}

TEST_CASE("what a part of a way asks for ends where it does, and the next part goes on from there") {
  const GpuModel gpu = model();
  const Launch launch(gpu, false);
  BlockFootprint footprint = launch.footprint();
  const auto read = [&](std::span<const RestPart> parts, MemorySystem& memory) {
    return footprint.follow(parts, kAll, memory).read;
  };
  MemorySystem whole(gpu);
  const std::uint64_t all = read(std::vector<RestPart>{{0, 0, 1, 0, 20, 0}}, whole);
  for (double cut = 0.003; cut < 1; cut += 0.0073) {
    INFO(cut);
    MemorySystem memory(gpu);
    const std::uint64_t first = read(std::vector<RestPart>{{0, 0, cut, 0, 10, 0}}, memory);
    // The first half of its way reads, the second writes.
    CHECK(static_cast<double>(first) <= 2 * cut * static_cast<double>(all));
    CHECK(first + read(std::vector<RestPart>{{0, cut, 1, 10, 20, 0}}, memory) == all);
  }
}

TEST_CASE("nothing is written to memory while L2 holds it all, whoever looked at it") {
  GpuModel gpu = model();
  gpu.l2.bytes *= 32;
  const Launch launch(gpu, false);
  BlockFootprint footprint = launch.footprint();
  MemorySystem memory(gpu);
  CHECK(footprint.follow(two_by_two(100, 0.5), {1000, kEndless, 0, 1000}, memory).written == 0);
  CHECK(footprint.follow(two_by_two(100, 0.5), {1000, 2000, 2000, 1000}, memory).written == 0);
}

TEST_CASE("what blocks that are in step read comes from memory once, what others read apart twice") {
  GpuModel gpu = model();
  gpu.l2.bytes = 80 * kLineBytes;  // little more than a block's lines
  gpu.l2.ways = 1;
  const Launch launch(gpu, true);
  const auto read = [&](double late) {
    BlockFootprint footprint = launch.footprint();
    MemorySystem memory(gpu);
    return footprint.follow(two_by_two(100, late), kAll, memory).read;
  };
  const double once = double{kBlocks} / 2 * kLines * 4;
  CHECK(static_cast<double>(read(0)) == Approx(once).epsilon(0.1));
  CHECK(static_cast<double>(read(0.5)) > 1.5 * once);
}

namespace {

/// What L2 holds: how many sectors of each line that the launch uses a read from either partition misses.
std::vector<std::uint64_t> held(MemorySystem& memory) {
  std::vector<std::uint64_t> missed;
  for (const std::uint64_t first : {kIn, kOut})
    for (std::uint64_t line = 0; line < kBlocks * kLines; ++line)
      for (const std::uint16_t sm : {0, 1})
        missed.push_back(memory.touch(first / kLineBytes + line, 15, RequestKind::Read, sm).missed);
  return missed;
}

/// All that is seen of left-out blocks, by so many threads.
std::vector<std::uint64_t> left_by(unsigned threads) {
  GpuModel gpu = model();
  gpu.chip = {2, 1, {1, 1}, 1000};
  gpu.l2.partitions = 2;
  gpu.l2.replicate_far_lines = true;
  const Launch launch(gpu, false, threads);
  std::vector<std::uint64_t> all;
  const auto note = [&](const L2Traffic& t, MemorySystem& memory) {
    all.insert(all.end(), {t.read, t.written, t.missed, t.fetched, t.fabric_hits, t.fabric_misses});
    all.push_back(memory.dirty_bytes());
    const std::vector<std::uint64_t> lines = held(memory);
    all.insert(all.end(), lines.begin(), lines.end());
  };
  for (const std::uint64_t most : {kEndless, std::uint64_t{3000}}) {
    for (const double late : {0.0, 0.5}) {
      BlockFootprint footprint = launch.footprint();
      MemorySystem memory(gpu);
      note(footprint.follow(two_by_two(100, late), {most, kEndless, 0, 2000}, memory), memory);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("however many threads touch L2 for left-out blocks, it is the same afterwards") {
  const std::vector<std::uint64_t> one = left_by(1);
  CHECK(left_by(2) == one);
  CHECK(left_by(4) == one);
}

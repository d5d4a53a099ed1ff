#include "timing/skip/footprint.h"

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
  /// `shared`: all read the same lines. `threads`: that touch them.
  Launch(const GpuModel& gpu, bool shared, unsigned threads = 1)
      : gpu_(gpu), made_(code(), 1, kBlocks), program_(*made_.trace().kernel, gpu), crew_(threads) {
    KernelTrace& trace = made_.trace();
    trace.slopes.push_back({std::int64_t{kLines} * kLineBytes, 0, 0});
    for (std::uint64_t i = 0; i < kLines; ++i)
      made_.access(0, kIn + i * kLineBytes, 4, MemorySpace::Global, MemoryKind::Load);
    for (std::uint64_t i = 0; i < kLines; ++i)
      made_.access(0, kOut + i * kLineBytes, 4, MemorySpace::Global, MemoryKind::Store);
    std::vector<Access>& accesses = trace.classes[0].warps[0].accesses;
    for (std::size_t i = shared ? kLines : 0; i < accesses.size(); ++i) accesses[i].slope = 1;
    patterns_.extend(trace.patterns);
    classes_.emplace(trace);
    timing_.resize(trace.patterns.size());
  }

  Footprint footprint(int blocks_per_sm = 1) const {
    const LaunchContext context{gpu_, trace(), program_, patterns_, timing_, *classes_, blocks_per_sm, 1, 0};
    return Footprint(context, crew_);
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

GpuModel model() {
  GpuModel gpu = sm_model(2);
  gpu.l2.bytes = 80 * 16 * kLineBytes;  // twenty blocks' lines
  return gpu;
}

/// Two blocks at a time, each for as long as `lasts`; every second one later by `late` of that.
std::vector<FluidPart> two_by_two(double lasts, double late) {
  std::vector<FluidPart> parts;
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
  Footprint footprint = launch.footprint();
  CHECK(footprint.lines_per_block() == 2 * kLines);
  MemorySystem memory(gpu);
  const L2Traffic traffic = footprint.follow(two_by_two(100, 0.5), memory);
  const std::uint64_t dirty = memory.dirty_bytes();
  CHECK(traffic.read == std::uint64_t{kBlocks} * kLines * 4);
  CHECK(traffic.written * kSectorBytes + dirty == std::uint64_t{kBlocks} * kLines * kLineBytes);
}

TEST_CASE("what blocks that are in step read comes from memory once, what others read apart twice") {
  GpuModel gpu = model();
  gpu.l2.bytes = 80 * kLineBytes;  // little more than a block's lines
  gpu.l2.ways = 1;
  const Launch launch(gpu, true);
  const auto read = [&](double late) {
    Footprint footprint = launch.footprint();
    MemorySystem memory(gpu);
    return footprint.follow(two_by_two(100, late), memory).read;
  };
  const double once = double{kBlocks} / 2 * kLines * 4;
  CHECK(static_cast<double>(read(0)) == Approx(once).epsilon(0.1));
  CHECK(static_cast<double>(read(0.5)) > 1.5 * once);
}

TEST_CASE("parts of a block's way, one after the other, touch each of its lines once") {
  const GpuModel gpu = model();
  const Launch launch(gpu, false);
  Footprint footprint = launch.footprint();
  MemorySystem memory(gpu);
  L2Traffic traffic;
  double from = 0;
  for (const double to : {0.1003, 0.1004, 0.37, 0.9999, 1.0}) {
    const std::vector<FluidPart> parts{{3, from, to, 0, 10, 0}, {7, from, to, 0, 10, 1}};
    traffic += footprint.follow(parts, memory);
    from = to;
  }
  CHECK(traffic.read == std::uint64_t{2} * kLines * 4);
  CHECK(traffic.written * kSectorBytes + memory.dirty_bytes() == std::uint64_t{2} * kLines * kLineBytes);
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
  Footprint footprint = launch.footprint();
  MemorySystem memory(gpu);
  note(footprint.follow(two_by_two(100, 0.5), memory), memory);
  return all;
}

}  // namespace

TEST_CASE("however many threads touch L2 for left-out blocks, it is the same afterwards") {
  const std::vector<std::uint64_t> one = left_by(1);
  CHECK(left_by(2) == one);
  CHECK(left_by(4) == one);
}

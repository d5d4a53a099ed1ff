// What is written down of a block's warps: every cycle of theirs once, under the name that the counters give it.
#include "timing/sm/block_recorder.h"

#include <catch2/catch.hpp>

#include "timing/sm/sm_test_support.h"

using namespace forewarp;

namespace {

GpuModel model(int sms = 1) {
  GpuModel gpu = model_with_boxes(sms);
  gpu.launch.block_start_cycles = 30;
  gpu.launch.warp_start_interval = 2;
  gpu.issue.exit_cycles = 25;
  return gpu;
}

Instruction block_barrier() {
  Instruction in = plain(Pipe::Adu, 1);
  in.opcode = Opcode::BAR;
  return in;
}

/// Loads, arithmetic on them, a barrier, more arithmetic; warps meet pipes, queues and each other.
HandMadeTrace mixed(int warps, std::uint32_t blocks = 1) {
  const Instruction load = memory_instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load, 0);
  HandMadeTrace made(
      {plain(Pipe::Alu, 1), plain(Pipe::Alu, 1), load, load, load, load, load, waiting(plain(Pipe::Fma, 4), 0),
       block_barrier(), plain(Pipe::Alu, 1), plain(Pipe::Alu, 2), exit_instruction()},
      warps, blocks);
  for (int w = 0; w < warps; ++w)
    for (int i = 0; i < 5; ++i)
      made.access(w, (std::uint64_t{1} << 24) + static_cast<std::uint64_t>((w * 5 + i) * 4096), 128,
                  MemorySpace::Global);
  return made;
}

/// Stretches of a warp follow one another from its first state to its end.
void check_whole(const BlockRecord& record) {
  REQUIRE_FALSE(record.warps.empty());
  for (const BlockRecord::WarpRow& warp : record.warps) {
    Cycle at = warp.started;
    for (const WarpInterval& one : warp.intervals) {
      CHECK(one.from == at);
      CHECK(one.to > one.from);
      at = one.to;
    }
    CHECK(at == std::min(warp.end, record.end));
  }
}

StallCycles sums(const BlockRecord& record) {
  StallCycles sum{};
  for (const BlockRecord::WarpRow& warp : record.warps)
    for (const WarpInterval& one : warp.intervals) sum[static_cast<std::size_t>(one.state)] += one.to - one.from;
  return sum;
}

bool equal(const BlockRecord& a, const BlockRecord& b) {
  if (a.warps.size() != b.warps.size() || a.start != b.start || a.end != b.end) return false;
  for (std::size_t w = 0; w < a.warps.size(); ++w) {
    if (a.warps[w].intervals.size() != b.warps[w].intervals.size()) return false;
    for (std::size_t i = 0; i < a.warps[w].intervals.size(); ++i) {
      const WarpInterval &x = a.warps[w].intervals[i], &y = b.warps[w].intervals[i];
      if (x.from != y.from || x.to != y.to || x.pc != y.pc || x.state != y.state || x.barrier != y.barrier)
        return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("stretches are disjoint, cover a block's life and add up to the warp states", "[record]") {
  for (const int warps : {1, 5, 12}) {
    HandMadeTrace made = mixed(warps);
    const TimingResult plain_run = made.simulate(model());
    const TimingResult result = made.watch({.block = 0}).simulate(model());
    REQUIRE(result.record != nullptr);
    const BlockRecord& record = *result.record;
    CHECK(result.elapsed_cycles == plain_run.elapsed_cycles);
    CHECK(plain_run.record == nullptr);
    REQUIRE(record.blocks.size() == 1);
    CHECK(record.warps.size() == static_cast<std::size_t>(warps));
    check_whole(record);
    CHECK(sums(record) == result.counters.stalls);
    CHECK(record.end == record.blocks.front().end);
    CHECK_FALSE(record.filled);
    for (const BlockRecord::WarpRow& warp : record.warps) CHECK(warp.end != BlockRecord::kOpen);
  }
}

TEST_CASE("a warp's wait names the instruction that it waits for", "[record]") {
  const TimingResult result = mixed(1).watch({.block = 0}).simulate(model());
  REQUIRE(result.record != nullptr);
  bool seen = false;
  for (const WarpInterval& one : result.record->warps.front().intervals) {
    if (one.state == Stall::LongScoreboard) {
      CHECK(one.pc == 7);
      CHECK(one.source == 6);
      seen = true;
    }
    if (one.state == Stall::Barrier) CHECK(one.barrier == 0);
  }
  CHECK(seen);
}

TEST_CASE("a record ends after its cycles, in the middle of what warps do", "[record]") {
  const TimingResult whole = mixed(5).watch({.block = 0}).simulate(model());
  const TimingResult part = mixed(5).watch({.block = 0, .cycles = 60}).simulate(model());
  REQUIRE(part.record != nullptr);
  CHECK(part.elapsed_cycles == whole.elapsed_cycles);
  CHECK(part.record->end == part.record->start + 60);
  for (const BlockRecord::WarpRow& warp : part.record->warps) {
    Cycle at = warp.started;
    for (const WarpInterval& one : warp.intervals) {
      CHECK(one.from == at);
      at = one.to;
    }
    CHECK(at == part.record->end);
  }
}

TEST_CASE("blocks that are not there and blocks that were left out are warned about", "[record]") {
  const TimingResult none = mixed(1, 3).watch({.block = 3}).simulate(model());
  CHECK(none.record == nullptr);
  REQUIRE(none.warnings.size() == 1);
  CHECK(none.warnings.front().find("has 3 blocks") != std::string::npos);
  const TimingResult last = mixed(1, 3).watch({.block = 2}).simulate(model());
  REQUIRE(last.record != nullptr);
  CHECK(last.record->blocks.front().linear == 2);
  check_whole(*last.record);
}

TEST_CASE("a record holds no more than its room", "[record]") {
  // Two instructions an iteration, and a wait behind each.
  Instruction branch = plain(Pipe::Cbu, 5);
  branch.opcode = Opcode::BRA;
  HandMadeTrace made({plain(Pipe::Fma, 4), branch, exit_instruction()}, 4);
  std::vector<Run> runs(20'000, {0, 2});
  runs.push_back({2, 1});
  const TimingResult result = made.runs(runs).watch({.block = 0, .cycles = 1'000'000}).simulate(model());
  REQUIRE(result.record != nullptr);
  CHECK(result.record->filled);
  std::size_t stretches = 0;
  for (const BlockRecord::WarpRow& warp : result.record->warps) {
    stretches += warp.intervals.size();
    CHECK(warp.intervals.back().to == result.record->end);
  }
  CHECK(stretches <= 100'004);
  CHECK(result.record->end < result.elapsed_cycles);
}

namespace {

/// Warp 0 copies 8 lines and waits for them.
HandMadeTrace copying() {
  HandMadeTrace made({phase(), phase(), box_copy(), phase(0), waiting(exit_instruction(), 0)}, 1);
  made.phase(0, {.action = PhaseRecord::Action::Init, .barrier = 64, .arrivals = 1});
  made.phase(0, {.action = PhaseRecord::Action::Arrive, .barrier = 64, .arrivals = 1, .bytes = 1024});
  made.box(0, 1 << 20, 64);
  made.phase(0, {.action = PhaseRecord::Action::Await, .barrier = 64, .phase = 1});
  return made;
}

}  // namespace

TEST_CASE("a copy is under way from its issue to its end, which whoever waits for its barrier sees", "[record]") {
  const TimingResult result = copying().watch({.block = 0}).simulate(model());
  REQUIRE(result.record != nullptr);
  const BlockRecord& record = *result.record;
  check_whole(record);
  CHECK(sums(record) == result.counters.stalls);
  REQUIRE(record.copies.size() == 1);
  const BlockRecord::Copy& copy = record.copies.front();
  CHECK(copy.kind == BlockRecord::CopyKind::In);
  CHECK(copy.pc == 2);
  CHECK(copy.barrier == 64);
  CHECK(copy.bytes == 1024);
  REQUIRE(copy.done != BlockRecord::kOpen);
  CHECK(copy.done > copy.issued + 20 + 8);
  REQUIRE(record.phases.size() == 1);
  CHECK(record.phases.front().barrier == 64);
  CHECK(record.phases.front().phase == 1);
  CHECK(record.phases.front().at == copy.done);
  REQUIRE(record.awaits.size() == 1);
  CHECK(record.awaits.front().pc == 3);
  CHECK(record.awaits.front().over == copy.done + 20);
  const auto& stretches = record.warps.front().intervals;
  const auto wait =
      std::find_if(stretches.begin(), stretches.end(), [](const WarpInterval& one) { return one.barrier == 64; });
  REQUIRE(wait != stretches.end());
  CHECK(wait->phase == 1);
  CHECK(wait->source == 3);
  CHECK(wait->to == copy.done + 20);
}

TEST_CASE("products keep the tensor pipe busy from their issue on", "[record]") {
  Instruction product = plain(Pipe::Tensor, 1);
  product.opcode = product.native = Opcode::HMMA;
  product.operation = OperationClass::Mma;
  product.shape = {16, 8, 16};
  product.operand_count = 4;
  product.destination_count = 1;
  for (std::size_t i = 0; i < 4; ++i)
    product.operands[i] = {.kind = OperandKind::Register, .index = static_cast<std::uint8_t>(8 + 4 * i)};
  const TimingResult result =
      HandMadeTrace({product, product, exit_instruction()}, 1).watch({.block = 0}).simulate(model());
  REQUIRE(result.record != nullptr);
  REQUIRE(result.record->busy.size() == 1);
  const BlockRecord::Busy& busy = result.record->busy.front();
  CHECK(busy.to - busy.from == result.counters.pipe_cycles[static_cast<std::size_t>(Pipe::Tensor)]);
}

TEST_CASE("what was left out after a block was watched is said, and threads change nothing", "[record]") {
  HandMadeTrace made = streaming_loop(400, 8, 4);
  made.watch({.block = 1, .cycles = 1'000'000});
  const GpuModel gpu = sm_model(4);
  const TimingResult one = made.simulate(gpu, false, 10000), two = made.simulate(gpu, false, 10000, 3);
  REQUIRE(one.record != nullptr);
  REQUIRE(two.record != nullptr);
  CHECK(one.coverage.extrapolated);
  CHECK_FALSE(one.record->left_out.empty());
  for (const BlockRecord::LeftOut& gap : one.record->left_out) {
    CHECK(gap.at >= one.record->start);
    CHECK(gap.at == one.record->end);
    CHECK(gap.cycles > 0);
  }
  check_whole(*one.record);
  CHECK(equal(*one.record, *two.record));
}

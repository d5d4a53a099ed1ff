// Persistent blocks that draw tiles from an atomic counter: what each draws, and that no tile is lost or drawn twice.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "emulation/emulation.h"
#include "emulation/launch_example.h"

using namespace forewarp;

namespace {

constexpr std::uint32_t kBlocks = 64;
constexpr std::uint64_t kTiles = 20'000;

// Thread 0 of each block draws; the first word of the first buffer, which holds indices, counts. With `uneven`, tiles
// take blocks of odd index longer.
std::string draws(bool again, bool uneven) {
  std::string code = test::kStart + R"(
    ISETP.NE.AND P1, PT, R0, RZ, PT
    @P1 EXIT
    MOV R14, 0x1
    MOV R8, c[0x0][0x160]
    MOV R9, c[0x0][0x164]
next:
    ATOMG.E.ADD.STRONG.GPU PT, R10, [R8.64], R14
    ISETP.GE.AND P0, PT, R10, 0x4e20, PT
    @P0 EXIT
    IMAD.WIDE R12, R10, R5, c[0x0][0x168]
    LDG.E R11, [R12.64]
)";
  if (uneven) {
    code += "    LOP3.LUT R6, R3, 0x1, RZ, 0xc0, !PT\n    ISETP.EQ.AND P2, PT, R6, RZ, PT\n    @P2 BRA $next\n";
    for (int i = 0; i < 7; ++i) code += "    NOP\n";
  }
  if (again) code += "    BRA $next\n";
  return code + "    EXIT\n";
}

std::shared_ptr<KernelTrace> trace(const std::string& code, std::uint32_t blocks = kBlocks) {
  test::Example made(code, {blocks, 1, 1}, {32, 1, 1});
  for (Buffer& buffer : made.item.buffers) buffer.fill = FillIota{};
  return trace_launch(made.program, made.item, 0, {});
}

/// Tiles by block: the loads of each.
std::vector<std::uint64_t> tiles_of(const KernelTrace& trace) {
  std::vector<std::uint64_t> tiles;
  for (const BlockClass& c : trace.classes) {
    tiles.push_back(0);
    for (std::size_t i = 0; i < trace.kernel->instructions.size(); ++i)
      if (trace.kernel->instructions[i].opcode == Opcode::LDG) tiles.back() += c.counts[i].requests;
  }
  return tiles;
}

}  // namespace

TEST_CASE("a queue of tiles is spread over the blocks that draw from it") {
  const auto traced = trace(draws(true, false));
  REQUIRE(traced->classes.size() == kBlocks);
  CHECK(traced->launch.side_by_side == kBlocks);
  const std::vector<std::uint64_t> tiles = tiles_of(*traced);
  std::uint64_t sum = 0;
  for (const std::uint64_t n : tiles) sum += n;
  CHECK(sum == kTiles);
  CHECK(*std::min_element(tiles.begin(), tiles.end()) == kTiles / kBlocks);
  CHECK(*std::max_element(tiles.begin(), tiles.end()) == kTiles / kBlocks + 1);
  // Every tile once.
  std::vector<bool> seen(kTiles, false);
  for (const BlockClass& c : traced->classes) {
    CHECK(c.single);
    for (const Access& access : c.warps[0].accesses) {
      if (traced->patterns[access.pattern].kind != MemoryKind::Load) continue;
      const std::uint64_t tile = (access.base - traced->classes[0].warps[0].accesses[1].base) / 4;
      REQUIRE(tile < kTiles);
      REQUIRE_FALSE(seen[tile]);
      seen[tile] = true;
    }
  }
}

TEST_CASE("blocks whose tiles take longer draw fewer") {
  // Eight instructions a tile in blocks of even index, sixteen in the others.
  const auto traced = trace(draws(true, true));
  const std::vector<std::uint64_t> tiles = tiles_of(*traced);
  std::uint64_t even = 0, odd = 0;
  for (std::size_t b = 0; b < tiles.size(); ++b) (b % 2 == 0 ? even : odd) += tiles[b];
  CHECK(even + odd == kTiles);
  CHECK(static_cast<double>(even) / static_cast<double>(odd) == Approx(2).epsilon(0.02));
}

TEST_CASE("blocks that draw once stay as they were") {
  const auto traced = trace(draws(false, false));
  CHECK(traced->launch.side_by_side == 0);
}

TEST_CASE("more blocks than draw at a time, and one alone") {
  const auto traced = trace(draws(true, false), 5000);
  CHECK(traced->launch.side_by_side == 4096);
  const std::vector<std::uint64_t> tiles = tiles_of(*traced);
  std::uint64_t sum = 0;
  for (const std::uint64_t n : tiles) sum += n;
  CHECK(sum == kTiles);
  CHECK(trace(draws(true, false), 1)->launch.side_by_side == 0);
}

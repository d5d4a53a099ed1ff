#include "trace/coalesce.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "trace/test_support.h"

using namespace forewarp;
using forewarp::testing::pattern_of;

namespace {

CoalescedCounts global(int bytes, const std::function<std::int64_t(int)>& address, LaneMask lanes = ~LaneMask{0}) {
  return coalesce(pattern_of(MemorySpace::Global, MemoryKind::Load, bytes, address, lanes));
}

CoalescedCounts shared(int bytes, const std::function<std::int64_t(int)>& address, LaneMask lanes = ~LaneMask{0},
                       MemoryKind kind = MemoryKind::Load) {
  return coalesce(pattern_of(MemorySpace::Shared, kind, bytes, address, lanes));
}

}  // namespace

TEST_CASE("strided floats touch the sectors and lines that arithmetic says") {
  struct Row {
    int stride;
    int sectors;
    int lines;
  };
  // 32 floats `stride` floats apart, from a line's start: span = 31 * 4 * stride + 4 bytes.
  for (const Row& row : {Row{1, 4, 1}, Row{2, 8, 2}, Row{3, 12, 3}, Row{4, 16, 4}, Row{8, 32, 8}, Row{32, 32, 32},
                         Row{33, 32, 32}, Row{1024, 32, 32}}) {
    const CoalescedCounts c = global(4, [&](int l) { return l * 4 * row.stride; });
    INFO("stride " << row.stride);
    CHECK(c.sectors == row.sectors);
    CHECK(c.lines == row.lines);
    CHECK(c.ideal_sectors == 4);
    CHECK(c.bytes == 128);
    CHECK(c.addresses == 32);
  }
}

TEST_CASE("misaligned rows touch one sector more") {
  CHECK(global(4, [](int l) { return 4 + l * 4; }).sectors == 5);
  CHECK(global(4, [](int l) { return 4 + l * 4; }).lines == 2);
  CHECK(global(4, [](int l) { return 32 + l * 4; }).sectors == 4);
  CHECK(global(4, [](int l) { return 32 + l * 4; }).lines == 2);
  CHECK(global(4, [](int l) { return 124 - l * 4; }).sectors == 4);  // backwards is as good
}

TEST_CASE("wider lanes take sectors in proportion") {
  CHECK(global(8, [](int l) { return l * 8; }).sectors == 8);
  CHECK(global(16, [](int l) { return l * 16; }).sectors == 16);
  CHECK(global(16, [](int l) { return l * 16; }).lines == 4);
  CHECK(global(2, [](int l) { return l * 2; }).sectors == 2);
  CHECK(global(1, [](int l) { return l; }).sectors == 1);
  CHECK(global(1, [](int l) { return l; }).ideal_sectors == 1);
}

TEST_CASE("lanes on one address are one sector") {
  const CoalescedCounts c = global(4, [](int) { return 64; });
  CHECK(c.sectors == 1);
  CHECK(c.bytes == 4);
  CHECK(c.ideal_sectors == 1);  // never more than it takes
  CHECK(c.addresses == 1);
  CHECK(global(
            4, [](int l) { return l * 4; }, 0x1)
            .sectors == 1);
  CHECK(global(
            4, [](int l) { return l * 4; }, 0)
            .sectors == 0);
}

TEST_CASE("bytes of a line are counted once, and for each pattern") {
  const auto offset = [](int lane) { return 116 + lane / 2 * 4; };  // two lanes a word, across two lines
  const AccessPattern p = pattern_of(MemorySpace::Global, MemoryKind::Store, 4, offset);
  const CoalescedPatterns table(std::vector<AccessPattern>{p, p});
  for (const std::uint32_t i : {0u, 1u}) {
    REQUIRE(table.lines(i).size() == 2);
    CHECK(table.lines(i)[0] == LineSectors{0, 0b1000, 12});
    CHECK(table.lines(i)[1] == LineSectors{1, 0b0011, 52});
    CHECK_FALSE(table.lines(i)[0].whole_sectors());
  }
  CHECK(LineSectors{0, 0b0110, 64}.whole_sectors());
}

TEST_CASE("lines come in ascending order with their sectors, also below the base") {
  std::vector<LineSectors> lines;
  // Lane 0 at byte 64 of its line, lane 1 300 bytes before, lane 2 straddling two lines.
  const auto p = pattern_of(
      MemorySpace::Global, MemoryKind::Load, 16,
      [](int l) {
        return std::array<std::int64_t, 3>{1024 + 64, 1024 - 300, 1024 + 120}[l];
      },
      7);
  coalesce(p, {}, &lines);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == LineSectors{-3, 0b1100, 16});  // bytes 724..739 = line 640 + 84..99
  CHECK(lines[1] == LineSectors{0, 0b1100, 24});
  CHECK(lines[2] == LineSectors{1, 0b0001, 8});
  CHECK(line_address(1024 + 64, -3) == 640);
}

TEST_CASE("the table of coalesced patterns follows the patterns") {
  std::vector<AccessPattern> patterns;
  patterns.push_back(pattern_of(MemorySpace::Global, MemoryKind::Load, 4, [](int l) { return l * 4; }));
  patterns.push_back(pattern_of(MemorySpace::Shared, MemoryKind::Load, 4, [](int l) { return l * 4; }));
  CoalescedPatterns table(patterns);
  patterns.push_back(pattern_of(MemorySpace::Global, MemoryKind::Load, 4, [](int l) { return l * 128; }));
  table.extend(patterns);
  REQUIRE(table.size() == 3);
  CHECK(table.lines(0).size() == 1);
  CHECK(table.lines(1).empty());
  CHECK(table.lines(2).size() == 32);
  CHECK(table.lines(2)[31] == LineSectors{31, 1, 4});
}

TEST_CASE("local words of wide accesses lie a line apart") {
  const auto wide = [](int bytes) {
    return coalesce(pattern_of(MemorySpace::Local, MemoryKind::Load, bytes, [](int l) { return l * 4; }));
  };
  CHECK(wide(4).sectors == 4);
  CHECK(wide(8).sectors == 8);
  CHECK(wide(16).sectors == 16);
  CHECK(wide(16).lines == 4);
  CHECK(wide(16).bytes == 512);
}

TEST_CASE("an n-way bank conflict takes n wavefronts") {
  for (const int ways : {1, 2, 4, 8, 16, 32}) {
    const CoalescedCounts c = shared(4, [&](int l) { return l * 4 * ways; });
    CHECK(c.wavefronts == ways);
    CHECK(c.ideal_wavefronts == 1);
    CHECK(c.bank_conflicts == ways - 1);
  }
  for (const int odd : {3, 5, 7, 31, 33}) CHECK(shared(4, [&](int l) { return l * 4 * odd; }).wavefronts == 1);
  for (int ways = 1; ways <= 32; ++ways)  // lanes 0 .. ways-1 in bank 0, the rest together
    CHECK(shared(4, [&](int l) { return l < ways ? l * 128 : 0; }).wavefronts == ways);
}

TEST_CASE("lanes on one word share a pass") {
  CHECK(shared(4, [](int) { return 20; }).wavefronts == 1);
  CHECK(shared(4, [](int l) { return l / 2 * 4; }).wavefronts == 1);
  CHECK(shared(1, [](int l) { return l; }).wavefronts == 1);
  CHECK(shared(2, [](int l) { return l * 2; }).wavefronts == 1);
  CHECK(shared(2, [](int l) { return l * 128; }).wavefronts == 32);
  CHECK(shared(
            4, [](int l) { return l * 4; }, ~LaneMask{0}, MemoryKind::Store)
            .wavefronts == 1);
  CHECK(shared(
            4, [](int l) { return l * 128; }, ~LaneMask{0}, MemoryKind::Store)
            .wavefronts == 32);
}

TEST_CASE("64-bit requests go half a warp at a time") {
  CHECK(shared(8, [](int l) { return l * 8; }).wavefronts == 2);
  CHECK(shared(8, [](int l) { return l * 8; }).ideal_wavefronts == 2);
  CHECK(shared(8, [](int l) { return l * 8; }).bank_conflicts == 0);
  CHECK(shared(8, [](int l) { return l * 16; }).wavefronts == 4);
  CHECK(shared(8, [](int l) { return l * 16; }).bank_conflicts == 2);
  CHECK(shared(
            8, [](int l) { return l * 8; }, 0x0000ffff)
            .wavefronts == 1);
  CHECK(shared(
            8, [](int l) { return l * 8; }, 0x00ff00ff)
            .wavefronts == 2);
  CHECK(shared(
            8, [](int l) { return l * 8; }, 0x00ff00ff)
            .ideal_wavefronts == 1);
  CHECK(shared(8, [](int l) { return l / 2 * 8; }).wavefronts == 1);  // pairs (i, i^1) share
  CHECK(shared(8, [](int) { return 0; }).wavefronts == 1);
}

TEST_CASE("128-bit requests go a quarter at a time") {
  CHECK(shared(16, [](int l) { return l * 16; }).wavefronts == 4);
  CHECK(shared(16, [](int l) { return l * 16; }).ideal_wavefronts == 4);
  CHECK(shared(16, [](int l) { return l * 32; }).wavefronts == 8);
  CHECK(shared(
            16, [](int l) { return l * 16; }, 0xff)
            .wavefronts == 1);
  CHECK(shared(16, [](int l) { return l / 2 * 16; }).wavefronts == 2);
  CHECK(shared(16, [](int) { return 0; }).wavefronts == 2);
  CHECK(shared(16, [](int l) { return l % 16 * 16; }).wavefronts == 4);
}

// Patterns measured with Nsight Compute on an H200; the second number is wavefronts - bank conflicts.
TEST_CASE("wavefronts agree with an H200") {
  struct Row {
    MemoryKind kind;
    int bytes;
    LaneMask lanes;
    int wavefronts;
    int groups;
    std::array<int, 32> at;
  };
  const Row rows[] = {
      {MemoryKind::Load, 16, 0xbbe02c43, 4, 4, {0, 32,  0,  16, 16, 80, 32, 0, 48, 64, 0,   80, 0,  48,  80, 80,
                                                0, 112, 96, 80, 32, 0,  96, 0, 16, 80, 112, 96, 64, 112, 0,  0}},
      {MemoryKind::Load, 16, 0x31c28c27, 6, 4, {64, 144, 16,  80,  160, 176, 224, 240, 112, 160, 176,
                                                80, 48,  144, 32,  224, 48,  48,  80,  192, 224, 16,
                                                16, 16,  48,  208, 64,  208, 176, 32,  176, 80}},
      {MemoryKind::Store, 16, 0x9a4e2545, 5, 4, {704, 992, 432, 880, 144, 832, 240, 704, 256, 864, 416,
                                                 480, 448, 480, 448, 688, 32,  816, 560, 576, 112, 16,
                                                 848, 608, 784, 608, 336, 960, 928, 944, 576, 816}},
      {MemoryKind::Store, 8, 0xffffffff, 4, 2, {400, 64,  400, 64,  368, 280, 368, 280, 336, 392, 336,
                                                392, 8,   8,   8,   8,   376, 304, 376, 304, 224, 304,
                                                224, 304, 488, 360, 488, 360, 8,   24,  8,   24}},
      {MemoryKind::Store, 8, 0x966d73eb, 3, 2, {152, 152, 192, 192, 64, 64,  40,  40,  8,   8,   112,
                                                112, 40,  40,  32,  32, 144, 144, 224, 224, 120, 120,
                                                24,  24,  208, 208, 24, 24,  48,  48,  32,  32}},
  };
  for (const Row& row : rows) {
    const auto c = shared(
        row.bytes, [&](int l) { return row.at[static_cast<std::size_t>(l)]; }, row.lanes, row.kind);
    CHECK(c.wavefronts == row.wavefronts);
    CHECK(c.wavefronts - c.bank_conflicts == row.groups);
  }
  // The same addresses that a load reads in half the passes.
  const auto pairs = [](int l) { return l / 2 * 16; };
  CHECK(shared(16, pairs, ~LaneMask{0}, MemoryKind::Store).wavefronts == 4);
  CHECK(shared(
            8, [](int) { return 0; }, ~LaneMask{0}, MemoryKind::Store)
            .wavefronts == 2);
}

TEST_CASE("every pattern measured on an H200 agrees") {
  std::ifstream in(FOREWARP_SOURCE_DIR "/sim/trace/testdata/h200_access_patterns.txt");
  REQUIRE(in);
  int rows = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string kind;
    int bytes = 0, count = 0, conflicts = 0;
    LaneMask lanes = 0;
    std::array<int, 32> at{};
    fields >> kind >> bytes >> std::hex >> lanes >> std::dec >> count >> conflicts;
    for (int& offset : at) fields >> offset;
    REQUIRE(fields);
    const bool is_shared = kind.starts_with("shared");
    const MemoryKind memory = kind.ends_with("load")    ? MemoryKind::Load
                              : kind.ends_with("store") ? MemoryKind::Store
                                                        : MemoryKind::Atomic;
    const CoalescedCounts c = coalesce(pattern_of(
        is_shared ? MemorySpace::Shared : MemorySpace::Global, memory, bytes,
        [&](int l) { return at[static_cast<std::size_t>(l)]; }, lanes));
    INFO(line);
    const int passes = kind == "shared_swap" ? 2 : 1;
    REQUIRE((is_shared ? c.wavefronts * passes : c.tag_sectors) == count);
    if (is_shared) REQUIRE(c.bank_conflicts == conflicts);
    ++rows;
  }
  CHECK(rows > 700);
}

TEST_CASE("atomics on one word follow one another") {
  const auto atomic = [](const std::function<std::int64_t(int)>& at) {
    return shared(4, at, ~LaneMask{0}, MemoryKind::Atomic);
  };
  CHECK(atomic([](int) { return 0; }).wavefronts == 32);
  CHECK(atomic([](int) { return 0; }).bank_conflicts == 31);
  CHECK(atomic([](int l) { return l * 4; }).wavefronts == 1);
  CHECK(atomic([](int l) { return l % 2 * 4; }).wavefronts == 16);
  CHECK(atomic([](int l) { return l * 128; }).wavefronts == 32);
  Instruction swap;
  swap.opcode = Opcode::ATOMS;
  CHECK(wavefront_factor(swap) == 1);
  swap.modifiers.set(static_cast<std::size_t>(Modifier::CAS));
  CHECK(wavefront_factor(swap) == 2);
}

TEST_CASE("global atomics look their sectors up once for each pass") {
  const auto atomic = [](const std::function<std::int64_t(int)>& at) {
    return coalesce(pattern_of(MemorySpace::Global, MemoryKind::Reduction, 4, at));
  };
  struct Row {
    std::function<std::int64_t(int)> at;
    int sectors, tag_sectors, passes, addresses;
  };
  for (const Row& row :
       {Row{[](int l) { return l / 8 * 4; }, 1, 8, 8, 4}, Row{[](int l) { return l % 2 * 4; }, 1, 16, 16, 2},
        Row{[](int l) { return l % 16 * 4; }, 2, 4, 2, 16}, Row{[](int l) { return l * 4; }, 4, 4, 1, 32},
        Row{[](int l) { return l * 4096; }, 32, 32, 1, 32}, Row{[](int) { return 0; }, 1, 32, 32, 1}}) {
    CHECK(atomic(row.at).sectors == row.sectors);
    CHECK(atomic(row.at).tag_sectors == row.tag_sectors);
    CHECK(atomic(row.at).atomic_passes == row.passes);
    CHECK(atomic(row.at).addresses == row.addresses);
  }
}

TEST_CASE("global columns meet in one bank of the data stage") {
  CHECK(global(4, [](int l) { return l * 128; }).wavefronts == 32);
  CHECK(global(4, [](int l) { return l * 4; }).wavefronts == 1);
  CHECK(global(16, [](int l) { return l * 16; }).wavefronts == 4);
}

TEST_CASE("sectors of scattered lanes agree with a set") {
  std::uint32_t state = 1;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (int round = 0; round < 2000; ++round) {
    const int bytes = 1 << next() % 5;
    const std::uint32_t range = 1u << next() % 16;
    std::array<std::int64_t, 32> address{};
    for (auto& a : address) a = (next() % range) / static_cast<unsigned>(bytes) * bytes + 4096;
    const LaneMask lanes = (next() << 16 ^ next()) | 1u << next() % 32;
    std::set<std::int64_t> sectors, lines, touched;
    for (int l = 0; l < 32; ++l)
      if (lanes >> l & 1)
        for (int b = 0; b < bytes; ++b) {
          touched.insert(address[l] + b);
          sectors.insert((address[l] + b) / 32);
          lines.insert((address[l] + b) / 128);
        }
    std::vector<LineSectors> found;
    const auto c = coalesce(pattern_of(
                                MemorySpace::Global, MemoryKind::Load, bytes, [&](int l) { return address[l]; }, lanes),
                            {}, &found);
    REQUIRE(c.sectors == sectors.size());
    REQUIRE(c.lines == lines.size());
    REQUIRE(c.bytes == touched.size());
    REQUIRE(found.size() == lines.size());
    std::size_t from_masks = 0;
    for (const LineSectors& l : found) from_masks += static_cast<std::size_t>(std::popcount(l.sectors));
    REQUIRE(from_masks == sectors.size());
  }
}

TEST_CASE("a box that is read asks for each row and line, and for sectors in part alone") {
  const auto requests = [](int base, int row, int rows, int pitch) {
    AccessPattern box;
    box.kind = MemoryKind::AsyncCopy;
    box.space = MemorySpace::Global;
    box.lanes = 3;
    box.base_offset = static_cast<std::uint8_t>(base);
    box.offsets[0] = row;
    box.offsets[1] = rows;
    box.offsets[kBoxPitch + 1] = pitch;
    std::vector<LineSectors> lines;
    const CoalescedCounts counts = coalesce(box, {}, &lines);
    CHECK(counts.lines == lines.size());
    int bytes = 0, sectors = 0;
    for (const LineSectors& part : lines) {
      bytes += part.bytes;
      sectors += std::popcount(unsigned{part.sectors});
      if (rows > 1) CHECK((part.whole_sectors() || std::has_single_bit(unsigned{part.sectors})));
    }
    CHECK(bytes == row * rows);
    CHECK(sectors == counts.sectors);
    return std::pair(lines.size(), sectors);
  };
  // Rows of 128 bytes, as measured: 1, 1.5, 1.75 and 2.625 requests and 4, 4, 4 and 4.5 sectors a row.
  CHECK(requests(0, 128, 8, 256) == std::pair<std::size_t, int>(8, 32));
  CHECK(requests(0, 128, 8, 192) == std::pair<std::size_t, int>(12, 32));
  CHECK(requests(0, 128, 8, 160) == std::pair<std::size_t, int>(14, 32));
  CHECK(requests(0, 128, 8, 144) == std::pair<std::size_t, int>(21, 36));
  CHECK(requests(16, 16, 1, 0) == std::pair<std::size_t, int>(1, 1));
  CHECK(requests(16, 64, 1, 0) == std::pair<std::size_t, int>(1, 3));  // one run of bytes
  CHECK(requests(0, 128, 4, 128) == std::pair<std::size_t, int>(4, 16));
}

TEST_CASE("a copy of 16 bytes a lane asks by eight lanes, twice where pairs lie in two sectors") {
  const auto copy = [](const std::function<std::int64_t(int)>& address, LaneMask lanes = ~LaneMask{0}) {
    std::vector<LineSectors> lines;
    const CoalescedCounts c =
        coalesce(pattern_of(MemorySpace::Global, MemoryKind::AsyncCopy, 16, address, lanes), {}, &lines);
    CHECK(c.requests == lines.size());
    std::set<std::int64_t> distinct;
    for (const LineSectors& one : lines) distinct.insert(one.line);
    CHECK(c.lines == distinct.size());
    CHECK(std::is_sorted(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.line < b.line; }));
    int sectors = 0, bytes = 0;
    for (const LineSectors& one : lines) {
      sectors += std::popcount(unsigned{one.sectors});
      bytes += one.bytes;
    }
    CHECK(c.sectors == sectors);
    CHECK(bytes == 16 * std::popcount(lanes));
    return std::tuple(int{c.requests}, int{c.sectors}, int{c.tag_sectors});
  };
  using Counts = std::tuple<int, int, int>;  // requests, sectors, sectors looked up
  const auto row = [](int begin) { return [begin](int lane) { return begin + lane * 16; }; };
  CHECK(copy(row(0)) == Counts{4, 16, 16});
  CHECK(copy(row(32)) == Counts{8, 16, 16});        // eight lanes at a time
  CHECK(copy(row(16)) == Counts{12, 32, 20});       // first sectors, second ones and the next line's
  CHECK(copy(row(16), 0b1111) == Counts{2, 4, 2});  // 64 bytes
  CHECK(copy(row(16), 0b0001) == Counts{1, 1, 1});  // what is not there comes as zeros
  CHECK(copy(row(0), 0b0110) == Counts{2, 2, 2});   // an upper half, and a lower one
  // The first lanes of a row (kernels/micro copy_parts).
  CHECK(copy(row(0), 0b11111) == Counts{2, 3, 3});
  CHECK(copy(row(0), (1 << 13) - 1) == Counts{3, 7, 7});
  CHECK(copy(row(48), (1 << 13) - 1) == Counts{6, 13, 8});
  CHECK(copy(row(112), 0b1111) == Counts{3, 4, 3});
  CHECK(copy(row(112), 0b11111) == Counts{3, 5, 4});
  CHECK(copy(row(112), (1 << 13) - 1) == Counts{6, 13, 9});
  CHECK(copy([](int lane) { return lane / 4 * 1024 + lane % 4 * 16; }) == Counts{8, 16, 16});
  CHECK(copy([](int lane) { return lane * 1024; }) == Counts{32, 32, 32});
  CHECK(copy([](int lane) { return (lane ^ 1) * 16; }) == Counts{4, 16, 16});  // swizzled
  // Rows a KiB apart that begin 16, 48 and 112 bytes after a line (kernels/micro copy_requests).
  const auto rows = [](int bytes, int begin) {
    return [=](int lane) { return lane / (bytes / 16) * 1024 + lane % (bytes / 16) * 16 + begin; };
  };
  CHECK(copy(rows(32, 16)) == Counts{32, 32, 16});
  CHECK(copy(rows(32, 112)) == Counts{32, 32, 32});
  CHECK(copy(rows(64, 16)) == Counts{16, 32, 16});
  CHECK(copy(rows(64, 112)) == Counts{24, 32, 24});
  CHECK(copy(rows(128, 48)) == Counts{16, 32, 20});
  CHECK(copy(rows(128, 112)) == Counts{12, 32, 20});
  CHECK(copy(rows(256, 32)) == Counts{8, 16, 16});
}

TEST_CASE("a box is the lines and sectors of its rows") {
  // Every byte of every box, one by one.
  const struct {
    std::int32_t row, rows, pitch, planes, plane_pitch;
    int base;
  } boxes[] = {{128, 64, 8192, 1, 0, 0},      {128, 64, 128, 1, 0, 0},   {32, 8, 48, 1, 0, 16},
               {128, 5, 1008, 3, 65536, 112}, {16, 100, 16, 2, 1600, 0}, {256, 3, 4096, 1, 0, 96},
               {16, 1, 0, 1, 0, 64}};
  for (const auto& b : boxes) {
    AccessPattern box;
    box.kind = MemoryKind::AsyncCopy;
    box.space = MemorySpace::Global;
    box.lanes = 7;
    box.base_offset = static_cast<std::uint8_t>(b.base);
    box.offsets[0] = b.row;
    box.offsets[1] = b.rows;
    box.offsets[2] = b.planes;
    box.offsets[kBoxPitch + 1] = b.pitch;
    box.offsets[kBoxPitch + 2] = b.plane_pitch;
    REQUIRE(is_box(box));
    std::map<std::int64_t, std::pair<unsigned, int>> expected;
    std::set<std::int64_t> bytes;
    for (std::int64_t z = 0; z < b.planes; ++z)
      for (std::int64_t y = 0; y < b.rows; ++y)
        for (std::int64_t x = 0; x < b.row; ++x) bytes.insert(b.base + z * b.plane_pitch + y * b.pitch + x);
    for (const std::int64_t byte : bytes) {
      auto& [sectors, count] = expected[byte / kLineBytes];
      sectors |= 1u << (byte / kSectorBytes % 4);
      ++count;
    }
    const auto check = [&] {
      std::vector<LineSectors> lines;
      const CoalescedCounts counts = coalesce(box, {}, &lines);
      REQUIRE(lines.size() == expected.size());
      CHECK(counts.lines == expected.size());
      std::size_t i = 0;
      int sectors = 0;
      for (const auto& [line, what] : expected) {
        CHECK(lines[i].line == line);
        CHECK(lines[i].sectors == what.first);
        CHECK(lines[i].bytes == what.second);
        sectors += std::popcount(what.first);
        ++i;
      }
      CHECK(counts.sectors == sectors);
      CHECK(counts.wavefronts == 0);
    };
    const bool one_run = static_cast<std::int64_t>(bytes.size()) == *bytes.rbegin() - *bytes.begin() + 1;
    if (one_run) check();
    box.kind = MemoryKind::Store;
    check();
    if (one_run) continue;
    // What is read: for each row and line a request for the sectors that the row has whole, and one for each other.
    std::vector<std::tuple<std::int64_t, unsigned, int>> wanted, asked;
    for (std::int64_t z = 0; z < b.planes; ++z)
      for (std::int64_t y = 0; y < b.rows; ++y) {
        std::map<std::int64_t, int> of_sector, whole_of_line;
        for (std::int64_t x = 0; x < b.row; ++x)
          ++of_sector[(b.base + z * b.plane_pitch + y * b.pitch + x) / kSectorBytes];
        for (const auto& [sector, count] : of_sector)
          if (count == kSectorBytes)
            whole_of_line[sector / 4] |= 1 << sector % 4;
          else
            wanted.emplace_back(sector / 4, 1u << sector % 4, count);
        for (const auto& [line, mask] : whole_of_line)
          wanted.emplace_back(line, mask, kSectorBytes * std::popcount(static_cast<unsigned>(mask)));
      }
    box.kind = MemoryKind::AsyncCopy;
    std::vector<LineSectors> lines;
    const CoalescedCounts counts = coalesce(box, {}, &lines);
    CHECK(counts.lines == wanted.size());
    CHECK(counts.wavefronts == 0);
    CHECK(std::is_sorted(lines.begin(), lines.end(), [](const auto& p, const auto& q) { return p.line < q.line; }));
    for (const LineSectors& part : lines) asked.emplace_back(part.line, part.sectors, part.bytes);
    std::sort(wanted.begin(), wanted.end());
    std::sort(asked.begin(), asked.end());
    CHECK(asked == wanted);
  }
}

TEST_CASE("records of barriers and boxes hold what was put into them") {
  PhaseRecord arrive;
  arrive.action = PhaseRecord::Action::Arrive;
  arrive.leaves = true;
  arrive.barrier = 0x3fff8;
  arrive.arrivals = 0xfffff;
  arrive.bytes = -(1 << 20) + 1;
  CHECK(PhaseRecord::of(arrive.packed()) == arrive);
  arrive.bytes = (1 << 20) - 1;
  CHECK(PhaseRecord::of(arrive.packed()) == arrive);
  PhaseRecord await;
  await.action = PhaseRecord::Action::Await;
  await.barrier = 8;
  await.phase = 0xffffffff;
  CHECK(PhaseRecord::of(await.packed()) == await);
  Access record;
  record.base = BoxTarget{0x38000, 0x3fff8, 0x20000}.packed();
  const BoxTarget target = BoxTarget::of(record);
  CHECK(target.shared == 0x38000);
  CHECK(target.barrier == 0x3fff8);
  CHECK(target.bytes == 0x20000);
}

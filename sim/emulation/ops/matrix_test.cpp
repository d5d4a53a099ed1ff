// Matrix instructions against Eigen, with fragments laid out as the PTX manual's figures of mma.sync say.
#include <Eigen/Dense>
#include <bit>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "emulation/machine/float_bits.h"
#include "emulation/test_support.h"

using namespace forewarp;
using namespace forewarp::test;
using forewarp::emulation::Half;

namespace {

using Matrix = Eigen::MatrixXd;
using Words = std::vector<std::uint32_t>;

struct Place {
  int row, column;
};
/// Where element i of a lane is; g = lane / 4 and t = lane % 4, as in the manual.
using Where = std::function<Place(int g, int t, int i)>;

struct Side {
  int elements;  ///< of a lane
  int bits;
  Where where;
  std::function<std::uint64_t(double)> encode;
  std::function<double(std::uint64_t)> decode;
};

int registers(const Side& side) { return side.elements * side.bits / 32; }

/// Register r of lane l is word 32 r + l.
Words pack(const Matrix& m, const Side& side) {
  Words words(static_cast<std::size_t>(registers(side)) * kWarpLanes);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int i = 0; i < side.elements; ++i) {
      const Place at = side.where(lane / 4, lane % 4, i);
      const std::uint64_t raw = side.encode(m(at.row, at.column));
      const int bit = i * side.bits;
      words[static_cast<std::size_t>(bit / 32 * kWarpLanes + lane)] |= static_cast<std::uint32_t>(raw) << bit % 32;
      if (side.bits == 64) words[static_cast<std::size_t>((bit / 32 + 1) * kWarpLanes + lane)] = raw >> 32;
    }
  }
  return words;
}

Matrix unpack(const Words& words, const Side& side, int rows, int columns) {
  Matrix m(rows, columns);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int i = 0; i < side.elements; ++i) {
      const Place at = side.where(lane / 4, lane % 4, i);
      const int bit = i * side.bits;
      std::uint64_t raw = words[static_cast<std::size_t>(bit / 32 * kWarpLanes + lane)] >> bit % 32;
      if (side.bits == 64)
        raw |= std::uint64_t{words[static_cast<std::size_t>((bit / 32 + 1) * kWarpLanes + lane)]} << 32;
      m(at.row, at.column) = side.decode(raw);
    }
  }
  return m;
}

std::uint64_t half_bits(double v) { return Half::encode(v); }
std::uint64_t brain_bits(double v) { return std::bit_cast<std::uint32_t>(static_cast<float>(v)) >> 16; }
std::uint64_t single_bits(double v) { return std::bit_cast<std::uint32_t>(static_cast<float>(v)); }
std::uint64_t double_bits(double v) { return std::bit_cast<std::uint64_t>(v); }
std::uint64_t byte_bits(double v) { return static_cast<std::uint8_t>(static_cast<int>(v)); }
std::uint64_t nibble_bits(double v) { return static_cast<std::uint8_t>(static_cast<int>(v)) & 15u; }
std::uint64_t word_bits(double v) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(v)); }
double half_value(std::uint64_t raw) { return Half::decode(static_cast<std::uint32_t>(raw) & 0xffffu); }
double single_value(std::uint64_t raw) { return std::bit_cast<float>(static_cast<std::uint32_t>(raw)); }
double word_value(std::uint64_t raw) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(raw)); }
double double_value(std::uint64_t raw) { return std::bit_cast<double>(raw); }

// Figures of "Matrix Fragments for mma.m16n8k16" and its relatives.
Place sum16(int g, int t, int i) { return {i < 2 ? g : g + 8, t * 2 + (i & 1)}; }
Place sum8(int g, int t, int i) { return {g, t * 2 + i}; }

/// Small whole numbers, so that every sum is exact in every format.
Matrix numbers(int rows, int columns, int seed, int low, int high) {
  Matrix m(rows, columns);
  unsigned state = static_cast<unsigned>(seed);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      state = state * 1664525u + 1013904223u;
      m(r, c) = low + static_cast<int>((state >> 8) % static_cast<unsigned>(high - low + 1));
    }
  return m;
}

std::string hex(int value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

/// Runs `opcode` D, A, B, C on fragments in R16.., R24.., R28.. and returns D.
Words run(const std::string& opcode, const Words& a, const Words& b, const Words& c, int sums,
          const std::string& sources = "R16, R24, R28") {
  std::string body = "S2R R0, SR_TID.X\nMOV R1, 0x4\n";
  int loaded = 0;
  const auto load = [&](int first, std::size_t count) {
    for (std::size_t r = 0; r < count / kWarpLanes; ++r, ++loaded) {
      body += "IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160]\nLDG.E R" + std::to_string(first + static_cast<int>(r)) +
              ", [R2.64+" + hex(loaded * 128) + "]\n";
    }
  };
  load(16, a.size());
  load(24, b.size());
  load(28, c.size());
  body += opcode + " R32, " + sources + "\n";
  for (int r = 0; r < sums; ++r)
    body += "IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x168]\nSTG.E [R2.64+" + hex(r * 128) + "], R" + std::to_string(32 + r) +
            "\n";
  Bench bench(body + "EXIT\n");
  Words in = a;
  in.insert(in.end(), b.begin(), b.end());
  in.insert(in.end(), c.begin(), c.end());
  bench.buffers = {std::vector<std::uint64_t>(in.size() / 2 + 1), std::vector<std::uint64_t>(16 * kWarpLanes)};
  std::memcpy(bench.buffers[0].data(), in.data(), in.size() * 4);
  bench.run();
  Words out(static_cast<std::size_t>(sums) * kWarpLanes);
  std::memcpy(out.data(), bench.buffers[1].data(), out.size() * 4);
  return out;
}

void check(const std::string& opcode, int m, int k, int low, int high, const Side& a, const Side& b, const Side& sum) {
  INFO(opcode);
  const Matrix ma = numbers(m, k, 1, low, high), mb = numbers(k, 8, 2, low, high), mc = numbers(m, 8, 3, -9, 9);
  const Words d = run(opcode, pack(ma, a), pack(mb, b), pack(mc, sum), registers(sum));
  CHECK(unpack(d, sum, m, 8) == ma * mb + mc);
}

}  // namespace

TEST_CASE("products of halves", "[matrix]") {
  const Where a16 = [](int g, int t, int i) {
    return Place{i < 2 || (i >= 4 && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  };
  const Where b16 = [](int g, int t, int i) { return Place{t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g}; };
  const Where a8 = [](int g, int t, int i) { return Place{i < 2 ? g : g + 8, t * 2 + (i & 1)}; };
  const Where b8 = [](int g, int t, int i) { return Place{t * 2 + i, g}; };
  const Side single{4, 32, sum16, single_bits, single_value}, half{4, 16, sum16, half_bits, half_value};
  const Side ha{8, 16, a16, half_bits, {}}, hb{4, 16, b16, half_bits, {}};
  check("HMMA.16816.F32", 16, 16, -4, 4, ha, hb, single);
  check("HMMA.16816.F16", 16, 16, -4, 4, ha, hb, half);
  check("HMMA.16816.F32.BF16", 16, 16, -4, 4, {8, 16, a16, brain_bits, {}}, {4, 16, b16, brain_bits, {}}, single);
  check("HMMA.1688.F32", 16, 8, -4, 4, {4, 16, a8, half_bits, {}}, {2, 16, b8, half_bits, {}}, single);
}

TEST_CASE("products of TF32", "[matrix]") {
  const Where a8 = [](int g, int t, int i) { return Place{i % 2 == 0 ? g : g + 8, i < 2 ? t : t + 4}; };
  const Where b8 = [](int g, int t, int i) { return Place{i == 0 ? t : t + 4, g}; };
  const Where a4 = [](int g, int t, int i) { return Place{i == 0 ? g : g + 8, t}; };
  const Where b4 = [](int g, int t, int) { return Place{t, g}; };
  const Side single{4, 32, sum16, single_bits, single_value};
  // The low 13 bits are not looked at.
  const auto bits = [](double v) { return single_bits(v) | 0x1fffu; };
  check("HMMA.1688.F32.TF32", 16, 8, -4, 4, {4, 32, a8, bits, {}}, {2, 32, b8, bits, {}}, single);
  check("HMMA.1684.F32.TF32", 16, 4, -4, 4, {2, 32, a4, bits, {}}, {1, 32, b4, bits, {}}, single);
}

TEST_CASE("products of integers", "[matrix]") {
  const Where a32 = [](int g, int t, int i) {
    return Place{i < 4 || (i >= 8 && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  };
  const Where b32 = [](int g, int t, int i) { return Place{t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g}; };
  const Where a16 = [](int g, int t, int i) { return Place{i < 4 ? g : g + 8, t * 4 + (i & 3)}; };
  const Where b16 = [](int g, int t, int i) { return Place{t * 4 + i, g}; };
  const Where a8 = [](int g, int t, int i) { return Place{g, t * 4 + i}; };
  const Where a64 = [](int g, int t, int i) {
    return Place{i < 8 || (i >= 16 && i < 24) ? g : g + 8, t * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
  };
  const Where b64 = [](int g, int t, int i) { return Place{t * 8 + (i & 7) + (i >= 8 ? 32 : 0), g}; };
  const Side word{4, 32, sum16, word_bits, word_value}, word8{2, 32, sum8, word_bits, word_value};
  check("IMMA.16832.S8.S8", 16, 32, -128, 127, {16, 8, a32, byte_bits, {}}, {8, 8, b32, byte_bits, {}}, word);
  check("IMMA.16832.U8.U8", 16, 32, 0, 255, {16, 8, a32, byte_bits, {}}, {8, 8, b32, byte_bits, {}}, word);
  check("IMMA.16816.S8.S8", 16, 16, -128, 127, {8, 8, a16, byte_bits, {}}, {4, 8, b16, byte_bits, {}}, word);
  check("IMMA.8816.S8.S8", 8, 16, -128, 127, {4, 8, a8, byte_bits, {}}, {4, 8, b16, byte_bits, {}}, word8);
  check("IMMA.16864.S4.S4", 16, 64, -8, 7, {32, 4, a64, nibble_bits, {}}, {16, 4, b64, nibble_bits, {}}, word);
}

TEST_CASE("products of doubles", "[matrix]") {
  const Where a = [](int g, int t, int) { return Place{g, t}; };
  const Where b = [](int g, int t, int) { return Place{t, g}; };
  check("DMMA.884", 8, 4, -1000, 1000, {1, 64, a, double_bits, {}}, {1, 64, b, double_bits, {}},
        {2, 64, sum8, double_bits, double_value});
  const Side left{1, 64, a, double_bits, {}}, right{1, 64, b, double_bits, {}},
      sum{2, 64, sum8, double_bits, double_value};
  const Matrix ma = numbers(8, 4, 1, -9, 9), mb = numbers(4, 8, 2, -9, 9), mc = numbers(8, 8, 3, -9, 9);
  const auto product = [&](const std::string& sources) {
    return unpack(run("DMMA.884", pack(ma, left), pack(mb, right), pack(mc, sum), 4, sources), sum, 8, 8);
  };
  CHECK(product("-R16, R24, R28") == mc - ma * mb);
  CHECK(product("R16, -R24, -R28") == -(ma * mb) - mc);
}

TEST_CASE("eight rows of halves change places with their columns", "[matrix]") {
  Words in(kWarpLanes);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane)
    in[lane] = (lane / 4 * 8 + lane % 4 * 2) | (lane / 4 * 8 + lane % 4 * 2 + 1) << 16;
  Bench bench(
      "S2R R0, SR_TID.X\nMOV R1, 0x4\nIMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160]\nLDG.E R4, [R2.64]\n"
      "MOVM.16.MT88 R5, R4\nSTG.E [R2.64], R5\nEXIT\n");
  bench.buffers = {std::vector<std::uint64_t>(16)};
  std::memcpy(bench.buffers[0].data(), in.data(), 128);
  bench.run();
  Words out(kWarpLanes);
  std::memcpy(out.data(), bench.buffers[0].data(), 128);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    const std::uint32_t row = lane / 4, column = lane % 4 * 2;
    CHECK(out[lane] == (column * 8 + row | ((column + 1) * 8 + row) << 16));
  }
}

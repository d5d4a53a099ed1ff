// Products of matrices against what an H200 made of the same registers: layouts of the fragments, of metadata and their
// selector, and sums (testdata/fragments_h200.txt).
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "emulation/machine/float_bits.h"
#include "emulation/test_support.h"

using namespace forewarp;
using namespace forewarp::test;

namespace {

using Words = std::vector<std::uint32_t>;

struct Record {
  std::string opcode, selector, kind;
  Words in;   ///< A, B, C and metadata: register after register, a word a lane
  Words out;  ///< D
  int a = 0, b = 0, sums = 0;
};

std::vector<Record> records() {
  std::ifstream file(FOREWARP_SOURCE_DIR "/sim/emulation/testdata/fragments_h200.txt");
  std::vector<Record> found;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream text(line);
    Record r;
    text >> r.opcode >> r.selector >> r.kind >> r.a >> r.b >> r.sums >> std::hex;
    Words words;
    for (std::uint32_t w; text >> w;) words.push_back(w);
    const auto split = words.end() - r.sums * kWarpLanes;
    r.in.assign(words.begin(), split);
    r.out.assign(split, words.end());
    found.push_back(std::move(r));
  }
  return found;
}

std::string hex(int value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

/// A in R16.., B in R32.., C in R40.., metadata in R48, D in R56...
Words run(const Record& r) {
  std::string body = "S2R R0, SR_TID.X\nMOV R1, 0x4\n";
  const std::size_t registers = r.in.size() / kWarpLanes;
  for (std::size_t i = 0; i < registers; ++i) {
    const int n = static_cast<int>(i);
    const int to = n < r.a ? 16 + n : n < r.a + r.b ? 32 + n - r.a : n < r.a + r.b + r.sums ? 40 + n - r.a - r.b : 48;
    body +=
        "IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160]\nLDG.E R" + std::to_string(to) + ", [R2.64+" + hex(n * 128) + "]\n";
  }
  body += r.opcode + " R56, R16, R32, R40" + (r.selector == "-" ? "" : ", R48, 0x" + r.selector) + "\n";
  for (int i = 0; i < r.sums; ++i)
    body += "IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x168]\nSTG.E [R2.64+" + hex(i * 128) + "], R" + std::to_string(56 + i) +
            "\n";
  Bench bench(body + "EXIT\n");
  bench.buffers = {std::vector<std::uint64_t>(r.in.size() / 2 + 1), std::vector<std::uint64_t>(16 * kWarpLanes)};
  std::memcpy(bench.buffers[0].data(), r.in.data(), r.in.size() * 4);
  bench.run();
  Words out(r.out.size());
  std::memcpy(out.data(), bench.buffers[1].data(), out.size() * 4);
  return out;
}

/// The greatest difference of single or half sums.
double furthest(const Record& r, const Words& got) {
  const bool single = r.opcode.find("F32") != std::string::npos;
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (single) {
      most = std::max(most, std::fabs(double{std::bit_cast<float>(got[i])} - std::bit_cast<float>(r.out[i])));
      continue;
    }
    for (const int shift : {0, 16})
      most = std::max(most, std::fabs(emulation::Half::decode(got[i] >> shift & 0xffffu) -
                                      emulation::Half::decode(r.out[i] >> shift & 0xffffu)));
  }
  return most;
}

}  // namespace

TEST_CASE("matrix instructions leave what they leave on an H200", "[matrix]") {
  const std::vector<Record> all = records();
  REQUIRE(all.size() > 60);
  for (const Record& r : all) {
    INFO(r.opcode << " selector " << r.selector << " " << r.kind);
    const Words got = run(r);
    if (r.kind == "exact" || r.kind == "any") {
      CHECK(got == r.out);
      continue;
    }
    // Factors are at most 2 ("near") and 512 ("far"), sums of 64 products of them and of an addend at most 2^4 and
    // 2^17: the card keeps 23 bits, or 10 of halves.
    const bool single = r.opcode.find("F32") != std::string::npos;
    CHECK(furthest(r, got) <= std::ldexp(r.kind == "near" ? 256.0 : 16777216.0, single ? -23 : -10));
  }
}

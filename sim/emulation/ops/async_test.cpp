// Barriers in shared memory and products of warpgroups, in small programs.
#include <Eigen/Dense>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error.h"
#include "emulation/machine/float_bits.h"
#include "emulation/test_support.h"

using namespace forewarp::test;
using forewarp::InputError;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Thread t stores R20:R21 at 8 t of buffer 0; R4:R5 points to word t of buffer 1. UR4:UR5 is a barrier of `arrivals`.
Bench program(const std::string& body, u32 threads, u32 arrivals) {
  char barrier[96];
  std::snprintf(barrier, sizeof barrier, "UMOV UR4, 0x%x\nUMOV UR5, 0x%x\nUMOV UR6, 0x410\n",
                (0x100000u - arrivals) << 1, (0x100000u - arrivals) << 11);
  Bench bench(
      "S2R R0, SR_TID.X\nMOV R1, 0x8\nIMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160]\n"
      "IMAD.WIDE.U32 R4, R0, R1, c[0x0][0x168]\n" +
          std::string(barrier) + body + "\nSTG.E.64 [R2.64], R20\nEXIT\n",
      90);
  bench.block = {threads, 1, 1};
  bench.shared_bytes = 8192;
  bench.buffers = {std::vector<u64>(threads), std::vector<u64>(threads)};
  return bench;
}

std::string error_of(Bench& bench) {
  try {
    bench.run();
  } catch (const InputError& e) {
    return e.what();
  }
  return {};
}

// Warp 1 produces, so that warp 0, which runs first, has to wait.
const std::string kHandOver = R"(
    ISETP.LT.AND P0, PT, R0, 0x20, PT
    @!P0 BRA $ready
    SYNCS.EXCH.64 URZ, [UR6], UR4
  ready:
    BAR.SYNC.DEFER_BLOCKING 0x0
    MOV R9, 0x4
    @P0 BRA $consumer
    MOV R20, 0x7
    STS [RZ+0x440], R20
    ARRIVAL
    BRA $end
  consumer:
    SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR6], RZ
    @P1 LDS R20, [RZ+0x440]
  end:
)";

std::string hand_over(const std::string& arrival) {
  std::string text = kHandOver;
  return text.replace(text.find("ARRIVAL"), 7, arrival);
}

}  // namespace

TEST_CASE("who waits at a barrier in memory goes on when its phase is over", "[async]") {
  const std::string arrival =
      GENERATE(as<std::string>{}, "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR6], RZ",
               // Bytes that are announced hold the phase until they are complete.
               "SYNCS.ARRIVE.TRANS64 RZ, [UR6], R9\nSYNCS.ARRIVE.TRANS64.RED.A0TX RZ, [UR6], R9",
               "SYNCS.ARRIVE.TRANS64.RED.A0TR RZ, [UR6], R9\nSYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR6], RZ\n"
               "SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, [UR6], R9");
  Bench bench = program(hand_over(arrival), 64, 32);
  bench.run();
  for (const u64 word : bench.buffers[0]) CHECK(static_cast<u32>(word) == 7);
}

TEST_CASE("a phase that nobody ends is a deadlock, told by barrier", "[async]") {
  Bench few = program(hand_over("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR6], RZ"), 64, 33);
  const std::string text = error_of(few);
  INFO(text);
  for (const char* part : {"deadlock", "warp 0", "shared offset 0x10", "phase 0", "1 of 33 arrivals", "0 bytes"})
    CHECK(text.find(part) != std::string::npos);
  Bench bytes = program(hand_over("SYNCS.ARRIVE.TRANS64 RZ, [UR6], R9"), 64, 32);
  CHECK(error_of(bytes).find("128 bytes are missing") != std::string::npos);
  Bench many = program(hand_over("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR6], RZ"), 64, 31);
  CHECK(error_of(many).find("arrives 32 times") != std::string::npos);
  Bench none = program("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR6], RZ", 32, 1);
  CHECK(error_of(none).find("was not initialised") != std::string::npos);
}

TEST_CASE("a factor is read as its descriptor lays it out", "[async]") {
  // B[k][n] is 1 where k < n and A is ones, so that column n of the sums is n.
  const u32 span = GENERATE(0u, 32u, 64u, 128u);  // bytes that chunks are exchanged in
  const bool across = GENERATE(false, true);      // n runs along rows, not k
  constexpr u32 kStart = 0x400, kFar = 0x800;     // kFar: to the second half of k, where it is not beside the first
  const auto place = [&](u32 n, u32 k) {
    const u32 row = across ? k % 8 : n, along = across ? n : k;
    u32 at = kStart + row * (span == 0 ? 16 : span) + along % 8 * 2;
    if (across)
      at += k / 8 * kFar;
    else
      at += k / 8 * (span == 0 ? kFar : 16);
    return span == 0 ? at : at ^ ((at >> 7 & (span / 16 - 1)) << 4);
  };
  const u32 mode = span == 0 ? 0 : span == 128 ? 1 : span == 64 ? 2 : 3;
  // The far step is the leading offset without an exchange, the stride with one.
  const u32 low = kStart >> 4 | (span == 0 ? kFar >> 4 : 1) << 16, high = (span == 0 ? 0 : kFar >> 4) | mode << 30;
  char text[512];
  std::snprintf(text, sizeof text, R"(
    LDG.E.64 R6, [R4.64]
    STS.U16 [R6], R7
    UMOV UR10, 0x%x
    UMOV UR11, 0x%x
    MOV R28, 0x3c003c00
    MOV R29, 0x3c003c00
    MOV R30, 0x3c003c00
    MOV R31, 0x3c003c00
    BAR.SYNC.DEFER_BLOCKING 0x0
    WARPGROUP.ARRIVE
    HGMMA.64x8x16.F32 R24, R28, gdesc[UR8]%s, RZ, !UPT, gsb0
    WARPGROUP.DEPBAR.LE gsb0, 0x0
    MOV R20, R24
    MOV R21, R25
)",
                low, high, across ? ".tnspB" : "");
  Bench bench = program(text, 128, 1);
  for (u32 t = 0; t < 128; ++t) {
    const u32 n = t / 16, k = t % 16;
    bench.buffers[1][t] = place(n, k) | u64{k < n ? 0x3c00u : 0u} << 32;
  }
  bench.run();
  for (u32 t = 0; t < 128; ++t) {
    const u64 word = bench.buffers[0][t];
    const u32 column = t % 4 * 2;
    CHECK(std::bit_cast<float>(static_cast<u32>(word)) == static_cast<float>(column));
    CHECK(std::bit_cast<float>(static_cast<u32>(word >> 32)) == static_cast<float>(column + 1));
  }
}

namespace {

/// A type of factors: what a word of noise becomes, and what that is worth.
struct Type {
  const char* name;
  u32 bytes;
  u32 (*raw)(u32 noise);
  double (*value)(u32 raw);
};

double value_of_e4m3(u32 raw) {
  const int exponent = static_cast<int>(raw >> 3 & 15), fraction = static_cast<int>(raw & 7);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (raw & 0x80) != 0 ? -magnitude : magnitude;
}
double value_of_e5m2(u32 raw) {
  const int exponent = static_cast<int>(raw >> 2 & 31), fraction = static_cast<int>(raw & 3);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -16) : std::ldexp(4 + fraction, exponent - 17);
  return (raw & 0x80) != 0 ? -magnitude : magnitude;
}
double small(u32 noise) { return static_cast<double>(noise % 31) - 15; }

const Type kF16{"F16", 2, [](u32 noise) { return u32{forewarp::emulation::Half::encode(small(noise))}; },
                [](u32 raw) { return forewarp::emulation::Half::decode(raw); }};
const Type kBf16{"BF16", 2, [](u32 noise) { return u32{forewarp::emulation::Brain::encode(small(noise))}; },
                 [](u32 raw) { return forewarp::emulation::Brain::decode(raw); }};
const Type kTf32{"TF32", 4, [](u32 noise) { return std::bit_cast<u32>(static_cast<float>(small(noise))); },
                 [](u32 raw) { return static_cast<double>(std::bit_cast<float>(raw)); }};
const Type kS8{"S8", 1, [](u32 noise) { return noise & 0xff; },
               [](u32 raw) { return static_cast<double>(static_cast<std::int8_t>(raw)); }};
const Type kU8{"U8", 1, [](u32 noise) { return noise & 0xff; }, [](u32 raw) { return static_cast<double>(raw); }};
// No NaN and no infinity.
const Type kE4m3{"E4M3", 1, [](u32 noise) { return noise & 0xbe; }, value_of_e4m3};
const Type kE5m2{"E5M2", 1, [](u32 noise) { return noise & 0xbf; }, value_of_e5m2};

struct GroupProduct {
  std::string opcode;
  Type a, b;
  bool sparse = false;
};

constexpr u32 kRows = 64, kColumns = 8, kStepBytes = 32;  // of a row of A that one product takes

/// Rows of `bytes` along k, in spans of so many bytes: what a descriptor's mode calls 1 for 128, 2 for 64, 3 for 32.
u32 place(u32 start, u32 row, u32 byte, u32 span) {
  const u32 at = start + row * span + byte;
  return at ^ ((at >> 7 & (span / 16 - 1)) << 4);
}

}  // namespace

TEST_CASE("a warpgroup's product of every type equals Eigen's, swizzled and with A in either place", "[async]") {
  const GroupProduct product = GENERATE(
      GroupProduct{"HGMMA.64x8x16.F32", kF16, kF16}, GroupProduct{"HGMMA.64x8x16.F32.BF16", kBf16, kBf16},
      GroupProduct{"HGMMA.64x8x8.F32.TF32", kTf32, kTf32}, GroupProduct{"IGMMA.64x8x32.S8.S8", kS8, kS8},
      GroupProduct{"IGMMA.64x8x32.U8.S8", kU8, kS8}, GroupProduct{"QGMMA.64x8x32.F32.E4M3.E4M3", kE4m3, kE4m3},
      GroupProduct{"QGMMA.64x8x32.F32.E5M2.E4M3", kE5m2, kE4m3}, GroupProduct{"HGMMA.SP.64x8x32.F32", kF16, kF16, true},
      GroupProduct{"IGMMA.SP.64x8x64.S8.U8", kS8, kU8, true},
      GroupProduct{"QGMMA.SP.64x8x64.F32.E4M3.E5M2", kE4m3, kE5m2, true});
  const u32 span = GENERATE(32u, 64u, 128u);
  const bool registers = GENERATE(false, true);
  const u32 metadata = GENERATE(0x44444444u, 0xeeeeeeeeu);  // the first, or the last, two of every four
  if (product.sparse ? span == 32 : metadata != 0x44444444u) return;
  INFO(product.opcode << " span " << span << (registers ? " from registers" : ""));
  const u32 kept = kStepBytes / product.a.bytes, depth = product.sparse ? 2 * kept : kept;
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(kRows, depth), b(depth, kColumns);
  constexpr u32 kA = 0x400, kB = kA + kRows * 128;
  constexpr u32 kStores = 6, kThreads = 128;
  std::vector<u64> words(kStores * kThreads + 4 * kThreads, kB + 0x7fc);  // where nobody looks
  std::size_t next = 0;
  const auto factor = [&](u32 start, u32 rows, u32 count, const Type& type, auto&& keep) {
    for (u32 row = 0; row < rows; ++row) {
      for (u32 byte = 0; byte < count * type.bytes; byte += 4) {
        u32 word = 0;
        for (u32 i = 0; i < 4; i += type.bytes) {
          const u32 k = (byte + i) / type.bytes, raw = type.raw((row * 977 + k * 131 + start) * 2654435761u >> 20);
          word |= raw << i * 8;
          keep(row, k, type.value(raw));
        }
        words[next++] = place(start, row, byte, span) | u64{word} << 32;
        if (start != kA) continue;
        // ... and in the registers of a lane: rows 8 apart, then 16 bytes.
        const u32 lane = row % 8 * 4 + byte / 4 % 4, index = byte / 16 * 2 + row / 8 % 2;
        words[(kStores + index) * kThreads + row / 16 * 32 + lane] = word;
      }
    }
  };
  const u32 first = metadata == 0x44444444u ? 0 : 2;
  factor(kA, kRows, kept, product.a,
         [&](u32 row, u32 k, double v) { a(row, product.sparse ? k / 2 * 4 + first + k % 2 : k) = v; });
  factor(kB, kColumns, depth, product.b, [&](u32 row, u32 k, double v) { b(k, row) = v; });
  const u32 mode = span == 128 ? 1 : span == 64 ? 2 : 3;
  const u32 high = span * 8 >> 4 | mode << 30;  // 8 rows to the next 8
  char text[256];
  std::snprintf(text, sizeof text, "UMOV UR8, 0x%x\nUMOV UR9, 0x%x\nUMOV UR10, 0x%x\nUMOV UR11, 0x%x\nMOV R36, 0x%x\n",
                kA >> 4, high, kB >> 4, high, metadata);
  std::string body = text;
  for (u32 i = 0; i < kStores + 4; ++i) {
    const bool store = i < kStores;
    const u32 into = store ? 6 : 28 + i - kStores;
    std::snprintf(text, sizeof text, "LDG.E%s R%u, [R4.64+0x%x]\n%s", store ? ".64" : "", into, i * kThreads * 8,
                  store ? "STS [R6], R7\n" : "");
    body += text;
  }
  const bool selects = product.sparse && product.a.bytes > 1;
  body += "BAR.SYNC.DEFER_BLOCKING 0x0\nWARPGROUP.ARRIVE\n" + product.opcode + " R24, " + (registers ? "R28, " : "") +
          "gdesc[UR8], RZ, !UPT, " + (product.sparse ? "R36, " : "") + (selects ? "0x0, " : "") +
          "gsb0\nWARPGROUP.DEPBAR.LE gsb0, 0x0\nMOV R20, R24\nMOV R21, R25\n"
          "STG.E.64 [R2.64+0x400], R26\n";
  Bench bench = program(body, kThreads, 1);
  bench.shared_bytes = kB + 0x800 - 0x400;
  bench.buffers[0].resize(2 * kThreads);
  bench.buffers[1] = words;
  bench.run();
  const Eigen::MatrixXd expected = a * b;
  CHECK(expected.cwiseAbs().maxCoeff() > 0);
  int wrong = 0;
  for (u32 t = 0; t < kThreads; ++t) {
    for (u32 i = 0; i < 4; ++i) {
      const u64 pair = bench.buffers[0][t + i / 2 * kThreads];
      const auto raw = static_cast<u32>(pair >> i % 2 * 32);
      const double value = product.opcode[0] == 'I' ? static_cast<double>(static_cast<std::int32_t>(raw))
                                                    : static_cast<double>(std::bit_cast<float>(raw));
      const double sum = expected(t / 32 * 16 + t % 32 / 4 + i / 2 * 8, t % 4 * 2 + i % 2);
      wrong += value != static_cast<double>(static_cast<float>(sum));
    }
  }
  CHECK(wrong == 0);
}

namespace {

/// Thread t puts word t of buffer 1 into shared memory; then the copy from there, at UR12, to buffer 0, at UR8.
Bench outward(const std::string& copy, const std::vector<u32>& there, const std::vector<u32>& brought) {
  Bench bench = program(
      "LDG.E.64 R6, [R4.64]\nIMAD.SHL.U32 R8, R0, 0x8, RZ\nSTS.64 [R8+0x400], R6\n"
      "ULDC.64 UR8, c[0x0][0x160]\nUMOV UR12, 0x400\nUMOV UR10, 0x4\n" +
          copy + "\nUTMACMDFLUSH\nDEPBAR.LE SB0, 0x0\nEXIT",
      32, 1);
  std::memcpy(bench.buffers[0].data(), there.data(), there.size() * 4);
  std::memcpy(bench.buffers[1].data(), brought.data(), brought.size() * 4);
  bench.run();
  return bench;
}

}  // namespace

TEST_CASE("stretches of shared memory are stored, or combined with what is there", "[async]") {
  struct One {
    const char* copy;
    u32 there, brought, left;
  };
  const One one = GENERATE(
      One{"UBLKCP.G.S [UR8], [UR12], UR10", 1, 7, 7}, One{"UBLKRED.G.S.ADD [UR8], [UR12], UR10", 0xffffffff, 3, 2},
      One{"UBLKRED.G.S.MIN.S32 [UR8], [UR12], UR10", 0xfffffffe, 3, 0xfffffffe},
      One{"UBLKRED.G.S.MAX [UR8], [UR12], UR10", 0xfffffffe, 3, 0xfffffffe},
      One{"UBLKRED.G.S.INC [UR8], [UR12], UR10", 5, 5, 0}, One{"UBLKRED.G.S.XOR [UR8], [UR12], UR10", 6, 3, 5},
      One{"UBLKRED.G.S.ADD.F32.RN [UR8], [UR12], UR10", 0x3f800000, 0x3f000000, 0x3fc00000},
      One{"UBLKRED.G.S.ADD.F16.RN [UR8], [UR12], UR10", 0x3c004000, 0x3c003c00, 0x40004200},
      One{"UBLKRED.G.S.MAX.BF16.RN [UR8], [UR12], UR10", 0xbf803f80, 0x3f804000, 0x3f804000},
      One{"UBLKPF.L2 [UR8], UR10", 1, 7, 1});
  INFO(one.copy);
  const Bench bench = outward(one.copy, std::vector<u32>(64, one.there), std::vector<u32>(64, one.brought));
  for (std::size_t i = 0; i < 32; ++i) {
    // Four times 16 bytes.
    const u32 expected = i < 8 ? one.left : one.there;
    CHECK(bench.buffers[0][i] == (expected | u64{expected} << 32));
  }
}

TEST_CASE("sums of 64 bits are combined whole", "[async]") {
  std::vector<u32> there(64), brought(64);
  for (std::size_t i = 0; i < 64; i += 2) there[i] = 0xffffffff, brought[i] = 1;
  const Bench bench = outward("UBLKRED.G.S.ADD.U64 [UR8], [UR12], UR10", there, brought);
  for (std::size_t i = 0; i < 8; ++i) CHECK(bench.buffers[0][i] == u64{1} << 32);
  CHECK(bench.buffers[0][8] == 0xffffffff);
}

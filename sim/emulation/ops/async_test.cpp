// Barriers in shared memory and products of warpgroups, in small programs.
#include <bit>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "base/error.h"
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

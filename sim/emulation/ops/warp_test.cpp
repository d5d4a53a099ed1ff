// Lanes together, memory of every width, atomics, special registers.
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.h"
#include "emulation/machine/float_bits.h"
#include "emulation/test_support.h"

using namespace forewarp::test;
using forewarp::InputError;
using forewarp::kWarpLanes;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

u32 low(u64 v) { return static_cast<u32>(v); }
u32 high(u64 v) { return static_cast<u32>(v >> 32); }

Lanes numbered(u64 first) {
  Lanes lanes;
  for (std::size_t i = 0; i < kWarpLanes; ++i) lanes[i] = first + i;
  return lanes;
}

/// The i-th 32-bit word of a buffer.
u32 word(const std::vector<u64>& v, std::size_t i) { return static_cast<u32>(v[i / 2] >> (i % 2 * 32)); }

}  // namespace

TEST_CASE("shuffles follow PTX", "[warp]") {
  const Inputs in{numbered(100), numbered(0), {}};
  const Outputs butterfly = execute("SHFL.BFLY P0, R20, R10, 0x5, 0x1f\nSHFL.IDX PT, R21, R10, 0x3, 0x181f", in);
  const Outputs up = execute("SHFL.UP P0, R20, R10, 0x3, RZ\nSHFL.DOWN P1, R21, R10, 0x2, 0x1c1f", in);
  const Outputs by_lane = execute("SHFL.IDX P0, R20, R10, R12, 0x1f\nSHFL.BFLY P1, R21, R10, 0x10, 0xf", in);
  for (u32 i = 0; i < 32; ++i) {
    INFO("lane " << i);
    CHECK(low(butterfly.d[i]) == 100 + (i ^ 5));
    CHECK(high(butterfly.d[i]) == 100 + (i / 8 * 8 + 3));  // segments of 8
    CHECK(low(up.d[i]) == (i >= 3 ? 100 + i - 3 : 100 + i));
    CHECK((up.p >> i & 1u) == (i >= 3));
    CHECK(high(up.d[i]) == (i % 4 < 2 ? 100 + i + 2 : 100 + i));  // segments of 4
    CHECK((up.q >> i & 1u) == (i % 4 < 2));
    CHECK(low(by_lane.d[i]) == 100 + i);
    CHECK((by_lane.q >> i & 1u) == ((i ^ 16) <= 15));
  }
  CHECK(butterfly.p == ~0u);
}

TEST_CASE("votes, matches, reductions and elections", "[warp]") {
  Lanes values;
  for (std::size_t i = 0; i < kWarpLanes; ++i) values[i] = i % 3 == 0 ? 7u : 0xffffff00u + i;
  const Inputs in{values, {}, {}};
  const Outputs votes = execute("VOTE.ANY R20, P0, P2\nVOTE.ALL R21, P1, P3", in);
  const Outputs match = execute("MATCH.ANY R20, R10\nMATCH.ALL P0, R21, R10\nMATCH.ALL P1, R22, R12", in);
  const Outputs reduce = execute(
      "REDUX.SUM UR4, R10\nREDUX.MIN.S32 UR5, R10\nREDUX.MAX UR6, R10\nREDUX.XOR UR7, R10\nIADD3 R20, RZ, UR4, RZ\n"
      "IADD3 R20, R20, UR5, RZ\nIADD3 R21, RZ, UR6, RZ\nIADD3 R21, R21, UR7, RZ",
      in);
  const Outputs rest = execute("VOTEU.ANY UR4, UPT, P3\nMOV R20, UR4\nS2R R21, SR_LTMASK\nELECT P0, UR5, PT", in);
  u32 threes = 0, sum = 0, least = 0x7fffffff, most = 0, all = 0;
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    const u32 v = low(values[i]);
    threes |= i % 3 == 0 ? 1u << i : 0u;
    sum += v;
    most = std::max(most, v);
    least = static_cast<u32>(std::min(static_cast<std::int32_t>(least), static_cast<std::int32_t>(v)));
    all ^= v;
  }
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    CHECK(low(votes.d[i]) == 0x55555555u);
    CHECK(high(votes.d[i]) == 0x0000ffffu);
    CHECK(low(match.d[i]) == (i % 3 == 0 ? threes : 1u << i));
    CHECK(high(match.d[i]) == 0u);
    CHECK(low(reduce.d[i]) == sum + least);
    CHECK(high(reduce.d[i]) == most + all);
    CHECK(low(rest.d[i]) == 0x0000ffffu);
    CHECK(high(rest.d[i]) == (1u << i) - 1);
  }
  CHECK(votes.p == ~0u);
  CHECK(votes.q == 0u);
  CHECK(match.p == 0u);
  CHECK(match.q == ~0u);
  CHECK(rest.p == 1u);
}

TEST_CASE("thread and block indices", "[warp]") {
  Bench bench(R"(
    S2R R0, SR_TID.X
    S2R R1, SR_TID.Y
    S2R R2, SR_TID.Z
    S2R R3, SR_CTAID.X
    S2UR UR4, SR_CTAID.Y
    LEA R4, R1, R0, 0x8
    LEA R4, R2, R4, 0x10
    IMAD R5, R1, c[0x0][0x0], R0
    IMAD R6, R2, c[0x0][0x0], RZ
    IMAD R5, R6, c[0x0][0x4], R5
    MOV R7, UR4
    IMAD R8, R7, c[0x0][0xc], R3
    IMAD R5, R8, 0x30, R5
    MOV R9, 0x8
    IMAD.WIDE R10, R5, R9, c[0x0][0x160]
    MOV R5, R8
    STG.E.64 [R10.64], R4
    EXIT
)");
  bench.block = {4, 3, 4};
  bench.grid = {3, 2, 1};
  bench.buffers = {std::vector<u64>(6 * 48)};
  bench.run();
  for (u32 block = 0; block < 6; ++block) {
    for (u32 t = 0; t < 48; ++t)
      CHECK(bench.buffers[0][block * 48 + t] == ((t % 4 | t / 4 % 3 << 8 | t / 12 << 16) | u64{block} << 32));
  }
}

TEST_CASE("loads and stores of every width", "[memory]") {
  Bench bench(R"(
    S2R R0, SR_TID.X
    MOV R1, 0x10
    IMAD.WIDE R2, R0, R1, c[0x0][0x160]
    IMAD.WIDE R4, R0, R1, c[0x0][0x168]
    LDG.E.128 R8, [R2.64]
    STS.128 [R0.X16+0x20], R8
    LDS.U8 R12, [R0.X16+0x21]
    LDS.S8 R13, [R0.X16+0x21]
    LDS.U16 R14, [R0.X16+0x22]
    LDS.S16 R15, [R0.X16+0x22]
    STG.E.128 [R4.64], R12
    LDS.64 R16, [R0.X16+0x28]
    STL.64 [R0.X8+0x10], R16
    LDL R18, [R0.X8+0x14]
    LDL.U8 R19, [R0.X8+0x10]
    STG.E.U8 [R4.64+0x200], R18
    STG.E.U16 [R4.64+0x202], R19
    STG.E.64 [R4.64+0x208], R18
    LDG.E.S8 R20, [R2.64+0x3]
    LDG.E.U16 R21, [R2.64+0x6]
    STG.E.64 [R4.64+0x400], R20
    EXIT
)");
  bench.shared_bytes = 0x20 + 32 * 16;
  bench.buffers = {std::vector<u64>(64), std::vector<u64>(3 * 64)};
  for (std::size_t i = 0; i < 64; ++i) bench.buffers[0][i] = 0x9e3779b97f4a7c15ull * (i + 1);
  bench.run();
  std::array<std::uint8_t, 512> in;
  std::memcpy(in.data(), bench.buffers[0].data(), 512);
  const auto word = [&](std::size_t at, std::size_t bytes) {
    u32 v = 0;
    for (std::size_t i = 0; i < bytes; ++i) v |= u32{in[at + i]} << (8 * i);
    return v;
  };
  for (std::size_t i = 0; i < 32; ++i) {
    INFO("lane " << i);
    const u64 *first = &bench.buffers[1][2 * i], *second = &bench.buffers[1][64 + 2 * i],
              *third = &bench.buffers[1][128 + 2 * i];
    const std::size_t at = 16 * i;
    CHECK(low(first[0]) == word(at + 1, 1));
    CHECK(high(first[0]) == static_cast<u32>(std::int32_t{static_cast<std::int8_t>(in[at + 1])}));
    CHECK(low(first[1]) == word(at + 2, 2));
    CHECK(high(first[1]) == static_cast<u32>(std::int32_t{static_cast<std::int16_t>(word(at + 2, 2))}));
    CHECK((second[0] & 0xffu) == word(at + 12, 1));
    CHECK((second[0] >> 16 & 0xffffu) == word(at + 8, 1));
    CHECK(low(second[1]) == word(at + 12, 4));
    CHECK(high(second[1]) == word(at + 8, 1));
    CHECK(low(third[0]) == static_cast<u32>(std::int32_t{static_cast<std::int8_t>(in[at + 3])}));
    CHECK(high(third[0]) == word(at + 6, 2));
  }
}

TEST_CASE("generic addresses find their memory; constants can be indexed", "[memory]") {
  Bench bench(R"(
    S2R R0, SR_TID.X
    SHF.L.U32 R1, R0, 0x2, RZ
    MOV R30, 0x4
    IMAD.WIDE.U32 R2, R0, R30, c[0x0][0x160]
    LDC R20, c[0x3][R1]
    IADD3 R4, P0, R1, c[0x0][0x18], RZ
    IADD3.X R5, RZ, c[0x0][0x1c], RZ, P0, !PT
    IADD3 R6, P0, R1, c[0x0][0x20], RZ
    IADD3.X R7, RZ, c[0x0][0x24], RZ, P0, !PT
    ISETP.LT.AND P1, PT, R0, 0xa, PT
    ISETP.LT.AND P2, PT, R0, 0x14, PT
    SEL R8, R4, R6, P1
    SEL R9, R5, R7, P1
    SEL R8, R8, R2, P2
    SEL R9, R9, R3, P2
    ST.E [R8.64], R20
    LDS R21, [R1]
    LDL R22, [R1]
    LD.E R23, [R8.64]
    QSPC.E.S P3, RZ, [R8]
    SEL R24, RZ, 0x1, !P3
    IMAD.WIDE.U32 R10, R0, R30, c[0x0][0x168]
    STG.E [R10.64], R21
    STG.E [R10.64+0x80], R22
    STG.E [R10.64+0x100], R23
    STG.E [R10.64+0x180], R24
    EXIT
)");
  bench.shared_bytes = 256;
  bench.buffers = {std::vector<u64>(16), std::vector<u64>(64)};
  forewarp::ConstantBank bank;
  bank.bank = 3;
  for (u32 i = 0; i < 32; ++i) {
    for (int b = 0; b < 4; ++b) bank.bytes.push_back(static_cast<std::uint8_t>((1000 + i) >> (8 * b)));
  }
  bench.constants = {bank};
  bench.run();
  for (std::size_t i = 0; i < 32; ++i) {
    INFO("lane " << i);
    CHECK(word(bench.buffers[1], i) == (i < 10 ? 1000 + i : 0));
    CHECK(word(bench.buffers[1], 32 + i) == (i >= 10 && i < 20 ? 1000 + i : 0));
    CHECK(word(bench.buffers[0], i) == (i >= 20 ? 1000 + i : 0));
    CHECK(word(bench.buffers[1], 64 + i) == 1000 + i);
    CHECK(word(bench.buffers[1], 96 + i) == (i < 10 ? 1u : 0u));
  }
}

TEST_CASE("atomics of several words work on each, or exchange them together", "[memory]") {
  Bench bench(R"(
    S2R R0, SR_TID.X
    MOV R1, 0x10
    IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x168]
    MOV R4, c[0x0][0x160]
    MOV R5, c[0x0][0x164]
    MOV R8, 0x3f800000
    MOV R9, 0x40000000
    MOV R10, 0x3f000000
    MOV R11, 0xbf800000
    RED.E.ADD.F32x4.FTZ.RN.STRONG.GPU [R4.64], R8
    ATOMG.E.ADD.F32x2.FTZ.RN.STRONG.GPU PT, R12, [R4.64+0x10], R8
    MOV R16, 0x3c004000
    MOV R17, 0x38003c00
    RED.E.ADD.F16x4.RN.STRONG.GPU [R4.64+0x20], R16
    RED.E.MAX.F16x4.RN.STRONG.GPU [R4.64+0x28], R16
    MOV R18, 0x3f804000
    MOV R19, 0x7fff0000
    RED.E.MIN.BF16x4.RN.STRONG.GPU [R4.64+0x30], R18
    MOV R20, R0
    MOV R21, 0x1
    MOV R22, 0x2
    MOV R23, 0x3
    ATOMG.E.EXCH.128.STRONG.GPU PT, R24, [R4.64+0x40], R20
    MOV R28, 0x1f
    MOV R29, 0x1
    MOV R30, 0x2
    MOV R31, 0x3
    ATOMG.E.CAS.128.STRONG.GPU PT, R32, [R4.64+0x40], R28, R8
    STG.E.128 [R2.64], R24
    STG.E.128 [R2.64+0x200], R32
    STG.E.64 [R2.64+0x400], R12
    EXIT
)");
  bench.buffers = {std::vector<u64>(10), std::vector<u64>(3 * 64)};
  bench.run();
  const auto& memory = bench.buffers[0];
  CHECK(memory[0] == 0x4280000042000000u);  // 64, 32
  CHECK(memory[1] == 0xc200000041800000u);  // -32, 16
  CHECK(memory[2] == 0x4280000042000000u);
  CHECK(memory[4] == 0x4c00500050005400u);  // 16, 32, 32, 64
  CHECK(memory[5] == 0x38003c003c004000u);
  CHECK(memory[6] == 0);  // zeros are less, and where one is not a number the other stays
  for (std::size_t i = 0; i < 32; ++i) {
    INFO("lane " << i);
    const auto& out = bench.buffers[1];
    CHECK(word(out, 4 * i) == (i == 0 ? 0 : i - 1));  // what the lane before left
    CHECK(word(out, 4 * i + 3) == (i == 0 ? 0u : 3u));
    CHECK(word(out, 128 + 4 * i) == (i == 0 ? 31u : 0x3f800000u));
    CHECK(word(out, 128 + 4 * i + 3) == (i == 0 ? 3u : 0xbf800000u));
    CHECK(word(out, 256 + 4 * i) == std::bit_cast<u32>(static_cast<float>(i)));
    CHECK(word(out, 256 + 4 * i + 1) == std::bit_cast<u32>(static_cast<float>(2 * i)));
  }
  CHECK(word(memory, 16) == 0x3f800000u);
  CHECK(word(memory, 19) == 0xbf800000u);
}

TEST_CASE("atomics take lanes in turn", "[memory]") {
  Bench bench(R"(
    S2R R0, SR_TID.X
    MOV R1, 0x4
    IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x168]
    MOV R4, c[0x0][0x160]
    MOV R5, c[0x0][0x164]
    ATOMG.E.ADD.STRONG.GPU PT, R10, [R4.64], R0
    RED.E.MAX.S32.STRONG.GPU [R4.64+0x4], R0
    RED.E.OR.STRONG.GPU [R4.64+0x8], R0
    MOV R6, 0x3f800000
    RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64+0xc], R6
    ATOMG.E.INC.STRONG.GPU PT, R11, [R4.64+0x10], 0x9
    ATOMG.E.CAS.STRONG.GPU PT, R12, [R4.64+0x14], R0, R1
    MOV R7, 0x0
    MOV R8, 0x0
    MOV R9, 0x3ff00000
    RED.E.ADD.F64.RN.STRONG.GPU [R4.64+0x18], R8
    MOV R9, 0x1
    ATOMG.E.ADD.64.STRONG.GPU PT, R14, [R4.64+0x20], R8
    ATOMS.POPC.INC.32 RZ, [0x4]
    ATOMS.ADD R16, [0x8], R0
    ATOMS.MIN R17, [0xc], R0
    ATOMS.CAS R18, [0x10], RZ, 0x5
    LDS R19, [0x4]
    BAR.SYNC.DEFER_BLOCKING 0x0
    LDS R20, [0x8]
    ATOMS.CAST.SPIN R21, [0x8], R20, 0x2
    LDS R22, [0x8]
    STG.E [R2.64], R10
    STG.E [R2.64+0x80], R11
    STG.E [R2.64+0x100], R12
    STG.E [R2.64+0x180], R15
    STG.E [R2.64+0x200], R16
    STG.E [R2.64+0x280], R18
    STG.E [R2.64+0x300], R19
    STG.E [R2.64+0x380], R21
    EXIT
)");
  bench.shared_bytes = 64;
  bench.buffers = {std::vector<u64>(8), std::vector<u64>(16 * 8)};
  bench.run();
  const auto& memory = bench.buffers[0];
  CHECK(word(memory, 0) == 496);
  CHECK(word(memory, 1) == 31);
  CHECK(word(memory, 2) == 31);
  CHECK(word(memory, 3) == 0x42000000u);  // 32.0
  CHECK(word(memory, 4) == 2);            // 32 steps through 0..9
  CHECK(word(memory, 5) == 4);            // lane 0 matched 0
  CHECK(memory[3] == std::bit_cast<u64>(32.0));
  CHECK(memory[4] == u64{32} << 32);
  for (std::size_t i = 0; i < 32; ++i) {
    INFO("lane " << i);
    CHECK(word(bench.buffers[1], i) == i * (i - 1) / 2);
    CHECK(word(bench.buffers[1], 32 + i) == i % 10);
    CHECK(word(bench.buffers[1], 64 + i) == (i == 0 ? 0u : 4u));
    CHECK(word(bench.buffers[1], 96 + i) == i);
    CHECK(word(bench.buffers[1], 128 + i) == i * (i - 1) / 2);
    CHECK(word(bench.buffers[1], 160 + i) == (i == 0 ? 0u : 5u));
    CHECK(word(bench.buffers[1], 192 + i) == 32);
    CHECK(word(bench.buffers[1], 224 + i) == (i == 0 ? 1u : 0u));
  }
}

TEST_CASE("matrix loads and asynchronous copies", "[memory]") {
  Bench bench(R"(
    S2R R0, SR_TID.X
    MOV R1, 0x10
    IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160]
    MOV R1, 0x8
    IMAD.WIDE.U32 R4, R0, R1, c[0x0][0x168]
    SHF.L.U32 R6, R0, 0x4, RZ
    LDGSTS.E.BYPASS.128 [R6], [R2.64]
    LDGDEPBAR
    DEPBAR.LE SB0, 0x0
    BAR.SYNC.DEFER_BLOCKING 0x0
    LDSM.16.M88.4 R8, [R6]
    LDSM.16.MT88.2 R12, [R6]
    STG.E.64 [R4.64], R8
    STG.E.64 [R4.64+0x100], R10
    STG.E.64 [R4.64+0x200], R12
    EXIT
)");
  bench.shared_bytes = 512;
  bench.buffers = {std::vector<u64>(64), std::vector<u64>(96)};
  // Element (row, column) of matrix m is 256 m + 16 row + column.
  std::vector<std::uint16_t> elements(256);
  for (std::size_t i = 0; i < 256; ++i) elements[i] = static_cast<std::uint16_t>(i / 64 * 256 + i / 8 % 8 * 16 + i % 8);
  std::memcpy(bench.buffers[0].data(), elements.data(), 512);
  bench.run();
  for (u32 i = 0; i < 32; ++i) {
    INFO("lane " << i);
    const u32 row = i / 4, column = 2 * (i % 4);
    for (u32 m = 0; m < 4; ++m) {
      const u32 first = 256 * m + 16 * row + column;
      CHECK(static_cast<u32>(bench.buffers[1][i + 32 * (m / 2)] >> (32 * (m % 2))) == (first | (first + 1) << 16));
    }
    for (u32 m = 0; m < 2; ++m) {
      const u32 first = 256 * m + 16 * column + row;
      CHECK(static_cast<u32>(bench.buffers[1][i + 64] >> (32 * m)) == (first | (first + 16) << 16));
    }
  }
}

namespace {

std::string error_of(Bench& bench) {
  try {
    bench.run();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a bad address names kernel, block, thread, instruction and place", "[memory]") {
  Bench beyond("S2R R0, SR_TID.X\nMOV R1, 0x8\nIMAD.WIDE R2, R0, R1, c[0x0][0x160]\nLDG.E R4, [R2.64]\nEXIT");
  beyond.buffers = {std::vector<u64>(31)};
  const std::string outside = error_of(beyond);
  for (const char* part : {"kernel test", "block (0,0,0)", "thread (31,0,0)", "LDG.E R4, [R2.64]", "in no buffer",
                           "byte 248 of buffer b0"}) {
    INFO(outside);
    CHECK(outside.find(part) != std::string::npos);
  }
  Bench odd("MOV R2, c[0x0][0x160]\nMOV R3, c[0x0][0x164]\nLDG.E.64 R4, [R2.64+0x4]\nEXIT");
  odd.buffers = {std::vector<u64>(4)};
  CHECK(error_of(odd).find("misaligned") != std::string::npos);
  Bench shared("MOV R2, 0x40\nSTS [R2], RZ\nEXIT");
  shared.shared_bytes = 0x40;
  CHECK(error_of(shared).find("beyond the 64 bytes") != std::string::npos);
}

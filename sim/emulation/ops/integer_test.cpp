// What integer, logic and uniform instructions compute, against the same arithmetic written out.
#include <bit>
#include <catch2/catch.hpp>

#include "emulation/test_support.h"

using namespace forewarp::test;
using forewarp::kWarpLanes;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
__extension__ typedef unsigned __int128 u128;

i32 s(u32 v) { return static_cast<i32>(v); }

/// Checks R20 lane by lane over every rotation of the second input.
template <class Expected>
void check32(const std::string& body, Expected expected, int sm = 80) {
  INFO(body);
  for (const int by : {0, 1, 7, 13, 30}) {
    const Inputs in{edge_integers(), rotated(edge_integers(), by), rotated(edge_integers(), 2 * by + 5)};
    const Outputs out = execute(body, in, sm);
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      INFO("lane " << i << " a " << in.a[i] << " b " << in.b[i] << " c " << in.c[i]);
      CHECK(
          static_cast<u32>(out.d[i]) ==
          static_cast<u32>(expected(static_cast<u32>(in.a[i]), static_cast<u32>(in.b[i]), static_cast<u32>(in.c[i]))));
    }
  }
}

Lanes wide_edges() {
  Lanes lanes = edge_integers();
  for (std::size_t i = 0; i < kWarpLanes; ++i) lanes[i] |= edge_integers()[(i * 11 + 3) % kWarpLanes] << 32;
  return lanes;
}

template <class Expected>
void check64(const std::string& body, Expected expected) {
  INFO(body);
  for (const int by : {0, 3, 17}) {
    const Inputs in{wide_edges(), rotated(wide_edges(), by), rotated(wide_edges(), by + 9)};
    const Outputs out = execute(body, in);
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      INFO("lane " << i << std::hex << " a " << in.a[i] << " b " << in.b[i] << " c " << in.c[i]);
      CHECK(out.d[i] == static_cast<u64>(expected(in.a[i], in.b[i], in.c[i])));
    }
  }
}

template <class Expected>
void check_predicate(const std::string& body, Expected expected) {
  INFO(body);
  for (const int by : {0, 1, 7, 13}) {
    const Inputs in{wide_edges(), rotated(wide_edges(), by), {}};
    const Outputs out = execute(body, in);
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      INFO("lane " << i << std::hex << " a " << in.a[i] << " b " << in.b[i]);
      CHECK((out.p >> i & 1u) == static_cast<u32>(expected(in.a[i], in.b[i], i)));
    }
  }
}

}  // namespace

TEST_CASE("additions wrap, negate and chain their carries", "[integer]") {
  check32("IADD3 R20, R10, R12, R14", [](u32 a, u32 b, u32 c) { return a + b + c; });
  check32("IADD3 R20, -R10, R12, -R14", [](u32 a, u32 b, u32 c) { return b - a - c; });
  check32("IADD3 R20, R10, -0x5, RZ", [](u32 a, u32, u32) { return a - 5; });
  check32(
      "VIADD R20, R10, 0xffffffff", [](u32 a, u32, u32) { return a - 1; }, 90);
  check32(
      "VIADDMNMX R20, R10, -R12, R14, PT", [](u32 a, u32 b, u32 c) { return std::min(s(a - b), s(c)); }, 90);
  check32(
      "VIADDMNMX.U32 R20, R10, R12, R14, !PT", [](u32 a, u32 b, u32 c) { return std::max(a + b, c); }, 90);
  check64("IADD3 R20, P4, R10, R12, RZ\nIADD3.X R21, R11, R13, RZ, P4, !PT", [](u64 a, u64 b, u64) { return a + b; });
  check64("IADD3 R20, P4, R10, -R12, RZ\nIADD3.X R21, R11, ~R13, RZ, P4, !PT", [](u64 a, u64 b, u64) { return a - b; });
  check64("IADD3 R20, P4, P5, R10, R12, R14\nIADD3.X R21, R11, R13, R15, P4, P5",
          [](u64 a, u64 b, u64 c) { return a + b + c; });
  check64("IADD3 R20, P4, RZ, -R10, RZ\nIMAD.X R21, RZ, RZ, ~R11, P4", [](u64 a, u64, u64) { return u64{0} - a; });
}

TEST_CASE("products give low, high and wide results", "[integer]") {
  check32("IMAD R20, R10, R12, R14", [](u32 a, u32 b, u32 c) { return a * b + c; });
  check32("IMAD R20, R10, 0xfffffffb, -R14", [](u32 a, u32, u32 c) { return a * u32(-5) - c; });
  check32("IMAD.MOV.U32 R20, RZ, RZ, R12", [](u32, u32 b, u32) { return b; });
  check32("IMAD.MOV R20, RZ, RZ, -R12", [](u32, u32 b, u32) { return 0 - b; });
  check32("IMAD.SHL.U32 R20, R10, 0x10, RZ", [](u32 a, u32, u32) { return a << 4; });
  check32("IMAD.IADD R20, R10, 0x1, -R12", [](u32 a, u32 b, u32) { return a - b; });
  check64("IMAD.WIDE R20, R10, R12, R14", [](u64 a, u64 b, u64 c) { return u64(i64{s(u32(a))} * s(u32(b))) + c; });
  check64("IMAD.WIDE.U32 R20, R10, R12, R14", [](u64 a, u64 b, u64 c) { return u64{u32(a)} * u32(b) + c; });
  check64("IMAD.HI.U32 R20, R10, R12, R14\nMOV R21, RZ",
          [](u64 a, u64 b, u64 c) { return (u64{u32(a)} * u32(b) + c) >> 32; });
  check64("IMAD.HI R20, R10, R12, RZ\nMOV R21, RZ",
          [](u64 a, u64 b, u64) { return u64(i64{s(u32(a))} * s(u32(b))) >> 32; });
  // The upper 64 bits of a 64 by 64 product, as the compiler writes it.
  check64(
      "IMAD.WIDE.U32 R16, R11, R12, RZ\nIMAD.WIDE.U32 R16, P4, R10, R13, R16\nIMAD.WIDE.U32 R18, R10, R12, RZ\n"
      "IMAD.X R25, RZ, RZ, RZ, P4\nIADD3 RZ, P4, R19, R16, RZ\nMOV R24, R17\nIMAD.WIDE.U32.X R20, R11, R13, R24, P4",
      [](u64 a, u64 b, u64) { return static_cast<u64>((static_cast<u128>(a) * b) >> 64); });
  check32("IDP.4A.S8.S8 R20, R10, R12, R14", [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 32; k += 8) c += static_cast<u32>(std::int8_t(a >> k) * std::int8_t(b >> k));
    return c;
  });
  check32("IDP.4A.U8.S8 R20, R10, R12, R14", [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 32; k += 8) c += static_cast<u32>(std::uint8_t(a >> k) * std::int8_t(b >> k));
    return c;
  });
}

TEST_CASE("IDP.2A multiplies halves by bytes", "[integer]") {
  check32("IDP.2A.LO.S16.S8 R20, R10, R12, R14", [](u32 a, u32 b, u32 c) {
    return c + u32(std::int16_t(a) * std::int8_t(b)) + u32(std::int16_t(a >> 16) * std::int8_t(b >> 8));
  });
  check32("IDP.2A.HI.S16.S8 R20, R10, R12, R14", [](u32 a, u32 b, u32 c) {
    return c + u32(std::int16_t(a) * std::int8_t(b >> 16)) + u32(std::int16_t(a >> 16) * std::int8_t(b >> 24));
  });
  check32("IDP.2A.LO.U16.U8 R20, R10, R12, R14",
          [](u32 a, u32 b, u32 c) { return c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff); });
}

TEST_CASE("LEA scales, adds and carries", "[integer]") {
  check32("LEA R20, R10, R12, 0x5", [](u32 a, u32 b, u32) { return (a << 5) + b; });
  check32("LEA.HI R20, R10, R12, R14, 0x7",
          [](u32 a, u32 b, u32 c) { return u32((((u64{c} << 32) | a) << 7) >> 32) + b; });
  check32("LEA.HI.SX32 R20, R10, R12, 0x1b", [](u32 a, u32 b, u32) { return u32(u64(i64{s(a)} << 27) >> 32) + b; });
  check64("LEA R20, P4, R10, R12, 0x3\nLEA.HI.X R21, R10, R13, R11, 0x3, P4",
          [](u64 a, u64 b, u64) { return (a << 3) + b; });
  check64("LEA R20, P4, R10, R12, 0x2\nLEA.HI.X.SX32 R21, R10, R13, 0x2, P4",
          [](u64 a, u64 b, u64) { return u64(i64{s(u32(a))} * 4) + b; });
}

TEST_CASE("shifts clamp or wrap their amounts", "[integer]") {
  check32("SHF.L.U32 R20, R10, R12, RZ", [](u32 a, u32 b, u32) { return b >= 32 ? 0 : a << b; });
  check32("SHF.L.U32 R20, R10, 0x5, RZ", [](u32 a, u32, u32) { return a << 5; });
  check32("SHF.R.U32.HI R20, RZ, R12, R10", [](u32 a, u32 b, u32) { return b >= 32 ? 0 : a >> b; });
  check32("SHF.R.S32.HI R20, RZ, R12, R10", [](u32 a, u32 b, u32) { return u32(s(a) >> std::min(b, 31u)); });
  check32("SHF.R.S32.HI R20, RZ, 0x1f, R10", [](u32 a, u32, u32) { return u32(s(a) >> 31); });
  check32("SHF.R.U32.HI R20, RZ, 0x3, R10", [](u32 a, u32, u32) { return a >> 3; });
  check32("SHF.L.W.U32.HI R20, R10, R12, R14",
          [](u32 a, u32 b, u32 c) { return u32((((u64{c} << 32) | a) << (b & 31)) >> 32); });
  check32("SHF.R.W.U32 R20, R10, R12, R14", [](u32 a, u32 b, u32 c) { return u32(((u64{c} << 32) | a) >> (b & 31)); });
  check32("SHF.L.U64.HI R20, R10, 0x9, R14", [](u32 a, u32, u32 c) { return u32((((u64{c} << 32) | a) << 9) >> 32); });
  check32("SHF.R.S64 R20, R10, R12, R14",
          [](u32 a, u32 b, u32 c) { return u32(i64((u64{c} << 32) | a) >> std::min(b, 63u)); });
  check32("SHF.R.U64 R20, R10, R12, R14",
          [](u32 a, u32 b, u32 c) { return b >= 64 ? 0 : u32(((u64{c} << 32) | a) >> b); });
}

TEST_CASE("logic, permutation and bit counting", "[integer]") {
  check32("LOP3.LUT R20, R10, R12, R14, 0xc0, !PT", [](u32 a, u32 b, u32) { return a & b; });
  check32("LOP3.LUT R20, R10, R12, R14, 0xfe, !PT", [](u32 a, u32 b, u32 c) { return a | b | c; });
  check32("LOP3.LUT R20, R10, R12, R14, 0x96, !PT", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; });
  check32("LOP3.LUT R20, R10, R12, R14, 0xe2, !PT", [](u32 a, u32 b, u32 c) { return (a & b) | (~b & c); });
  check32("LOP3.LUT R20, RZ, R12, RZ, 0x33, !PT", [](u32, u32 b, u32) { return ~b; });
  check32("LOP3.LUT R20, R10, ~R12, RZ, 0xc0, !PT", [](u32 a, u32 b, u32) { return a & ~b; });
  check_predicate("LOP3.LUT P0, RZ, R10, R12, RZ, 0xc0, !PT",
                  [](u64 a, u64 b, std::size_t) { return (u32(a) & u32(b)) != 0; });
  check32("PRMT R20, R10, 0x4016, R12", [](u32 a, u32 b, u32) {
    return (b & 0xff) << 24 | (a & 0xff) << 16 | (a >> 8 & 0xff) << 8 | (b >> 16 & 0xff);
  });
  check32("PRMT R20, R10, 0x8880, RZ", [](u32 a, u32, u32) { return u32(i32(std::int8_t(a))); });
  check32("PRMT.F4E R20, R10, R14, R12",
          [](u32 a, u32 b, u32 c) { return u32(((u64{b} << 32) | a) >> (8 * (c & 3))); });
  check32("POPC R20, R10", [](u32 a, u32, u32) { return std::popcount(a); });
  check32("FLO.U32 R20, R10", [](u32 a, u32, u32) { return a == 0 ? ~0u : 31u - u32(std::countl_zero(a)); });
  check32("FLO.U32.SH R20, R10", [](u32 a, u32, u32) { return a == 0 ? ~0u : u32(std::countl_zero(a)); });
  check32("FLO R20, R10", [](u32 a, u32, u32) {
    const u32 v = s(a) < 0 ? ~a : a;
    return v == 0 ? ~0u : 31u - u32(std::countl_zero(v));
  });
  check32("BREV R20, R10", [](u32 a, u32, u32) {
    u32 r = 0;
    for (int k = 0; k < 32; ++k) r |= (a >> k & 1u) << (31 - k);
    return r;
  });
  check32("BMSK R20, R10, R12", [](u32 a, u32 b, u32) {
    const u64 ones = (u64{1} << std::min(b, 32u)) - 1;
    return u32(ones << std::min(a, 32u));
  });
  check32("SGXT R20, R10, 0x8", [](u32 a, u32, u32) { return u32(i32(std::int8_t(a))); });
  check32("SGXT.U32 R20, R10, 0x13", [](u32 a, u32, u32) { return a & 0x7ffff; });
  check32("IABS R20, R10", [](u32 a, u32, u32) { return s(a) < 0 ? 0 - a : a; });
}

TEST_CASE("comparisons, selections, extremes", "[integer]") {
  check_predicate("ISETP.LT.AND P0, PT, R10, R12, PT", [](u64 a, u64 b, std::size_t) { return s(u32(a)) < s(u32(b)); });
  check_predicate("ISETP.LT.U32.AND P0, PT, R10, R12, PT", [](u64 a, u64 b, std::size_t) { return u32(a) < u32(b); });
  check_predicate("ISETP.GE.OR P0, PT, R10, R12, P2",
                  [](u64 a, u64 b, std::size_t i) { return s(u32(a)) >= s(u32(b)) || i % 2 == 0; });
  check_predicate("ISETP.NE.XOR P0, PT, R10, R12, !P3",
                  [](u64 a, u64 b, std::size_t i) { return (u32(a) != u32(b)) != (i >= 16); });
  check_predicate("ISETP.EQ.AND PT, P0, R10, R12, PT", [](u64 a, u64 b, std::size_t) { return u32(a) != u32(b); });
  check_predicate("ISETP.LT.U32.AND P4, PT, R10, R12, PT\nISETP.LT.AND.EX P0, PT, R11, R13, PT, P4",
                  [](u64 a, u64 b, std::size_t) { return i64(a) < i64(b); });
  check_predicate("ISETP.GE.U32.AND P4, PT, R10, R12, PT\nISETP.GE.U32.AND.EX P0, PT, R11, R13, PT, P4",
                  [](u64 a, u64 b, std::size_t) { return a >= b; });
  check_predicate("ISETP.NE.U32.AND P4, PT, R10, R12, PT\nISETP.NE.AND.EX P0, PT, R11, R13, PT, P4",
                  [](u64 a, u64 b, std::size_t) { return a != b; });
  check_predicate("PLOP3.LUT P0, PT, P2, P3, PT, 0x80, 0x0",
                  [](u64, u64, std::size_t i) { return i % 2 == 0 && i < 16; });
  check_predicate("PLOP3.LUT PT, P0, P2, P3, PT, 0x80, 0xe", [](u64, u64, std::size_t i) {
    const int index = (i % 2 == 0 ? 4 : 0) | (i < 16 ? 2 : 0) | 1;
    return (0xe >> index & 1) != 0;
  });
  check32("IMNMX R20, R10, R12, PT", [](u32 a, u32 b, u32) { return std::min(s(a), s(b)); });
  check32("IMNMX.U32 R20, R10, R12, !PT", [](u32 a, u32 b, u32) { return std::max(a, b); });
  check32(
      "VIMNMX R20, R10, -0x3, !PT", [](u32 a, u32, u32) { return std::max(s(a), -3); }, 90);
  check32(
      "VIMNMX3 R20, R10, R12, R14, !PT",
      [](u32 a, u32 b, u32 c) {
        return std::max({s(a), s(b), s(c)});
      },
      90);
  check32(
      "VIMNMX3 R20, R10, 0x7, R14, PT",
      [](u32 a, u32, u32 c) {
        return std::min({s(a), 7, s(c)});
      },
      90);
  check32(
      "VIMNMX3.U32 R20, R10, R12, R14, PT",
      [](u32 a, u32 b, u32 c) {
        return std::min({a, b, c});
      },
      90);
  check32(
      "VIMNMX3.RELU R20, R10, R12, R14, PT",
      [](u32 a, u32 b, u32 c) {
        return std::max(std::min({s(a), s(b), s(c)}), 0);
      },
      90);
  check32(
      "VIMNMX3.S16x2 R20, R10, R12, R14, !PT",
      [](u32 a, u32 b, u32 c) {
        const auto most = [&](int at) {
          const auto half = [at](u32 word) { return static_cast<std::int16_t>(word >> at); };
          return static_cast<u32>(static_cast<std::uint16_t>(std::max({half(a), half(b), half(c)}))) << at;
        };
        return most(0) | most(16);
      },
      90);
  const Inputs in{edge_integers(), rotated(edge_integers(), 3), {}};
  const Outputs out = execute("SEL R20, R10, R12, P2\n@P3 MOV R20, 0x7", in);
  for (std::size_t i = 0; i < kWarpLanes; ++i)
    CHECK(u32(out.d[i]) == (i < 16 ? 7 : i % 2 == 0 ? u32(in.a[i]) : u32(in.b[i])));
}

TEST_CASE("predicates travel through registers", "[integer]") {
  const Outputs out = execute(
      "P2R R20, PR, RZ, 0x7f\nR2P PR, R20, 0x8\nLOP3.LUT R24, R20, 0x4, RZ, 0xc0, !PT\n"
      "SHF.R.U32.HI R24, RZ, 0x2, R24\nR2P PR, R24, 0x1\nPLOP3.LUT P1, PT, P3, PT, PT, 0x80, 0x0",
      {});
  CHECK(out.p == 0x55555555u);  // bit 2, moved to bit 0
  CHECK(out.q == 0x0000ffffu);
  for (std::size_t i = 0; i < kWarpLanes; ++i)
    CHECK((out.d[i] & 0xcu) == ((i % 2 == 0 ? 4u : 0u) | (i < 16 ? 8u : 0u)));
}

TEST_CASE("the uniform datapath computes once for the warp", "[integer]") {
  const Outputs out = execute(R"(
    UMOV UR4, 0x10
    UIADD3 UR5, UR4, 0x5, URZ
    ULEA UR6, UR5, UR4, 0x3
    USHF.L.U32 UR7, UR6, 0x2, URZ
    ULOP3.LUT UR7, UR7, 0xff, URZ, 0x3c, !UPT
    UIMAD UR8, UR7, UR4, UR5
    UISETP.GE.AND UP1, UPT, UR8, 0x100, UPT
    USEL UR9, UR8, UR4, UP1
    UIADD3 UR10, UP2, UR9, 0xffffffff, URZ
    UIADD3.X UR11, URZ, 0x7, URZ, UP2, !UPT
    @UP1 UIADD3 UR11, UR11, 0x100, URZ
    UPOPC UR12, UR10
    UFLO.U32 UR13, UR9
    R2UR UR14, R10
    MOV R20, UR10
    IADD3 R20, R20, UR12, R10
    IADD3 R21, RZ, UR11, RZ
    IADD3 R21, R21, UR13, RZ
    IADD3 R21, R21, UR14, RZ
)",
                              {rotated(edge_integers(), 4), {}, {}});
  const u32 ur5 = 0x15, ur6 = (ur5 << 3) + 0x10, ur7 = (ur6 << 2) ^ 0xff, ur8 = ur7 * 0x10 + ur5, ur10 = ur8 - 1;
  const u32 expected_high = 8 + 0x100 + (31 - u32(std::countl_zero(ur8))) + 5;
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    CHECK(u32(out.d[i]) == ur10 + u32(std::popcount(ur10)) + u32(rotated(edge_integers(), 4)[i]));
    CHECK(u32(out.d[i] >> 32) == expected_high);
  }
}

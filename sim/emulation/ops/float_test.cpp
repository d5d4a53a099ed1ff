// Floating point of every width, conversions included, against the host's.
#include <bit>
#include <catch2/catch.hpp>
#include <cfenv>
#include <cmath>
#include <limits>

#include "emulation/machine/float_bits.h"
#include "emulation/test_support.h"

using namespace forewarp::test;
using forewarp::kWarpLanes;
using forewarp::emulation::as_bits;
using forewarp::emulation::as_float;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

u32 low(u64 v) { return static_cast<u32>(v); }
bool is_nan(u32 bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }
u32 quiet(float v) { return v == v ? as_bits(v) : 0x7fffffffu; }
u32 flush(u32 bits) { return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits; }

/// f(a, b, c) on the bits of floats, over several pairings.
template <class Expected>
void check(const std::string& body, Expected expected, int sm = 80) {
  INFO(body);
  for (const int by : {0, 1, 8, 9, 21}) {
    const Inputs in{edge_floats(), rotated(edge_floats(), by), rotated(edge_floats(), 3 * by + 2)};
    const Outputs out = execute(body, in, sm);
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      INFO("lane " << i << std::hex << " a " << in.a[i] << " b " << in.b[i] << " c " << in.c[i]);
      CHECK(low(out.d[i]) == expected(low(in.a[i]), low(in.b[i]), low(in.c[i])));
    }
  }
}

template <class Expected>
void check_predicate(const std::string& body, Expected expected) {
  INFO(body);
  for (const int by : {0, 1, 8}) {
    const Inputs in{edge_floats(), rotated(edge_floats(), by), {}};
    const Outputs out = execute(body, in);
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      INFO("lane " << i << std::hex << " a " << in.a[i] << " b " << in.b[i]);
      CHECK((out.p >> i & 1u) == static_cast<u32>(expected(as_float(low(in.a[i])), as_float(low(in.b[i])))));
    }
  }
}

Lanes edge_doubles() {
  const double values[] = {0.0,    -0.0,       1.0,      -1.5,         0.1,          3.0,           1e300,
                           -1e300, 1e-310,     4.9e-324, 2147483647.0, 2147483648.0, -2147483649.0, 4294967295.5,
                           9.3e18, -9.3e18,    1.8e19,   0.5,          1.5,          2.5,           -0.5,
                           -2.5,   16777217.0, 65519.9,  65520.0,      1e-8,         INFINITY,      -INFINITY,
                           NAN,    1e40,       7.0,      1.0 / 3.0};
  Lanes lanes;
  for (std::size_t i = 0; i < kWarpLanes; ++i) lanes[i] = std::bit_cast<u64>(values[i]);
  return lanes;
}

double host_nearest(double v) {
  std::fesetround(FE_TONEAREST);
  return std::nearbyint(v);
}

}  // namespace

TEST_CASE("single precision arithmetic", "[float]") {
  check("FADD R20, R10, R12", [](u32 a, u32 b, u32) { return quiet(as_float(a) + as_float(b)); });
  check("FADD R20, R10, -|R12|", [](u32 a, u32 b, u32) { return quiet(as_float(a) - std::fabs(as_float(b))); });
  check("FADD.FTZ R20, R10, R12",
        [](u32 a, u32 b, u32) { return flush(quiet(as_float(flush(a)) + as_float(flush(b)))); });
  check("FMUL R20, -R10, R12", [](u32 a, u32 b, u32) { return quiet(-as_float(a) * as_float(b)); });
  check("FFMA R20, R10, R12, R14",
        [](u32 a, u32 b, u32 c) { return quiet(std::fma(as_float(a), as_float(b), as_float(c))); });
  check("FFMA R20, R10, R12, -R14",
        [](u32 a, u32 b, u32 c) { return quiet(std::fma(as_float(a), as_float(b), -as_float(c))); });
  check("FADD.SAT R20, R10, R12", [](u32 a, u32 b, u32) {
    const float v = as_float(a) + as_float(b);
    return as_bits(v >= 1 ? 1.0f : v > 0 ? v : 0.0f);
  });
  check("FMNMX R20, R10, R12, PT", [](u32 a, u32 b, u32) {
    if (is_nan(a)) return is_nan(b) ? 0x7fffffffu : b;
    if (is_nan(b)) return a;
    if (as_float(a) == as_float(b)) return a | b;
    return as_float(a) < as_float(b) ? a : b;
  });
  check("FSEL R20, R10, -R12, PT", [](u32 a, u32, u32) { return a; });
  check("FSEL R20, R10, -R12, !PT", [](u32, u32 b, u32) { return b ^ 0x80000000u; });
}

TEST_CASE("directed rounding brackets the exact result", "[float]") {
  const Lanes a = edge_floats(), b = rotated(edge_floats(), 5);
  const auto run = [&](const std::string& mode) {
    return execute("FMUL" + mode + " R20, R10, R12\nFADD" + mode + " R21, R10, R12", {a, b, {}});
  };
  const Outputs down = run(".RM"), up = run(".RP"), zero = run(".RZ"), nearest = run("");
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    for (const int shift : {0, 32}) {
      const auto at = [&](const Outputs& o) { return as_float(low(o.d[i] >> shift)); };
      const double x = as_float(low(a[i])), y = as_float(low(b[i]));
      const double exact = shift == 0 ? x * y : x + y;
      if (!std::isfinite(exact)) continue;
      INFO("lane " << i << " exact " << exact);
      CHECK(static_cast<double>(at(down)) <= exact);
      CHECK(static_cast<double>(at(up)) >= exact);
      CHECK(std::fabs(static_cast<double>(at(zero))) <= std::fabs(exact));
      CHECK((at(nearest) == at(down) || at(nearest) == at(up)));
    }
  }
}

TEST_CASE("single precision comparisons know unordered operands", "[float]") {
  check_predicate("FSETP.LT.AND P0, PT, R10, R12, PT", [](float a, float b) { return a < b; });
  check_predicate("FSETP.GEU.AND P0, PT, R10, R12, PT", [](float a, float b) { return !(a < b); });
  check_predicate("FSETP.NEU.AND P0, PT, |R10|, R12, PT", [](float a, float b) { return !(std::fabs(a) == b); });
  check_predicate("FSETP.NE.AND P0, PT, R10, R12, PT", [](float a, float b) { return a < b || a > b; });
  check_predicate("FSETP.NAN.AND P0, PT, R10, R12, PT", [](float a, float b) { return a != a || b != b; });
  check_predicate("FSETP.NUM.AND P0, PT, R10, R12, PT", [](float a, float b) { return a == a && b == b; });
  check_predicate("FSETP.GTU.FTZ.AND P0, PT, R10, R12, PT",
                  [](float a, float b) { return !(as_float(flush(as_bits(a))) <= as_float(flush(as_bits(b)))); });
  check("FSET.BF.GT.AND R20, R10, R12, PT",
        [](u32 a, u32 b, u32) { return as_float(a) > as_float(b) ? 0x3f800000u : 0u; });
}

TEST_CASE("a division whose dividend is zero or whose exponents are at the edge takes the slow path", "[float]") {
  check_predicate("FCHK P0, R10, R12", [](float a, float b) {
    const int ea = static_cast<int>(as_bits(a) >> 23 & 0xff), eb = static_cast<int>(as_bits(b) >> 23 & 0xff);
    return ea == 255 || ea < 24 || eb == 0 || eb > 252 || std::abs(ea - eb) > 125;
  });
}

TEST_CASE("special functions are right to a unit or two in the last place", "[float]") {
  Lanes in;
  for (std::size_t i = 0; i < kWarpLanes; ++i) in[i] = as_bits(0.01f + 0.37f * static_cast<float>(i));
  const auto check_function = [&](const std::string& name, auto reference) {
    const Outputs out = execute("MUFU." + name + " R20, R10", {in, {}, {}});
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      const double expected = reference(static_cast<double>(as_float(low(in[i]))));
      INFO(name << " lane " << i);
      CHECK(std::fabs(static_cast<double>(as_float(low(out.d[i]))) - expected) <=
            1.2e-7 * std::max(1.0, std::fabs(expected)));
    }
  };
  check_function("RCP", [](double v) { return 1 / v; });
  check_function("RSQ", [](double v) { return 1 / std::sqrt(v); });
  check_function("SQRT", [](double v) { return std::sqrt(v); });
  check_function("EX2", [](double v) { return std::exp2(v); });
  check_function("LG2", [](double v) { return std::log2(v); });
  check_function("SIN", [](double v) { return std::sin(v * 6.283185307179586); });
  check_function("COS", [](double v) { return std::cos(v * 6.283185307179586); });
  check_function("TANH", [](double v) { return std::tanh(v); });
  const Outputs edge =
      execute("MUFU.RCP R20, R10\nMUFU.RCP R21, R12", {{0x00000001, 0x80000000}, {0x7f800000, 0x7fc00000}, {}});
  CHECK(low(edge.d[0]) == 0x7f800000u);  // denormals count as zero
  CHECK(low(edge.d[1]) == 0xff800000u);
  CHECK(edge.d[0] >> 32 == 0);
  CHECK(is_nan(low(edge.d[1] >> 32)));
}

TEST_CASE("double precision", "[double]") {
  for (const int by : {0, 1, 9}) {
    const Inputs in{edge_doubles(), rotated(edge_doubles(), by), rotated(edge_doubles(), by + 4)};
    const auto value = [](u64 bits) { return std::bit_cast<double>(bits); };
    const auto same = [&](u64 bits, double expected) {
      return expected != expected ? value(bits) != value(bits) : bits == std::bit_cast<u64>(expected);
    };
    const Outputs add = execute("DADD R20, R10, -R12\nDSETP.LT.AND P0, P1, R10, R12, PT", in);
    const Outputs multiply = execute("DMUL R20, R10, |R12|\nDSETP.MIN.AND P0, P1, R10, R12, PT", in);
    const Outputs fused = execute("DFMA R20, R10, R12, R14", in);
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      const double a = value(in.a[i]), b = value(in.b[i]), c = value(in.c[i]);
      INFO("lane " << i << " " << a << " " << b << " " << c);
      CHECK(same(add.d[i], a - b));
      CHECK(same(multiply.d[i], a * std::fabs(b)));
      CHECK(same(fused.d[i], std::fma(a, b, c)));
      CHECK((add.p >> i & 1u) == static_cast<u32>(a < b));
      CHECK((add.q >> i & 1u) == static_cast<u32>(!(a < b)));
      const bool first = a == a && (b != b || a < b || (a == b && (std::signbit(a) || !std::signbit(b))));
      if (!(a == b && std::signbit(a) == std::signbit(b))) CHECK((multiply.p >> i & 1u) == static_cast<u32>(first));
    }
  }
  const Outputs root = execute("MUFU.RCP64H R21, R11\nMOV R20, RZ", {edge_doubles(), {}, {}});
  CHECK(std::bit_cast<double>(root.d[5]) == Approx(1.0 / 3.0).epsilon(1e-6));
}

TEST_CASE("floats become integers as PTX says", "[conversion]") {
  const Lanes doubles = edge_doubles();
  const Outputs to64 = execute("F2I.S64.F64.TRUNC R20, R10", {doubles, {}, {}});
  const Outputs to32 = execute("F2I.F64.TRUNC R20, R10\nMOV R21, RZ", {doubles, {}, {}});
  const Outputs nearest = execute("F2I.U32.F64 R20, R10\nMOV R21, RZ", {doubles, {}, {}});
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    const double v = std::bit_cast<double>(doubles[i]);
    INFO("lane " << i << " " << v);
    const std::int64_t s64 = v != v                        ? std::numeric_limits<std::int64_t>::min()
                             : v >= 9223372036854775808.0  ? std::numeric_limits<std::int64_t>::max()
                             : v <= -9223372036854775808.0 ? std::numeric_limits<std::int64_t>::min()
                                                           : static_cast<std::int64_t>(v);
    CHECK(to64.d[i] == static_cast<u64>(s64));
    const double t = std::trunc(v);
    const std::int32_t s32 = v != v || t <= -2147483648.0 ? std::numeric_limits<std::int32_t>::min()
                             : t >= 2147483647.0          ? std::numeric_limits<std::int32_t>::max()
                                                          : static_cast<std::int32_t>(t);
    CHECK(low(to32.d[i]) == static_cast<u32>(s32));
    const double n = host_nearest(v);
    const u32 expected = v != v ? 0x80000000u : n <= 0 ? 0u : n >= 4294967295.0 ? 0xffffffffu : static_cast<u32>(n);
    CHECK(low(nearest.d[i]) == expected);
  }
  const Outputs single = execute("F2I R20, R10\nF2I.TRUNC.NTZ R21, -R10", {edge_floats(), {}, {}});
  const Outputs as_double =
      execute("F2F.F64.F32 R22, R10\nF2I.F64 R20, R22\nF2I.F64.TRUNC R21, -R22", {edge_floats(), {}, {}});
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    INFO("lane " << i << " " << as_float(low(edge_floats()[i])));
    const bool is_number = as_float(low(edge_floats()[i])) == as_float(low(edge_floats()[i]));
    CHECK(low(single.d[i]) == low(as_double.d[i]));
    CHECK(low(single.d[i] >> 32) == (is_number ? low(as_double.d[i] >> 32) : 0u));
  }
  const Outputs ntz = execute("F2I.NTZ R20, R10\nF2I.FTZ.U32.TRUNC.NTZ R21, R10", {edge_floats(), {}, {}});
  CHECK(low(ntz.d[27]) == 0u);           // NaN
  CHECK(low(ntz.d[25]) == 0x7fffffffu);  // infinity
  CHECK(low(ntz.d[14]) == 3u);
  CHECK(low(ntz.d[15] >> 32) == 0u);  // negative to unsigned
  CHECK(low(ntz.d[19] >> 32) == 0x80000000u);
}

TEST_CASE("integers become floats with one rounding", "[conversion]") {
  Lanes in = edge_integers();
  for (std::size_t i = 0; i < kWarpLanes; ++i) in[i] |= edge_integers()[kWarpLanes - 1 - i] << 32;
  const Outputs f64 = execute("I2F.F64.S64 R20, R10", {in, {}, {}});
  const Outputs f32 = execute("I2F.U64 R20, R10\nI2F R21, R10", {in, {}, {}});
  const Outputs more = execute("I2F.U32.RP R20, R10\nI2FP.F32.U32 R21, R10", {in, {}, {}});
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    INFO("lane " << i << std::hex << " " << in[i]);
    CHECK(f64.d[i] == std::bit_cast<u64>(static_cast<double>(static_cast<std::int64_t>(in[i]))));
    CHECK(low(f32.d[i]) == as_bits(static_cast<float>(in[i])));
    CHECK(low(f32.d[i] >> 32) == as_bits(static_cast<float>(static_cast<std::int32_t>(low(in[i])))));
    CHECK(low(more.d[i] >> 32) == as_bits(static_cast<float>(low(in[i]))));
    CHECK(static_cast<double>(as_float(low(more.d[i]))) >= static_cast<double>(low(in[i])));
    CHECK(as_float(low(more.d[i])) <= std::nextafter(static_cast<float>(low(in[i])), INFINITY));
  }
}

TEST_CASE("formats of floats convert into each other", "[conversion]") {
  const Outputs narrow = execute("F2F.F32.F64 R20, R10\nMOV R21, RZ", {edge_doubles(), {}, {}});
  const Outputs widened = execute("F2F.F64.F32 R20, R10", {edge_floats(), {}, {}});
  const Outputs whole = execute("FRND.FLOOR R20, R10\nFRND R21, R10", {edge_floats(), {}, {}});
  const Outputs doubles = execute("FRND.F64.CEIL R20, R10", {edge_doubles(), {}, {}});
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    const double v = std::bit_cast<double>(edge_doubles()[i]);
    const float f = as_float(low(edge_floats()[i]));
    INFO("lane " << i << " " << v << " " << f);
    CHECK(low(narrow.d[i]) == quiet(static_cast<float>(v)));
    if (f == f) CHECK(widened.d[i] == std::bit_cast<u64>(static_cast<double>(f)));
    if (f == f) CHECK(low(whole.d[i]) == as_bits(std::floor(f)));
    if (f == f) CHECK(low(whole.d[i] >> 32) == as_bits(static_cast<float>(host_nearest(f))));
    if (v == v) CHECK(doubles.d[i] == std::bit_cast<u64>(std::ceil(v)));
  }
}

namespace {

/// Halves worth meeting: zeros, denormals, 1, 1 + ulp, 0.1, 2048, 65504, infinities, NaN.
u32 edge_half(std::size_t i) {
  static constexpr std::uint16_t kValues[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00,
                                              0x3c01, 0xbc00, 0x2e66, 0x6800, 0x7bff, 0xfbff, 0x7c00,
                                              0xfc00, 0x7e00, 0x3555, 0x4248, 0x5640, 0x1234};
  return kValues[i % std::size(kValues)];
}

Lanes half_pairs(int by) {
  Lanes lanes;
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    const std::size_t k = i + static_cast<std::size_t>(by);
    lanes[i] = edge_half(k) | edge_half(3 * k + 1) << 16;
  }
  return lanes;
}

double half(u32 bits) { return forewarp::emulation::Half::decode(bits & 0xffffu); }

/// Nearest half by trying all of them: slow and beyond doubt.
u32 nearest_half(long double v) {
  if (v != v) return 0x7fffu;
  u32 best = 0;
  long double distance = INFINITY;
  for (u32 bits = 0; bits <= 0x7c00u; ++bits) {
    const long double candidate = bits == 0x7c00u ? 65536.0L : static_cast<long double>(half(bits));
    const long double d = std::fabs(std::fabs(v) - candidate);
    if (d < distance || (d == distance && (bits & 1u) == 0)) best = bits, distance = d;
  }
  return best | (std::signbit(v) ? 0x8000u : 0u);
}

}  // namespace

TEST_CASE("packed halves round once", "[half]") {
  for (const int by : {0, 5}) {
    const Inputs in{half_pairs(by), half_pairs(2 * by + 3), half_pairs(by + 11)};
    const Outputs sum = execute("HADD2 R20, R10, -R12\nHMUL2 R21, R10, R12", in);
    const Outputs fused = execute("HFMA2 R20, R10, R12, R14\nHFMA2.MMA R21, R10.H0_H0, R12.H1_H1, R14", in);
    const Outputs wide = execute("HADD2.F32 R20, -RZ, R10.H1_H1\nHMNMX2 R21, R10, R12, PT", in);
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      for (const int e : {0, 16}) {
        const u32 a = low(in.a[i]) >> e, b = low(in.b[i]) >> e, c = low(in.c[i]) >> e;
        INFO("lane " << i << " element " << e << " " << half(a) << " " << half(b) << " " << half(c));
        const auto part = [&](const Outputs& o, int word) { return low(o.d[i] >> (32 * word)) >> e & 0xffffu; };
        CHECK(part(sum, 0) == nearest_half(static_cast<long double>(half(a)) - half(b)));
        CHECK(part(sum, 1) == nearest_half(static_cast<long double>(half(a)) * half(b)));
        CHECK(part(fused, 0) == nearest_half(static_cast<long double>(half(a)) * half(b) + half(c)));
        const long double product = static_cast<long double>(half(low(in.a[i]))) * half(low(in.b[i]) >> 16);
        CHECK(part(fused, 1) == nearest_half(product + half(c)));
        if (half(a) < half(b)) CHECK(part(wide, 1) == (a & 0xffffu));
      }
      const double expected = half(low(in.a[i]) >> 16);
      if (expected == expected) CHECK(low(wide.d[i]) == as_bits(static_cast<float>(expected)));
    }
  }
  const Outputs constant = execute("HFMA2.MMA R20, -RZ, RZ, 0x40000000\nMOV R21, RZ", {});
  CHECK(constant.d[3] == 0x40000000u);
}

TEST_CASE("bytes of fp8 unpack into halves of the same value", "[half]") {
  for (u32 first = 0; first < 256; first += 64) {
    Inputs in;
    for (u32 i = 0; i < kWarpLanes; ++i) in.a[i] = (first + 2 * i) << 16 | (first + 2 * i + 1) << 24 | 0x38c0u;
    const Outputs e4m3 = execute("F2FP.F16.E4M3.UNPACK_B R20, R10.H1\nF2FP.F16.E4M3.UNPACK_B R21, R10", in, 90);
    const Outputs e5m2 = execute("F2FP.F16.E5M2.UNPACK_B R20, R10.H1\nMOV R21, RZ", in, 90);
    for (u32 i = 0; i < kWarpLanes; ++i) {
      CHECK(low(e4m3.d[i] >> 32) == 0x3c00c000u);  // 1 and -2
      for (u32 e = 0; e < 2; ++e) {
        const u32 byte = first + 2 * i + e, magnitude = byte & 0x7f;
        INFO("byte " << byte);
        const double sign = byte >= 0x80 ? -1 : 1, wide = half(low(e4m3.d[i]) >> (16 * e) & 0xffffu);
        const int exponent = static_cast<int>(magnitude >> 3), fraction = static_cast<int>(magnitude & 7);
        if (magnitude == 0x7f) CHECK(std::isnan(wide));
        if (magnitude != 0x7f)
          CHECK(wide == sign * (exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10)));
        if (magnitude <= 0x7c) CHECK((low(e5m2.d[i]) >> (16 * e) & 0xffffu) == byte << 8);
        if (magnitude > 0x7c) CHECK(std::isnan(half(low(e5m2.d[i]) >> (16 * e) & 0xffffu)));
      }
    }
  }
}

namespace {

/// Of all bytes of the format, the nearest to the value, ties to the even one; NaN is 0x7f.
u32 nearest_byte(double value, bool e5m2) {
  if (value != value) return 0x7f;
  const u32 most = e5m2 ? 0x7b : 0x7e;
  const auto of = [&](u32 byte) {
    const int kept = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7;
    const int exponent = static_cast<int>(byte >> kept), fraction = static_cast<int>(byte & ((1u << kept) - 1));
    return exponent == 0 ? std::ldexp(fraction, 1 - bias - kept)
                         : std::ldexp((1 << kept) + fraction, exponent - bias - kept);
  };
  const double magnitude = std::fabs(value);
  u32 best = 0;
  for (u32 byte = 1; byte <= most; ++byte) {
    const double now = std::fabs(of(byte) - magnitude), before = std::fabs(of(best) - magnitude);
    if (now < before || (now == before && byte % 2 == 0)) best = byte;
  }
  if (magnitude > of(most)) best = most;
  return best | (std::signbit(value) ? 0x80u : 0u);
}

}  // namespace

TEST_CASE("floats and halves become bytes of fp8, beside those that were there", "[half]") {
  for (const bool e5m2 : {false, true}) {
    const std::string to = e5m2 ? "E5M2" : "E4M3";
    Inputs in{edge_floats(), rotated(edge_floats(), 7), {}};
    for (u32 i = 0; i < kWarpLanes; ++i) {
      in.c[i] = 0x5a00u + i;
      if (i % 2 == 0) in.a[i] = as_bits(std::ldexp(1.0f + 0.0625f * static_cast<float>(i), static_cast<int>(i) - 20));
      if (i % 3 == 0) in.b[i] = as_bits(-400.0f - 4.0f * static_cast<float>(i));
    }
    const Outputs packed =
        execute("F2FP.SATFINITE." + to + ".F32.PACK_AB_MERGE_C R20, R10, R12, R14\nF2FP.SATFINITE.RELU." + to +
                    ".F32.PACK_AB_MERGE_C R21, R10, R12, RZ",
                in, 90);
    const Outputs halves = execute("F2FP.SATFINITE." + to + ".F16.UNPACK_B_MERGE_C R20, R10, R14\nMOV R21, RZ", in, 90);
    for (std::size_t i = 0; i < kWarpLanes; ++i) {
      INFO("lane " << i << std::hex << " " << in.a[i] << " " << in.b[i]);
      const auto a = static_cast<double>(as_float(low(in.a[i]))), b = static_cast<double>(as_float(low(in.b[i])));
      const auto c = low(in.c[i]);
      CHECK(low(packed.d[i]) == (nearest_byte(b, e5m2) | nearest_byte(a, e5m2) << 8 | c << 16));
      const auto clip = [](double v) { return v < 0 ? 0.0 : v; };
      CHECK(low(packed.d[i] >> 32) == (nearest_byte(clip(b), e5m2) | nearest_byte(clip(a), e5m2) << 8));
      const double first = half(low(in.a[i]) & 0xffffu), second = half(low(in.a[i]) >> 16);
      CHECK(low(halves.d[i]) == (nearest_byte(first, e5m2) | nearest_byte(second, e5m2) << 8 | c << 16));
    }
  }
}

TEST_CASE("the least and the greatest of three halves", "[half]") {
  const Inputs in{{0x3c00c000}, {0x40003c00}, {0x7e00b800}};  // 1 | -2, 2 | 1, NaN | -0.5
  const Outputs plain = execute("VHMNMX R20, R10, R12, R14, !PT\nVHMNMX R21, R10, R12, R14, PT", in, 90);
  CHECK(low(plain.d[0]) == 0x40003c00u);
  CHECK(low(plain.d[0] >> 32) == 0x3c00c000u);
}

TEST_CASE("a product with i times a complex number", "[half]") {
  // 3 * (-4, 2) + (1, 1), lower element first; the pair in R12 is 2 + 4i.
  const Outputs out = execute("HFMA2 R20, R10.H1_H1, R12.H0_NH1, R14\nHMUL2 R21, R10.H1_H1, -R12.H0_NH1",
                              {{0x42000000}, {0x44004000}, {0x3c003c00}}, 90);
  CHECK(low(out.d[0]) == 0x4700c980u);        // 7 | -11
  CHECK(low(out.d[0] >> 32) == 0xc6004a00u);  // -6 | 12
}

TEST_CASE("floats become TF32, and single halves", "[half]") {
  const Inputs in{edge_floats(), {}, {}};
  const Outputs tf32 = execute("F2FP.TF32.F32.PACK_B R20, R10\nF2FP.RELU.TF32.F32.PACK_B.RZ R21, R10", in, 90);
  const Outputs single = execute("F2FP.F16.F32.MERGE_C R20, R10, RZ\nF2FP.BF16.F32.MERGE_C R21, -R10, RZ", in, 90);
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    const u32 bits = low(in.a[i]), nearest = low(tf32.d[i]), cut = low(tf32.d[i] >> 32);
    const float v = as_float(bits);
    INFO("lane " << i << std::hex << " " << bits);
    CHECK(low(single.d[i]) == nearest_half(v));
    if (v != v) {
      CHECK((nearest == 0x7fffffffu && cut == 0x7fffffffu));
      continue;
    }
    CHECK(low(single.d[i] >> 32) == ((low(in.a[i] ^ 0x80000000u) + 0x7fffu + (bits >> 16 & 1u)) >> 16));
    CHECK(cut == (v < 0 || bits == 0x80000000u ? 0u : bits & ~0x1fffu));
    CHECK((nearest & 0x1fffu) == 0);
    if (std::isinf(v)) continue;
    const double step =
        static_cast<double>(as_float((bits & ~0x1fffu) + 0x2000u)) - static_cast<double>(as_float(bits & ~0x1fffu));
    const double off = std::fabs(static_cast<double>(as_float(nearest)) - static_cast<double>(v));
    if (std::isfinite(as_float(nearest))) CHECK(off <= std::fabs(step) / 2);
    if (off == std::fabs(step) / 2 && off > 0) CHECK((nearest >> 13 & 1u) == 0);
  }
}

TEST_CASE("floats and integers are saturated and packed, the second source lowest", "[half]") {
  const auto bits = [](float v) { return std::bit_cast<u32>(v); };
  const Inputs floats{
      {bits(-1e9f), bits(2.5f), bits(-0.5f)}, {bits(300.0f), bits(3.5f), bits(NAN)}, {0x11223344, 0, 0xffff0102}};
  const Outputs f = execute("F2IP.S8.F32.NTZ R20, R10, R12, R14\nF2IP.U8.F32.NTZ R21, R10, R12, RZ", floats, 90);
  CHECK((low(f.d[0]) == 0x3344807fu && low(f.d[1]) == 0x0204u && low(f.d[2]) == 0x01020000u));
  CHECK((low(f.d[0] >> 32) == 0x00ffu && low(f.d[1] >> 32) == 0x0204u && low(f.d[2] >> 32) == 0u));
  const Inputs integers{{static_cast<u32>(-200), 5}, {70000, static_cast<u32>(-3)}, {0xabcd}};
  const Outputs i = execute("I2IP.S8.S32.SAT R20, R10, R12, R14\nI2IP.U16.S32.SAT R21, R10, R12, RZ", integers, 90);
  CHECK((low(i.d[0]) == 0xabcd807fu && low(i.d[1]) == 0x05fdu));
  CHECK((low(i.d[0] >> 32) == 0xffffu && low(i.d[1] >> 32) == 0x50000u));
}

TEST_CASE("packing, bfloat16 and half comparisons", "[half]") {
  const Inputs in{edge_floats(), rotated(edge_floats(), 7), {}};
  const Outputs pack = execute("F2FP.F16.F32.PACK_AB R20, R10, R12\nF2FP.BF16.PACK_AB R21, R10, R12", in);
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    INFO("lane " << i << std::hex << " " << in.a[i] << " " << in.b[i]);
    const float a = as_float(low(in.a[i])), b = as_float(low(in.b[i]));
    CHECK(low(pack.d[i]) == (nearest_half(b) | nearest_half(a) << 16));
    const u32 brain = low(pack.d[i] >> 32) >> 16;
    if (a == a) CHECK(brain == ((low(in.a[i]) + 0x7fffu + (low(in.a[i]) >> 16 & 1u)) >> 16));
    if (a != a) CHECK(brain == 0x7fffu);
  }
  const Outputs brain =
      execute("HFMA2.BF16_V2 R20, R10, R12, R14\nMOV R21, RZ", {{0x40003f80}, {0x3f003fc0}, {0x3f803f80}});
  CHECK(brain.d[0] == 0x40004020u);  // 2 * 0.5 + 1 and 1 * 1.5 + 1
  const Outputs set =
      execute("HSETP2.GT.AND P0, P1, R10, R12, PT\nHSET2.BF.EQ.AND R20, R10, R12, PT\nHSET2.LT.AND R21, R10, R12, PT",
              {{0x40003c00, 0x3c003c00}, {0x3c003c00, 0x40003c00}, {}});
  CHECK((set.p & 3u) == 0u);  // low elements are equal
  CHECK((set.q & 3u) == 1u);
  CHECK(low(set.d[0]) == 0x00003c00u);
  CHECK(low(set.d[1] >> 32) == 0xffff0000u);
}

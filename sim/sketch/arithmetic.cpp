#include "sketch/arithmetic.h"

namespace forewarp::sketch {
namespace {

constexpr int kInner = 1;  ///< convergence barrier of slow ways; loops and edges have 0

Value bits(Writer& w, std::uint32_t pattern) { return w.copy(imm(pattern)); }

}  // namespace

Value exponential(Writer& w, Arg x) {
  Value scaled = w.fp("FFMA.SAT", x, bits(w, 0x3bbb989d), imm(0.5f));
  scaled = w.fp("FFMA.RM", scaled, bits(w, 0x437c0000), imm(12582913.0f));
  const Value whole = w.fp("FADD", scaled, imm(-12583039.0f));
  const Value power = w.shift_left(scaled, 23);
  Value rest = w.fp("FFMA", x, imm(1.4426950216293334961f), -whole);
  rest = w.fp("FFMA", x, imm(1.925963033500011079e-08f), rest);
  return w.fp("FMUL", power, w.fp("MUFU.EX2", rest));
}

void power_of_2(Writer& w, Value x) {
  // Results below the least normal number are made from the root of it.
  const Value small = w.code.predicate();
  w.code.emit("FSETP.GEU.AND", {small, kPT, x, imm(-126.0f), kPT});
  w.code.emit("FMUL", {x, x, imm(0.5f)}).when(small, true);
  w.code.emit("MUFU.EX2", {x, x});
  w.code.emit("FMUL", {x, x, x}).when(small, true);
}

namespace {

void refine_reciprocal(Writer& w, Value x, Value result) {
  const Value guess = w.fp("MUFU.RCP", x);
  const Value error = w.fp("FFMA", x, guess, imm(-1.0f));
  const Value correction = w.fp("FADD.FTZ", -error, -kRZ);
  w.code.emit("FFMA", {result, guess, correction, guess});
}

}  // namespace

Value reciprocal_of_normal(Writer& w, Value x) {
  const Value result = w.code.vector();
  refine_reciprocal(w, x, result);
  return result;
}

Value reciprocal(Writer& w, Value x) {
  Code& c = w.code;
  const Value result = c.vector();
  const Label meet = c.new_label(), fast = c.new_label();
  c.diverge(meet, kInner);
  const Value exponent = w.and_bits(w.add(x, imm(0x1800000)), 0x7f800000);
  const Value normal = w.compare("GT.U32", exponent, imm(0x1ffffff));
  c.branch(fast, normal);
  const Value scaled = w.fp("FMUL", x, imm(1.0f));
  c.emit("MUFU.RCP", {result, scaled});
  c.branch(meet);
  c.place(fast);
  refine_reciprocal(w, x, result);
  c.converge(meet, kInner);
  return result;
}

Value quotient(Writer& w, Value a, Value b) {
  Code& c = w.code;
  const Value result = c.vector(), outside = c.predicate();
  const Label meet = c.new_label();
  c.diverge(meet, kInner);
  Value guess = w.fp("MUFU.RCP", b);
  guess = w.fp("FFMA", guess, w.fp("FFMA", -b, guess, imm(1.0f)), guess);
  const Value first = w.fp("FFMA", a, guess, kRZ);
  c.emit("FCHK", {outside, a, b});
  c.emit("FFMA", {result, guess, w.fp("FFMA", -b, first, a), first});
  c.branch(meet, outside, true);
  c.emit("FMUL", {result, a, w.fp("MUFU.RCP", b)});
  c.converge(meet, kInner);
  return result;
}

Value square_root(Writer& w, Value x) {
  Code& c = w.code;
  const Value result = c.vector();
  const Label meet = c.new_label(), slow = c.new_label();
  c.diverge(meet, kInner);
  const Value exponent = w.add(x, imm(static_cast<int>(0xf3000000)));
  const Value guess = w.fp("MUFU.RSQ", x);
  const Value odd = w.compare("GT.U32", exponent, imm(0x727fffff));
  c.branch(slow, odd);
  const Value root = w.fp("FMUL.FTZ", x, guess), half = w.fp("FMUL.FTZ", guess, imm(0.5f));
  c.emit("FFMA", {result, w.fp("FFMA", -root, root, x), half, root});
  c.branch(meet);
  c.place(slow);
  c.emit("MUFU.SQRT", {result, x});
  c.converge(meet, kInner);
  return result;
}

Value reciprocal_root(Writer& w, Value x) {
  Code& c = w.code;
  const Value small = c.predicate(), scaled = w.fp("FMUL", x, imm(1.0f));
  c.emit("FSETP.GEU.AND", {small, kPT, absolute(x), imm(1.175494350822287508e-38f), kPT});
  c.emit("FMUL", {scaled, x, imm(16777216.0f)}).when(small, true);
  const Value result = w.fp("MUFU.RSQ", scaled);
  c.emit("FMUL", {result, result, imm(4096.0f)}).when(small, true);
  return result;
}

Value logarithm(Writer& w, Value x) {
  Code& c = w.code;
  const Value small = c.predicate(), scaled = w.copy(x), extra = w.copy(imm(0));
  c.emit("FSETP.GEU.AND", {small, kPT, x, imm(1.175494350822287508e-38f), kPT});
  c.emit("FMUL", {scaled, x, imm(8388608.0f)}).when(small, true);
  c.emit("IMAD.MOV.U32", {extra, kRZ, kRZ, imm(-23.0f)}).when(small, true);
  const Value exponent = w.and_bits(w.add(scaled, imm(static_cast<int>(0xc0d55555))), 0xff800000);
  const Value mantissa = c.vector();
  c.emit("IMAD.IADD", {mantissa, scaled, imm(1), -exponent});
  const Value f = w.fp("FADD", mantissa, imm(-1.0f));
  const Value whole = c.vector();
  c.emit(c.hopper() ? "I2FP.F32.S32" : "I2F", {whole, exponent});
  const Value power = w.fp("FFMA", whole, imm(1.1920928955078125e-07f), extra);
  Value p = w.fp("FFMA", f, -bits(w, 0x3e055027), imm(0.14084610342979431152f));
  for (const float k : {-0.12148627638816833496f, 0.13980610668659210205f, -0.16684235632419586182f,
                        0.20012299716472625732f, -0.24999669194221496582f, 0.33333182334899902344f, -0.5f})
    p = w.fp("FFMA", f, p, imm(k));
  p = w.fp("FMUL", f, p);
  p = w.fp("FFMA", f, p, f);
  const Value result = w.fp("FFMA", power, imm(0.69314718246459960938f), p);
  const Value large = w.compare("GE.U32", scaled, imm(0x7f800000)), zero = c.predicate();
  c.emit("FFMA", {result, scaled, bits(w, 0x7f800000), bits(w, 0x7f800000)}).when(large);
  c.emit("FSETP.NEU.AND", {zero, kPT, scaled, kRZ, kPT});
  return w.fp("FSEL", result, imm(0xff800000u), zero);
}

namespace {

void add_series(Writer& w, Reduced& angle) {
  const Value square = w.fp("FMUL", angle.rest, angle.rest);
  Value c = w.fp("FFMA", square, bits(w, 0x37cbac00), imm(-0.0013887860113754868507f));
  Value s = w.fp("FFMA", square, -bits(w, 0x394d4153), imm(0.0083327032625675201416f));
  c = w.fp("FFMA", square, c, imm(0.041666727513074874878f));
  s = w.fp("FFMA", square, s, imm(-0.16666662693023681641f));
  c = w.fp("FFMA", square, c, imm(-0.4999999701976776123f));
  angle.cosine_series = w.fp("FFMA", square, c, imm(1.0f));
  angle.sine_series = w.fp("FFMA", w.fp("FFMA", square, angle.rest, kRZ), s, angle.rest);
}

}  // namespace

Reduced reduce_angle(Writer& w, Value x, bool both) {
  Code& c = w.code;
  const Value quarters = c.vector(), rest = c.vector(), whole = c.vector();
  const Label meet = c.new_label();
  c.diverge(meet, kInner);
  const Value large = c.predicate();
  c.emit("FSETP.GE.AND", {large, kPT, absolute(x), imm(105615.0f), kPT});
  c.emit("F2I.NTZ", {quarters, w.fp("FMUL", x, imm(0.63661974668502807617f))});
  c.emit(c.hopper() ? "I2FP.F32.S32" : "I2F", {whole, quarters});
  Value r = w.fp("FFMA", whole, imm(-1.5707962512969970703f), x);
  r = w.fp("FFMA", whole, imm(-7.5497894158615963534e-08f), r);
  c.emit("FFMA", {rest, whole, imm(-5.3903029534742383927e-15f), r});
  c.branch(meet, large, true);
  c.emit("FMUL", {rest, kRZ, x});
  c.emit("IMAD.MOV.U32", {quarters, kRZ, kRZ, kRZ});
  c.converge(meet, kInner);
  Reduced angle{rest, quarters, kRZ, kRZ};
  if (both) add_series(w, angle);
  return angle;
}

Value sine(Writer& w, const Reduced& angle, bool cosine) {
  Code& c = w.code;
  const Value q = cosine ? w.add(angle.quarters, imm(1)) : angle.quarters;
  const Value even = w.compare("NE.U32", w.and_bits(q, 1), imm(1));
  const Value turned = c.predicate();
  c.emit("LOP3.LUT", {turned, kRZ, q, imm(2), kRZ, imm(0xc0), !kPT});
  if (angle.sine_series.id >= 0) {
    const Value chosen = w.fp("FSEL", angle.sine_series, angle.cosine_series, even);
    return w.fp("FSEL", chosen, -chosen, !turned);
  }
  const Value square = w.fp("FMUL", angle.rest, angle.rest);
  // Of an odd quarter the cosine's series, of an even one the sine's.
  Value p = w.fp("FFMA", square, bits(w, 0x37cbac00), imm(-0.0013887860113754868507f));
  p = w.fp("FSEL", p, bits(w, 0xb94d4153), !even);
  const Value second = w.fp("FSEL", bits(w, 0x3c0885e4), bits(w, 0x3d2aaabb), even);
  const Value third = w.fp("FSEL", bits(w, 0xbe2aaaa8), bits(w, 0xbeffffff), even);
  const Value base = w.fp("FSEL", angle.rest, imm(1.0f), even);
  p = w.fp("FFMA", square, p, second);
  p = w.fp("FFMA", square, p, third);
  const Value factor = w.fp("FFMA", square, base, kRZ);
  const Value result = w.fp("FFMA", factor, p, base);
  c.emit("FFMA", {result, result, imm(-1.0f), kRZ}).when(turned);
  return result;
}

Value combine(Writer& w, Value a, Value b, Reduce how) {
  const Value v = w.code.vector();
  if (how == Reduce::Sum)
    w.code.emit("FADD", {v, a, b});
  else
    w.code.emit("FMNMX", {v, a, b, !kPT});
  return v;
}

Value warp_reduce(Writer& w, Value value, Reduce how, int lanes) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const Value other = w.code.vector();
    w.code.emit("SHFL.BFLY", {kPT, other, value, imm(distance), imm(0x1f)});
    value = combine(w, value, other, how);
  }
  return value;
}

}  // namespace forewarp::sketch

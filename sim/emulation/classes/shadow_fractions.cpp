// Quotients of the block index: upper words of products and shifts to the right, until they are used.
#include <algorithm>
#include <bit>

#include "emulation/classes/shadow.h"

namespace forewarp::emulation {
namespace {

// Numerators and slopes beyond these are not followed: sums of several still fit.
constexpr int kLargestNumeratorBits = 62, kLargestShift = 50;
constexpr std::int64_t kLargestSlope = std::int64_t{1} << 52;

/// Its numerators are kept: a fraction, or the upper word of one that was shifted.
bool has_numerators(const Tag& t) { return t.kind == TagKind::Fraction || (t.kind == TagKind::High && t.shift != 0); }

template <class Visit>
void each_lane(LaneMask lanes, const Visit& visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<std::size_t>(std::countr_zero(lanes)));
}

}  // namespace

/// The tag of the first of the lanes under consideration, as it is.
const Tag& Shadow::raw_tag(const Exec& x, std::uint32_t offset) const {
  static const Tag kNone{};
  if ((offset & kLiteralBit) != 0 || lanes_ == 0) return kNone;
  const RowTags& row = warps_[static_cast<std::size_t>(x.warp->index)].rows[offset / kRowBytes];
  for (const Tag& part : row.part)
    if ((part.lanes & lanes_) == lanes_) return part;
  return kNone;
}

/// Zero in all lanes of every block.
bool Shadow::is_zero_word(const Exec& x, const Source& s) const {
  if (s.flip != 0 || s.add != 0 || row_tag(x, s.row).kind != TagKind::None) return false;
  bool zero = true;
  each_lane(lanes_, [&](std::size_t i) { zero &= x.row(s)[i] == 0; });
  return zero;
}

/// What a source is as a fraction, if it is one or an integer, in all lanes under consideration.
std::optional<Shadow::Fraction> Shadow::fraction(const Exec& x, const Source& s, bool is_unsigned) {
  if (s.flip != 0 || s.add != 0) return std::nullopt;
  const Tag& t = raw_tag(x, s.row);
  Fraction f{lanes_, t.slope, 0, {}};
  if (t.kind == TagKind::Linear && t.dims == 0) {
    const Operand v = operand(x, s, is_unsigned);
    keep_range(x, v.tag, v.value, is_unsigned);
    each_lane(lanes_, [&](std::size_t i) { f.n[i] = v.value[i]; });
    return f;
  }
  if (!has_numerators(t) || t.dims != 0) return std::nullopt;
  f.shift = t.shift;
  const Numerators& n = *warp(x).numerators[s.row / kRowBytes];
  each_lane(lanes_, [&](std::size_t i) { f.n[i] = n[i]; });
  return f;
}

/// (a * b + c) / 2^32, where one factor moves and the other is the same for all lanes and blocks.
std::optional<Shadow::Fraction> Shadow::product_fraction(const Exec& x, const Op& op, bool is_unsigned) {
  const Operand a = operand(x, op.a, is_unsigned), b = operand(x, op.b, is_unsigned);
  const bool first = a.tag.kind != TagKind::None;
  if (first && b.tag.kind != TagKind::None) return std::nullopt;
  const Operand &moving = first ? a : b, &factor = first ? b : a;
  if (moving.tag.kind != TagKind::Linear || moving.tag.dims != 0 || moving.tag.lanes != lanes_) return std::nullopt;
  const std::int64_t by = factor.value[static_cast<std::size_t>(std::countr_zero(lanes_))];
  bool uniform = true;
  each_lane(lanes_, [&](std::size_t i) { uniform &= factor.value[i] == by; });
  if (!uniform || by == 0 || largest_part(moving.tag.slope) > kLargestSlope / std::abs(by)) return std::nullopt;
  Source upper = op.c;
  upper.row += kRowBytes;
  const Operand low = operand(x, op.c, true), high = operand(x, upper, is_unsigned);
  const bool plain = op.c.flip == 0 && op.c.add == 0 && low.tag.kind == TagKind::None && high.tag.dims == 0;
  const bool adds = high.tag.kind == TagKind::Linear && high.tag.lanes == lanes_;
  if (!plain || !(high.tag.kind == TagKind::None || adds)) return std::nullopt;
  Fraction f{lanes_, scale(moving.tag.slope, by), 32, {}};
  if (adds) {
    if (largest_part(high.tag.slope) > kLargestSlope >> 32) return std::nullopt;
    keep_range(x, high.tag, high.value, is_unsigned);
    f.slope = add(f.slope, scale(high.tag.slope, std::int64_t{1} << 32));
  }
  keep_range(x, moving.tag, moving.value, is_unsigned);
  each_lane(lanes_,
            [&](std::size_t i) { f.n[i] = Wide{moving.value[i]} * by + low.value[i] + (Wide{high.value[i]} << 32); });
  return f;
}

/// Shifts to the right, under the condition that the word, read as signed or not, is the fraction's value.
bool Shadow::shift_fraction(Fraction& f, int by, bool is_unsigned) {
  const Wide lowest = is_unsigned ? 0 : -(Wide{1} << 31),
             highest = is_unsigned ? (Wide{1} << 32) - 1 : (Wide{1} << 31) - 1;
  Wide low = -(Wide{1} << kLargestNumeratorBits), high = -low;
  bool within = true;
  each_lane(f.lanes, [&](std::size_t i) {
    const Wide bottom = (lowest << f.shift) - f.n[i], top = ((highest + 1) << f.shift) - 1 - f.n[i];
    within &= bottom <= 0 && top >= 0;
    low = std::max(low, bottom);
    high = std::min(high, top);
  });
  if (!within || f.shift > kLargestShift) return false;
  conditions_.interval(f.slope, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high));
  f.shift += by;
  return true;
}

/// u - floor(n / 2^k) = floor((u 2^k - n + 2^k - 1) / 2^k): what is left of an integer by an upper word, as
/// multipliers of 33 bits need it.
std::optional<Shadow::Fraction> Shadow::difference(const Exec& x, const Op& op) {
  if (op.a.flip == 0 && op.b.flip == 0 && op.c.flip == 0) return std::nullopt;
  const Source *less = nullptr, *from = nullptr;
  for (const Source* s : {&op.a, &op.b, &op.c}) {
    const Tag& t = raw_tag(x, s->row);
    const bool negative = s->flip == ~0u && s->add == 1;
    if (has_numerators(t) && negative && t.shift == 32 && less == nullptr) {
      less = s;
    } else if (t.kind == TagKind::Linear && s->flip == 0 && s->add == 0 && from == nullptr) {
      from = s;
    } else if (!is_zero_word(x, *s)) {
      return std::nullopt;
    }
  }
  const bool no_carry = !op.carry_out && !plans_[x.pc].carry_in;
  if (less == nullptr || from == nullptr || !no_carry) return std::nullopt;
  Source plain = *less;
  plain.flip = plain.add = 0;
  auto f = fraction(x, plain, true);
  const auto u = fraction(x, *from, true);
  if (!f || !u || largest_part(u->slope) > kLargestSlope >> f->shift) return std::nullopt;
  f->slope = add(scale(u->slope, std::int64_t{1} << f->shift), scale(f->slope, -1));
  each_lane(f->lanes, [&](std::size_t i) { f->n[i] = (u->n[i] << f->shift) - f->n[i] + (Wide{1} << f->shift) - 1; });
  return f;
}

/// The upper word of {c:a} << s, plus b: a shift to the right by 32 - s, as divisions end.
bool Shadow::lea_fraction(const Exec& x, const Op& op) {
  const bool is_unsigned = op.variant == 0;
  const Tag& raw = raw_tag(x, op.a.row);
  const int by = 32 - static_cast<int>(op.immediate);
  const bool zero_above = !is_unsigned || is_zero_word(x, op.c);
  const bool moves = raw.kind == TagKind::Fraction || raw.kind == TagKind::Linear || raw.shift == 32;
  if (!moves || raw.kind == TagKind::Masked || by == 32 || !zero_above || op.b.flip != 0 || op.b.add != 0) return false;
  auto f = fraction(x, op.a, is_unsigned);
  const Tag& b = raw_tag(x, op.b.row);
  const bool word = has_numerators(b);
  if (!f || b.kind == TagKind::Masked) return false;
  if (word && by == 1) {
    // a + b = u, an integer: (a >> 1) + b = floor((u + b) / 2).
    auto g = fraction(x, op.b, true);
    if (g && g->shift == f->shift && f->shift <= kLargestShift) {
      const Wide unit = Wide{1} << f->shift;
      bool whole = true;
      const BlockSlope both = add(f->slope, g->slope);
      for_each_part(both, [&](const std::int64_t& part) { whole &= part % unit == 0; });
      each_lane(lanes_, [&](std::size_t i) { whole &= (f->n[i] + g->n[i] + 1) % unit == 0; });
      if (whole && shift_fraction(*f, 1, is_unsigned)) {
        Fraction half{lanes_, add(f->slope, scale(g->slope, 2)), g->shift + 1, {}};
        each_lane(lanes_, [&](std::size_t i) { half.n[i] = f->n[i] - (unit - 1) + 2 * g->n[i]; });
        return set_fraction(x, op.dst, half);
      }
    }
  }
  if (!shift_fraction(*f, by, is_unsigned)) return false;
  const Operand plain = operand(x, op.b, false);
  if (constant(*f)) {
    if (!word) {
      set(x, op.dst, plain.tag);
      return true;
    }
    auto g = fraction(x, op.b, is_unsigned);
    if (!g) return false;
    each_lane(lanes_, [&](std::size_t i) { g->n[i] += (f->n[i] >> f->shift) << g->shift; });
    return set_fraction(x, op.dst, *g);
  }
  if (word || plain.tag.dims != 0 || f->shift > kLargestShift) return false;
  if (plain.tag.kind != TagKind::None) {
    if (plain.tag.kind != TagKind::Linear || plain.tag.lanes != lanes_) return false;
    if (largest_part(plain.tag.slope) > kLargestSlope >> f->shift) return false;
    keep_range(x, plain.tag, plain.value, false);
    f->slope = add(f->slope, scale(plain.tag.slope, std::int64_t{1} << f->shift));
  }
  each_lane(lanes_, [&](std::size_t i) { f->n[i] += Wide{plain.value[i]} << f->shift; });
  return set_fraction(x, op.dst, *f);
}

/// Whether all lanes have the same value in every block.
bool Shadow::constant(const Fraction& f) const {
  const Span reach = conditions_.reach(f.slope);
  bool same = true;
  each_lane(f.lanes,
            [&](std::size_t i) { same &= (f.n[i] + reach.low) >> f.shift == (f.n[i] + reach.high) >> f.shift; });
  return same;
}

bool Shadow::fits(const Fraction& f) {
  const Wide largest = Wide{1} << kLargestNumeratorBits;
  bool fit = largest_part(f.slope) <= kLargestSlope;
  each_lane(f.lanes, [&](std::size_t i) { fit &= f.n[i] < largest && f.n[i] > -largest; });
  return fit;
}

void Shadow::keep_numerators(const Exec& x, std::uint32_t offset, const Fraction& f) {
  auto& kept = warp(x).numerators[offset / kRowBytes];
  if (!kept) kept = std::make_unique<Numerators>();
  each_lane(f.lanes, [&](std::size_t i) { (*kept)[i] = static_cast<std::int64_t>(f.n[i]); });
}

/// False if it is too large to be followed.
bool Shadow::set_fraction(const Exec& x, std::uint32_t offset, const Fraction& f) {
  if (!fits(f)) return false;
  if (constant(f)) {
    set(x, offset, Tag{});
    return true;
  }
  if (f.shift > kLargestShift) return false;
  Fraction whole = f;
  bool exact = true;
  for_each_part(whole.slope, [&](std::int64_t& part) {
    exact &= part % (std::int64_t{1} << f.shift) == 0;
    part >>= f.shift;
  });
  if (exact) {
    set(x, offset, {TagKind::Linear, 0, f.lanes, whole.slope, 0});
    return true;
  }
  if (offset >= uniform_row_) {
    // Written whole, from lanes that agree.
    whole = f;
    whole.lanes = ~LaneMask{0};
    whole.n.fill(f.n[static_cast<std::size_t>(std::countr_zero(f.lanes))]);
    keep_numerators(x, offset, whole);
  } else {
    keep_numerators(x, offset, f);
  }
  set(x, offset, {TagKind::Fraction, 0, f.lanes, f.slope, static_cast<std::uint8_t>(f.shift)});
  return true;
}

/// Makes what waits in these rows Linear.
void Shadow::settle(const Exec& x, const std::vector<std::uint32_t>& rows) {
  WarpTags& w = warp(x);
  if (!w.waits) return;
  for (const std::uint32_t row : rows)
    for (Tag& part : w.rows[row].part)
      if ((part.kind == TagKind::Fraction || part.kind == TagKind::Masked) && (part.lanes & lanes_) != 0)
        settle_part(x, row, part);
}

void Shadow::settle_part(const Exec& x, std::uint32_t row, Tag& part) {
  const Tag was = part;
  part = {TagKind::Linear, 0, was.lanes, was.slope, 0};
  const std::int64_t unit = std::int64_t{1} << was.shift;
  if (was.kind == TagKind::Masked) {
    conditions_.residue(was.slope, unit);
    return;
  }
  // Whole steps are linear; the rest is a coordinate of its own.
  BlockSlope rest = was.slope;
  for_each_part(rest, [unit](std::int64_t& p) { p %= unit; });
  for_each_part(part.slope, [unit](std::int64_t& p) { p /= unit; });
  const Numerators& n = *warp(x).numerators[row];
  const int q = conditions_.quotient(rest, n[static_cast<std::size_t>(std::countr_zero(was.lanes))], unit);
  if (q < 0) {
    part = {TagKind::Opaque, dims_of(was.slope), was.lanes, {}, 0};
    return;
  }
  std::int64_t lowest = unit - 1, highest = 0;
  each_lane(was.lanes, [&](std::size_t i) {
    const std::int64_t remainder = n[i] & (unit - 1);
    lowest = std::min(lowest, remainder);
    highest = std::max(highest, remainder);
  });
  conditions_.interval(add(rest, scale(quotient_slope(q), -unit)), -lowest, unit - 1 - highest);
  part.slope = add(part.slope, quotient_slope(q));
}

/// Whether the word has the same sign in every block of the grid.
bool Shadow::sign_stays(const Exec& x, const Tag& t, const Source& s) const {
  if (t.kind != TagKind::Linear || t.dims != 0) return false;
  const Operand v = operand(x, s, false);
  const Span reach = conditions_.reach(t.slope);
  constexpr std::int64_t kEdge = std::int64_t{1} << 31;
  bool stays = true;
  each_lane(t.lanes, [&](std::size_t i) {
    const std::int64_t low = v.value[i] + reach.low, high = v.value[i] + reach.high;
    stays &= low >= -kEdge && high < kEdge && (low < 0) == (high < 0);
  });
  return stays;
}

/// A comparison with zero that asks for the sign alone of what is Masked.
bool Shadow::compares_sign(const Exec& x, const Op& op, const ShadowPlan& plan) const {
  if (plan.rule != Rule::Compare || plan.is_unsigned) return false;
  if (op.variant != kLess && op.variant != (kEqual | kGreater)) return false;
  return op.a.flip == 0 && is_zero_word(x, op.b) && raw_tag(x, op.a.row).kind == TagKind::Masked;
}

}  // namespace forewarp::emulation

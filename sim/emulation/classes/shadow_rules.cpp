// How tags pass through arithmetic.
#include <algorithm>
#include <bit>
#include <numeric>

#include "emulation/classes/shadow.h"
#include "emulation/machine/constants.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

Tag opaque(Dims dims, LaneMask lanes) { return {TagKind::Opaque, dims, lanes, {}, 0}; }

/// Whether the lanes hold one value, and which.
bool uniform_value(const std::array<std::int64_t, kWarpLanes>& values, LaneMask lanes, std::int64_t& value) {
  value = values[static_cast<std::size_t>(std::countr_zero(lanes))];
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    if (values[static_cast<std::size_t>(std::countr_zero(m))] != value) return false;
  }
  return true;
}

/// The largest k such that 2^k divides every part of a slope (not all zero).
int common_shift(const BlockSlope& s) {
  std::int64_t bits = 0;
  for_each_part(s, [&](const std::int64_t& part) { bits |= part; });
  return std::countr_zero(static_cast<std::uint64_t>(bits));
}

}  // namespace

void Shadow::compute(const Exec& x, const Op& op) {
  const ShadowPlan& plan = plans_[x.pc];
  lanes_ = x.enabled;
  if (plan.rule == Rule::BlockIndex) {
    const BlockSlope unit{plan.dimension == 0, plan.dimension == 1, plan.dimension == 2, {}};
    set(x, op.dst, {TagKind::Linear, 0, lanes_, unit, 0});
    return;
  }
  if (plan.rule == Rule::Compare || plan.rule == Rule::CompareExtended) {
    bool moot = settles_join(x, op, plan);
    if (!moot) {
      ask(x, 1u << op.p[0].slot);
      moot = asks_nothing(x, op);
    }
    if (moot) {
      clear(x, plan);
      return;
    }
  }
  if (plan.rule == Rule::Clear || !any_tagged(x, plan)) {
    clear(x, plan);
    return;
  }
  if (warp(x).waits && !plan.is_lazy && !compares_sign(x, op, plan)) settle(x, plan.reads);
  std::array<LaneMask, 8> groups;
  const std::size_t count = split_lanes(x, plan, groups);
  for (std::size_t i = 0; i < count; ++i) {
    lanes_ = groups[i];
    if (count > 1 && !any_tagged(x, plan)) {
      clear(x, plan);
    } else {
      followed_ += plan.rule == Rule::Generic ? 1 : kFollowedByRule;
      apply(x, op, plan);
    }
  }
}

/// Lanes of a comparison whose result hangs on its outcome: not where what it is joined with settles the result, as in
/// `causal && row < column` where `causal` is false.
LaneMask Shadow::asked_lanes(const Exec& x, const Op& op) const {
  const LaneMask with = x.predicate(op.p[0]);
  return lanes_ & (op.combine == 0 ? with : op.combine == 1 ? ~with : ~LaneMask{0});
}

/// A comparison that no lane asks for, in every block of the class.
bool Shadow::asks_nothing(const Exec& x, const Op& op) {
  return !carries_any(x, op.p[0].slot) && asked_lanes(x, op) == 0;
}

/// A comparison of what no block changes, which settles the result whatever its predicate is, as in
/// `row < column && causal`.
bool Shadow::settles_join(const Exec& x, const Op& op, const ShadowPlan& plan) {
  const std::uint8_t with = op.p[0].slot;
  if (plan.rule != Rule::Compare || op.combine > 1 || op.pdst[1] != kDiscardedPredicate) return false;
  if ((warp(x).outcome_slots >> with & 1u) == 0 && !carries_any(x, with)) return false;
  if (any_row_tagged(x, plan)) return false;
  const Operand l = operand(x, op.a, plan.is_unsigned), r = operand(x, op.b, plan.is_unsigned);
  for (LaneMask m = lanes_; m != 0; m &= m - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(m));
    const int relation = l.value[i] < r.value[i] ? kLess : l.value[i] == r.value[i] ? kEqual : kGreater;
    if (((op.variant & relation) != 0) != (op.combine == 1)) return false;
  }
  return true;
}

/// Lanes whose sources have the same tags go together; an instruction that mixes lanes takes them all at once.
std::size_t Shadow::split_lanes(const Exec& x, const ShadowPlan& plan, std::array<LaneMask, 8>& groups) {
  groups[0] = x.enabled;
  const bool by_lane = plan.rule != Rule::Generic && plan.rule != Rule::Shuffle && plan.rule != Rule::ToUniform;
  if (!by_lane || x.enabled == 0) return 1;
  const WarpTags& w = warp(x);
  std::size_t count = 0;
  for (LaneMask rest = x.enabled; rest != 0; ++count) {
    if (count == groups.size()) {
      groups[0] = x.enabled;
      return 1;
    }
    LaneMask group = rest;
    const auto narrow = [&](LaneMask tagged) { group &= (group & (0u - group) & tagged) != 0 ? tagged : ~tagged; };
    for (const std::uint32_t row : plan.reads) {
      for (const Tag& part : w.rows[row].part) narrow(part.lanes);
    }
    if (w.carry_lanes != 0) {
      for (const std::uint8_t slot : plan.predicate_reads) {
        for (const Carry& part : w.carries[slot]) narrow(part.lanes);
      }
    }
    groups[count] = group;
    rest &= ~group;
  }
  return count;
}

void Shadow::apply(const Exec& x, const Op& op, const ShadowPlan& plan) {
  switch (plan.rule) {
    case Rule::Copy: {
      std::vector<Tag> tags;
      for (std::uint32_t i = 0; i < plan.writes.size(); ++i) tags.push_back(row_tag(x, op.a.row + i * kRowBytes));
      for (std::uint32_t i = 0; i < plan.writes.size(); ++i) set(x, op.dst + i * kRowBytes, tags[i]);
      break;
    }
    case Rule::Sum: {
      if (const auto f = difference(x, op); f && set_fraction(x, op.dst, *f)) break;
      settle(x, plan.reads);
      Gathered g;
      for (const Source* s : {&op.a, &op.b, &op.c}) g.take(tag(x, *s));
      if (plan.carry_in) {
        apply_carry_sum(x, op, g);
      } else {
        apply_sum(x, op, g);
      }
      break;
    }
    case Rule::Multiply:
      apply_multiply(x, op, plan);
      break;
    case Rule::MultiplyWide:
      apply_wide(x, op, plan);
      break;
    case Rule::MultiplyHigh:
      apply_high(x, op, plan);
      break;
    case Rule::Absolute:
      apply_absolute(x, op);
      break;
    case Rule::LeaLow:
      apply_lea(x, op);
      break;
    case Rule::LeaHigh:
      apply_lea_high(x, op, plan);
      break;
    case Rule::ShiftLeft:
      apply_shift_left(x, op);
      break;
    case Rule::ShiftRight:
      apply_shift_right(x, op);
      break;
    case Rule::ShiftLeftHigh:
      apply_shift_left_high(x, op);
      break;
    case Rule::Logic:
      apply_logic(x, op, plan);
      break;
    case Rule::Permute:
      apply_permute(x, op, plan);
      break;
    case Rule::Select:
      apply_select(x, op, plan);
      break;
    case Rule::Compare:
      apply_compare(x, op, plan);
      break;
    case Rule::MinMax:
      apply_min_max(x, op, operand(x, op.a, plan.is_unsigned), operand(x, op.b, plan.is_unsigned), plan.is_unsigned);
      break;
    case Rule::AddMinMax: {
      Operand sum = operand(x, op.a, false);
      const Operand b = operand(x, op.b, false);
      Gathered g;
      g.take(sum.tag);
      g.take(b.tag);
      for (std::size_t i = 0; i < kWarpLanes; ++i) {
        const auto wrapped = static_cast<std::uint32_t>(sum.value[i] + b.value[i]);
        sum.value[i] = plan.is_unsigned ? std::int64_t{wrapped} : std::int64_t{static_cast<std::int32_t>(wrapped)};
      }
      sum.tag = g.high != 0 ? opaque(g.dims, g.lanes) : g.result(TagKind::Linear);
      apply_min_max(x, op, sum, operand(x, op.c, plan.is_unsigned), plan.is_unsigned);
      break;
    }
    case Rule::Shuffle:
      apply_shuffle(x, op, plan);
      break;
    case Rule::ToUniform: {
      Tag t = row_tag(x, op.a.row);
      const bool first = (t.lanes >> std::countr_zero(lanes_) & 1u) != 0;
      t.lanes = first ? ~LaneMask{0} : 0;
      assign(x, op.dst, t, ~LaneMask{0});
      break;
    }
    case Rule::ToFloat:
    case Rule::FloatProduct:
    case Rule::FloatToInteger:
      if (!follow_cluster_index(x, op, plan.rule)) apply_generic(x, plan);
      break;
    default:
      apply_generic(x, plan);
      break;
  }
}

/// %clusterid is the block index as a float, times a constant of the launch, cut to an integer. False if it is
/// something else.
bool Shadow::follow_cluster_index(const Exec& x, const Op& op, Rule rule) {
  const Tag& t = raw_tag(x, op.a.row);
  const auto plain = [](const Source& s) { return s.flip == 0 && s.add == 0; };
  if (t.dims != 0 || !plain(op.a)) return false;
  const std::uint32_t index[] = {x.block->index.x, x.block->index.y, x.block->index.z};
  const std::uint32_t extent[] = {cluster_.x, cluster_.y, cluster_.z}, blocks[] = {grid_.x, grid_.y, grid_.z};
  const auto hold = [&](const Source& s, std::uint32_t bits) {
    const std::uint32_t* row = x.row(s);
    bool all = true;
    for (LaneMask m = lanes_; m != 0; m &= m - 1) all &= row[std::countr_zero(m)] == bits;
    return all;
  };
  if (rule == Rule::ToFloat) {
    for (std::uint8_t d = 0; d < 3; ++d) {
      const BlockSlope unit{d == 0, d == 1, d == 2, {}};
      if (t.kind != TagKind::Linear || t.slope != unit || blocks[d] > kMostRatio || !hold(op.a, index[d])) continue;
      set(x, op.dst, {TagKind::IndexAsFloat, 0, lanes_, unit, d});
      return true;
    }
    return false;
  }
  if (rule == Rule::FloatProduct) {
    const bool known = t.kind == TagKind::IndexAsFloat && plain(op.b) && row_tag(x, op.b.row).kind == TagKind::None;
    if (!known || !hold(op.b, cluster_ratio(extent[t.shift]))) return false;
    set(x, op.dst, {TagKind::ClusterRatio, 0, lanes_, t.slope, t.shift});
    return true;
  }
  if (t.kind != TagKind::ClusterRatio) return false;
  BlockSlope slope = t.slope;
  if (extent[t.shift] > 1) {
    const int q = conditions_.quotient(t.slope, index[t.shift], extent[t.shift]);
    if (q < 0) return false;
    slope = quotient_slope(q);
  }
  set(x, op.dst, {TagKind::Linear, 0, lanes_, slope, 0});
  return true;
}

void Shadow::apply_generic(const Exec& x, const ShadowPlan& plan) {
  WarpTags& w = warp(x);
  Dims dims = 0;
  for (const std::uint32_t row : plan.reads) {
    for (const Tag& part : w.rows[row].part) {
      if ((part.lanes & lanes_) == 0) continue;
      dims = static_cast<Dims>(dims | part.dims | dims_of(part.slope));
    }
  }
  set_opaque(x, plan, static_cast<Dims>(dims | predicate_dims(x, plan)));
}

void Shadow::apply_sum(const Exec& x, const Op& op, const Gathered& g) {
  // One upper word plus constants is still that upper word.
  const bool upper = g.high == 1 && g.linear == 0;
  const bool mixed = g.high != 0 && !upper;
  if (op.carry_out && (g.lost || g.high != 0)) fix(x, g.dims);
  set(x, op.dst, mixed ? opaque(g.dims, g.lanes) : g.result(upper ? TagKind::High : TagKind::Linear));
  const Tag t = g.result(TagKind::Linear);
  const bool followed = !g.lost && g.high == 0;
  set_carry(x, op.pdst[0], followed ? Carry{t.lanes, t.slope, t.dims, false} : Carry{});
  set_carry(x, op.pdst[1], followed ? Carry{t.lanes, t.slope, t.dims, true} : Carry{});
}

/// The upper half of a 64-bit sum: its carry knows the slope of the whole.
void Shadow::apply_carry_sum(const Exec& x, const Op& op, Gathered g) {
  const Carry c0 = carry(x, op.p[0]), c1 = carry(x, op.p[1]);
  if (c0.lanes == 0 && c1.lanes == 0) {
    apply_sum(x, op, g);
    return;
  }
  const bool both = c0.lanes != 0 && c1.lanes != 0;
  const bool halves = c0.second != c1.second && c0.slope == c1.slope && c0.dims == c1.dims;
  const bool complete = both ? halves || (!c0.second && !c1.second) : !(c0.lanes != 0 ? c0.second : c1.second);
  const bool words = g.linear == 0;
  Gathered sum;
  for (const Carry& c : {c0, c1}) {
    if (c.lanes != 0) sum.take({TagKind::High, c.dims, c.lanes, c.second ? BlockSlope{} : c.slope, 0});
  }
  // The words' own slopes are what the carry already tells; what is not followed adds up.
  if (g.lanes != 0) sum.take({TagKind::Opaque, g.opaque, g.lanes, {}, 0});
  sum.dims = static_cast<Dims>(sum.dims | g.dims);
  if (op.carry_out) fix(x, sum.dims);
  for (const std::uint8_t slot : op.pdst) set_carry(x, slot, Carry{});
  set(x, op.dst, complete && words && !g.lost ? sum.result(TagKind::High) : opaque(sum.dims, sum.lanes));
}

/// The tag of a * b: a linear factor times one that is the same for all lanes and blocks.
Tag Shadow::product(const Exec& x, const Op& op, bool wide, bool is_unsigned) {
  if (tag(x, op.a).kind == TagKind::None && tag(x, op.b).kind == TagKind::None) return {};
  const Operand a = operand(x, op.a, is_unsigned), b = operand(x, op.b, is_unsigned);
  Gathered g;
  g.take(a.tag);
  g.take(b.tag);
  if (g.lanes == 0) return {};
  const bool both = a.tag.kind != TagKind::None && b.tag.kind != TagKind::None;
  const Operand& moving = a.tag.kind != TagKind::None ? a : b;
  const Operand& factor = a.tag.kind != TagKind::None ? b : a;
  std::int64_t f = 0;
  const bool known = !both && uniform_value(factor.value, g.lanes, f);
  if (known && f == 0) return {};
  if (known && f == 1 && !g.lost && !wide) return moving.tag;
  if (g.lost || both || g.high != 0 || !known) return opaque(g.dims, g.lanes);
  if (wide) keep_range(x, moving.tag, moving.value, is_unsigned);
  if (std::abs(f) > (std::int64_t{1} << 33)) return opaque(g.dims, g.lanes);
  const BlockSlope s = moving.tag.slope;
  // What would overflow is noise and not followed.
  if (largest_part(s) > (std::int64_t{1} << 40) / std::max<std::int64_t>(1, std::abs(f)))
    return opaque(g.dims, g.lanes);
  return {moving.tag.kind, moving.tag.dims, g.lanes, scale(s, f), 0};
}

void Shadow::apply_multiply(const Exec& x, const Op& op, const ShadowPlan& plan) {
  Gathered g;
  g.take(product(x, op, false, false));
  g.take(tag(x, op.c));
  if (plan.carry_in) {
    apply_carry_sum(x, op, g);
  } else {
    apply_sum(x, op, g);
  }
}

/// A 64-bit summand: a pair, or a word that the upper word, which stays, extends.
Tag Shadow::wide_summand(const Exec& x, const Source& s) {
  const Tag low = tag(x, s), high = high_tag(x, s);
  Gathered g;
  g.take(low);
  g.take(high);
  if (g.lanes == 0) return {};
  const bool words = low.kind != TagKind::High && low.kind != TagKind::None && high.kind != TagKind::Linear;
  const bool match =
      high.kind == TagKind::High ? high.slope == low.slope : high.kind == TagKind::None || is_zero(low.slope);
  if (g.lost || !words || !match) return opaque(g.dims, g.lanes);
  if (high.kind == TagKind::None) {
    const Operand o = operand(x, s, true);
    keep_range(x, o.tag, o.value, true);
  }
  Tag t = low;
  t.dims = g.opaque;
  return t;
}

void Shadow::apply_wide(const Exec& x, const Op& op, const ShadowPlan& plan) {
  // Without a summand, the upper word may be what a division begins with.
  Source upper = op.c;
  upper.row += kRowBytes;
  const bool plain = !op.carry_out && is_zero_word(x, op.c) && is_zero_word(x, upper);
  const auto f = plain ? product_fraction(x, op, plan.is_unsigned) : std::nullopt;
  Gathered g;
  g.take(product(x, op, true, plan.is_unsigned));
  g.take(wide_summand(x, op.c));
  for (const std::uint8_t slot : op.pdst) set_carry(x, slot, Carry{});
  if (op.carry_out && g.lanes != 0) fix(x, g.dims);
  set(x, op.dst, g.result(TagKind::Linear));
  const Tag high = g.result(TagKind::High);
  if (f && fits(*f) && high.kind == TagKind::High) {
    keep_numerators(x, op.dst + kRowBytes, *f);
    Tag kept = high;
    kept.shift = 32;
    set(x, op.dst + kRowBytes, kept);
    return;
  }
  if (!f || !set_fraction(x, op.dst + kRowBytes, *f)) set(x, op.dst + kRowBytes, high);
}

/// The upper word alone.
void Shadow::apply_high(const Exec& x, const Op& op, const ShadowPlan& plan) {
  const auto f = op.carry_out ? std::nullopt : product_fraction(x, op, plan.is_unsigned);
  if (!f || !set_fraction(x, op.dst, *f)) apply_generic(x, plan);
}

void Shadow::apply_absolute(const Exec& x, const Op& op) {
  const Operand v = operand(x, op.a, false);
  const Tag& t = v.tag;
  if (t.kind != TagKind::Linear || t.dims != 0) {
    set(x, op.dst, opaque(static_cast<Dims>(t.dims | dims_of(t.slope)), t.lanes));
    return;
  }
  keep_range(x, t, v.value, false);
  keep(outcomes_of(v, Operand{}, t.lanes, kLess));
  LaneMask negative = 0;
  for (LaneMask m = t.lanes; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (v.value[static_cast<std::size_t>(lane)] < 0) negative |= LaneMask{1} << lane;
  }
  Tag turned = t;
  turned.slope = scale(t.slope, -1);
  assign(x, op.dst, t, lanes_ & ~negative);
  assign(x, op.dst, turned, lanes_ & negative);
}

void Shadow::apply_lea(const Exec& x, const Op& op) {
  Gathered g;
  Tag a = tag(x, op.a);
  if (a.kind == TagKind::High) a = opaque(static_cast<Dims>(a.dims | dims_of(a.slope)), a.lanes);
  a.slope = scale(a.slope, std::int64_t{1} << op.immediate);
  g.take(a);
  g.take(tag(x, op.b));
  apply_sum(x, op, g);
}

/// The upper half of base + (index << s), its lower half made by the LEA whose carry comes in.
void Shadow::apply_lea_high(const Exec& x, const Op& op, const ShadowPlan& plan) {
  if (!plan.carry_in && !op.carry_out && lea_fraction(x, op)) return;
  settle(x, plan.reads);
  const Tag a = tag(x, op.a), b = tag(x, op.b), c = op.variant != 0 ? Tag{} : tag(x, op.c);
  Gathered g;
  for (const Tag& t : {a, b, c}) g.take(t);
  const Carry in = plan.carry_in ? carry(x, op.p[0]) : Carry{};
  const bool shapes = a.kind != TagKind::High && b.kind != TagKind::Linear && c.kind != TagKind::Linear && !g.lost;
  const bool lanes_agree = g.lanes == 0 || g.lanes == in.lanes;
  const auto dims = static_cast<Dims>(g.dims | (in.lanes != 0 ? carry_dims(in, in) : 0));
  for (const std::uint8_t slot : op.pdst) set_carry(x, slot, Carry{});
  if (op.carry_out) fix(x, dims);
  if (in.lanes != 0 && shapes && lanes_agree && !in.second) {
    const Operand index = operand(x, op.a, op.variant == 0);
    if (c.kind == TagKind::None) keep_range(x, index.tag, index.value, op.variant == 0);
    Gathered sum;
    sum.take({TagKind::High, in.dims, in.lanes, in.slope, 0});
    if (g.lanes != 0) sum.take({TagKind::Opaque, g.opaque, g.lanes, {}, 0});
    set(x, op.dst, sum.result(TagKind::High));
    return;
  }
  if (in.lanes == 0 && a.kind == TagKind::None && c.kind == TagKind::None && !g.lost) {
    set(x, op.dst, b);  // a constant is added
    return;
  }
  set(x, op.dst, opaque(dims, g.lanes | in.lanes));
}

void Shadow::apply_shift_left(const Exec& x, const Op& op) {
  Tag t = tag(x, op.a);
  if (t.kind == TagKind::High) t = opaque(static_cast<Dims>(t.dims | dims_of(t.slope)), t.lanes);
  t.slope = scale(t.slope, std::int64_t{1} << op.immediate);
  set(x, op.dst, t);
}

void Shadow::apply_shift_right(const Exec& x, const Op& op) {
  const bool is_unsigned = (op.variant & kShiftSigned) == 0;
  const int k = static_cast<int>(op.immediate);
  const Tag& raw = raw_tag(x, op.a.row);
  if (raw.kind == TagKind::Fraction || (raw.kind == TagKind::High && raw.shift != 0)) {
    auto f = fraction(x, op.a, is_unsigned);
    if (f && shift_fraction(*f, k, is_unsigned) && set_fraction(x, op.dst, *f)) return;
    settle(x, plans_[x.pc].reads);
  } else if (raw.kind == TagKind::Masked) {
    settle(x, plans_[x.pc].reads);
  }
  const Operand v = operand(x, op.a, is_unsigned);
  Tag t = v.tag;
  if (t.kind != TagKind::Linear || t.dims != 0) {
    set(x, op.dst, opaque(static_cast<Dims>(t.dims | dims_of(t.slope)), t.lanes));
    return;
  }
  keep_range(x, t, v.value, is_unsigned);
  const Span reach = conditions_.reach(t.slope);
  bool constant = true;
  for (LaneMask m = t.lanes; m != 0; m &= m - 1) {
    const std::int64_t value = v.value[static_cast<std::size_t>(std::countr_zero(m))];
    constant &= (value + reach.low) >> k == (value + reach.high) >> k;
  }
  if (constant) {
    t = Tag{};
  } else if (common_shift(t.slope) >= k) {
    for_each_part(t.slope, [k](std::int64_t& part) { part >>= k; });
  } else if (!is_unsigned && k == 31) {
    t.kind = TagKind::High;  // the sign: upper word of the value as 64 bits
  } else {
    auto f = fraction(x, op.a, is_unsigned);
    if (f && shift_fraction(*f, k, is_unsigned) && set_fraction(x, op.dst, *f)) return;
    t = opaque(dims_of(t.slope), t.lanes);
  }
  set(x, op.dst, t);
}

/// The upper word of {c:a} << s, for the pair that a << s begins.
void Shadow::apply_shift_left_high(const Exec& x, const Op& op) {
  const Tag low = tag(x, op.a), high = tag(x, op.c);
  Gathered g;
  g.take(low);
  g.take(high);
  const std::uint32_t s = x.row(op.b)[0];
  const bool follows = !g.lost && low.kind == TagKind::Linear && s < 32 &&
                       (high.kind == TagKind::None || (high.kind == TagKind::High && high.slope == low.slope));
  if (!follows) {
    set(x, op.dst, opaque(g.dims, g.lanes));
    return;
  }
  if (high.kind == TagKind::None) {
    const Operand o = operand(x, op.a, true);
    keep_range(x, o.tag, o.value, true);
  }
  set(x, op.dst, {TagKind::High, g.opaque, g.lanes, scale(low.slope, std::int64_t{1} << s), 0});
}

namespace {

std::uint32_t apply_table(std::uint32_t table, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t r = 0;
  for (int i = 0; i < 8; ++i) {
    if ((table >> i & 1u) == 0) continue;
    r |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  }
  return r;
}

}  // namespace

/// A linear word through masks: its low bits repeat along the block index, its high bits pass or are masked off.
void Shadow::apply_logic(const Exec& x, const Op& op, const ShadowPlan& plan) {
  const Source* sources[] = {&op.a, &op.b, &op.c};
  Gathered g;
  int moving = -1;
  for (int i = 0; i < 3; ++i) {
    const Tag t = tag(x, *sources[i]);
    if (t.kind != TagKind::None) moving = i;
    g.take(t);
  }
  const bool one = g.linear == 1 && g.high == 0 && !g.lost && g.opaque == 0 && sources[moving]->flip == 0;
  if (!one || op.carry_out) {
    apply_generic(x, plan);
    return;
  }
  std::uint32_t same = ~0u, inverted = ~0u, constant = ~0u;
  for (LaneMask m = g.lanes; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::uint32_t v[3], w[3];
    for (int i = 0; i < 3; ++i) v[i] = w[i] = x.row(*sources[i])[lane] ^ sources[i]->flip;
    v[moving] = 0;
    w[moving] = ~0u;
    const std::uint32_t zero = apply_table(op.immediate, v[0], v[1], v[2]),
                        ones = apply_table(op.immediate, w[0], w[1], w[2]);
    same &= ones & ~zero;
    inverted &= zero & ~ones;
    constant &= ~(ones ^ zero);
  }
  if (inverted == ~0u) {  // ~v is -v - 1
    set(x, op.dst, {TagKind::Linear, 0, g.lanes, scale(g.slope, -1), 0});
    return;
  }
  const int steady = std::min(common_shift(g.slope), 32);
  const int to_constant = std::max(32 - std::countl_one(constant), steady),
            to_same = std::max(32 - std::countl_one(same), steady);
  const int bits = std::min(to_constant, to_same);
  if (bits >= 32 && steady < 32) {
    set(x, op.dst, opaque(g.dims, g.lanes));
    return;
  }
  const bool linear = to_constant > to_same;
  if (linear && bits > steady && sign_stays(x, tag(x, *sources[moving]), *sources[moving])) {
    // If only its sign is asked for, nothing else has to stay.
    set(x, op.dst, {TagKind::Masked, 0, g.lanes, g.slope, static_cast<std::uint8_t>(bits)});
    return;
  }
  if (bits > steady) conditions_.residue(g.slope, std::int64_t{1} << bits);
  set(x, op.dst, linear ? Tag{TagKind::Linear, 0, g.lanes, g.slope, 0} : Tag{});
}

/// PRMT that moves a linear word up by whole bytes and fills in below: (a << 8k) | constant.
void Shadow::apply_permute(const Exec& x, const Op& op, const ShadowPlan& plan) {
  const Tag a = tag(x, op.a), c = tag(x, op.c);
  const bool one = (a.kind == TagKind::Linear) != (c.kind == TagKind::Linear) &&
                   (a.kind == TagKind::None || c.kind == TagKind::None);
  if (!one || a.dims != 0 || c.dims != 0 || op.variant != 0 || (op.b.row & kLiteralBit) == 0) {
    apply_generic(x, plan);
    return;
  }
  const std::uint32_t selector = x.row(op.b)[0];
  const std::uint32_t moving = a.kind == TagKind::Linear ? 0 : 4;
  const Tag& t = moving == 0 ? a : c;
  // Byte j of the result; from the top down, bytes j - k of the moving word, then constants.
  const auto nibble = [&](int j) { return selector >> (4 * j) & 15u; };
  const int k = 3 - (static_cast<int>(nibble(3)) - static_cast<int>(moving));
  int lowest = 4;
  while (lowest > 0 && static_cast<int>(nibble(lowest - 1)) == static_cast<int>(moving) + lowest - 1 - k) --lowest;
  bool others = k >= 0 && k <= 3 && lowest >= k && lowest < 4;
  for (int j = 0; j < lowest && others; ++j) others = (nibble(j) & 4u) != moving;
  const BlockSlope up = scale(t.slope, others ? std::int64_t{1} << (8 * k) : 0);
  if (!others || common_shift(up) < 8 * lowest) {
    apply_generic(x, plan);
    return;
  }
  set(x, op.dst, {TagKind::Linear, 0, t.lanes, up, 0});
}

void Shadow::apply_select(const Exec& x, const Op& op, const ShadowPlan& plan) {
  if (predicate_dims(x, plan) != 0) {
    apply_generic(x, plan);
    return;
  }
  const LaneMask take = x.predicate(op.p[0]);
  const Tag a = tag(x, op.a), b = tag(x, op.b);
  assign(x, op.dst, a, lanes_ & take);
  assign(x, op.dst, b, lanes_ & ~take);
}

void Shadow::apply_compare(const Exec& x, const Op& op, const ShadowPlan& plan) {
  if (compares_sign(x, op, plan)) {
    if (warp(x).carry_lanes != 0) {
      for (const PredicateSource& p : op.p) read_predicate(x, p.slot);
    }
    clear(x, plan);
    return;
  }
  const Operand l = operand(x, op.a, plan.is_unsigned), r = operand(x, op.b, plan.is_unsigned);
  const auto lost = [](const Tag& t) { return t.dims != 0 || t.kind == TagKind::High; };
  if (lost(l.tag) || lost(r.tag) || predicate_dims(x, plan) != 0) {
    apply_generic(x, plan);
    return;
  }
  for (const Operand* o : {&l, &r}) keep_range(x, o->tag, o->value, plan.is_unsigned);
  const Outcomes outcomes = outcomes_of(l, r, asked_lanes(x, op), op.variant);
  for (const std::uint8_t slot : op.pdst) {
    if (warp(x).carry_lanes != 0) set_carry(x, slot, Carry{});
    set_outcomes(x, slot, outcomes);
  }
}

void Shadow::apply_min_max(const Exec& x, const Op& op, Operand l, Operand r, bool is_unsigned) {
  Gathered g;
  g.take(l.tag);
  g.take(r.tag);
  if (warp(x).carry_lanes != 0) read_predicate(x, op.p[0].slot);
  const bool lost = g.opaque != 0 || g.high != 0;
  if (lost) {
    set(x, op.dst, opaque(g.dims, g.lanes));
    return;
  }
  keep_range(x, l.tag, l.value, is_unsigned);
  keep_range(x, r.tag, r.value, is_unsigned);
  keep(outcomes_of(l, r, lanes_, kLess));
  const LaneMask minimum = x.predicate(op.p[0]);
  LaneMask take = 0;
  for (int i = 0; i < kWarpLanes; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool less = l.value[at] < r.value[at];
    if (less == ((minimum >> i & 1u) != 0)) take |= 1u << i;
  }
  assign(x, op.dst, l.tag, lanes_ & take);
  assign(x, op.dst, r.tag, lanes_ & ~take);
}

void Shadow::apply_shuffle(const Exec& x, const Op& op, const ShadowPlan& plan) {
  const Tag value = row_tag(x, op.a.row);
  const bool plain = row_tag(x, op.b.row).kind == TagKind::None && row_tag(x, op.c.row).kind == TagKind::None;
  if (!plain || value.lanes != lanes_ || value.kind == TagKind::Opaque) {
    apply_generic(x, plan);
    return;
  }
  set(x, op.dst, value);
  for (const std::uint8_t slot : op.pdst) set_carry(x, slot, Carry{});
}

}  // namespace forewarp::emulation

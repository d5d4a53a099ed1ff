#include "emulation/classes/shadow.h"

#include <algorithm>
#include <bit>

namespace forewarp::emulation {
namespace {

// Beyond this a slope is noise (a hash, say): following it would overflow.
constexpr std::int64_t kLargestSlope = std::int64_t{1} << 40;

bool too_large(const BlockSlope& s) { return largest_part(s) > kLargestSlope; }

Dims tag_dims(const Tag& t) { return static_cast<Dims>(t.dims | dims_of(t.slope)); }

BlockSlope without(BlockSlope s, Dims dims) {
  if ((dims & 1) != 0) s.x = 0;
  if ((dims & 2) != 0) s.y = 0;
  if ((dims & 4) != 0) s.z = 0;
  for (std::size_t i = 0; i < s.quotients.size(); ++i)
    if ((dims >> (kFirstQuotientDim + i) & 1) != 0) s.quotients[i] = 0;
  return s;
}

}  // namespace

Shadow::Shadow(const DecodedKernel& kernel, const Dim3& grid, int warps, std::vector<BlockQuotient>& quotients,
               const Dim3& cluster)
    : plans_(plan_shadow(kernel)),
      uniform_row_(kernel.uniform_row),
      conditions_(grid, quotients),
      grid_(grid),
      cluster_(cluster),
      warps_(static_cast<std::size_t>(warps)) {
  for (WarpTags& w : warps_) {
    w.rows.resize(kernel.rows);
    w.numerators.resize(kernel.rows);
  }
}

void Shadow::start(const Dim3& block) {
  conditions_.start(block);
  if (cluster_.x > 1) conditions_.residue({1, 0, 0, {}}, cluster_.x);
  if (cluster_.y > 1) conditions_.residue({0, 1, 0, {}}, cluster_.y);
  if (cluster_.z > 1) conditions_.residue({0, 0, 1, {}}, cluster_.z);
  cause_ = kNowhere;
  shared_dims_ = 0;
  met_places_ = false;
  for (WarpTags& w : warps_) {
    std::fill(w.rows.begin(), w.rows.end(), RowTags{});
    w.carries = {};
    w.carry_lanes = 0;
    for (Outcomes& outcomes : w.outcomes) outcomes.clear();
    w.outcome_slots = 0;
    w.local.clear();
    w.waits = false;
  }
}

void Shadow::Gathered::take(const Tag& t) {
  if (t.kind == TagKind::None) return;
  lost |= (t.dims & kDataDim) != 0 || (lanes != 0 && lanes != t.lanes);
  lanes |= t.lanes;
  dims = static_cast<Dims>(dims | tag_dims(t));
  opaque = static_cast<Dims>(opaque | t.dims);
  linear += t.kind == TagKind::Linear;
  high += t.kind == TagKind::High;
  slope = add(slope, t.slope);
}

Tag Shadow::Gathered::result(TagKind kind) const {
  if (lanes == 0) return {};
  if (lost) return {TagKind::Opaque, dims, lanes, {}, 0};
  return {kind, opaque, lanes, without(slope, opaque), 0};
}

Tag Shadow::row_tag(const Exec& x, std::uint32_t offset) const {
  if ((offset & kLiteralBit) != 0) return {};
  const RowTags& row = warps_[static_cast<std::size_t>(x.warp->index)].rows[offset / kRowBytes];
  const LaneMask first = row.part[0].lanes & lanes_, second = row.part[1].lanes & lanes_;
  if ((first | second) == 0) return {};
  if (first != 0 && second != 0) {
    return {TagKind::Opaque, static_cast<Dims>(tag_dims(row.part[0]) | tag_dims(row.part[1])), first | second, {}, 0};
  }
  Tag t = first != 0 ? row.part[0] : row.part[1];
  t.lanes = first | second;
  t.shift = 0;
  // Whoever can take it as it is looks at the row itself.
  if (t.kind > TagKind::Opaque) return {TagKind::Opaque, tag_dims(t), t.lanes, {}, 0};
  return t;
}

/// The tag of an integer source: '-' and '~' turn the slope round.
Tag Shadow::tag(const Exec& x, const Source& s) const {
  Tag t = row_tag(x, s.row);
  if (s.flip == ~0u && t.kind != TagKind::None) t.slope = scale(t.slope, -1);
  return t;
}

Tag Shadow::high_tag(const Exec& x, const Source& s) const {
  Source next = s;
  next.row += kRowBytes;
  return tag(x, next);
}

Shadow::Operand Shadow::operand(const Exec& x, const Source& s, bool is_unsigned) const {
  Operand o;
  o.tag = tag(x, s);
  const std::uint32_t* row = x.row(s);
  const IntegerModifier m(s);
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    const std::uint32_t v = m(row[i]);
    o.value[i] = is_unsigned ? std::int64_t{v} : std::int64_t{static_cast<std::int32_t>(v)};
  }
  return o;
}

/// Gives `lanes` of a row a new tag; other living lanes keep theirs.
void Shadow::assign(const Exec& x, std::uint32_t offset, const Tag& t, LaneMask lanes) {
  Tag next = t;
  next.lanes &= lanes;
  if (next.kind == TagKind::Opaque || next.kind == TagKind::Linear || next.kind == TagKind::High) {
    // Blocks that differ there are of another class.
    next.dims = static_cast<Dims>(next.dims & ~conditions_.fixed());
    if (next.kind == TagKind::Opaque && next.dims == 0) next.kind = TagKind::None;
  }
  if (offset >= uniform_row_) {
    // A uniform register is written whole, whichever lanes take part.
    lanes = ~LaneMask{0};
    if (next.lanes != 0) next.lanes = lanes;
  }
  if (next.kind == TagKind::Linear || next.kind == TagKind::High) {
    if (is_zero(next.slope)) next.kind = next.dims != 0 ? TagKind::Opaque : TagKind::None;
    if (too_large(next.slope)) next = {TagKind::Opaque, tag_dims(next), next.lanes, {}, 0};
  }
  if (next.kind == TagKind::Fraction || next.kind == TagKind::Masked) warp(x).waits = true;
  if (next.kind == TagKind::None) next.lanes = 0;
  RowTags& row = warp(x).rows[offset / kRowBytes];
  const LaneMask kept = lanes == ~LaneMask{0} ? 0 : ~lanes & x.warp->live;
  Tag* empty = nullptr;
  for (Tag& part : row.part) {
    part.lanes &= kept;
    if (part.lanes == 0) {
      part = Tag{};
      empty = &part;
    }
  }
  if (next.lanes == 0) return;
  for (Tag& part : row.part) {
    if (part.lanes != 0 && part.like(next)) {
      part.lanes |= next.lanes;
      return;
    }
  }
  if (empty != nullptr) {
    *empty = next;
    return;
  }
  // A third kind of lanes: what was there before is given up.
  row.part[0] = {TagKind::Opaque, static_cast<Dims>(tag_dims(row.part[0]) | tag_dims(row.part[1])), row.lanes(), {}, 0};
  row.part[1] = next;
}

void Shadow::set_opaque(const Exec& x, const ShadowPlan& plan, Dims dims) {
  dims = static_cast<Dims>(dims & ~conditions_.fixed());
  if (dims == 0) {
    clear(x, plan);
    return;
  }
  const Tag t{TagKind::Opaque, dims, lanes_, {}, 0};
  WarpTags& w = warp(x);
  for (const std::uint32_t row : plan.writes) {
    // What a loop computes from data has this tag already.
    const RowTags& now = w.rows[row];
    const Tag& first = now.part[0];
    const bool same = first.kind == TagKind::Opaque && first.dims == dims && (lanes_ & ~first.lanes) == 0;
    if (!same || now.part[1].lanes != 0) set(x, row * kRowBytes, t);
  }
  set_opaque_predicates(x, plan, dims);
}

/// Only what reads them decides something.
void Shadow::set_opaque_predicates(const Exec& x, const ShadowPlan& plan, Dims dims) {
  for (const std::uint8_t slot : plan.predicate_writes) set_carry(x, slot, Carry{lanes_, {}, dims, false});
}

/// What the predicates that an instruction reads depend on.
Dims Shadow::predicate_dims(const Exec& x, const ShadowPlan& plan) {
  Dims dims = 0;
  if (warp(x).carry_lanes == 0) return dims;
  for (const std::uint8_t slot : plan.predicate_reads) {
    const Carry c = carry(x, {slot, 0});
    if (c.lanes != 0) dims = static_cast<Dims>(dims | carry_dims(c, c));
  }
  return dims;
}

void Shadow::clear(const Exec& x, const ShadowPlan& plan) {
  WarpTags& w = warp(x);
  for (const std::uint32_t row : plan.writes) {
    if (w.rows[row].lanes() == 0) continue;
    set(x, row * kRowBytes, Tag{});
  }
  if (w.carry_lanes == 0 && w.outcome_slots == 0) return;
  for (const std::uint8_t slot : plan.predicate_writes) set_carry(x, slot, Carry{});
}

bool Shadow::any_tagged(const Exec& x, const ShadowPlan& plan) {
  if (any_row_tagged(x, plan)) return true;
  if (warp(x).carry_lanes == 0) return false;
  return std::any_of(plan.predicate_reads.begin(), plan.predicate_reads.end(),
                     [&](std::uint8_t slot) { return carries_any(x, slot); });
}

bool Shadow::any_row_tagged(const Exec& x, const ShadowPlan& plan) {
  const WarpTags& w = warp(x);
  return std::any_of(plan.reads.begin(), plan.reads.end(),
                     [&](std::uint32_t row) { return (w.rows[row].lanes() & lanes_) != 0; });
}

bool Shadow::carries_any(const Exec& x, std::uint8_t slot) {
  const auto& parts = warp(x).carries[slot];
  return ((parts[0].lanes | parts[1].lanes) & lanes_) != 0;
}

Dims Shadow::carry_dims(const Carry& a, const Carry& b) {
  return static_cast<Dims>(a.dims | b.dims | dims_of(a.slope) | dims_of(b.slope));
}

void Shadow::set_carry(const Exec& x, int slot, const Carry& carry) {
  if (slot == kDiscardedPredicate) return;
  WarpTags& w = warp(x);
  if ((w.outcome_slots >> slot & 1u) != 0) set_outcomes(x, slot, {});
  auto& parts = w.carries[static_cast<std::size_t>(slot)];
  Carry next = carry;
  if (is_zero(next.slope) && next.dims == 0) next.lanes = 0;
  Carry* empty = nullptr;
  for (Carry& part : parts) {
    part.lanes &= ~lanes_ & x.warp->live;
    if (part.lanes == 0) empty = &part;
  }
  const auto like = [&](const Carry& part) {
    return part.lanes != 0 && part.slope == next.slope && part.dims == next.dims && part.second == next.second;
  };
  if (next.lanes != 0) {
    if (like(parts[0])) {
      parts[0].lanes |= next.lanes;
    } else if (like(parts[1])) {
      parts[1].lanes |= next.lanes;
    } else if (empty != nullptr) {
      *empty = next;
    } else {
      fix(x, carry_dims(parts[0], parts[1]));
      parts = {next, Carry{}};
    }
  }
  w.carry_lanes = 0;
  for (const auto& of_slot : w.carries) w.carry_lanes |= of_slot[0].lanes | of_slot[1].lanes;
}

Shadow::Carry Shadow::carry(const Exec& x, const PredicateSource& p) {
  const auto& parts = warp(x).carries[p.slot];
  const LaneMask first = parts[0].lanes & lanes_, second = parts[1].lanes & lanes_;
  if (first != 0 && second != 0) fix(x, carry_dims(parts[0], parts[1]));
  Carry c = first != 0 ? parts[0] : parts[1];
  c.lanes = first != 0 ? first : second;
  return c;
}

/// A predicate is read as a truth value: a carry that moves with the block cannot be followed further.
void Shadow::read_predicate(const Exec& x, int slot) {
  for (const Carry& c : warp(x).carries[static_cast<std::size_t>(slot)]) {
    if ((c.lanes & x.active) != 0) fix(x, carry_dims(c, c));
  }
}

void Shadow::control(const Exec& x, const Op& op) {
  lanes_ = x.active;
  const ShadowPlan& plan = plans_[x.pc];
  for (const std::uint32_t row : plan.reads) {
    const Tag t = row_tag(x, row * kRowBytes);
    if (t.kind != TagKind::None) fix(x, tag_dims(t));
  }
  if (warp(x).carry_lanes != 0) {
    for (const PredicateSource& p : op.p) read_predicate(x, p.slot);
  }
  for (const std::uint32_t row : plan.writes) set(x, row * kRowBytes, Tag{});
}

// --- conditions ------------------------------------------------------------------------------------------------------

/// The tagged lanes stay within 32 bits, read as signed or unsigned.
void Shadow::keep_range(const Exec& x, const Tag& t, const std::array<std::int64_t, kWarpLanes>& values,
                        bool is_unsigned) {
  if (t.kind != TagKind::Linear) return;
  fix(x, t.dims);
  const std::int64_t lowest = is_unsigned ? 0 : -(std::int64_t{1} << 31);
  const std::int64_t highest = is_unsigned ? (std::int64_t{1} << 32) - 1 : (std::int64_t{1} << 31) - 1;
  std::int64_t low = highest, high = lowest;
  for (LaneMask m = t.lanes; m != 0; m &= m - 1) {
    const std::int64_t v = values[static_cast<std::size_t>(std::countr_zero(m))];
    low = std::min(low, v);
    high = std::max(high, v);
  }
  conditions_.interval(t.slope, lowest - low, highest - high);
}

namespace {

/// Where the difference d of two values may move so that comparing still gives what it gives now.
Span same_outcome(std::int64_t d, int variant) {
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  const bool less = (variant & kLess) != 0, equal = (variant & kEqual) != 0, greater = (variant & kGreater) != 0;
  if (d < 0) {
    const std::int64_t top = less != equal ? -1 : equal != greater ? 0 : kFar;
    return {-kFar, top - d};
  }
  if (d > 0) {
    const std::int64_t bottom = greater != equal ? 1 : equal != less ? 0 : -kFar;
    return {bottom - d, kFar};
  }
  return {less == equal ? -kFar : 0, greater == equal ? kFar : 0};
}

}  // namespace

/// What keeps the outcome of comparing l with r in each of `lanes`. Lanes in which only one side moves have a slope of
/// their own.
Shadow::Outcomes Shadow::outcomes_of(const Operand& l, const Operand& r, LaneMask lanes, int variant) {
  const BlockSlope none{};
  const LaneMask in_l = l.tag.lanes, in_r = r.tag.lanes;
  const Outcome groups[] = {{lanes & in_l & in_r, add(l.tag.slope, scale(r.tag.slope, -1)), {}},
                            {lanes & in_l & ~in_r, l.tag.slope, {}},
                            {lanes & in_r & ~in_l, add(none, scale(r.tag.slope, -1)), {}}};
  Outcomes outcomes;
  for (const Outcome& group : groups) {
    if (group.lanes == 0 || is_zero(group.slope)) continue;
    Span all{-(std::int64_t{1} << 62), std::int64_t{1} << 62};
    for (LaneMask m = group.lanes; m != 0; m &= m - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(m));
      const Span one = same_outcome(l.value[i] - r.value[i], variant);
      all = {std::max(all.low, one.low), std::min(all.high, one.high)};
    }
    outcomes.push_back({group.lanes, group.slope, all});
  }
  return outcomes;
}

void Shadow::keep(const Outcomes& outcomes) {
  for (const Outcome& o : outcomes) conditions_.interval(o.slope, o.span.low, o.span.high);
}

/// Something hangs on these predicates.
void Shadow::ask(const Exec& x, std::uint32_t slots) {
  WarpTags& w = warp(x);
  for (std::uint32_t rest = slots & w.outcome_slots; rest != 0; rest &= rest - 1) {
    Outcomes& outcomes = w.outcomes[static_cast<std::size_t>(std::countr_zero(rest))];
    keep(outcomes);
    outcomes.clear();
  }
  w.outcome_slots &= ~slots;
}

/// A predicate is written in `lanes_`, where it holds these outcomes from now on.
void Shadow::set_outcomes(const Exec& x, int slot, const Outcomes& outcomes) {
  constexpr std::size_t kMost = 8;
  if (slot == kDiscardedPredicate) return;
  WarpTags& w = warp(x);
  Outcomes& held = w.outcomes[static_cast<std::size_t>(slot)];
  for (Outcome& o : held) o.lanes &= ~lanes_ & x.warp->live;
  held.erase(std::remove_if(held.begin(), held.end(), [](const Outcome& o) { return o.lanes == 0; }), held.end());
  held.insert(held.end(), outcomes.begin(), outcomes.end());
  const std::uint32_t bit = 1u << slot;
  w.outcome_slots = held.empty() ? w.outcome_slots & ~bit : w.outcome_slots | bit;
  if (held.size() > kMost) ask(x, bit);
}

// --- memory ----------------------------------------------------------------------------------------------------------

/// Adds the slope of one register (pair) of an address to `sum`. False if it cannot be followed.
bool Shadow::index_slope(const Exec& x, const Source& s, bool wide, bool far, LaneMask lanes, std::int64_t factor,
                         Gathered& sum) {
  const Tag low = tag(x, s), high = wide ? high_tag(x, s) : Tag{};
  Gathered g;
  g.take(low);
  g.take(high);
  sum.dims = static_cast<Dims>(sum.dims | g.dims);
  if (g.lanes == 0) return true;
  if (g.lost || (g.lanes & lanes) != lanes) return false;
  if (low.kind == TagKind::High || low.kind == TagKind::None || high.kind == TagKind::Linear) return false;
  if (high.kind == TagKind::High && high.slope != low.slope) return false;
  if (high.kind == TagKind::Opaque && !is_zero(low.slope)) return false;
  if (far && high.kind == TagKind::None) {
    // The upper word stays: the lower one must not run over.
    const Operand o = operand(x, s, true);
    keep_range(x, o.tag, o.value, true);
  }
  sum.opaque = static_cast<Dims>(sum.opaque | g.opaque);
  sum.slope = add(sum.slope, scale(low.slope, factor));
  return true;
}

/// The access stays in its buffer, so that a block for which it does not is emulated and reported.
void Shadow::keep_bounds(const Exec& x, const Op& op, const BlockSlope& slope) {
  const std::uint64_t low = x.lowest, high = x.highest;
  const GlobalMemory::Region* region = x.block->global->find(low, high - low + op.bytes);
  if (region == nullptr) {
    fix(x, dims_of(slope));  // lanes in several buffers
    return;
  }
  conditions_.interval(slope, static_cast<std::int64_t>(region->begin - low),
                       static_cast<std::int64_t>(region->end - op.bytes - high));
}

BlockSlope Shadow::access(const Exec& x, const Op& op, LaneMask lanes, MemorySpace space) {
  const ShadowPlan& plan = plans_[x.pc];
  lanes_ = x.enabled;
  if (lanes == 0) return {};
  // Which lanes of a copy read their source.
  if (op.kind == OpKind::Copy) fix(x, predicate_dims(x, plan));
  if (warp(x).waits) settle(x, plan.reads);
  Gathered sum;
  if (any_tagged(x, plan)) {
    followed_ += kFollowedByRule;
    follow_address(x, op, lanes, space, sum);
  }
  if (op.value_needed) {
    if (space == MemorySpace::Local && op.space == MemorySpace::Local) {
      access_local(x, op, lanes, plan);
    } else {
      load_tags(x, op, plan, space, sum.dims);
    }
  }
  return sum.slope;
}

/// Leaves the slope of the access in `sum` and records what keeps its pattern the same.
void Shadow::follow_address(const Exec& x, const Op& op, LaneMask lanes, MemorySpace space, Gathered& sum) {
  const bool far = space == MemorySpace::Global || op.space == MemorySpace::Generic;
  const bool copy_target = op.kind == OpKind::Copy && space == MemorySpace::Shared;
  bool known = copy_target ? index_slope(x, op.c, false, far, lanes, 1, sum)
                           : index_slope(x, op.a, op.wide_index, far, lanes, op.scale, sum);
  if (copy_target) known &= index_slope(x, op.d, false, far, lanes, 1, sum);
  if (!copy_target && op.has_uniform) known &= index_slope(x, op.b, op.wide_uniform, far, lanes, 1, sum);
  if (!known) {
    fix(x, (sum.dims & kDataDim) != 0 ? kAllDims : sum.dims);  // addresses out of memory are this block's own
    sum.slope = {};
    return;
  }
  fix(x, sum.opaque);
  sum.slope = without(sum.slope, sum.opaque);
  if (is_zero(sum.slope)) return;
  conditions_.residue(sum.slope, kLineBytes);
  if (space == MemorySpace::Global) keep_bounds(x, op, sum.slope);
  if (space != MemorySpace::Global) {
    fix(x, dims_of(sum.slope));
    sum.slope = {};
  }
}

/// Its coordinates move with the block; by how much it is cut at the tensor's edges must not.
BlockSlope Shadow::copy(const Exec& x, const Op& op, const CopiedBox& box) {
  lanes_ = x.enabled;
  const ShadowPlan& plan = plans_[x.pc];
  if (warp(x).waits) settle(x, plan.reads);
  if (op.value_needed && box.inward()) shared_dims_ = kDataDim;
  if (box.map_written) fix(x, kAllDims);
  if (!any_tagged(x, plan)) return {};
  const auto row = [](const Source& s, std::uint32_t i) {
    return Source{s.row + i * kRowBytes, s.keep, s.flip, s.add};
  };
  const auto hold = [&](const Tag& t) {
    if (t.kind != TagKind::None) fix(x, (tag_dims(t) & kDataDim) != 0 ? kAllDims : tag_dims(t));
  };
  Gathered sum;
  if (box.map == nullptr) {
    const Source& far = box.inward() ? op.b : op.a;
    if (op.clusterwide) {
      hold(tag(x, far));
    } else if (!index_slope(x, far, true, true, lanes_, 1, sum)) {
      fix(x, (sum.dims & kDataDim) != 0 ? kAllDims : sum.dims);
      sum.slope = {};
    }
    if (box.kind != MemoryKind::Load) hold(tag(x, box.inward() ? op.a : op.b));
    if (box.inward()) hold(tag(x, row(op.a, 1)));
    hold(tag(x, op.c));
  } else {
    const std::uint32_t first = box.before_coordinates();
    for (std::uint32_t i = 0; i < first; ++i) hold(tag(x, row(op.a, i)));
    hold(tag(x, op.b));
    hold(high_tag(x, op.b));
    if (op.carry_out) hold(tag(x, op.c));
    for (std::uint32_t d = 0; d < static_cast<std::uint32_t>(box.rank); ++d) {
      const Tag t = tag(x, row(op.a, first + d));
      if (t.kind == TagKind::None) continue;
      const std::int64_t at = box.coordinates[d], length = static_cast<std::int64_t>(box.map->shape[d]);
      const std::int64_t last = at + std::int64_t{box.map->extent(static_cast<int>(d)) - 1} * box.map->steps[d];
      if (t.kind != TagKind::Linear || t.dims != 0 || at < 0 || last >= length) {
        hold(t);
        continue;
      }
      conditions_.interval(t.slope, -at, length - 1 - last);
      sum.slope = add(sum.slope, scale(t.slope, static_cast<std::int64_t>(box.map->strides[d])));
    }
  }
  fix(x, sum.opaque);
  sum.slope = without(sum.slope, sum.opaque);
  if (!is_zero(sum.slope)) conditions_.residue(sum.slope, kLineBytes);
  return sum.slope;
}

/// Whether a load's data belong to the place where several blocks find them.
bool Shadow::finds_place(const Exec& x, const Op& op, Dims address_dims) {
  if ((address_dims & kDataDim) != 0 || (conditions_.extended_dims() & ~address_dims) == 0) return false;
  const GlobalMemory::Region* region = x.block->global->find(x.lowest, x.highest - x.lowest + op.bytes);
  if (region == nullptr || (region->touched & GlobalMemory::kWritten) != 0) return false;
  met_places_ |= !follows_places_;
  if (!follows_places_) return false;
  if (std::find(relied_on_.begin(), relied_on_.end(), region) == relied_on_.end()) relied_on_.push_back(region);
  return true;
}

bool Shadow::places_hold() const {
  return std::all_of(relied_on_.begin(), relied_on_.end(), [](const GlobalMemory::Region* region) {
    return (region->touched & GlobalMemory::kWritten) == 0;
  });
}

/// What a load brings may differ by block, unless no block writes it and they read the same place, or it was put into
/// shared memory and did not.
void Shadow::load_tags(const Exec& x, const Op& op, const ShadowPlan& plan, MemorySpace space, Dims address_dims) {
  const bool shared = space == MemorySpace::Shared && op.space == MemorySpace::Shared;
  if (shared) {
    if (op.memory != MemoryKind::Load) {
      shared_dims_ = static_cast<Dims>(shared_dims_ | address_dims);
      for (const std::uint32_t row : plan.reads) {
        const Tag t = row_tag(x, row * kRowBytes);
        if (t.kind == TagKind::None) continue;
        shared_dims_ = static_cast<Dims>(shared_dims_ | (tag_dims(t)));
      }
    }
  } else if (op.kind == OpKind::Copy || op.space == MemorySpace::Generic) {
    shared_dims_ = op.kind == OpKind::Copy ? kDataDim : kAllDims;  // global data, or an address that may be anywhere
  }
  if (op.memory != MemoryKind::Load && op.memory != MemoryKind::Atomic) return;
  Dims dims = kDataDim;
  if (shared) {
    dims = static_cast<Dims>(shared_dims_ | address_dims | (x.block->written_by_others ? kDataDim : 0));
  } else if (space == MemorySpace::Global &&
             ((plan.read_only && address_dims == 0) || finds_place(x, op, address_dims))) {
    dims = address_dims;
  }
  if (dims == 0) {
    clear(x, plan);
  } else {
    set_opaque(x, plan, dims);
  }
}

/// Spilled registers keep their tags: local memory is shadowed word by word where all lanes use the same offset.
void Shadow::access_local(const Exec& x, const Op& op, LaneMask lanes, const ShadowPlan& plan) {
  std::vector<Tag>& local = warp(x).local;
  if (local.empty()) local.resize(x.block->local_bytes / 4 + 1);
  const std::uint64_t offset = x.address[static_cast<std::size_t>(std::countr_zero(lanes))];
  bool same = op.bytes >= 4;
  for (LaneMask m = lanes; m != 0; m &= m - 1)
    same &= x.address[static_cast<std::size_t>(std::countr_zero(m))] == offset;
  const std::uint32_t words = std::max<std::uint32_t>(1, op.bytes / 4u);
  if (op.memory == MemoryKind::Load) {
    const bool all_clear = std::all_of(local.begin(), local.end(), [](const Tag& t) { return t.lanes == 0; });
    if (!same && !all_clear) set_opaque(x, plan, kAllDims);
    if (!same && all_clear) clear(x, plan);
    for (std::uint32_t w = 0; same && w < words; ++w) set(x, op.dst + w * kRowBytes, local[offset / 4 + w]);
    return;
  }
  for (std::uint32_t w = 0; w < words; ++w) {
    const Tag t = row_tag(x, op.c.row + w * kRowBytes);
    if (same) {
      Tag& word = local[offset / 4 + w];
      const bool mixes = (word.lanes & ~lanes & x.warp->live) != 0;
      if (mixes && !word.like(t)) {
        word = {TagKind::Opaque, kAllDims, word.lanes | lanes, {}, 0};
      } else {
        const LaneMask kept = mixes ? word.lanes & ~lanes : 0;
        word = t;
        word.lanes |= kept;
      }
    } else if (t.kind != TagKind::None) {
      local.assign(local.size(), Tag{TagKind::Opaque, kAllDims, ~LaneMask{0}, {}, 0});
    }
  }
}

}  // namespace forewarp::emulation

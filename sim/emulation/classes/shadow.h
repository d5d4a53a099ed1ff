// The linear shadow of a block: which registers of the representative depend on the block index, and how.
//
// While a block is emulated, a register row may carry a tag. Its value in the block at distance d = (dx, dy, dz) is v +
// slope . d (Linear), or it is the upper word of such a 64-bit value (High), or it depends on some dimensions of the
// block index in a way that is not tracked (Opaque). Rows without a tag are the same in every block. Wherever a tagged
// value decides something, the condition on d under which the decision stays the same is recorded. The class is the set
// of blocks that satisfy all of them. Addresses report their slope.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "emulation/classes/block_conditions.h"
#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "emulation/machine/tensor_copy.h"
#include "program/program.h"

namespace forewarp::emulation {

/// Fraction and Masked wait for their use: they become Linear, under a condition, by Shadow::settle().
enum class TagKind : std::uint8_t {
  None,
  Linear,
  High,
  Opaque,
  Fraction,      ///< floor((n + slope . d) / 2^shift), n by lane in WarpTags::numerators
  Masked,        ///< Linear if slope . d is a multiple of 2^shift; the sign is the same in every block
  IndexAsFloat,  ///< the block index along dimension `shift`, as a float
  ClusterRatio,  ///< that by the cluster's extent: cut to an integer, the cluster's index
};

struct Tag {
  TagKind kind = TagKind::None;
  Dims dims = 0;       ///< along which the value moves in a way that is not followed; the slope is zero there
  LaneMask lanes = 0;  ///< the lanes it holds for; the others are the same in every block
  BlockSlope slope;
  std::uint8_t shift = 0;  ///< as TagKind says; of High, 32 where its numerators are kept as a Fraction's are

  bool like(const Tag& o) const { return kind == o.kind && dims == o.dims && shift == o.shift && slope == o.slope; }
};

/// The tags of a register row: guarded code leaves other lanes their old values, mostly dead ones.
struct RowTags {
  Tag part[2];  ///< disjoint lanes
  LaneMask lanes() const { return part[0].lanes | part[1].lanes; }
};

/// What an instruction does to tags. Everything not listed makes its results Opaque if a source is tagged.
enum class Rule : std::uint8_t {
  Generic,
  Clear,
  BlockIndex,
  Copy,
  Sum,
  Multiply,
  MultiplyWide,
  MultiplyHigh,
  LeaLow,
  LeaHigh,
  ShiftLeft,
  ShiftRight,
  ShiftLeftHigh,
  Logic,
  Permute,
  Select,
  Compare,
  CompareExtended,
  MinMax,
  AddMinMax,
  Absolute,
  Shuffle,
  ToUniform,
  ToFloat,
  FloatProduct,
  FloatToInteger,
};

struct ShadowPlan {
  Rule rule = Rule::Generic;
  bool is_unsigned = false;                                     ///< of comparisons, wide products
  bool is_lazy = false;                                         ///< takes some Fractions as they are
  bool carry_in = false;                                        ///< .X
  bool read_only = false;                                       ///< a load of data that no block writes
  std::uint8_t dimension = 0;                                   ///< BlockIndex: 0 x, 1 y, 2 z
  std::vector<std::uint32_t> reads, writes;                     ///< rows, as indices
  std::vector<std::uint8_t> predicate_reads, predicate_writes;  ///< slots
  std::uint32_t asks = 0;  ///< bit by slot: predicates of which something hangs, the guard among them
};

class Shadow {
 public:
  /// `quotients`, the launch's, grow with what blocks turn out to compute.
  /// Blocks of a class have the same rank in their clusters, of this extent.
  Shadow(const DecodedKernel& kernel, const Dim3& grid, int warps, std::vector<BlockQuotient>& quotients,
         const Dim3& cluster = {1, 1, 1});

  void start(const Dim3& block);
  /// Before the handler of a plain instruction runs: x.enabled are the lanes it writes.
  void compute(const Exec& x, const Op& op);
  /// Operands of a control instruction, and predicates it depends on.
  void control(const Exec& x, const Op& op);
  /// A guard is read.
  void guard(const Exec& x, const Op& op) {
    if ((warp(x).outcome_slots & plans_[x.pc].asks) != 0) [[unlikely]]
      ask(x, plans_[x.pc].asks);
    if (warp(x).carry_lanes != 0) read_predicate(x, op.guard);
  }
  /// A memory instruction whose lanes' addresses are in x; gives the slope of the access and tags what it loads.
  BlockSlope access(const Exec& x, const Op& op, LaneMask lanes, MemorySpace space);

  /// A copy by a unit beside the warps; gives the slope of its global addresses.
  BlockSlope copy(const Exec& x, const Op& op, const CopiedBox& box);

  const BlockConditions& conditions() const { return conditions_; }
  /// Data that no block writes and that several blocks find at the same place, as a table by row: from now on they
  /// belong to the place, so that blocks that share it may share a class. Before, they count as data like any other.
  void follow_places() { follows_places_ = true; }
  /// Whether the block has loaded such data.
  bool met_places() const { return met_places_; }
  /// Whether it is still so that no block has written them.
  bool places_hold() const;
  /// Where the block index first decided something in a way that is not followed: an instruction, or kNowhere.
  static constexpr std::uint32_t kNowhere = ~0u;
  std::uint32_t cause() const { return cause_; }
  /// How often something that depends on the block was followed through an instruction, in all blocks so far. Where a
  /// rule works out a form it counts kFollowedByRule times: passing on what a result depends on is so much cheaper.
  std::uint64_t followed() const { return followed_; }
  static constexpr std::uint64_t kFollowedByRule = 4;

 private:
  struct Carry {
    LaneMask lanes = 0;
    BlockSlope slope;
    Dims dims = 0;        ///< as of tags
    bool second = false;  ///< the other half of a carry of up to 2: counts only together with the first
  };
  /// What blocks must satisfy so that a comparison comes out as it did: asked for when something hangs on its
  /// predicate, since compilers compare long before, and joined with what may settle the result.
  struct Outcome {
    LaneMask lanes = 0;
    BlockSlope slope;
    Span span;
  };
  using Outcomes = std::vector<Outcome>;
  __extension__ using Wide = __int128;
  using Numerators = std::array<std::int64_t, kWarpLanes>;
  struct WarpTags {
    std::vector<RowTags> rows;
    std::array<std::array<Carry, 2>, kPredicateSlots> carries{};  ///< disjoint lanes, as of rows
    LaneMask carry_lanes = 0;                                     ///< of any carry: a quick way out
    std::array<Outcomes, kPredicateSlots> outcomes;               ///< by slot
    std::uint32_t outcome_slots = 0;                              ///< bit by slot: has any
    std::vector<Tag> local;                                       ///< by word of the local frame
    std::vector<std::unique_ptr<Numerators>> numerators;          ///< by row, made when needed
    bool waits = false;                                           ///< some row may be a Fraction or Masked
  };
  /// Tags of several sources put together.
  struct Gathered {
    LaneMask lanes = 0;
    Dims dims = 0;      ///< all that any source depends on
    Dims opaque = 0;    ///< of those, what is not followed
    bool lost = false;  ///< data among the sources, or lanes that differ
    int linear = 0, high = 0;
    BlockSlope slope;
    void take(const Tag& t);
    Tag result(TagKind kind) const;  ///< for a result that adds the sources up
  };
  /// 32 lane values as the instruction reads them, with their tag.
  struct Operand {
    Tag tag;
    std::array<std::int64_t, kWarpLanes> value{};
  };

  /// floor((n + slope . d) / 2^shift) for `lanes`.
  struct Fraction {
    LaneMask lanes = 0;
    BlockSlope slope;
    int shift = 0;
    std::array<Wide, kWarpLanes> n{};
  };

  WarpTags& warp(const Exec& x) { return warps_[static_cast<std::size_t>(x.warp->index)]; }
  Tag tag(const Exec& x, const Source& s) const;
  Tag high_tag(const Exec& x, const Source& s) const;
  Tag row_tag(const Exec& x, std::uint32_t offset) const;
  Operand operand(const Exec& x, const Source& s, bool is_unsigned) const;
  void assign(const Exec& x, std::uint32_t offset, const Tag& t, LaneMask lanes);
  void set(const Exec& x, std::uint32_t offset, const Tag& t) { assign(x, offset, t, lanes_); }
  void set_opaque(const Exec& x, const ShadowPlan& plan, Dims dims);
  void set_opaque_predicates(const Exec& x, const ShadowPlan& plan, Dims dims);
  Dims predicate_dims(const Exec& x, const ShadowPlan& plan);
  void clear(const Exec& x, const ShadowPlan& plan);
  void fix(const Exec& x, Dims dims) {
    const Dims before = conditions_.fixed();
    conditions_.fix(dims);
    if (cause_ == kNowhere && conditions_.fixed() != before) cause_ = x.pc;
  }
  bool any_tagged(const Exec& x, const ShadowPlan& plan);
  bool any_row_tagged(const Exec& x, const ShadowPlan& plan);
  bool carries_any(const Exec& x, std::uint8_t slot);
  static Dims carry_dims(const Carry& a, const Carry& b);
  void set_carry(const Exec& x, int slot, const Carry& carry);
  Carry carry(const Exec& x, const PredicateSource& p);
  void read_predicate(const Exec& x, int slot);
  void ask(const Exec& x, std::uint32_t slots);
  void set_outcomes(const Exec& x, int slot, const Outcomes& outcomes);
  void keep(const Outcomes& outcomes);

  std::size_t split_lanes(const Exec& x, const ShadowPlan& plan, std::array<LaneMask, 8>& groups);
  void apply(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_generic(const Exec& x, const ShadowPlan& plan);
  void apply_sum(const Exec& x, const Op& op, const Gathered& g);
  void apply_carry_sum(const Exec& x, const Op& op, Gathered g);
  void apply_multiply(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_wide(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_lea(const Exec& x, const Op& op);
  void apply_lea_high(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_shift_left(const Exec& x, const Op& op);
  void apply_shift_right(const Exec& x, const Op& op);
  void apply_shift_left_high(const Exec& x, const Op& op);
  void apply_logic(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_permute(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_select(const Exec& x, const Op& op, const ShadowPlan& plan);
  LaneMask asked_lanes(const Exec& x, const Op& op) const;
  bool asks_nothing(const Exec& x, const Op& op);
  bool settles_join(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_compare(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_min_max(const Exec& x, const Op& op, Operand l, Operand r, bool is_unsigned);
  void apply_shuffle(const Exec& x, const Op& op, const ShadowPlan& plan);

  void apply_high(const Exec& x, const Op& op, const ShadowPlan& plan);
  void apply_absolute(const Exec& x, const Op& op);
  bool follow_cluster_index(const Exec& x, const Op& op, Rule rule);

  // Fractions (shadow_fractions.cpp).
  const Tag& raw_tag(const Exec& x, std::uint32_t offset) const;
  std::optional<Fraction> fraction(const Exec& x, const Source& s, bool is_unsigned);
  std::optional<Fraction> product_fraction(const Exec& x, const Op& op, bool is_unsigned);
  bool shift_fraction(Fraction& f, int by, bool is_unsigned);
  std::optional<Fraction> difference(const Exec& x, const Op& op);
  bool is_zero_word(const Exec& x, const Source& s) const;
  bool constant(const Fraction& f) const;
  static bool fits(const Fraction& f);
  bool set_fraction(const Exec& x, std::uint32_t offset, const Fraction& f);
  void keep_numerators(const Exec& x, std::uint32_t offset, const Fraction& f);
  bool lea_fraction(const Exec& x, const Op& op);
  void settle(const Exec& x, const std::vector<std::uint32_t>& rows);
  void settle_part(const Exec& x, std::uint32_t row, Tag& part);
  bool sign_stays(const Exec& x, const Tag& t, const Source& s) const;
  bool compares_sign(const Exec& x, const Op& op, const ShadowPlan& plan) const;

  Tag product(const Exec& x, const Op& op, bool wide, bool is_unsigned);
  Tag wide_summand(const Exec& x, const Source& s);
  void keep_range(const Exec& x, const Tag& t, const std::array<std::int64_t, kWarpLanes>& values, bool is_unsigned);
  static Outcomes outcomes_of(const Operand& l, const Operand& r, LaneMask lanes, int variant);
  bool index_slope(const Exec& x, const Source& s, bool wide, bool far, LaneMask lanes, std::int64_t factor,
                   Gathered& sum);
  void follow_address(const Exec& x, const Op& op, LaneMask lanes, MemorySpace space, Gathered& sum);
  void keep_bounds(const Exec& x, const Op& op, const BlockSlope& slope);
  bool finds_place(const Exec& x, const Op& op, Dims address_dims);
  void access_local(const Exec& x, const Op& op, LaneMask lanes, const ShadowPlan& plan);
  void load_tags(const Exec& x, const Op& op, const ShadowPlan& plan, MemorySpace space, Dims address_dims);

  std::vector<ShadowPlan> plans_;
  std::uint32_t uniform_row_;  ///< byte offset of UR0; only uniform registers lie behind it
  BlockConditions conditions_;
  Dim3 grid_, cluster_;
  std::vector<WarpTags> warps_;
  Dims shared_dims_ = 0;  ///< what the contents of shared memory depend on
  bool follows_places_ = false, met_places_ = false;
  std::vector<const GlobalMemory::Region*> relied_on_;  ///< regions whose data belong to their places
  LaneMask lanes_ = 0;  ///< the lanes under consideration: x.enabled, or some of them whose sources have like tags
  std::uint32_t cause_ = kNowhere;
  std::uint64_t followed_ = 0;
};

/// What shadowing each instruction of a kernel takes.
std::vector<ShadowPlan> plan_shadow(const DecodedKernel& kernel);

}  // namespace forewarp::emulation

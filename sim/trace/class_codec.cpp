#include "trace/class_codec.h"

#include <span>

#include "base/error.h"
#include "base/limits.h"
#include "program/traits.h"
#include "trace/events.h"

namespace forewarp {
namespace {

using wire::Decoder;
using wire::Encoder;
using wire::Malformed;

template <class A, class T>
void slope_fields(A& a, T& slope) {
  a(slope.x, slope.y, slope.z);
  for (auto& quotient : slope.quotients) a(quotient);
}

template <class A, class T>
void quotients_fields(A& a, T& quotients) {
  const std::size_t n = a.count(quotients.size());
  if constexpr (A::kDecodes) {
    if (n > kMostQuotients) throw Malformed("it has too many quotients of the block index");
    quotients.resize(n);
  }
  for (auto& quotient : quotients) {
    slope_fields(a, quotient.numerator);
    a(quotient.offset, quotient.divisor);
    if (A::kDecodes && quotient.divisor < 1) throw Malformed("it divides the block index by less than one");
  }
}

template <class A, class T>
void count_fields(A& a, T& count) {
  auto& [executed, active_lanes, enabled_lanes, executed_on, divergent, held_lanes, requests, shared_requests, sectors,
         tag_sectors, ideal_sectors, lines, wavefronts, ideal_wavefronts, zero_wavefronts, bank_conflicts, bytes,
         addresses] = count;
  a(executed, active_lanes, enabled_lanes, executed_on, divergent, held_lanes, requests, shared_requests, sectors,
    tag_sectors, ideal_sectors, lines, wavefronts, ideal_wavefronts, zero_wavefronts, bank_conflicts, bytes, addresses);
}

template <class A, class T>
void counts_fields(A& a, T& counts) {
  const std::size_t n = a.count(counts.size(), 18);  // numbers
  if constexpr (A::kDecodes) counts.resize(n);
  for (auto& count : counts) count_fields(a, count);
}

template <class A, class T>
void launch_fields(A& a, T& launch) {
  auto& [case_id, launch_index, grid, block, cluster, dynamic_shared_bytes, sampled, inferred, incomplete, differ,
         side_by_side, draws_unfollowed, blocks_wait, traced_ms, counted] = launch;
  a(case_id, launch_index, grid.x, grid.y, grid.z, block.x, block.y, block.z, cluster.x, cluster.y, cluster.z,
    dynamic_shared_bytes, sampled, inferred, incomplete, differ, side_by_side, draws_unfollowed, blocks_wait,
    traced_ms);
  counts_fields(a, counted);
}

/// Everything of a class but its paths and warps.
template <class A, class T>
void class_fields(A& a, T& c) {
  a(c.representative.x, c.representative.y, c.representative.z, c.single, c.population);
  const std::size_t conditions = a.count(c.conditions.size(), 14);
  if constexpr (A::kDecodes) c.conditions.resize(conditions);
  for (auto& condition : c.conditions) {
    slope_fields(a, condition.coefficient);
    a(condition.low, condition.high, condition.modulus);
  }
  if constexpr (A::kDecodes)
    counts_fields(a, c.counts.edit());
  else
    counts_fields(a, c.counts);
}

// Differences are taken modulo 2^64, so that any pair of values has one.
std::int64_t difference(std::uint64_t a, std::uint64_t b) { return static_cast<std::int64_t>(a - b); }
std::uint64_t sum(std::uint64_t a, std::int64_t b) { return a + static_cast<std::uint64_t>(b); }

void encode_path(Encoder& out, const WarpPath& path) {
  out.varint(path.instructions);
  out.varint(path.runs.size());
  std::uint64_t next = 0;
  for (const Run& run : path.runs) {
    out.signed_varint(difference(run.first, next));
    out.varint(run.count);
    next = std::uint64_t{run.first} + run.count;
  }
}

WarpPath decode_path(Decoder& in, std::size_t instructions) {
  WarpPath path;
  path.instructions = in.varint();
  path.runs.resize(in.count(0, 2));
  if (path.runs.empty()) throw Malformed("a path has no instructions");
  std::uint64_t next = 0, total = 0;
  for (Run& run : path.runs) {
    const std::uint64_t first = sum(next, in.signed_varint()), count = in.varint();
    if (count == 0 || count > instructions || first > instructions - count) throw Malformed("a path leaves the kernel");
    run = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)};
    next = first + count;
    total += count;
  }
  if (total != path.instructions) throw Malformed("a path's length is not the sum of its runs");
  return path;
}

/// The slots whose records may be boxes: those of instructions that have a unit copy them.
std::vector<bool> slots_of_boxes(const Kernel& kernel, const EventTable& events) {
  std::vector<bool> boxes(events.all_records());
  for (std::uint32_t pc = 0; pc < kernel.instructions.size(); ++pc)
    for (std::uint32_t slot = events.records_before(pc); slot < events.records_before(pc) + events[pc].records; ++slot)
      boxes[slot] = traits(kernel.instructions[pc].opcode).unit.timing == Timing::Box;
  return boxes;
}

/// Which slot each record of a path belongs to: one for each that an instruction of the kernel takes.
std::vector<std::uint32_t> slots_along(const WarpPath& path, const EventTable& events) {
  std::vector<std::uint32_t> slots;
  slots.reserve(events.records(path.runs));
  for (const Run& run : path.runs)
    for (std::uint32_t s = events.records_before(run.first); s < events.records_before(run.first + run.count); ++s)
      slots.push_back(s);
  return slots;
}

/// Predicts a slot's next access: a step like the last one; in the next warp, as far from the last warp's first access
/// as that was from its predecessor's. Encoder and decoder keep the same predictor.
class Predictor {
 public:
  void start_warp() { fresh_ = true; }

  std::uint64_t base() const { return fresh_ ? first_ + warp_step_ : base_ + step_; }
  std::uint32_t pattern() const { return fresh_ ? first_pattern_ : access_pattern_ + pattern_step_; }
  std::uint32_t slope() const { return slope_; }

  void observe(const Access& access) {
    if (fresh_) {
      warp_step_ = access.base - first_;
      first_ = access.base;
      first_pattern_ = access.pattern;
      fresh_ = false;
    } else {
      step_ = access.base - base_;
      pattern_step_ = access.pattern - access_pattern_;
    }
    base_ = access.base;
    access_pattern_ = access.pattern;
    slope_ = access.slope;
  }

 private:
  bool fresh_ = true;
  std::uint64_t base_ = 0, step_ = 0, first_ = 0, warp_step_ = 0;
  std::uint32_t access_pattern_ = 0, pattern_step_ = 0, first_pattern_ = 0, slope_ = 0;
};

/// Bases, patterns and slopes in columns of their own: zeros next to zeros.
struct Columns {
  Encoder bases, patterns, slopes;
};

void encode_accesses(Columns& out, const WarpTrace& warp, const std::vector<std::uint32_t>& slots,
                     std::vector<Predictor>& predictors) {
  for (Predictor& p : predictors) p.start_warp();
  for (std::size_t i = 0; i < warp.accesses.size(); ++i) {
    const Access& access = warp.accesses[i];
    Predictor& p = predictors[slots[i]];
    out.bases.signed_varint(difference(access.base, p.base()));
    out.patterns.signed_varint(static_cast<std::int32_t>(access.pattern - p.pattern()));
    out.slopes.signed_varint(static_cast<std::int32_t>(access.slope - p.slope()));
    p.observe(access);
  }
}

struct ColumnReaders {
  Decoder bases, patterns, slopes;
};

void decode_accesses(ColumnReaders& in, WarpTrace& warp, const std::vector<std::uint32_t>& slots,
                     std::vector<Predictor>& predictors, const std::vector<bool>& boxes, const KernelTrace& trace) {
  for (Predictor& p : predictors) p.start_warp();
  for (std::size_t i = 0; i < warp.accesses.size(); ++i) {
    Access& access = warp.accesses[i];
    Predictor& p = predictors[slots[i]];
    access.base = sum(p.base(), in.bases.signed_varint());
    access.pattern = p.pattern() + static_cast<std::uint32_t>(in.patterns.signed_varint());
    access.slope = p.slope() + static_cast<std::uint32_t>(in.slopes.signed_varint());
    if (access.pattern >= trace.patterns.size() || access.slope >= trace.slopes.size())
      throw Malformed("an access names a pattern or slope that is not there");
    if (is_box(trace.patterns[access.pattern]) && !boxes[slots[i]])
      throw Malformed("an instruction that copies no boxes has a box");
    p.observe(access);
  }
}

/// Sectors of a box are counted in 16 bits; shared memory, where boxes come and go, has less than a quarter of that.
constexpr std::int64_t kMostBoxBytes = 1 << 20;

void check_box(const AccessPattern& box) {
  std::int64_t bytes = 1;
  for (std::size_t d = 0; d < kMostBoxDims && (box.lanes >> d & 1) != 0; ++d) {
    const std::int32_t extent = box.offsets[d];
    if (extent < 1 || extent > kMostBoxBytes / bytes) throw Malformed("a box is larger than any GPU copies, or empty");
    bytes *= extent;
  }
}

template <class A, class T>
void pattern_fields(A& a, T& pattern) {
  a(pattern.lanes, pattern.bytes, pattern.base_offset, pattern.fetch_bytes);
}

}  // namespace

void encode_launch(Encoder& out, const LaunchInfo& launch) { launch_fields(out, launch); }

LaunchInfo decode_launch(Decoder& in) {
  LaunchInfo launch;
  launch_fields(in, launch);
  // As CUDA limits them on every GPU, which keeps products of them in range, too.
  const auto fits = [](const Dim3& d, std::uint32_t x, std::uint32_t yz) {
    return d.x > 0 && d.x <= x && d.y > 0 && d.y <= yz && d.z > 0 && d.z <= yz;
  };
  if (!fits(launch.grid, 0x7fffffff, 0xffff) || !fits(launch.block, 1024, 1024) || launch.block.count() > 1024)
    throw Malformed("no GPU launches its grid or block");
  const Dim3 &grid = launch.grid, &cluster = launch.cluster;
  if (cluster != Dim3{0, 0, 0} &&
      (!fits(cluster, kMostClusterBlocks, kMostClusterBlocks) || cluster.count() > kMostClusterBlocks ||
       grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0))
    throw Malformed("no GPU launches its clusters");
  return launch;
}

void encode_patterns(Encoder& out, const std::vector<AccessPattern>& patterns, std::size_t first) {
  out.varint(patterns.size() - first);
  for (std::size_t i = first; i < patterns.size(); ++i) {
    const AccessPattern& p = patterns[i];
    pattern_fields(out, p);
    out.varint(static_cast<std::uint64_t>(p.space));
    out.varint(static_cast<std::uint64_t>(p.kind));
    // Evenly spaced lanes leave zeros.
    std::int64_t previous = 0, step = 0;
    for (const std::int32_t offset : p.offsets) {
      out.signed_varint(offset - previous - step);
      step = offset - previous;
      previous = offset;
    }
  }
}

void decode_patterns(Decoder& in, std::vector<AccessPattern>& patterns) {
  for (std::size_t n = in.count(); n > 0; --n) {
    AccessPattern p;
    pattern_fields(in, p);
    const std::uint64_t space = in.varint(), kind = in.varint();
    if (space > static_cast<std::uint64_t>(MemorySpace::Generic) ||
        kind > static_cast<std::uint64_t>(MemoryKind::AsyncCopy))
      throw Malformed("a pattern is of no known kind");
    p.space = static_cast<MemorySpace>(space);
    p.kind = static_cast<MemoryKind>(kind);
    if (p.space == MemorySpace::Constant || p.space == MemorySpace::Generic)
      throw Malformed("a pattern is of no memory that has accesses");
    if (p.bytes > 16 || (p.bytes & (p.bytes - 1)) != 0 || p.base_offset >= kLineBytes)
      throw Malformed("a pattern is of no size that an access has");
    if (p.fetch_bytes > 256 || (p.fetch_bytes & (p.fetch_bytes - 1)) != 0)
      throw Malformed("a pattern fetches no size that L2 does");
    std::uint64_t previous = 0, step = 0;
    for (std::int32_t& offset : p.offsets) {
      const std::uint64_t value = previous + step + static_cast<std::uint64_t>(in.signed_varint());
      offset = static_cast<std::int32_t>(value);
      if (static_cast<std::uint64_t>(std::int64_t{offset}) != value) throw Malformed("a lane is too far from its base");
      step = value - previous;
      previous = value;
    }
    if (is_box(p)) check_box(p);
    patterns.push_back(p);
  }
}

void encode_quotients(Encoder& out, const std::vector<BlockQuotient>& quotients) { quotients_fields(out, quotients); }
void decode_quotients(Decoder& in, std::vector<BlockQuotient>& quotients) { quotients_fields(in, quotients); }

void encode_slopes(Encoder& out, const std::vector<BlockSlope>& slopes, std::size_t first) {
  out.varint(slopes.size() - first);
  for (std::size_t i = first; i < slopes.size(); ++i) slope_fields(out, slopes[i]);
}

void decode_slopes(Decoder& in, std::vector<BlockSlope>& slopes) {
  for (std::size_t n = in.count(); n > 0; --n) {
    BlockSlope slope;
    slope_fields(in, slope);
    slopes.push_back(slope);
  }
}

void encode_class(Encoder& out, const BlockClass& c, const Kernel& kernel) {
  class_fields(out, c);
  out.varint(c.paths.size());
  for (const WarpPath& path : c.paths) {
    for (const Run& run : path.runs)
      FW_CHECK(std::uint64_t{run.first} + run.count <= kernel.instructions.size(), "a path leaves the kernel");
    encode_path(out, path);
  }
  const EventTable events(kernel);
  std::vector<Predictor> predictors(events.all_records());
  Columns columns;
  out.varint(c.warps.size());
  for (const WarpTrace& warp : c.warps) {
    out.varint(warp.path);
    const auto along = slots_along(c.paths.at(warp.path), events);
    FW_CHECK(along.size() == warp.accesses.size(), "a warp's records are not those that its instructions take");
    encode_accesses(columns, warp, along, predictors);
  }
  out.block(columns.bases.bytes);
  out.block(columns.patterns.bytes);
  out.block(columns.slopes.bytes);
}

BlockClass decode_class(Decoder& in, const KernelTrace& trace) {
  const Kernel& kernel = *trace.kernel;
  if (trace.slopes.empty() || trace.slopes.front() != BlockSlope{}) throw Malformed("the first slope is not zero");
  BlockClass c;
  class_fields(in, c);
  if (c.counts.size() > kernel.instructions.size()) throw Malformed("it counts instructions beyond the kernel");
  const Dim3 grid = trace.launch.grid, at = c.representative;
  if (at.x >= grid.x || at.y >= grid.y || at.z >= grid.z) throw Malformed("its block lies outside the grid");
  if (c.population == 0 || c.population > grid.count())
    throw Malformed("it stands for more or fewer blocks than there are");
  for (const BlockCondition& condition : c.conditions)
    if (condition.modulus < 1) throw Malformed("a condition has no modulus");
  c.paths.resize(in.count(0, 4));
  for (WarpPath& path : c.paths) path = decode_path(in, kernel.instructions.size());
  c.warps.resize(in.count());
  if (c.warps.size() != (trace.launch.block.count() + kWarpLanes - 1) / kWarpLanes)
    throw Malformed("it has more or fewer warps than a block of the launch");
  for (WarpTrace& warp : c.warps) {
    in(warp.path);
    if (warp.path >= c.paths.size()) throw Malformed("a warp names a path that is not there");
  }
  const auto bases = in.block(), patterns = in.block(), slopes = in.block();
  ColumnReaders columns{Decoder(bases), Decoder(patterns), Decoder(slopes)};
  const EventTable events(kernel);
  std::vector<Predictor> predictors(events.all_records());
  const std::vector<bool> boxes = slots_of_boxes(kernel, events);
  for (std::size_t w = 0; w < c.warps.size(); ++w) {
    const WarpPath& path = c.paths[c.warps[w].path];
    if (events.records(path.runs) > columns.bases.remaining())
      throw Malformed("a warp's instructions take more records than are stored");
    const auto along = slots_along(path, events);
    c.warps[w].accesses.resize(along.size());
    decode_accesses(columns, c.warps[w], along, predictors, boxes, trace);
  }
  if (!columns.bases.finished() || !columns.patterns.finished() || !columns.slopes.finished())
    throw Malformed("accesses are left over");
  return c;
}

}  // namespace forewarp

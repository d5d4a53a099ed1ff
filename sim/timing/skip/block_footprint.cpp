#include "timing/skip/block_footprint.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"

namespace forewarp {
namespace {

constexpr std::size_t kSummed = 16'384;    // classes whose sums are kept (35 MB)
constexpr std::uint32_t kMostApart = 8;    // slices of which one is looked at
constexpr std::uint32_t kStretches = 4;    // of time, if not all of it is looked at
constexpr double kRounding = 1e-6;         // of a line
constexpr double kUncounted = 4;           // a fourth of each, until L2 is what it is there
constexpr std::size_t kLookedThrough = 4;  // lines, for what one takes to touch

/// A line that a block has touched, by where it stands in its list, and how long that was then.
struct Touched {
  std::uint32_t place = 0, at = 0;
};
struct SpreadBits {
  std::size_t operator()(std::uint64_t key) const { return key * 0x9E3779B97F4A7C15ull >> 20; }
};

/// Steps that begin from a time on are touched in one of `every` slices, and counted from another on.
struct Stretch {
  std::uint32_t every = 1;
  double from = 0, count = 0, until = 0;
};

/// One in how many slices is looked at, and when.
std::vector<Stretch> stretches(std::span<const RestPart> parts, double lines, const TouchEffort& effort) {
  const double seen = lines <= static_cast<double>(effort.seen) ? lines : static_cast<double>(effort.in_stretches);
  std::uint32_t every = 1;
  while (every < kMostApart && lines > static_cast<double>(effort.touched) * every) every *= 2;
  if (every == 1 && seen == lines) return {{1, 0, 0, kForEver}};
  const WorkInTime work(parts, [](std::uint64_t) { return 1.0; });
  const auto at = [&](double share) { return work.when(share * work.all()); };
  // The sample has to be as it would be in the end.
  const double last = std::max(0.0, 1 - static_cast<double>(effort.at_the_end) / lines);
  std::vector<Stretch> all;
  if (seen == lines) {
    all.push_back({every, 0, 0, at(last)});
  } else {
    const double span = last / kStretches, length = std::min(span, seen / lines / kStretches);
    for (std::uint32_t i = 0; i < kStretches; ++i) {
      const double begin = i * span + (span - length) / 2;
      all.push_back({every, at(begin), at(begin + length / kUncounted), at(begin + length)});
    }
  }
  all.push_back({1, at(last), kForEver, kForEver});
  return all;
}

}  // namespace

BlockFootprint::BlockFootprint(const LaunchContext& context, Crew& crew) : context_(context), lists_(crew) {
  std::uint64_t total = 0, blocks = 0;
  for (const BlockClass& cls : context_.trace.classes) {
    std::uint64_t lines = 0;
    if (keeps_all()) {
      lines = footprint(static_cast<std::uint32_t>(&cls - context_.trace.classes.data()))->lines.size();
    } else {
      for (const WarpTrace& warp : cls.warps)
        for (const Access& access : warp.accesses) lines += context_.patterns.lines(access.pattern).size();
    }
    total += lines * cls.population;
    blocks += cls.population;
  }
  lines_per_block_ = blocks == 0 ? 0 : (total + blocks - 1) / blocks;
}

BlockFootprint::Footprint BlockFootprint::gather(const BlockClass& cls) const {
  struct Stepped {
    std::uint32_t step = 0;
    Access access;
    bool by_l1 = false;
  };
  std::vector<Stepped> accesses;
  for (const WarpTrace& warp : cls.warps) {
    const WarpPath& path = cls.paths[warp.path];
    const WarpCursor start(path, warp);
    start.for_each_record(context_.program.events(),
                          [&](std::uint32_t pc, const TraceEvent&, std::span<const Access> records, std::uint64_t at) {
                            const auto step = static_cast<std::uint32_t>(at * kBlockSteps / path.instructions);
                            const TimedInstruction& in = context_.program[pc];
                            const bool by_l1 = !in.bypass_l1 && in.path != Path::Box;
                            for (const Access& access : records)
                              if (context_.patterns.effect(access.pattern).to_lines())
                                accesses.push_back({step, access, by_l1});
                            return true;
                          });
  }
  std::stable_sort(accesses.begin(), accesses.end(),
                   [](const Stepped& a, const Stepped& b) { return a.step < b.step; });
  // What a block has touched lately is in its share of L1.
  const std::uint32_t window =
      context_.l1_bytes / kLineBytes / static_cast<std::uint32_t>(std::max(1, context_.blocks_per_sm));
  Footprint made;
  tsl::robin_map<std::uint64_t, Touched, SpreadBits> touched;
  const auto add = [&](std::uint64_t line, std::uint32_t slope, const LineSectors& part, RequestKind kind, bool by_l1) {
    const std::uint64_t key = (line * 0x100000001B3ull ^ slope) * 4 + static_cast<std::uint64_t>(kind);
    const auto now = static_cast<std::uint32_t>(made.lines.size());
    const auto [found, is_new] = touched.try_emplace(key, Touched{now, now});
    const Touched before = std::exchange(found.value(), Touched{now, now});
    if (is_new || now - before.at > window) {
      made.lines.push_back({line, slope, part.sectors, kind, part.bytes, part.fetch, by_l1});
      return;
    }
    found.value().place = before.place;
    Line& known = made.lines[before.place];
    known.sectors = static_cast<std::uint8_t>(known.sectors | part.sectors);
    known.bytes = static_cast<std::uint8_t>(std::min(known.bytes + part.bytes, kLineBytes));
    known.by_l1 |= by_l1;
  };
  made.begin.reserve(kBlockSteps + 1);
  auto next = accesses.begin();
  for (std::uint32_t step = 0; step < kBlockSteps; ++step) {
    made.begin.push_back(static_cast<std::uint32_t>(made.lines.size()));
    for (; next != accesses.end() && next->step == step; ++next) {
      const Access& access = next->access;
      const RequestKind kind = context_.patterns.effect(access.pattern).request;
      for (const LineSectors& part : context_.patterns.lines(access.pattern)) {
        const std::uint64_t line = access.base / kLineBytes + static_cast<std::uint64_t>(std::int64_t{part.line});
        add(line, access.slope, part, kind, next->by_l1);
      }
    }
  }
  made.begin.push_back(static_cast<std::uint32_t>(made.lines.size()));
  for (std::uint32_t s = 0; s < kBlockSteps; ++s) made.steps[s] = made.begin[s] < made.begin[s + 1];
  return made;
}

std::shared_ptr<const BlockFootprint::Footprint> BlockFootprint::footprint(std::uint32_t cls) {
  if (const auto known = by_class_.find(cls); known != by_class_.end()) return known->second;
  if (by_class_.size() >= kKeptClasses) by_class_.clear();
  auto made = std::make_shared<const Footprint>(gather(context_.trace.classes[cls]));
  work_ += made->lines.size();
  return by_class_.emplace(cls, std::move(made)).first->second;
}

void BlockFootprint::start(std::uint64_t block, std::uint16_t sm, Running& running) {
  const KernelTrace& trace = context_.trace;
  const std::uint32_t cls = context_.classes.class_of(block);
  const BlockDistance distance = trace.distance(trace.classes[cls].representative, trace.block_index(block));
  running.footprint = footprint(cls);
  running.sm = sm;
  running.shifts.clear();
  for (const BlockSlope& s : trace.slopes) {
    const std::int64_t bytes = s.over(distance), within = (bytes % kLineBytes + kLineBytes) % kLineBytes;
    running.shifts.push_back(
        {static_cast<std::uint64_t>((bytes - within) / kLineBytes), static_cast<int>(within) / kSectorBytes});
  }
}

std::uint32_t BlockFootprint::Footprint::before(double position) const {
  return static_cast<std::uint32_t>(std::floor(at_position(begin, position) + kRounding));
}

std::span<const BlockFootprint::Line> BlockFootprint::Footprint::of_step(std::uint32_t step,
                                                                         const RestPart& part) const {
  const std::uint32_t first = std::max(begin[step], before(part.from)),
                      end = std::min(begin[step + 1], before(part.to));
  return std::span(lines).subspan(first, std::max(first, end) - first);
}

TouchLists::Counted BlockFootprint::touch_due(std::uint32_t every, MemorySystem& memory) {
  const auto fill = [&](std::size_t first, std::size_t end, TouchLists::Part& part) {
    for (const Due& due : std::span(due_).subspan(first, end - first)) {
      part.lines.clear();
      for (const Line& line : due.lines) part.lines.push_back(line.line + due.block->shifts[line.slope].lines);
      for (const LinePlace& place : memory.pick(part.lines, every, part.places)) {
        const Line& line = due.lines[place.which];
        const bool whole = line.bytes >= kSectorBytes * std::popcount(unsigned{line.sectors});
        const std::uint8_t sectors = due.block->shifts[line.slope].of(line.sectors);
        part.add({place, due.block->sm, sectors, line.kind, line.bytes, whole, line.fetch});
      }
    }
  };
  const TouchLists::Counted counted = lists_.touch(due_.size(), lines_due_, memory, fill);
  const std::size_t touched = lines_due_ / every;
  work_ += touched + (lines_due_ - touched) / kLookedThrough;
  due_.clear();
  lines_due_ = 0;
  return counted;
}

const std::vector<Asked>& BlockFootprint::asked_by_step(std::uint32_t cls) {
  if (asked_.size() >= kSummed && !asked_.contains(cls)) asked_.clear();
  std::vector<Asked>& sums = asked_[cls];
  if (!sums.empty()) return sums;
  const std::shared_ptr<const Footprint> lines = footprint(cls);
  sums.emplace_back();
  for (std::uint32_t s = 0; s < kBlockSteps; ++s) {
    sums.push_back(sums.back());
    for (std::uint32_t i = lines->begin[s]; i < lines->begin[s + 1]; ++i)
      sums.back().add(lines->lines[i].kind, lines->lines[i].sectors);
  }
  return sums;
}

double BlockFootprint::asked(const RestPart& part, std::uint64_t Asked::*count) {
  const std::vector<Asked>& sums = asked_by_step(context_.classes.class_of(part.block));
  return at_position(sums, part.to, count) - at_position(sums, part.from, count);
}

L2Traffic BlockFootprint::follow(std::span<const RestPart> parts, const TouchEffort& effort, MemorySystem& memory) {
  double lines = 0;
  for (const RestPart& part : parts) lines += (part.to - part.from) * static_cast<double>(lines_per_block_);
  const std::uint64_t dirty_before = memory.dirty_bytes();
  std::uint64_t dirty = 0;  // what has become so while it was counted; less may be than before

  std::vector<const BlockSteps*> with_lines;
  if (keeps_all())
    for (const RestPart& part : parts) with_lines.push_back(&footprint(context_.classes.class_of(part.block))->steps);
  TouchLists::Counted all, ignored;
  const std::vector<Stretch> stretches_of = stretches(parts, lines, effort);
  for (const Stretch& stretch : stretches_of) {
    std::unordered_map<std::size_t, Running> running;
    std::vector<std::size_t> over;  // parts whose last lines may be due
    StepsInTime order(parts, with_lines, stretch.from, stretch.until);
    bool counted = false;
    const auto touch_now = [&] {
      (counted ? all : ignored) += touch_due(stretch.every, memory);
      for (const std::size_t part : over) running.erase(part);
      over.clear();
    };
    for (StepsInTime::Step now; order.next(now);) {
      auto found = running.find(now.part);
      if (found == running.end()) {
        found = running.try_emplace(now.part).first;
        start(parts[now.part].block, parts[now.part].sm, found->second);
      }
      if (!counted && now.at >= stretch.count) {
        touch_now();
        counted = true;
        dirty -= memory.dirty_bytes(stretch.every);
      }
      const std::span<const Line> lines_now = found->second.footprint->of_step(now.step, parts[now.part]);
      if (!lines_now.empty()) due_.push_back({&found->second, lines_now});
      lines_due_ += lines_now.size();
      if (now.last) over.push_back(now.part);
      if (lines_due_ >= kAtOnce * stretch.every) touch_now();
    }
    touch_now();
    if (counted) dirty += memory.dirty_bytes(stretch.every);
  }
  const L2Traffic& traffic = all.traffic;
  const Asked& touched = all.asked;
  const std::uint32_t every = stretches_of.front().every;
  if (stretches_of.size() == 1) return traffic;
  const std::uint64_t dirty_after = memory.dirty_bytes(every) * every;
  double read = 0, written = 0;
  for (const RestPart& part : parts) read += asked(part, &Asked::read), written += asked(part, &Asked::written);
  L2Traffic scaled = traffic.scaled(read / static_cast<double>(std::max<std::uint64_t>(1, touched.read)));
  // What becomes dirty is written to memory, but for what is dirty in the end. Stores come in bunches, at the ends of
  // blocks, which a part of the time may have more or less of than the rest.
  const auto sectors = [](std::uint64_t bytes) {
    return static_cast<double>(static_cast<std::int64_t>(bytes)) / kSectorBytes;
  };
  // Where nothing has been written back and L2 can keep it all, it does, also what was stored to where nobody looked.
  const L2Spec& l2 = context_.gpu.l2;
  const double kept = l2.dirty_share * static_cast<double>(l2.bytes);
  const double stored = written * kSectorBytes + static_cast<double>(dirty_before);
  if (traffic.written + ignored.traffic.written == 0 && stored < kept) return scaled;
  const double became = static_cast<double>(traffic.written) + sectors(dirty);
  const double share = touched.written > 0 ? std::max(0.0, became) / static_cast<double>(touched.written) : 1;
  const double passed_on = share * written + sectors(dirty_before - dirty_after);
  scaled.written = static_cast<std::uint64_t>(std::llround(std::max(0.0, passed_on)));
  return scaled;
}

void BlockFootprint::fill_l1(std::span<const RestPart> of_sm, Sm& sm) {
  const std::size_t enough = context_.l1_bytes / kLineBytes;
  std::vector<StepsInTime::Step> steps;
  StepsInTime order(of_sm, {}, -kForEver, kForEver);
  for (StepsInTime::Step step; order.next(step);) steps.push_back(step);
  const auto lines_of = [&](const StepsInTime::Step& step) {
    const RestPart& part = of_sm[step.part];
    return footprint(context_.classes.class_of(part.block))->of_step(step.step, part);
  };
  std::size_t first = steps.size();
  for (std::size_t lines = 0; first > 0 && lines < enough; --first) lines += lines_of(steps[first - 1]).size();
  Running running;
  std::size_t part = of_sm.size();
  for (; first < steps.size(); ++first) {
    if (std::exchange(part, steps[first].part) != steps[first].part) start(of_sm[steps[first].part].block, 0, running);
    for (const Line& line : lines_of(steps[first])) {
      const Shift& by = running.shifts[line.slope];
      if (line.by_l1)
        sm.touch_l1(line.line + by.lines, by.of(line.sectors), line.kind,
                    line.bytes >= kSectorBytes * std::popcount(unsigned{line.sectors}));
    }
  }
  work_ += steps.size() / kLookedThrough + enough;
}

}  // namespace forewarp

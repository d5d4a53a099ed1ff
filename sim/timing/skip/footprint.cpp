#include "timing/skip/footprint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <queue>

namespace forewarp {
namespace {

constexpr std::size_t kKeptClasses = 256;  // whose lines are kept: bounds memory where each block is a class
constexpr std::size_t kAtOnce = 8192;      // lines; more would not stay in the host's near caches

bool below_l1(const AccessPattern& pattern) { return pattern.space != MemorySpace::Shared && pattern.lanes != 0; }

/// Which lines a block has touched lately, and where in its list they stand.
class RecentLines {
 public:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t place = 0;       ///< index + 1 of the line in the list; 0: empty
    std::uint32_t touched_at = 0;  ///< length of the list then
  };

  Entry& find(std::uint64_t key) {
    if (used_ * 2 >= slots_.size()) grow();
    Entry& entry = slots_[slot_of(key)];
    used_ += entry.place == 0;
    entry.key = key;
    return entry;
  }

 private:
  std::size_t slot_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (key * 0x9E3779B97F4A7C15ull >> 20) & mask;
    while (slots_[slot].place != 0 && slots_[slot].key != key) slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    std::vector<Entry> old(std::max<std::size_t>(1024, slots_.size() * 2));
    old.swap(slots_);
    for (const Entry& entry : old)
      if (entry.place != 0) slots_[slot_of(entry.key)] = entry;
  }

  std::vector<Entry> slots_;
  std::size_t used_ = 0;
};

}  // namespace

std::uint32_t Footprint::Lines::at(double part) const {
  const double step = std::clamp(part, 0.0, 1.0) * kSteps;
  const auto whole = std::min<std::size_t>(kSteps - 1, static_cast<std::size_t>(step));
  return begin[whole] +
         static_cast<std::uint32_t>(std::lround((step - static_cast<double>(whole)) * (begin[whole + 1] - begin[whole])));
}

Footprint::Lines Footprint::gather(const BlockClass& cls) const {
  std::vector<std::vector<Access>> by_step(kSteps);
  for (const WarpTrace& warp : cls.warps) {
    const WarpPath& path = cls.paths[warp.path];
    const Access* access = warp.accesses.data();
    std::uint64_t done = 0;
    for (const Run& run : path.runs) {
      for (std::uint32_t i = 0; i < run.count; ++i, ++done) {
        if (context_.program[run.first + i].path != Path::Memory) continue;
        const Access& one = *access++;
        if (below_l1(context_.trace.patterns[one.pattern])) by_step[done * kSteps / path.instructions].push_back(one);
      }
    }
  }
  // What a block has touched lately is in its share of L1.
  const std::uint32_t window =
      context_.l1_bytes / kLineBytes / static_cast<std::uint32_t>(std::max(1, context_.blocks_per_sm));
  Lines made;
  RecentLines recent;
  const auto add = [&](std::uint64_t line, std::uint32_t slope, const LineSectors& part, RequestKind kind) {
    RecentLines::Entry& entry = recent.find((line * 0x100000001B3ull ^ slope) * 4 + static_cast<std::uint64_t>(kind));
    const auto now = static_cast<std::uint32_t>(made.lines.size());
    if (entry.place != 0 && now - entry.touched_at <= window) {
      Line& known = made.lines[entry.place - 1];
      known.sectors = static_cast<std::uint8_t>(known.sectors | part.sectors);
      known.bytes = static_cast<std::uint8_t>(std::min(known.bytes + part.bytes, kLineBytes));
      entry.touched_at = now;
      return;
    }
    made.lines.push_back({line, slope, part.sectors, kind, part.bytes});
    entry.place = now + 1;
    entry.touched_at = now;
  };
  for (const std::vector<Access>& accesses : by_step) {
    made.begin.push_back(static_cast<std::uint32_t>(made.lines.size()));
    for (const Access& access : accesses)
      for (const LineSectors& part : context_.patterns.lines(access.pattern))
        add(access.base / kLineBytes + static_cast<std::uint64_t>(std::int64_t{part.line}), access.slope, part,
            request_kind(context_.trace.patterns[access.pattern].kind));
  }
  made.begin.push_back(static_cast<std::uint32_t>(made.lines.size()));
  return made;
}

std::shared_ptr<const Footprint::Lines> Footprint::lines_of(std::uint32_t cls) {
  if (by_class_.size() >= kKeptClasses && !by_class_.contains(cls)) by_class_.clear();
  std::shared_ptr<const Lines>& known = by_class_[cls];
  if (known == nullptr) known = std::make_shared<const Lines>(gather(context_.trace.classes[cls]));
  return known;
}

double Footprint::lines_per_block() {
  if (lines_per_block_ >= 0) return lines_per_block_;
  const std::vector<BlockClass>& classes = context_.trace.classes;
  // Of more classes than are kept a systematic sample stands for all.
  const std::size_t every = 1 + classes.size() / kKeptClasses;
  double lines = 0, blocks = 0;
  for (std::size_t c = 0; c < classes.size(); c += every) {
    const auto population = static_cast<double>(classes[c].population);
    lines += population * static_cast<double>(lines_of(static_cast<std::uint32_t>(c))->lines.size());
    blocks += population;
  }
  return lines_per_block_ = lines / blocks;
}

L2Traffic Footprint::touch_due(MemorySystem& memory) {
  const auto fill = [&](std::size_t first, std::size_t end, TouchLists::Part& part) {
    for (const Due& due : std::span(due_).subspan(first, end - first)) {
      part.lines.clear();
      for (const Line& line : due.lines) part.lines.push_back(line.line + due.block->shifts[line.slope]);
      for (const LinePlace& place : memory.places(part.lines, part.places)) {
        const Line& line = due.lines[place.which];
        const bool whole = line.bytes >= kSectorBytes * std::popcount(unsigned{line.sectors});
        part.add({place, due.block->sm, line.sectors, line.kind, line.bytes, whole});
      }
    }
  };
  const L2Traffic traffic = lists_.touch(due_.size(), lines_due_, memory, fill);
  due_.clear();
  lines_due_ = 0;
  return traffic;
}

L2Traffic Footprint::follow(std::span<const FluidPart> parts, MemorySystem& memory) {
  struct Step {
    double at = 0;
    std::size_t part = 0;
    bool operator>(const Step& other) const { return at != other.at ? at > other.at : part > other.part; }
  };
  std::vector<Step> starts;
  for (std::size_t i = 0; i < parts.size(); ++i) starts.push_back({parts[i].at, i});
  std::stable_sort(starts.begin(), starts.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
  std::priority_queue<Step, std::vector<Step>, std::greater<>> queue;
  std::unordered_map<std::size_t, Running> running;
  std::vector<std::size_t> over;  // parts whose last lines are due
  L2Traffic traffic;
  const auto touch_now = [&] {
    traffic += touch_due(memory);
    for (const std::size_t part : over) running.erase(part);
    over.clear();
  };
  // When the next of a part's lines are due; those of a step are due together.
  const auto put_in_queue = [&](std::size_t i, Running& block) {
    const FluidPart& part = parts[i];
    if (block.next >= block.end) {
      over.push_back(i);
      return;
    }
    const std::vector<std::uint32_t>& begin = block.lines->begin;
    const auto step = static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), block.next) -
                                               begin.begin()) - 1;
    const double share = (static_cast<double>(step) / kSteps - part.from) / std::max(1e-12, part.to - part.from);
    queue.push({part.at + std::clamp(share, 0.0, 1.0) * (part.until - part.at), i});
  };
  std::size_t started = 0;
  while (started < starts.size() || !queue.empty()) {
    if (queue.empty() || (started < starts.size() && starts[started].at <= queue.top().at)) {
      const std::size_t i = starts[started++].part;
      const FluidPart& part = parts[i];
      const std::uint32_t cls = context_.classes.class_of(part.block);
      Running& block = running[i];
      block.lines = lines_of(cls);
      block.next = block.lines->at(part.from);
      block.end = block.lines->at(part.to);
      block.sm = part.sm;
      const BlockDistance distance(context_.trace.classes[cls].representative, context_.trace.block_index(part.block));
      for (const BlockSlope& s : context_.trace.slopes)
        block.shifts.push_back(static_cast<std::uint64_t>(s.over(distance) / kLineBytes));
      put_in_queue(i, block);
      continue;
    }
    const std::size_t i = queue.top().part;
    queue.pop();
    Running& block = running.find(i)->second;
    const std::vector<std::uint32_t>& begin = block.lines->begin;
    const std::uint32_t end = std::min(block.end, *std::upper_bound(begin.begin(), begin.end(), block.next));
    due_.push_back({&block, std::span(block.lines->lines).subspan(block.next, end - block.next)});
    lines_due_ += end - block.next;
    block.next = end;
    put_in_queue(i, block);
    if (lines_due_ >= kAtOnce) touch_now();
  }
  touch_now();
  return traffic;
}

}  // namespace forewarp

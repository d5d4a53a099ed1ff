// Lines to be touched in L2, in a list for each pair of slices that keep copies of each other's lines: what happens in
// one pair is nothing to the others. So threads share the pairs, and it comes out the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/crew.h"
#include "timing/memory/memory.h"

namespace forewarp {

class TouchLists {
 public:
  struct Touch {
    LinePlace place;
    std::uint16_t sm = 0;
    std::uint8_t sectors = 0;
    RequestKind kind = RequestKind::Read;
    std::uint8_t bytes = 0;
    bool full = true;
  };
  /// What a thread fills: some of the lines, one after another.
  class alignas(64) Part {
   public:
    void add(const Touch& touch) { lists_[touch.place.pair].push_back(touch); }
    std::vector<std::uint64_t> lines;  ///< for those who add
    std::vector<LinePlace> places;     ///< the same

   private:
    friend TouchLists;
    std::vector<std::vector<Touch>> lists_;  ///< by pair
  };
  explicit TouchLists(Crew& crew) : crew_(crew) {}

  /// Touches the lines of so many things, in their order: fill(first, end, part) adds those of some of them to a part,
  /// beside other threads that fill others. `lines`: of all of them, about. What that moves.
  template <typename Fill>
  L2Traffic touch(std::size_t things, std::size_t lines, MemorySystem& memory, Fill&& fill) {
    const bool shared = crew_.size() > 1 && lines >= kWorthSharing;
    const std::size_t parts = shared ? kPartsPerThread * crew_.size() : 1, pairs = memory.slice_pairs();
    if (parts_.size() < parts) parts_.resize(parts);
    pairs_.assign(pairs, {});
    const auto fill_part = [&](std::uint32_t p, unsigned) {
      parts_[p].lists_.resize(pairs);
      fill(things * p / parts, things * (p + 1) / parts, parts_[p]);
    };
    const auto touch_pair = [&](std::uint32_t pair, unsigned) {
      for (Part& part : std::span(parts_).first(parts)) touch_list(part.lists_[pair], memory, pairs_[pair]);
    };
    if (shared) {
      crew_.run(static_cast<std::uint32_t>(parts), fill_part);
      crew_.run(static_cast<std::uint32_t>(pairs), touch_pair);
    } else {
      fill_part(0, 0);
      for (std::uint32_t pair = 0; pair < pairs; ++pair) touch_pair(pair, 0);
    }
    L2Traffic all;
    for (const L2Traffic& pair : pairs_) all += pair;
    return all;
  }

 private:
  static constexpr std::size_t kWorthSharing = 1000;  // lines; waking a thread takes as long as a hundred
  static constexpr std::size_t kPartsPerThread = 2;   // so that one that comes late holds nobody up for long
  // The tags of a GPU's L2 are larger than the host's near caches: its processor is asked for what a line looks at so
  // many lines before.
  static constexpr std::size_t kAhead = 16;

  static void touch_list(std::vector<Touch>& list, MemorySystem& memory, L2Traffic& traffic) {
    const auto prefetch = [&](const Touch& t) { memory.prefetch(t.place, t.kind == RequestKind::Write, t.sm); };
    for (std::size_t i = 0; i < std::min(kAhead, list.size()); ++i) prefetch(list[i]);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i + kAhead < list.size()) prefetch(list[i + kAhead]);
      const Touch& t = list[i];
      traffic += memory.touch(t.place, t.sectors, t.kind, t.sm, t.full, t.bytes);
    }
    list.clear();
  }

  Crew& crew_;
  std::vector<Part> parts_;
  std::vector<L2Traffic> pairs_;  ///< what their lines moved
};

}  // namespace forewarp

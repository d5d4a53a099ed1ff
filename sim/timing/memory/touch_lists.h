// Lines to be touched in L2, in one list per pair of slices that keep copies of each other's lines. Pairs are
// independent, so threads share them and the result is the same for any number of threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/crew.h"
#include "timing/memory/memory.h"

namespace forewarp {

/// Requests to L2: lines to read, sectors to write.
struct Asked {
  std::uint64_t read = 0, written = 0;
  void add(RequestKind kind, std::uint8_t sectors) {
    kind != RequestKind::Read ? written += static_cast<std::uint64_t>(std::popcount(unsigned{sectors})) : ++read;
  }
  Asked& operator+=(const Asked& o) {
    read += o.read, written += o.written;
    return *this;
  }
};

class TouchLists {
 public:
  struct Touch {
    LinePlace place;
    std::uint16_t sm = 0;
    std::uint8_t sectors = 0;
    RequestKind kind = RequestKind::Read;
    std::uint8_t bytes = 0;
    bool full = true;
    std::uint8_t fetch = 0;  ///< reads: LineSectors::fetch
  };
  /// A part of the lines, in order, filled by one thread.
  class alignas(64) Part {
   public:
    void add(const Touch& touch) { lists_[touch.place.pair].push_back(touch); }
    std::vector<std::uint64_t> lines;  ///< scratch for those who add: lines to pick from
    std::vector<LinePlace> places;     ///< the same

   private:
    friend TouchLists;
    std::vector<std::vector<Touch>> lists_;  ///< by pair
  };
  /// Traffic and requests.
  struct Counted {
    L2Traffic traffic;
    Asked asked;
    Counted& operator+=(const Counted& o) {
      traffic += o.traffic, asked += o.asked;
      return *this;
    }
  };

  explicit TouchLists(Crew& crew) : crew_(crew) {}

  /// Touches the lines of `things` in order. fill(first, end, part) adds the lines of some of them to a part, while
  /// other threads fill other parts. `lines`: about how many there are in all.
  template <typename Fill>
  Counted touch(std::size_t things, std::size_t lines, MemorySystem& memory, Fill&& fill) {
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
    Counted all;
    for (const Counted& pair : pairs_) all += pair;
    return all;
  }

 private:
  static constexpr std::size_t kWorthSharing = 1000;  // lines; waking a thread takes as long as a hundred
  static constexpr std::size_t kPartsPerThread = 2;   // so that one that comes late holds nobody up for long
  // The tags of a GPU's L2 are larger than the host's near caches: its processor is asked for what a line looks at so
  // many lines before.
  static constexpr std::size_t kAhead = 16;

  static void touch_list(std::vector<Touch>& list, MemorySystem& memory, Counted& counted) {
    const auto prefetch = [&](const Touch& t) { memory.prefetch(t.place, t.kind == RequestKind::Write, t.sm); };
    for (std::size_t i = 0; i < std::min(kAhead, list.size()); ++i) prefetch(list[i]);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i + kAhead < list.size()) prefetch(list[i + kAhead]);
      const Touch& t = list[i];
      counted.traffic += memory.touch(t.place, t.sectors, t.kind, t.sm, t.full, t.bytes, t.fetch);
      counted.asked.add(t.kind, t.sectors);
    }
    list.clear();
  }

  Crew& crew_;
  std::vector<Part> parts_;
  std::vector<Counted> pairs_;  ///< what their lines moved
};

}  // namespace forewarp

// Future events of the memory system: a ring with a bucket per cycle for the near future, a heap for the far future.
// Events of one cycle come out in the order they went in, so a run is a pure function of its input. Events are stored
// in chunks from one growing array with a free list; nothing is allocated once it has warmed up.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/types.h"

namespace forewarp {

/// The owner gives it meaning: `type` and `unit` say what happens where, `subject` to what.
struct Event {
  std::uint32_t subject = 0;
  std::uint16_t unit = 0;
  std::uint8_t type = 0;
  std::uint8_t sectors = 0;
};

class EventQueue {
 public:
  static constexpr std::uint32_t kBuckets = 2048;  ///< cycles ahead that the ring covers

  EventQueue() { buckets_.fill({kNone, kNone}); }

  /// `at` must not lie before the current time.
  void push(Cycle at, Event event) {
    ++size_;
    if (at - now_ < kBuckets) {
      append(at, event);
    } else {
      FW_CHECK(at > now_, "an event lies in the past");
      far_.push_back({at, sequence_++, event});
      std::push_heap(far_.begin(), far_.end(), later);
    }
  }

  /// Cycle of the earliest event, kNever if there is none.
  Cycle next() const {
    if (summary_ == 0) return far_.empty() ? kNever : far_.front().at;
    const std::uint32_t start = static_cast<std::uint32_t>(now_) % kBuckets;
    const std::uint32_t word = start / 64;
    const std::uint64_t here = words_[word] >> (start % 64);
    if (here != 0) return now_ + std::countr_zero(here);
    // Words after the current one, then, wrapping around, those up to and including it.
    const std::uint64_t after = word == 63 ? 0 : summary_ >> (word + 1) << (word + 1);
    const std::uint32_t found = std::countr_zero(after != 0 ? after : summary_);
    const std::uint32_t bucket = found * 64 + std::countr_zero(words_[found]);
    return now_ + ((bucket - start) % kBuckets);
  }

  /// Takes all events of the earliest cycle that has any, unless it is after `limit`, and moves the current time there.
  /// Events pushed for that cycle afterwards come with the next call.
  bool take(Cycle limit, std::vector<Event>& events, Cycle& at) {
    events.clear();
    at = next();
    if (at > limit || at == kNever) return false;
    advance(at);
    const std::uint32_t bucket = static_cast<std::uint32_t>(at) % kBuckets;
    for (std::uint32_t id = buckets_[bucket].head; id != kNone;) {
      Chunk& chunk = chunks_[id];
      events.insert(events.end(), chunk.events.begin(), chunk.events.begin() + chunk.count);
      const std::uint32_t next = chunk.next;
      chunk.next = free_;
      free_ = id;
      id = next;
    }
    buckets_[bucket] = {kNone, kNone};
    words_[bucket / 64] &= ~(std::uint64_t{1} << (bucket % 64));
    if (words_[bucket / 64] == 0) summary_ &= ~(std::uint64_t{1} << (bucket / 64));
    size_ -= events.size();
    return true;
  }

  /// visit(event) for what is due before `limit`, a few cycles ahead, as far as it is known yet.
  template <class Visit>
  void for_each_before(Cycle limit, Visit&& visit) const {
    limit = std::min(limit, now_ + kBuckets);
    for (Cycle at = next(); at < limit; ++at) {
      const std::uint32_t bucket = static_cast<std::uint32_t>(at) % kBuckets;
      for (std::uint32_t id = buckets_[bucket].head; id != kNone; id = chunks_[id].next)
        for (std::uint32_t i = 0; i < chunks_[id].count; ++i) visit(chunks_[id].events[i]);
    }
  }

  /// Moves the current time forward; no event may lie before it.
  void advance(Cycle now) {
    if (now <= now_) return;
    now_ = now;
    while (!far_.empty() && far_.front().at - now_ < kBuckets) {
      append(far_.front().at, far_.front().event);
      std::pop_heap(far_.begin(), far_.end(), later);
      far_.pop_back();
    }
  }

  Cycle now() const { return now_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  struct alignas(128) Chunk {
    std::array<Event, 15> events;
    std::uint32_t count, next;
  };
  struct Bucket {
    std::uint32_t head, tail;
  };
  struct Far {
    Cycle at;
    std::uint64_t sequence;
    Event event;
  };
  static bool later(const Far& a, const Far& b) { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }

  std::uint32_t new_chunk() {
    std::uint32_t id = free_;
    if (id != kNone) {
      free_ = chunks_[id].next;
    } else {
      id = static_cast<std::uint32_t>(chunks_.size());
      chunks_.emplace_back();
    }
    chunks_[id].count = 0;
    chunks_[id].next = kNone;
    return id;
  }

  void append(Cycle at, Event event) {
    const std::uint32_t index = static_cast<std::uint32_t>(at) % kBuckets;
    Bucket& bucket = buckets_[index];
    if (bucket.tail == kNone) {
      bucket.head = bucket.tail = new_chunk();
      words_[index / 64] |= std::uint64_t{1} << (index % 64);
      summary_ |= std::uint64_t{1} << (index / 64);
    } else if (chunks_[bucket.tail].count == chunks_[bucket.tail].events.size()) {
      const std::uint32_t id = new_chunk();
      chunks_[bucket.tail].next = id;
      bucket.tail = id;
    }
    Chunk& chunk = chunks_[bucket.tail];
    chunk.events[chunk.count++] = event;
  }

  Cycle now_ = 0;
  std::size_t size_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t summary_ = 0;  ///< bit w: words_[w] is nonzero
  std::uint32_t free_ = kNone;
  std::array<std::uint64_t, kBuckets / 64> words_{};  ///< bit of a bucket: it holds events
  std::array<Bucket, kBuckets> buckets_;
  std::vector<Chunk> chunks_;
  std::vector<Far> far_;
};

}  // namespace forewarp

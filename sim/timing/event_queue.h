// Future events of the memory system: a ring of one bucket a cycle for the near future, a heap for the far one.
// Events of one cycle come out in the order they went in, so a run is a pure function of its input. Nodes live in one
// growing array with a free list; after warming up nothing is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace forewarp {

/// What happens is the owner's business: `type` and `unit` say where, `subject` to what.
struct Event {
  std::uint32_t subject = 0;
  std::uint16_t unit = 0;
  std::uint8_t type = 0;
  std::uint8_t sectors = 0;
};

class EventQueue {
 public:
  static constexpr std::uint32_t kBuckets = 4096;  ///< cycles ahead that the ring holds

  EventQueue() { buckets_.fill({kNone, kNone}); }

  /// `at` must not lie before the current time.
  void push(Cycle at, Event event) {
    ++size_;
    if (at - now_ < kBuckets) {
      append(at, event);
    } else {
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
    // Words after the current one, then (having gone round) those up to and including it.
    const std::uint64_t after = word == 63 ? 0 : summary_ >> (word + 1) << (word + 1);
    const std::uint32_t found = std::countr_zero(after != 0 ? after : summary_);
    const std::uint32_t bucket = found * 64 + std::countr_zero(words_[found]);
    return now_ + ((bucket - start) % kBuckets);
  }

  /// Takes the earliest event not after `limit`; the current time moves to its cycle.
  bool pop(Cycle limit, Event& event, Cycle& at) {
    at = next();
    if (at > limit || at == kNever) return false;
    advance(at);
    const std::uint32_t bucket = static_cast<std::uint32_t>(at) % kBuckets;
    const std::uint32_t node = buckets_[bucket].head;
    event = nodes_[node].event;
    buckets_[bucket].head = nodes_[node].next;
    if (buckets_[bucket].head == kNone) {
      buckets_[bucket].tail = kNone;
      words_[bucket / 64] &= ~(std::uint64_t{1} << (bucket % 64));
      if (words_[bucket / 64] == 0) summary_ &= ~(std::uint64_t{1} << (bucket / 64));
    }
    nodes_[node].next = free_;
    free_ = node;
    --size_;
    return true;
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
  struct Node {
    Event event;
    std::uint32_t next;
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

  void append(Cycle at, Event event) {
    std::uint32_t node = free_;
    if (node != kNone) {
      free_ = nodes_[node].next;
      nodes_[node] = {event, kNone};
    } else {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({event, kNone});
    }
    const std::uint32_t index = static_cast<std::uint32_t>(at) % kBuckets;
    Bucket& bucket = buckets_[index];
    if (bucket.tail == kNone) {
      bucket.head = node;
      words_[index / 64] |= std::uint64_t{1} << (index % 64);
      summary_ |= std::uint64_t{1} << (index / 64);
    } else {
      nodes_[bucket.tail].next = node;
    }
    bucket.tail = node;
  }

  Cycle now_ = 0;
  std::size_t size_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t summary_ = 0;  ///< bit w: words_[w] is not zero
  std::uint32_t free_ = kNone;
  std::array<std::uint64_t, kBuckets / 64> words_{};  ///< bit of a bucket: it holds events
  std::array<Bucket, kBuckets> buckets_;
  std::vector<Node> nodes_;
  std::vector<Far> far_;
};

}  // namespace forewarp

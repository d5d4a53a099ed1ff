// Hopper's L2 request coalescer, as one slice sees it: reads of one line by SMs of one GPC merge into one request while
// the first is in flight or for l2.coalescer_cycles after it hit, at most l2.coalescer_requests of them, if they ask
// for the same sectors. The data goes to all of them: a whole line to four SMs in one packet, two or three sectors to
// two, a sector to one. A read of other sectors meanwhile ends the merging of its line, and nobody joins it either.
//
// A small direct-mapped table. A line that displaces another only ends that line's merging.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace forewarp {

class ReadCoalescer {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  enum class Outcome : std::uint8_t {
    First,    ///< goes to the slice
    Waits,    ///< joined a request without data yet: chained behind `leader`
    Answered  ///< joined one whose data is leaving: it reaches the GPC at `response`
  };
  struct Join {
    Outcome outcome = Outcome::First;
    std::uint32_t leader = kNone;
    Cycle response = 0;
    bool shares_packet = false;  ///< crosses into the GPC with the data of the one before
  };

  explicit ReadCoalescer(int most) : most_(static_cast<std::uint8_t>(most)), entries_(most > 1 ? kEntries : 0) {}

  Join read(std::uint64_t index, bool copy, int gpc, std::uint16_t sm, std::uint8_t sectors, std::uint32_t id,
            Cycle now) {
    if (entries_.empty()) return {};
    const std::uint64_t key = key_of(index, copy, gpc);
    const std::uint32_t who = 1u << (sm % 32);  // a GPC has fewer
    Entry& e = entries_[slot(key)];
    if (e.key != key || now >= e.until) {
      e = {key, kNever, kNever, id, who, sectors, 1, 1};
      return {};
    }
    if (e.sectors != sectors) {
      e.until = 0;
      return {};
    }
    if (++e.requests == most_) e.until = 0;
    const bool shares = (e.packet & who) == 0 && e.in_packet < packet_sms(sectors);
    e.packet = shares ? e.packet | who : who;
    e.in_packet = static_cast<std::uint8_t>(shares ? e.in_packet + 1 : 1);
    return {e.response == kNever ? Outcome::Waits : Outcome::Answered, e.leader, e.response, shares};
  }

  void prefetch(std::uint64_t index, bool copy, int gpc) const {
    if (!entries_.empty()) __builtin_prefetch(entries_.data() + slot(key_of(index, copy, gpc)));
  }

  /// A First request has its data: others may join before `until`, for data that reaches the GPC at `response`.
  void answer(std::uint64_t index, bool copy, int gpc, std::uint32_t id, Cycle until, Cycle response) {
    if (entries_.empty()) return;
    const std::uint64_t key = key_of(index, copy, gpc);
    Entry& e = entries_[slot(key)];
    if (e.key != key || e.leader != id || e.until == 0) return;  // displaced or over
    e.until = until;
    e.response = response;
  }

 private:
  struct Entry {
    std::uint64_t key = ~std::uint64_t{0};
    Cycle until = 0, response = 0;
    std::uint32_t leader = kNone;
    std::uint32_t packet = 0;  ///< SMs that its last packet goes to
    std::uint8_t sectors = 0, requests = 0, in_packet = 0;
  };
  static constexpr std::size_t kEntries =
      256;  ///< more lines than a slice has reads in flight for in any measured kernel

  /// SMs that a packet goes to: four with a whole line, two with two or three sectors, one with one.
  static unsigned packet_sms(std::uint8_t sectors) {
    return std::bit_floor(static_cast<unsigned>(std::popcount(sectors)));
  }
  static std::uint64_t key_of(std::uint64_t index, bool copy, int gpc) {
    return (index << 8) | (static_cast<std::uint64_t>(gpc) << 1) | (copy ? 1u : 0u);
  }
  static std::size_t slot(std::uint64_t key) {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> 56) & (kEntries - 1);
  }

  std::uint8_t most_;
  std::vector<Entry> entries_;
};

}  // namespace forewarp

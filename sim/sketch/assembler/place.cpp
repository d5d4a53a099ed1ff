// Registers by linear scan over live intervals: values in order of their first definition, each in the first aligned
// place that is free for as long as it lives.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "hardware/occupancy.h"
#include "sketch/assembler/flow.h"
#include "sketch/assembler/names.h"

namespace forewarp::sketch {
namespace {

constexpr int kStackPointer = 1;
constexpr int kGranule = 8;
// A copy by cp.async keeps its address for 90 to 100 cycles (FINDINGS.md, "A copy keeps its address registers"). Those
// are so many instructions of a warp that issues one in four cycles, which is assumed: it is not known when it will.
constexpr int kUntilServed = 96 / 4;

using Bits = std::vector<std::uint64_t>;
void set(Bits& bits, int i) { bits[static_cast<std::size_t>(i) / 64] |= std::uint64_t{1} << (i % 64); }
bool test(const Bits& bits, int i) { return (bits[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1) != 0; }

struct Interval {
  int first = std::numeric_limits<int>::max(), last = -1;
  int served = -1;  ///< from when on a copy by cp.async has read it
  void see(int at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

class Liveness {
 public:
  Liveness(const Code& code, const Words& words)
      : code_(code), words_(words), blocks_(blocks_of(code)), definitions_(code.values().size(), 0) {}

  std::vector<Interval> intervals() {
    find_uses();
    spread();
    std::vector<Interval> found(code_.values().size());
    int at = 0;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const int begin = at;
      for (const Line& line : blocks_[b].block->lines) {
        for_each_value(line, [&](const Value& v, int, bool written, bool) {
          Interval& of = found[static_cast<std::size_t>(v.id)];
          of.see(2 * at + (written ? 1 : 0));
          if (line.instruction.opcode == Opcode::LDGSTS) of.served = 2 * (at + kUntilServed);
        });
        ++at;
      }
      const int end = at;
      for (std::size_t v = 0; v < found.size(); ++v)
        for (int w = words_.first(v); w < words_.first(v + 1); ++w) {
          if (test(live_in_[b], w)) found[v].see(2 * begin);
          if (test(live_out_[b], w)) found[v].see(2 * end);
        }
    }
    return found;
  }

 private:
  void find_uses() {
    const std::size_t longs = static_cast<std::size_t>(words_.count()) / 64 + 1;
    used_.assign(blocks_.size(), Bits(longs, 0));
    defined_ = live_in_ = live_out_ = used_;
    for (const FlowBlock& b : blocks_)
      for (const Line& line : b.block->lines)
        for_each_value(line, [&](const Value& v, int, bool written, bool) {
          definitions_[static_cast<std::size_t>(v.id)] += written ? 1 : 0;
        });
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      for (const Line& line : blocks_[b].block->lines) {
        for_each_value(line, [&](const Value& v, int count, bool written, bool) {
          for (int w = 0; !written && w < count; ++w)
            if (!test(defined_[b], words_.of(v.at(w)))) set(used_[b], words_.of(v.at(w)));
        });
        for_each_value(line, [&](const Value& v, int count, bool written, bool) {
          // What a guard may leave out keeps the old value, unless there is none.
          const bool whole = line.guard.id < 0 || definitions_[static_cast<std::size_t>(v.id)] == 1;
          for (int w = 0; written && whole && w < count; ++w) set(defined_[b], words_.of(v.at(w)));
        });
      }
    }
  }

  void spread() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = blocks_.size(); i-- > 0;) {
        Bits out(live_out_[i].size(), 0);
        for (const int s : blocks_[i].successors)
          for (std::size_t k = 0; k < out.size(); ++k) out[k] |= live_in_[static_cast<std::size_t>(s)][k];
        Bits in = out;
        for (std::size_t k = 0; k < in.size(); ++k) in[k] = used_[i][k] | (out[k] & ~defined_[i][k]);
        changed |= in != live_in_[i] || out != live_out_[i];
        live_in_[i] = std::move(in);
        live_out_[i] = std::move(out);
      }
    }
  }

  const Code& code_;
  const Words& words_;
  std::vector<FlowBlock> blocks_;
  std::vector<int> definitions_;  ///< by value: instructions that write it
  std::vector<Bits> used_, defined_, live_in_, live_out_;
};

class PlaceFile {
 public:
  /// `spread`: of the first so many places the one that has been free for longest, then the first that is free.
  explicit PlaceFile(bool vectors, int spread = 0)
      : busy_(static_cast<std::size_t>(std::max(spread, kStackPointer + 1)), -1), vectors_(vectors), spread_(spread) {
    if (vectors) busy_[kStackPointer] = std::numeric_limits<int>::max();
  }

  int take(const Interval& live, int words, int bank) {
    const int align = words == 1 ? 1 : words == 2 ? 2 : 4;
    int found = longest_free(live, words, align, bank);
    if (found < 0) found = first_free(live, words, align, bank);
    if (bank >= 0 && found + words > used_) {
      const int other = first_free(live, words, align, -1);
      if (other + words <= used_) found = other;
    }
    if (const auto end = static_cast<std::size_t>(found + words); end > busy_.size()) busy_.resize(end, -1);
    for (int w = 0; w < words; ++w) busy_[static_cast<std::size_t>(found + w)] = live.last;
    used_ = std::max(used_, found + words);
    return found;
  }
  int used() const { return std::max(used_, vectors_ ? kStackPointer + 1 : 0); }

 private:
  int longest_free(const Interval& live, int words, int align, int bank) const {
    int found = -1, since = std::numeric_limits<int>::max();
    for (int at = 0; at + words <= spread_; at += align) {
      if (bank >= 0 && at % 2 != bank) continue;
      int last = -1;
      for (int w = 0; w < words; ++w) last = std::max(last, busy_[static_cast<std::size_t>(at + w)]);
      if (last > live.first || last >= since) continue;
      found = at;
      since = last;
    }
    return found;
  }

  int first_free(const Interval& live, int words, int align, int bank) const {
    for (int at = 0;; at += align) {
      if (bank >= 0 && at % 2 != bank) continue;
      bool free = true;
      for (int w = at; w < at + words && free; ++w)
        free = w >= static_cast<int>(busy_.size()) || busy_[static_cast<std::size_t>(w)] <= live.first;
      if (free) return at;
    }
  }

  std::vector<int> busy_;  ///< until when; beyond its end all are free
  bool vectors_;
  int spread_;
  int used_ = 0;
};

}  // namespace

Placement place_values(const Code& code, const GpuModel& model, int threads) {
  const Words words(code.values());
  const std::vector<Interval> live = Liveness(code, words).intervals();
  std::vector<std::size_t> order;
  for (std::size_t v = 0; v < live.size(); ++v)
    if (live[v].last >= 0) order.push_back(v);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (live[a].first != live[b].first) return live[a].first < live[b].first;
    return code.values()[a].words > code.values()[b].words;
  });
  const auto place = [&](int spread, bool until_served) {
    Placement places;
    places.first.assign(live.size(), 0);
    std::array<PlaceFile, 3> files{PlaceFile(true, spread), PlaceFile(false), PlaceFile(false, kPredicateTrue)};
    for (const std::size_t v : order) {
      const ValueSpec& spec = code.values()[v];
      Interval interval = live[v];
      // A result of several registers must not lie over what the same instruction still reads.
      if (spec.words > 1 && interval.first % 2 == 1) interval.first -= 2;
      if (until_served && spec.file == File::Vector) interval.last = std::max(interval.last, interval.served);
      places.first[v] = files[static_cast<std::size_t>(spec.file)].take(interval, spec.words, spec.bank);
    }
    places.registers = files[0].used();
    places.uniforms = files[1].used();
    places.predicates = files[2].used();
    return places;
  };
  Placement places = place(0, false);
  const auto room = [&](int registers) {
    return blocks_by_registers(model, registers, (threads + kWarpLanes - 1) / kWarpLanes);
  };
  // What a copy still reads is not written, where no block less fits for it.
  const Placement apart = place(0, true);
  const bool served = apart.registers <= kRegisterZero && room(apart.registers) == room(places.registers);
  if (served) places = apart;
  // Registers are handed out by eight. Those beyond the least keep results apart from what memory instructions still
  // read.
  const int handed_out = (places.registers + kGranule - 1) / kGranule * kGranule;
  if (Placement spread = place(handed_out, served); spread.registers <= handed_out) places = std::move(spread);
  return places;
}

}  // namespace forewarp::sketch

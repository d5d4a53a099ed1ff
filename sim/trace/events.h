// What a trace says: for each warp a stream of typed events, stored compactly as runs of instructions and a list of
// records (trace.h). What kind of event an instruction is, how many records it takes and what they ask of memory is
// decided here and nowhere else: the detailed SM, the warming of caches, skipping and the counters all follow it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program.h"
#include "trace/trace.h"

namespace forewarp {

inline constexpr int kScoreboards = 6;
inline constexpr std::uint8_t kNoScoreboard = 7;

enum class EventKind : std::uint8_t {
  Issue,        ///< nothing beyond its issue; those in a row are an instruction run
  Access,       ///< a load, store, atomic or reduction: one record
  Transfer,     ///< an asynchronous copy: the record of what is read, then the one of where it is written
  Phase,        ///< something about a barrier in shared memory: one record, a PhaseRecord
  Arrive,       ///< at a barrier of the block, to wait there or not: one record, a BarrierArrival
  Cluster,      ///< the same of the cluster's barrier, which has no number: one record, a BarrierArrival
  RemoteStore,  ///< into shared memory of the cluster: a record of where, then a PhaseRecord of what that completes
  Commit,  ///< closes the group of the warp's transfers since the last one: a scoreboard counts down when they are done
  Wait,    ///< until a scoreboard counts no more than a given number
};

struct TraceEvent {
  EventKind kind = EventKind::Issue;
  std::uint8_t records = 0;  ///< of WarpTrace::accesses that it takes
};

TraceEvent event_of(const Instruction&);

/// Where an access goes.
enum class AccessTarget : std::uint8_t {
  Nothing,
  Banks,  ///< shared memory: passes through the data banks
  Lines   ///< global or local memory: lines and sectors, by way of L1 or past it
};

/// What L2 is asked for.
enum class RequestKind : std::uint8_t { Read, Write, Atomic /* returns a value */, Reduction /* does not */ };

/// What a record means to memory. L2 carries out atomics and reductions, so that L1 forgets the sectors they change.
struct AccessEffect {
  AccessTarget target = AccessTarget::Nothing;
  RequestKind request = RequestKind::Read;

  bool to_lines() const { return target == AccessTarget::Lines; }
  /// L2 answers with data.
  bool returns_data() const { return request == RequestKind::Read || request == RequestKind::Atomic; }
  bool changes_at_l2() const { return request == RequestKind::Atomic || request == RequestKind::Reduction; }
};

AccessEffect effect_of(const AccessPattern&);

/// The event of every instruction of a kernel.
class EventTable {
 public:
  explicit EventTable(const Kernel&);

  const TraceEvent& operator[](std::uint32_t pc) const { return events_[pc]; }
  std::size_t size() const { return events_.size(); }
  std::uint64_t records(const Run& run) const { return before_[run.first + run.count] - before_[run.first]; }
  std::uint64_t records(std::span<const Run> runs) const {
    std::uint64_t sum = 0;
    for (const Run& run : runs) sum += records(run);
    return sum;
  }
  /// Records of one execution of every instruction, and of those before one of the code.
  std::uint32_t all_records() const { return before_.back(); }
  std::uint32_t records_before(std::uint32_t pc) const { return before_[pc]; }

 private:
  std::vector<TraceEvent> events_;
  std::vector<std::uint32_t> before_;  ///< one more than instructions
};

/// A place in a warp's stream: the instruction at hand and the first of its records.
class WarpCursor {
 public:
  WarpCursor() = default;
  /// At the start; the path has an instruction.
  WarpCursor(const WarpPath& path, const WarpTrace& warp)
      : run_(path.runs.data()),
        first_(run_),
        end_(run_ + path.runs.size()),
        record_(warp.accesses.data()),
        pc_(run_->first),
        left_(run_->count) {}

  bool done() const { return run_ == end_; }
  std::uint32_t pc() const { return pc_; }
  const Access* records() const { return record_; }

  /// Past the instruction at hand and so many records. At the end, pc() remains that of the last instruction.
  void step(unsigned records) {
    record_ += records;
    if (--left_ > 0) {
      ++pc_;
      return;
    }
    if (++run_ == end_) return;
    pc_ = run_->first;
    left_ = run_->count;
  }
  /// Past so many instructions, fewer than are left, and their records.
  void advance(std::uint64_t instructions, const EventTable& events) {
    for (; instructions >= left_; ++run_) {
      record_ += events.records({pc_, left_});
      instructions -= left_;
      pc_ = run_[1].first;
      left_ = run_[1].count;
    }
    const auto part = static_cast<std::uint32_t>(instructions);
    record_ += events.records({pc_, part});
    pc_ += part;
    left_ -= part;
  }

  /// Instructions that are left, the one at hand included.
  std::uint64_t ahead() const {
    if (done()) return 0;
    std::uint64_t sum = left_;
    for (const Run* run = run_ + 1; run != end_; ++run) sum += run->count;
    return sum;
  }

  /// Shows the rest of the stream to use(pc, event, records, at), events that have records alone; `at` counts the
  /// instructions before it from here on. Ends early when `use` returns false. The cursor stays.
  template <class Use>
  void for_each_record(const EventTable& events, Use&& use) const {
    if (done()) return;
    const Access* record = record_;
    std::uint64_t at = 0;
    Run part{pc_, left_};
    for (const Run* run = run_;;) {
      if (events.records(part) != 0) {
        for (std::uint32_t i = 0; i < part.count; ++i) {
          const TraceEvent& event = events[part.first + i];
          if (event.records == 0) continue;
          if (!use(part.first + i, event, std::span(record, event.records), at + i)) return;
          record += event.records;
        }
      }
      at += part.count;
      if (++run == end_) return;
      part = *run;
    }
  }

 private:
  const Run* run_ = nullptr;
  const Run* first_ = nullptr;
  const Run* end_ = nullptr;
  const Access* record_ = nullptr;
  std::uint32_t pc_ = 0;
  std::uint32_t left_ = 0;  ///< instructions of the run at hand, pc_ included
};

}  // namespace forewarp

#include "report/warp_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "report/analysis.h"
#include "report/format.h"

namespace forewarp {

const char* role_name(WarpRole role) {
  return role == WarpRole::Producer ? "producer" : role == WarpRole::Consumer ? "consumer" : "other";
}

namespace report {

namespace {

constexpr double kFull = 0.9;         // of a unit's rate: it gives no more
constexpr double kNoticeable = 0.02;  // of a period: less is not worth a word
constexpr std::uint64_t kFewest = 2;  // waits from which a mean is taken

std::vector<WarpRole> roles_of(const BlockRecord& record,
                               const std::set<std::pair<std::uint16_t, std::uint32_t>>& filled) {
  std::vector<bool> copies(record.warps.size()), computes(record.warps.size());
  for (const BlockRecord::Copy& copy : record.copies)
    if (copy.kind == BlockRecord::CopyKind::In) copies[copy.row] = true;
  for (const BlockRecord::Products& products : record.products) computes[products.row] = true;
  for (const BlockRecord::Await& await : record.awaits)
    if (filled.contains({record.warps[await.row].block, await.barrier})) computes[await.row] = true;
  std::vector<WarpRole> roles;
  for (std::size_t row = 0; row < record.warps.size(); ++row)
    roles.push_back(computes[row] ? WarpRole::Consumer : copies[row] ? WarpRole::Producer : WarpRole::Other);
  return roles;
}

/// Blocks, by their index, that a copy's bytes reach.
template <class Use>
void for_each_target(const BlockRecord& record, const BlockRecord::Copy& copy, Use&& use) {
  const std::uint16_t own = record.warps[copy.row].block;
  if (copy.blocks == 0) return use(own);
  for (std::size_t b = 0; b < record.blocks.size(); ++b)
    if ((copy.blocks >> record.blocks[b].rank & 1) != 0) use(static_cast<std::uint16_t>(b));
}

bool completes(const BlockRecord::Copy& copy) {
  return copy.kind == BlockRecord::CopyKind::In || copy.kind == BlockRecord::CopyKind::ToBlocks;
}

/// Names and rings. Barriers belong to one ring if one instruction waits for each of them.
void add_barriers(WarpTimeline& t, const std::set<std::pair<std::uint16_t, std::uint32_t>>& filled) {
  const BlockRecord& record = *t.record;
  std::set<std::pair<std::uint16_t, std::uint32_t>> all = filled;
  for (const BlockRecord::Await& await : record.awaits) all.insert({record.warps[await.row].block, await.barrier});
  // By what is common to all blocks: whether copies fill it, and its place.
  std::map<std::uint32_t, std::uint32_t> ring_of;  // by offset: the least offset of its ring
  for (const auto& [block, offset] : all) ring_of[offset] = offset;
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t from = ring_of[a], to = ring_of[b];
    for (auto& [offset, ring] : ring_of)
      if (ring == from || ring == to) ring = std::min(from, to);
  };
  std::map<std::pair<std::uint32_t, bool>, std::uint32_t> first;  // by pc: a barrier that it waits for
  const auto is_filled = [&](std::uint32_t offset) {
    return std::any_of(filled.begin(), filled.end(), [&](const auto& one) { return one.second == offset; });
  };
  for (const BlockRecord::Await& await : record.awaits) {
    const auto [known, added] = first.try_emplace({await.pc, is_filled(await.barrier)}, await.barrier);
    if (!added) join(await.barrier, known->second);
  }
  std::map<std::uint32_t, std::uint32_t> ring_index;
  for (const auto& [offset, ring] : ring_of)
    if (offset == ring) {
      ring_index[ring] = static_cast<std::uint32_t>(t.rings.size());
      t.rings.emplace_back().filled = is_filled(ring);
    }
  std::map<std::uint32_t, std::string> names;
  std::array<std::uint32_t, 2> count{};
  std::vector<std::vector<std::uint32_t>> numbers(t.rings.size());
  for (const auto& [offset, ring] : ring_of) {
    const bool full = is_filled(offset);
    const std::uint32_t number = count[full ? 1 : 0]++;
    names[offset] = (full ? "full[" : "empty[") + std::to_string(number) + "]";
    numbers[ring_index[ring]].push_back(number);
  }
  for (std::size_t r = 0; r < t.rings.size(); ++r) {
    TimelineRing& ring = t.rings[r];
    ring.stages = static_cast<std::uint32_t>(numbers[r].size());
    std::string list = std::to_string(numbers[r].front());
    const bool row = numbers[r].back() - numbers[r].front() + 1 == ring.stages;
    if (ring.stages > 1 && row) list += ".." + std::to_string(numbers[r].back());
    for (std::size_t i = 1; i < numbers[r].size() && !row; ++i) list += "," + std::to_string(numbers[r][i]);
    ring.name = (ring.filled ? "full[" : "empty[") + list + "]";
  }
  for (const auto& [block, offset] : all)
    t.barriers.push_back({block, offset, filled.contains({block, offset}), ring_index[ring_of[offset]], names[offset]});
}

const TimelineBarrier* barrier_at(const WarpTimeline& t, std::uint16_t block, std::uint32_t offset) {
  for (const TimelineBarrier& barrier : t.barriers)
    if (barrier.block == block && barrier.offset == offset) return &barrier;
  return nullptr;
}

/// How late phases end for those who wait for them, from a warp's second round of the ring on: the first meets what the
/// launch begins with.
void add_waits(WarpTimeline& t, double check_cycles) {
  const BlockRecord& record = *t.record;
  struct Row {
    std::vector<const BlockRecord::Await*> awaits;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Row> rows;  // by ring and warp
  for (const BlockRecord::Await& await : record.awaits) {
    const TimelineBarrier* barrier = barrier_at(t, record.warps[await.row].block, await.barrier);
    if (barrier != nullptr && await.over != BlockRecord::kOpen)
      rows[{barrier->ring, await.row}].awaits.push_back(&await);
  }
  std::vector<double> time(t.rings.size()), steps(t.rings.size());
  for (const auto& [key, row] : rows) {
    TimelineRing& ring = t.rings[key.first];
    if (ring.filled && t.roles[key.second] == WarpRole::Consumer && row.awaits.size() > ring.stages)
      t.from = std::max(t.from, row.awaits[ring.stages]->asked);
    const std::size_t begin = std::min<std::size_t>(ring.stages, row.awaits.size());
    const std::size_t count = row.awaits.size() - begin;
    if (count < kFewest) continue;
    double late = 0;
    for (std::size_t i = begin; i < row.awaits.size(); ++i) {
      const BlockRecord::Await& await = *row.awaits[i];
      const double waited = await.over <= await.asked ? 0 : static_cast<double>(await.over - await.asked);
      late += std::max(0.0, waited - check_cycles);
    }
    late /= static_cast<double>(count);
    ring.late = ring.asked == 0 ? late : std::min(ring.late, late);
    ring.most_late = std::max(ring.most_late, late);
    ring.asked += count;
    time[key.first] += static_cast<double>(row.awaits.back()->asked - row.awaits[begin]->asked);
    steps[key.first] += static_cast<double>(count - 1);
  }
  for (std::size_t r = 0; r < t.rings.size(); ++r) t.rings[r].period = ratio(time[r], steps[r]);
}

/// How long the copies of a phase take, and how much they bring.
void add_copies(WarpTimeline& t) {
  const BlockRecord& record = *t.record;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::vector<const BlockRecord::Copy*>> of;  // by block and barrier
  for (const BlockRecord::Copy& copy : record.copies)
    if (completes(copy) && copy.done != BlockRecord::kOpen)
      for_each_target(record, copy, [&](std::uint16_t block) { of[{block, copy.barrier}].push_back(&copy); });
  std::vector<double> latency(t.rings.size()), bytes(t.rings.size()), phases(t.rings.size());
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::size_t> next;
  for (const BlockRecord::PhaseEnd& end : record.phases) {
    const TimelineBarrier* barrier = barrier_at(t, end.block, end.barrier);
    if (barrier == nullptr || !barrier->filled) continue;
    const auto& copies = of[{end.block, end.barrier}];
    std::size_t& at = next[{end.block, end.barrier}];
    const std::size_t first = at;
    double brought = 0;
    for (; at < copies.size() && copies[at]->done <= end.at; ++at) brought += copies[at]->bytes;
    if (at == first || end.phase <= 1) continue;  // the first phase finds nothing under way
    latency[barrier->ring] += static_cast<double>(end.at - copies[first]->issued);
    bytes[barrier->ring] += brought;
    ++phases[barrier->ring];
  }
  for (std::size_t r = 0; r < t.rings.size(); ++r) {
    t.rings[r].latency = ratio(latency[r], phases[r]);
    t.rings[r].bytes = ratio(bytes[r], phases[r]);
  }
}

void add_times(WarpTimeline& t) {
  const BlockRecord& record = *t.record;
  for (const WarpRole role : {WarpRole::Producer, WarpRole::Consumer, WarpRole::Other}) {
    RoleTime time;
    time.role = role;
    for (std::size_t row = 0; row < record.warps.size(); ++row) {
      if (t.roles[row] != role) continue;
      ++time.warps;
      for (const WarpInterval& one : record.warps[row].intervals) {
        if (one.to <= t.from) continue;
        const std::uint64_t cycles = one.to - std::max(one.from, t.from);
        time.cycles[static_cast<std::size_t>(one.state)] += cycles;
        time.all += cycles;
        if (one.state != Stall::LongScoreboard || one.barrier == WarpInterval::kNone) continue;
        const TimelineBarrier* barrier = barrier_at(t, record.warps[row].block, one.barrier);
        (barrier != nullptr && barrier->filled ? time.at_full : time.at_empty) += cycles;
      }
    }
    if (time.warps > 0) t.times.push_back(time);
  }
}

void add_utilisation(WarpTimeline& t, int sub_partitions) {
  const BlockRecord& record = *t.record;
  const auto inside = [&](Cycle from, Cycle to) {
    from = std::max(from, t.from);
    to = std::min(to, record.end);
    return to > from ? static_cast<double>(to - from) : 0;
  };
  const double cycles = std::max(1.0, inside(t.from, record.end)), blocks = static_cast<double>(record.blocks.size());
  double busy = 0, bytes = 0, under_way = 0;
  for (const BlockRecord::Busy& one : record.busy) busy += inside(one.from, one.to);
  std::vector<std::pair<Cycle, Cycle>> copies;
  for (const BlockRecord::Copy& copy : record.copies) {
    copies.emplace_back(copy.issued, copy.done);
    if (completes(copy) && copy.done > t.from && copy.done <= record.end)
      for_each_target(record, copy, [&](std::uint16_t) { bytes += copy.bytes; });
  }
  std::sort(copies.begin(), copies.end());
  Cycle until = 0;
  for (const auto& [from, to] : copies) {
    under_way += inside(std::max(from, until), to);
    until = std::max(until, to);
  }
  t.tensor_pct = percent(busy, cycles * sub_partitions * blocks);
  t.copying_pct = percent(under_way, cycles);
  t.copied_bytes_per_cycle = bytes / cycles / std::max(1.0, blocks);
}

std::string cycles_text(double cycles) { return count(static_cast<std::uint64_t>(std::llround(cycles))) + " cycles"; }

std::string ordinal(std::uint32_t n) {
  static constexpr const char* kNames[] = {"",      "first",   "second", "third", "fourth", "fifth",
                                           "sixth", "seventh", "eighth", "ninth", "tenth"};
  return n < std::size(kNames) ? kNames[n] : std::to_string(n) + "th";
}

std::string state_text(Stall state) {
  return state == Stall::Products  ? "for their products"
         : state == Stall::Barrier ? "at a barrier of the block"
                                   : "in the state " + std::string(stall_name(state));
}

const RoleTime* time_of(const WarpTimeline& t, WarpRole role) {
  for (const RoleTime& time : t.times)
    if (time.role == role) return &time;
  return nullptr;
}

/// The ring of a kind for which warps wait longest over all.
const TimelineRing* worst_ring(const WarpTimeline& t, bool filled) {
  const TimelineRing* worst = nullptr;
  for (const TimelineRing& ring : t.rings) {
    if (ring.filled != filled || ring.asked < kFewest || ring.period == 0) continue;
    if (worst == nullptr ||
        ring.late * static_cast<double>(ring.asked) > worst->late * static_cast<double>(worst->asked))
      worst = &ring;
  }
  return worst;
}

/// The least time of a stage: what the busiest unit takes for it, or the warps themselves when they wait for no copy.
struct Floor {
  double cycles = 0;
  std::string unit;  ///< "": the warps
};

Floor floor_of(const Inputs& in, const Prediction& p, const WarpTimeline& t, const TimelineRing& ring) {
  Floor floor{ring.period - ring.late, ""};
  const auto takes = [&](double cycles, const std::string& unit) {
    if (cycles > floor.cycles) floor = {cycles, unit};
  };
  takes(t.tensor_pct / 100 * ring.period, "the tensor pipe");
  takes(ring.bytes / static_cast<double>(kLineBytes) * in.model.async.box_line_x16 / 16, "the SM's unit for copies");
  for (const ThroughputTerm& term : p.memory_terms) takes(term.pct / 100 * ring.period, term.label);
  return floor;
}

std::string late_sentence(const Inputs& in, const Prediction& p, const WarpTimeline& t, const TimelineRing& ring) {
  std::string text = "consumers wait for " + ring.name + ": copies come " + cycles_text(ring.late) +
                     " late a stage (a stage takes " + cycles_text(ring.period) + ", a copy of " +
                     bytes_text(ring.bytes) + " " + cycles_text(ring.latency) + ", and there " +
                     (ring.stages == 1 ? "is 1 stage" : "are " + std::to_string(ring.stages) + " stages") + "); ";
  const Floor floor = floor_of(in, p, t, ring);
  if (!floor.unit.empty() && floor.cycles >= kFull * ring.period)
    return text + "more stages would not help: " + floor.unit + " takes " + cycles_text(floor.cycles) + " for a stage";
  const TimelineRing* freed = worst_ring(t, false);
  if (freed == nullptr || freed->late < kNoticeable * freed->period)
    return text + "more stages would not help: the producer finds them free and still asks too late";
  // Of the time in which a stage's turn comes round, copies take as long as before, and the rest, which stages wait to
  // be used, shrinks as the time of a stage does.
  const double missing = ring.latency * (1 / floor.cycles - 1 / ring.period);
  const std::uint32_t more = static_cast<std::uint32_t>(std::max(1.0, std::ceil(missing)));
  // The producer fills its rings in turn, so that one that is full holds up the others.
  double bytes = 0;
  int rings = 0;
  for (const TimelineRing& other : t.rings) {
    if (!other.filled || other.asked == 0) continue;
    bytes += more * other.bytes;
    ++rings;
  }
  text += (more == 1 ? "a " + ordinal(ring.stages + 1) + " stage" : std::to_string(more) + " more stages") +
          (rings > 1 ? " of each ring" : "") + " would hide it";
  if (!floor.unit.empty())
    text += ", down to the " + cycles_text(floor.cycles) + " that " + floor.unit + " takes for a stage";
  if (bytes > in.model.occupancy.shared_block_max_bytes - p.occupancy.shared_bytes_per_block)
    text += ", but " + bytes_text(bytes) + " more do not fit in a block's shared memory";
  return text;
}

std::string binding_wait(const Inputs& in, const Prediction& p, const WarpTimeline& t) {
  const RoleTime* consumers = time_of(t, WarpRole::Consumer);
  const bool any = std::any_of(t.rings.begin(), t.rings.end(), [](const TimelineRing& ring) { return ring.filled; });
  if (consumers == nullptr || consumers->all == 0 || !any) return "";
  const TimelineRing* full = worst_ring(t, true);
  const auto share = [&](const RoleTime& of, std::uint64_t cycles) {
    return percent_text(percent(static_cast<double>(cycles), static_cast<double>(of.all)));
  };
  const std::string tensor =
      t.tensor_pct > 0 ? " (the tensor pipe is busy " + percent_text(t.tensor_pct) + " of the time)" : "";
  if (full == nullptr)
    return "the record is too short to say which wait binds: it holds no second round of the barriers that copies "
           "complete";
  // The largest state of the consumers that is neither issue nor a wait for copies.
  std::array<std::uint64_t, kStallReasons> others = consumers->cycles;
  others[static_cast<std::size_t>(Stall::LongScoreboard)] -= consumers->at_full;
  others[static_cast<std::size_t>(Stall::Selected)] = 0;
  const auto most = static_cast<std::size_t>(std::max_element(others.begin(), others.end()) - others.begin());
  const std::uint64_t other = others[most];
  const double late_cycles = full->late * static_cast<double>(full->asked);
  const bool late = full->late >= kNoticeable * full->period;
  const bool products =
      most == static_cast<std::size_t>(Stall::Products) || most == static_cast<std::size_t>(Stall::MathPipeThrottle);
  const bool fed = t.tensor_pct >= 100 * kFull;
  if (late && !fed && (products || late_cycles >= static_cast<double>(other))) return late_sentence(in, p, t, *full);
  if (late && fed)
    return "the tensor pipe, which is busy " + percent_text(t.tensor_pct) + " of the time: copies come " +
           cycles_text(full->late) + " late a stage of " + cycles_text(full->period) +
           ", while the products before them are still under way";
  std::string text = late ? "copies come " + cycles_text(full->late) + " late a stage of " + cycles_text(full->period)
                          : "copies come in time";
  if (!late && full->most_late >= kNoticeable * full->period)
    text += " for the warps that are last (others, ahead of them, wait " + cycles_text(full->most_late) + " a stage)";
  text += ": consumers wait most, " + share(*consumers, other) + " of their time, " +
          state_text(static_cast<Stall>(most)) + tensor;
  const RoleTime* producers = time_of(t, WarpRole::Producer);
  const TimelineRing* freed = worst_ring(t, false);
  if (producers != nullptr && freed != nullptr && producers->at_empty > 0)
    text += "; the producer waits for " + freed->name + ", stages to be free again, " +
            share(*producers, producers->at_empty) + " of its time";
  return text;
}

}  // namespace

std::shared_ptr<const WarpTimeline> warp_timeline(const Inputs& in, const Prediction& p) {
  if (in.timing.record == nullptr) return nullptr;
  auto timeline = std::make_shared<WarpTimeline>();
  WarpTimeline& t = *timeline;
  t.record = in.timing.record;
  std::set<std::pair<std::uint16_t, std::uint32_t>> filled;
  for (const BlockRecord::Copy& copy : t.record->copies)
    if (completes(copy))
      for_each_target(*t.record, copy, [&](std::uint16_t block) { filled.insert({block, copy.barrier}); });
  t.from = t.record->start;
  t.roles = roles_of(*t.record, filled);
  add_barriers(t, filled);
  add_waits(t, in.model.async.phase_check_cycles);
  add_copies(t);
  add_times(t);
  add_utilisation(t, in.model.issue.sub_partitions);
  t.sentence = binding_wait(in, p, t);
  return timeline;
}

}  // namespace report

}  // namespace forewarp

// The memory system without time: what passes by L2 of work that is left out, and what L2 holds.
#include <cmath>

#include "timing/memory/memory_state.h"

namespace forewarp {

L2Traffic MemorySystem::touch(std::uint64_t line, std::uint8_t sectors, RequestKind kind, std::uint16_t sm, bool full,
                              std::uint8_t bytes, std::uint8_t fetch) {
  const AddressMap::Home home = state_->map_.home(line);
  return touch(state_->place(home), sectors, kind, sm, full, bytes, fetch);
}

void MemorySystem::expect_fetches(double sectors) {
  const double of_slice = sectors / static_cast<double>(state_->slices_.size());
  for (State::Slice& slice : state_->slices_)
    slice.cache.fetch_at_most(static_cast<std::uint32_t>(std::lround(of_slice)));
}

L2Traffic MemorySystem::touch(const LinePlace& home, std::uint8_t sectors, RequestKind kind, std::uint16_t sm,
                              bool full, std::uint8_t bytes, std::uint8_t fetch) {
  State& s = *state_;
  const bool crosses = s.crossbar_.partition(sm) != s.partition(home.slice);
  L2Traffic t;
  const auto number = [](std::uint8_t mask) { return static_cast<std::uint64_t>(count(mask)); };
  const auto account = [&](const L2Slice::Access& a) {
    t.written += number(s.geometry_.whole_bursts(a.evicted.dirty)) + number(s.geometry_.whole_bursts(a.cleaned.dirty));
    t.read += number(s.geometry_.whole_bursts(a.evicted.partial)) + number(s.geometry_.whole_bursts(a.cleaned.partial));
  };
  const bool write = kind == RequestKind::Write, modify = kind == RequestKind::Atomic || kind == RequestKind::Reduction;
  bool copied = false;
  if (crosses && s.replicate_ && kind == RequestKind::Read) {
    const auto a = s.slices_[s.mirror(home.slice)].cache.touch(home.index, true, sectors, false, true, 0, fetch);
    account(a);
    copied = a.outcome != L2Slice::Outcome::Stall;
    if (copied) {
      t.missed = number(a.missed);
      t.fetched = number(a.added);
      sectors = a.fetch;
    }
  }
  if (sectors == 0) return t;
  L2Slice& cache = s.slices_[home.slice].cache;
  const auto a = cache.touch(home.index, false, sectors, write, full, bytes, fetch);
  account(a);
  t.read += number(a.fetch);
  if (!copied) {
    t.missed = number(a.missed);
    t.fetched = number(a.added);
  }
  if (copied || (write && crosses)) {
    t.fabric_hits = number(sectors) - number(a.missed);
    t.fabric_misses = number(a.added);
  }
  L2Slice::Access more;
  if (modify && a.way != L2Slice::kNoWay) {
    more.cleaned = cache.modify(a.way, sectors);
    cache.written_back(count(more.cleaned.dirty));
  }
  if (write || modify) {
    more.evicted = s.write_copy(home.slice, home.index, sectors, write && crosses, full);
    // Where there is one partition, there is no mirror and nothing gives way.
    if (more.evicted.dirty != 0) s.slices_[s.mirror(home.slice)].cache.written_back(count(more.evicted.dirty));
  }
  account(more);
  return t;
}

void MemorySystem::prefetch(const LinePlace& home, bool write, std::uint16_t sm) const {
  const State& s = *state_;
  const bool copy = s.replicate_ && s.crossbar_.partition(sm) != s.partition(home.slice);
  if (copy || (write && s.replicate_)) s.slices_[s.mirror(home.slice)].cache.prefetch(home.index, true);
  s.slices_[home.slice].cache.prefetch(home.index, false);
}

Cycle MemorySystem::atomic_backlog(Cycle now) const {
  FineCycle last = to_fine(now);
  for (const State::Slice& slice : state_->slices_) last = std::max(last, slice.atomics.free());
  return (last - to_fine(now)) >> kFineBits;
}

void MemorySystem::copy_lines(const MemorySystem& other) {
  for (std::size_t i = 0; i < state_->slices_.size(); ++i)
    state_->slices_[i].cache.copy_lines(other.state_->slices_[i].cache);
}

std::span<const LinePlace> MemorySystem::pick(std::span<const std::uint64_t> lines, std::uint32_t every,
                                              std::vector<LinePlace>& buffer) const {
  const State& s = *state_;
  if (buffer.size() < lines.size()) buffer.resize(lines.size());
  std::size_t picked = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const AddressMap::Home home = s.map_.home(lines[i]);
    buffer[picked] = s.place(home, static_cast<std::uint32_t>(i));
    picked += in_sample(buffer[picked].pair, every) ? 1 : 0;
  }
  return std::span(buffer).first(picked);
}

std::uint32_t MemorySystem::slice_pairs() const { return state_->per_partition_; }

std::uint64_t MemorySystem::dirty_bytes(std::uint32_t every) const {
  std::uint64_t sectors = 0;
  for (std::uint32_t i = 0; i < state_->slices_.size(); ++i)
    if (in_sample(state_->pair(i), every)) sectors += state_->slices_[i].cache.dirty_sectors();
  return sectors * kSectorBytes;
}

}  // namespace forewarp

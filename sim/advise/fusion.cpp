#include "advise/fusion.h"

#include <bit>

namespace forewarp::advise {

namespace {

/// Not boxes: a barrier waits for their bytes.
bool goes(const AccessPattern& p, Direction direction) {
  if (p.lanes == 0 || is_box(p) || p.space != MemorySpace::Global) return false;
  if (direction == Direction::Stores) return p.kind == MemoryKind::Store;
  return p.kind == MemoryKind::Load || p.kind == MemoryKind::AsyncCopy;
}

/// The records of an asynchronous copy come in pairs; the global one alone can lie in a range.
template <class Use>
void for_each_access(const KernelTrace& trace, const Range& range, Direction direction, const Use& use) {
  for (std::size_t c = 0; c < trace.classes.size(); ++c)
    for (std::size_t w = 0; w < trace.classes[c].warps.size(); ++w) {
      const std::vector<Access>& accesses = trace.classes[c].warps[w].accesses;
      for (std::size_t i = 0; i < accesses.size(); ++i)
        if (goes(trace.patterns[accesses[i].pattern], direction) && range.holds(accesses[i].base)) use(c, w, i);
    }
}

}  // namespace

std::shared_ptr<const KernelTrace> without_range(const KernelTrace& trace, const Range& range, Direction direction) {
  auto out = std::make_shared<KernelTrace>(trace);
  std::vector<std::uint32_t> silent(trace.patterns.size(), 0);  // 0: not made yet
  for_each_access(trace, range, direction, [&](std::size_t c, std::size_t w, std::size_t i) {
    Access& access = out->classes[c].warps[w].accesses[i];
    std::uint32_t& other = silent[access.pattern];
    if (other == 0) {
      other = static_cast<std::uint32_t>(out->patterns.size());
      AccessPattern none = trace.patterns[access.pattern];
      none.lanes = 0;
      out->patterns.push_back(none);
    }
    access.pattern = other;
  });
  return out;
}

double bytes_in_range(const KernelTrace& trace, const Range& range, Direction direction) {
  double bytes = 0;
  for_each_access(trace, range, direction, [&](std::size_t c, std::size_t w, std::size_t i) {
    const AccessPattern& p = trace.patterns[trace.classes[c].warps[w].accesses[i].pattern];
    bytes += static_cast<double>(std::popcount(p.lanes)) * p.bytes * static_cast<double>(trace.classes[c].population);
  });
  return bytes;
}

namespace {

using Traces = std::vector<std::shared_ptr<const KernelTrace>>;

Fusion fusion_of(int first, int last, const Case& item, const Traces& traces) {
  Fusion fusion{first, last, {}};
  const std::vector<std::uint64_t> addresses = place_buffers(item);
  for (std::size_t b = 0; b < item.buffers.size(); ++b) {
    Intermediate one;
    one.buffer = static_cast<int>(b);
    one.range = {addresses[b], addresses[b] + item.buffers[b].bytes};
    for (int i = first; i < static_cast<int>(traces.size()); ++i) {
      const KernelTrace& trace = *traces[static_cast<std::size_t>(i)];
      const double read = bytes_in_range(trace, one.range, Direction::Loads);
      if (i > last) one.needed_later = one.needed_later || read > 0;
      if (i > last) continue;
      if (one.written > 0) one.read += read;
      one.written += bytes_in_range(trace, one.range, Direction::Stores);
    }
    if (one.written > 0 && one.read > 0) fusion.handed_over.push_back(one);
  }
  return fusion;
}

}  // namespace

std::vector<Fusion> fusions(const Case& item, const Traces& traces) {
  std::vector<Fusion> found;
  const int count = static_cast<int>(traces.size());
  const auto add = [&](int first, int last) {
    Fusion fusion = fusion_of(first, last, item, traces);
    if (!fusion.handed_over.empty()) found.push_back(std::move(fusion));
  };
  for (int first = 0; first + 1 < count; ++first) add(first, first + 1);
  if (count > 2) add(0, count - 1);
  return found;
}

std::shared_ptr<const KernelTrace> fused(std::shared_ptr<const KernelTrace> trace, const Fusion& fusion) {
  for (const Intermediate& one : fusion.handed_over) {
    // What is read before anything is written comes from memory; a launch that does both is left as it is.
    const bool writes = bytes_in_range(*trace, one.range, Direction::Stores) > 0;
    const bool reads = bytes_in_range(*trace, one.range, Direction::Loads) > 0;
    if (writes && !reads && !one.needed_later) trace = without_range(*trace, one.range, Direction::Stores);
    if (reads && !writes) trace = without_range(*trace, one.range, Direction::Loads);
  }
  return trace;
}

}  // namespace forewarp::advise

#include "emulation/run/launch_order.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "program/program.h"
#include "trace/events.h"

namespace forewarp::emulation {

namespace {

bool every_store_seen(const KernelTrace& trace) {
  const std::vector<InstructionCount> totals = trace.totals();
  const std::vector<Instruction>& instructions = trace.kernel->instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& in = instructions[i];
    const bool writes = in.memory != MemoryKind::None && in.memory != MemoryKind::Load;
    const bool global = in.space == MemorySpace::Global || in.space == MemorySpace::Generic;
    if (writes && global && totals[i].requests == 0) return false;
  }
  return true;
}

/// Whoever touches a buffer of pointers or tensor maps may touch what they point to.
void touch_through_pointers(const Case& item, std::vector<bool>& touched) {
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t b = 0; b < item.buffers.size(); ++b) {
      if (!touched[b]) continue;
      const auto touch = [&](const Pointer& pointer) {
        const auto to = static_cast<std::size_t>(pointer.buffer);
        grows = grows || !touched[to];
        touched[to] = true;
      };
      if (const auto* fill = std::get_if<FillPointers>(&item.buffers[b].fill))
        std::for_each(fill->pointers.begin(), fill->pointers.end(), touch);
      if (const auto* fill = std::get_if<FillTensorMaps>(&item.buffers[b].fill))
        for (const PlacedTensorMap& map : fill->maps) touch(map.pointer);
    }
  }
}

}  // namespace

LaunchOrder::LaunchOrder(const Case& item, std::span<const std::uint64_t> addresses, std::uint64_t module_bytes)
    : run_(item.launches.size(), false) {
  bool all = false;
  for (std::size_t b = 0; b < item.buffers.size(); ++b) {
    places_.push_back({addresses[b], addresses[b] + item.buffers[b].bytes});
    all = all || std::holds_alternative<FillFile>(item.buffers[b].fill);
  }
  for (const Launch& launch : item.launches) {
    Places& touched = touched_.emplace_back(places_.size(), all);
    for (const Argument& argument : launch.arguments) {
      for (const Argument::PlacedPointer& p : argument.pointers)
        touched[static_cast<std::size_t>(p.pointer.buffer)] = true;
      // A number may be an address as well.
      for (std::size_t at = 0; at < argument.bytes.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, argument.bytes.data() + at, std::min(argument.bytes.size() - at, sizeof bits));
        for (std::size_t p = 0; p < places_.size(); ++p)
          if (places_[p].meets(bits, bits)) touched[p] = true;
      }
    }
    touch_through_pointers(item, touched);
  }
  if (module_bytes > 0) {
    places_.push_back({kModuleDataAddress, kModuleDataAddress + module_bytes});
    for (Places& touched : touched_) touched.push_back(true);
  }
  written_ = touched_;
  buffers_ = item.buffers.size();
}

void LaunchOrder::traced(int index, const KernelTrace& trace) {
  // A sample stands for the others once every store has been seen at work.
  if (trace.launch.inferred_blocks > 0 && !every_store_seen(trace)) return;
  Places written(places_.size(), false);
  // Lowest and highest byte of every pattern that writes, from the access's base.
  std::vector<std::pair<std::int64_t, std::int64_t>> extents(trace.patterns.size(), {0, -1});
  for (std::size_t p = 0; p < extents.size(); ++p) {
    const AccessPattern& pattern = trace.patterns[p];
    const AccessEffect effect = effect_of(pattern);
    if (!effect.to_lines() || effect.request == RequestKind::Read || pattern.lanes == 0) continue;
    const auto [low, high] = std::minmax_element(pattern.offsets.begin(), pattern.offsets.end());
    extents[p] = {*low, std::int64_t{*high} + pattern.bytes - 1};
  }
  for (const BlockClass& cls : trace.classes) {
    for (const WarpTrace& warp : cls.warps) {
      for (const Access& access : warp.accesses) {
        const auto [low, high] = extents[access.pattern];
        if (high < low) continue;
        const std::uint64_t first = access.base + static_cast<std::uint64_t>(low),
                            last = access.base + static_cast<std::uint64_t>(high);
        for (std::size_t p = 0; p < places_.size(); ++p)
          if (places_[p].meets(first, last)) written[p] = true;
      }
    }
  }
  // What is kept in the program's variables may be pointers.
  if (written.size() > buffers_ && written[buffers_])
    for (Places& touched : touched_) touched.assign(places_.size(), true);
  written_[static_cast<std::size_t>(index)] = std::move(written);
}

std::vector<int> LaunchOrder::run_before(int index) {
  const auto at = static_cast<std::size_t>(index);
  Places needed = touched_[at];
  std::vector<bool> chosen(at, false);
  for (std::size_t i = at; i-- > 0;) {
    // Also those that a chosen later one would otherwise overtake: it writes what they touch.
    bool overtaken = false;
    for (std::size_t j = i + 1; j < at; ++j) overtaken = overtaken || (chosen[j] && meet(touched_[i], written_[j]));
    if (run_[i] || !(meet(written_[i], needed) || overtaken)) continue;
    chosen[i] = true;
    for (std::size_t b = 0; b < needed.size(); ++b) needed[b] = needed[b] || touched_[i][b];
  }
  std::vector<int> order;
  for (std::size_t i = 0; i < at; ++i) {
    if (!chosen[i]) continue;
    order.push_back(static_cast<int>(i));
    run_[i] = true;
  }
  return order;
}

bool LaunchOrder::meet(const Places& a, const Places& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] && b[i]) return true;
  return false;
}

}  // namespace forewarp::emulation

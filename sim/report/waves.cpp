// Waves of blocks, and the idle time of the last one.
#include <algorithm>

#include "report/analysis.h"

namespace forewarp::report {

namespace {

/// Idle SM time and tail, from the block spans.
void measure_spans(const Inputs& in, Waves& w) {
  const auto sms = static_cast<std::size_t>(in.model.chip.sm_count);
  std::vector<std::vector<std::pair<Cycle, Cycle>>> stays(sms);
  for (const BlockSpan& span : in.timing.spans)
    if (span.sm < sms) stays[span.sm].emplace_back(span.start, span.end);
  Cycle last_end = 0, first_free = kNever;
  double busy = 0;
  for (auto& sm : stays) {
    std::sort(sm.begin(), sm.end());
    Cycle reached = 0;
    for (const auto& [start, end] : sm) {
      const Cycle from = std::max(start, reached);
      if (end > from) busy += static_cast<double>(end - from);
      reached = std::max(reached, end);
    }
    first_free = std::min(first_free, reached);
    last_end = std::max(last_end, reached);
  }
  w.idle_sm_pct = std::max(0.0, 100 - percent(busy, in.sms * in.cycles));
  w.tail_pct = percent(static_cast<double>(last_end - std::min(first_free, last_end)), in.cycles);
  w.from_spans = true;
}

/// The same from counts alone, if all blocks take equally long.
void compute_from_counts(const Inputs& in, Waves& w) {
  const double waves = static_cast<double>(w.full_waves) + (w.last_wave_blocks > 0 ? 1 : 0);
  if (waves == 0) return;
  const double used = std::min(in.sms, static_cast<double>(w.last_wave_blocks));
  w.tail_pct = w.last_wave_blocks > 0 ? 100 / waves : 0;
  w.idle_sm_pct = w.last_wave_blocks > 0 ? (1 - used / in.sms) * 100 / waves : 0;
}

}  // namespace

Waves make_waves(const Inputs& in) {
  Waves w;
  w.blocks = in.trace.launch.grid.count();
  w.blocks_per_sm = in.occupancy.blocks_per_sm;
  w.blocks_per_wave = blocks_at_once(in.model, w.blocks_per_sm, in.trace.launch.cluster.count());
  if (w.blocks_per_wave > 0) {
    w.full_waves = w.blocks / w.blocks_per_wave;
    w.last_wave_blocks = w.blocks % w.blocks_per_wave;
    w.last_wave_fill_pct = w.last_wave_blocks == 0 ? 100
                                                   : percent(static_cast<double>(w.last_wave_blocks),
                                                             static_cast<double>(w.blocks_per_wave));
  }
  if (in.timing.spans.size() == w.blocks) {
    measure_spans(in, w);
  } else {
    compute_from_counts(in, w);
  }
  return w;
}

}  // namespace forewarp::report

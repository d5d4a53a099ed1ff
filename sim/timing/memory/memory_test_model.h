// A machine for the tests below L1: the shape of an A100 with round numbers, so that sums can be done by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware/gpu_model.h"
#include "timing/memory/memory.h"

namespace forewarp {

inline GpuModel test_model() {
  GpuModel m;
  m.name = "test";
  m.sm = 80;
  m.chip = {108, 2, {8, 8, 8, 8, 8, 7, 7}, 1000};  // 1000 MHz: a cycle is a nanosecond
  CrossbarSpec& x = m.crossbar;
  x.request_cycles = 70;
  x.response_cycles = 50;
  x.far_cycles = 181;
  x.gpc_partitions = {0, 0, 0, 0, 1, 1, 1};
  x.gpc_ends = {0, 0, 1, 1, 0, 0, 1};
  x.sm_requests_per_cycle_x16 = 16;
  x.sm_response_bytes_per_cycle = 64;
  x.tpc_response_bytes_per_cycle = 128;
  x.gpc_response_bytes_per_cycle = 640;
  x.gpc_fanout_bytes_per_cycle = 1280;
  x.sm_write_bytes_per_cycle = 64;
  x.sm_write_flits = 2000;
  x.cpc_write_bytes_per_cycle = 512;
  x.cpc_fabric_writes = 8;
  x.cpc_reads = 1 << 20;
  x.slice_write_bytes_per_cycle = 128;
  x.fabric_bytes_per_cycle = 1024;
  L2Spec& l2 = m.l2;
  l2.bytes = 40 << 20;
  l2.partitions = 2;
  l2.slices = 80;
  l2.ways = 16;
  l2.hit_cycles = 80;
  l2.slice_bytes_per_cycle = 64;
  l2.slice_tags_per_cycle = 1;
  l2.atomic_interval = 2;
  l2.atomic_word_interval = 2;
  l2.miss_entries = 128;
  l2.clock_ratio = 1;
  l2.replicate_far_lines = true;
  HbmSpec& h = m.hbm;
  h.channels = 80;
  h.bank_groups = 4;
  h.banks_per_group = 4;
  h.row_bytes = 1024;
  h.access_bytes = 64;
  h.bytes_per_ns = 80 * 16;  // 4 ns an access
  h.t_cl = 14, h.t_rcd = 14, h.t_rp = 14, h.t_ras = 34, h.t_wr = 16, h.t_rtp = 5, h.t_cwl = 5;
  h.t_ccd_s = 4, h.t_ccd_l = 6, h.t_rrd = 4, h.t_faw = 16, h.t_wtr = 8, h.t_rtw = 16;
  h.t_rfc = 260, h.t_refi = 3900;
  h.refresh_banks = 16;
  h.queue_entries = 64;
  h.read_requests = 64;
  h.write_high = 32;
  h.write_low = 8;
  h.controller_ns = 101;
  return m;
}

/// The same with one partition: every line is near.
inline GpuModel one_partition_model() {
  GpuModel m = test_model();
  m.l2.partitions = 1;
  m.l2.replicate_far_lines = false;
  return m;
}

/// Runs to the end; returns the cycle of the last event.
inline Cycle drain(MemorySystem& memory, std::vector<MemoryReply>& replies) {
  Cycle last = 0;
  for (Cycle at = memory.next_event(); at != kNever; at = memory.next_event()) {
    memory.run_until(at, replies);
    last = at;
  }
  return last;
}

/// Pushes one request at `now` and runs until its reply; returns the cycles it took.
inline Cycle latency_of(MemorySystem& memory, const MemoryRequest& request, Cycle now) {
  std::vector<MemoryReply> replies;
  memory.run_until(now, replies);
  memory.push(request, now);
  replies.clear();
  while (replies.empty() && memory.next_event() != kNever) {
    const Cycle at = memory.next_event();
    memory.run_until(at, replies);
    if (!replies.empty()) return at - now;
  }
  return kNever;
}

/// Many SMs, each with a window of requests in flight, taking lines from a sequence that all share.
struct LoadRun {
  Cycle cycles = 0;
  std::uint64_t pushed = 0, replied = 0;
  std::uint64_t checksum = 0;  ///< of the replies in order
};

/// `next(sm, i, request)` fills in the i-th request of an SM, false when the SM is done.
template <typename Next>
LoadRun run_load(MemorySystem& memory, int sms, int window, Cycle start, const Next& next) {
  LoadRun run;
  std::vector<std::uint64_t> sent(static_cast<std::size_t>(sms), 0), open(sent.size(), 0);
  std::vector<MemoryRequest> held(sent.size());
  std::vector<std::uint8_t> done(sent.size(), 0), holding(sent.size(), 0);
  std::vector<Cycle> due(sent.size(), start);
  std::vector<MemoryReply> replies;
  Cycle now = start;
  int left = sms;
  while (left > 0 || memory.next_event() != kNever) {
    replies.clear();
    memory.run_until(now, replies);
    for (const MemoryReply& r : replies) {
      ++run.replied;
      run.checksum = run.checksum * 0x9E3779B97F4A7C15ull +
                     (now ^ (std::uint64_t{r.tag} << 32) ^ (std::uint64_t{r.sm} << 8) ^ r.sectors);
      --open[r.sm];
      due[r.sm] = now;
      run.cycles = now - start;
    }
    Cycle wake = kNever;
    for (int s = 0; s < sms; ++s) {
      const auto i = static_cast<std::size_t>(s);
      const auto sm = static_cast<std::uint16_t>(s);
      if (done[i] != 0) continue;
      while (due[i] <= now) {
        if (open[i] >= static_cast<std::uint64_t>(window)) {
          due[i] = kNever;
          break;
        }
        if (!memory.accepts(sm, now)) {
          due[i] = memory.accepts_again(sm, now);
          break;
        }
        if (holding[i] == 0) {
          held[i] = MemoryRequest{};
          held[i].sm = sm;
          held[i].tag = static_cast<std::uint32_t>(sent[i]);
          if (!next(s, sent[i], held[i])) {
            done[i] = 1;
            --left;
            due[i] = kNever;
            break;
          }
        }
        memory.push(held[i], now);
        ++sent[i];
        ++open[i];
        ++run.pushed;
      }
      wake = std::min(wake, due[i]);
    }
    const Cycle event = std::min(wake, memory.next_event());
    if (event == kNever) break;
    now = std::max(now + 1, event);
  }
  return run;
}

}  // namespace forewarp

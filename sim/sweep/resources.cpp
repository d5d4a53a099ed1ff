#include "sweep/resources.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/types.h"
#include "sweep/expression.h"

namespace forewarp::sweep {

namespace {

/// Collects the changes of one variant.
class Maker {
 public:
  explicit Maker(double factor) : factor_(factor) {}

  Maker& set(const std::string& leaf, double value) {
    variant_.changes.push_back(leaf + "=" + number_text(value));
    return *this;
  }
  Maker& set(const std::string& leaf, const std::vector<int>& values) {
    std::string text;
    for (const int value : values) text += (text.empty() ? "[" : ", ") + std::to_string(value);
    variant_.changes.push_back(leaf + "=" + text + "]");
    return *this;
  }
  /// A whole number that is scaled exactly, and within [low, high].
  Maker& whole(const std::string& leaf, std::int64_t value, double factor, std::int64_t high, std::int64_t low = 1) {
    const double scaled = static_cast<double>(value) * factor;
    if (scaled != std::floor(scaled) || scaled < static_cast<double>(low))
      return never(leaf + " is " + std::to_string(value) + ", and counted whole");
    if (scaled > static_cast<double>(high))
      return never(leaf + " is " + std::to_string(value) + ", and at most " + std::to_string(high) + " here");
    return set(leaf, scaled);
  }
  /// Rounded to the nearest whole number of at least `low`.
  Maker& about(const std::string& leaf, std::int64_t value, double factor, std::int64_t low = 1) {
    return set(leaf, std::max(static_cast<double>(low), std::round(static_cast<double>(value) * factor)));
  }
  Maker& never(const std::string& why) {
    if (variant_.impossible.empty()) variant_.impossible = why;
    return *this;
  }
  double factor() const { return factor_; }
  Variant done() { return variant_; }

 private:
  double factor_;
  Variant variant_;
};

/// SMs in the GPCs that there are: the ways to L2, and L2 itself, stay.
Variant sm_count(const GpuModel& m, double factor) {
  Maker make(factor);
  std::vector<int> tpcs = m.chip.tpcs_per_gpc;
  double owed = 0;
  for (int& n : tpcs) {  // what is cut off one GPC goes to a later one
    const double wanted = n * factor + owed;
    const int given = std::max(1, static_cast<int>(std::floor(wanted + 1e-9)));
    owed = wanted - given;
    n = given;
  }
  if (*std::max_element(tpcs.begin(), tpcs.end()) > 64) make.never("a GPC holds at most 64 TPCs here");
  const int sms = std::accumulate(tpcs.begin(), tpcs.end(), 0) * m.chip.sms_per_tpc;
  make.set("chip.sm_count", sms).set("chip.tpcs_per_gpc", tpcs);
  return make.done();
}

/// SMs, crossbar and L2 together; DRAM keeps its own.
Variant clock(const GpuModel& m, double factor) {
  return Maker(factor).set("chip.sm_clock_mhz", m.chip.sm_clock_mhz * factor).done();
}

Variant issue(const GpuModel& m, double factor) {
  // Warps issue from sub-partitions, one instruction a cycle each. With twice as many, each has half of the pipes.
  Maker make(factor);
  if (factor < 1) return make.never("a sub-partition holds at most 16 warps here").done();
  make.whole("issue.sub_partitions", m.issue.sub_partitions, factor, 8);
  static constexpr const char* kNames[] = {"alu", "fma", "fma_heavy", "fp16", "fp64", "xu", "tensor", "cbu", "uniform"};
  static constexpr Pipe kPipes[] = {Pipe::Alu, Pipe::Fma,    Pipe::FmaHeavy, Pipe::Fp16,   Pipe::Fp64,
                                    Pipe::Xu,  Pipe::Tensor, Pipe::Cbu,      Pipe::Uniform};
  for (std::size_t p = 0; p < std::size(kPipes); ++p) {
    const PipeSpec& spec = m.pipe(kPipes[p]);
    if (spec.interval > 0 && !spec.per_sm)
      make.about(std::string("pipes.") + kNames[p] + ".interval", spec.interval, factor);
  }
  make.about("tensor.product_bits", m.tensor.product_bits, 1 / factor)
      .about("tensor.fp64_products", m.tensor.fp64_products, 1 / factor)
      .about("tensor.fetch_cycles", m.tensor.fetch_cycles, factor)
      .about("tensor.fetch_pair_cycles", m.tensor.fetch_pair_cycles, factor)
      .about("tensor.fetch_metadata_cycles", m.tensor.fetch_metadata_cycles, factor)
      .about("memory_pipe.register_cycles", m.memory_pipe.register_cycles, factor);
  return make.done();
}

/// Warp instructions a cycle of a pipe; its interval is counted in whole cycles.
Variant pipe_rate(const GpuModel& m, Pipe pipe, const std::string& name, double factor) {
  const int interval = m.pipe(pipe).interval;
  if (interval == 0) return Maker(factor).never("this GPU has no such pipe").done();
  return Maker(factor).whole("pipes." + name + ".interval", interval, 1 / factor, 255).done();
}

Variant fma(const GpuModel& m, double f) {
  Maker make(f);
  make.whole("pipes.fma.interval", m.pipe(Pipe::Fma).interval, 1 / f, 255);
  if (m.pipe(Pipe::FmaHeavy).interval > 0)
    make.whole("pipes.fma_heavy.interval", m.pipe(Pipe::FmaHeavy).interval, 1 / f, 255);
  return make.done();
}
Variant alu(const GpuModel& m, double f) { return pipe_rate(m, Pipe::Alu, "alu", f); }
Variant fp16(const GpuModel& m, double f) { return pipe_rate(m, Pipe::Fp16, "fp16", f); }
Variant fp64(const GpuModel& m, double f) { return pipe_rate(m, Pipe::Fp64, "fp64", f); }
Variant xu(const GpuModel& m, double f) { return pipe_rate(m, Pipe::Xu, "xu", f); }
Variant uniform(const GpuModel& m, double f) { return pipe_rate(m, Pipe::Uniform, "uniform", f); }
Variant lsu(const GpuModel& m, double f) {
  return Maker(f).about("memory_pipe.register_cycles", m.memory_pipe.register_cycles, 1 / f).done();
}

/// Arithmetic and the fetch of operands, whichever is longer for a product.
Variant tensor(const GpuModel& m, double f) {
  Maker make(f);
  make.about("tensor.product_bits", m.tensor.product_bits, f).about("tensor.fp64_products", m.tensor.fp64_products, f);
  make.about("tensor.fp64_least_cycles", m.tensor.fp64_least_cycles, 1 / f)
      .about("tensor.fetch_cycles", m.tensor.fetch_cycles, 1 / f)
      .about("tensor.fetch_pair_cycles", m.tensor.fetch_pair_cycles, 1 / f, 0)
      .about("tensor.fetch_metadata_cycles", m.tensor.fetch_metadata_cycles, 1 / f, 0);
  return make.done();
}

Variant registers(const GpuModel& m, double f) {
  return Maker(f).whole("occupancy.registers", m.occupancy.registers, f, 1 << 20).done();
}

/// Of an SM. L1 keeps what the largest choice of shared memory leaves it.
Variant shared_bytes(const GpuModel& m, double f) {
  const OccupancySpec& o = m.occupancy;
  Maker make(f);
  std::vector<int> carveouts = o.carveouts_bytes;
  for (int& bytes : carveouts) bytes = static_cast<int>(bytes * f);
  const int set = m.l1.ways * kLineBytes;
  const int shared = carveouts.back();
  make.set("occupancy.carveouts_bytes", carveouts)
      .set("occupancy.shared_bytes", shared)
      .set("occupancy.shared_block_max_bytes", shared - o.shared_reserved_bytes)
      .set("occupancy.carveout_unused_bytes", o.carveout_unused_bytes * f)
      .set("occupancy.carveout_spare_bytes", o.carveout_spare_bytes * f)
      .set("occupancy.unified_bytes", o.unified_bytes - o.shared_bytes + shared);
  for (const int bytes : carveouts)
    if ((o.unified_bytes - o.shared_bytes + shared - bytes) % set != 0)
      make.never("L1 would be no whole number of its sets of " + std::to_string(set) + " bytes");
  return make.done();
}

/// Both together, since one memory serves them.
Variant unified_bytes(const GpuModel& m, double f) {
  const OccupancySpec& o = m.occupancy;
  Maker make(f);
  make.whole("occupancy.unified_bytes", o.unified_bytes, f, 1 << 20);
  std::vector<int> carveouts = o.carveouts_bytes;
  for (int& bytes : carveouts) bytes = static_cast<int>(bytes * f);
  const int set = m.l1.ways * kLineBytes;
  for (const int bytes : carveouts)
    if ((static_cast<int>(o.unified_bytes * f) - bytes) % set != 0)
      make.never("L1 would be no whole number of its sets of " + std::to_string(set) + " bytes");
  make.set("occupancy.carveouts_bytes", carveouts)
      .set("occupancy.shared_bytes", carveouts.back())
      .set("occupancy.shared_block_max_bytes", carveouts.back() - o.shared_reserved_bytes)
      .set("occupancy.carveout_unused_bytes", o.carveout_unused_bytes * f)
      .set("occupancy.carveout_spare_bytes", o.carveout_spare_bytes * f);
  return make.done();
}

Variant warp_slots(const GpuModel& m, double f) {
  const OccupancySpec& o = m.occupancy;
  Maker make(f);
  make.whole("occupancy.max_warps", o.max_warps, f, 64).whole("occupancy.max_threads", o.max_threads, f, 2048);
  if (o.max_threads_per_block > o.max_threads * f) make.set("occupancy.max_threads_per_block", o.max_threads * f);
  return make.done();
}
Variant block_slots(const GpuModel& m, double f) {
  return Maker(f).whole("occupancy.max_blocks", m.occupancy.max_blocks, f, 64).done();
}

Variant shared_rate(const GpuModel& m, double f) {
  return Maker(f)
      .whole("memory_pipe.shared_wavefront_cycles", m.memory_pipe.shared_wavefront_cycles, 1 / f, 1024)
      .done();
}
Variant l1_rate(const GpuModel& m, double f) {
  return Maker(f).whole("l1.data_bytes_per_cycle", m.l1.data_bytes_per_cycle, f, 1 << 16).done();
}
Variant l1_misses(const GpuModel& m, double f) {
  return Maker(f)
      .about("l1.loads_in_flight", m.l1.loads_in_flight, f)
      .about("l1.miss_lines", m.l1.miss_lines, f)
      .done();
}
Variant memory_queues(const GpuModel& m, double f) {
  Maker make(f);
  if (m.memory_pipe.shared_queue_entries * f > 64) make.never("a shared queue holds at most 64 here");
  make.about("memory_pipe.queue_entries", m.memory_pipe.queue_entries, f)
      .about("memory_pipe.shared_queue_entries", m.memory_pipe.shared_queue_entries, f);
  return make.done();
}

/// Slices, the ways from them to the SMs, and between the partitions. What an SM takes is at most what its TPC takes,
/// and that at most what its GPC does.
Variant l2_rate(const GpuModel& m, double f) {
  const CrossbarSpec& x = m.crossbar;
  const auto scaled = [&](int value) { return std::max(1.0, std::round(value * f)); };
  const double gpc = scaled(x.gpc_response_bytes_per_cycle), cpc = scaled(x.cpc_write_bytes_per_cycle);
  Maker make(f);
  make.whole("l2.slice_bytes_per_cycle", m.l2.slice_bytes_per_cycle, f, 1 << 16)
      .set("crossbar.gpc_response_bytes_per_cycle", gpc)
      .set("crossbar.gpc_fanout_bytes_per_cycle", scaled(x.gpc_fanout_bytes_per_cycle))
      .set("crossbar.tpc_response_bytes_per_cycle", std::min<double>(x.tpc_response_bytes_per_cycle, gpc))
      .set("crossbar.sm_response_bytes_per_cycle", std::min<double>(x.sm_response_bytes_per_cycle, gpc))
      .set("crossbar.cpc_write_bytes_per_cycle", cpc)
      .set("crossbar.sm_write_bytes_per_cycle", std::min<double>(x.sm_write_bytes_per_cycle, cpc))
      .set("crossbar.slice_write_bytes_per_cycle", scaled(x.slice_write_bytes_per_cycle))
      .set("crossbar.fabric_bytes_per_cycle", scaled(x.fabric_bytes_per_cycle));
  return make.done();
}
/// To the nearest whole number of sets in every slice.
double l2_size(const GpuModel& m, double bytes, int slices) {
  const double step = static_cast<double>(slices) * m.l2.ways * kLineBytes;
  return std::max(1.0, std::round(bytes / step)) * step;
}
Variant l2_bytes(const GpuModel& m, double f) {
  return Maker(f).set("l2.bytes", l2_size(m, static_cast<double>(m.l2.bytes) * f, m.l2.slices)).done();
}
/// Of the same L2, each smaller or larger.
Variant l2_slices(const GpuModel& m, double f) {
  const int slices = static_cast<int>(m.l2.slices * f);
  Maker make(f);
  make.whole("l2.slices", m.l2.slices, f, 1024).set("l2.bytes", l2_size(m, static_cast<double>(m.l2.bytes), slices));
  if (slices % m.l2.partitions != 0) make.never("both partitions have as many slices");
  return make.done();
}
Variant l2_misses(const GpuModel& m, double f) {
  return Maker(f).about("l2.miss_entries", m.l2.miss_entries, f, 4).done();
}
/// At a read's idle time, whatever part of the way takes it.
Variant l2_latency(const GpuModel& m, double f) {
  const CrossbarSpec& x = m.crossbar;
  return Maker(f)
      .about("crossbar.request_cycles", x.request_cycles, f)
      .about("l2.hit_cycles", m.l2.hit_cycles, f)
      .about("crossbar.response_cycles", x.response_cycles, f)
      .done();
}

Variant hbm_channels(const GpuModel& m, double f) {
  Maker make(f);
  make.whole("hbm.channels", m.hbm.channels, f, 4096).set("hbm.bytes_per_ns", m.hbm.bytes_per_ns * f);
  if (static_cast<int>(m.hbm.channels * f) % m.l2.partitions != 0) make.never("both partitions have as many channels");
  return make.done();
}
/// The data rate of the channels that there are; rows take as long to open.
Variant hbm_rate(const GpuModel& m, double f) {
  return Maker(f)
      .set("hbm.bytes_per_ns", m.hbm.bytes_per_ns * f)
      .set("hbm.t_ccd_s", m.hbm.t_ccd_s / f)
      .set("hbm.t_ccd_l", m.hbm.t_ccd_l / f)
      .done();
}
/// Beyond L2. What it takes rows to open and close stays, for it would change the rate as well.
Variant dram_latency(const GpuModel& m, double f) {
  const HbmSpec& h = m.hbm;
  const double whole = h.controller_ns + h.t_rp + h.t_rcd + h.t_cl;
  const double controller = h.controller_ns + (f - 1) * whole;
  Maker make(f);
  if (controller < 0) make.never("opening a row takes longer than that alone");
  return make.set("hbm.controller_ns", controller).done();
}

Variant l1_latency(const GpuModel& m, double f) { return Maker(f).about("l1.hit_cycles", m.l1.hit_cycles, f).done(); }
Variant shared_latency(const GpuModel& m, double f) {
  return Maker(f).about("latency.shared_load", m.latency.shared_load, f).done();
}
Variant barrier_latency(const GpuModel& m, double f) {
  return Maker(f)
      .about("issue.barrier_release_cycles", m.issue.barrier_release_cycles, f)
      .about("issue.barrier_per_warp_cycles", m.issue.barrier_per_warp_cycles, f, 0)
      .done();
}
Variant launch_overhead(const GpuModel& m, double f) {
  return Maker(f)
      .about("launch.start_cycles", m.launch.start_cycles, f)
      .about("launch.end_cycles", m.launch.end_cycles, f)
      .done();
}
Variant block_turnover(const GpuModel& m, double f) {
  return Maker(f)
      .about("launch.block_start_cycles", m.launch.block_start_cycles, f)
      .about("launch.block_end_cycles", m.launch.block_end_cycles, f)
      .about("issue.exit_cycles", m.issue.exit_cycles, f)
      .done();
}
Variant instruction_caches(const GpuModel& m, double f) {
  const InstructionCacheSpec& i = m.icache;
  return Maker(f)
      .whole("icache.l0_bytes", i.l0_bytes, f, 1 << 24)
      .whole("icache.l1_bytes", i.l1_bytes, f, 1 << 24)
      .whole("icache.l2_bytes", i.l2_bytes, f, 1 << 24)
      .done();
}

}  // namespace

const std::vector<Resource>& resources() {
  static const std::vector<Resource> all{
      {"SM count", true, false, sm_count},
      {"clock of SMs and L2", true, true, clock},
      {"issue slots", true, false, issue},
      {"FMA rate", true, false, fma},
      {"ALU rate", true, false, alu},
      {"FP16 rate", true, false, fp16},
      {"FP64 rate", true, false, fp64},
      {"XU rate", true, false, xu},
      {"uniform rate", true, false, uniform},
      {"tensor rate", true, false, tensor},
      {"LSU address rate", true, false, lsu},
      {"registers", true, false, registers},
      {"shared memory size", true, false, shared_bytes},
      {"L1 and shared memory size", true, false, unified_bytes},
      {"warp slots", true, false, warp_slots},
      {"block slots", true, false, block_slots},
      {"shared memory bandwidth", true, false, shared_rate},
      {"L1 bandwidth", true, false, l1_rate},
      {"L1 misses in flight", true, false, l1_misses},
      {"memory queues", true, false, memory_queues},
      {"L2 bandwidth", true, false, l2_rate},
      {"L2 size", true, false, l2_bytes},
      {"L2 slices", true, false, l2_slices},
      {"L2 misses in flight", true, false, l2_misses},
      {"HBM bandwidth", true, false, hbm_rate},
      {"DRAM channels", true, false, hbm_channels},
      {"instruction cache size", true, false, instruction_caches},
      {"L1 latency", false, false, l1_latency},
      {"shared memory latency", false, false, shared_latency},
      {"L2 latency", false, false, l2_latency},
      {"DRAM latency", false, false, dram_latency},
      {"barrier latency", false, false, barrier_latency},
      {"block turnover", false, false, block_turnover},
      {"launch overhead", false, false, launch_overhead},
  };
  return all;
}

}  // namespace forewarp::sweep

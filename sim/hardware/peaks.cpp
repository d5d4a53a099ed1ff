#include "hardware/peaks.h"

#include <algorithm>
#include <cstdio>

#include "base/types.h"
#include "hardware/tensor.h"

namespace forewarp {
namespace {

constexpr int kHopper = 90, kGroupRows = 64, kGroupColumns = 256;
constexpr int kFp8From = 89;

/// Products of a warp's matrices, two operations each.
double tensor_peak(const GpuModel& g, MatrixType type, int rows, int depth, bool sparse = false, int columns = 8) {
  const MatrixWork work{.type = type, .sparse = sparse, .rows = rows, .columns = columns, .depth = depth};
  const double units = g.pipe(Pipe::Tensor).per_sm ? 1 : g.issue.sub_partitions;
  return units * static_cast<double>(work.operations()) / matrix_interval(g.tensor, work, g.l1.data_bytes_per_cycle) *
         g.chip.sm_count * g.chip.sm_clock_mhz * 1e6;
}

std::string rate(double bytes_per_ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f GB/s", bytes_per_ns);
  return text;
}

std::string whole(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

}  // namespace

double pipe_peak(const GpuModel& g, Pipe pipe, double operations) {
  const PipeSpec& spec = g.pipe(pipe);
  if (spec.interval <= 0) return 0;
  const double units = spec.per_sm ? 1 : g.issue.sub_partitions;
  return units * kWarpLanes / spec.interval * operations * g.chip.sm_count * g.chip.sm_clock_mhz * 1e6;
}

std::vector<Peak> derived_peaks(const GpuModel& g) {
  const double clock = g.chip.sm_clock_mhz * 1e6, sms = g.chip.sm_count;
  std::vector<Peak> peaks{{"fp32", pipe_peak(g, Pipe::Fma, 2), "FLOP/s"},
                          {"fp64", pipe_peak(g, Pipe::Fp64, 2), "FLOP/s"},
                          // HFMA2 goes to two pipes in turn.
                          {"fp16, without tensor cores", 2 * pipe_peak(g, Pipe::Fp16, 4), "FLOP/s"},
                          {"fp16, mma.sync m16n8k16", tensor_peak(g, MatrixType::Half, 16, 16), "FLOP/s"},
                          {"fp16, mma.sp m16n8k32", tensor_peak(g, MatrixType::Half, 16, 32, true), "FLOP/s"},
                          {"tf32, mma.sync m16n8k8", tensor_peak(g, MatrixType::Tfloat, 16, 8), "FLOP/s"},
                          {"int8, mma.sync m16n8k32", tensor_peak(g, MatrixType::Int8, 16, 32), "OP/s"},
                          {"fp64, mma.sync m8n8k4", tensor_peak(g, MatrixType::Double, 8, 4), "FLOP/s"},
                          {"int32", pipe_peak(g, Pipe::Alu, 1), "OP/s"},
                          {"special functions", pipe_peak(g, Pipe::Xu, 1), "OP/s"}};
  peaks.push_back({"L1", sms * g.l1.data_bytes_per_cycle * clock, "B/s"});
  peaks.push_back(
      {"shared memory", sms * kLineBytes / std::max(1, g.memory_pipe.shared_wavefront_cycles) * clock, "B/s"});
  peaks.push_back({"L2 slices", g.l2.slices * g.l2.slice_bytes_per_cycle * g.l2.clock_ratio * clock, "B/s"});
  peaks.push_back({"L2 to GPCs",
                   static_cast<double>(g.chip.tpcs_per_gpc.size()) * g.crossbar.gpc_response_bytes_per_cycle * clock,
                   "B/s"});
  peaks.push_back({"HBM", g.hbm.bytes_per_ns * 1e9, "B/s"});
  return peaks;
}

std::vector<Peak> arithmetic_roofs(const GpuModel& g) {
  std::vector<Peak> roofs{{"fp32", pipe_peak(g, Pipe::Fma, 2), "FLOP/s"},
                          {"fp16", 2 * pipe_peak(g, Pipe::Fp16, 4), "FLOP/s"},
                          {"fp64", pipe_peak(g, Pipe::Fp64, 2), "FLOP/s"},
                          {"int32", pipe_peak(g, Pipe::Alu, 1), "OP/s"}};
  struct Type {
    const char* name;
    MatrixType type;
    int depth;
    const char* unit;
  };
  constexpr Type kTypes[]{
      {"tensor_fp16", MatrixType::Half, 16, "FLOP/s"},  {"tensor_bf16", MatrixType::Bfloat, 16, "FLOP/s"},
      {"tensor_tf32", MatrixType::Tfloat, 8, "FLOP/s"}, {"tensor_fp8", MatrixType::Byte, 32, "FLOP/s"},
      {"tensor_int8", MatrixType::Int8, 32, "OP/s"},    {"tensor_fp64", MatrixType::Double, 16, "FLOP/s"}};
  for (const Type& t : kTypes) {
    const int products = t.type == MatrixType::Double ? g.tensor.fp64_products : g.tensor.product_bits;
    if (products == 0 || (t.type == MatrixType::Byte && g.sm < kFp8From)) continue;
    double peak = tensor_peak(g, t.type, MatrixWork::kWarpRows, t.depth);
    if (g.sm >= kHopper && t.type != MatrixType::Double)
      peak = std::max(peak, tensor_peak(g, t.type, kGroupRows, t.depth, false, kGroupColumns));
    roofs.push_back({t.name, peak, t.unit});
  }
  return roofs;
}

double dram_latency_ns(const GpuModel& g) {
  const HbmSpec& h = g.hbm;
  const int cycles = g.l1.hit_cycles + g.crossbar.request_cycles + g.l2.hit_cycles + g.crossbar.response_cycles;
  return cycles * 1000.0 / g.chip.sm_clock_mhz + h.controller_ns + h.t_rp + h.t_rcd + h.t_cl +
         h.access_bytes * h.channels / h.bytes_per_ns;
}

std::vector<std::string> doubts(const GpuModel& g) {
  std::vector<std::string> found;
  const HbmSpec& h = g.hbm;
  const double wanted = h.bytes_per_ns, ghz = g.chip.sm_clock_mhz / 1000;
  const double banks = h.bank_groups * h.banks_per_group;

  const double miss_ns = h.controller_ns + h.t_rp + h.t_rcd + h.t_cl;
  const double in_flight = static_cast<double>(g.l2.slices) * g.l2.miss_entries * kSectorBytes;
  if (in_flight / miss_ns < wanted)
    found.push_back("l2.miss_entries: " + whole(in_flight / kSectorBytes) + " sectors in flight, each for at least " +
                    whole(miss_ns) + " ns, make " + rate(in_flight / miss_ns) + " of the " + rate(wanted) +
                    " of hbm.bytes_per_ns");
  const double lines = static_cast<double>(g.chip.sm_count) * g.l1.miss_lines * kLineBytes;
  if (lines / dram_latency_ns(g) < wanted)
    found.push_back("l1.miss_lines: the lines in flight of all SMs make " + rate(lines / dram_latency_ns(g)) +
                    " of the " + rate(wanted) + " of hbm.bytes_per_ns");
  const double activated = 4 / h.t_faw * h.channels * h.row_bytes;
  if (activated < wanted)
    found.push_back("hbm.t_faw: four rows of hbm.row_bytes in that time make " + rate(activated) + " of the " +
                    rate(wanted) + " of hbm.bytes_per_ns");
  const double refresh = h.t_rfc / h.t_refi;
  if (refresh * h.refresh_banks / banks > 0.2)
    found.push_back("hbm.t_rfc: refresh takes " + whole(100 * refresh * h.refresh_banks / banks) + " % of the time");
  for (const Peak& p : derived_peaks(g))
    if (p.name.starts_with("L2") && p.per_second < wanted * 1e9)
      found.push_back(p.name + ": " + rate(p.per_second / 1e9) + " are less than the " + rate(wanted) + " of HBM");
  const int l2 = g.l1.hit_cycles + g.crossbar.request_cycles + g.l2.hit_cycles + g.crossbar.response_cycles;
  if (l2 / ghz > 1000)
    found.push_back("a load that hits L2 takes " + whole(l2 / ghz) + " ns, more than one from DRAM of any known GPU");
  const int parts = g.issue.sub_partitions;
  if (g.occupancy.registers / parts < g.occupancy.registers_per_thread_max * kWarpLanes)
    found.push_back("occupancy.registers: a sub-partition's do not hold one warp of registers_per_thread_max");
  if (g.occupancy.max_blocks * g.occupancy.shared_reserved_bytes > g.occupancy.shared_bytes)
    found.push_back("occupancy.max_blocks: what is reserved for so many exceeds shared_bytes");
  return found;
}

}  // namespace forewarp

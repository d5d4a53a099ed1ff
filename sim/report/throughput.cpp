// The constituents of Nsight Compute's throughputs, in percent of what the model's units can sustain over the elapsed
// cycles. Names are those of the GH100 breakdown; constituents of units the model does not have are left out.
#include <algorithm>

#include "report/analysis.h"

namespace forewarp::report {

namespace {

struct PipeTerm {
  Pipe pipe;
  const char* metric;
  const char* label;
};

constexpr PipeTerm kComputePipes[] = {
    {Pipe::Alu, "sm__pipe_alu_cycles_active", "ALU pipe (integer, logic)"},
    {Pipe::Fma, "sm__pipe_fma_cycles_active", "FMA pipe"},
    {Pipe::FmaHeavy, "sm__pipe_fmaheavy_cycles_active", "FMA heavy pipe"},
    {Pipe::Fp16, "sm__inst_executed_pipe_fp16", "FP16 pipe"},
    {Pipe::Fp64, "sm__pipe_fp64_cycles_active", "FP64 pipe"},
    {Pipe::Tensor, "sm__pipe_tensor_cycles_active", "tensor pipe"},
    {Pipe::Xu, "sm__inst_executed_pipe_xu", "XU pipe (special functions)"},
    {Pipe::Cbu, "sm__inst_executed_pipe_cbu_pred_on_any", "CBU pipe (branches)"},
    {Pipe::Uniform, "sm__inst_executed_pipe_uniform", "uniform pipe"},
    {Pipe::Adu, "sm__inst_executed_pipe_adu", "ADU pipe (barriers, constants)"},
};

double executed_on_pipe(const Inputs& in, Pipe pipe) {
  double sum = 0;
  for (std::size_t i = 0; i < in.totals.size(); ++i)
    if (in.kernel.instructions[i].pipe == pipe) sum += static_cast<double>(in.totals[i].executed);
  return sum;
}

/// Write-back cycles of loads, as measured on an H200: a shared load takes its wavefronts minus its bank conflicts
/// (broadcasts count once), a global load one cycle per register.
double writeback_cycles(const Inputs& in) {
  double cycles = 0;
  for (std::size_t i = 0; i < in.totals.size(); ++i) {
    const Instruction& instruction = in.kernel.instructions[i];
    const InstructionCount& t = in.totals[i];
    if (instruction.pipe != Pipe::Lsu || instruction.destination_count == 0) continue;
    const double registers = instruction.access_bytes > 4 ? instruction.access_bytes / 4.0 : 1;
    cycles += static_cast<double>(t.requests) * registers + static_cast<double>(t.wavefronts - t.bank_conflicts);
  }
  return cycles;
}

void add(std::vector<ThroughputTerm>& terms, const char* metric, const char* label, double busy, double available) {
  if (available <= 0) return;
  terms.push_back({metric, label, percent(busy, available)});
}

void sort_terms(std::vector<ThroughputTerm>& terms) {
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.pct > b.pct; });
}

}  // namespace

const char* throughput_label(Pipe pipe) {
  for (const PipeTerm& term : kComputePipes)
    if (term.pipe == pipe) return term.label;
  return "";
}

std::vector<ThroughputTerm> compute_throughputs(const Inputs& in) {
  const TimingCounters& c = in.timing.counters;
  std::vector<ThroughputTerm> terms;
  double executed = 0;
  for (const InstructionCount& t : in.totals) executed += static_cast<double>(t.executed);
  add(terms, "sm__inst_executed", "instructions executed", executed, in.sub_partitions * in.cycles);
  add(terms, "sm__issue_active", "issue slots", static_cast<double>(c.issue_active_cycles),
      in.sub_partitions * in.cycles);
  for (const PipeTerm& p : kComputePipes) {
    const double executed_here = executed_on_pipe(in, p.pipe);
    if (executed_here == 0) continue;
    const PipeSpec& spec = in.model.pipe(p.pipe);
    const double units = spec.per_sm ? in.sms : in.sub_partitions;
    const double busy = static_cast<double>(c.pipe_cycles[static_cast<std::size_t>(p.pipe)]);
    add(terms, p.metric, p.label, busy > 0 ? busy : executed_here * std::max(spec.interval, 1), units * in.cycles);
  }
  add(terms, "sm__inst_executed_pipe_lsu", "LSU pipe (memory instructions)",
      executed_on_pipe(in, Pipe::Lsu) * in.model.memory_pipe.lsu_interval, in.sms * in.cycles);
  sort_terms(terms);
  return terms;
}

std::vector<ThroughputTerm> memory_throughputs(const Inputs& in) {
  const TimingCounters& c = in.timing.counters;
  const MemoryCounters& m = c.memory;
  const GpuModel& g = in.model;
  const double sm_cycles = in.sms * in.cycles;
  const double slice_cycles = g.l2.slices * g.l2.clock_ratio * in.cycles;
  const double returned = static_cast<double>(m.read_sectors + m.atomic_sectors) * kSectorBytes;
  const double written = static_cast<double>(m.write_sectors + m.reduction_sectors + m.atomic_sectors) * kSectorBytes;
  const double requests = static_cast<double>(m.read_requests + m.write_requests + m.atomic_requests);

  std::vector<ThroughputTerm> terms;
  add(terms, "l1tex__data_pipe_lsu_wavefronts", "L1 and shared memory data stage",
      static_cast<double>(c.l1_data_cycles), sm_cycles);
  add(terms, "l1tex__f_wavefronts", "L1 tags", static_cast<double>(c.l1_tag_lookups), sm_cycles * g.l1.tags_per_cycle);
  add(terms, "l1tex__lsuin_requests", "L1 requests", executed_on_pipe(in, Pipe::Lsu) * g.memory_pipe.lsu_interval,
      sm_cycles);
  add(terms, "l1tex__lsu_writeback_active", "L1 results to the SM", writeback_cycles(in), sm_cycles);
  add(terms, "l1tex__m_xbar2l1tex_read_sectors", "L2 to L1", returned,
      sm_cycles * g.crossbar.sm_response_bytes_per_cycle);
  add(terms, "l1tex__m_l1tex2xbar_req_cycles_active", "L1 to L2",
      std::max(requests * 16 / std::max(g.crossbar.sm_requests_per_cycle_x16, 1),
               written / std::max(g.crossbar.sm_write_bytes_per_cycle, 1)),
      sm_cycles);
  add(terms, "lts__t_sectors", "L2 sectors", static_cast<double>(m.slice_sectors()) * kSectorBytes,
      slice_cycles * g.l2.slice_bytes_per_cycle);
  add(terms, "lts__t_tag_requests", "L2 tags", requests - static_cast<double>(m.merged_requests),
      slice_cycles * g.l2.slice_tags_per_cycle);
  add(terms, "lts__lts2xbar_cycles_active", "L2 replies",
      returned - static_cast<double>(m.merged_sectors) * kSectorBytes, slice_cycles * g.l2.slice_bytes_per_cycle);
  add(terms, "dram__throughput", "HBM", static_cast<double>(m.dram_read_bytes + m.dram_write_bytes),
      g.hbm.bytes_per_ns * in.seconds * 1e9);
  // Not one of Nsight Compute's constituents: the ports into the GPCs, which an SM's own port does not show.
  add(terms, "forewarp__xbar2gpc", "crossbar into the GPCs",
      returned - static_cast<double>(m.merged_sectors) * kSectorBytes,
      static_cast<double>(g.chip.tpcs_per_gpc.size()) * g.crossbar.gpc_response_bytes_per_cycle * in.cycles);
  sort_terms(terms);
  return terms;
}

}  // namespace forewarp::report

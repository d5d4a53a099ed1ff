// The hierarchical roofline: arithmetic intensity at L1, L2 and HBM against the peaks of each level and pipe.
#include <algorithm>
#include <limits>

#include "counters/summary.h"
#include "hardware/peaks.h"
#include "hardware/tensor.h"
#include "program/analysis.h"
#include "program/traits.h"
#include "report/analysis.h"

namespace forewarp::report {

namespace {

/// Rows of Roofline::work that are always there.
enum class Precision : std::uint8_t { Fp32, Fp16, Fp64 };

/// Floating-point operations per thread instruction, as the SpeedOfLight roofline sections count them.
struct OperationWeight {
  OperationClass operation;
  Precision precision;
  double operations;
};

constexpr OperationWeight kWeights[] = {
    {OperationClass::Fadd, Precision::Fp32, 1}, {OperationClass::Fmul, Precision::Fp32, 1},
    {OperationClass::Ffma, Precision::Fp32, 2}, {OperationClass::Hadd, Precision::Fp16, 2},
    {OperationClass::Hmul, Precision::Fp16, 2}, {OperationClass::Hfma, Precision::Fp16, 4},
    {OperationClass::Dadd, Precision::Fp64, 1}, {OperationClass::Dmul, Precision::Fp64, 1},
    {OperationClass::Dfma, Precision::Fp64, 2},
};

constexpr const char* kMatrixNames[] = {"tensor_fp16", "tensor_fp16", "tensor_bf16", "tensor_tf32", "tensor_fp8",
                                        "tensor_int8", "tensor_int4", "tensor_int1", "tensor_fp64"};
static_assert(std::size(kMatrixNames) == kMatrixTypes);

double roof(const GpuModel& model, std::string_view name) {
  for (const Peak& peak : arithmetic_roofs(model))
    if (peak.name == name) return peak.per_second;
  return 0;
}

/// Work of matrix instructions, a row for each element type that occurs. The roof is what the tensor pipe sustains with
/// the shapes that the kernel uses: the interval that the model gives a warp's instruction, not the peak of larger
/// shapes.
void count_matrix_work(const Inputs& in, std::vector<RooflineWork>& work) {
  const double units = in.model.pipe(Pipe::Tensor).per_sm ? in.sms : in.sub_partitions;
  std::array<double, kMatrixTypes> operations{}, busy{};
  for (std::size_t i = 0; i < in.totals.size(); ++i) {
    if (in.totals[i].executed_on == 0) continue;
    const std::optional<MatrixWork> matrix = matrix_work(in.kernel.instructions[i]);
    if (!matrix) continue;
    const auto type =
        static_cast<std::size_t>(matrix->type == MatrixType::HalfToHalf ? MatrixType::Half : matrix->type);
    const auto executed = static_cast<double>(in.totals[i].executed_on);
    operations[type] += static_cast<double>(matrix->operations()) * executed;
    busy[type] += executed * matrix_interval(in.model.tensor, *matrix, in.model.l1.data_bytes_per_cycle);
  }
  for (std::size_t t = 0; t < kMatrixTypes; ++t)
    if (operations[t] > 0)
      work.push_back(
          {kMatrixNames[t], operations[t], operations[t] / busy[t] * units * in.model.chip.sm_clock_mhz * 1e6});
}

std::vector<RooflineWork> count_work(const Inputs& in) {
  std::vector<RooflineWork> work;
  for (const char* name : {"fp32", "fp16", "fp64"}) work.push_back({name, 0, roof(in.model, name)});
  for (std::size_t i = 0; i < in.totals.size(); ++i) {
    const Instruction& instruction = in.kernel.instructions[i];
    if (is_disguised_move(instruction)) continue;
    for (const OperationWeight& w : kWeights)
      if (instruction.operation == w.operation)
        work[static_cast<std::size_t>(w.precision)].operations +=
            w.operations * static_cast<double>(in.totals[i].enabled_lanes);
  }
  count_matrix_work(in, work);
  return work;
}

/// Bytes that pass L1's data banks. A wavefront that a bank conflict adds takes a cycle and moves nothing more; copies
/// into shared memory hold the banks for what they write, if at all (memory_pipe.fill_wavefront_cycles).
double bytes_at_banks(const Instruction& instruction, const InstructionCount& count, const MemoryPipeSpec& pipe) {
  if (instruction.memory == MemoryKind::AsyncCopy && !copies_outward(instruction)) {
    if (instruction.opcode != Opcode::LDGSTS) return 0;  // a box
    const int held = instruction.has(Modifier::BYPASS) ? pipe.fill_wavefront_cycles : pipe.shared_wavefront_cycles;
    return static_cast<double>(count.bytes) * held;
  }
  return static_cast<double>(count.sectors) * kSectorBytes +
         static_cast<double>(count.wavefronts - std::min(count.bank_conflicts, count.wavefronts)) * kLineBytes;
}

std::vector<RooflineLevel> count_traffic(const Inputs& in) {
  const GpuModel& g = in.model;
  const double clock = g.chip.sm_clock_mhz * 1e6;
  const MemoryCounters& m = in.timing.counters.memory;
  double l1_bytes = 0;
  for (std::size_t i = 0; i < in.totals.size(); ++i)
    l1_bytes += bytes_at_banks(in.kernel.instructions[i], in.totals[i], g.memory_pipe);
  std::vector<RooflineLevel> levels(3);
  levels[0] = {"L1", l1_bytes, in.sms * g.l1.data_bytes_per_cycle * clock};
  levels[1] = {"L2", static_cast<double>(m.slice_sectors()) * kSectorBytes,
               g.l2.slices * g.l2.slice_bytes_per_cycle * g.l2.clock_ratio * clock};
  levels[2] = {"HBM", static_cast<double>(m.dram_read_bytes + m.dram_write_bytes), g.hbm.bytes_per_ns * 1e9};
  for (RooflineLevel& level : levels) level.bytes_per_second = ratio(level.bytes, in.seconds);
  return levels;
}

}  // namespace

Roofline make_roofline(const Inputs& in) {
  Roofline r;
  r.work = count_work(in);
  r.levels = count_traffic(in);
  const RooflineWork* leading = nullptr;
  for (const RooflineWork& w : r.work) {
    if (w.operations == 0 || w.peak_per_second == 0) continue;
    if (leading == nullptr || w.operations / w.peak_per_second > leading->operations / leading->peak_per_second)
      leading = &w;
  }
  if (leading == nullptr) return r;

  r.precision = leading->name;
  r.attained = ratio(leading->operations, in.seconds);
  r.ridge = ratio(leading->peak_per_second, r.levels.back().peak_bytes_per_second);
  r.binding = leading->name;
  r.ceiling = leading->peak_per_second;
  for (RooflineLevel& level : r.levels) {
    level.intensity = ratio(leading->operations, level.bytes);
    level.ceiling = level.bytes == 0 ? leading->peak_per_second : level.intensity * level.peak_bytes_per_second;
    if (level.bytes > 0 && level.ceiling < r.ceiling) {
      r.ceiling = level.ceiling;
      r.binding = level.name;
    }
  }
  r.attained_pct = percent(r.attained, r.ceiling);
  return r;
}

}  // namespace forewarp::report

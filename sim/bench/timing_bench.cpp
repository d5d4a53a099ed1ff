// The timing engine on traces that are already there, every instruction simulated, by class of kernel. An item is a
// simulated warp instruction.
#include <benchmark/benchmark.h>

#include "bench/support.h"
#include "emulation/emulation.h"
#include "hardware/occupancy.h"
#include "timing/simulate.h"

namespace {

using namespace forewarp;

void Detailed(benchmark::State& state, const char* stem, const char* id) {
  const bench::Loaded loaded = bench::load(stem, id);
  const GpuModel gpu = load_gpu_model("h200-sxm");
  const auto trace = trace_launch(*loaded.program, *loaded.item, 0);
  const Occupancy occupancy = compute_occupancy(gpu, *trace->kernel, trace->launch.grid, trace->launch.block,
                                                trace->launch.dynamic_shared_bytes);
  SimulateOptions options;
  options.full = true;
  std::uint64_t instructions = 0;
  for (auto _ : state) instructions += simulate(gpu, *trace, occupancy, options).coverage.simulated_warp_instructions;
  state.SetItemsProcessed(static_cast<std::int64_t>(instructions));
}
BENCHMARK_CAPTURE(Detailed, product_fma, "matmul_06_vectorized", "sgemm_vectorized_512")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Detailed, product_shared, "matmul_03_shared_tiled", "sgemm_shared_tiled_512")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Detailed, product_uncoalesced, "matmul_01_naive_uncoalesced", "sgemm_naive_uncoalesced_check_129")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Detailed, copy, "copy_05_transpose", "transpose_padded_1024")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Detailed, elementwise, "elementwise_04_relu", "relu_f32_1mi")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Detailed, attention, "attention_03_flash", "flash_attention_512")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Detailed, divergence, "divergence_01_branch_ways", "divergence_by_lane_8_256ki")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Detailed, atomics, "reduce_03_sum_atomic", "sum_atomic_threads_1mi")->Unit(benchmark::kMillisecond);

}  // namespace

// The emulator: all values of a launch, and the trace of one whose blocks are alike or are not. An item is a warp
// instruction that was executed, or for traces one of the launch.
#include <benchmark/benchmark.h>

#include "bench/support.h"
#include "emulation/emulation.h"

namespace {

using namespace forewarp;

void Emulate(benchmark::State& state, const char* stem, const char* id) {
  const bench::Loaded loaded = bench::load(stem, id);
  std::uint64_t instructions = 0;
  for (auto _ : state) instructions += emulate_values(*loaded.program, *loaded.item).warp_instructions;
  state.SetItemsProcessed(static_cast<std::int64_t>(instructions));
}
BENCHMARK_CAPTURE(Emulate, product, "matmul_06_vectorized", "sgemm_vectorized_check_129")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Emulate, reduction, "reduce_01_softmax_rows", "softmax_rows_1024x1024")
    ->Unit(benchmark::kMillisecond);

void Trace(benchmark::State& state, const char* stem, const char* id) {
  const bench::Loaded loaded = bench::load(stem, id);
  std::uint64_t instructions = 0;
  for (auto _ : state) {
    const auto trace = trace_launch(*loaded.program, *loaded.item, 0);
    for (const InstructionCount& count : trace->totals()) instructions += count.executed;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(instructions));
}
BENCHMARK_CAPTURE(Trace, product_4096, "matmul_06_vectorized", "sgemm_vectorized_4096")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Trace, divergence, "divergence_01_branch_ways", "divergence_by_lane_8_256ki")
    ->Unit(benchmark::kMillisecond);

}  // namespace

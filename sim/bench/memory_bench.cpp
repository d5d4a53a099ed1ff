// The memory system behind the SMs alone: crossbar, L2 and DRAM under streams of whole lines from all SMs. An item is a
// request.
#include <benchmark/benchmark.h>

#include "hardware/gpu_model.h"
#include "timing/memory/memory.h"
#include "timing/memory/memory_test_model.h"

namespace {

using namespace forewarp;

enum class Stream { Hits, Reads, Writes, Copies };

void Memory(benchmark::State& state, Stream kind) {
  constexpr std::uint64_t kLines = 1 << 18, kResident = 1 << 16;
  const GpuModel gpu = load_gpu_model("h200-sxm");
  std::uint64_t requests = 0;
  for (auto _ : state) {
    MemorySystem memory(gpu);
    std::uint64_t cursor = 0;
    const LoadRun run = run_load(memory, gpu.chip.sm_count, 64, 0, [&](int, std::uint64_t, MemoryRequest& r) {
      if (cursor == kLines) return false;
      const std::uint64_t i = cursor++;
      r.sectors = 15;
      r.line = kind == Stream::Hits ? i % kResident : i;
      if (kind == Stream::Writes || (kind == Stream::Copies && i % 2 != 0)) r.kind = RequestKind::Write;
      return true;
    });
    requests += run.pushed;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(requests));
}
BENCHMARK_CAPTURE(Memory, hits, Stream::Hits)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Memory, reads, Stream::Reads)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Memory, writes, Stream::Writes)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Memory, copies, Stream::Copies)->Unit(benchmark::kMillisecond);

}  // namespace

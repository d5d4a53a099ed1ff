// Block classes against the truth: every block of a grid emulated by itself must give what its class, shifted, claims.
#include <catch2/catch.hpp>

#include <string>

#include "emulation/emulation.h"

using namespace forewarp;

namespace {

const std::string kTraces = std::string(FOREWARP_SOURCE_DIR) + "/traces/";

/// Runs of a warp, independent of how its class stores them.
const std::vector<Run>& runs(const BlockClass& c, std::size_t warp) { return c.paths[c.warps[warp].path].runs; }

std::uint64_t shifted(const KernelTrace& trace, const Access& a, const Dim3& from, const Dim3& to) {
  const BlockSlope& s = trace.slopes[a.slope];
  const auto move = [](std::int64_t slope, std::uint32_t x, std::uint32_t y) {
    return static_cast<std::uint64_t>(slope * (std::int64_t{y} - std::int64_t{x}));
  };
  return a.base + move(s.x, from.x, to.x) + move(s.y, from.y, to.y) + move(s.z, from.z, to.z);
}

bool same_accesses(const KernelTrace& trace, const BlockClass& c, const KernelTrace& truth, const BlockClass& block,
                   std::size_t warp) {
  const auto &a = c.warps[warp].accesses, &b = block.warps[warp].accesses;
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (trace.patterns[a[i].pattern] != truth.patterns[b[i].pattern]) return false;
    if (trace.patterns[a[i].pattern].lanes == 0) continue;
    if (shifted(trace, a[i], c.representative, block.representative) != b[i].base) return false;
  }
  return true;
}

/// Number of blocks whose own trace differs from that of their class.
int wrong_blocks(const KernelTrace& trace, const KernelTrace& truth) {
  int wrong = 0;
  for (std::uint64_t b = 0; b < trace.launch.grid.count(); ++b) {
    const BlockClass& c = trace.classes[trace.class_of(b)];
    const BlockClass& block = truth.classes[b];
    REQUIRE(block.representative == trace.block_index(b));
    bool same = c.counts == block.counts && c.warps.size() == block.warps.size();
    for (std::size_t w = 0; same && w < c.warps.size(); ++w) {
      same = runs(c, w) == runs(block, w) && same_accesses(trace, c, truth, block, w);
    }
    wrong += same ? 0 : 1;
  }
  return wrong;
}

std::uint64_t population(const KernelTrace& trace) {
  std::uint64_t sum = 0;
  for (const BlockClass& c : trace.classes) sum += c.population;
  return sum;
}

void check_stem(const std::string& arch, const std::string& stem) {
  const Program program = load_program(kTraces + arch + "/" + stem + ".cubin");
  const LaunchFile launches = read_launch_file(kTraces + stem + ".yaml");
  for (const Case& item : launches.cases) {
    if (item.id.find("_check_") == std::string::npos) continue;
    // Launches of one case differ in what a host loop counts; the first few show all there is.
    const int count = std::min<int>(4, static_cast<int>(item.launches.size()));
    for (int l = 0; l < count; ++l) {
      INFO(arch << " " << item.id << " launch " << l);
      TraceOptions each;
      each.block_classes = false;
      each.all_values = true;
      const auto truth = trace_launch(program, item, l, each);
      const auto trace = trace_launch(program, item, l);
      CHECK(wrong_blocks(*trace, *truth) == 0);
      CHECK(population(*trace) == item.launches[static_cast<std::size_t>(l)].grid.count());
    }
  }
}

}  // namespace

TEST_CASE("classes of the project's kernels are what brute force finds", "[classes]") {
  const std::string arch = GENERATE(as<std::string>{}, "sm_80", "sm_90");
  const std::string stem = GENERATE(
      as<std::string>{}, "matmul_01_naive_uncoalesced", "matmul_02_coalesced", "matmul_03_shared_tiled",
      "matmul_04_coarsened_1d", "matmul_05_coarsened_2d", "matmul_06_vectorized", "matmul_07_warp_tiled_double_buffered",
      "attention_01_unfused", "attention_02_student", "attention_03_flash", "copy_01_row_column", "copy_02_strided",
      "copy_03_offset", "copy_04_tile_loads", "copy_05_transpose", "divergence_01_branch_ways", "elementwise_01_sin_cos",
      "elementwise_02_elu", "elementwise_03_sigmoids", "elementwise_04_relu", "reduce_01_softmax_rows",
      "reduce_02_layer_norm_rows", "reduce_03_sum_atomic");
  check_stem(arch, stem);
}

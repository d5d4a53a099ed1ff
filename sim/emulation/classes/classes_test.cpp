// Block classes against the truth: every block of a grid emulated by itself must give what its class, shifted, claims.
#include <catch2/catch.hpp>
#include <string>

#include "emulation/classes/classes_support.h"
#include "emulation/emulation.h"

using namespace forewarp;
using forewarp::test::population;
using forewarp::test::wrong_blocks;

namespace {

const std::string kTraces = std::string(FOREWARP_SOURCE_DIR) + "/traces/";

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
      "matmul_04_coarsened_1d", "matmul_05_coarsened_2d", "matmul_06_vectorized",
      "matmul_07_warp_tiled_double_buffered", "attention_01_unfused", "attention_02_student", "attention_03_flash",
      "copy_01_row_column", "copy_02_strided", "copy_03_offset", "copy_04_tile_loads", "copy_05_transpose",
      "divergence_01_branch_ways", "elementwise_01_sin_cos", "elementwise_02_elu", "elementwise_03_sigmoids",
      "elementwise_04_relu", "reduce_01_softmax_rows", "reduce_02_layer_norm_rows", "reduce_03_sum_atomic");
  check_stem(arch, stem);
}

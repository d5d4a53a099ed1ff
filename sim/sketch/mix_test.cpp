// Sketches beside the kernels that they describe: how many warp instructions of each kind a launch executes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "hardware/occupancy.h"
#include "sketch/test_support.h"

namespace forewarp::sketch {
namespace {

const std::string kRoot = FOREWARP_SOURCE_DIR;

/// Warp instructions of a launch by kind: products of matrices, floats, shared memory, global memory, the rest.
using Mix = std::map<std::string, double>;

std::string kind_of(const Instruction& in) {
  const std::string name = opcode_text(in.opcode);
  if (name == "HMMA" || name == "IMMA" || name == "HGMMA") return "matrix";
  if (name == "MUFU" || name.starts_with("F") || name == "HADD2" || name == "HFMA2") return "float";
  if (in.space == MemorySpace::Shared || name == "LDGSTS") return "shared";
  return in.space == MemorySpace::Global ? "global" : "rest";
}

Mix mix_of(const Program& program, const Case& item, int launch) {
  TraceOptions options;
  options.value_instructions = options.counted_instructions = 0;
  options.traced_instructions = 2'000'000;
  const auto trace = trace_launch(program, item, launch, options);
  const std::vector<InstructionCount> totals = trace->totals();
  Mix mix;
  for (std::size_t i = 0; i < totals.size(); ++i)
    mix[kind_of(trace->kernel->instructions[i])] += static_cast<double>(totals[i].executed);
  return mix;
}

double all_of(const Mix& mix) {
  double all = 0;
  for (const auto& [kind, count] : mix) all += count;
  return all;
}

const Case& case_of(const LaunchFile& file, const std::string& id) {
  for (const Case& c : file.cases)
    if (c.id == id) return c;
  throw InternalError("no case " + id);
}

TEST_CASE("sketches execute what the kernels do that they describe", "[sketch]") {
  struct Twin {
    const char *sketches, *kernel, *launches, *id;
    int launch;
  };
  const GpuModel model = test::gpu("h200-sxm");
  for (const Twin& t :
       {Twin{"matmul", "matmul_06_vectorized", "matmul_06_vectorized", "sgemm_vectorized_1024", 0},
        Twin{"matmul", "matmul_11_async_stages", "matmul_11_async_stages", "mma_async_3_f16_4096", 0},
        Twin{"matmul", "matmul_12_tensor", "matmul_12_tensor", "tensor_f16_4096", 0},
        Twin{"tiles", "matmul_19_tiles", "matmul_19_tiles.sweep", "tiles_f16_64x64x64_32x32_3_4096", 0},
        Twin{"matmul", "matmul_14_split_k", "matmul_14_split_k", "tensor_split_f16_512x512x8192_parts_8", 0},
        Twin{"hopper", "matmul_23_warp_specialised", "matmul_23_warp_specialised", "specialised_bf16_4096", 0},
        Twin{"hopper", "matmul_24_cluster_multicast", "matmul_24_cluster_multicast", "multicast_bf16_4096", 0},
        Twin{"attention", "attention_01_unfused", "attention_01_unfused", "attention_unfused_512", 0},
        Twin{"attention", "attention_01_unfused", "attention_01_unfused", "attention_unfused_512", 1},
        Twin{"attention", "attention_05_flash2", "attention_05_flash2", "flash2_f16_64_2048", 0},
        Twin{"attention", "attention_05_flash2", "attention_05_flash2", "flash2_f16_128_2048", 0},
        Twin{"hopper_attention", "attention_08_flash3", "attention_08_flash3", "flash3_f16_64_2048", 0},
        Twin{"hopper_attention", "attention_08_flash3", "attention_08_flash3", "flash3_f16_128_2048", 0},
        Twin{"hopper_attention", "attention_08_flash3", "attention_08_flash3", "flash3_f16_128_causal_2048", 0},
        Twin{"elementwise", "elementwise_02_elu", "elementwise_02_elu", "elu_fused_64mi", 0}}) {
    CAPTURE(t.id, t.launch);
    const Sketches sketches = read_sketches(kRoot + "/validation/sketches/" + t.sketches + ".yaml", model);
    const Mix sketch = mix_of(*sketches.program, case_of(*sketches.launches, t.id), t.launch);
    const Program program = load_program(kRoot + "/traces/sm_90/" + t.kernel + ".cubin");
    const LaunchFile launches = read_launch_file(kRoot + "/traces/" + t.launches + ".yaml");
    const Mix compiled = mix_of(program, case_of(launches, t.id), t.launch);
    const double all = all_of(compiled);
    CHECK(std::abs(all_of(sketch) / all - 1) < 0.15);
    for (const char* kind : {"matrix", "float", "shared", "global", "rest"}) {
      const auto a = sketch.find(kind), b = compiled.find(kind);
      const double difference = (a == sketch.end() ? 0 : a->second) - (b == compiled.end() ? 0 : b->second);
      CAPTURE(kind, difference / all);
      CHECK(std::abs(difference) < 0.15 * all);
    }
  }
}

TEST_CASE("of each choice of tile as many blocks fit, and copies bring as much, as of the compiled kernel",
          "[sketch]") {
  const GpuModel model = test::gpu("h200-sxm");
  const Sketches sketches = read_sketches(kRoot + "/validation/sketches/tiles.yaml", model);
  const Program program = load_program(kRoot + "/traces/sm_90/matmul_19_tiles.cubin");
  REQUIRE(sketches.launches->cases.size() == 40);
  for (const Case& item : sketches.launches->cases) {
    CAPTURE(item.id);
    const Launch& launch = item.launches.front();
    const auto blocks = [&](const Kernel& kernel) {
      return compute_occupancy(model, kernel, launch.grid, launch.block, launch.dynamic_shared_bytes).blocks_per_sm;
    };
    const auto of_whole_lines = [](const Kernel& kernel) {
      return std::count_if(kernel.instructions.begin(), kernel.instructions.end(), [](const Instruction& in) {
        return in.opcode == Opcode::LDGSTS && in.has(Modifier::LTC128B);
      });
    };
    const Kernel &sketch = sketches.program->kernel(launch.kernel),
                 &compiled = program.kernel(item.id.substr(0, item.id.rfind('_')));
    CHECK(blocks(sketch) == blocks(compiled));
    CHECK((of_whole_lines(sketch) > 0) == (of_whole_lines(compiled) > 0));
  }
}

TEST_CASE("every example is a sketch, each scenario in less than fifteen lines", "[sketch]") {
  int scenarios = 0;
  for (const char* folder : {"/docs/examples", "/docs/examples/scenarios", "/validation/sketches"})
    for (const auto& entry : std::filesystem::directory_iterator(kRoot + folder)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".yaml") || path.ends_with(".sweep.yaml")) continue;
      CAPTURE(path);
      if (entry.path().parent_path().filename() == "scenarios") {
        std::ifstream file(path);
        const auto lines = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
        CHECK(lines < 15);
        ++scenarios;
      }
      for (const char* gpu : {"h200-sxm", "a100-sxm4-80gb"}) {
        if (path.find("hopper") != std::string::npos && gpu[0] == 'a') continue;  // wgmma
        const Sketches s = read_sketches(path, test::gpu(gpu));
        CHECK(!s.program->kernels.empty());
        for (const Case& c : s.launches->cases) CHECK(!c.launches.empty());
      }
    }
  CHECK(scenarios == 13);
}

}  // namespace
}  // namespace forewarp::sketch

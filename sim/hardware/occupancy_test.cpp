#include "hardware/occupancy.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"

using namespace forewarp;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint32_t kKiB = 1024;

Occupancy occupancy(const char* gpu, int registers, std::uint32_t threads, std::uint32_t static_shared = 0,
                    std::uint32_t dynamic_shared = 0, std::uint32_t blocks = 1) {
  Kernel kernel;
  kernel.name = "k";
  kernel.registers = registers;
  kernel.static_shared_bytes = static_shared;
  return compute_occupancy(load_gpu_model(gpu), kernel, Dim3{blocks, 1, 1}, Dim3{threads, 1, 1}, dynamic_shared);
}

}  // namespace

TEST_CASE("warps limit a small kernel of 256 threads") {
  // Nsight Compute on an A100 and an H100, 16 registers: limits 32, 16, 32, 8 and a configuration of 32.77 KB.
  for (const char* gpu : {"a100-sxm4-80gb", "h100-sxm5"}) {
    const Occupancy o = occupancy(gpu, 16, 256, 0, 0, 3225);
    CHECK(o.limit_blocks == 32);
    CHECK(o.limit_registers == 16);
    CHECK(o.limit_shared == 32);
    CHECK(o.limit_warps == 8);
    CHECK(o.blocks_per_sm == 8);
    CHECK(o.warps_per_block == 8);
    CHECK(o.shared_bytes_per_block == kKiB);
    CHECK(o.shared_config_bytes == 32 * kKiB);
    CHECK(o.theoretical_pct == 100);
    CHECK(std::string(o.limiter) == "warps");
  }
  CHECK(occupancy("h100-sxm5", 16, 256, 0, 0, 3225).waves == Approx(3.05).epsilon(0.002));
  CHECK(occupancy("a100-sxm4-80gb", 16, 256, 0, 0, 196).waves == Approx(0.23).epsilon(0.02));
  CHECK(occupancy("h100-sxm5", 16, 256).l1_bytes == 224 * kKiB);
  CHECK(occupancy("a100-sxm4-80gb", 16, 256).l1_bytes == 160 * kKiB);
}

TEST_CASE("registers are handed out by warp and sub-partition") {
  CHECK(occupancy("h200-sxm", 32, 256).blocks_per_sm == 8);
  CHECK(occupancy("h200-sxm", 33, 256).limit_registers == 6);  // 1280 a warp: 12 warps a sub-partition
  const Occupancy most = occupancy("h200-sxm", 255, 128);
  CHECK(most.registers_per_warp_allocated == 8192);  // 255 rounds up to 256
  CHECK(most.limit_registers == 2);
  CHECK(most.blocks_per_sm == 2);
  CHECK(most.theoretical_pct == 12.5);
  CHECK(std::string(most.limiter) == "registers");
  CHECK(occupancy("a100-sxm4-80gb", 46, 512).limit_registers == 2);  // Nsight Compute, A800
  CHECK(occupancy("h100-sxm5", 67, 256).limit_registers == 3);       // Nsight Compute, H100
  CHECK(occupancy("h100-sxm5", 168, 384).limit_registers == 1);      // Nsight Compute, H100
  CHECK(occupancy("h100-sxm5", 63, 128).limit_registers == 8);       // Nsight Compute, H100
  CHECK(occupancy("h200-sxm", 64, 96).limit_registers == 10);        // 8 warps a sub-partition, 32 in all, 3 a block
  CHECK(occupancy("h200-sxm", 32, 1024).blocks_per_sm == 2);
  CHECK(occupancy("h200-sxm", 64, 1024).blocks_per_sm == 1);
}

TEST_CASE("shared memory limits, and the carve-out grows with the blocks that the rest allows") {
  const Occupancy tiled = occupancy("a100-sxm4-80gb", 32, 256, 48 * kKiB);
  CHECK(tiled.shared_bytes_per_block == 49 * kKiB);
  CHECK(tiled.shared_config_bytes == 164 * kKiB);
  CHECK(tiled.limit_shared == 3);
  CHECK(std::string(tiled.limiter) == "shared memory");
  CHECK(tiled.theoretical_pct == 37.5);
  // Nsight Compute on an A100: 106 registers, 256 threads, 48 KiB dynamic: limits 2 and 2, configuration 102.40 KB.
  const Occupancy two = occupancy("a100-sxm4-80gb", 106, 256, 0, 48 * kKiB, 512);
  CHECK(two.limit_registers == 2);
  CHECK(two.shared_config_bytes == 100 * kKiB);
  CHECK(two.limit_shared == 2);
  CHECK(two.waves == Approx(2.37).epsilon(0.002));
  // Nsight Compute on an H100: 1024 threads, 31 registers, 12 KiB static: 32.77 KB, limit 2.
  const Occupancy small = occupancy("h100-sxm5", 31, 1024, 12 * kKiB, 0, 16384);
  CHECK(small.shared_config_bytes == 32 * kKiB);
  CHECK(small.limit_shared == 2);
  CHECK(small.waves == Approx(62.06).epsilon(0.001));
  // Nsight Compute on an H100: 128 threads, 63 registers, 30.74 KB: 233.47 KB, limit 7.
  const Occupancy full = occupancy("h100-sxm5", 63, 128, 1, 30740, 896);
  CHECK(full.shared_config_bytes == 228 * kKiB);
  CHECK(full.limit_shared == 7);
  CHECK(full.waves == Approx(0.97).epsilon(0.001));
  CHECK(full.theoretical_pct == 43.75);
  // The same for tensor kernels of 384 threads: 188.64 KB -> 200.70 KB, 231.42 KB -> 233.47 KB.
  CHECK(occupancy("h100-sxm5", 168, 384, 0, 188640).shared_config_bytes == 196 * kKiB);
  CHECK(occupancy("h100-sxm5", 168, 384, 0, 231424).shared_config_bytes == 228 * kKiB);
}

TEST_CASE("the carve-out is the driver's choice on an H200, launch by launch") {
  std::ifstream file(FOREWARP_SOURCE_DIR "/validation/calibration/carveout.csv");
  REQUIRE(file);
  const GpuModel gpu = load_gpu_model("h200-sxm");
  int launches = 0, exceptions = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream row(line);
    std::uint32_t threads = 0, registers = 0, allocated = 0, config = 0;
    char comma = 0;
    if (!(row >> threads >> comma >> registers >> comma >> allocated >> comma >> config)) continue;
    ++launches;
    Kernel kernel;
    kernel.name = "hold";
    kernel.registers = static_cast<int>(registers);
    const Occupancy o = compute_occupancy(gpu, kernel, Dim3{1, 1, 1}, Dim3{threads, 1, 1}, allocated - kKiB);
    if (o.shared_config_bytes == config) continue;
    ++exceptions;
    INFO(line << ": " << o.shared_config_bytes);
    CHECK(allocated == 1152);
  }
  CHECK(launches == 950);
  CHECK(exceptions == 3);
}

TEST_CASE("a thread has 16 registers at least") {
  CHECK(occupancy("h200-sxm", 10, 256).registers_per_thread == 16);
  CHECK(occupancy("h200-sxm", 40, 256).registers_per_thread == 40);
}

TEST_CASE("the number of blocks limits small blocks") {
  const Occupancy o = occupancy("h200-sxm", 16, 32);
  CHECK(o.blocks_per_sm == 32);
  CHECK(o.limit_warps == 64);
  CHECK(o.theoretical_pct == 50);
  CHECK(std::string(o.limiter) == "blocks");
  CHECK(occupancy("h200-sxm", 16, 33).warps_per_block == 2);
}

TEST_CASE("a block that does not fit is an error that says why") {
  CHECK_THROWS_WITH(occupancy("h200-sxm", 80, 1024),
                    Contains("not one block of kernel 'k' fits") && Contains("registers"));
  CHECK_THROWS_WITH(occupancy("a100-sxm4-80gb", 32, 256, 0, 164 * kKiB),
                    Contains("shared memory") && Contains("166912"));
  CHECK_NOTHROW(occupancy("h200-sxm", 32, 256, 0, 227 * kKiB));
  CHECK_THROWS_WITH(occupancy("h200-sxm", 32, 1056), Contains("1056 x 1 x 1"));
  CHECK_THROWS_WITH(occupancy("h200-sxm", 300, 32), Contains("300 registers"));
  CHECK_THROWS_WITH(occupancy("h200-sxm", 32, 0), Contains("must not have a 0"));
  Kernel bounded;
  bounded.name = "k";
  bounded.registers = 32;
  bounded.max_threads = 256;
  CHECK_THROWS_WITH(compute_occupancy(load_gpu_model("h200-sxm"), bounded, Dim3{}, Dim3{512, 1, 1}, 0),
                    Contains("512 threads, 256 are allowed") && Contains("__launch_bounds__"));
}

TEST_CASE("clusters leave what is over of a GPC empty", "[cluster]") {
  GpuModel gpu;
  gpu.chip = {132, 2, {8, 8, 8, 8, 8, 8, 9, 9}, 1980};
  CHECK(blocks_at_once(gpu, 1, 0) == 132);
  CHECK(blocks_at_once(gpu, 1, 2) == 132);
  CHECK(blocks_at_once(gpu, 1, 4) == 128);
  CHECK(blocks_at_once(gpu, 1, 16) == 128);
  CHECK(blocks_at_once(gpu, 3, 8) == 384);
  CHECK(blocks_at_once(gpu, 3, 4) == 6 * 48 + 2 * 52);
}

TEST_CASE("TPCs that stand apart take clusters of their own two SMs alone", "[cluster]") {
  // An H200 has room for 30 clusters of 4 blocks of an SM each and for 15 of 8.
  const GpuModel gpu = load_gpu_model("h200-sxm");
  CHECK(blocks_at_once(gpu, 1, 0) == 132);
  CHECK(blocks_at_once(gpu, 1, 2) == 132);
  CHECK(blocks_at_once(gpu, 1, 4) == 30 * 4);
  CHECK(blocks_at_once(gpu, 1, 8) == 15 * 8);
}

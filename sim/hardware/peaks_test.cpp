#include "hardware/peaks.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace forewarp;
using Catch::Matchers::StartsWith;

namespace {

double peak(const GpuModel& g, const std::string& name) {
  for (const Peak& p : derived_peaks(g))
    if (p.name == name) return p.per_second / 1e12;
  FAIL("no peak " << name);
  return 0;
}

std::vector<std::string> doubts_with(const std::string& change) { return doubts(load_gpu_model("h200-sxm", {change})); }

}  // namespace

TEST_CASE("peaks are those of the data sheets") {
  const GpuModel a100 = load_gpu_model("a100-sxm4-80gb"), h200 = load_gpu_model("h200-sxm");
  CHECK(peak(a100, "fp32") == Approx(19.5).epsilon(0.01));
  CHECK(peak(a100, "fp64") == Approx(9.7).epsilon(0.01));
  CHECK(peak(a100, "fp16, mma.sync m16n8k16") == Approx(312).epsilon(0.01));
  CHECK(peak(h200, "fp32") == Approx(66.9).epsilon(0.01));
  CHECK(peak(a100, "fp16, without tensor cores") == Approx(78).epsilon(0.01));
  CHECK(peak(h200, "fp64") == Approx(33.5).epsilon(0.01));
  CHECK(peak(h200, "HBM") == Approx(4.813));
  CHECK(peak(h200, "L1") == Approx(132 * 128 * 1.98e-3));
}

TEST_CASE("roofs are those of the data sheets, at the model's clock") {
  const auto roof = [](const GpuModel& g, const std::string& name) {
    for (const Peak& p : arithmetic_roofs(g))
      if (p.name == name) return p.per_second / 1e12;
    return 0.0;
  };
  const GpuModel a100 = load_gpu_model("a100-sxm4-80gb"), h100 = load_gpu_model("h100-sxm5");
  CHECK(roof(a100, "tensor_bf16") == Approx(312).epsilon(0.01));
  CHECK(roof(a100, "tensor_tf32") == Approx(156).epsilon(0.01));
  CHECK(roof(a100, "tensor_int8") == Approx(624).epsilon(0.01));
  CHECK(roof(a100, "tensor_fp64") == Approx(19.5).epsilon(0.01));
  CHECK(roof(a100, "tensor_fp8") == 0);
  CHECK(roof(a100, "fp16") == Approx(78).epsilon(0.01));
  const double boost = h100.chip.sm_clock_mhz / 1830;  // that of the data sheet
  CHECK(roof(h100, "tensor_fp16") == Approx(989 * boost).epsilon(0.01));
  CHECK(roof(h100, "tensor_tf32") == Approx(494 * boost).epsilon(0.01));
  CHECK(roof(h100, "tensor_fp8") == Approx(1979 * boost).epsilon(0.01));
  CHECK(roof(h100, "tensor_int8") == Approx(1979 * boost).epsilon(0.01));
  CHECK(roof(h100, "tensor_fp64") == Approx(66.9).epsilon(0.01));
}

TEST_CASE("shipped models add up") {
  for (const std::string& name : gpu_model_names()) {
    INFO(name);
    for (const std::string& doubt : doubts(load_gpu_model(name))) {
      INFO(doubt);
      CHECK(false);
    }
  }
}

TEST_CASE("what does not add up is named") {
  const auto first = [](const std::string& change) {
    const auto found = doubts_with(change);
    return found.empty() ? std::string("nothing") : found.front();
  };
  CHECK_THAT(first("l2.miss_entries=64"), StartsWith("l2.miss_entries: 6144 sectors in flight"));
  CHECK_THAT(first("l1.miss_lines=50"), StartsWith("l1.miss_lines"));
  CHECK_THAT(first("hbm.t_faw=100"), StartsWith("hbm.t_faw"));
  CHECK_THAT(first("l2.slice_bytes_per_cycle=16"), StartsWith("L2 slices"));
  CHECK_THAT(first("occupancy.max_blocks=64"), StartsWith("nothing"));
}

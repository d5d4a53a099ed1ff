#include "hardware/sm_clock.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace forewarp;

TEST_CASE("SMs that power slows down see L2 and memory as fast as before in time") {
  for (const char* name : {"a100-sxm4-40gb", "h100-sxm5", "h200-sxm"}) {
    const GpuModel whole = load_gpu_model(name);
    const GpuModel slow = load_gpu_model(name, at_sm_clock(whole, whole.chip.sm_clock_mhz * 0.8));
    INFO(name);
    const auto a_second = [](const GpuModel& m, double a_cycle) { return a_cycle * m.chip.sm_clock_mhz; };
    CHECK(slow.chip.sm_clock_mhz == Approx(whole.chip.sm_clock_mhz * 0.8));
    CHECK(a_second(slow, slow.l2.clock_ratio) == Approx(a_second(whole, whole.l2.clock_ratio)));
    CHECK(a_second(slow, slow.crossbar.gpc_response_bytes_per_cycle) ==
          Approx(a_second(whole, whole.crossbar.gpc_response_bytes_per_cycle)).epsilon(0.01));
    CHECK(slow.crossbar.sm_response_bytes_per_cycle == whole.crossbar.sm_response_bytes_per_cycle);
    const auto seconds = [](const GpuModel& m, double cycles) { return cycles / m.chip.sm_clock_mhz; };
    CHECK(seconds(slow, slow.l2.hit_cycles) == Approx(seconds(whole, whole.l2.hit_cycles)).epsilon(0.01));
    CHECK(slow.hbm.bytes_per_ns == whole.hbm.bytes_per_ns);
    CHECK(slow.content_hash != whole.content_hash);
  }
}

TEST_CASE("--set sm_clock stands for all that changes with it") {
  const GpuModel slow = load_gpu_model("h200-sxm", {"sm_clock=1500"});
  const GpuModel same = load_gpu_model("h200-sxm", at_sm_clock(load_gpu_model("h200-sxm"), 1500));
  CHECK(slow.content_hash == same.content_hash);
  CHECK(slow.changes.size() == same.changes.size());
  // Of a model that has been changed.
  const GpuModel wide = load_gpu_model("h200-sxm", {"crossbar.fabric_bytes_per_cycle=1000", "sm_clock=990MHz"});
  CHECK(wide.crossbar.fabric_bytes_per_cycle == 2000);
  CHECK_THROWS_AS(load_gpu_model("h200-sxm", {"sm_clock=fast"}), InputError);
  CHECK_THROWS_AS(load_gpu_model("h200-sxm", {"sm_clock=1"}), InputError);
}

TEST_CASE("at its own clock a model stays as it is") {
  const GpuModel whole = load_gpu_model("h200-sxm");
  for (const LeafChange& change : load_gpu_model("h200-sxm", at_sm_clock(whole, whole.chip.sm_clock_mhz)).changes)
    CHECK(std::stod(change.value) == Approx(std::stod(change.was)));
}

#include "sweep/resources.h"

#include <catch2/catch.hpp>
#include <set>

using namespace forewarp;
using namespace forewarp::sweep;

TEST_CASE("half and twice of every resource is a GPU that adds up, or says why there is none", "[sweep]") {
  for (const std::string& name : gpu_model_names()) {
    const GpuModel model = load_gpu_model(name);
    int possible = 0;
    for (const Resource& resource : resources()) {
      for (const double factor : {0.5, 2.0}) {
        const Variant variant = resource.scaled(model, factor);
        INFO(name << ", " << resource.name << " x " << factor);
        if (!variant.impossible.empty()) continue;
        ++possible;
        REQUIRE_FALSE(variant.changes.empty());
        GpuModel changed;
        CHECK_NOTHROW(changed = load_gpu_model(name, variant.changes));
        CHECK(changed.content_hash != model.content_hash);
      }
    }
    CHECK(possible > 55);
  }
}

TEST_CASE("a resource changes by the factor and leaves the others alone", "[sweep]") {
  const GpuModel h200 = load_gpu_model("h200-sxm");
  const auto variant = [&](const std::string& name, double factor) {
    for (const Resource& r : resources())
      if (name == r.name) return load_gpu_model("h200-sxm", r.scaled(h200, factor).changes);
    throw InternalError(name);
  };
  CHECK(variant("SM count", 2).chip.sm_count == 264);
  CHECK(variant("SM count", 0.5).chip.sm_count == 66);
  CHECK(variant("SM count", 0.5).chip.tpcs_per_gpc == std::vector<int>{4, 4, 4, 4, 4, 4, 4, 5});
  CHECK(variant("SM count", 0.5).l2.slices == h200.l2.slices);
  CHECK(variant("DRAM channels", 0.5).hbm.channels == 94);
  CHECK(variant("DRAM channels", 0.5).hbm.bytes_per_ns == h200.hbm.bytes_per_ns / 2);
  CHECK(variant("HBM bandwidth", 2).hbm.channels == h200.hbm.channels);
  CHECK(variant("L2 slices", 2).l2.bytes == h200.l2.bytes);
  const GpuModel shared = variant("shared memory size", 2);
  CHECK(shared.occupancy.unified_bytes - shared.occupancy.shared_bytes ==
        h200.occupancy.unified_bytes - h200.occupancy.shared_bytes);
  const GpuModel slow = variant("DRAM latency", 2);
  CHECK(slow.hbm.controller_ns == Approx(2 * h200.hbm.controller_ns + h200.hbm.t_rp + h200.hbm.t_rcd + h200.hbm.t_cl));
}

TEST_CASE("what cannot be halved or doubled says so", "[sweep]") {
  const GpuModel h200 = load_gpu_model("h200-sxm");
  std::set<std::string> not_doubled;
  for (const Resource& r : resources())
    if (!r.scaled(h200, 2).impossible.empty()) not_doubled.insert(r.name);
  CHECK(not_doubled == std::set<std::string>{"FMA rate", "shared memory bandwidth", "warp slots"});
}

#include "cli/point_json.h"

#include <nlohmann/json.hpp>

#include "report/case_json.h"

namespace forewarp::cli {

std::string point_json(std::span<const Prediction> predictions) {
  using Json = nlohmann::ordered_json;
  Json launches = Json::array();
  for (const Prediction& p : predictions) {
    Json j;
    j["kernel"] = p.kernel;
    j["gpu"] = p.gpu;
    report::add_changes(p.gpu_changes, j);
    j["metrics"] = Json::object();
    for (const auto& [name, value] : p.metrics) j["metrics"][name] = value;
    j["cycles_interval_95"] = {p.coverage.cycles_low, p.coverage.cycles_high};
    j["extrapolated"] = p.coverage.extrapolated;
    j["bound_by"] = cause_name(p.bottleneck.kind);
    j["warnings"] = p.warnings;
    launches.push_back(std::move(j));
  }
  return launches.dump();
}

}  // namespace forewarp::cli

// The JSON of one launch, shared by predict, validate and compare.
#pragma once

#include <nlohmann/json.hpp>

#include "report/prediction.h"

namespace forewarp::report {

/// Adds what every result has: metrics, coverage, warnings, bottleneck, occupancy, roofline,
/// throughputs, waves, stalls.
void add_launch_json(const Prediction&, nlohmann::ordered_json&);
/// Adds details by instruction and block: hot spots, memory, divergence, code, block spans.
void add_detail_json(const Prediction&, nlohmann::ordered_json&);
/// "warp_timeline": what the warps of a watched block did.
nlohmann::ordered_json timeline_json(const WarpTimeline&);
/// "gpu_changes": what the command line made of the GPU's numbers; nothing if it left them alone.
void add_changes(const std::vector<LeafChange>&, nlohmann::ordered_json&);
void add_changes(const std::vector<std::string>&, nlohmann::ordered_json&);
/// The GPU facts that plots need, and what sequences of launches cost on it.
nlohmann::ordered_json machine_json(const Prediction&);

}  // namespace forewarp::report

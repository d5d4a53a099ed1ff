// The JSON of one launch, shared by the results of predict, validate and compare.
#pragma once

#include <nlohmann/json.hpp>

#include "report/prediction.h"

namespace forewarp::report {

/// Adds what every result says about a launch: metrics, coverage, warnings, bottleneck, occupancy, roofline,
/// throughputs, waves, stalls.
void add_launch_json(const Prediction&, nlohmann::ordered_json&);
/// Adds what is said by instruction and by block: hot spots, memory, divergence, the code, the blocks' stays.
void add_detail_json(const Prediction&, nlohmann::ordered_json&);
/// What a picture names of the GPU and what sequences of launches cost there.
nlohmann::ordered_json machine_json(const Prediction&);

}  // namespace forewarp::report

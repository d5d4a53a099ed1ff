// Advice for a kernel that is not written yet: other values for the keys of its sketch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "advise/advice.h"
#include "advise/sketch_changes.h"

namespace forewarp::advise {

/// The launches of the only sketch of a root. `quick`: a first look, less precise. InputError where it cannot be
/// lowered or does not run.
using PredictSketch = std::function<std::vector<Prediction>(const config::Node& root, bool quick)>;

/// Each change alone, then the best of them with each of another key.
Advice advise_sketch(const std::string& id, const config::Node& sketch, const PredictSketch&, const ForEach&,
                     std::size_t top);

}  // namespace forewarp::advise

// What a sweep keeps of a point's predictions.
#pragma once

#include <span>
#include <string>

#include "report/prediction.h"

namespace forewarp::cli {

/// A list of launches, each with its metrics, the interval of its cycles, what bounds it and its warnings.
std::string point_json(std::span<const Prediction>);

}  // namespace forewarp::cli

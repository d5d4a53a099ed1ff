// What a sweep predicts. A point is a list of settings; a source turns one into a prediction.
#pragma once

#include <string>

#include "sweep/expression.h"

namespace forewarp::sweep {

struct Identity {
  std::string key;    ///< equal keys, equal results
  std::string group;  ///< points of one group share work and are computed one after another
};

/// A result, or why there is none.
struct Outcome {
  std::string result;  ///< JSON: a list of launches, each with its "metrics"
  std::string error;
};

class Source {
 public:
  virtual ~Source() = default;
  /// InputError where the point makes no sense.
  virtual Identity identify(const Point&) = 0;
  /// InputError where it cannot be predicted. Called from several threads.
  virtual std::string predict(const Point&) = 0;
};

}  // namespace forewarp::sweep

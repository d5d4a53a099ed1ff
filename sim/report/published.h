// What others published of kernels that ours can stand for: rows of validation/published/*.yaml beside predictions.
#pragma once

#include <string>
#include <vector>

#include "report/prediction.h"

namespace forewarp {

/// MicrosecondsALaunch: from the start of one to the start of the next, of many launches in a stream.
enum class PublishedUnit : std::uint8_t {
  Microseconds,
  GigabytesPerSecond,
  TeraflopsPerSecond,
  Cycles,
  MicrosecondsALaunch
};

struct PublishedRow {
  std::string id, gpu, stem;
  std::string low;  ///< a case that is taken off, so that what both share cancels; empty: none
  std::string case_id;
  int launch = 0;
  double published = 0;
  PublishedUnit unit{};
  double work = 1;      ///< bytes or operations of the launch, or what a time or cycles are divided by
  std::string source;   ///< who measured it, where it stands
  std::string differs;  ///< what is not the same here
};

/// InputError with file, line and column for anything that is not as it should be.
std::vector<PublishedRow> read_published(const std::string& path);

/// What is predicted in the row's unit; `low` is null where the row has none.
double predicted_value(const PublishedRow&, const Prediction& high, const Prediction* low);

struct PublishedResult {
  PublishedRow row;
  double predicted = 0;
  std::string failure;  ///< why there is no prediction; empty: there is one
};

std::string write_published_text(const std::vector<PublishedResult>&);
std::string write_published_json(const std::vector<PublishedResult>&);

}  // namespace forewarp

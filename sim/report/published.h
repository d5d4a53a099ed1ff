// Compares predictions with measurements that others published: the rows of validation/published/*.yaml.
#pragma once

#include <string>
#include <vector>

#include "base/style.h"
#include "report/prediction.h"

namespace forewarp {

/// MicrosecondsALaunch: from the start of one launch to the start of the next, in a stream of many.
enum class PublishedUnit : std::uint8_t {
  Microseconds,
  GigabytesPerSecond,
  TeraflopsPerSecond,
  Cycles,
  MicrosecondsALaunch
};

struct PublishedRow {
  std::string id, gpu, stem;
  std::string low;  ///< a case that is subtracted, so that what both share cancels; empty: none
  std::string case_id;
  int launch = 0;  ///< kAllLaunches: all of the case, one after another
  static constexpr int kAllLaunches = -1;
  double sm_clock_mhz = 0;  ///< at which it was measured, if the source says; 0: the model's
  double published = 0;
  PublishedUnit unit{};
  double work = 1;      ///< bytes or operations of the launch, or the divisor of a time or of cycles
  std::string source;   ///< who measured it, and where it was published
  std::string differs;  ///< how their setup differs from ours
};

/// InputError with file, line and column if the file is invalid.
std::vector<PublishedRow> read_published(const std::string& path);

/// Of one launch, or of several one after another.
struct PredictedTime {
  double cycles = 0, ns = 0;
  double stream_gap_us = 0, hand_over_us = 0;
};

/// The prediction in the row's unit.
double predicted_value(const PublishedRow&, const PredictedTime&);

struct PublishedResult {
  PublishedRow row;
  double predicted = 0;
  std::string failure;  ///< why there is no prediction; empty if there is one
};

std::string write_published_text(const std::vector<PublishedResult>&, Style style = Style());
std::string write_published_json(const std::vector<PublishedResult>&, const std::vector<std::string>& changes = {});

}  // namespace forewarp

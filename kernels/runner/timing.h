// Times every launch of a case with events, cold and warm, and the case as a whole.
#pragma once

#include <string>
#include <vector>

#include "device_case.h"

namespace forewarp::runner {

struct Spread {
  double median = 0, least = 0, most = 0;
  int count = 0;
};

/// One row of the table; launch -1 is the whole case: all its launches back to back, warm.
struct TimingRow {
  std::string stem, id, kernel;
  int launch = 0;
  Spread cold, warm;  ///< microseconds
};

class CaseTimer {
 public:
  explicit CaseTimer(const Context& context);
  /// Rows for every launch of the case. The case must have run once before.
  std::vector<TimingRow> time(const DeviceCase& item, const std::string& stem, int repeat);

 private:
  Spread cold(const DeviceCase& item, std::size_t launch, int repeat);
  Spread warm(const DeviceCase& item, std::size_t launch, int repeat);
  Spread whole(const DeviceCase& item, int repeat);

  DeviceMemory scrub_;  ///< larger than L2
  Event before_, after_;
};

Spread spread_of(std::vector<double> values);
std::string timing_csv(const std::vector<TimingRow>& rows);
std::string timing_table(const std::vector<TimingRow>& rows);

}  // namespace forewarp::runner

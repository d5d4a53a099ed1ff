// Launches for a profiler around this program, and the list of what it saw.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "device_case.h"
#include "options.h"

namespace forewarp::runner {

/// A CSV row for each launch inside the profiler's range, written as it happens: a profiler that is stopped half way
/// leaves the rows of what it saw.
class Manifest {
 public:
  explicit Manifest(const std::string& path);  ///< empty: none
  ~Manifest();
  Manifest(const Manifest&) = delete;
  Manifest& operator=(const Manifest&) = delete;
  void add(const std::string& stem, const DeviceCase& item, std::size_t launch, int repeat);

 private:
  std::FILE* file_ = nullptr;
  int rows_ = 0;
};

using Deadline = std::chrono::steady_clock::time_point;

/// False when the deadline cut it short.
bool profile_case(const DeviceCase& item, const std::string& stem, const Options& options, Deadline deadline,
                  Manifest& manifest);

}  // namespace forewarp::runner

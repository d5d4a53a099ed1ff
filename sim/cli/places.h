// Files that go with the program: suites, profiles, traces.
#pragma once

#include <string>

namespace forewarp::cli {

/// The folder that holds `traces/` and `validation/`: FOREWARP_HOME, else near the program, else where it was built
/// from. InputError when there is none.
std::string home_folder();

std::string suites_file();
std::string published_folder();  ///< what others measured
std::string quantities_file();   ///< what the calibration kernels measure
std::string profile_file(const std::string& gpu, const std::string& stem);
std::string trace_launch_file(const std::string& stem);
std::string trace_cubin(const std::string& stem, int sm);

}  // namespace forewarp::cli

// Where the program's own files are: suites, profiles, traces.
#pragma once

#include <string>

namespace forewarp::cli {

/// The folder that holds `traces/` and `validation/`: FOREWARP_HOME, else near the program, else the source tree it was
/// built from. InputError if there is none.
std::string home_folder();

std::string suites_file();
std::string published_folder();  ///< measurements published by others
std::string quantities_file();   ///< quantities of the calibration kernels
std::string profile_file(const std::string& gpu, const std::string& stem);
std::string trace_launch_file(const std::string& stem);
std::string trace_cubin(const std::string& stem, int sm);

}  // namespace forewarp::cli

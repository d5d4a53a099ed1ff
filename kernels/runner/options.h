// The command line of forewarp-run.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace forewarp::runner {

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Image {
  std::string cubin;
  std::string launch_file;
};

struct Dump {
  std::string buffer;
  std::string path;
};

struct Options {
  std::vector<Image> images;
  std::vector<std::string> cases;  ///< empty: all
  std::vector<Dump> dumps;
  int repeat = -1;   ///< -1: the mode's default
  int distinct = 0;  ///< profiling: of launches alike in kernel, grid and block, only so many of a case; 0 = all
  int deadline = 0;  ///< profiling: no further launch after so many seconds; 0 = none
  int device = 0;
  bool warm = false;
  bool profile = false;
  bool list = false;
  bool help = false;
  bool query = false;
  std::string csv;
  std::string manifest;
};

Options parse_options(int argc, char** argv);
const char* usage();

}  // namespace forewarp::runner

// What a result records of the files it was predicted from, and the way back from a result to them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/pipeline.h"
#include "report/inputs.h"
#include "sketch/sketch.h"

namespace forewarp::cli {

class CommandLine;

/// Of `predict`: the image and the launch file as they were named.
ResultInputs kernel_inputs(const CommandLine&, const GpuModel&, const std::string& gpu, const Workload&);
/// Of `sketch`.
ResultInputs sketch_inputs(const CommandLine&, const GpuModel&);

/// A result read back.
struct OpenedResult {
  ResultInputs inputs;
  GpuModel model;
  Workload workload;
  std::optional<sketch::Sketches> sketches;
  std::vector<std::string> cases;                            ///< their ids, each once, in the result's order
  std::map<std::string, std::vector<std::string>> verdicts;  ///< by case, of each launch
  std::string version;                                       ///< of the program that wrote it
};

/// Reads a result and what it was predicted from. InputError if it is none, does not say what it was predicted from, or
/// if one of the files is missing or has changed since.
OpenedResult open_result(const std::string& path, const TextStore*);

}  // namespace forewarp::cli

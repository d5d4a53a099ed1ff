// The closed schema of hwmodels/*.yaml: its leaves, their units and ranges, and the members they set.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "hardware/gpu_model.h"

namespace forewarp {

/// What a file says: the model, its leaves in order, and where each is, for errors that need several of them.
struct GpuFile {
  std::string path;  ///< of the GPU's file; leaves of others come from its family's or from the command line
  GpuModel model;
  std::vector<Leaf> leaves;
  std::map<std::string, SourcePosition> places;  ///< of each leaf's value, by path
};

/// Reads keys, units, sources and ranges; the checks between leaves are check_gpu's.
GpuFile read_gpu(const config::Node& root, const std::string& path);

/// InputError for the first leaf that contradicts another.
void check_gpu(const GpuFile& file);

}  // namespace forewarp

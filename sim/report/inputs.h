// What a result was predicted from: all that is needed to predict it again, with other choices.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "timing/simulate.h"

namespace forewarp {

struct UsedFile {
  std::string path;  ///< as it was given
  std::string hash;  ///< of its bytes
};

struct ResultInputs {
  std::string command;                    ///< "predict" or "sketch"
  std::optional<UsedFile> image, launch;  ///< of a compiled kernel
  std::optional<UsedFile> sketch;
  std::vector<UsedFile> data;  ///< that fill buffers
  std::string gpu;             ///< name or file, as it was given
  std::string gpu_hash;        ///< of its numbers
  SimulateOptions options;
  bool assume_opcodes = false;
};

namespace report {

nlohmann::ordered_json inputs_json(const ResultInputs&);
/// InputError, which names the part, if one is missing or of another kind. `file` stands for the result.
ResultInputs read_inputs(const nlohmann::ordered_json&, const std::string& file);

}  // namespace report
}  // namespace forewarp

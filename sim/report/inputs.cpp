#include "report/inputs.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace forewarp::report {

namespace {

using Json = nlohmann::ordered_json;

Json file_json(const UsedFile& file) { return {{"file", file.path}, {"hash", file.hash}}; }

UsedFile read_used(const Json& j) { return {j.at("file").get<std::string>(), j.at("hash").get<std::string>()}; }

std::optional<UsedFile> find_used(const Json& j, const char* key) {
  if (!j.contains(key)) return std::nullopt;
  return read_used(j.at(key));
}

}  // namespace

Json inputs_json(const ResultInputs& in) {
  Json j{{"command", in.command}};
  if (in.image) j["image"] = file_json(*in.image);
  if (in.launch) j["launch"] = file_json(*in.launch);
  if (in.sketch) j["sketch"] = file_json(*in.sketch);
  j["data"] = Json::array();
  for (const UsedFile& file : in.data) j["data"].push_back(file_json(file));
  j["gpu"] = {{"file", in.gpu}, {"hash", in.gpu_hash}};
  const Effort& effort = in.options.effort;
  j["options"] = {{"cache", cache_state_name(in.options.caches)},
                  {"full", in.options.full},
                  {"budget_seconds", effort.seconds},
                  {"memory_bytes", effort.memory_bytes},
                  {"precision_pct", 100 * effort.precision},
                  {"exact", effort.exact},
                  {"detailed_instructions", in.options.detailed_instructions},
                  {"assume_opcodes", in.assume_opcodes}};
  return j;
}

ResultInputs read_inputs(const Json& j, const std::string& file) {
  try {
    ResultInputs in;
    in.command = j.at("command").get<std::string>();
    in.image = find_used(j, "image");
    in.launch = find_used(j, "launch");
    in.sketch = find_used(j, "sketch");
    for (const Json& one : j.at("data")) in.data.push_back(read_used(one));
    const UsedFile gpu = read_used(j.at("gpu"));
    in.gpu = gpu.path;
    in.gpu_hash = gpu.hash;
    const Json& options = j.at("options");
    const auto cache = options.at("cache").get<std::string>();
    const auto* known = std::find(std::begin(kCacheStateNames), std::end(kCacheStateNames), cache);
    if (known == std::end(kCacheStateNames)) throw InputError({file}, "inputs.options.cache is '" + cache + "'");
    in.options.caches = static_cast<CacheState>(known - std::begin(kCacheStateNames));
    in.options.full = options.at("full").get<bool>();
    Effort& effort = in.options.effort;
    effort.seconds = options.at("budget_seconds").get<double>();
    effort.memory_bytes = options.at("memory_bytes").get<std::uint64_t>();
    effort.precision = options.at("precision_pct").get<double>() / 100;
    effort.exact = options.at("exact").get<bool>();
    in.options.detailed_instructions = options.at("detailed_instructions").get<std::uint64_t>();
    in.assume_opcodes = options.at("assume_opcodes").get<bool>();
    const bool kernel = in.image && in.launch && !in.sketch, sketch = in.sketch && !in.image && !in.launch;
    if (!kernel && !sketch)
      throw InputError({file}, "inputs name neither an image with a launch file nor a sketch", "predict it again");
    return in;
  } catch (const nlohmann::json::exception& e) {
    throw InputError({file}, std::string("inputs are not understood: ") + e.what(), "predict it again");
  }
}

}  // namespace forewarp::report

#include "cli/inputs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cache/content_key.h"
#include "cli/command_line.h"

namespace forewarp::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string hash_of_file(const std::string& path) {
  const std::vector<std::uint8_t> bytes = read_binary_file(path);
  KeyMaker maker;
  maker.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return maker.key().text();
}

ResultInputs common_inputs(const char* command, const CommandLine& c, const GpuModel& model, const std::string& gpu) {
  ResultInputs in;
  in.command = command;
  in.gpu = gpu;
  in.gpu_hash = hex(model.content_hash);
  in.options = c.simulation();
  return in;
}

/// The file as it was when its hash was taken.
void check_unchanged(const UsedFile& file, const std::string& hash, const std::string& result) {
  if (file.hash == hash) return;
  throw InputError({file.path}, "has changed since " + result + " was predicted from it", "predict it again");
}

void check_there(const UsedFile& file, const std::string& result) {
  std::error_code error;
  if (std::filesystem::is_regular_file(file.path, error)) return;
  throw InputError({file.path}, "is not there, and " + result + " was predicted from it",
                   "its name counts from the current folder: run this where that was predicted");
}

std::vector<std::string> ids_of(const Json& cases) {
  std::vector<std::string> ids;
  for (const Json& one : cases) {
    auto id = one.at("id").get<std::string>();
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(std::move(id));
  }
  return ids;
}

std::vector<std::string> changes_of(const Json& result) {
  std::vector<std::string> changes;
  if (!result.contains("gpu_changes")) return changes;
  for (const auto& [leaf, value] : result.at("gpu_changes").items())
    changes.push_back(leaf + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  return changes;
}

void check_result(const Json& j, const std::string& path) {
  if (!j.is_object() || !j.contains("forewarp"))
    throw InputError({path}, "is no result of forewarp", "write one with `forewarp predict --json`");
  if (j.contains("gpus"))
    throw InputError({path}, "is a comparison of several GPUs", "predict for one of them, and take that result");
  if (!j.contains("cases")) throw InputError({path}, "holds no cases", "take a result of `predict` or `sketch`");
  if (!j.contains("inputs"))
    throw InputError({path},
                     "does not say what it was predicted from: an older forewarp wrote it (" + j.at("forewarp").dump() +
                         "), or another command than predict and sketch",
                     "predict it again with this one, " FOREWARP_VERSION);
}

}  // namespace

ResultInputs kernel_inputs(const CommandLine& c, const GpuModel& model, const std::string& gpu,
                           const Workload& workload) {
  ResultInputs in = common_inputs("predict", c, model, gpu);
  in.assume_opcodes = c.has("assume-opcodes");
  in.image = UsedFile{c.text("IMAGE"), hex(workload.program->content_hash)};
  in.launch = UsedFile{c.text("launch"), hash_of_file(c.text("launch"))};
  for (const Case& item : workload.launches->cases)
    for (const Buffer& buffer : item.buffers) {
      const auto* fill = std::get_if<FillFile>(&buffer.fill);
      std::error_code error;
      if (fill == nullptr || !std::filesystem::is_regular_file(fill->path, error)) continue;
      const auto same = [&](const UsedFile& file) { return file.path == fill->path; };
      if (std::none_of(in.data.begin(), in.data.end(), same)) in.data.push_back({fill->path, hash_of_file(fill->path)});
    }
  return in;
}

ResultInputs sketch_inputs(const CommandLine& c, const GpuModel& model) {
  ResultInputs in = common_inputs("sketch", c, model, c.text("gpu"));
  in.sketch = UsedFile{c.text("FILE"), hash_of_file(c.text("FILE"))};
  return in;
}

OpenedResult open_result(const std::string& path, const TextStore* texts) {
  const Json j = Json::parse(read_text_file(path), nullptr, false);
  check_result(j, path);
  OpenedResult opened;
  try {
    opened.version = j.at("forewarp").get<std::string>();
    opened.inputs = report::read_inputs(j.at("inputs"), path);
    opened.cases = ids_of(j.at("cases"));
    for (const Json& one : j.at("cases"))
      opened.verdicts[one.at("id").get<std::string>()].push_back(
          one.at("bottleneck").at("sentence").get<std::string>());
    opened.model = load_gpu_model(opened.inputs.gpu, changes_of(j));
  } catch (const nlohmann::json::exception& e) {
    throw InputError({path}, std::string("is not understood: ") + e.what(), "predict it again");
  }
  const ResultInputs& in = opened.inputs;
  check_unchanged({in.gpu, in.gpu_hash}, hex(opened.model.content_hash), path);
  for (const UsedFile& file : in.data) {
    check_there(file, path);
    check_unchanged(file, hash_of_file(file.path), path);
  }
  if (in.sketch) {
    check_there(*in.sketch, path);
    check_unchanged(*in.sketch, hash_of_file(in.sketch->path), path);
    opened.sketches = sketch::read_sketches(in.sketch->path, opened.model);
    opened.workload = {opened.sketches->program, opened.sketches->launches, false};
    return opened;
  }
  check_there(*in.image, path);
  check_there(*in.launch, path);
  check_unchanged(*in.launch, hash_of_file(in.launch->path), path);
  opened.workload = load_workload(in.image->path, in.launch->path, {in.assume_opcodes, opened.model.sm, texts});
  check_unchanged(*in.image, hex(opened.workload.program->content_hash), path);
  return opened;
}

}  // namespace forewarp::cli

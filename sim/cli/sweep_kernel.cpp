#include "cli/sweep_kernel.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "cli/output.h"
#include "cli/point_json.h"

namespace forewarp::cli {

namespace fs = std::filesystem;
using config::Node;
using sweep::Point;

KernelSource::KernelSource(const sweep::SweepFile& file, const SimulateOptions& options, bool assume_opcodes,
                           std::optional<PredictionCache> cache, std::size_t traces)
    : file_(file),
      block_(read_block(file.what)),
      options_(options),
      assume_opcodes_(assume_opcodes),
      cache_(std::move(cache)),
      shelf_(traces) {}

KernelSource::Block KernelSource::read_block(const Node& node) {
  std::optional<Block> block;
  node.read_map([&](config::Map& m) {
    const Node image = m.at("image");
    const auto launch = m.find("launch"), change = m.find("change");
    const Node item = m.at("case", launch ? "name a case of the launch file" : "describe it as in a launch file");
    if (!launch && !item.is_map())
      throw item.error("is the id of a case, but there is no launch file", "add `launch: FILE`, or describe the case");
    if (launch && item.is_map())
      throw item.error("describes a case, but a launch file is named",
                       "give the case's id and what differs as `change`");
    if (!launch && change) throw change->error("needs a launch file to change a case of", "change the case itself");
    block = Block{image, item, launch, change};
  });
  return *block;
}

std::string KernelSource::path_of(const Node& scalar, const Point& point) const {
  return (fs::path(file_.path).parent_path() / sweep::text_of(scalar, point)).lexically_normal().string();
}

KernelSource::Gpu KernelSource::gpu_of(const Point& point) const {
  Gpu gpu{sweep::text_of(file_.gpu, point), {}};
  if (gpu.name.find('/') != std::string::npos || gpu.name.ends_with(".yaml"))
    gpu.name = (fs::path(file_.path).parent_path() / gpu.name).lexically_normal().string();
  if (gpu.name.ends_with(".yaml") && gpu.name.find('/') == std::string::npos) gpu.name = "./" + gpu.name;
  for (const auto& [leaf, value] : file_.set) gpu.changes.push_back(leaf + "=" + sweep::text_of(value, point));
  return gpu;
}

Workload KernelSource::workload_of(const Point& point) {
  const std::string image = path_of(block_.image, point);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Program>& program = programs_[image];
  if (!program) {
    std::vector<std::string> warnings;
    program = std::make_shared<const Program>(
        load_program(image, assume_opcodes_ ? UnknownOpcode::Assume : UnknownOpcode::Reject, &warnings));
    for (const std::string& warning : warnings) warn(warning);
  }
  return {program, nullptr, assume_opcodes_};
}

Case KernelSource::case_of(const Point& point) {
  constexpr const char* kOwn = "point";  // a case without a launch file has no id
  if (!block_.launch) return read_case(kOwn, sweep::resolve(block_.item, point), file_.path);
  const std::string path = path_of(*block_.launch, point), id = sweep::text_of(block_.item, point);
  std::optional<Node> root;
  {
    const std::lock_guard lock(mutex_);
    const auto known = launch_files_.find(path);
    root = known != launch_files_.end() ? known->second
                                        : launch_files_.emplace(path, config::read_file(path)).first->second;
  }
  std::string known;
  for (const config::Entry& entry : root->entries()) {
    known += (known.empty() ? "" : ", ") + entry.key;
    if (entry.key != id) continue;
    if (!block_.change) return read_case(id, entry.value, path);
    const Node own = config::rewrite(entry.value, [](const Node&) { return std::nullopt; });
    return read_case(id, config::overlay(own, sweep::resolve(*block_.change, point), ""), path);
  }
  throw block_.item.error("is " + config::quoted(id) + ", which is no case of " + path, "cases: " + known);
}

sweep::Identity KernelSource::identify(const Point& point) {
  const Workload workload = workload_of(point);
  const Case item = case_of(point);
  const Gpu gpu = gpu_of(point);
  KeyMaker traced;
  for (std::size_t i = 0; i < item.launches.size(); ++i)
    traced.add(trace_key(*workload.program, item, static_cast<int>(i), assume_opcodes_, 0, options_.effort).text());
  // The numbers of a changed model follow from the file's and the changes.
  GpuModel model;
  {
    const std::lock_guard lock(mutex_);
    const auto known = models_.find(gpu.name);
    if (known == models_.end()) load_gpu_model(gpu.name, gpu.changes);  // a leaf that is not there stops the sweep
    model = known != models_.end() ? known->second : models_.emplace(gpu.name, load_gpu_model(gpu.name)).first->second;
  }
  KeyMaker whole;
  whole.add(timing_key(traced.key(), model, options_).text());
  for (const std::string& change : gpu.changes) whole.add(change);
  return {whole.key().text(), traced.key().text()};
}

std::string KernelSource::predict(const Point& point) {
  const Workload workload = workload_of(point);
  const Case item = case_of(point);
  const Gpu gpu = gpu_of(point);
  const GpuModel model = load_gpu_model(gpu.name, gpu.changes);
  check_case(model, workload, item);
  const GpuModel* const models[] = {&model};
  return point_json(predict_case(models, workload, item, options_, {}, cache_ ? &*cache_ : nullptr, &shelf_).front());
}

}  // namespace forewarp::cli

#include "cli/sweep_sources.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "cli/output.h"
#include "cli/point_json.h"
#include "sketch/sketch.h"

namespace forewarp::cli {

namespace fs = std::filesystem;
using config::Node;
using sweep::Point;

namespace {

constexpr std::size_t kModels = 64;      // that are kept
constexpr const char* kPoint = "point";  // id of a case that the sweep file describes itself

}  // namespace

LaunchSource::LaunchSource(const sweep::SweepFile& file, const SimulateOptions& options, bool assume_opcodes,
                           std::optional<PredictionCache> cache, std::size_t traces)
    : file_(file), assume_opcodes_(assume_opcodes), cache_(std::move(cache)), options_(options), shelf_(traces) {}

std::string LaunchSource::path_of(const Node& scalar, const Point& point) const {
  return (fs::path(file_.path).parent_path() / sweep::text_of(scalar, point)).lexically_normal().string();
}

LaunchSource::Gpu LaunchSource::gpu_of(const Point& point) const {
  Gpu gpu{sweep::text_of(file_.gpu, point), {}};
  const bool is_file = gpu.name.find('/') != std::string::npos || gpu.name.ends_with(".yaml");
  if (is_file) gpu.name = path_of(file_.gpu, point);
  for (const auto& [leaf, value] : file_.set) gpu.changes.push_back(leaf + "=" + sweep::text_of(value, point));
  return gpu;
}

std::shared_ptr<const GpuModel> LaunchSource::model(const std::string& name, const std::vector<std::string>& changes) {
  std::string key = name;
  for (const std::string& change : changes) key += '\0' + change;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = models_.find(key); known != models_.end()) return known->second;
  }
  auto loaded = std::make_shared<const GpuModel>(load_gpu_model(name, changes));
  const std::lock_guard lock(mutex_);
  if (models_.size() >= kModels) models_.clear();
  return models_.emplace(key, std::move(loaded)).first->second;
}

sweep::Identity LaunchSource::identify(const Point& point) {
  const Gpu gpu = gpu_of(point);
  const auto as_is = model(gpu.name, {});
  if (&point == file_.points.data()) model(gpu.name, gpu.changes);  // a leaf that is not there stops the sweep
  const Work work = make(point, gpu);
  KeyMaker traced;
  for (std::size_t i = 0; i < work.item.launches.size(); ++i)
    traced.add(
        trace_key(*work.workload.program, work.item, static_cast<int>(i), assume_opcodes_, 0, options_.effort).text());
  // The numbers of a changed model follow from the file's and the changes.
  KeyMaker whole;
  whole.add(timing_key(traced.key(), *as_is, options_).text());
  for (const std::string& change : gpu.changes) whole.add(change);
  return {whole.key().text(), traced.key().text()};
}

std::string LaunchSource::predict(const Point& point) {
  const Gpu gpu = gpu_of(point);
  const auto on = model(gpu.name, gpu.changes);
  const Work work = make(point, gpu);
  check_case(*on, work.workload, work.item);
  const GpuModel* const models[] = {on.get()};
  return point_json(
      predict_case(models, work.workload, work.item, options_, {}, cache_ ? &*cache_ : nullptr, &shelf_).front());
}

KernelSource::KernelSource(const sweep::SweepFile& file, const SimulateOptions& options, bool assume_opcodes,
                           std::optional<PredictionCache> cache, std::size_t traces)
    : LaunchSource(file, options, assume_opcodes, std::move(cache), traces), block_(read_block(file.what)) {}

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

/// The kernels that the case names; of an image for several architectures, those of the GPU's.
std::shared_ptr<const Program> KernelSource::program(const std::string& image, const Case& item, int sm) {
  std::set<std::string> names;
  for (const Launch& launch : item.launches) names.insert(launch.kernel);
  std::string key = image + '\0' + std::to_string(sm);
  for (const std::string& name : names) key += '\0' + name;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Program>& program = programs_[key];
  if (program) return program;
  std::vector<std::string> warnings;
  ImageOptions options;
  options.sm = sm;
  options.kernels.emplace(names.begin(), names.end());
  options.unknown = assume_opcodes_ ? UnknownOpcode::Assume : UnknownOpcode::Reject;
  options.warnings = &warnings;
  options.texts = cache_ ? &*cache_ : nullptr;
  program = std::make_shared<const Program>(load_program(image, options));
  for (const std::string& warning : warnings) warn(warning);
  return program;
}

LaunchSource::Work KernelSource::make(const Point& point, const Gpu& gpu) {
  Case item = case_of(point);
  auto code = program(path_of(block_.image, point), item, model(gpu.name, {})->sm);
  return {{std::move(code), nullptr, assume_opcodes_}, std::move(item)};
}

Case KernelSource::case_of(const Point& point) {
  if (!block_.launch) return read_case(kPoint, sweep::resolve(block_.item, point), file_.path);
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

LaunchSource::Work SketchSource::make(const Point& point, const Gpu& gpu) {
  const Node what = config::wrap(kPoint, sweep::resolve(file_.what, point));
  const auto on = model(gpu.name, gpu.changes);
  try {
    const sketch::Sketches sketches = sketch::read_sketches(what, file_.path, *on);
    return {{sketches.program, sketches.launches, assume_opcodes_}, sketches.launches->cases.front()};
  } catch (const InputError& e) {
    throw NotLowered(std::string(e.what()));
  }
}

}  // namespace forewarp::cli

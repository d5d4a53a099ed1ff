// What a sweep can predict: launches of a compiled kernel, or a sketch.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache/prediction_cache.h"
#include "cli/pipeline.h"
#include "sweep/source.h"
#include "sweep/sweep_file.h"

namespace forewarp::cli {

/// A point's GPU, and a workload with one case for it.
class LaunchSource : public sweep::Source {
 public:
  /// `traces`: that are kept in memory.
  LaunchSource(const sweep::SweepFile&, const SimulateOptions&, bool assume_opcodes,
               std::optional<PredictionCache> cache, std::size_t traces);

  sweep::Identity identify(const sweep::Point&) override;
  std::string predict(const sweep::Point&) override;

 protected:
  struct Gpu {
    std::string name;
    std::vector<std::string> changes;
  };
  struct Work {
    Workload workload;
    Case item;
  };
  virtual Work make(const sweep::Point&, const Gpu&) = 0;

  /// The last few models are kept.
  std::shared_ptr<const GpuModel> model(const std::string& name, const std::vector<std::string>& changes);
  std::string path_of(const config::Node& scalar, const sweep::Point&) const;

  const sweep::SweepFile& file_;
  const bool assume_opcodes_;
  const std::optional<PredictionCache> cache_;
  std::mutex mutex_;  ///< of what is kept, here and in what is derived

 private:
  Gpu gpu_of(const sweep::Point&) const;

  const SimulateOptions options_;
  TraceShelf shelf_;
  std::map<std::string, std::shared_ptr<const GpuModel>> models_;
};

/// kernel: {image, launch, case, change}
class KernelSource : public LaunchSource {
 public:
  static constexpr const char* kKind = "kernel";
  KernelSource(const sweep::SweepFile&, const SimulateOptions&, bool assume_opcodes,
               std::optional<PredictionCache> cache, std::size_t traces);

 private:
  struct Block {
    config::Node image, item;  ///< item: the case, or its id in the launch file
    std::optional<config::Node> launch, change;
  };
  static Block read_block(const config::Node&);

  Work make(const sweep::Point&, const Gpu&) override;
  std::shared_ptr<const Program> program(const std::string& image, const Case&, int sm);
  Case case_of(const sweep::Point&);

  const Block block_;
  std::map<std::string, std::shared_ptr<const Program>> programs_;
  std::map<std::string, config::Node> launch_files_;
};

/// A sketch that cannot be built as a point has it.
class NotLowered : public InputError {
 public:
  using InputError::InputError;
};

/// sketch: what a sketch file says of a sketch
class SketchSource : public LaunchSource {
 public:
  static constexpr const char* kKind = "sketch";
  using LaunchSource::LaunchSource;

 private:
  Work make(const sweep::Point&, const Gpu&) override;
};

}  // namespace forewarp::cli

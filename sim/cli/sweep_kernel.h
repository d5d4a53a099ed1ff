// What a sweep over launches of a compiled kernel predicts.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/prediction_cache.h"
#include "cli/pipeline.h"
#include "sweep/source.h"
#include "sweep/sweep_file.h"

namespace forewarp::cli {

class KernelSource : public sweep::Source {
 public:
  static constexpr const char* kKind = "kernel";

  /// `traces`: that are kept in memory.
  KernelSource(const sweep::SweepFile&, const SimulateOptions&, bool assume_opcodes,
               std::optional<PredictionCache> cache, std::size_t traces);

  sweep::Identity identify(const sweep::Point&) override;
  std::string predict(const sweep::Point&) override;

 private:
  struct Gpu {
    std::string name;
    std::vector<std::string> changes;
  };

  /// The block `kernel` of the file.
  struct Block {
    config::Node image, item;  ///< item: the case, or its id in the launch file
    std::optional<config::Node> launch, change;
  };
  static Block read_block(const config::Node&);

  std::string path_of(const config::Node& scalar, const sweep::Point&) const;
  Gpu gpu_of(const sweep::Point&) const;
  Workload workload_of(const sweep::Point&);
  Case case_of(const sweep::Point&);

  const sweep::SweepFile& file_;
  const Block block_;
  const SimulateOptions options_;
  const bool assume_opcodes_;
  const std::optional<PredictionCache> cache_;
  TraceShelf shelf_;
  std::mutex mutex_;  ///< of what follows
  std::map<std::string, std::shared_ptr<const Program>> programs_;
  std::map<std::string, config::Node> launch_files_;
  std::map<std::string, GpuModel> models_;  ///< as their files say
};

}  // namespace forewarp::cli

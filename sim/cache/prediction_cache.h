// Keeps finished traces and timings, and disassembly. Reports are always rebuilt from them, so a change to a report or
// plot costs no simulation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/content_key.h"
#include "cache/store.h"
#include "program/disassembly.h"
#include "timing/result.h"
#include "trace/trace.h"

namespace forewarp {

class PredictionCache : public TextStore {
 public:
  explicit PredictionCache(std::string folder, std::uint64_t most_bytes = default_cache_bytes())
      : store_(std::move(folder), most_bytes) {}

  struct Traced {
    std::shared_ptr<KernelTrace> trace;
    std::vector<std::string> warnings;  ///< the emulation's
  };
  std::optional<Traced> trace(const ContentKey&) const;
  void keep(const ContentKey&, const Traced&) const;

  std::optional<TimingResult> timing(const ContentKey&) const;
  void keep(const ContentKey&, const TimingResult&) const;

  std::optional<std::string> get(std::uint64_t high, std::uint64_t low) const override;
  void put(std::uint64_t high, std::uint64_t low, const std::string& text) const override;

 private:
  Store store_;
};

}  // namespace forewarp

// A 128-bit hash of everything a piece of work depends on: equal keys, equal results.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/gpu_model.h"
#include "launch/launch.h"
#include "program/program.h"
#include "timing/simulate.h"

namespace forewarp {

struct ContentKey {
  std::uint64_t words[2]{};
  std::string text() const;  ///< 32 hexadecimal digits
  bool operator==(const ContentKey&) const = default;
};

/// Collects the values that go into a key. Each is stored with its size, so neighbours cannot run together.
class KeyMaker {
 public:
  void add(std::uint64_t value);
  void add(std::string_view text);
  ContentKey key() const;

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Key of a launch's trace: engine, image and disassembly, the case's launches and buffers (with the files they are
/// filled from), and how unknown opcodes are treated.
ContentKey trace_key(const Program&, const Case&, int launch, bool assume_opcodes, int sm_count = 0,
                     const Effort& effort = {});
/// Key of its timing: the trace's key, the GPU file and the options.
ContentKey timing_key(const ContentKey& trace, const GpuModel&, const SimulateOptions&);

}  // namespace forewarp

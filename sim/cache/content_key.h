// What a piece of work depends on, as 128 bits: equal keys, equal results.
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

/// Gathers values; each is told apart from its neighbours by its size.
class KeyMaker {
 public:
  void add(std::uint64_t value);
  void add(std::string_view text);
  ContentKey key() const;

 private:
  std::vector<std::uint8_t> bytes_;
};

/// The trace of a launch: engine, image and its disassembly, the case's buffers (with the files they are filled from)
/// and launches, and how unknown opcodes are taken.
ContentKey trace_key(const Program&, const Case&, int launch, bool assume_opcodes);
/// Its timing: that, the GPU model's file and the options.
ContentKey timing_key(const ContentKey& trace, const GpuModel&, const SimulateOptions&);

}  // namespace forewarp

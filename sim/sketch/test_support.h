// Runs a sketch with all values.
#pragma once

#include <string>
#include <vector>

#include "emulation/emulation.h"
#include "sketch/sketch.h"

namespace forewarp::sketch::test {

GpuModel gpu(const std::string& name);

struct Run {
  Run(const std::string& text, const GpuModel&);
  std::vector<std::uint8_t> start(const std::string& buffer) const;
  std::vector<std::uint8_t> end(const std::string& buffer) const;

  Sketches sketches;
  EmulatedCase result;

 private:
  const Case& item() const { return sketches.launches->cases.front(); }
  std::size_t index(const std::string& buffer) const;
};

/// What is said of a sketch that is refused; empty where it is not.
std::string refusal(const std::string& text, const std::string& gpu_name = "h200-sxm");

std::vector<float> floats(const std::vector<std::uint8_t>&);
std::vector<float> halves(const std::vector<std::uint8_t>&);  ///< f16
std::vector<float> brains(const std::vector<std::uint8_t>&);  ///< bf16
std::vector<float> numbers(const std::vector<std::uint8_t>&, const std::string& type);

}  // namespace forewarp::sketch::test

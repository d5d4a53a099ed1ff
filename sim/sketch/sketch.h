// Sketches: short descriptions of kernels that are not written yet (docs/sketch.md), lowered to the machine code that
// the compiler would make of them. What comes out is a program and a launch file like any other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "hardware/gpu_model.h"
#include "launch/launch.h"
#include "program/program.h"

namespace forewarp::sketch {

/// One sketch lowered: its kernels, and a case that launches them.
struct Draft {
  Case item;
  std::vector<Kernel> kernels;
  std::vector<std::string> assumptions;  ///< what the sketch does not say, and which rule said it
  double seconds = 0;                    ///< of a processor, that are enough for many waves
  std::uint64_t tiles = 0;               ///< that blocks take one after another; 0: a block has one

  /// Adds a buffer; its index.
  int buffer(const std::string& name, std::uint64_t bytes, const Fill& fill);
  void assume(const std::string& what) { assumptions.push_back(what); }
};

/// All sketches of a file: a kernel's name begins with its sketch's id, a case is called by it.
struct Sketches {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const LaunchFile> launches;
  std::vector<std::vector<std::string>> assumptions;  ///< by case
  std::vector<double> seconds;                        ///< by case: of a processor, that are enough for many waves
  std::vector<std::uint64_t> tiles;  ///< by case: that blocks take one after another; 0: a block has one
};

/// Reads and lowers a file. InputError with file, line and column.
Sketches read_sketches(const std::string& path, const GpuModel&);
/// The same of what a file says; `path` stands for it.
Sketches read_sketches(const config::Node& root, const std::string& path, const GpuModel&);
/// The same of text; `name` stands for the file.
Sketches parse_sketches(const std::string& text, const std::string& name, const GpuModel&);

// The families, by their key.
Draft draft_elementwise(const std::string& id, const config::Node&, const GpuModel&);
Draft draft_reduction(const std::string& id, const config::Node&, const GpuModel&);
Draft draft_attention(const std::string& id, const config::Node&, const GpuModel&);
Draft draft_matmul(const std::string& id, const config::Node&, const GpuModel&);
Draft draft_tiles(const std::string& id, const config::Node&, const GpuModel&);

}  // namespace forewarp::sketch

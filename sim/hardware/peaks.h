// What follows from a GPU's numbers: the rates it can reach at most, and which numbers do not go together although each
// is possible by itself.
#pragma once

#include <string>
#include <vector>

#include "hardware/gpu_model.h"

namespace forewarp {

struct Peak {
  std::string name;  ///< "fp32", "L2 read"
  double per_second = 0;
  const char* unit = "";  ///< "FLOP/s", "OP/s", "B/s"
};

/// Of instructions that do `operations` in each lane, one after another in all sub-partitions; 0: no such pipe.
double pipe_peak(const GpuModel&, Pipe, double operations);
/// Operations by type of number, then bandwidths from L1 to DRAM.
std::vector<Peak> derived_peaks(const GpuModel&);
/// Of each type of number, in the instructions that do most of it a cycle: the roofs of a roofline. Named as the rows
/// of a kernel's work: "fp32", "int32", "tensor_bf16", ...
std::vector<Peak> arithmetic_roofs(const GpuModel&);
/// A load's idle latency from DRAM, to a line of the near partition.
double dram_latency_ns(const GpuModel&);
/// What does not add up, a sentence each.
std::vector<std::string> doubts(const GpuModel&);

}  // namespace forewarp

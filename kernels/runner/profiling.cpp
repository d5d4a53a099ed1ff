#include "profiling.h"

#include <cudaProfiler.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <tuple>

namespace forewarp::runner {

Manifest::Manifest(const std::string& path) {
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), "w");
  if (file_ == nullptr) throw InputError({path}, std::string("cannot be written: ") + std::strerror(errno));
  std::fputs(
      "sequence,stem,case,launch,repeat,kernel,grid_x,grid_y,grid_z,block_x,block_y,block_z,dynamic_shared_bytes\n",
      file_);
}

Manifest::~Manifest() {
  if (file_ != nullptr) std::fclose(file_);
}

void Manifest::add(const std::string& stem, const DeviceCase& item, std::size_t index, int repeat) {
  if (file_ == nullptr) return;
  const Launch& launch = item.description().launches[index];
  std::fprintf(file_, "%d,%s,%s,%zu,%d,\"%s\",%u,%u,%u,%u,%u,%u,%u\n", rows_++, stem.c_str(),
               item.description().id.c_str(), index, repeat, item.function(index).symbol.c_str(), launch.grid.x,
               launch.grid.y, launch.grid.z, launch.block.x, launch.block.y, launch.block.z,
               launch.dynamic_shared_bytes);
  std::fflush(file_);
}

bool profile_case(const DeviceCase& item, const std::string& stem, const Options& options, Deadline deadline,
                  Manifest& manifest) {
  using Likeness = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint32_t>;
  const int repeat = options.repeat < 0 ? 1 : options.repeat;
  for (int i = 0; i < repeat; ++i) {
    std::map<Likeness, int> seen;
    for (std::size_t index = 0; index < item.launches(); ++index) {
      const Launch& launch = item.description().launches[index];
      const std::uint64_t grid = (std::uint64_t{launch.grid.x} << 32) | (launch.grid.y << 16) | launch.grid.z;
      const std::uint64_t block = (std::uint64_t{launch.block.x} << 32) | (launch.block.y << 16) | launch.block.z;
      int& alike = seen[{item.function(index).symbol, grid, block, launch.dynamic_shared_bytes}];
      if (options.distinct > 0 && alike >= options.distinct) {
        item.launch(index);  // outside the range: later launches still find its results
        continue;
      }
      if (std::chrono::steady_clock::now() > deadline) return false;
      ++alike;
      if (options.warm) {
        item.launch(index);
        FW_CUDA(cuCtxSynchronize());
      }
      manifest.add(stem, item, index, i);
      FW_CUDA(cuProfilerStart());
      item.launch(index);
      FW_CUDA(cuCtxSynchronize());
      FW_CUDA(cuProfilerStop());
    }
  }
  return true;
}

}  // namespace forewarp::runner

#include "base/error.h"
#include "base/limits.h"
#include "emulation/emulation.h"

namespace forewarp {
namespace {

std::string extent_text(const Dim3& d) {
  return "[" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + "]";
}

void settle(const Kernel& kernel, Launch& launch) {
  if (kernel.cluster.count() == 0 || launch.cluster == kernel.cluster) return;
  const std::string declared = "kernel " + kernel.demangled + " is compiled for clusters of " +
                               extent_text(kernel.cluster) + " blocks (__cluster_dims__)";
  if (launch.cluster.count() > 0)
    throw InputError(launch.where, declared + ", but the launch gives " + extent_text(launch.cluster),
                     "leave `cluster` out, or give the same");
  if (kernel.cluster.count() > kMostClusterBlocks)
    throw InputError(launch.where, declared + "; at most 16 are possible");
  if (!divides(kernel.cluster, launch.grid))
    throw InputError(launch.where, declared + ", which do not divide the grid",
                     "make each extent of the grid a multiple of theirs");
  launch.cluster = kernel.cluster;
}

}  // namespace

void settle_clusters(const Program& program, LaunchFile& file) {
  for (Case& item : file.cases)
    for (Launch& launch : item.launches)
      if (const Kernel* kernel = program.find(launch.kernel); kernel != nullptr) settle(*kernel, launch);
}

}  // namespace forewarp

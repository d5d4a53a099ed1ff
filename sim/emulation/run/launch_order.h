// Decides which launches of a case must run because another one reads their values. A launch touches only buffers it
// has pointers to (unless pointers come from files or the program's variables) and writes only those that its trace
// shows; what nobody reads need not be computed.
#pragma once

#include <span>
#include <vector>

#include "launch/launch.h"
#include "trace/trace.h"

namespace forewarp::emulation {

class LaunchOrder {
 public:
  /// `addresses`: of the case's buffers; `module_bytes`: of the program's variables (Program::module_data).
  LaunchOrder(const Case&, std::span<const std::uint64_t> addresses, std::uint64_t module_bytes);

  /// What launch `index` writes, as far as its trace shows.
  void traced(int index, const KernelTrace&);

  /// Launches that must run, in this order, before `index` finds what it reads. They count as run from then on.
  std::vector<int> run_before(int index);

 private:
  struct Place {
    std::uint64_t begin = 0, end = 0;
    bool meets(std::uint64_t first, std::uint64_t last) const { return first < end && last >= begin; }
  };
  using Places = std::vector<bool>;  ///< by place
  static bool meet(const Places&, const Places&);

  std::vector<Place> places_;  ///< the buffers, then the program's variables if there are any
  std::size_t buffers_ = 0;
  std::vector<Places> touched_, written_;  ///< by launch
  std::vector<bool> run_;
};

}  // namespace forewarp::emulation

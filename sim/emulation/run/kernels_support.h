// The project's own kernels in tests: their files, their cases with results that are checked, their buffers by name.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "emulation/emulation.h"

namespace forewarp {

inline const std::string kTraces = std::string(FOREWARP_SOURCE_DIR) + "/traces/";

inline bool is_check(const Case& item) { return item.id.find("_check_") != std::string::npos; }

inline std::size_t buffer_index(const Case& item, const std::string& name) {
  for (std::size_t i = 0; i < item.buffers.size(); ++i) {
    if (item.buffers[i].name == name) return i;
  }
  FAIL("no buffer " << name << " in " << item.id);
  return 0;
}

inline int int_argument(const Launch& launch, std::size_t i) {
  return static_cast<int>(static_cast<std::uint32_t>(launch.arguments[i].bits()));
}

}  // namespace forewarp

#include "program/slice.h"

#include <catch2/catch.hpp>
#include <iostream>
#include <filesystem>

using namespace forewarp;

TEST_CASE("scratch slices") {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FOREWARP_SOURCE_DIR "/traces")) {
    if (entry.path().extension() != ".cubin" || !std::filesystem::exists(entry.path().string() + ".json")) continue;
    Program p = load_program(entry.path().string());
    for (auto& k : p.kernels) {
      auto s = control_slice(k);
      std::cout << entry.path().filename() << p.sm << " " << k.name << " " << s.count() << " of " << k.instructions.size() << " sh " << s.needs_shared_values << " gl " << s.needs_global_values << " lo " << s.needs_local_values << "\n";
      if (std::getenv("FW_K") && k.name == std::getenv("FW_K")) for (size_t i = 0; i < k.instructions.size(); ++i) std::cout << (s.needed[i] ? "* " : "  ") << k.text[i] << "\n";
    }
  }
}

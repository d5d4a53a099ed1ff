#include "program/program.h"

#include <catch2/catch.hpp>
#include <filesystem>

using namespace forewarp;

TEST_CASE("every cubin in traces/ loads without an unknown form") {
  int cubins = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FOREWARP_SOURCE_DIR "/traces")) {
    if (entry.path().extension() != ".cubin" || !std::filesystem::exists(entry.path().string() + ".json")) continue;
    INFO(entry.path().string());
    const Program program = load_program(entry.path().string());
    CHECK(!program.kernels.empty());
    ++cubins;
  }
  CHECK(cubins > 0);
}

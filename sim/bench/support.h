// What the benchmarks run: cases of the project's traces.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "base/error.h"
#include "launch/launch.h"
#include "program/program.h"

namespace forewarp::bench {

struct Loaded {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const LaunchFile> launches;
  const Case* item = nullptr;
};

inline Loaded load(const std::string& stem, const std::string& id) {
  const std::string traces = std::string(FOREWARP_SOURCE_DIR) + "/traces/";
  Loaded loaded;
  loaded.program = std::make_shared<const Program>(load_program(traces + "sm_90/" + stem + ".cubin"));
  loaded.launches = std::make_shared<const LaunchFile>(read_launch_file(traces + stem + ".yaml"));
  const auto& cases = loaded.launches->cases;
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.id == id; });
  FW_CHECK(found != cases.end(), "no case " + id);
  loaded.item = &*found;
  return loaded;
}

}  // namespace forewarp::bench

#include "cli/places.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.h"

namespace forewarp::cli {

namespace fs = std::filesystem;

std::string home_folder() {
  std::error_code ignored;
  if (const char* named = std::getenv("FOREWARP_HOME"); named != nullptr && *named != '\0') {
    if (fs::is_directory(fs::path(named) / "validation", ignored)) return named;
    throw InputError({named}, "is what FOREWARP_HOME says, but holds no folder validation",
                     "point it at the project's folder, or unset it");
  }
  std::vector<fs::path> candidates;
  // A built program (build/release/forewarp) has its project two folders up.
  fs::path above = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int level = 0; level < 4 && !above.empty(); ++level, above = above.parent_path()) candidates.push_back(above);
  candidates.emplace_back(FOREWARP_SOURCE_HOME);
  candidates.emplace_back(".");
  for (const fs::path& candidate : candidates)
    if (fs::is_directory(candidate / "validation", ignored) && fs::is_directory(candidate / "traces", ignored))
      return candidate.string();
  throw InputError("there are no folders validation and traces beside the program",
                   "set FOREWARP_HOME to the project's folder");
}

std::string suites_file() { return (fs::path(home_folder()) / "validation" / "suites.yaml").string(); }

std::string published_folder() { return (fs::path(home_folder()) / "validation" / "published").string(); }

std::string quantities_file() { return (fs::path(home_folder()) / "kernels" / "micro" / "quantities.yaml").string(); }

std::string profile_file(const std::string& gpu, const std::string& stem) {
  return (fs::path(home_folder()) / "validation" / "profiles" / gpu / (stem + ".csv")).string();
}

std::string trace_launch_file(const std::string& stem) {
  return (fs::path(home_folder()) / "traces" / (stem + ".yaml")).string();
}

std::string trace_cubin(const std::string& stem, int sm) {
  const std::string code = stem.substr(0, stem.find('.'));
  return (fs::path(home_folder()) / "traces" / ("sm_" + std::to_string(sm)) / (code + ".cubin")).string();
}

}  // namespace forewarp::cli

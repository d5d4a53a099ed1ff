#include "hardware/gpu_model.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <sstream>

#include "base/file.h"
#include "hardware/gpu_schema.h"

namespace forewarp {
namespace {

namespace fs = std::filesystem;

/// The folder named `hwmodels` that goes with this program.
fs::path models_folder() {
  std::error_code ignored;
  if (const char* named = std::getenv("FOREWARP_HWMODELS"); named != nullptr && *named != '\0') {
    if (fs::is_directory(named, ignored)) return named;
    throw InputError(std::string("FOREWARP_HWMODELS is ") + config::quoted(named) + ", which is no folder",
                     "point it at the folder with the GPU files, or unset it");
  }
  std::vector<fs::path> candidates;
  // An installed program has its models near by, a built one (build/release/forewarp) two folders up.
  fs::path above = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int level = 0; level < 4 && !above.empty(); ++level, above = above.parent_path())
    candidates.push_back(above / "hwmodels");
  candidates.emplace_back(FOREWARP_SOURCE_HWMODELS);
  candidates.emplace_back("hwmodels");
  for (const fs::path& candidate : candidates)
    if (fs::is_directory(candidate, ignored)) return candidate;
  throw InputError("there is no folder hwmodels beside the program",
                   "set FOREWARP_HWMODELS to the folder with the GPU files");
}

bool is_path(const std::string& text) { return text.find('/') != std::string::npos || text.ends_with(".yaml"); }

std::string model_path(const std::string& name_or_path) {
  if (is_path(name_or_path)) return name_or_path;
  const std::vector<std::string> names = gpu_model_names();
  if (std::find(names.begin(), names.end(), name_or_path) == names.end()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw InputError("there is no GPU " + config::quoted(name_or_path),
                     "known: " + (known.empty() ? "none" : known) + "; or give the path of a .yaml file");
  }
  return (models_folder() / (name_or_path + ".yaml")).string();
}

GpuFile load_text(const std::string& path, const std::string& text) {
  GpuFile file = read_gpu(config::parse(text, path));
  check_gpu(file);
  file.model.name = fs::path(path).stem().string();
  file.model.content_hash = XXH3_64bits(text.data(), text.size());
  return file;
}

GpuFile load(const std::string& name_or_path) {
  const std::string path = model_path(name_or_path);
  return load_text(path, read_text_file(path));
}

/// Where a place of a file is in its text.
std::size_t offset_of(const std::string& text, const SourcePosition& place) {
  std::size_t at = 0;
  for (int line = 1; line < place.line; ++line) at = text.find('\n', at) + 1;
  return at + static_cast<std::size_t>(place.column - 1);
}

/// Nine digits, and whole numbers as such.
std::string number_text(double value) {
  std::ostringstream out;
  out << std::setprecision(9) << value;
  return out.str();
}

}  // namespace

const char* provenance_text(Provenance p) {
  switch (p) {
    case Provenance::Measured:
      return "measured";
    case Provenance::Vendor:
      return "vendor";
    case Provenance::Paper:
      return "paper";
    case Provenance::Fitted:
      return "fitted";
    case Provenance::Assumed:
      return "assumed";
    case Provenance::Count:
      break;
  }
  return "";
}

GpuModel load_gpu_model(const std::string& name_or_path) { return load(name_or_path).model; }

GpuModel load_gpu_model_with(const std::string& name_or_path, const std::string& leaf, double value) {
  const std::string path = model_path(name_or_path);
  std::string text = read_text_file(path);
  const GpuFile file = load_text(path, text);
  const auto place = file.places.find(leaf);
  if (place == file.places.end()) throw InputError({path}, "there is no leaf " + config::quoted(leaf));
  const std::size_t at = offset_of(text, place->second);
  text.replace(at, text.find_first_of(",}", at) - at, number_text(value));
  return load_text(path, text).model;
}

std::vector<Leaf> describe_gpu(const std::string& name_or_path) { return load(name_or_path).leaves; }

std::vector<std::string> gpu_model_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(models_folder()))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::uint16_t> gpc_of_sms(const ChipSpec& chip) {
  std::vector<std::uint16_t> gpc;
  for (std::size_t g = 0; g < chip.tpcs_per_gpc.size(); ++g)
    gpc.insert(gpc.end(), static_cast<std::size_t>(chip.tpcs_per_gpc[g] * chip.sms_per_tpc),
               static_cast<std::uint16_t>(g));
  return gpc;
}

std::vector<std::uint16_t> cpc_of_sms(const ChipSpec& chip) {
  std::vector<std::uint16_t> cpc;
  for (std::size_t g = 0; g < chip.tpcs_per_gpc.size(); ++g)
    for (int sm = 0; sm < chip.tpcs_per_gpc[g] * chip.sms_per_tpc; ++sm)
      cpc.push_back(static_cast<std::uint16_t>(static_cast<int>(g) * chip.cpcs_per_gpc +
                                               sm / chip.sms_per_tpc % chip.cpcs_per_gpc));
  return cpc;
}

}  // namespace forewarp

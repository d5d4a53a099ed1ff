#include "hardware/gpu_model.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <optional>
#include <sstream>

#include "base/file.h"
#include "hardware/gpu_schema.h"
#include "hardware/sm_clock.h"

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

/// Of the YAML files of a folder, sorted.
std::vector<std::string> stems_of(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

std::string model_path(const std::string& name_or_path) {
  if (is_path(name_or_path)) return name_or_path;
  const std::vector<std::string> names = gpu_model_names();
  if (std::find(names.begin(), names.end(), name_or_path) == names.end()) {
    const std::string near = config::nearest(name_or_path, names);
    throw InputError("there is no GPU " + config::quoted(name_or_path) +
                         (near.empty() ? "" : "; did you mean " + config::quoted(near) + "?"),
                     "known: " + joined(names) + "; or give the path of a .yaml file");
  }
  return (models_folder() / (name_or_path + ".yaml")).string();
}

/// Of a family by its name, or by a path from the folder of the file that names it.
std::string family_path(const config::Node& family, const std::string& product) {
  const std::string name = family.string();
  if (is_path(name)) return (fs::path(product).parent_path() / name).lexically_normal().string();
  const fs::path folder = models_folder() / "families";
  const std::vector<std::string> names = stems_of(folder);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw family.error("is " + config::quoted(name) + ", which is no family",
                       "known: " + joined(names) + "; or give the path of a .yaml file");
  return (folder / (name + ".yaml")).string();
}

std::optional<config::Node> find_entry(const config::Node& root, std::string_view key) {
  for (const config::Entry& entry : root.entries())
    if (entry.key == key) return entry.value;
  return std::nullopt;
}

/// A GPU's file laid over its family's, and what both say.
struct Sources {
  config::Node root;
  std::string path;  ///< of the GPU's file
  std::string text;  ///< of both
};

Sources read_sources(const std::string& name_or_path) {
  const std::string path = model_path(name_or_path);
  std::string text = read_text_file(path);
  const config::Node product = config::parse(text, path);
  const auto family = find_entry(product, "family");
  if (!family) return {product, path, std::move(text)};
  const std::string above = family_path(*family, path);
  const std::string shared = read_text_file(above);
  const config::Node base = config::parse(shared, above);
  if (const auto again = find_entry(base, "family"))
    throw again->error("stands in a file that is itself a family", "say everything there, or name the other family");
  text += '\0' + shared;
  return {config::overlay(base, product, "value"), path, std::move(text)};
}

GpuFile read_and_check(const Sources& sources) {
  GpuFile file = read_gpu(sources.root, sources.path);
  check_gpu(file);
  file.model.content_hash = XXH3_64bits(sources.text.data(), sources.text.size());
  return file;
}

/// Leaves that a misspelt or shortened path may mean.
std::string meant_by(const std::string& path, const std::vector<Leaf>& leaves) {
  std::string ends;
  std::vector<std::string> paths;
  for (const Leaf& leaf : leaves) {
    paths.push_back(leaf.path);
    if (leaf.path.ends_with("." + path)) ends += (ends.empty() ? "" : ", ") + leaf.path;
  }
  if (!ends.empty()) return "is it " + ends + "?";
  const std::string near = config::nearest(path, paths);
  return near.empty() ? "`forewarp describe gpu NAME` lists them" : "did you mean " + near + "?";
}

/// Nine digits, and whole numbers as such.
std::string number_text(double value) {
  std::ostringstream out;
  if (value == std::floor(value) && std::abs(value) < 9e15)
    out << static_cast<std::int64_t>(value);
  else
    out << std::setprecision(9) << value;
  return out.str();
}

/// A size may have a unit, "100MiB", and any number its leaf's own, "20ns": the number alone, in the leaf's unit.
std::string without_unit(const std::string& value, const std::string& unit) {
  double number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  std::string_view after(stop, static_cast<std::size_t>(end - stop));
  if (after.starts_with(' ')) after.remove_prefix(1);
  if (error != std::errc{} || after.empty()) return value;
  if (after == unit) return value.substr(0, static_cast<std::size_t>(stop - value.data()));
  static constexpr std::pair<std::string_view, double> kSizes[] = {
      {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  for (const auto& [name, bytes] : kSizes)
    if (after == name && unit == "bytes") return number_text(number * bytes);
  return value;
}

GpuFile load(const std::string& name_or_path, const std::vector<std::string>& changes);

/// Changes of leaves alone: sm_clock=MHZ stands for those of at_sm_clock(), made to the model as changed so far.
std::vector<std::string> leaf_changes(const std::string& name_or_path, const std::vector<std::string>& changes) {
  std::vector<std::string> leaves;
  for (const std::string& change : changes) {
    const auto [path, value, unknown] = parse_change(change);
    if (path != "sm_clock") {
      leaves.push_back(change);
      continue;
    }
    const std::string name = "--set " + change;
    const double mhz = config::parse_argument(without_unit(value, "MHz"), name).number(100, 10000);
    for (std::string& leaf : at_sm_clock(load(name_or_path, leaves).model, mhz)) leaves.push_back(std::move(leaf));
  }
  return leaves;
}

GpuFile load(const std::string& name_or_path, const std::vector<std::string>& given) {
  const std::vector<std::string> changes = leaf_changes(name_or_path, given);
  Sources sources = read_sources(name_or_path);
  GpuFile file = read_and_check(sources);
  if (changes.empty()) return file;
  std::vector<LeafChange> made;
  for (const std::string& change : changes) {
    const std::string name = "--set " + change;
    auto [path, value, unknown] = parse_change(change);
    const auto leaf = std::find_if(file.leaves.begin(), file.leaves.end(),
                                   [&wanted = path](const Leaf& l) { return l.path == wanted; });
    if (leaf == file.leaves.end())
      throw InputError({name}, "there is no leaf " + config::quoted(path), meant_by(path, file.leaves));
    value = without_unit(value, leaf->unit);
    config::parse_argument(value, name);  // alone, so that it is one value
    std::string text = "{value: " + value + ", unit: \"" + leaf->unit + "\", source: assumed, ref: given by --set}";
    for (std::size_t end = path.size(); end != std::string::npos;) {
      const std::size_t dot = end == 0 ? std::string::npos : path.rfind('.', end - 1);
      const std::size_t from = dot == std::string::npos ? 0 : dot + 1;
      text = "{" + path.substr(from, end - from) + ": " + text + "}";
      end = dot;
    }
    sources.root = config::overlay(sources.root, config::parse_argument(text, name), "value");
    sources.text += '\0' + change;
    made.push_back({path, value, leaf->value});
  }
  file = read_and_check(sources);
  file.model.changes = std::move(made);
  return file;
}

}  // namespace

LeafChange parse_change(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InputError({"--set " + text}, "is not LEAF=VALUE", "for example --set l2.hit_cycles=120");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string leaf_change(const std::string& leaf, double value) { return leaf + "=" + number_text(value); }

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
    case Provenance::Transferred:
      return "transferred";
    case Provenance::Count:
      break;
  }
  return "";
}

GpuModel load_gpu_model(const std::string& name_or_path, const std::vector<std::string>& changes) {
  return load(name_or_path, changes).model;
}

std::vector<Leaf> describe_gpu(const std::string& name_or_path, const std::vector<std::string>& changes) {
  return load(name_or_path, changes).leaves;
}

std::vector<std::string> gpu_model_names() { return stems_of(models_folder()); }

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

#include "report/opcode_states.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "launch/launch.h"
#include "program/analysis.h"
#include "report/profile.h"

using namespace forewarp;

namespace {

const std::string kRoot = FOREWARP_SOURCE_DIR;

/// STEM.sweep and the like are further launches of STEM's code.
std::string code_of(const std::string& stem) { return stem.substr(0, stem.find('.')); }
std::string cubin(const std::string& stem) { return kRoot + "/traces/sm_90/" + stem + ".cubin"; }

std::vector<std::string> measured_stems() {
  std::vector<std::string> stems;
  for (const auto& file : std::filesystem::directory_iterator(kRoot + "/validation/profiles/h200-sxm"))
    if (file.path().extension() == ".csv" &&
        std::filesystem::exists(kRoot + "/traces/" + file.path().stem().string() + ".yaml"))
      stems.push_back(file.path().stem().string());
  std::sort(stems.begin(), stems.end());
  return stems;
}

/// Kernels that have a measured launch, by their code.
std::map<std::string, std::set<std::string>> measured_kernels() {
  std::map<std::string, std::set<std::string>> kernels;
  for (const std::string& stem : measured_stems()) {
    const LaunchFile file = read_launch_file(kRoot + "/traces/" + stem + ".yaml");
    for (const MeasuredLaunch& row :
         read_profile(kRoot + "/validation/profiles/h200-sxm/" + stem + ".csv", stem, CacheState::Cold))
      for (const Case& item : file.cases)
        if (item.id == row.case_id)
          kernels[code_of(stem)].insert(item.launches[static_cast<std::size_t>(row.launch)].kernel);
  }
  return kernels;
}

}  // namespace

TEST_CASE("validated forms are those of the measured kernels") {
  std::map<std::string, std::pair<std::string, std::string>> forms;
  for (const auto& [stem, names] : measured_kernels()) {
    const Program program = load_program(cubin(stem));
    for (const std::string& name : names) {
      const Kernel& kernel = program.kernel(name);
      // Callees behind the entry are slow paths that few data take.
      for (std::uint32_t i = 0; i < kernel.functions.front().count; ++i)
        forms.emplace(opcode_form(kernel.instructions[i]), std::pair(stem, name));
    }
  }
  std::string text =
      "// Opcodes in the code of kernels with a measured profile, and the first of those kernels: FW_VALIDATED(form, "
      "trace, kernel).\n"
      "// The test \"validated forms are those of the measured kernels\" writes it anew with FOREWARP_APPROVE=1.\n";
  for (const auto& [form, kernel] : forms)
    text += "FW_VALIDATED(\"" + form + "\", \"" + kernel.first + "\", \"" + kernel.second + "\")\n";
  const std::string path = kRoot + "/sim/report/validated.def";
  if (std::getenv("FOREWARP_APPROVE") != nullptr) write_file(path, text);
  CHECK(read_text_file(path) == text);
}

TEST_CASE("validated forms are found") {
  for (const report::ValidatedForm& form : report::validated_forms()) CHECK(report::find_validated(form.form) == &form);
  CHECK(report::find_validated("IPA") == nullptr);
}

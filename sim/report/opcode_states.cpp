#include "report/opcode_states.h"

#include <algorithm>
#include <map>

#include "program/analysis.h"
#include "program/traits.h"
#include "report/format.h"

namespace forewarp::report {

namespace {

constexpr ValidatedForm kValidated[] = {
#define FW_VALIDATED(form, stem, kernel) {form, stem, kernel},
#include "report/validated.def"
#undef FW_VALIDATED
};

/// Warp instructions executed, by form.
using Executed = std::map<std::string, std::uint64_t>;

std::string list(const Executed& forms) {
  std::string text;
  for (const auto& [form, executed] : forms) text += (text.empty() ? "" : ", ") + form + " (" + count(executed) + ")";
  return text;
}

}  // namespace

std::span<const ValidatedForm> validated_forms() { return kValidated; }

const ValidatedForm* find_validated(const std::string& form) {
  const auto found = std::lower_bound(std::begin(kValidated), std::end(kValidated), form,
                                      [](const ValidatedForm& v, const std::string& f) { return v.form < f; });
  return found != std::end(kValidated) && found->form == form ? found : nullptr;
}

void add_state_warnings(const Inputs& in, std::vector<std::string>& warnings) {
  Executed matrices, untimed, assumed, unvalidated, pairs_of_lines;
  for (std::size_t i = 0; i < in.totals.size(); ++i) {
    if (in.totals[i].executed == 0) continue;
    const Instruction& instruction = in.kernel.instructions[i];
    const Timed timed = traits(instruction.opcode).timed;
    const std::string form = opcode_form(instruction);
    const bool validated = find_validated(form) != nullptr;
    Executed* group = validated ? nullptr : &unvalidated;
    if (timed == Timed::No) group = &untimed;
    if (timed == Timed::Assumed && !validated) group = &assumed;
    if (timed == Timed::Assumed && multiplies_matrices(instruction.opcode)) group = &matrices;
    if (instruction.has(Modifier::LTC256B)) pairs_of_lines[form] += in.totals[i].executed;
    if (group != nullptr) (*group)[form] += in.totals[i].executed;
  }
  if (!matrices.empty())
    warnings.push_back("products of warp groups hold the tensor pipe for their arithmetic alone: " + list(matrices) +
                       "; what they read from shared memory and when they end is not timed");
  if (!untimed.empty())
    warnings.push_back("what these wait for on a GPU is not timed, they take an issue slot alone: " + list(untimed) +
                       "; a kernel that waits for them is predicted too fast");
  if (!assumed.empty())
    warnings.push_back("timed like other instructions of their unit, and in no measured kernel: " + list(assumed) +
                       "; cycles are less certain where these dominate");
  if (!unvalidated.empty())
    warnings.push_back("in no measured kernel: " + list(unvalidated) + "; their counts and timing are not validated");
  if (!pairs_of_lines.empty())
    warnings.push_back("L2 is asked to fetch 256 bytes at once (LTC256B) by " + list(pairs_of_lines) +
                       "; here it fetches lines of 128, so that neighbours may miss that a GPU finds");
  if (in.trace.launch.cluster.count() > 1)
    warnings.push_back(
        "clusters are timed by microbenchmarks on an H200; of clusters of 4 and 8 that move much from SM to SM some "
        "take twice as long as others there, here all take equally long");
}

}  // namespace forewarp::report

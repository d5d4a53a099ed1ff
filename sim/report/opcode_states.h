// What a prediction knows of the instructions that a kernel executes: whose timing is their own, and which of them
// stand in a kernel that was measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/analysis.h"

namespace forewarp::report {

/// An opcode, of matrix instructions with shape and types, that stands in the code of a kernel with a measured profile.
struct ValidatedForm {
  const char* form;
  const char* stem;    ///< traces/<stem>
  const char* kernel;  ///< the first of it that has it
};
std::span<const ValidatedForm> validated_forms();
const ValidatedForm* find_validated(const std::string& form);

/// What the instructions and the shape of the launch leave open, and what that may do to the result.
void add_state_warnings(const Inputs&, std::vector<std::string>& warnings);

}  // namespace forewarp::report

#include "program/slice.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <map>

#include "program/analysis.h"
#include "program/test_support.h"
#include "program/traits.h"

using namespace forewarp;

namespace {

/// Needed instructions of an opcode.
int needed(const Kernel& kernel, const ProgramSlice& slice, Opcode opcode) {
  int count = 0;
  for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
    count += kernel.instructions[i].opcode == opcode && slice.needed[i];
  }
  return count;
}

struct Measured {
  std::string line;
  ProgramSlice slice;
};

Measured measure(const std::string& cubin, const std::string& name) {
  const Program program = load_program(test::trace(cubin));
  const Kernel& kernel = program.kernel(name);
  Measured result{"", control_slice(kernel)};
  std::size_t padding = 0;
  for (const Instruction& instruction : kernel.instructions) padding += instruction.opcode == Opcode::NOP;
  result.line = "slice of sm_" + std::to_string(program.sm) + " " + name + ": " + std::to_string(result.slice.count()) +
                " of " + std::to_string(kernel.instructions.size() - padding) + " instructions";
  CHECK(needed(kernel, result.slice, Opcode::FFMA) == 0);
  CHECK(needed(kernel, result.slice, Opcode::LDG) == 0);
  CHECK(needed(kernel, result.slice, Opcode::LDS) == 0);
  CHECK(needed(kernel, result.slice, Opcode::STS) == 0);
  return result;
}

}  // namespace

TEST_CASE("a matrix product needs neither its values nor its loads") {
  const std::pair<const char*, const char*> kProducts[] = {
      {"matmul_01_naive_uncoalesced", "sgemm_naive_uncoalesced"},
      {"matmul_02_coalesced", "sgemm_coalesced"},
      {"matmul_03_shared_tiled", "sgemm_shared_tiled"},
      {"matmul_04_coarsened_1d", "sgemm_coarsened_1d"},
      {"matmul_05_coarsened_2d", "sgemm_coarsened_2d"},
      {"matmul_06_vectorized", "sgemm_vectorized"},
      {"matmul_07_warp_tiled_double_buffered", "sgemm_warp_tiled"}};
  for (const std::string sm : {"sm_80/", "sm_90/"}) {
    for (const auto& [cubin, kernel] : kProducts) {
      const Measured measured = measure(sm + cubin + ".cubin", kernel);
      std::cout << measured.line << "\n";
      INFO(measured.line);
      CHECK(!measured.slice.needs_global_values);
      CHECK(!measured.slice.needs_shared_values);
      CHECK(!measured.slice.needs_local_values);
    }
  }
}

TEST_CASE("data that steers control or addresses keeps what it comes from") {
  const Program program = load_program(test::data("forms_sm90.cubin"));
  SECTION("a loaded value decides a branch") {
    const Kernel& kernel = program.kernel("shape::integers<long long>");
    const ProgramSlice slice = control_slice(kernel);
    CHECK(slice.needs_global_values);
    CHECK(needed(kernel, slice, Opcode::LDG) > 0);
    CHECK(needed(kernel, slice, Opcode::VOTE) > 0);
    CHECK(needed(kernel, slice, Opcode::STG) > 0);  // it might store what another thread loads
    const ProgramSlice left = control_slice(kernel, {.stores = Stores::Left});
    CHECK(left.leaves_stores);
    CHECK(left.needs_global_values);
    CHECK(needed(kernel, left, Opcode::STG) == 0);
    CHECK(left.count() < slice.count());
  }
  SECTION("a table in local memory feeds values alone") {
    const Kernel& kernel = program.kernel("calls");
    const ProgramSlice slice = control_slice(kernel);
    CHECK(slice.needs_global_values);  // the square root of loaded values chooses its path
    CHECK(!slice.needs_shared_values);
    CHECK(needed(kernel, slice, Opcode::RET) > 0);
  }
  SECTION("a comparison of loaded values guards an instruction") {
    const Kernel& kernel = program.kernel("halves");
    const ProgramSlice slice = control_slice(kernel);
    // The negation is guarded by a comparison of loaded halves, and guards are counted.
    CHECK(needed(kernel, slice, Opcode::HSETP2) == 1);
    CHECK(needed(kernel, slice, Opcode::STG) > 0);  // it might store what another thread compares
  }
}

TEST_CASE("a slice holds every definition that its needed instructions can read") {
  // Independent of the slicer's conditions on predicates: follow definitions forward by executing paths at random and
  // check, for every needed reader, that the instruction which really wrote a value is needed too.
  std::uint32_t state = 1;
  const auto next = [&](std::size_t bound) {
    state = state * 1664525 + 1013904223;
    return static_cast<std::size_t>(state >> 8) % bound;
  };
  for (const char* cubin :
       {"sm_80/matmul_05_coarsened_2d.cubin", "sm_90/attention_03_flash.cubin", "sm_80/reduce_01_softmax_rows.cubin",
        "sm_90/matmul_03_shared_tiled.cubin", "sm_90/divergence_01_branch_ways.cubin"}) {
    const Program program = load_program(test::trace(cubin));
    for (const Kernel& kernel : program.kernels) {
      const ProgramSlice slice = control_slice(kernel);
      const ControlFlow flow(kernel);
      std::vector<Effects> all;
      for (const Instruction& instruction : kernel.instructions) all.push_back(effects(instruction));
      for (int walk = 0; walk < 20; ++walk) {
        std::map<int, std::uint32_t> writer;
        std::uint8_t predicates = static_cast<std::uint8_t>(next(128));
        std::uint32_t at = 0;
        for (int step = 0; step < 4000; ++step) {
          const Instruction& instruction = kernel.instructions[at];
          const bool guard = instruction.guard == kPredicateTrue || (predicates >> instruction.guard & 1);
          const bool executes = guard != instruction.guard_negated;
          if (executes) {
            const auto check = [&](const SpanList& spans) {
              for (const RegisterSpan& span : spans) {
                for (int r = span.first; r < span.first + span.count; ++r) {
                  const auto from = writer.find(r);
                  if (from == writer.end()) continue;
                  INFO(kernel.name << ": " << kernel.text[at] << " reads R" << r << " of "
                                   << kernel.text[from->second]);
                  if (!slice.needed[from->second]) FAIL();
                }
              }
            };
            check(all[at].address_reads.registers);
            if (slice.needed[at]) check(all[at].value_reads.registers);
            for (const RegisterSpan& span : all[at].writes.registers) {
              for (int r = span.first; r < span.first + span.count; ++r) writer[r] = at;
            }
            // Outcomes are made up; only that they stay the same until written anew matters here.
            const std::uint8_t written = all[at].writes.predicates;
            predicates = static_cast<std::uint8_t>((predicates & ~written) | (next(128) & written));
          }
          const auto ways = flow.successors(at);
          if (ways.empty()) break;
          const bool skips = !executes && at + 1 < flow.size();
          at = skips ? at + 1 : ways[next(ways.size())];
        }
      }
    }
  }
  SUCCEED();
}

namespace {

/// Guards that are not followed, of the instructions of an opcode, and how many of these there are with a guard.
std::pair<int, int> unfollowed(const Kernel& kernel, const ProgramSlice& slice, Opcode opcode) {
  std::pair<int, int> count{0, 0};
  for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
    const Instruction& in = kernel.instructions[i];
    if (in.opcode != opcode || always_executes(in)) continue;
    count.first += slice.unfollowed[i] == GuardTaken::Followed ? 0 : 1;
    ++count.second;
  }
  return count;
}

}  // namespace

TEST_CASE("the scaling of denormals is no reason to compute products of matrices") {
  const Program program = load_program(test::trace("sm_90/attention_05_flash2.cubin"));
  const Kernel& kernel = program.kernel("flash2_backward_f16_64");
  const ProgramSlice known = control_slice(kernel), every = control_slice(kernel, {.guards = Guards::Every});
  CHECK(needed(kernel, known, Opcode::HMMA) == 0);
  CHECK(needed(kernel, every, Opcode::HMMA) > 0);
  CHECK(known.count() < every.count());
  CHECK(!known.needs_global_values);
  const auto [left, guarded] = unfollowed(kernel, known, Opcode::FMUL);
  CHECK(left > 0);
  CHECK(left <= guarded);
  CHECK(unfollowed(kernel, every, Opcode::FMUL).first == 0);
  for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
    const Instruction& in = kernel.instructions[i];
    INFO(kernel.text[i]);
    if (known.unfollowed[i] == GuardTaken::Followed) continue;
    CHECK(!known.needed[i]);
    CHECK(in.memory == MemoryKind::None);
    CHECK(!is_control(in.opcode));
  }
}

TEST_CASE("without products of matrices every guard is followed") {
  for (const char* cubin :
       {"sm_90/elementwise_02_elu.cubin", "sm_90/attention_03_flash.cubin", "sm_90/field_04_math.cubin"}) {
    const Program program = load_program(test::trace(cubin));
    for (const Kernel& kernel : program.kernels) {
      INFO(kernel.name);
      const ProgramSlice known = control_slice(kernel), every = control_slice(kernel, {.guards = Guards::Every});
      CHECK(known.needed == every.needed);
      CHECK(std::all_of(known.unfollowed.begin(), known.unfollowed.end(),
                        [](GuardTaken taken) { return taken == GuardTaken::Followed; }));
    }
  }
}

TEST_CASE("a reciprocal's slow path is no reason to compute products of matrices") {
  for (const char* code : {"sm_80/attention_05_flash2.cubin", "sm_90/attention_05_flash2.cubin"}) {
    const Program program = load_program(test::trace(code));
    const Kernel& kernel = program.kernel("flash2_f16_128");
    const ProgramSlice known = control_slice(kernel), every = control_slice(kernel, {.guards = Guards::Every});
    CHECK(needed(kernel, known, Opcode::HMMA) == 0);
    CHECK(needed(kernel, every, Opcode::HMMA) > 0);
    const ControlFlow flow(kernel);
    int branches = 0;
    for (std::uint32_t i = 0; i < kernel.instructions.size(); ++i) {
      CHECK(every.unfollowed[i] == GuardTaken::Followed);
      if (!is_control(kernel.instructions[i].opcode) || known.unfollowed[i] == GuardTaken::Followed) continue;
      INFO(kernel.text[i]);
      ++branches;
      // The way that is left out ends in the call; the other joins it behind.
      std::uint32_t at = known.unfollowed[i] == GuardTaken::Holds ? i + 1 : 0;
      for (const std::uint32_t next : flow.successors(i))
        if (at == 0 && next != i + 1) at = next;
      while (!is_control(kernel.instructions[at].opcode)) ++at;
      CHECK(kernel.text[at].find("rcp_rn_f32_slowpath") != std::string::npos);
    }
    CHECK(branches == 4);  // two strips of two rows a thread
  }
}

#include "program/analysis.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "program/test_support.h"

using namespace forewarp;

namespace {

std::vector<int> expand(const SpanList& spans) {
  std::vector<int> list;
  for (const RegisterSpan& span : spans) {
    for (int i = 0; i < span.count; ++i) list.push_back(span.first + i);
  }
  return list;
}

/// The first instruction of the kernel that reads so.
std::uint32_t find(const Kernel& kernel, const std::string& text) {
  const auto at = std::find(kernel.text.begin(), kernel.text.end(), text);
  INFO(text);
  REQUIRE(at != kernel.text.end());
  return static_cast<std::uint32_t>(at - kernel.text.begin());
}

Effects effects_of(const Kernel& kernel, const std::string& text) {
  return effects(kernel.instructions[find(kernel, text)]);
}

bool has_edge(const ControlFlow& flow, std::uint32_t from, std::uint32_t to) {
  const auto list = flow.successors(from);
  return std::find(list.begin(), list.end(), to) != list.end();
}

using List = std::vector<int>;

}  // namespace

TEST_CASE("reads and writes cover whole pairs and quads and no zero registers") {
  const Program program = load_program(test::data("forms_sm80.cubin"));
  const Kernel& integers = program.kernel("shape::integers<long long>");

  const Effects wide = effects_of(integers, "IMAD.WIDE R2, R0, R3, c[0x0][0x160]");
  CHECK(expand(wide.writes.registers) == List{2, 3});
  CHECK(expand(wide.value_reads.registers) == List{0, 3});

  const Effects high = effects_of(integers, "IMAD.HI.U32 R8, R5, R7, R4");
  CHECK(expand(high.value_reads.registers) == List{5, 7, 4, 5});

  const Effects load = effects_of(integers, "LDG.E.64 R2, [R2.64]");
  CHECK(expand(load.writes.registers) == List{2, 3});
  CHECK(expand(load.address_reads.registers) == List{2, 3});
  CHECK(expand(load.value_reads.registers).empty());

  const Effects add = effects_of(integers, "IADD3 R8, P0, P1, R9, R2, R8");
  CHECK(expand(add.writes.registers) == List{8});
  CHECK(add.writes.predicates == 0b11);
  const Effects carry = effects_of(integers, "IADD3.X R4, RZ, R3, RZ, P0, P1");
  CHECK(expand(carry.value_reads.registers) == List{3});
  CHECK(carry.value_reads.predicates == 0b11);

  const Effects swap = effects_of(integers, "ATOMG.E.CAS.STRONG.GPU PT, R3, [R6+-0x4], R16, R17");
  CHECK(expand(swap.address_reads.registers) == List{6, 7});
  CHECK(expand(swap.value_reads.registers) == List{16, 17});
  CHECK(expand(swap.writes.registers) == List{3});
  CHECK(swap.writes.predicates == 0);

  const Effects shuffle = effects_of(integers, "SHFL.IDX PT, R11, R2, R11, 0x1f");
  CHECK(expand(shuffle.value_reads.registers) == List{2, 11});

  const Effects constant = effects_of(program.kernel("floats"), "LDC R6, c[0x2][R4]");
  CHECK(expand(constant.value_reads.registers) == List{4});
  const Effects branch = effects_of(program.kernel("floats"), "BRX R6, -0x110");
  CHECK(expand(branch.value_reads.registers) == List{6, 7});

  const Effects uniform = effects_of(integers, "UIADD3 UR5, UP0, UR8, 0x4, URZ");
  CHECK(expand(uniform.writes.uniforms) == List{5});
  CHECK(uniform.writes.uniform_predicates == 1);
  CHECK(expand(uniform.value_reads.uniforms) == List{8});
  CHECK(expand(effects_of(integers, "ULDC.64 UR10, c[0x0][0x118]").writes.uniforms) == List{10, 11});

  CHECK(effects_of(integers, "BSSY B0, 0x3a0").writes.barriers == 1);
  CHECK(effects_of(integers, "BSYNC B0").value_reads.barriers == 1);
}

TEST_CASE("conversions, doubles and fragments have their widths") {
  const Program program = load_program(test::data("forms_sm80.cubin"));
  const Kernel& doubles = program.kernel("doubles");
  const auto check = [&](const Kernel& kernel, const std::string& text, const List& writes, const List& reads) {
    INFO(text);
    const Effects effect = effects_of(kernel, text);
    CHECK(expand(effect.writes.registers) == writes);
    CHECK(expand(effect.value_reads.registers) == reads);
  };
  check(doubles, "DFMA R2, R2, R6, 3", {2, 3}, {2, 3, 6, 7});
  check(doubles, "DSETP.GT.AND P0, PT, R2, 1, PT", {}, {2, 3});
  check(doubles, "@P0 F2F.F64.F32 R10, R14", {10, 11}, {14});
  check(doubles, "@P0 I2F.F64 R12, R12", {12, 13}, {12});
  check(doubles, "F2I.F64.TRUNC R10, R2", {10}, {2, 3});
  check(doubles, "F2I.S64.F64.TRUNC R12, R2", {12, 13}, {2, 3});
  check(doubles, "F2I.S64.TRUNC R10, R16", {10, 11}, {16});
  check(doubles, "RED.E.ADD.F64.RN.STRONG.GPU [R16.64], R2", {}, {2, 3});
  const Kernel& matrix = program.kernel("matrix");
  check(matrix, "LDSM.16.M88.4 R12, [R10]", {12, 13, 14, 15}, {});
  check(matrix, "HMMA.16816.F32 R4, R12.reuse, R4, RZ", {4, 5, 6, 7}, {12, 13, 14, 15, 4, 5});
  check(matrix, "IMMA.16816.S8.S8 R16, R28.reuse.ROW, R16.COL, RZ", {16, 17, 18, 19}, {28, 29, 16});
  check(matrix, "DMMA.884 R12, R2, R8, RZ", {12, 13, 14, 15}, {2, 3, 8, 9});
  check(matrix, "ST.E.128 [R8.64], R12", {}, {12, 13, 14, 15});

  const Program async = load_program(test::data("async_sm90a.cubin"));
  const Kernel& product = async.kernel("async_product");
  const Effects group = effects_of(product, "HGMMA.64x16x16.F32 R24, gdesc[UR4].tnspB, R24, gsb0");
  CHECK(expand(group.writes.registers) == List{24, 25, 26, 27, 28, 29, 30, 31});
  CHECK(expand(group.value_reads.uniforms) == List{4, 5, 6, 7});
  const Effects copy = effects_of(product, "UTMALDG.2D [UR8], [UR4]");
  CHECK(expand(copy.address_reads.uniforms) == List{8, 9, 10, 11, 4, 5});
  const Effects remote = effects_of(async.kernel("cluster_sum"), "LD.E R5, [RZ.U32+UR4]");
  CHECK(expand(remote.address_reads.uniforms) == List{4, 5});
}

TEST_CASE("control flow has the edges of calls, returns, tables and exits") {
  for (const char* cubin : {"forms_sm80.cubin", "forms_sm90.cubin"}) {
    const Program program = load_program(test::data(cubin));
    for (const Kernel& kernel : program.kernels) {
      const ControlFlow flow(kernel);
      INFO(cubin << " " << kernel.name);
      REQUIRE(flow.size() == kernel.instructions.size());
      for (std::uint32_t i = 0; i < flow.size(); ++i) {
        const Instruction& instruction = kernel.instructions[i];
        INFO(i << ": " << kernel.text[i]);
        for (const std::uint32_t to : flow.successors(i)) {
          const auto back = flow.predecessors(to);
          CHECK(std::find(back.begin(), back.end(), i) != back.end());
        }
        switch (instruction.opcode) {
          case Opcode::EXIT:
            CHECK(flow.successors(i).size() == (always_executes(instruction) ? 0 : 1));
            break;
          case Opcode::RET: {
            // Every way back leads behind a call of the function that returns.
            REQUIRE(!flow.successors(i).empty());
            for (const std::uint32_t to : flow.successors(i)) CHECK(kernel.instructions[to - 1].opcode == Opcode::CALL);
            break;
          }
          case Opcode::CALL:
            CHECK(has_edge(flow, i, instruction.operands[0].immediate));
            break;
          case Opcode::BRX:
            CHECK(flow.successors(i).size() == 3);
            break;
          default:
            break;
        }
      }
    }
  }
}

TEST_CASE("a return goes behind the calls of its own function") {
  const Program program = load_program(test::data("forms_sm80.cubin"));
  const Kernel& calls = program.kernel("calls");
  const ControlFlow flow(calls);
  REQUIRE(calls.functions.size() == 3);
  int checked = 0;
  for (std::uint32_t i = 0; i < flow.size(); ++i) {
    if (calls.instructions[i].opcode != Opcode::RET) continue;
    const auto owner = std::find_if(calls.functions.begin(), calls.functions.end(),
                                    [&](const Function& f) { return i >= f.first && i < f.first + f.count; });
    for (const std::uint32_t to : flow.successors(i)) {
      CHECK(calls.instructions[to - 1].operands[0].immediate == owner->first);
      ++checked;
    }
  }
  CHECK(checked > 0);
}

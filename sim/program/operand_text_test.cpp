// Quirks of nvdisasm's JSON that the test cubins do not show.
#include "program/operand_text.h"

#include <catch2/catch.hpp>

#include "program/decode.h"

using namespace forewarp;

namespace {

Instruction decode_text(const std::string& opcode, const std::string& operands, UnknownForms& unknown) {
  DecodeContext context;
  context.sm = 80;
  context.place = "test";
  context.operand.code.low = std::uint64_t{0x3f800000} << 32 | 0x7000;
  context.operand.code_bytes = 0x1000;
  context.operand.address = 0x100;
  return decode({"", opcode, operands}, context, unknown);
}

Instruction decode_text(const std::string& opcode, const std::string& operands) {
  UnknownForms unknown;
  const Instruction instruction = decode_text(opcode, operands, unknown);
  INFO(opcode << " " << operands << unknown.list());
  CHECK(unknown.forms.empty());
  return instruction;
}

}  // namespace

TEST_CASE("a descriptor may follow a register without a comma") {
  const Instruction load = decode_text("LDG.E", "R13desc[UR4][R2.64+-0x10]");
  REQUIRE(load.operand_count == 2);
  CHECK(load.operands[0].index == 13);
  CHECK(load.operands[1].kind == OperandKind::Memory);
  CHECK(load.operands[1].descriptor == 4);
  CHECK(load.operands[1].offset == -16);
  CHECK(load.operands[1].wide);
}

TEST_CASE("addresses come in all their sums") {
  const Operand scaled = decode_text("LDS", "R0[R5.X4+UR4+0x100]").operands[1];
  CHECK(scaled.index == 5);
  CHECK(scaled.scale == 4);
  CHECK(scaled.uniform == 4);
  CHECK(scaled.offset == 0x100);
  CHECK(!scaled.wide);
  const Operand offset = decode_text("LDG.E", "R0,[R2.U32+UR4]").operands[1];
  CHECK(!offset.wide);
  CHECK(offset.uniform == 4);
  const Operand bindless = decode_text("LDC", "R0,cx[UR4][R3+0x10]").operands[1];
  CHECK(bindless.bank == kBindlessBank);
  CHECK(bindless.descriptor == 4);
  CHECK(bindless.index == 3);
  CHECK(decode_text("HADD2", "R0,R1,c[0x0] [0x164].H1_H1").operands[2].half == HalfSelect::H1);
}

TEST_CASE("sources carry their modifiers") {
  const Instruction add = decode_text("FADD", "R0,-|R3|.reuse,-1");
  CHECK(add.operands[1].negate);
  CHECK(add.operands[1].absolute);
  CHECK(add.operands[1].reuse);
  CHECK(add.operands[2].immediate == 0x3f800000);  // the code word's bits, not the text's rounding
  CHECK(decode_text("LOP3.LUT", "R0,~R1,-0x10,RZ,0xc0,!PT").operands[2].immediate == 0xfffffff0);
  CHECK(decode_text("PLOP3.LUT", "P0,PT,R5.reuse.SIGN,P1,!P2,0x2,0x0").operands[2].sign);
  CHECK(decode_text("I2F.U8", "R0,R1.B2").operands[1].byte == 2);
  CHECK(decode_text("HADD2", "R0,R1.F32,RZ.H0_H0").operands[1].half == HalfSelect::F32);
  CHECK(decode_text("HFMA2", "R7,R27.H1_H1,R12.H0_NH1,R6").operands[2].half == HalfSelect::Turned);
  CHECK(decode_text("DEPBAR", "{5,4,1}").operands[0].immediate == 0b110010);
}

TEST_CASE("targets are instruction indices") {
  CHECK(decode_text("BRA", "0x970").operands[0].immediate == 0x97);
  CHECK(decode_text("BRX", "R6,-0x110").operands[1].immediate == 0);  // from the next instruction: 0x110
  UnknownForms unknown;
  decode_text("BRA", "0x4000", unknown);
  decode_text("BRA", "0x18", unknown);
  decode_text("CALL.REL", "nowhere", unknown);
  CHECK(unknown.forms.size() == 3);
}

TEST_CASE("nonsense is reported, never accepted or read past its end") {
  const char* const kNonsense[] = {
      "R", "R256", "[", "[R2", "[R2.64+", "c[", "c[0x0", "c[0x0]", "c[0x0][", "desc[",  "desc[UR4", "|R2", "-",
      "~", "!",    "{", "{1",  "{x}",     "0x", "P9",    "UR64",   "R1.frob", "[R1.X]", "R1,,?",    "[4]"};
  for (const char* operands : kNonsense) {
    INFO(operands);
    UnknownForms unknown;
    decode_text("IADD3", operands, unknown);
    CHECK(unknown.forms.size() == 1);
  }
}

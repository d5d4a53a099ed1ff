// Golden decodes: one line an instruction, checked by hand against nvdisasm's text and the code word.
#include <bit>
#include <catch2/catch.hpp>
#include <filesystem>

#include "program/test_support.h"

using namespace forewarp;

namespace {

struct Golden {
  const char* cubin;
  const char* kernel;
  std::size_t index;
  const char* text;
  const char* decoded;
};

constexpr Golden kGolden[] = {
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 44, "IMAD.MOV.U32 R4, RZ, RZ, RZ",
     "IMAD.MOV.U32 0x224 fma integer fixed : R4 <- RZ RZ RZ : stall 2 yield w7 r7 wait 0x1 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 1, "S2R R0, SR_CTAID.X",
     "S2R 0x919 lsu misc variable : R0 <- SR4 : stall 4 yield w0 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 3, "IMAD R0, R0, c[0x0][0x0], R3",
     "IMAD 0xa24 fma integer fixed : R0 <- R0 c0[RZ+0] R3 : stall 5 w7 r7 wait 0x1 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 75, "ISETP.GE.AND P2, PT, R2.reuse, RZ, PT",
     "ISETP.GE.AND 0x20c alu integer fixed : P2 PT <- R2! RZ PT : stall 1 yield w7 r7 wait 0x0 reuse 0x1"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 9, "LDG.E.64 R2, [R2.64]",
     "LDG.E.64 0x981 lsu memory variable global load 8 : R2:2 <- [R2.64+0] : stall 1 yield w2 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 55, "@!P1 LOP3.LUT R3, RZ, UR6, RZ, 0x33, !PT",
     "@!P1 LOP3.LUT 0xc12 alu integer fixed : R3 <- RZ UR6 RZ 0x33 ~PT : stall 5 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 19, "SHF.L.W.U32.HI R8, R2, 0x5, R11",
     "SHF.L.W.U32.HI 0x819 alu integer fixed : R8 <- R2 0x5 R11 : stall 4 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "matrix", 44, "IADD3.X R25, R17.reuse, c[0x0][0x17c], RZ, P3, P2",
     "IADD3.X 0xa10 alu integer fixed : R25 <- R17! c0[RZ+380] RZ P3 P2 : stall 2 yield w7 r7 wait 0x0 reuse 0x1"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 46, "IMAD.HI.U32 R8, R5, R7, R4",
     "IMAD.HI.U32 0x227 fma integer fixed : R8 <- R5 R7 R4:2 : stall 4 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 60, "VOTEU.ANY UR4, UPT, PT",
     "VOTEU.ANY 0x886 uniform communication fixed : UR4 UPT <- PT : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 65, "UIADD3 UR5, UP0, UR8, 0x4, URZ",
     "UIADD3 0x890 uniform uniform fixed : UR5 UP0 <- UR8 0x4 URZ : stall 6 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 72, "ATOMG.E.CAS.STRONG.GPU PT, R3, [R6+-0x4], R16, R17",
     "ATOMG.E.CAS.STRONG.GPU 0x3a9 lsu memory variable global atomic 4 : PT R3 <- [R6.64+-4] R16 R17 : stall 1 yield "
     "w2 r0 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 76, "SHFL.BFLY PT, R8, R2, 0x1, 0x1f",
     "SHFL.BFLY 0xf89 lsu communication variable : PT R8 <- R2 0x1 0x1f : stall 4 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 90, "ISETP.GT.AND.EX P0, PT, R15, RZ, PT, P0",
     "ISETP.GT.AND.EX 0x20c alu integer fixed : P0 PT <- R15 RZ PT P0 : stall 13 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "matrix", 59, "LEA.HI.X R21, R8.reuse, c[0x0][0x18c], R9.reuse, 0x3, P0",
     "LEA.HI.X 0xa11 alu integer fixed : R21 <- R8! c0[RZ+396] R9! 0x3 P0 : stall 2 yield w7 r7 wait 0x0 reuse 0x5"},
    {"forms_sm80.cubin", "matrix", 34, "LDSM.16.M88.4 R12, [R10]",
     "LDSM.16.M88.4 0x83b lsu memory variable shared load 16 : R12:4 <- [R10+0] : stall 2 yield w2 r7 wait 0x0 reuse "
     "0x0"},
    {"forms_sm80.cubin", "matrix", 35, "HMMA.16816.F32 R4, R12.reuse, R4, RZ",
     "HMMA.F32 16x8x16 0x23c tensor fp16 fixed : R4:4 <- R12:4! R4:2 RZ:4 : stall 8 yield w7 r7 wait 0x4 reuse 0x1"},
    {"forms_sm80.cubin", "matrix", 70, "DMMA.884 R12, R2, R8, RZ",
     "DMMA 8x8x4 0x23f tensor mma variable : R12:4 <- R2:2 R8:2 RZ:4 : stall 4 yield w1 r0 wait 0x4 reuse 0x0"},
    {"forms_sm80.cubin", "shared_memory", 21, "LDGSTS.E.BYPASS.128 [R9+0x210], [R2.64]",
     "LDGSTS.E.BYPASS.128 0xfae lsu memory variable global async 16 : <- [R9+528] [R2.64+0] : stall 4 yield w7 r2 wait "
     "0x0 reuse 0x0"},
    {"forms_sm80.cubin", "shared_memory", 27, "DEPBAR.LE SB0, 0x0",
     "DEPBAR.LE 0x91a none misc fixed : <- SB0 0x0 : stall 4 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "shared_memory", 36, "BAR.RED.POPC.DEFER_BLOCKING 0x0, P0",
     "BAR.RED.POPC.DEFER_BLOCKING 0xb1d adu misc fixed : <- 0x0 P0 : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "calls", 16, "HFMA2.MMA R7, -RZ, RZ, 0, 2.384185791015625e-07",
     "HFMA2.MMA 0x435 tensor hfma fixed : R7 <- -RZ RZ 0x4 : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "floats", 14, "LDC R6, c[0x2][R4]",
     "LDC 0xb82 adu memory variable constant load 4 : R6 <- c2[R4+0] : stall 2 yield w0 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "floats", 16, "BRX R6, -0x110",
     "BRX 0x949 cbu control fixed : <- R6:2 ->0 : stall 5 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 197,
     "RET.REL.NODEC R4, _ZN5shape8integersIxEEvPKT_PS1_ij",
     "RET.REL.NODEC 0x950 cbu control fixed : <- R4:2 ->0 : stall 6 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "doubles", 9, "DFMA R2, R2, R6, 3",
     "DFMA 0x42b fp64 dfma variable : R2:2 <- R2:2 R6:2 0x40080000 : stall 2 yield w1 r0 wait 0x4 reuse 0x0"},
    {"forms_sm80.cubin", "doubles", 32, "F2I.S64.F64.TRUNC R12, R2",
     "F2I.S64.F64.TRUNC 0x311 xu conversion variable : R12:2 <- R2:2 : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "doubles", 52, "RED.E.ADD.F64.RN.STRONG.GPU [R16.64], R2",
     "RED.E.ADD.F64.RN.STRONG.GPU 0x98e lsu memory variable global reduction 8 : <- [R16.64+0] R2:2 : stall 4 yield w7 "
     "r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "halves", 19, "HFMA2 R0, R3, 2, 0.5, R3",
     "HFMA2 0x831 fp16 hfma fixed : R0 <- R3 0x40003800 R3 : stall 5 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "halves", 23, "HSETP2.GT.AND P0, PT, R0.H0_H0, R7.H0_H0, PT",
     "HSETP2.GT.AND 0x234 fp16 fp16 fixed : P0 PT <- R0.h0 R7.h0 PT : stall 13 w7 r7 wait 0x8 reuse 0x0"},
    {"forms_sm80.cubin", "calls", 64, "FSETP.GTU.FTZ.AND P1, PT, |R11|, +INF , PT",
     "FSETP.GTU.FTZ.AND 0x80b alu fp32 fixed : P1 PT <- |R11| 0x7f800000 PT : stall 13 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm80.cubin", "calls", 97, "CALL.REL.NOINC $__internal_1_$__cuda_sm20_sqrt_rn_f32_slowpath",
     "CALL.REL.NOINC 0x944 cbu control fixed : <- ->58 : stall 5 yield w7 r7 wait 0x20 reuse 0x0"},
    {"forms_sm80.cubin", "calls", 12, "STL [R0], R5",
     "STL 0x387 lsu memory variable local store 4 : <- [R0+0] R5 : stall 2 yield w7 r0 wait 0x4 reuse 0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 8, "LDC.64 R2, c[0x0][0x210]",
     "LDC.64 0xb82 adu memory variable constant load 8 : R2:2 <- c0[RZ+528] : stall 1 yield w0 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 9, "ULDC.64 UR10, c[0x0][0x208]",
     "ULDC.64 0xab9 uniform uniform fixed constant load 8 : UR10:2 <- c0[RZ+520] : stall 7 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "shared_memory", 13, "IMAD.WIDE R2, R0.reuse, 0x10, R2",
     "IMAD.WIDE 0x825 fmaheavy integer fixed : R2:2 <- R0! 0x10 R2:2 : stall 1 yield w7 r7 wait 0x8 reuse 0x1"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 12, "LDG.E.64 R2, desc[UR10][R2.64]",
     "LDG.E.64 0x981 lsu memory variable global load 8 : R2:2 <- d10[R2.64+0] : stall 1 yield w2 r7 wait 0x0 reuse "
     "0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 43, "VIADD R4, R6, 0xffffffe",
     "VIADD 0x836 fmaheavy integer fixed : R4 <- R6 0xffffffe : stall 6 w7 r7 wait 0x1 reuse 0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 15, "BSSY B0, 0x3b0",
     "BSSY 0x945 cbu control fixed : B0 <- ->59 : stall 2 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIiEEvPKT_PS1_ij", 30, "REDUX.SUM UR10, R2",
     "REDUX.SUM 0x3c4 adu communication variable : UR10 <- R2 : stall 2 yield w1 r7 wait 0x10 reuse 0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 85, "VIMNMX.U32 R6, R2, R19, PT",
     "VIMNMX.U32 0x248 alu integer fixed : R6 <- R2 R19 PT : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 92, "IMAD.X R17, RZ, RZ, R5, P0",
     "IMAD.X 0x224 fmaheavy integer fixed : R17 <- RZ RZ R5 P0 : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 123, "STG.E.64 desc[UR10][R4.64], R2",
     "STG.E.64 0x986 lsu memory variable global store 8 : <- d10[R4.64+0] R2:2 : stall 1 yield w7 r7 wait 0x0 reuse "
     "0x0"},
    {"forms_sm90.cubin", "matrix", 13, "ULEA UR4, UR5, UR4, 0x18",
     "ULEA 0x291 uniform uniform fixed : UR4 <- UR5 UR4 0x18 : stall 1 yield w7 r7 wait 0x2 reuse 0x0"},
    {"forms_sm90.cubin", "shared_memory", 45, "LDS.U16 R7, [R6+UR12]",
     "LDS.U16 0x984 lsu memory variable shared load 2 : R7 <- [R6+UR12+0] : stall 4 yield w1 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "shared_memory", 24, "@!P0 STS [UR12+0x200], RZ",
     "@!P0 STS 0x988 lsu memory variable shared store 4 : <- [RZ+UR12+512] RZ : stall 1 yield w7 r7 wait 0x0 reuse "
     "0x0"},
    {"forms_sm90.cubin", "shared_memory", 32, "LDGSTS.E.BYPASS.128 [R9], desc[UR10][R2.64]",
     "LDGSTS.E.BYPASS.128 0xfae lsu memory variable global async 16 : <- [R9+0] d10[R2.64+0] : stall 4 yield w7 r2 "
     "wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "shared_memory", 88, "ATOM.E.OR.STRONG.GPU PT, RZ, desc[UR10][R4.64], R7",
     "ATOM.E.OR.STRONG.GPU 0x98a lsu memory variable generic atomic 4 : PT RZ <- d10[R4.64+0] R7 : stall 4 yield w7 r7 "
     "wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "calls", 94, "R2UR UR6, R14",
     "R2UR 0x2ca alu misc fixed : UR6 <- R14 : stall 1 yield w7 r7 wait 0x1 reuse 0x0"},
    {"forms_sm90.cubin", "floats", 25, "VIADDMNMX.U32 R0, R0, R9, 0x2, PT",
     "VIADDMNMX.U32 0x446 alu integer fixed : R0 <- R0 R9 0x2 PT : stall 5 w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "floats", 113, "I2FP.F32.S32 R5, UR4",
     "I2FP.F32.S32 0xc45 alu conversion fixed : R5 <- UR4 : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "doubles", 51, "DMUL R12, R12, R2",
     "DMUL 0x228 fp64 dmul fixed : R12:2 <- R12:2 R2:2 : stall 7 w7 r7 wait 0x1 reuse 0x0"},
    {"forms_sm90.cubin", "doubles", 53, "REDG.E.ADD.F64.RN.STRONG.GPU desc[UR6][R8.64], R2",
     "REDG.E.ADD.F64.RN.STRONG.GPU 0x9a6 lsu memory variable global reduction 8 : <- d6[R8.64+0] R2:2 : stall 4 yield "
     "w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "halves", 25, "HFMA2.MMA.BF16_V2 R9, R6, R9, R8",
     "HFMA2.MMA.BF16_V2 0x235 tensor hfma fixed : R9 <- R6 R9 R8 : stall 12 w7 r7 wait 0x10 reuse 0x0"},
    {"forms_sm90.cubin", "halves", 29, "HADD2.F32 R2, -RZ, R0.H0_H0",
     "HADD2.F32 0x230 fmaheavy hadd fixed : R2 <- -RZ R0.h0 : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "floats", 186, "FFMA.RZ R3, R12.reuse, R10.reuse, R13.reuse",
     "FFMA.RZ 0x223 fma ffma fixed : R3 <- R12! R10! R13! : stall 1 yield w7 r7 wait 0x0 reuse 0x7"},
    {"forms_sm90.cubin", "matrix", 4, "S2UR UR5, SR_CgaCtaId",
     "S2UR 0x9c3 lsu misc variable : UR5 <- SR20 : stall 1 yield w1 r7 wait 0x0 reuse 0x0"},
    {"forms_sm90.cubin", "_ZN5shape8integersIxEEvPKT_PS1_ij", 89, "IDP.4A.S8.S8 R9, R2, UR4, R9",
     "IDP.4A.S8.S8 0xc26 fmaheavy integer fixed : R9 <- R2 UR4 R9 : stall 1 yield w7 r7 wait 0x0 reuse 0x0"},
    {"async_sm90a.cubin", "async_product", 20, "@!UP0 SYNCS.EXCH.64 URZ, [UR6], UR4",
     "@!UP0 SYNCS.EXCH.64 0x5b2 lsu misc variable shared atomic 8 : URZ:2 <- [RZ+UR6+0] UR4:2 : stall 2 yield w2 r1 "
     "wait 0x0 reuse 0x0"},
    {"async_sm90a.cubin", "async_product", 45, "UTMALDG.2D [UR8], [UR4]",
     "UTMALDG.2D 0x5b4 tma memory variable global async 0 : <- [RZ+UR8+0] [RZ+UR4+0] : stall 12 w7 r0 wait 0x0 reuse "
     "0x0"},
    {"async_sm90a.cubin", "async_product", 53, "UBLKCP.S.G [UR8], [UR4], UR6",
     "UBLKCP.S.G 0x3ba tma memory variable global async 0 : <- [RZ+UR8+0] [RZ+UR4+0] UR6 : stall 12 w7 r0 wait 0x0 "
     "reuse 0x0"},
    {"async_sm90a.cubin", "async_product", 72, "HGMMA.64x16x16.F32 R24, gdesc[UR4].tnspB, R24, gsb0",
     "HGMMA.F32 64x16x16 0x9f0 tensor fp16 variable : R24:8 <- desc4 R24:8 SB0 : stall 3 yield w7 r7 wait 0x0 reuse "
     "0x0"},
    {"async_sm90a.cubin", "async_product", 71, "UIADD3.64 UR6, UR4, 0x40, URZ",
     "UIADD3.64 0x897 uniform uniform fixed : UR6:2 <- UR4:2 0x40 URZ:2 : stall 9 w7 r7 wait 0x0 reuse 0x0"},
    {"async_sm90a.cubin", "cluster_sum", 21, "LD.E R5, [RZ.U32+UR4]",
     "LD.E 0x980 lsu memory variable generic load 4 : R5 <- [RZ+UR4+0] : stall 4 yield w2 r7 wait 0x0 reuse 0x0"},
    {"async_sm90a.cubin", "async_product", 4, "CS2R R30, SRZ",
     "CS2R 0x805 alu misc fixed : R30:2 <- SR21 : stall 2 yield w7 r7 wait 0x0 reuse 0x0"},
};

/// Every instruction of the test cubins and of traces/.
template <typename Visit>
void for_each_instruction(Visit visit) {
  for (const std::string& folder : {test::data(""), test::trace("")}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".cubin" || !std::filesystem::exists(entry.path().string() + ".json")) continue;
      const Program program = load_program(entry.path().string());
      for (const Kernel& kernel : program.kernels) {
        for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
          visit(kernel.name + " " + std::to_string(i) + ": " + kernel.text[i], kernel.instructions[i]);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("instructions decode with every field") {
  std::string loaded;
  Program program;
  for (const Golden& golden : kGolden) {
    if (loaded != golden.cubin) program = load_program(test::data(loaded = golden.cubin));
    const Kernel& kernel = program.kernel(golden.kernel);
    REQUIRE(golden.index < kernel.instructions.size());
    CHECK(kernel.text[golden.index] == golden.text);
    CHECK(test::describe(kernel.instructions[golden.index]) == golden.decoded);
  }
}

TEST_CASE("the reuse flags of text and code word are as many") {
  std::size_t differing = 0;
  for_each_instruction([&](const std::string& place, const Instruction& instruction) {
    int written = 0;
    for (int i = 0; i < instruction.operand_count; ++i) written += instruction.operands[i].reuse;
    if (written == std::popcount(instruction.control.reuse)) return;
    ++differing;
    UNSCOPED_INFO(place);
  });
  CHECK(differing == 0);
}

TEST_CASE("what sets a scoreboard has variable latency") {
  std::size_t wrong = 0;
  for_each_instruction([&](const std::string& place, const Instruction& instruction) {
    const bool sets = instruction.control.write_barrier != 7 || instruction.control.read_barrier != 7;
    if (!sets || instruction.variable_latency) return;
    ++wrong;
    UNSCOPED_INFO(place);
  });
  CHECK(wrong == 0);
}

TEST_CASE("the mnemonics of compiler output agree with their encodings") {
  std::size_t differing = 0;
  for_each_instruction([&](const std::string& place, const Instruction& instruction) {
    if (instruction.native == instruction.opcode) return;
    ++differing;
    UNSCOPED_INFO(place);
  });
  CHECK(differing == 0);
}

TEST_CASE("memory instructions have a space, a width and an address") {
  for_each_instruction([&](const std::string& place, const Instruction& instruction) {
    if (instruction.memory == MemoryKind::None) return;
    INFO(place);
    CHECK(instruction.space != MemorySpace::None);
    CHECK((instruction.access_bytes != 0 || instruction.pipe == Pipe::Tma));
    bool has_address = false;
    for (int i = 0; i < instruction.operand_count; ++i) {
      const OperandKind kind = instruction.operands[i].kind;
      has_address |= kind == OperandKind::Memory || kind == OperandKind::Constant;
    }
    CHECK(has_address);
  });
}

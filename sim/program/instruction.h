// A decoded SASS instruction, independent of text and time: opcode, operands, control fields, and the pipe that its
// encoding selects. Decoded once by the loader; nothing downstream compares strings.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/types.h"

namespace forewarp {

/// Mnemonics up to the first dot, a row each in opcodes.def.
enum class Opcode : std::uint16_t {
#define FW_OPCODE(name, ...) name,
#include "program/opcodes.def"
#undef FW_OPCODE
  Count
};

/// The parts of a mnemonic after the first dot (GE, AND, U32, 64, WIDE, X, ...), one per line in modifiers.def.
enum class Modifier : std::uint16_t {
#define FW_MODIFIER(name, text) name,
#include "program/modifiers.def"
#undef FW_MODIFIER
  Count
};
using ModifierSet = std::bitset<static_cast<std::size_t>(Modifier::Count)>;

const char* opcode_text(Opcode);
const char* modifier_text(Modifier);
Opcode find_opcode(std::string_view text);  ///< Opcode::Unknown if there is none
std::optional<Modifier> find_modifier(std::string_view text);

/// Execution pipe, by Nsight Compute's names (sm__inst_executed_pipe_*).
enum class Pipe : std::uint8_t {
  Alu,
  Fma,
  FmaHeavy,
  Fp16,
  Fp64,
  Xu,
  Tensor,
  Lsu,
  Adu,
  Cbu,
  Uniform,
  Tex,
  Tma,
  None,
  Count
};

/// Memory an instruction addresses.
enum class MemorySpace : std::uint8_t { None, Global, Shared, Local, Constant, Generic };
enum class MemoryKind : std::uint8_t { None, Load, Store, Atomic, Reduction, AsyncCopy };

enum class OperandKind : std::uint8_t {
  None,
  Register,          ///< index; 255 = RZ
  UniformRegister,   ///< index; 63 = URZ
  Predicate,         ///< index; 7 = PT
  UniformPredicate,  ///< index; 7 = UPT
  Immediate,         ///< immediate holds the 32 raw bits from the code word: floats as their bits, a pair of halves
                     ///< as one operand, the upper word of a double; integers sign-extended to 32 bits
  Constant,          ///< c[bank][index register + uniform register + offset]
  Memory,            ///< [index register + uniform register + offset]
  Barrier,           ///< B0..B15 convergence barrier
  Scoreboard,        ///< SB0..SB5
  Special,           ///< special register, `special`
  Target,            ///< immediate = instruction index in the kernel
  Descriptor,        ///< desc[URn] or gdesc[URn] standing alone; index = uniform register
  PredicateFile,     ///< PR: the seven predicates at once (P2R, R2P)
};

enum class SpecialRegister : std::uint8_t {
  LaneId,
  TidX,
  TidY,
  TidZ,
  CtaIdX,
  CtaIdY,
  CtaIdZ,
  VirtId,
  SmId,
  EqMask,
  LtMask,
  LeMask,
  GtMask,
  GeMask,
  ClockLo,
  ClockHi,
  GlobalTimerLo,
  GlobalTimerHi,
  SwinHi,
  SmemSize,
  CgaCtaId,
  Zero,
  Other,
  CombinedTid,
  SwinLo,
  LwinHi,
  LwinLo
};

/// Rows, columns and depth of a matrix instruction (HMMA.16816 is 16 x 8 x 16); zero elsewhere.
struct MatrixShape {
  std::uint16_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixShape&) const = default;
};

/// How a packed-half source is read: both halves, one of them twice (.H0_H0, .H1_H1), a float rounded to half (.F32),
/// or the negated upper half as the lower and the lower as the upper, i times a complex number (.H0_NH1).
enum class HalfSelect : std::uint8_t { Packed, H0, H1, F32, Turned };

inline constexpr int kRegisterZero = 255;
inline constexpr int kUniformRegisterZero = 63;
inline constexpr int kPredicateTrue = 7;
inline constexpr int kBindlessBank = 255;  ///< Constant: the bank is named by `descriptor` (cx[URn][...])

struct Operand {
  OperandKind kind = OperandKind::None;
  std::uint8_t index = 0;  ///< register, predicate or barrier number; for Constant and Memory the index
                           ///< register (kRegisterZero = none)
  std::uint8_t uniform =
      kUniformRegisterZero;  ///< Constant, Memory: uniform register added (kUniformRegisterZero = none)
  std::uint8_t descriptor = kUniformRegisterZero;  ///< Memory: desc[URn], Constant: cx[URn]; carried for completeness
  std::uint8_t bank = 0;                           ///< Constant
  std::uint8_t scale = 1;                          ///< Memory: index register is multiplied by this (.X4 .X8 .X16)
  SpecialRegister special = SpecialRegister::Other;
  HalfSelect half = HalfSelect::Packed;
  bool negate = false;          ///< '-'
  bool absolute = false;        ///< '|x|'
  bool invert = false;          ///< '~', or '!' on predicates
  bool wide = false;            ///< Memory: index register is a 64-bit pair (.64); Register: .64. In global
                                ///< and generic addresses `uniform` is always a 64-bit pair
  std::uint8_t byte = 0;        ///< Register: the selected part starts at this byte (.B1 .B2 .B3, .H1 = 2)
  bool sign = false;            ///< Register: its sign bit is read as a predicate (PLOP3 R0.SIGN)
  bool reuse = false;           ///< .reuse: keep in the operand cache
  std::int32_t offset = 0;      ///< Constant, Memory: byte offset
  std::uint32_t immediate = 0;  ///< Immediate, Target
};

/// The scheduling fields the compiler wrote into bits 105..125.
struct Control {
  std::uint8_t stall = 0;          ///< cycles before the warp's next instruction may issue
  bool yield = false;              ///< raw bit 109 (1: may keep issuing this warp)
  std::uint8_t write_barrier = 7;  ///< scoreboard released when the result is written; 7 = none
  std::uint8_t read_barrier = 7;   ///< scoreboard released when the sources were read; 7 = none
  std::uint8_t wait_mask = 0;      ///< bit i: wait until scoreboard i is zero
  std::uint8_t reuse = 0;          ///< bit i: source slot i stays in the operand cache
};

/// What sass counters call the operation (smsp__sass_thread_inst_executed_op_*).
/// The instruction types of Nsight Compute. FloatOther, HalfOther and DoubleOther are the fp32, fp16 and fp64
/// instructions that are no addition, multiplication or both.
enum class OperationClass : std::uint8_t {
  Fadd,
  Fmul,
  Ffma,
  Dadd,
  Dmul,
  Dfma,
  Hadd,
  Hmul,
  Hfma,
  Integer,
  Conversion,
  BitManipulation,
  Control,
  Memory,
  Uniform,
  Mma,
  Other,
  FloatOther,
  HalfOther,
  DoubleOther,
  Communication,
  Misc,
  Count
};

struct Instruction {
  static constexpr int kMaxOperands = 8;
  static constexpr int kMaxModifiers = 10;

  Opcode opcode{};  ///< by the text
  Opcode native{};  ///< by the encoding, which selects the pipe; differs where the text aliases
  ModifierSet modifiers;
  std::uint8_t modifier_count = 0;
  std::array<Modifier, kMaxModifiers> modifier_list{};  ///< in the order written: F2F.F32.F64 is not F2F.F64.F32
  MatrixShape shape;
  Pipe pipe = Pipe::None;
  OperationClass operation = OperationClass::Other;
  MemorySpace space = MemorySpace::None;
  MemoryKind memory = MemoryKind::None;
  std::uint8_t access_bytes = 0;  ///< bytes a lane moves, for memory instructions (LDSM .4: 16)
  std::uint16_t encoding = 0;     ///< bits 0..11 of the code word; the text may alias (MOV may be encoded as IMAD)
  std::uint8_t guard = kPredicateTrue;  ///< @P guard; for uniform-guarded instructions see guard_uniform
  bool guard_negated = false;
  bool guard_uniform = false;
  bool understood = true;         ///< false: its opcode, a modifier or an operand is missing from the tables
  bool variable_latency = false;  ///< completes through a scoreboard rather than after a fixed number of cycles
  std::uint8_t operand_count = 0;
  std::uint8_t destination_count = 0;  ///< the first so many operands are written (predicates included)
  std::array<Operand, kMaxOperands> operands{};
  Control control;

  bool has(Modifier m) const { return modifiers.test(static_cast<std::size_t>(m)); }
};

}  // namespace forewarp

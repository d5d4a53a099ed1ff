// A loaded cubin: its kernels as decoded instructions, with all that a launch needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "program/instruction.h"

namespace forewarp {

struct Parameter {
  std::uint32_t offset = 0;  ///< bytes from the start of the parameter area
  std::uint32_t size = 0;    ///< bytes
};

struct ConstantBank {
  int bank = 0;
  std::vector<std::uint8_t> bytes;
};

/// A function of a kernel's code: its entry first, then internal callees.
struct Function {
  std::string name;
  std::uint32_t first = 0;  ///< index of the first instruction
  std::uint32_t count = 0;
};

/// Where a BRX can go, as the compiler recorded it (instruction indices).
struct IndirectBranch {
  std::uint32_t instruction = 0;
  std::vector<std::uint32_t> targets;
};

struct Kernel {
  std::string name;                       ///< symbol
  std::string demangled;                  ///< equal to name for C symbols
  int registers = 0;                      ///< per thread, as in the code; Occupancy has what the driver allocates
  std::uint32_t static_shared_bytes = 0;  ///< without what the driver reserves
  std::uint32_t shared_base = 0;          ///< address of the first of them: 0 on sm_80, 0x400 on sm_90
  std::uint32_t local_bytes = 0;          ///< stack frame per thread
  std::uint32_t parameter_base = 0;       ///< offset of the parameters in bank 0: 0x160 on sm_80, 0x210 on sm_90
  std::uint32_t barrier_count = 0;
  std::uint32_t parameter_bytes = 0;      ///< size of the parameter area
  std::uint32_t max_threads = 1024;       ///< from launch bounds, if any
  Dim3 required_block{0, 0, 0};           ///< from __block_size__ or reqntid; zero: any
  std::vector<Parameter> parameters;      ///< in order
  std::vector<ConstantBank> constants;    ///< banks 2, 3, ... as far as present; bank 0 is filled at launch
  std::vector<Instruction> instructions;  ///< 16 bytes each in the code; internal callees follow the entry
  std::vector<Function> functions;        ///< in code order, the entry first
  std::vector<IndirectBranch> indirect_branches;
  std::vector<std::string> text;    ///< the disassembly, one line an instruction, for reports
  std::vector<std::string> source;  ///< "file.cu:12" of each instruction; empty when the cubin has no line information
};

/// Device address of a program's global variables: far above every buffer (launch.h places those).
inline constexpr std::uint64_t kModuleDataAddress = 0x7fa0'0000'0000;

/// What stands for the address of a function outside the cubin (Program::outside), 16 bytes each: no code is there.
inline constexpr std::uint64_t kOutsideAddress = 0x7f90'f000'0000;

struct Program {
  std::string path;
  int sm = 0;                             ///< 80, 90
  std::uint64_t content_hash = 0;         ///< of the cubin's bytes
  std::vector<std::uint8_t> module_data;  ///< initial contents of __device__ variables and of the compiler's tables
  std::vector<std::string> outside;       ///< functions that the cubin names and does not hold: vprintf, malloc, ...
  std::vector<Kernel> kernels;
  std::map<std::string, std::string> not_understood;  ///< by symbol: a kernel's opcodes that are rejected, a line each

  /// By exact symbol, exact demangled name, or unique demangled prefix; InputError names the candidates, or what is
  /// not understood of the kernel.
  const Kernel& kernel(const std::string& name) const;

 private:
  const Kernel& named(const std::string& name) const;
};

/// What to do with an opcode or modifier that the tables do not list.
enum class UnknownOpcode { Reject, Assume };

/// Reads `cubin_path` and its disassembly (`cubin_path`.json beside it, else nvdisasm on the PATH).
/// A kernel with unknown opcodes is rejected when it is asked for, with each of them, its count and first place; others
/// of the cubin are not concerned. If they are assumed, they count as ALU instructions and `warnings` says so.
Program load_program(const std::string& cubin_path, UnknownOpcode = UnknownOpcode::Reject,
                     std::vector<std::string>* warnings = nullptr);

}  // namespace forewarp

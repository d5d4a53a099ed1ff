// A loaded image: its kernels as decoded instructions, with all that a launch needs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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
  Dim3 cluster{0, 0, 0};                  ///< from __cluster_dims__; zero: left to the launch
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
  std::uint64_t content_hash = 0;         ///< of the bytes of the cubins that the kernels are from
  std::vector<std::uint8_t> module_data;  ///< initial contents of __device__ variables and of the compiler's tables
  std::vector<std::string> outside;       ///< functions that the cubin names and does not hold: vprintf, malloc, ...
  std::vector<Kernel> kernels;            ///< those that were asked for
  std::map<std::string, std::string> not_understood;  ///< by symbol: a kernel's unknown forms, a line each
  std::vector<std::string> others;                    ///< symbols of kernels that were not asked for

  /// By exact symbol, exact demangled name, or unique demangled prefix; InputError names the candidates.
  const Kernel& kernel(const std::string& name) const;
  /// The same, or null where that would be an error.
  const Kernel* find(const std::string& name) const;
};

/// What to do when a warp reaches an instruction with an opcode, modifier or operand that the tables do not list: stop
/// there, or take it for an ordinary ALU instruction.
enum class UnknownOpcode { Reject, Assume };

class TextStore;

struct ImageOptions {
  int sm = 0;  ///< the architecture to take from an image that holds several; 0: the newest
  std::optional<std::vector<std::string>> kernels;  ///< only those that these names can mean; nothing: all
  UnknownOpcode unknown = UnknownOpcode::Reject;
  std::vector<std::string>* warnings = nullptr;
  const TextStore* texts = nullptr;  ///< disassembly made before
  bool instructions = true;          ///< false: what stands beside the code is enough
  std::size_t one_in = 1;            ///< without `kernels`: every so-manieth kernel of the image
};

/// Reads the kernels of an image: a cubin, a fat binary, or a file that carries fat binaries (executable, library,
/// object). A cubin's disassembly is `path`.json beside it; else the nvdisasm on the PATH is asked for that of the
/// kernels' code.
Program load_program(const std::string& path, const ImageOptions&);
Program load_program(const std::string& path, UnknownOpcode = UnknownOpcode::Reject,
                     std::vector<std::string>* warnings = nullptr);

/// Hands over one kernel after another, so that a large image need not be kept as a whole. `part`: everything of the
/// program but its kernels, and the place of the kernel's cubin among those of the image for its architecture.
struct ImagePart {
  const Program* program = nullptr;
  std::size_t cubin = 0, cubins = 0;
};
void for_each_kernel(const std::string& path, const ImageOptions&,
                     const std::function<void(const ImagePart&, Kernel&&)>& use);

}  // namespace forewarp

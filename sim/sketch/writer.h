// A kernel being written: its parameters and the idioms that every kernel has, in the words of the architecture.
#pragma once

#include <string>
#include <vector>

#include "launch/launch.h"
#include "sketch/assembler/code.h"

namespace forewarp::sketch {

class Writer {
 public:
  Writer(const GpuModel& model, std::string name);

  Code code;
  const GpuModel& model;

  // ---- parameters, in the order of a launch's arguments
  int pointer_parameter();  ///< its place in bank 0
  int integer_parameter();
  int tensor_map_parameter();
  int offset_of(int parameter) const;  ///< of a parameter among all

  Value pointer(int parameter);  ///< the pair
  Value integer(int parameter);  ///< in a register
  Value uniform_integer(int parameter);
  Value descriptor();  ///< of global memory

  // ---- where this thread is
  Value thread();   ///< threadIdx.x, of blocks in one dimension
  Value block_x();  ///< uniform on sm_90
  Value block_y();
  Value block_z();
  /// Shared memory's address, in a uniform register; `offset` bytes further.
  Value shared_base(int offset = 0);

  // ---- integers; results in new registers
  Value number(int n);
  Value copy(Arg from);
  Value add(Value a, Arg b);
  Value mad(Arg a, Arg b, Arg c);
  Value wide_mad(Arg a, Arg b, Arg c);  ///< 64-bit sum
  Value uniform_wide_mad(Arg a, Arg b, Arg c);
  Value shift_left(Value a, int bits);
  Value shift_right(Value a, int bits);
  Value and_bits(Value a, std::uint32_t mask);
  Value exclusive_or(Value a, Arg b);
  Value compare(std::string_view how, Arg a, Arg b);  ///< "GE", "LT.U32", ...
  /// a compared with b, and `with`.
  Value compare_and(std::string_view how, Arg a, Arg b, Arg with);
  void advance(Value pair, Arg bytes);  ///< adds a 32-bit number (or an immediate) to an address, in place
  void assign(Value to, Arg from);

  // ---- floats
  Value fp(std::string_view mnemonic, Arg a);
  Value fp(std::string_view mnemonic, Arg a, Arg b);
  Value fp(std::string_view mnemonic, Arg a, Arg b, Arg c);

  // ---- memory; `bytes` a lane
  Value load_global(Value address, int offset, int bytes, bool constant = true, Value guard = kPT,
                    bool negated = false);
  void load_global(Value into, Value address, int offset, int bytes, bool constant, Value guard = kPT,
                   bool negated = false);
  void store_global(Value address, int offset, Value data, int bytes, Value guard = kPT, bool negated = false);
  Value load_shared(Value address, int offset, int bytes, Value uniform = kURZ);
  void store_shared(Value address, int offset, Value data, int bytes, Value uniform = kURZ);
  void barrier();

  /// The finished kernel. `where` and `remedy` are for a kernel that needs more registers than there are. `taken`: what
  /// some of its threads take of those that others give up, where they do.
  Kernel finish(const SourcePosition& where, const std::string& remedy, int threads, std::uint32_t shared_bytes,
                int taken = 0);

 private:
  std::string name_;
  std::vector<Parameter> parameters_;
  std::uint32_t parameter_bytes_ = 0;
  Value descriptor_, thread_, block_x_, block_y_, block_z_, base_;
};

/// Mnemonic of a memory access: "LDS" and 16 is LDS.128.
std::string access_mnemonic(std::string_view base, int bytes);

}  // namespace forewarp::sketch

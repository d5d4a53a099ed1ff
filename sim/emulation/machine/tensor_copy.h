// Copies between global and shared memory that one instruction asks for: boxes of a tensor (UTMALDG, UTMASTG, UTMAREDG,
// UTMAPF) and plain stretches (UBLKCP, UBLKRED, UBLKPF). They are carried out at once, and their bytes count at the
// barrier at once.
#pragma once

#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "launch/tensor_map.h"
#include "trace/trace.h"

namespace forewarp::emulation {

/// Op::variant of the copies.
enum class CopyForm : std::uint8_t { TensorIn, TensorOut, TensorPrefetch, BulkIn, BulkOut, BulkPrefetch };

inline bool is_tensor(CopyForm form) { return form <= CopyForm::TensorPrefetch; }

/// Of those that combine what they bring with what is there, Op::immediate is 1 + a BulkOperation, and of plain
/// stretches Op::target the elements' type; a tensor map says its own.
enum class BulkOperation : std::uint8_t { Add, Min, Max, Increment, Decrement, And, Or, Xor };
enum class BulkType : std::uint8_t { U32, S32, U64, S64, F32, F32Ftz, F64, F16, Bf16 };

/// What a copy touches. Rows of `extent[0]` bytes; of what lies beyond the tensor nothing is accessed.
struct CopiedBox {
  MemoryKind kind = MemoryKind::AsyncCopy;  ///< into shared memory; Store, Reduction: out of it; Load: to L2
  BulkOperation operation{};                ///< of a reduction
  BulkType type{};
  bool any = false;  ///< some of it lies within the tensor
  int rank = 1;
  std::uint64_t base = 0;  ///< global address of the first byte that is accessed
  std::array<std::uint32_t, kMostTensorDims> extent{1, 1, 1, 1, 1};  ///< bytes, rows, ... that are
  std::array<std::uint64_t, kMostTensorDims> pitch{};                ///< bytes from one to the next
  std::uint32_t shared = 0;                                          ///< offset
  std::uint32_t barrier = 0;                                         ///< offset, of copies inward
  std::uint32_t bytes = 0;                                           ///< of the whole box
  BlockMask blocks = 0;  ///< of the cluster to which it goes, at the same offsets; none: the block at hand
  /// Registers of a tensor's first operand before its coordinates.
  std::uint32_t before_coordinates() const { return inward() ? 2 : kind == MemoryKind::Load ? 0 : 1; }
  bool inward() const { return kind == MemoryKind::AsyncCopy; }
  bool outward() const { return kind == MemoryKind::Store || kind == MemoryKind::Reduction; }
  // Of a tensor: how the coordinates that the kernel gave lie in it.
  const TensorMap* map = nullptr;
  bool map_written = false;  ///< it lies where blocks of the launch write
  std::array<std::int32_t, kMostTensorDims> coordinates{};
};

/// What the copy at hand is asked to do. InputError for what a GPU reports as a fault and for what is not emulated.
CopiedBox read_copy(Exec& x, const Op& op, TensorMap& map);

/// Moves the bytes.
void move_copy(Exec& x, const Op& op, const CopiedBox& box);

}  // namespace forewarp::emulation

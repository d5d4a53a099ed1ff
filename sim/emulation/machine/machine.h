// The state of one thread block while it is emulated: warps with their lanes split over program counters, convergence
// barriers, block barriers, shared and local memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "emulation/machine/memory.h"
#include "emulation/ops/op.h"

namespace forewarp::emulation {

/// Generic addresses of shared and local memory: 16 MiB windows outside all buffers. The low word of the shared window
/// is zero, which sm_90 code relies on.
inline constexpr std::uint64_t kSharedWindow = 0x00007f0000000000ull;
inline constexpr std::uint64_t kLocalWindow = 0x00007e0000000000ull;
inline constexpr std::uint64_t kWindowBytes = 1ull << 24;
/// A shared address names the block that it belongs to, by its rank in the cluster, in the bits from this one on.
inline constexpr std::uint32_t kRankShift = 24;
inline constexpr std::uint64_t kSharedWindowBytes = std::uint64_t{16} << kRankShift;
/// sm_90 reserves the first KiB of shared memory; code adds this base.
inline constexpr std::uint32_t kSharedBaseSm90 = 0x400;
/// The stack of a thread beyond the kernel's frame: cudaLimitStackSize's default.
inline constexpr std::uint32_t kDefaultStackBytes = 1024;

inline constexpr int kConvergenceBarriers = 16;
inline constexpr int kBlockBarriers = 16;

enum class Wait : std::uint8_t { Ready, Sync, WarpSync, Collective, Block, Phase, Group, Cluster };

/// Addresses of a kernel's parameters, for those whose address is taken (__grid_constant__).
inline constexpr std::uint64_t kParameterWindow = 0x00007d0000000000ull;

/// Lanes of a warp that are at the same instruction.
struct Split {
  LaneMask mask = 0;
  std::uint32_t pc = 0;
  Wait wait = Wait::Ready;
  std::uint8_t barrier = 0;  ///< which convergence or block barrier it waits at
  LaneMask need = 0;         ///< WarpSync, Collective: lanes that must arrive; Phase: which (phases.cpp)
};

/// Where the lanes of a collective continue after ENDCOLLECTIVE.
struct Resume {
  LaneMask mask = 0;
  std::uint32_t pc = 0;
};

/// The last time that a warp asked for what others write (op.h, asks).
struct Asked {
  std::uint32_t pc = ~0u;
  LaneMask lanes = 0;
  std::uint64_t address = 0;  ///< the lowest lane's
  std::uint32_t before = 0;   ///< so many times, without another meeting in between
};

struct Warp {
  int index = 0;
  Row* rows = nullptr;
  std::array<LaneMask, kPredicateSlots> predicates{};
  LaneMask lanes = 0;  ///< that exist
  LaneMask live = 0;   ///< that have not exited
  /// Participants of each convergence barrier, by lane. BSSY writes the same mask for all its lanes; one per lane, so
  /// that the two sides of a branch cannot overwrite each other's barrier.
  std::array<std::array<LaneMask, kWarpLanes>, kConvergenceBarriers> barrier{};
  std::vector<Split> splits;
  std::uint32_t turns = 0;  ///< used by one split without waiting
  std::vector<Resume> resume;
  std::array<LaneMask, kBlockBarriers> arrived{};  ///< lanes at a block barrier whose warp is not complete yet
  LaneMask cluster_arrived = 0;                    ///< lanes that the cluster's barrier has counted in its phase
  std::uint32_t barrier_result = 0;                ///< of the last BAR.RED
  std::array<std::array<std::uint8_t, 16>, kWarpLanes> copied{};  ///< bytes of an asynchronous copy in flight
  Asked asked;
  std::vector<std::uint8_t> local;  ///< lane after lane, allocated on first use
};

struct BlockBarrier {
  std::uint32_t arrived = 0;   ///< threads, in whole warps
  std::uint32_t expected = 0;  ///< threads; 0: all that live
  std::uint32_t popc = 0;
  bool all = true, any = false;
  bool waiting = false;  ///< some split waits here
  ReduceOperation operation = ReduceOperation::Popc;
};

/// A barrier in shared memory that has been initialised: its offset, and how many of its phases are over.
struct PhaseBarrier {
  std::uint32_t offset = 0;
  std::uint32_t completed = 0;
};

/// Functions of the CUDA runtime that a module names, and which of the first 64 were called.
struct OutsideCalls {
  std::vector<std::string> names;
  mutable std::atomic<std::uint64_t> called{0};
};

struct BlockState;

/// The blocks of a cluster, by rank. They run at the same time and reach each other's shared memory.
struct ClusterState {
  std::vector<BlockState*> blocks;
};

struct BlockState {
  Dim3 index{0, 0, 0};
  Dim3 block, grid;
  int sm = 0;
  std::uint32_t cluster_rank = 0;
  ClusterState* cluster = nullptr;  ///< never null; a launch without clusters has those of one block
  bool written_by_others = false;   ///< another block has stored or copied into its shared memory
  std::uint64_t clock = 0;          ///< warp instructions executed: what the clock registers show
  std::uint32_t shared_base = 0;    ///< address of the first byte
  std::vector<std::uint8_t> shared;
  /// By kLeftBytes of that: a store was left out there (ProgramSlice::left); empty: none was.
  std::vector<std::uint8_t> left;
  std::uint32_t local_bytes = 0;  ///< per thread
  GlobalView* global = nullptr;
  const DecodedKernel* kernel = nullptr;
  const ConstantBanks* constants = nullptr;
  const OutsideCalls* outside = nullptr;
  std::vector<Warp> warps;
  std::array<BlockBarrier, kBlockBarriers> barriers{};
  std::vector<PhaseBarrier> phase_barriers;
  std::vector<Row> rows;  ///< register files of all warps
};

inline constexpr std::uint32_t kLeftBytes = 16;
/// Whether a store to any of so many bytes of shared memory was left out.
bool was_left(const BlockState&, std::uint32_t offset, std::uint32_t bytes);

/// The block that has so many before it in the cluster of `block`; null: there is none.
inline BlockState* cluster_block(const BlockState& block, std::uint32_t rank) {
  return rank < block.cluster->blocks.size() ? block.cluster->blocks[rank] : nullptr;
}

/// "kernel k, block (0,1,0), thread (3,0,0), instruction 0x40: LDG ...", the start of every message.
std::string place_text(const BlockState& block, const Warp& warp, int lane, std::uint32_t pc);

}  // namespace forewarp::emulation

#include "emulation/machine/constants.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "emulation/machine/machine.h"
#include "emulation/machine/memory.h"
#include "launch/parameters.h"

namespace forewarp::emulation {
namespace {

// Offsets in bank 0.
constexpr std::uint32_t kBlockDim = 0x0, kGridDim = 0xc, kSharedBase = 0x18, kLocalBase = 0x20, kStack = 0x28,
                        kDynamicShared = 0x2c, kSmCount = 0x10c, kClusterExtent = 0x144, kClusterBlocks = 0x188,
                        kClusterFlag = 0x140, kClusterReciprocals = 0x150, kClusterGrid = 0x15c,
                        kParameterAddress = 0x198;
/// The address of the workspace of this_grid().sync(), its upper word first.
constexpr std::uint32_t kGridWorkspaceSm80 = 0x8c, kGridWorkspaceSm90 = 0x44;

class Bank {
 public:
  explicit Bank(std::size_t size) : bytes_(size) {}
  void put(std::uint32_t offset, std::uint64_t value, std::uint32_t size = 4) {
    for (std::uint32_t i = 0; i < size; ++i) bytes_[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  void put(std::uint32_t offset, const Dim3& d) {
    put(offset, d.x);
    put(offset + 4, d.y);
    put(offset + 8, d.z);
  }
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

std::uint32_t cluster_ratio(std::uint32_t n) {
  float value = 1.0f / static_cast<float>(n);
  if (static_cast<double>(value) * n < 1.0) value = std::nextafter(value, 2.0f);
  return std::bit_cast<std::uint32_t>(value);
}

std::uint32_t shared_bytes(const Kernel& kernel, const Launch& launch) {
  // Dynamic shared memory starts behind the static part, which the compiler has padded to what extern arrays need.
  return kernel.static_shared_bytes + launch.dynamic_shared_bytes;
}

bool reads_sm_count(const Kernel& kernel) {
  const auto reads = [](const Instruction& in) {
    return std::any_of(in.operands.begin(), in.operands.begin() + in.operand_count, [](const Operand& o) {
      return o.kind == OperandKind::Constant && o.bank == 0 && o.offset == static_cast<std::int32_t>(kSmCount);
    });
  };
  return std::any_of(kernel.instructions.begin(), kernel.instructions.end(), reads);
}

ConstantBanks make_constants(const Kernel& kernel, int sm, int sm_count, const Launch& launch,
                             const std::vector<std::uint64_t>& addresses) {
  if (sm_count == 0 && reads_sm_count(kernel))
    throw InputError("kernel '" + (kernel.demangled.empty() ? kernel.name : kernel.demangled) +
                         "' reads the number of SMs (%nsmid), which depends on the GPU",
                     "predict it on a GPU with forewarp predict, or give the number as an argument");
  std::vector<ParameterSlot> slots;
  slots.reserve(kernel.parameters.size());
  for (const Parameter& p : kernel.parameters) slots.push_back({p.offset, p.size});
  const std::vector<std::uint8_t> parameters = pack_parameters(launch, addresses, slots);

  Bank bank(std::max<std::size_t>(0x400, kernel.parameter_base + parameters.size()));
  bank.put(kBlockDim, launch.block);
  bank.put(kGridDim, launch.grid);
  if (sm < 90) bank.put(kSharedBase, kSharedWindow, 8);
  bank.put(kLocalBase, kLocalWindow, 8);
  bank.put(kStack, (kernel.local_bytes + kDefaultStackBytes + 15) / 16 * 16);
  bank.put(kDynamicShared, launch.dynamic_shared_bytes);
  bank.put(kSmCount, static_cast<std::uint64_t>(sm_count));
  if (sm >= 90) bank.put(kParameterAddress, kParameterWindow, 8);
  const std::uint32_t workspace = sm >= 90 ? kGridWorkspaceSm90 : kGridWorkspaceSm80;
  bank.put(workspace, kGridWorkspaceAddress >> 32);
  bank.put(workspace + 4, kGridWorkspaceAddress & 0xffffffff);
  if (sm >= 90 && launch.cluster.x != 0) {
    bank.put(kClusterFlag, 1);
    bank.put(kClusterExtent, launch.cluster);
    bank.put(kClusterBlocks, launch.cluster.count());
    bank.put(kClusterReciprocals,
             {cluster_ratio(launch.cluster.x), cluster_ratio(launch.cluster.y), cluster_ratio(launch.cluster.z)});
    bank.put(kClusterGrid,
             {launch.grid.x / launch.cluster.x, launch.grid.y / launch.cluster.y, launch.grid.z / launch.cluster.z});
  }
  std::copy(parameters.begin(), parameters.end(), bank.bytes_.begin() + kernel.parameter_base);

  ConstantBanks banks;
  banks.banks.push_back({0, std::move(bank.bytes_)});
  for (const ConstantBank& b : kernel.constants) {
    if (b.bank != 0) banks.banks.push_back(b);
  }
  return banks;
}

}  // namespace forewarp::emulation

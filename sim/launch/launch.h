// The launch file: which kernels run on which buffers (docs/launch-file.md). The simulator and the runner for real GPUs
// share this reader, so both start from the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/types.h"
#include "launch/tensor_map.h"

namespace forewarp::config {
class Node;
}

namespace forewarp {

enum class ElementType : std::uint8_t { F32, F64, F16, Bf16, E4m3, S8 };

struct FillZero {};
struct FillIota {};  ///< 32-bit 0, 1, 2, ...
struct FillUniform {
  ElementType type = ElementType::F32;
  double low = 0, high = 1;
  std::uint32_t seed = 1;
};
struct FillLcg {
  std::uint32_t seed = 1;
  std::uint32_t modulus = 0;
};  ///< 32-bit integers (s >> 8) mod modulus
struct FillFile {
  std::string path;
};  ///< relative to the launch file
/// A place in a buffer of the case.
struct Pointer {
  int buffer = -1;           ///< index into Case::buffers
  std::uint64_t offset = 0;  ///< bytes from its start
  bool operator==(const Pointer&) const = default;
};
struct FillPointers {
  std::vector<Pointer> pointers;
};  ///< 64-bit addresses
/// A tensor map in our own encoding, without the address of what it describes.
struct PlacedTensorMap {
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  Pointer pointer;
  bool operator==(const PlacedTensorMap&) const = default;
};
struct FillTensorMaps {
  std::vector<PlacedTensorMap> maps;
};  ///< 128 bytes each
using Fill = std::variant<FillZero, FillIota, FillUniform, FillLcg, FillFile, FillPointers, FillTensorMaps>;

struct Buffer {
  std::string name;
  std::uint64_t bytes = 0;
  Fill fill;
  SourcePosition where;
};

enum class ArgumentKind : std::uint8_t { Pointer, I32, U32, I64, U64, F32, F64, F16, Bf16, Bytes, Struct, TensorMap };

/// A kernel argument, as the bytes that the parameter area holds. Addresses are known once buffers have places.
struct Argument {
  ArgumentKind kind{};
  std::vector<std::uint8_t> bytes;  ///< zero where pointers go
  struct PlacedPointer {
    std::uint32_t at = 0;  ///< offset in bytes
    Pointer pointer;
    bool operator==(const PlacedPointer&) const = default;
  };
  std::vector<PlacedPointer> pointers;
  std::vector<std::uint32_t>
      maps;  ///< offsets of tensor maps, in our own encoding; their pointers are among `pointers`
  SourcePosition where;

  static Argument pointer(int buffer, std::uint64_t offset = 0);
  /// A scalar of that kind, from its raw bits.
  static Argument scalar(ArgumentKind kind, std::uint64_t bits);
  std::uint32_t size() const { return static_cast<std::uint32_t>(bytes.size()); }
  /// The raw bits of a scalar: its first eight bytes.
  std::uint64_t bits() const;
};

/// A whole number of clusters of such an extent make the grid.
inline bool divides(const Dim3& cluster, const Dim3& grid) {
  return grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

struct Launch {
  std::string kernel;
  Dim3 grid, block;
  Dim3 cluster{0, 0, 0};  ///< zero: none
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<Argument> arguments;
  SourcePosition where;
};

struct Case {
  std::string id;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;  ///< in order, over the same buffers
  SourcePosition where;
};

struct LaunchFile {
  std::string path;
  std::vector<Case> cases;
};

/// Reads and checks a launch file. InputError with file, line and column for unknown, missing or repeated keys, zero
/// extents, arguments that name no buffer and offsets outside one.
LaunchFile read_launch_file(const std::string& path);

/// One case, from what stands behind its id; files that buffers are filled from are named from the folder of `path`.
Case read_case(const std::string& id, const config::Node& item, const std::string& path);

/// The initial contents of a buffer (generator: s = s * 1664525 + 1013904223 before each element). addresses[i] belongs
/// to Case::buffers[i]; only a buffer of pointers needs them.
std::vector<std::uint8_t> make_buffer(const Buffer&, std::span<const std::uint64_t> addresses = {});

/// Device addresses, the same for every run so that predictions are reproducible: far apart and aligned as cudaMalloc
/// aligns them, to 512 bytes or, for large buffers, 2 MiB. addresses[i] belongs to buffers[i].
std::vector<std::uint64_t> place_buffers(const Case&);

}  // namespace forewarp

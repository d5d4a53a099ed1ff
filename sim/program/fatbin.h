// Files that hold machine code for GPUs: a cubin, a fat binary, or anything that carries fat binaries inside (an
// executable, a shared library, an object, an archive).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace forewarp {

/// A file's bytes, read when they are touched. Empty where the path is no regular file that can be read.
class MappedFile {
 public:
  /// InputError if it cannot be read or is no regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::uint8_t> bytes() const { return bytes_; }
  /// Gives back the memory that these bytes of the file take; they are read again when they are touched again.
  void release(std::span<const std::uint8_t> part) const;

 private:
  std::span<const std::uint8_t> bytes_;
};

enum class Packing : std::uint8_t { None, Lz4, Zstd };

/// A cubin in a file.
struct EmbeddedCubin {
  int sm = 0;                ///< 80, 90, ...; 0 where only the cubin itself says
  bool accelerated = false;  ///< sm_90a
  Packing packing = Packing::None;
  std::span<const std::uint8_t> stored;  ///< in the file
  std::uint64_t unpacked_bytes = 0;
};

/// In the order of the file; empty if there is none. A file that is a cubin is its own only element.
std::vector<EmbeddedCubin> find_cubins(std::span<const std::uint8_t> file);

/// The cubin's bytes: a part of the file, or `buffer`, into which they were unpacked. Empty if they are damaged.
std::span<const std::uint8_t> unpack(const EmbeddedCubin&, std::vector<std::uint8_t>& buffer);

}  // namespace forewarp

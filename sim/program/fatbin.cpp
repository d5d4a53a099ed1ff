#include "program/fatbin.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace forewarp {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::uint16_t kCubinEntry = 2;  // 1 is PTX
constexpr std::uint64_t kLz4Flag = 0x2000, kZstdFlag = 0x8000, kAcceleratedFlag = 0x100000;
/// No cubin is larger; a damaged size must not take the machine's memory.
constexpr std::uint64_t kMostUnpacked = std::uint64_t{2} << 30;
/// A cubin seldom packs better than this, so a larger size is a damaged one.
constexpr std::uint64_t kMostPackingRatio = 4096;

struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;
};
struct FatbinEntry {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;         ///< to the next entry
  std::uint32_t packed_bytes;  ///< 0 where nothing is packed
  std::uint32_t unknown;
  std::uint16_t minor, major;
  std::uint32_t sm, name_offset, name_bytes;
  std::uint64_t flags, zero, unpacked_bytes;
};
static_assert(sizeof(FatbinHeader) == 16 && sizeof(FatbinEntry) == 64);

template <class T>
bool read_at(Bytes bytes, std::uint64_t at, T& value) {
  if (at > bytes.size() || bytes.size() - at < sizeof value) return false;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return true;
}

bool is_elf(Bytes bytes) { return bytes.size() >= 64 && std::memcmp(bytes.data(), "\177ELF", 4) == 0; }

bool is_cuda_elf(Bytes bytes) {
  constexpr std::uint16_t kMachineCuda = 190;
  std::uint16_t machine = 0;
  return is_elf(bytes) && read_at(bytes, 18, machine) && machine == kMachineCuda;
}

/// The entries of one fat binary.
void read_entries(Bytes entries, std::vector<EmbeddedCubin>& cubins) {
  std::uint64_t at = 0;
  FatbinEntry entry;
  while (read_at(entries, at, entry)) {
    if (entry.header_bytes < sizeof entry || entry.header_bytes > entries.size() - at ||
        entry.bytes > entries.size() - at - entry.header_bytes)
      return;
    const Bytes content = entries.subspan(at + entry.header_bytes, entry.bytes);
    at += entry.header_bytes + entry.bytes;
    if (entry.kind != kCubinEntry) continue;
    EmbeddedCubin cubin;
    cubin.sm = static_cast<int>(entry.sm & 0xffff);
    cubin.accelerated = (entry.flags & kAcceleratedFlag) != 0;
    cubin.packing = (entry.flags & kZstdFlag) != 0  ? Packing::Zstd
                    : (entry.flags & kLz4Flag) != 0 ? Packing::Lz4
                                                    : Packing::None;
    if (cubin.packing == Packing::None) {
      cubin.stored = content;
      cubin.unpacked_bytes = content.size();
    } else {
      cubin.stored = content.first(std::min<std::uint64_t>(entry.packed_bytes, content.size()));
      cubin.unpacked_bytes = entry.unpacked_bytes;
    }
    cubins.push_back(cubin);
  }
}

/// Whether a fat binary begins here; its entries then.
bool read_fatbin(Bytes at, std::vector<EmbeddedCubin>& cubins, std::uint64_t& bytes) {
  FatbinHeader header;
  if (!read_at(at, 0, header) || header.magic != kFatbinMagic || header.header_bytes < sizeof header ||
      header.header_bytes > at.size() || header.bytes > at.size() - header.header_bytes)
    return false;
  read_entries(at.subspan(header.header_bytes, header.bytes), cubins);
  bytes = header.header_bytes + header.bytes;
  return true;
}

/// Fat binaries lie on multiples of 8, of 4 in some objects.
void scan(Bytes part, std::vector<EmbeddedCubin>& cubins) {
  for (std::uint64_t at = 0, bytes = 0; at + sizeof(FatbinHeader) <= part.size();)
    at += read_fatbin(part.subspan(at), cubins, bytes) ? (bytes + 3) / 4 * 4 : 4;
}

/// In a program's data they lie anywhere: a library that loads its kernels by itself keeps them as arrays of bytes.
void search(Bytes part, std::vector<EmbeddedCubin>& cubins) {
  while (part.size() >= sizeof(FatbinHeader)) {
    const void* found = memmem(part.data(), part.size(), &kFatbinMagic, sizeof kFatbinMagic);
    if (found == nullptr) return;
    part = part.subspan(static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - part.data()));
    std::uint64_t bytes = 1;
    read_fatbin(part, cubins, bytes);
    part = part.subspan(bytes);
  }
}

/// The sections of an executable, library or object that hold fat binaries: what was linked comes before what was not,
/// and that before what lies in other data.
void scan_elf(Bytes file, std::vector<EmbeddedCubin>& cubins) {
  struct Header {
    std::uint32_t name, type;
    std::uint64_t flags, address, offset, size;
    std::uint32_t link, info;
    std::uint64_t alignment, entry_bytes;
  };
  constexpr std::uint32_t kContent = 1;     // SHT_PROGBITS
  constexpr std::uint64_t kExecutable = 4;  // SHF_EXECINSTR
  std::uint64_t table = 0;
  std::uint16_t count = 0, names_at = 0;
  if (!read_at(file, 0x28, table) || !read_at(file, 0x3c, count) || !read_at(file, 0x3e, names_at)) return;
  const auto header_of = [&](std::uint64_t i, Header& h) { return read_at(file, table + i * sizeof(Header), h); };
  Header names;
  if (table > file.size() || !header_of(names_at, names)) return;
  const auto is_named = [&](const Header& h, const char* wanted) {
    const std::uint64_t name = names.offset + h.name;
    const std::size_t length = std::strlen(wanted) + 1;
    return name <= file.size() && file.size() - name >= length && std::memcmp(file.data() + name, wanted, length) == 0;
  };
  const char* const linked = ".nv_fatbin";
  const char* const separate = "__nv_relfatbin";
  const auto each = [&](const auto& use) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Header h;
      if (header_of(i, h) && h.offset <= file.size() && h.size <= file.size() - h.offset) use(h);
    }
  };
  for (const char* wanted : {linked, separate}) {
    each([&](const Header& h) {
      if (is_named(h, wanted)) scan(file.subspan(h.offset, h.size), cubins);
    });
  }
  each([&](const Header& h) {
    if (h.type == kContent && (h.flags & kExecutable) == 0 && !is_named(h, linked) && !is_named(h, separate))
      search(file.subspan(h.offset, h.size), cubins);
  });
}

/// A block of LZ4: runs of bytes as they are, each followed by a copy of earlier ones. Whether it gave all bytes.
bool unpack_lz4(Bytes in, std::span<std::uint8_t> out) {
  std::size_t from = 0, to = 0;
  const auto length = [&](std::size_t nibble) {
    std::size_t value = nibble;
    if (nibble != 15) return value;
    std::uint8_t next = 255;
    while (next == 255 && from < in.size()) {
      next = in[from++];
      value += next;
    }
    return value;
  };
  while (from < in.size()) {
    const std::uint8_t token = in[from++];
    const std::size_t literals = length(token >> 4);
    if (literals > in.size() - from || literals > out.size() - to) return false;
    if (literals > 0) std::memcpy(out.data() + to, in.data() + from, literals);
    from += literals;
    to += literals;
    if (from == in.size() || to == out.size()) break;  // the last run has no copy behind it
    if (in.size() - from < 2) return false;
    const std::size_t distance = in[from] | static_cast<std::size_t>(in[from + 1]) << 8;
    from += 2;
    const std::size_t copied = length(token & 15u) + 4;
    if (distance == 0 || distance > to || copied > out.size() - to) return false;
    for (std::size_t i = 0; i < copied; ++i, ++to) out[to] = out[to - distance];
  }
  return to == out.size();
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw InputError(SourcePosition{path, 0, 0}, "cannot be read: " + why);
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(std::strerror(errno));
  struct stat status {};
  const bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  void* at = MAP_FAILED;
  if (regular && status.st_size > 0)
    at = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  close(file);
  if (!regular) fail("it is no regular file");
  if (status.st_size == 0) return;
  if (at == MAP_FAILED) fail(std::strerror(error));
  bytes_ = {static_cast<const std::uint8_t*>(at), static_cast<std::size_t>(status.st_size)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

void MappedFile::release(std::span<const std::uint8_t> part) const {
  if (part.data() < bytes_.data() || part.data() + part.size() > bytes_.data() + bytes_.size()) return;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  // Whole pages alone: what is left over at both ends is little, and behind the file lies memory of others.
  const auto begin = (static_cast<std::uint64_t>(part.data() - bytes_.data()) + page - 1) / page * page;
  const std::uint64_t end = static_cast<std::uint64_t>(part.data() - bytes_.data() + part.size()) / page * page;
  if (begin < end) madvise(const_cast<std::uint8_t*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

std::vector<EmbeddedCubin> find_cubins(Bytes file) {
  std::vector<EmbeddedCubin> cubins;
  if (is_cuda_elf(file)) {
    cubins.push_back({0, false, Packing::None, file, file.size()});
  } else if (is_elf(file)) {
    scan_elf(file, cubins);
  } else {
    scan(file, cubins);
  }
  return cubins;
}

Bytes unpack(const EmbeddedCubin& cubin, std::vector<std::uint8_t>& buffer) {
  if (cubin.packing == Packing::None) return cubin.stored;
  if (cubin.unpacked_bytes > kMostUnpacked || cubin.unpacked_bytes / kMostPackingRatio > cubin.stored.size()) return {};
  buffer.resize(cubin.unpacked_bytes);
  if (cubin.packing == Packing::Lz4) return unpack_lz4(cubin.stored, buffer) ? Bytes(buffer) : Bytes{};
  const std::size_t got = ZSTD_decompress(buffer.data(), buffer.size(), cubin.stored.data(), cubin.stored.size());
  return ZSTD_isError(got) == 0 && got == buffer.size() ? Bytes(buffer) : Bytes{};
}

}  // namespace forewarp

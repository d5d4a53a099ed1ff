#include "cache/store.h"

#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/file.h"

namespace forewarp {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic{'F', 'W', 'K', 'E', 'P', 'T', '1', '\n'};
constexpr int kCompressionLevel = 3;

/// An entry: this, then the compressed bytes.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint64_t key[2]{};
  std::uint64_t bytes = 0, stored = 0;
  std::uint64_t hash = 0;  ///< of the stored bytes
};

}  // namespace

std::string Store::place(const ContentKey& key, const char* kind) const {
  const std::string name = key.text();
  const fs::path folder = fs::path(folder_) / name.substr(0, 2);
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  return (folder / (name.substr(2) + "." + kind)).string();
}

std::optional<std::vector<std::uint8_t>> Store::get(const ContentKey& key, const char* kind) const {
  std::ifstream in(place(key, kind), std::ios::binary);
  Header header;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  if (header.magic != kMagic || header.key[0] != key.words[0] || header.key[1] != key.words[1]) return std::nullopt;
  const std::vector<char> stored((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (stored.size() != header.stored || XXH3_64bits(stored.data(), stored.size()) != header.hash) return std::nullopt;
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != header.bytes) return std::nullopt;
  std::vector<std::uint8_t> bytes(header.bytes);
  const std::size_t n = ZSTD_decompress(bytes.data(), bytes.size(), stored.data(), stored.size());
  if (ZSTD_isError(n) || n != bytes.size()) return std::nullopt;
  return bytes;
}

void Store::put(const ContentKey& key, const char* kind, const std::vector<std::uint8_t>& bytes) const {
  std::string entry(sizeof(Header) + ZSTD_compressBound(bytes.size()), '\0');
  Header header;
  const std::size_t n = ZSTD_compress(entry.data() + sizeof header, entry.size() - sizeof header, bytes.data(),
                                      bytes.size(), kCompressionLevel);
  if (ZSTD_isError(n)) return;
  header.key[0] = key.words[0];
  header.key[1] = key.words[1];
  header.bytes = bytes.size();
  header.stored = n;
  header.hash = XXH3_64bits(entry.data() + sizeof header, n);
  std::memcpy(entry.data(), &header, sizeof header);
  entry.resize(sizeof header + n);
  try {
    write_file(place(key, kind), entry);
  } catch (const InputError&) {  // no room, no permission: the prediction is as good without
  }
}

std::optional<std::string> default_cache_folder() {
  if (const char* named = std::getenv("FOREWARP_CACHE"); named != nullptr)
    return *named == '\0' ? std::nullopt : std::optional<std::string>(named);
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    return (fs::path(xdg) / "forewarp").string();
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return (fs::path(home) / ".cache" / "forewarp").string();
  return std::nullopt;
}

}  // namespace forewarp

#include "cache/store.h"

#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace forewarp {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic{'F', 'W', 'K', 'E', 'P', 'T', '1', '\n'};
constexpr int kCompressionLevel = 3;

/// The header of an entry; the compressed bytes follow.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint64_t key[2]{};
  std::uint64_t bytes = 0, stored = 0;
  std::uint64_t hash = 0;  ///< of the stored bytes
};

constexpr std::uint32_t kKeptBetweenLooks = 32;
constexpr double kKeep = 0.8;  // share of its limit that trimming leaves

bool is_hexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

struct Entry {
  fs::file_time_type used;
  std::uintmax_t bytes = 0;
  fs::path path;
};

/// A store's files in one of its folders, including temporary files that a killed process left.
void add_entries(const fs::path& folder, std::vector<Entry>& entries) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() < 32 || name[30] != '.' || !is_hexadecimal(std::string_view(name).substr(0, 30))) continue;
    std::error_code gone;  // another process may remove it meanwhile
    Entry entry{it->last_write_time(gone), 0, it->path()};
    if (!gone) entry.bytes = it->file_size(gone);
    if (!gone) entries.push_back(std::move(entry));
  }
}

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
  used(key, kind);
  return bytes;
}

void Store::used(const ContentKey& key, const char* kind) const {
  std::error_code ignored;
  fs::last_write_time(place(key, kind), fs::file_time_type::clock::now(), ignored);
}

void Store::kept() const {
  if (kept_->fetch_add(1) % kKeptBetweenLooks == 0) trim();
}

void Store::trim() const {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() == 2 && is_hexadecimal(name)) add_entries(it->path(), entries);
  }
  std::uintmax_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.bytes;
  if (bytes <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  const auto enough = static_cast<std::uintmax_t>(static_cast<double>(most_bytes_) * kKeep);
  for (const Entry& entry : entries) {
    if (bytes <= enough) return;
    std::error_code ignored;  // another process may have done so: it is gone in any case
    fs::remove(entry.path, ignored);
    bytes -= entry.bytes;
  }
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
  } catch (const InputError&) {  // no room or no permission: the prediction does not need it
  }
}

std::uint64_t default_cache_bytes() {
  constexpr std::uint64_t kMib = 1 << 20, kDefault = 2048, kMost = std::uint64_t{1} << 40;
  std::uint64_t mib = kDefault;
  if (const char* given = std::getenv("FOREWARP_CACHE_MIB"); given != nullptr && *given != '\0') {
    const std::string_view text(given);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mib);
    if (error != std::errc{} || end != text.data() + text.size() || mib > kMost)
      throw InputError("FOREWARP_CACHE_MIB is '" + std::string(text) + "', not a number of MiB",
                       "set it to a whole number, or unset it for " + std::to_string(kDefault));
  }
  return mib * kMib;
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

// A folder of finished work under content keys. Processes may share it: entries appear atomically, and a damaged one
// counts as absent. It never fails; what cannot be stored is computed again. Its size is bounded; the least recently
// used entries leave first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/content_key.h"

namespace forewarp {

class Store {
 public:
  /// The folder is created by the first put(). Its size is brought below `most_bytes` from time to time.
  Store(std::string folder, std::uint64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes), kept_(std::make_shared<std::atomic<std::uint32_t>>(0)) {}

  const std::string& folder() const { return folder_; }
  /// Path of an entry of this kind; creates its folder if possible.
  std::string place(const ContentKey&, const char* kind) const;

  std::optional<std::vector<std::uint8_t>> get(const ContentKey&, const char* kind) const;
  void put(const ContentKey&, const char* kind, const std::vector<std::uint8_t>& bytes) const;
  /// Marks an entry as used that was read other than by get().
  void used(const ContentKey&, const char* kind) const;
  /// Call after storing something; checks the folder's size the first time and then from time to time.
  void kept() const;
  /// Removes least recently used entries until the folder is well below its size. Touches nothing that is not a
  /// store's.
  void trim() const;

 private:
  std::string folder_;
  std::uint64_t most_bytes_;
  std::shared_ptr<std::atomic<std::uint32_t>> kept_;
};

/// The cache folder: FOREWARP_CACHE (empty: none), else XDG_CACHE_HOME/forewarp, else ~/.cache/forewarp; nothing if
/// there is no home directory either.
std::optional<std::string> default_cache_folder();
/// Its size limit: FOREWARP_CACHE_MIB, else 2048 MiB.
std::uint64_t default_cache_bytes();

}  // namespace forewarp

// A folder of finished work under content keys. Several processes may share it: an entry appears whole or not at all,
// and one that is damaged counts as absent. It never fails: what cannot be kept is made again. It stays below a size:
// what has not been used for longest goes first.
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
  /// The folder is made when something is first put into it. `most_bytes`: its size is brought below that now and then.
  Store(std::string folder, std::uint64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes), kept_(std::make_shared<std::atomic<std::uint32_t>>(0)) {}

  const std::string& folder() const { return folder_; }
  /// Where an entry of this kind lies; its folder exists afterwards, if it can be made.
  std::string place(const ContentKey&, const char* kind) const;

  std::optional<std::vector<std::uint8_t>> get(const ContentKey&, const char* kind) const;
  void put(const ContentKey&, const char* kind, const std::vector<std::uint8_t>& bytes) const;
  /// An entry that was read otherwise than by get(): it counts as used now.
  void used(const ContentKey&, const char* kind) const;
  /// To be called after something was kept; looks at the folder's size the first time and then now and then.
  void kept() const;
  /// Removes what has not been used for longest until the folder is well below its size, and nothing that is not a
  /// store's.
  void trim() const;

 private:
  std::string folder_;
  std::uint64_t most_bytes_;
  std::shared_ptr<std::atomic<std::uint32_t>> kept_;
};

/// Where finished work is kept: what FOREWARP_CACHE says (empty: nowhere), else XDG_CACHE_HOME/forewarp, else
/// ~/.cache/forewarp; nothing when there is no home either.
std::optional<std::string> default_cache_folder();
/// How large it may become: FOREWARP_CACHE_MIB, else 2048 MiB.
std::uint64_t default_cache_bytes();

}  // namespace forewarp

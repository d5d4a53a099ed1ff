// A folder of finished work under content keys. Several processes may share it: an entry appears whole or not at all,
// and one that is damaged counts as absent. It never fails: what cannot be kept is made again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/content_key.h"

namespace forewarp {

class Store {
 public:
  /// The folder is made when something is first put into it.
  explicit Store(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  /// Where an entry of this kind lies; its folder exists afterwards, if it can be made.
  std::string place(const ContentKey&, const char* kind) const;

  std::optional<std::vector<std::uint8_t>> get(const ContentKey&, const char* kind) const;
  void put(const ContentKey&, const char* kind, const std::vector<std::uint8_t>& bytes) const;

 private:
  std::string folder_;
};

/// Where finished work is kept: what FOREWARP_CACHE says (empty: nowhere), else XDG_CACHE_HOME/forewarp, else
/// ~/.cache/forewarp; nothing when there is no home either.
std::optional<std::string> default_cache_folder();

}  // namespace forewarp

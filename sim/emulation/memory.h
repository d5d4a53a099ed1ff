// Global memory of a case: its buffers and the program's own variables at their device addresses, nothing else.
// Contents are made when they are first asked for, so that a run that only follows addresses never fills a buffer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launch/launch.h"

namespace forewarp::emulation {

class GlobalMemory {
 public:
  struct Region {
    std::uint64_t begin = 0, end = 0;
    const Buffer* buffer = nullptr;   ///< null: the program's own variables
    std::vector<std::uint8_t> bytes;  ///< empty until filled
    bool filled = false;
  };

  /// `item` outlives this. Buffers lie where place_buffers puts them, the program's variables (Program::module_data) at
  /// kModuleDataAddress.
  explicit GlobalMemory(const Case& item, const std::vector<std::uint8_t>& module_data = {});

  /// The region that holds [address, address + size), or null.
  Region* find(std::uint64_t address, std::uint64_t size) {
    Region* r = last_;
    if (address >= r->begin && address < r->end && size <= r->end - address) [[likely]]
      return r;
    return search(address, size);
  }

  /// The bytes of a region, made on first use. bytes()[0] is at region.begin.
  std::uint8_t* bytes(Region& region) {
    if (!region.filled) [[unlikely]]
      fill(region);
    return region.bytes.data();
  }

  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// From now on what is overwritten is kept, until undo_writes() puts it back.
  void keep_writes_undoable() { undoable_ = true; }
  void undo_writes();
  /// To be called before bytes [address, address + size) of a region are written.
  void before_write(Region& region, std::uint64_t address, std::uint64_t size) {
    if (undoable_) [[unlikely]]
      save(region, address, size);
  }

  const std::vector<std::uint64_t>& addresses() const { return addresses_; }
  /// Contents of the case's buffer `index`, filled if they were not yet.
  const std::vector<std::uint8_t>& buffer(std::size_t index);
  /// Which buffer an address lies in or follows, for messages: "buffer a + 0x10".
  std::string describe(std::uint64_t address) const;

 private:
  Region* search(std::uint64_t address, std::uint64_t size);
  static void fill(Region& region);
  void save(Region& region, std::uint64_t address, std::uint64_t size);

  static constexpr std::uint64_t kPageBytes = 4096;

  std::vector<std::uint64_t> addresses_;
  std::vector<Region> regions_;         ///< ascending
  std::vector<std::size_t> region_of_;  ///< by buffer
  Region none_;                         ///< empty, so that last_ is never null
  Region* last_ = &none_;
  bool undoable_ = false;
  std::map<std::pair<Region*, std::uint64_t>, std::vector<std::uint8_t>> saved_;  ///< by region and page
};

}  // namespace forewarp::emulation

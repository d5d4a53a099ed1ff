// Global memory of a case: its buffers and the program's own variables at their device addresses, nothing else.
// Contents are made chunk by chunk when they are first asked for, and what was only read may be dropped and made again:
// a run that follows a few blocks holds what those touch, and one that streams over a large input never holds it whole.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launch/launch.h"

namespace forewarp::emulation {

class GlobalMemory {
 public:
  /// What is in memory of a part of a buffer.
  enum class Chunk : std::uint8_t {
    Zero,     ///< nothing: it is all zero
    Absent,   ///< nothing: the fill makes it
    Dropped,  ///< nothing any more
    Clean,    ///< as the fill made it
    Written,
    Fresh  ///< written, and to be as it began after undo_writes()
  };
  static constexpr std::uint64_t kChunkBytes = 256 << 10;

  struct Region {
    std::uint64_t begin = 0, end = 0;
    const Buffer* buffer = nullptr;  ///< null: the program's own variables
    std::uint8_t* data = nullptr;    ///< address space for all of it
    std::vector<Chunk> chunks;
  };

  /// `item` outlives this. Buffers lie where place_buffers puts them, the program's variables (Program::module_data) at
  /// kModuleDataAddress.
  explicit GlobalMemory(const Case& item, const std::vector<std::uint8_t>& module_data = {});
  ~GlobalMemory();

  /// The region that holds [address, address + size), or null.
  Region* find(std::uint64_t address, std::uint64_t size) {
    Region* r = last_;
    if (address >= r->begin && address < r->end && size <= r->end - address) [[likely]]
      return r;
    return search(address, size);
  }

  /// A region's bytes; data[0] is at region.begin. Those at [address, address + size), within the region, are there
  /// until the next call.
  std::uint8_t* bytes(Region& region, std::uint64_t address, std::uint64_t size) {
    const std::uint64_t first = (address - region.begin) / kChunkBytes,
                        last = (address - region.begin + size - 1) / kChunkBytes;
    if (first != last || !is_there(region.chunks[first])) [[unlikely]]
      make(region, first, last);
    return region.data;
  }

  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// From now on what is overwritten is kept, until undo_writes() puts it back.
  void keep_writes_undoable() { undoable_ = true; }
  void undo_writes();
  /// To be called before bytes [address, address + size) of a region are written; bytes() need not be called then.
  void before_write(Region& region, std::uint64_t address, std::uint64_t size) {
    const std::uint64_t first = (address - region.begin) / kChunkBytes,
                        last = (address - region.begin + size - 1) / kChunkBytes;
    if (first == last && region.chunks[first] == Chunk::Fresh) return;
    if (first != last || region.chunks[first] != Chunk::Written) [[unlikely]]
      make_written(region, first, last);
    if (undoable_) [[unlikely]]
      save(region, address, size);
  }

  const std::vector<std::uint64_t>& addresses() const { return addresses_; }
  /// Contents of the case's buffer `index`.
  std::vector<std::uint8_t> buffer(std::size_t index);
  /// Which buffer an address lies in or follows, for messages: "buffer a + 0x10".
  std::string describe(std::uint64_t address) const;

 private:
  Region* search(std::uint64_t address, std::uint64_t size);
  static void give_back(Region& region, std::uint64_t chunk);
  static bool is_there(Chunk chunk) { return chunk == Chunk::Zero || chunk >= Chunk::Clean; }
  void make(Region& region, std::uint64_t first, std::uint64_t last);
  void make_written(Region& region, std::uint64_t first, std::uint64_t last);
  void fill(Region& region, std::uint64_t chunk);
  void make_room(const Region& region, std::uint64_t first, std::uint64_t last);
  void save(Region& region, std::uint64_t address, std::uint64_t size);

  static constexpr std::uint64_t kPageBytes = 4096;
  static constexpr std::uint64_t kMostChunks =
      (std::uint64_t{640} << 20) / kChunkBytes;      ///< held before any is dropped
  static constexpr std::uint64_t kMostRemade = 256;  ///< chunks made again after which no more are dropped

  std::vector<std::uint64_t> addresses_;
  std::vector<Region> regions_;         ///< ascending
  std::vector<std::size_t> region_of_;  ///< by buffer
  Region none_;                         ///< empty, so that last_ is never null
  Region* last_ = &none_;
  bool undoable_ = false;
  struct Place {
    Region* region = nullptr;
    std::uint64_t chunk = 0;
  };
  std::deque<Place> filled_;  ///< in that order; some have been written since
  std::vector<Place> fresh_;
  std::uint64_t held_ = 0, remade_ = 0;  ///< chunks that are in memory; that were dropped too early
  std::map<std::pair<Region*, std::uint64_t>, std::vector<std::uint8_t>> saved_;  ///< by region and page
};

}  // namespace forewarp::emulation

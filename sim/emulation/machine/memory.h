// Global memory of a case: its buffers and the program's variables at their device addresses. Contents are materialised
// chunk by chunk on first use, and chunks that were only read may be dropped and made again. So a run that follows a
// few blocks holds only what those touch, and one that streams over a large input never holds all of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "launch/launch.h"

namespace forewarp::emulation {

/// Device address of what the driver gives launches whose blocks synchronise (cooperative groups), zero at first.
inline constexpr std::uint64_t kGridWorkspaceAddress = 0x7fb0'0000'0000, kGridWorkspaceBytes = 256;

/// Thrown when the values of stores were left out (GlobalMemory::kLeft) and matter after all.
class StoresMatter : public std::exception {
 public:
  const char* what() const noexcept override { return "a launch loads what it stores"; }
};

/// Thrown when blocks run in any order (GlobalMemory::allow_any_order) and the order matters after all.
class OrderMatters : public std::exception {
 public:
  const char* what() const noexcept override { return "a block reads what another one writes"; }
};

class GlobalMemory {
 public:
  /// State of a chunk of a buffer.
  enum class Chunk : std::uint8_t {
    Zero,     ///< not in memory: all zero
    Absent,   ///< not in memory: the fill makes it
    Dropped,  ///< no longer in memory: the fill makes it again
    Clean,    ///< as the fill made it
    Written,
    Fresh  ///< written, and restored by undo_writes()
  };
  static constexpr std::uint64_t kChunkBytes = 256 << 10;

  /// Bits: what blocks did with a region. Left: they stored there, but the values were left out.
  static constexpr std::uint8_t kRead = 1, kWritten = 2, kLeft = 4;

  struct Region {
    std::uint64_t begin = 0, end = 0;
    const Buffer* buffer = nullptr;  ///< null: the program's own variables, or the grid's workspace
    std::uint8_t* data = nullptr;    ///< address space for the whole region
    std::vector<Chunk> chunks;
    std::uint8_t touched = 0;
  };

  /// `item` must outlive this. Buffers lie where place_buffers puts them, the program's variables
  /// (Program::module_data) at kModuleDataAddress.
  explicit GlobalMemory(const Case& item, const std::vector<std::uint8_t>& module_data = {});
  ~GlobalMemory();

  /// The region that holds [address, address + size), or null.
  Region* find(std::uint64_t address, std::uint64_t size);

  /// A region's bytes; data[0] is at region.begin. Bytes [address, address + size), within the region, are valid until
  /// the next call.
  std::uint8_t* bytes(Region& region, std::uint64_t address, std::uint64_t size) {
    const std::uint64_t first = (address - region.begin) / kChunkBytes,
                        last = (address - region.begin + size - 1) / kChunkBytes;
    // Acquire: a chunk that another thread made must be seen with its contents.
    const Chunk chunk = std::atomic_ref(region.chunks[first]).load(std::memory_order_acquire);
    if (first != last || !is_there(chunk)) [[unlikely]]
      make(region, first, last);
    return region.data;
  }

  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// From now on overwritten contents are saved, until undo_writes() restores them.
  void keep_writes_undoable() { undoable_ = true; }
  void undo_writes();
  /// Call before writing bytes [address, address + size) of a region, instead of bytes().
  void before_write(Region& region, std::uint64_t address, std::uint64_t size) {
    const std::uint64_t first = (address - region.begin) / kChunkBytes,
                        last = (address - region.begin + size - 1) / kChunkBytes;
    if (first == last && region.chunks[first] == Chunk::Fresh) return;
    if (first != last || region.chunks[first] != Chunk::Written) [[unlikely]]
      make_written(region, first, last);
    if (undoable_) [[unlikely]]
      save(region, address, size);
  }

  /// Must be told of every access whose order among blocks matters; `how`: kRead, kWritten, both, or kLeft. Throws
  /// StoresMatter where a region was read and left.
  void touch(Region& region, std::uint8_t how) {
    const std::uint8_t before = std::atomic_ref(region.touched).load(std::memory_order_relaxed);
    if (before != how && (any_order_ || (before & how) != how)) [[unlikely]]
      note(region, how);
  }
  /// Blocks may run in any order until undo_writes(), in parallel if none of them writes, provided that no region was
  /// both read and written and that all that was read fits in memory. Nothing that was read is dropped then, and an
  /// access that breaks the condition throws OrderMatters. Returns whether the condition holds.
  bool allow_any_order();
  bool any_order() const { return any_order_; }
  /// Forgets which regions were touched.
  void forget_touches();

  const std::vector<std::uint64_t>& addresses() const { return addresses_; }
  /// Contents of the case's buffer `index`.
  std::vector<std::uint8_t> buffer(std::size_t index);
  /// The buffer an address lies in or follows, for messages: "buffer a + 0x10".
  std::string describe(std::uint64_t address) const;

 private:
  std::uint8_t* own(std::uint64_t begin, std::uint64_t bytes);
  static void give_back(Region& region, std::uint64_t chunk);
  static bool is_there(Chunk chunk) { return chunk == Chunk::Zero || chunk >= Chunk::Clean; }
  void make(Region& region, std::uint64_t first, std::uint64_t last);
  void make_written(Region& region, std::uint64_t first, std::uint64_t last);
  void fill(Region& region, std::uint64_t chunk);
  void make_room(const Region& region, std::uint64_t first, std::uint64_t last);
  void save(Region& region, std::uint64_t address, std::uint64_t size);
  void note(Region& region, std::uint8_t how);
  bool order_matters() const;

  static constexpr std::uint64_t kPageBytes = 4096;
  static constexpr std::uint64_t kMostChunks =
      (std::uint64_t{640} << 20) / kChunkBytes;      ///< held before chunks are dropped
  static constexpr std::uint64_t kMostRemade = 256;  ///< remade chunks after which none are dropped any more

  std::vector<std::uint64_t> addresses_;
  std::vector<Region> regions_;         ///< ascending
  std::vector<std::size_t> region_of_;  ///< by buffer
  bool undoable_ = false, any_order_ = false;
  std::mutex mutex_;  ///< while threads read in parallel: guards what they add
  struct Place {
    Region* region = nullptr;
    std::uint64_t chunk = 0;
  };
  std::deque<Place> filled_;  ///< in order of filling; some were written since
  std::vector<Place> fresh_;
  std::uint64_t held_ = 0, remade_ = 0;  ///< chunks in memory; chunks dropped too early
  std::map<std::pair<Region*, std::uint64_t>, std::vector<std::uint8_t>> saved_;  ///< by region and page
};

/// Global memory as the blocks of one thread see it.
class GlobalView {
 public:
  enum class Writes : std::uint8_t {
    Done,
    Noted  ///< not carried out: for parallel threads, where no block reads what another writes
  };
  GlobalView(GlobalMemory& memory, Writes writes) : memory_(memory), writes_(writes) {}

  /// As GlobalMemory::find.
  GlobalMemory::Region* find(std::uint64_t address, std::uint64_t size) {
    if (address >= begin_ && address < end_ && size <= end_ - address) [[likely]]
      return last_;
    return search(address, size);
  }

  /// The region's bytes (GlobalMemory::bytes) for an access to [address, address + size) that reads (kRead), writes
  /// (kWritten) or both; null if there is nothing to do.
  std::uint8_t* open(GlobalMemory::Region& region, std::uint64_t address, std::uint64_t size, std::uint8_t how) {
    memory_.touch(region, how);
    if ((how & GlobalMemory::kWritten) != 0) {
      if (writes_ == Writes::Noted) return nullptr;
      memory_.before_write(region, address, size);
    }
    return memory_.bytes(region, address, size);
  }

  /// A store whose values are left out.
  void leave(GlobalMemory::Region& region) { memory_.touch(region, GlobalMemory::kLeft); }

  std::string describe(std::uint64_t address) const { return memory_.describe(address); }

 private:
  GlobalMemory::Region* search(std::uint64_t address, std::uint64_t size);

  GlobalMemory& memory_;
  Writes writes_;
  GlobalMemory::Region* last_ = nullptr;  ///< region found last
  std::uint64_t begin_ = 0, end_ = 0;     ///< its bounds
};

}  // namespace forewarp::emulation

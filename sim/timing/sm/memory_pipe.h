// The SM's memory pipe. It takes memory instructions from the four sub-partitions in turn into a shared queue. In
// order, it looks their lines up in L1, moves data through the banks that L1 and shared memory share, and sends misses,
// stores and atomics to the crossbar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardware/gpu_model.h"
#include "timing/engine/pool.h"
#include "timing/memory/memory.h"
#include "timing/sm/l1_cache.h"
#include "timing/sm/timed_program.h"
#include "trace/coalesce.h"

namespace forewarp {

/// What an access pattern costs the pipe besides its lines.
struct PatternTiming {
  std::uint16_t wavefronts = 0;  ///< passes through the data banks
  std::uint8_t rounds = 1;       ///< atomics: lanes that meet on one word
  std::uint8_t value_bytes = 4;  ///< of a lane
};

/// Whom a box concerns, from its copy to its end.
struct BoxOwner {
  std::uint16_t slot = 0;                           ///< of the block
  std::uint16_t warp = 0;                           ///< that asks for it
  std::uint8_t group = 0;                           ///< of what leaves shared memory: of the warp's groups (CopyGroups)
  std::uint32_t block = 0, barrier = 0, bytes = 0;  ///< linear index; what it completes
  BlockMask blocks = 0;                             ///< of the cluster that get it; none: the one that asks
  std::uint32_t cluster = 0;
  std::uint32_t recorded = 0;  ///< BlockRecorder's number; 0: nobody watches it
  std::uint64_t number = 0;    ///< of what comes: BoxesUnderWay
};

/// A scoreboard of a warp is released at `at` (or a queue slot, or a store is acknowledged).
struct Release {
  enum class Kind : std::uint8_t { Write, Read, QueueSlot, StoreAcknowledged, Copied, Boxed, BoxStored, Remote };
  Kind kind{};
  std::uint16_t warp = 0;
  std::uint8_t scoreboard = kNoScoreboard;
  Cycle at = 0;
  std::uint16_t generation = 0;  ///< StoreAcknowledged: of the warp that stored
  bool global = false;           ///< QueueSlot: of an access to global or local memory
  std::uint8_t group = 0;        ///< Copied: of which group it was (CopyGroups)
  BoxOwner box{};                ///< Boxed, BoxStored: a copy of a box is complete, or has left
  Cycle fanned_at = 0;           ///< Boxed: when the last data reach blocks on other SMs
  /// Remote: an access to other blocks' shared memory has passed its own SM at `at`; MemoryOperation::remote.
  std::uint16_t remote = 0;
};

/// A memory instruction in the pipe.
struct MemoryOperation {
  const TimedInstruction* instruction = nullptr;
  std::uint64_t line_base = 0;  ///< line number of the access's base, shifted to the block
  std::uint32_t pattern = 0;
  AccessEffect effect;
  std::uint8_t group = 0;    ///< Copy, CopyCommit: of the warp's groups
  std::uint32_t target = 0;  ///< Copy: pattern of what is written to shared memory
  std::uint16_t remote =
      0;  ///< lanes reach other blocks' shared memory: which of the SM's accesses of the kind, from 1
  std::uint16_t own_wavefronts = 0;  ///< ... and what the others take of this one's banks
  std::uint16_t warp = 0, generation = 0;
  Cycle arrival = 0;  ///< at the shared unit
  std::uint8_t sub_partition = 0;
};

struct MemoryPipeCounters {
  std::uint64_t load_sectors = 0, load_hit_sectors = 0, store_sectors = 0, store_hit_sectors = 0;
  std::uint64_t tag_lookups = 0, data_wavefronts = 0, shared_wavefronts = 0, data_cycles = 0;
};

class MemoryPipe {
  static constexpr std::uint32_t kNone = 0xffffffffu;

 public:
  MemoryPipe(const GpuModel&, std::uint16_t sm, std::uint32_t l1_bytes, const CoalescedPatterns&,
             std::span<const PatternTiming>);

  void push(const MemoryOperation& operation) {
    Queue& queue = queues_[operation.sub_partition];
    queue.entries[queue.tail++ & queue_mask_] = operation;
    ++waiting_;
  }
  /// A box that is copied between global and shared memory beside the warps, line by line, past L1.
  struct Box {
    std::uint64_t line_base = 0;
    std::uint32_t pattern = 0;
    std::uint32_t next = 0;  ///< of its lines
    std::uint32_t load = kNone;
    RequestKind request = RequestKind::Read;  ///< Write, Reduction: it leaves shared memory
    bool counts = true;                       ///< its bytes complete a phase; of what is read, else a prefetch
    BoxOwner owner{};
    Cycle arrival = 0;
  };
  void push_box(const Box& box) { boxes_.push_back(box); }
  bool idle() const {
    return boxes_head_ == boxes_.size() && live_boxes_ == 0 && waiting_ == 0 && taken_head_ == taken_tail_ &&
           out_head_ == out_tail_ && live_loads_ == 0 && stores_in_flight_ == 0;
  }
  /// One more, or fewer, warp waits at a fence: buffered stores then leave without waiting for others.
  void fence(int more) { fences_ += more; }

  /// The way to other SMs takes no access before `until`.
  void hold_remote(Cycle until) { remote_free_ = until; }

  /// Serves what it can at `now`; appends releases. Returns the next cycle with work, kNever if a reply must wake
  /// it.
  Cycle tick(Cycle now, MemorySystem& memory, std::vector<Release>& releases);
  void reply(const MemoryReply& reply, Cycle now, std::vector<Release>& releases);
  /// The blocks of a cluster that data go to, and which cluster; none: this SM alone.
  struct FansOut {
    BlockMask blocks = 0;
    std::uint32_t cluster = 0, load = 0;
  };
  FansOut fans_out(const MemoryReply& reply) const {
    if ((reply.tag & kStoreTag) != 0 || !misses_[reply.tag].boxed || misses_[reply.tag].sends) return {};
    const std::uint32_t load = waiters_[misses_[reply.tag].waiters].load;
    return {loads_[load].box.blocks, loads_[load].box.cluster, load};
  }
  /// Those data reach another SM at `at`.
  void fanned(std::uint32_t load, Cycle at) { loads_[load].fanned_at = std::max(loads_[load].fanned_at, at); }
  /// Prefetches what a reply will touch: first its entry, then what that refers to, then who waits.
  void prefetch_miss(const MemoryReply& reply) const {
    if ((reply.tag & kStoreTag) == 0) misses_.prefetch(reply.tag);
  }
  void prefetch_line(const MemoryReply& reply) const {
    if ((reply.tag & kStoreTag) != 0) return;
    const Miss& miss = misses_[reply.tag];
    if (miss.fills) l1_.prefetch(miss.line);
    if (miss.waiters != kNone) waiters_.prefetch(miss.waiters);
  }
  void prefetch_load(const MemoryReply& reply) const {
    if ((reply.tag & kStoreTag) != 0 || misses_[reply.tag].waiters == kNone) return;
    loads_.prefetch(waiters_[misses_[reply.tag].waiters].load);
  }

  const MemoryPipeCounters& counters() const { return counters_; }
  void invalidate() { l1_.clear(); }
  /// L1 holds sectors of a line as if they had been accessed, which takes no time.
  void touch(std::uint64_t line, std::uint8_t sectors, RequestKind, bool whole);

  /// From issue to the earliest arrival at the shared unit.
  Cycle lead_cycles() const { return lead_; }

 private:
  enum class Owner : std::uint8_t { Registers, Copy, Box, StoredBox, Prefetch };
  struct Load {                 ///< an instruction waiting for sectors
    std::uint32_t waiting = 0;  ///< line parts still missing
    std::uint16_t warp = 0, wavefronts = 0;
    std::uint16_t written = 0;       ///< Copy: wavefronts into shared memory
    Owner owner = Owner::Registers;  ///< where the data go
    std::uint8_t group = 0;          ///< Copy: of the warp's groups
    std::uint8_t scoreboard = kNoScoreboard;
    std::uint8_t wide = 0;  ///< registers of a lane beyond the first
    bool open = false;      ///< not all of its lines have been looked up yet
    bool past_l1 = false;   ///< Copy: its data go from L2 into shared memory at once
    BoxOwner box{};         ///< Box, StoredBox
    Cycle fanned_at = 0;
  };
  struct Queue {  ///< of a sub-partition, a ring
    std::vector<MemoryOperation> entries;
    std::uint32_t head = 0, tail = 0;
    Cycle port_free = 0;  ///< when shared-memory data can go to its registers
  };
  struct Waiter {
    std::uint32_t load = 0, next = kNone;
    std::uint8_t sectors = 0;
  };
  struct HeldStore {
    MemoryRequest request;
    std::size_t bank = 0;
    Cycle idle = 0;  ///< stores_idle_ at the last store to it
  };
  struct Miss {
    std::uint64_t line = 0;
    std::uint32_t waiters = kNone;
    std::uint8_t pending = 0;
    bool fills = false;  ///< data goes into L1
    bool boxed = false;  ///< of a box, which takes no place of L1's misses
    bool sends = false;  ///< ... that leaves shared memory
  };
  static constexpr std::uint32_t kStoreTag = 0x80000000u;
  static constexpr std::uint8_t kLastOfPass = 0x80;

  Cycle take_next(Cycle now, std::vector<Release>& releases);
  Cycle serve_next(Cycle now, std::vector<Release>& releases);
  Queue* choose_queue(Cycle now);
  Cycle first_arrival() const;
  bool serve(const MemoryOperation&, Cycle now, std::vector<Release>& releases);
  bool serve_lines(const MemoryOperation&, Cycle now, std::vector<Release>& releases);
  std::size_t tag_bank(std::uint64_t line, std::size_t i) const;
  std::size_t store_bank(std::uint64_t line) const;
  void order_lines(std::span<const LineSectors> lines, std::uint64_t base);
  void order_stores(std::span<const LineSectors> lines, std::uint64_t base);
  Cycle turn_at_banks(const MemoryOperation&, int wavefronts, Cycle now);
  void serve_shared(const MemoryOperation&, Cycle now, std::vector<Release>& releases);
  void serve_shuffle(const MemoryOperation&, Cycle now, std::vector<Release>& releases);
  bool load_line(const MemoryOperation&, std::uint64_t line, const LineSectors& part);
  void request_sectors(const MemoryOperation&, std::uint64_t line, std::uint8_t sectors, L1Cache::Line* cached,
                       const LineSectors& part);
  bool store_line(const MemoryOperation&, std::uint64_t line, const LineSectors&, Cycle now,
                  std::vector<Release>& releases);
  void begin_store(const MemoryOperation&, Cycle now);
  bool merge_store(const MemoryRequest&);
  bool atomic_line(const MemoryOperation&, std::uint64_t line, const LineSectors& part);
  Cycle further_latency(int wavefronts, int wide) const;
  void finish(std::uint32_t load, Cycle now, std::vector<Release>& releases);
  void open_load(const MemoryOperation&);
  Cycle serve_boxes(Cycle now, std::vector<Release>& releases);
  void request_of_box(const Box&, std::uint64_t line, const LineSectors&);
  void open_box(Box&);
  void release_registers(const MemoryOperation&, Cycle now, std::vector<Release>& releases);
  void line_up(const MemoryRequest&);
  Cycle send(Cycle now, MemorySystem& memory, std::vector<Release>& releases);
  void line_left(Miss&, Cycle now, std::vector<Release>& releases);
  Cycle retry(Cycle now, const MemorySystem& memory) const;
  /// Lines that a store's line counts for in the store buffer.
  std::uint32_t places_of(const MemoryRequest& store) const {
    return store.value_bytes < 4 ? static_cast<std::uint32_t>(gpu_.l1.store_partial_lines) : 1;
  }
  bool has_room(std::size_t bank, std::uint32_t places) const {
    return held_places_[bank] == 0 || held_places_[bank] + places <= places_of_bank_;
  }
  bool lines_full() const { return miss_lines_ >= gpu_.l1.miss_lines; }
  bool loads_full() const { return live_loads_ >= gpu_.l1.loads_in_flight; }
  bool taken_full() const {
    return taken_tail_ - taken_head_ >= static_cast<std::uint32_t>(gpu_.memory_pipe.shared_queue_entries);
  }
  /// No room for another request that waits for the crossbar. A read waits at its miss.
  bool out_full(RequestKind kind) const {
    const int most = kind == RequestKind::Read ? gpu_.l1.miss_lines : gpu_.l1.out_requests;
    return out_tail_ - out_head_ >= static_cast<std::uint32_t>(most);
  }

  const GpuModel& gpu_;
  const CoalescedPatterns& patterns_;
  std::span<const PatternTiming> timing_;
  L1Cache l1_;
  std::uint16_t sm_;
  Cycle lead_;
  std::uint32_t requests_per_cycle_;  ///< of reads: as many as the SM's port takes

  std::vector<Queue> queues_;  ///< by sub-partition
  std::uint32_t queue_mask_ = 0;
  std::uint32_t waiting_ = 0;           ///< operations in all of them
  std::vector<std::uint8_t> turns_;     ///< sub-partitions, least recently served first
  std::vector<MemoryOperation> taken_;  ///< the shared queue, in order: a ring
  std::uint32_t taken_head_ = 0, taken_tail_ = 0, taken_mask_ = 0;
  std::uint32_t next_line_ = 0;      ///< place in order_ of the operation at the head
  std::vector<std::uint8_t> order_;  ///< its lines pass by pass; kLastOfPass marks the end of a pass
  std::uint32_t current_load_ = kNone;
  Cycle take_free_ = 0;                 ///< when the shared queue takes its next instruction
  Cycle serve_free_ = 0;                ///< when the next one in it is served
  Cycle data_free_ = 0;                 ///< when the banks are free
  Cycle remote_free_ = 0;               ///< when the way to other SMs is
  std::vector<Cycle> warp_banks_free_;  ///< by warp: when the last of several wavefronts of it has passed

  std::vector<MemoryRequest> out_;  ///< looked up, in line for the crossbar: a ring that grows
  std::uint32_t out_head_ = 0, out_tail_ = 0;
  /// The store buffer: lines wait for further stores to them, of any warp, for as long as stores keep coming and there
  /// is room (kernels/micro l1_stores and store_lines; FINDINGS.md, L1).
  std::vector<HeldStore> held_;  ///< a ring
  std::uint32_t held_head_ = 0, held_tail_ = 0, held_mask_ = 0;
  std::vector<std::uint32_t> held_places_;  ///< by bank of tags
  std::uint32_t places_of_bank_ = 0;
  std::uint32_t places_wanted_ = 0;  ///< for which the oldest leave: by a store that finds no room ...
  std::size_t bank_wanted_ = 0;      ///< ... in this bank
  Cycle store_began_ = 0;            ///< the last store
  Cycle stores_until_ = 0;           ///< some store is on its way to L1
  Cycle stores_idle_ = 0;            ///< cycles before the last store in which none was on its way
  int fences_ = 0;                   ///< warps at a fence
  bool store_was_last_ = false;      ///< the last request to the crossbar was a store

  Pool<Load> loads_;
  int live_loads_ = 0, miss_lines_ = 0;
  Pool<Miss> misses_;
  Pool<Waiter> waiters_;

  std::vector<Box> boxes_;  ///< in order; those before boxes_head_ have asked for all their lines
  std::size_t boxes_head_ = 0;
  Cycle box_free_x16_ = 0;  ///< when the unit asks for the next line, in sixteenths
  int live_boxes_ = 0;      ///< with lines under way

  std::uint64_t stores_in_flight_ = 0;  ///< sent or buffered, not acknowledged
  MemoryPipeCounters counters_;
};

}  // namespace forewarp

// Writes down what the warps of one block, or of its cluster, do. The SMs of a GPC, which one thread runs, tell it; the
// others see that no block of theirs is wanted.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "timing/block_record.h"
#include "timing/result.h"
#include "timing/sm/group_products.h"
#include "trace/events.h"

namespace forewarp {

class BlockRecorder {
 public:
  BlockRecorder(const RecordRequest&, const LaunchInfo&);

  /// The blocks' numbers count from 1, warps' too; 0: not wanted.
  std::uint16_t start_block(std::uint32_t linear, std::uint32_t rank, std::uint16_t sm, Cycle now);
  std::uint16_t start_warp(std::uint16_t block, std::size_t warp, std::size_t sub_partition, Cycle started);
  void end_block(std::uint16_t block, Cycle end) { record_.blocks[block - 1u].end = end; }
  void end_warp(std::uint16_t row, Cycle end);

  /// Nothing that begins at `now` or later is written down.
  bool over(Cycle now) const { return now >= until_; }

  /// The warp was in a state from where its last stretch ended; `scoreboard`: that it waited for.
  void state(std::uint16_t row, Cycle to, std::uint32_t pc, Stall state, std::uint8_t scoreboard);
  /// A pipe or queue refuses the warp, for so many cycles.
  void refuse(std::uint16_t row, Stall reason, Cycle cycles);
  /// Of those, the ones that hold the warp up to `to`.
  void refused(std::uint16_t row, Cycle to, std::uint32_t pc);

  // What an issued instruction sets in motion.
  void sets(std::uint16_t row, std::uint8_t scoreboard, std::uint32_t pc);
  void meets(std::uint16_t row, std::uint32_t barrier) { watched(row).barrier = barrier; }
  void asks(std::uint16_t row, std::uint8_t scoreboard, const BlockRecord::Await&);
  void goes_on(std::uint16_t row, std::uint32_t barrier, Cycle at);
  void phase(std::uint16_t block, std::uint32_t barrier, std::uint32_t phase, Cycle at);
  /// Its number, for copied().
  std::uint32_t copy(std::uint16_t row, const BlockRecord::Copy&);
  void copied(std::uint32_t number, Cycle at) { record_.copies[number - 1].done = at; }
  void product(std::uint16_t row, std::uint32_t pc, GroupProducts::Number number, bool commits, Cycle now);
  void busy(std::uint16_t row, Cycle from, Cycle to);
  /// Takes over which of the sub-partition's products have ended.
  void settle(std::uint16_t row, const GroupProducts&);

  /// The result gets all that is known by `now`, when its simulation ended, or a warning why there is nothing. Who
  /// calls it has closed the rows of warps that are still there. `blocks`: of the launch, `wave`: its first.
  void hand_over(TimingResult&, Cycle now, std::uint64_t blocks, std::uint64_t wave);

 private:
  BlockRecord finish(Cycle now);

  static constexpr std::size_t kMostStretches = 100'000;  ///< of all warps
  static constexpr std::size_t kMostOthers = 20'000;      ///< copies, and of every other kind

  struct Setter {
    std::uint32_t pc = WarpInterval::kNone, barrier = WarpInterval::kNone, phase = 0;
  };
  struct Refusal {
    Stall reason{};
    Cycle cycles = 0;
  };
  struct Watched {
    Cycle at = 0;  ///< end of its last stretch
    std::array<Setter, kScoreboards> setters{};
    std::uint32_t barrier = WarpInterval::kNone;  ///< at which it met others last
    std::vector<Refusal> refusals;                ///< since its last issue
    std::uint32_t group = WarpInterval::kNone;    ///< of its products, while it is not committed
    std::vector<std::uint32_t> asked;             ///< awaits that are not over
  };
  struct Pending {  ///< a product on its way
    GroupProducts::Number number = 0;
    std::uint32_t group = 0;
    bool last = false;  ///< of its group
    Cycle issued = 0;
  };

  bool wanted(std::uint32_t linear) const;
  Watched& watched(std::uint16_t row) { return watched_[row - 1u]; }
  /// The sub-partition of a row's warp, in the lists by block and sub-partition.
  std::size_t lane(std::uint16_t row) const;
  void add(std::uint16_t row, const WarpInterval&);
  template <class Of>
  bool room(const std::vector<Of>& list) const {
    return list.size() < kMostOthers;
  }

  Dim3 grid_, cluster_;
  Cycle until_ = kNever;
  std::size_t stretches_ = 0;
  std::vector<Watched> watched_;              ///< by row
  std::vector<std::deque<Pending>> pending_;  ///< by block and sub-partition
  std::vector<std::size_t> last_busy_;        ///< the same: index into record_.busy, from 1
  BlockRecord record_;
};

}  // namespace forewarp

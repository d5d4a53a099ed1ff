// What FlashAttention-3's two directions share: a ring of two stages that one thread has TMA fill, warpgroups that
// multiply by wgmma, and results that leave by TMA. sm_90 alone.
#pragma once

#include <string>

#include "sketch/families/attention.h"
#include "sketch/families/groups.h"

namespace forewarp::sketch {

class AttentionGroups {
 public:
  static constexpr int kStages = 2;

  AttentionGroups(const AttentionPlan& plan, const GpuModel& model, const std::string& name)
      : plan_(plan), w_(model, name) {}

 protected:
  static constexpr int kMostGroups = 2;
  static constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;  ///< of 168 that 384 threads begin with

  int panels() const { return plan_.size / kPanel; }

  // ---- the stage of a turn: of two, the lowest bit of its number; the phase's parity is the bit above
  Value stage_of(Value count);
  /// `before`: of the phase before, which of a barrier just begun counts as over.
  Value parity_of(Value count, bool before);
  Value times(Value uniform, int by, Value and_add);
  Value barrier_of(Value stage, int first) { return times(stage, kBarrierBytes, uniform_add(w_, base_, first)); }
  static Arg never();

  /// The barriers that one thread has begun are there for TMA and for the others, who wait at `meet`.
  void show_barriers(Label meet);
  /// One thread of the first warpgroup fetches; the others go on.
  template <class Fetch>
  void split(Fetch&& fetch) {
    const Label consume = w_.code.new_label();
    w_.code.branch(consume, w_.compare("GE.U32", thread_, imm(kGroupThreads)));
    give_registers();
    w_.code.exit(w_.compare("NE", thread_, kRZ));
    fetch();
    w_.code.place(consume);
    take_registers();
  }

  // ---- who fetches
  void give_registers();
  void expect(Value barrier, int bytes);
  /// Boxes of 64 columns side by side.
  void fetch(int map, Value to, int panel_bytes, Value row, Value head, Value barrier);

  // ---- who multiplies
  void take_registers();
  /// What follows stays behind what came before.
  void part() { w_.code.place(w_.code.new_label()); }
  /// Until at most so many groups of products are under way.
  void wait_for_products(int left);
  void give_back(Value stage, int empty);
  /// A description of two factors, whose first words are to come.
  Value factors();
  std::string mnemonic(int columns) const;
  void clear(Value sums, int words);

  // ---- results
  /// A warpgroup's 64 rows of sums as they lie, to rows of shared memory of its own.
  void store_rows(Value sums, Value rows, int panel_bytes);
  /// They are seen by TMA once all threads of the named barrier are there.
  void publish(Arg barrier, int threads);
  void store_boxes(int map, Value rows, int panel_bytes, Value row, Value head);
  void wait_for_boxes();

  const AttentionPlan& plan_;
  Writer w_;
  Value maps_[8], thread_, base_, first_thread_;
};

}  // namespace forewarp::sketch

// From ordered lines with places to instructions: registers, targets, reuse flags, scoreboards, stall counts.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/analysis.h"
#include "program/traits.h"
#include "sketch/assembler/flow.h"
#include "sketch/assembler/names.h"

namespace forewarp::sketch {
namespace {

// Locations of all files in one row.
constexpr int kUniformSlot = 256, kPredicateSlot = 320, kSlots = 328;
constexpr int kScoreboardCount = 6;
constexpr int kNone = 7;
constexpr int kLongestStall = 15;
constexpr int kBranchStall = 5, kBehindBarrier = 6, kBehindDepbar = 4, kScoreboardVisible = 2;
constexpr int kForever = 1 << 20;

File file_of(int slot) {
  return slot >= kPredicateSlot ? File::Predicate : slot >= kUniformSlot ? File::Uniform : File::Vector;
}

struct Touched {
  std::vector<std::int16_t> reads, writes;
  int guard = -1;
};

void add(const SpanList& spans, int base, std::vector<std::int16_t>& to) {
  for (const RegisterSpan& s : spans)
    for (int i = 0; i < s.count; ++i) to.push_back(static_cast<std::int16_t>(base + s.first + i));
}

void add(const LocationSet& set, std::vector<std::int16_t>& to) {
  add(set.registers, 0, to);
  add(set.uniforms, kUniformSlot, to);
  for (int p = 0; p < kPredicateTrue; ++p)
    if ((set.predicates >> p & 1) != 0) to.push_back(static_cast<std::int16_t>(kPredicateSlot + p));
}

Touched touched(const Instruction& in) {
  const Effects e = effects(in);
  Touched t;
  add(e.value_reads, t.reads);
  add(e.address_reads, t.reads);
  add(e.descriptor_reads, t.reads);
  add(e.writes, t.writes);
  if (in.guard != kPredicateTrue) t.guard = kPredicateSlot + in.guard;
  return t;
}

bool has(const std::vector<std::int16_t>& list, int slot) {
  return std::find(list.begin(), list.end(), slot) != list.end();
}
bool meet(const std::vector<std::int16_t>& a, const std::vector<std::int16_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](int slot) { return has(b, slot); });
}

struct Item {
  Instruction in;
  Touched touched;
  int line_target = -1;  ///< label
  int stall = 0;         ///< may be more than a control field holds
};
struct Stretch {
  std::vector<Item> items;
  std::vector<int> successors, predecessors;
  int first = 0;  ///< position of its first instruction
};

class Finisher {
 public:
  Finisher(const Code& code, const Placement& places, const GpuModel& model) : places_(places), model_(model) {
    const std::vector<FlowBlock> flow = blocks_of(code);
    by_label_ = block_of_label(code.blocks());
    blocks_.resize(flow.size());
    for (std::size_t b = 0; b < flow.size(); ++b) {
      for (const Line& line : flow[b].block->lines) {
        Item item{with_places(line), {}, line.target.id};
        item.touched = touched(item.in);
        blocks_[b].items.push_back(std::move(item));
      }
      blocks_[b].successors = flow[b].successors;
      for (const int s : flow[b].successors)
        blocks_[static_cast<std::size_t>(s)].predecessors.push_back(static_cast<int>(b));
    }
  }

  std::vector<Instruction> run() {
    mark_reuse();
    keep_factors();
    number();
    choose_scoreboards();
    wait_for_scoreboards();
    for (int round = 0; round < 3; ++round) count_stalls();
    return flatten();
  }

 private:
  std::uint8_t place(const Value& v, std::uint8_t none) const {
    if (v.id < 0) return none;
    return static_cast<std::uint8_t>(places_.first[static_cast<std::size_t>(v.id)] + v.word);
  }

  Instruction with_places(const Line& line) const {
    Instruction in = line.instruction;
    for (int i = 0; i < in.operand_count; ++i) {
      Operand& o = in.operands[static_cast<std::size_t>(i)];
      const Line::Names& n = line.names[static_cast<std::size_t>(i)];
      if (n.value.id >= 0) o.index = place(n.value, o.index);
      if (n.uniform.id >= 0) o.uniform = place(n.uniform, kUniformRegisterZero);
      if (n.descriptor.id >= 0) o.descriptor = place(n.descriptor, kUniformRegisterZero);
    }
    in.guard = place(line.guard, kPredicateTrue);
    return in;
  }

  /// An operand stays in its slot's latch if the next instruction reads the same register there.
  void mark_reuse() {
    for (Stretch& b : blocks_)
      for (std::size_t i = 0; i + 1 < b.items.size(); ++i) {
        Instruction& in = b.items[i].in;
        const Instruction& next = b.items[i + 1].in;
        if (!keeps_operands(in) || !keeps_operands(next)) continue;
        for (int s = 0; s < 3; ++s) {
          const int here = in.destination_count + s, there = next.destination_count + s;
          if (here >= in.operand_count || there >= next.operand_count) break;
          Operand& o = in.operands[static_cast<std::size_t>(here)];
          const Operand& n = next.operands[static_cast<std::size_t>(there)];
          if (o.kind != OperandKind::Register || n.kind != OperandKind::Register || o.index != n.index) continue;
          if (o.index == kRegisterZero || has(b.items[i].touched.writes, o.index)) continue;
          o.reuse = true;
          in.control.reuse = static_cast<std::uint8_t>(in.control.reuse | 1u << s);
        }
      }
  }
  /// The first factor of a product of matrices stays for the next product, whatever other pipes do in between.
  void keep_factors() {
    for (Stretch& b : blocks_) {
      Item* before = nullptr;
      for (Item& item : b.items) {
        if (before != nullptr && has(item.touched.writes, factor(before->in).index) && item.in.pipe != Pipe::Tensor)
          before = nullptr;
        if (item.in.pipe != Pipe::Tensor || multiplies_by_group(item.in)) continue;
        if (before != nullptr && factor(before->in).index == factor(item.in).index &&
            !has(before->touched.writes, factor(item.in).index)) {
          factor(before->in).reuse = true;
          before->in.control.reuse |= 1u;
        }
        before = &item;
      }
    }
  }
  static Operand& factor(Instruction& product) { return product.operands[product.destination_count]; }

  static bool keeps_operands(const Instruction& in) {
    return !in.variable_latency &&
           (in.pipe == Pipe::Fma || in.pipe == Pipe::FmaHeavy || in.pipe == Pipe::Alu || in.pipe == Pipe::Fp16);
  }

  void number() {
    int at = 0;
    for (Stretch& b : blocks_) {
      b.first = at;
      at += static_cast<int>(b.items.size());
      for (Item& item : b.items) counted_copies_ |= ends_group_of_copies(item.in);
    }
  }

  // ---- scoreboards

  /// By cp.async, or by boxes that leave shared memory.
  static bool ends_group_of_copies(const Instruction& in) {
    return in.opcode == Opcode::LDGDEPBAR || in.opcode == Opcode::UTMACMDFLUSH;
  }

  /// Whether a source of the item at (b, i) is overwritten before anyone waits for its result.
  bool overwritten(std::size_t b, std::size_t i) const {
    const Touched& t = blocks_[b].items[i].touched;
    std::vector<char> seen(blocks_.size(), 0);
    std::vector<std::pair<std::size_t, std::size_t>> open{{b, i + 1}};
    while (!open.empty()) {
      auto [block, from] = open.back();
      open.pop_back();
      bool ends = false;
      const std::vector<Item>& items = blocks_[block].items;
      for (std::size_t k = from; k < items.size() && !ends; ++k) {
        const Touched& other = items[k].touched;
        ends = meet(t.writes, other.reads) || meet(t.writes, other.writes);
        if (!ends && meet(t.reads, other.writes)) return true;
      }
      if (ends) continue;
      for (const int s : blocks_[block].successors) {
        if (seen[static_cast<std::size_t>(s)] != 0) continue;
        seen[static_cast<std::size_t>(s)] = 1;
        open.push_back({static_cast<std::size_t>(s), 0});
      }
    }
    return false;
  }

  /// Position of the first that touches `writes` (or overwrites `reads`) after (b, i), in program order.
  int first_wait(std::size_t b, std::size_t i, bool of_write) const {
    const Touched& t = blocks_[b].items[i].touched;
    for (std::size_t block = b; block < blocks_.size(); ++block) {
      const std::vector<Item>& items = blocks_[block].items;
      for (std::size_t k = block == b ? i + 1 : 0; k < items.size(); ++k) {
        const Touched& other = items[k].touched;
        const bool waits =
            of_write ? meet(t.writes, other.reads) || meet(t.writes, other.writes) || has(t.writes, other.guard)
                     : meet(t.reads, other.writes);
        if (waits) return blocks_[block].first + static_cast<int>(k);
      }
      const bool back = std::any_of(blocks_[block].successors.begin(), blocks_[block].successors.end(),
                                    [&](int s) { return s <= static_cast<int>(b); });
      if (back) return blocks_[block].first + static_cast<int>(items.size());
    }
    return kForever;
  }

  std::uint8_t take_scoreboard(int at, int until) {
    const int first = counted_copies_ ? 1 : 0;
    int best = -1;
    for (int s = first; s < kScoreboardCount && best < 0; ++s)
      if (busy_until_[static_cast<std::size_t>(s)] == until) best = s;
    for (int s = first; s < kScoreboardCount && best < 0; ++s)
      if (busy_until_[static_cast<std::size_t>(s)] <= at) best = s;
    // All are taken: share with what is waited for next after it, or last of all.
    for (int s = first; s < kScoreboardCount; ++s) {
      if (best >= 0 && busy_until_[static_cast<std::size_t>(best)] <= at) break;
      if (best >= 0 && busy_until_[static_cast<std::size_t>(best)] == until) break;
      const int other = busy_until_[static_cast<std::size_t>(s)];
      const int now = best < 0 ? -1 : busy_until_[static_cast<std::size_t>(best)];
      const bool better =
          best < 0 || (other >= until && (now < until || other < now)) || (other < until && now < until && other > now);
      if (better) best = s;
    }
    auto& busy = busy_until_[static_cast<std::size_t>(best)];
    busy = std::max(busy, until);
    return static_cast<std::uint8_t>(best);
  }

  void choose_scoreboards() {
    busy_until_.fill(-1);
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      for (std::size_t i = 0; i < blocks_[b].items.size(); ++i) {
        Item& item = blocks_[b].items[i];
        if (!item.in.variable_latency || multiplies_by_group(item.in)) continue;  // WARPGROUP.DEPBAR waits for it
        const int at = blocks_[b].first + static_cast<int>(i);
        if (ends_group_of_copies(item.in)) {
          item.in.control.write_barrier = 0;
          continue;
        }
        if (!item.touched.writes.empty() && first_wait(b, i, true) != kForever)
          item.in.control.write_barrier = take_scoreboard(at, first_wait(b, i, true));
        if (!item.touched.reads.empty() && overwritten(b, i))
          item.in.control.read_barrier = take_scoreboard(at, first_wait(b, i, false));
      }
  }

  struct Pending {
    std::array<std::uint8_t, kSlots> written{}, read{};
    bool operator==(const Pending&) const = default;
    void merge(const Pending& other) {
      for (int s = 0; s < kSlots; ++s) {
        written[static_cast<std::size_t>(s)] |= other.written[static_cast<std::size_t>(s)];
        read[static_cast<std::size_t>(s)] |= other.read[static_cast<std::size_t>(s)];
      }
    }
    void clear(std::uint8_t mask) {
      for (int s = 0; s < kSlots; ++s) {
        written[static_cast<std::size_t>(s)] &= static_cast<std::uint8_t>(~mask);
        read[static_cast<std::size_t>(s)] &= static_cast<std::uint8_t>(~mask);
      }
    }
  };

  void wait_for_scoreboards() {
    std::vector<Pending> out(blocks_.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        Pending state;
        for (const int p : blocks_[b].predecessors) state.merge(out[static_cast<std::size_t>(p)]);
        for (Item& item : blocks_[b].items) wait(item, state);
        if (state == out[b]) continue;
        out[b] = state;
        changed = true;
      }
    }
  }

  static void wait(Item& item, Pending& state) {
    std::uint8_t mask = 0;
    const auto slot = [](int s) { return static_cast<std::size_t>(s); };
    for (const int s : item.touched.reads) mask |= state.written[slot(s)];
    if (item.touched.guard >= 0) mask |= state.written[slot(item.touched.guard)];
    for (const int s : item.touched.writes)
      mask |= static_cast<std::uint8_t>(state.written[slot(s)] | state.read[slot(s)]);
    Control& c = item.in.control;
    c.wait_mask = mask;
    if (mask != 0) state.clear(mask);
    if (ends_group_of_copies(item.in)) return;  // DEPBAR waits for it
    if (c.write_barrier != kNone)
      for (const int s : item.touched.writes)
        state.written[slot(s)] |= static_cast<std::uint8_t>(1u << c.write_barrier);
    if (c.read_barrier != kNone)
      for (const int s : item.touched.reads) state.read[slot(s)] |= static_cast<std::uint8_t>(1u << c.read_barrier);
  }

  // ---- stall counts

  /// What is still on its way where a stretch of code begins: ages in cycles since issue.
  struct InFlight {
    struct Result {
      const Instruction* writer = nullptr;
      int age = 0;
    };
    std::array<Result, kSlots> results{};
    std::array<int, static_cast<std::size_t>(Pipe::Count)> pipe_age{};
    std::array<int, static_cast<std::size_t>(Pipe::Count)> pipe_busy{};
    std::array<int, kScoreboardCount> set_age{};
    int barrier_age = kForever;
    InFlight() {
      pipe_age.fill(kForever);
      set_age.fill(kForever);
    }
    void pass(int cycles) {
      for (Result& r : results)
        if (r.writer != nullptr && (r.age += cycles) > 40) r.writer = nullptr;
      for (int& a : pipe_age) a = std::min(kForever, a + cycles);
      for (int& a : set_age) a = std::min(kForever, a + cycles);
      barrier_age = std::min(kForever, barrier_age + cycles);
    }
  };

  /// Cycles from now until the item may issue.
  int needed(const Item& item, const InFlight& t) const {
    const Instruction& in = item.in;
    if (!may_execute(in)) return 0;
    int cycles = 0;
    const auto slot = [](int s) { return static_cast<std::size_t>(s); };
    for (const int s : item.touched.reads)
      if (const auto& r = t.results[slot(s)]; r.writer != nullptr)
        cycles = std::max(cycles, result_distance(*r.writer, file_of(s), in, false) - r.age);
    if (item.touched.guard >= 0)
      if (const auto& r = t.results[slot(item.touched.guard)]; r.writer != nullptr)
        cycles = std::max(cycles, result_distance(*r.writer, File::Predicate, in, true) - r.age);
    const auto pipe = static_cast<std::size_t>(in.pipe);
    cycles = std::max(cycles, t.pipe_busy[pipe] - t.pipe_age[pipe]);
    for (int s = 0; s < kScoreboardCount; ++s)
      if ((in.control.wait_mask >> s & 1) != 0)
        cycles = std::max(cycles, kScoreboardVisible - t.set_age[static_cast<std::size_t>(s)]);
    if (traits(in.opcode).unit.at_barrier == AtBarrier::Waits)
      cycles = std::max(cycles, kBehindBarrier - t.barrier_age);
    return cycles;
  }

  void issue(const Item& item, InFlight& t) const {
    const Instruction& in = item.in;
    if (!may_execute(in)) return;
    for (const int s : item.touched.writes) {
      auto& r = t.results[static_cast<std::size_t>(s)];
      r.writer = in.variable_latency ? nullptr : &in;
      r.age = 0;
    }
    const auto pipe = static_cast<std::size_t>(in.pipe);
    t.pipe_age[pipe] = 0;
    t.pipe_busy[pipe] = pipe_distance(in, model_);
    for (const int s : {int{in.control.write_barrier}, int{in.control.read_barrier}})
      if (s < kScoreboardCount) t.set_age[static_cast<std::size_t>(s)] = 0;
    if (in.opcode == Opcode::BAR) t.barrier_age = 0;
  }

  static int least_stall(const Instruction& in) {
    if (ends(in)) return kBranchStall;
    return in.opcode == Opcode::DEPBAR ? kBehindDepbar : 1;
  }
  static bool ends(const Instruction& in) {
    return in.opcode == Opcode::BRA || in.opcode == Opcode::EXIT || in.opcode == Opcode::BSYNC;
  }

  void count_stalls() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      InFlight t;
      for (const int p : blocks_[b].predecessors)
        join(t, exits_.size() > static_cast<std::size_t>(p) ? exits_[static_cast<std::size_t>(p)] : InFlight{});
      std::vector<Item>& items = blocks_[b].items;
      for (std::size_t i = 0; i < items.size(); ++i) {
        issue(items[i], t);
        int stall = least_stall(items[i].in);
        if (i + 1 < items.size()) {
          stall = std::max(stall, needed(items[i + 1], t));
        } else {
          for (const int s : blocks_[b].successors)
            if (const Item* next = first_item(s)) stall = std::max(stall, needed(*next, t));
        }
        set_stall(items[i], stall);
        t.pass(stall);
      }
      if (exits_.size() < blocks_.size()) exits_.resize(blocks_.size());
      exits_[b] = t;
    }
  }

  const Item* first_item(int block) const {
    for (auto b = static_cast<std::size_t>(block); b < blocks_.size(); ++b)
      if (!blocks_[b].items.empty()) return &blocks_[b].items.front();
    return nullptr;
  }

  void set_stall(Item& item, int stall) {
    item.stall = stall;
    item.in.control.stall = static_cast<std::uint8_t>(std::min(stall, kLongestStall));
    // Raw 1: the warp may go on; 0 where it waits for a result of its own, or for 12 cycles and more (sass.md 1.3).
    item.in.control.yield = stall < 12 && (stall < 3 || stall == kBranchStall || item.in.variable_latency);
  }

  static void join(InFlight& into, const InFlight& from) {
    for (std::size_t s = 0; s < kSlots; ++s) {
      const auto& r = from.results[s];
      auto& mine = into.results[s];
      if (r.writer == nullptr) continue;
      if (mine.writer == nullptr || r.age < mine.age) mine = r;
    }
    for (std::size_t p = 0; p < into.pipe_age.size(); ++p)
      if (from.pipe_age[p] < into.pipe_age[p]) {
        into.pipe_age[p] = from.pipe_age[p];
        into.pipe_busy[p] = from.pipe_busy[p];
      }
    for (std::size_t s = 0; s < into.set_age.size(); ++s) into.set_age[s] = std::min(into.set_age[s], from.set_age[s]);
    into.barrier_age = std::min(into.barrier_age, from.barrier_age);
  }

  std::vector<Instruction> flatten() {
    std::vector<Instruction> all;
    std::vector<std::pair<std::size_t, int>> targets;
    std::vector<std::uint32_t> starts(blocks_.size(), 0);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      starts[b] = static_cast<std::uint32_t>(all.size());
      for (const Item& item : blocks_[b].items) {
        // What a stall count cannot hold, an empty instruction in front of the reader does; not behind a branch, whose
        // own way is longer.
        if (item.line_target >= 0) targets.push_back({all.size(), item.line_target});
        all.push_back(item.in);
        const int left = item.stall - kLongestStall;
        if (left > 0 && !ends(item.in)) all.push_back(nothing(left));
      }
    }
    for (const auto& [at, label] : targets)
      for (Operand& o : all[at].operands)
        if (o.kind == OperandKind::Target) o.immediate = starts[static_cast<std::size_t>(by_label_.at(label))];
    return all;
  }

  Instruction nothing(int stall) const {
    Code code(model_.sm);
    Instruction in = code.emit("NOP").instruction;
    in.control.stall = static_cast<std::uint8_t>(std::clamp(stall, 2, kLongestStall));
    return in;
  }

  const Placement& places_;
  const GpuModel& model_;
  std::vector<Stretch> blocks_;
  std::map<int, int> by_label_;
  bool counted_copies_ = false;  ///< scoreboard 0 counts groups of asynchronous copies
  std::array<int, kScoreboardCount> busy_until_{};
  std::vector<InFlight> exits_;
};

}  // namespace

std::vector<Instruction> finish(const Code& code, const Placement& places, const GpuModel& model) {
  return Finisher(code, places, model).run();
}

}  // namespace forewarp::sketch

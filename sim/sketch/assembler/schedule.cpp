// List scheduling of each block from its end (a load stands as far before its use as it takes, not further, so few
// values live at once): of the instructions whose readers are placed and far enough, the last in program order is next.
#include <algorithm>
#include <map>
#include <set>

#include "sketch/assembler/names.h"

namespace forewarp::sketch {
namespace {

struct Edge {
  int to = 0;
  int distance = 0;
};

enum class Order : std::uint8_t { Free, SharedLoad, SharedStore, GlobalLoad, GlobalStore, Fence };

Order order_of(const Instruction& in) {
  switch (in.opcode) {
    case Opcode::BAR:
    case Opcode::DEPBAR:
    case Opcode::LDGDEPBAR:
    case Opcode::BSSY:
    case Opcode::HGMMA:
    case Opcode::IGMMA:
    case Opcode::QGMMA:
    case Opcode::WARPGROUP:
    case Opcode::SYNCS:
    case Opcode::UTMALDG:
    case Opcode::UTMASTG:
    case Opcode::UTMACMDFLUSH:
    case Opcode::USETMAXREG:
    case Opcode::MEMBAR:
    case Opcode::FENCE:
    case Opcode::ERRBAR:
    case Opcode::CGAERRBAR:
    case Opcode::CCTL:
    case Opcode::UCGABAR_ARV:
    case Opcode::UCGABAR_WAIT:
      return Order::Fence;
    case Opcode::LDGSTS:
      return Order::SharedStore;
    default:
      break;
  }
  if (in.space == MemorySpace::Shared) return in.memory == MemoryKind::Load ? Order::SharedLoad : Order::SharedStore;
  if (in.space != MemorySpace::Global) return Order::Free;
  if (in.memory != MemoryKind::Load) return Order::GlobalStore;
  return in.has(Modifier::CONSTANT) ? Order::Free : Order::GlobalLoad;
}

bool ordered(Order first, Order second) {
  if (first == Order::Free || second == Order::Free) return false;
  if (first == Order::Fence || second == Order::Fence) return true;
  const auto shared = [](Order o) { return o == Order::SharedLoad || o == Order::SharedStore; };
  if (shared(first) != shared(second)) return false;
  return first == Order::SharedStore || second == Order::SharedStore || first == Order::GlobalStore ||
         second == Order::GlobalStore;
}

constexpr int kPostponed = 1 << 24;  ///< cycles

/// The predicates, or uniform registers, that a block makes itself, as its lines are placed from the end.
class LiveValues {
 public:
  LiveValues(const std::vector<Line>& lines, File file) : of_(lines.size()) {
    std::map<int, int> written;  // by value: lines yet to place that write it
    for (const bool writes : {true, false})
      for (std::size_t i = 0; i < lines.size(); ++i)
        for_each_value(lines[i], [&](const Value& v, int, bool write, bool) {
          if (v.file != file || write != writes) return;
          if (write) {
            ++written[v.id];
            of_[i].written.push_back(v.id);
          } else if (written.count(v.id) != 0) {
            of_[i].read.push_back(v.id);
          }
        });
    left_ = std::move(written);
  }

  int live() const { return static_cast<int>(live_.size()); }
  /// Whether more are live once the line is placed.
  bool grows(int line) const {
    const Uses& of = of_[static_cast<std::size_t>(line)];
    std::ptrdiff_t change = std::count_if(of.read.begin(), of.read.end(), [&](int v) { return live_.count(v) == 0; });
    for (const int v : of.written) change -= left_.at(v) == 1 && live_.count(v) != 0 ? 1 : 0;
    return change > 0;
  }
  void place(int line) {
    const Uses& of = of_[static_cast<std::size_t>(line)];
    for (const int v : of.written)
      if (--left_[v] == 0) live_.erase(v);
    for (const int v : of.read)
      if (left_[v] > 0) live_.insert(v);
  }

 private:
  struct Uses {
    std::vector<int> read, written;
  };
  std::vector<Uses> of_;
  std::map<int, int> left_;
  std::set<int> live_;
};

class BlockScheduler {
 public:
  BlockScheduler(std::vector<Line>& lines, const Words& words, const GpuModel& model, const ScheduleLimits& limits)
      : lines_(lines),
        model_(model),
        limits_(limits),
        successors_(lines.size()),
        open_(lines.size(), 0),
        writers_(words),
        readers_(words) {}

  void run() {
    find_dependences();
    place_backwards();
  }

 private:
  struct LastWriters {
    explicit LastWriters(const Words& words) : of(static_cast<std::size_t>(words.count()), -1) {}
    std::vector<int> of;
  };
  struct Readers {
    explicit Readers(const Words& all) : of(static_cast<std::size_t>(all.count())), words(all) {}
    std::vector<std::vector<int>> of;
    const Words& words;
  };

  void depends(int later, int earlier, int distance) {
    if (earlier < 0 || earlier == later) return;
    successors_[static_cast<std::size_t>(earlier)].push_back({later, distance});
  }

  void find_dependences() {
    std::vector<std::pair<int, Order>> memory;
    std::vector<int> ahead;
    const int last = static_cast<int>(lines_.size()) - 1;
    for (int i = 0; i <= last; ++i) {
      const Line& line = lines_[static_cast<std::size_t>(i)];
      for_each_value(line, [&](const Value& v, int count, bool written, bool guard) {
        if (!written) read(i, v, count, guard);
      });
      for_each_value(line, [&](const Value& v, int count, bool written, bool) {
        if (written) write(i, v, count, line.guard.id >= 0);
      });
      const Order order = order_of(line.instruction);
      for (const auto& [earlier, other] : memory)
        if (ordered(other, order)) depends(i, earlier, 1);
      if (order == Order::Fence) memory.clear();
      if (order != Order::Free) memory.push_back({i, order});
      // Copies, and words for products, are not put off beyond the next product: what they take is never hidden enough.
      if (line.instruction.opcode == Opcode::LDGSTS || line.instruction.opcode == Opcode::LDSM) {
        ahead.push_back(i);
      } else if (line.instruction.opcode == Opcode::HMMA || line.instruction.opcode == Opcode::IMMA) {
        for (const int earlier : ahead) depends(i, earlier, 1);
        ahead.clear();
      }
      if (i == last && ends_block(line.instruction))
        for (int e = 0; e < last; ++e) depends(last, e, 1);
    }
  }

  void read(int i, const Value& v, int count, bool guard) {
    const Instruction& reader = lines_[static_cast<std::size_t>(i)].instruction;
    for (int w = 0; w < count; ++w) {
      const auto word = static_cast<std::size_t>(readers_.words.of(v.at(w)));
      const int writer = writers_.of[word];
      if (writer >= 0) {
        const Instruction& from = lines_[static_cast<std::size_t>(writer)].instruction;
        int distance = planned_distance(from, v.file, reader, guard, model_);
        if (v.file == File::Predicate) distance = std::min(distance, limits_.furthest);
        depends(i, writer, distance);
      }
      readers_.of[word].push_back(i);
    }
  }

  void write(int i, const Value& v, int count, bool guarded) {
    for (int w = 0; w < count; ++w) {
      const auto word = static_cast<std::size_t>(readers_.words.of(v.at(w)));
      for (const int reader : readers_.of[word]) depends(i, reader, 0);
      depends(i, writers_.of[word], guarded ? 2 : 1);
      readers_.of[word].clear();
      writers_.of[word] = i;
    }
  }

  bool makes_predicate(int line) const {
    const Instruction& in = lines_[static_cast<std::size_t>(line)].instruction;
    for (std::size_t i = 0; i < in.destination_count; ++i)
      if (in.operands[i].kind == OperandKind::Predicate &&
          lines_[static_cast<std::size_t>(line)].names[i].value.id >= 0)
        return true;
    return false;
  }

  void place_backwards() {
    const std::size_t n = lines_.size();
    LiveValues predicates(lines_, File::Predicate), uniforms(lines_, File::Uniform);
    std::vector<std::vector<Edge>> predecessors(n);
    for (std::size_t i = 0; i < n; ++i)
      for (const Edge& e : successors_[i]) {
        ++open_[i];
        predecessors[static_cast<std::size_t>(e.to)].push_back({static_cast<int>(i), e.distance});
      }
    std::vector<int> ready(n, 0);
    std::vector<int> candidates;
    for (std::size_t i = 0; i < n; ++i)
      if (open_[i] == 0) candidates.push_back(static_cast<int>(i));
    std::array<int, static_cast<std::size_t>(Pipe::Count)> pipe_free{};
    std::vector<int> order;
    int now = 0;
    while (!candidates.empty()) {
      int best = -1, soonest = -1, soonest_at = 0;
      for (const int c : candidates) {
        const Instruction& in = lines_[static_cast<std::size_t>(c)].instruction;
        int at = std::max(ready[static_cast<std::size_t>(c)], pipe_free[static_cast<std::size_t>(in.pipe)]);
        // Beyond a limit: who needs one more comes after all that can be done without.
        if ((predicates.live() >= limits_.most && predicates.grows(c)) ||
            (uniforms.live() >= limits_.most_uniforms && uniforms.grows(c)))
          at += kPostponed;
        if (at <= now) {
          // There are few predicates: once who reads one is placed, who writes it follows.
          const bool first = best < 0 || makes_predicate(c) > makes_predicate(best);
          if (first || (c > best && makes_predicate(c) == makes_predicate(best))) best = c;
        } else if (soonest < 0 || at < soonest_at || (at == soonest_at && c > soonest)) {
          soonest = c;
          soonest_at = at;
        }
      }
      if (best < 0) {
        best = soonest;
        now = soonest_at >= kPostponed ? std::max(now, soonest_at - kPostponed) : soonest_at;
      }
      const auto chosen = static_cast<std::size_t>(best);
      predicates.place(best);
      uniforms.place(best);
      order.push_back(best);
      std::erase(candidates, best);
      const Instruction& in = lines_[chosen].instruction;
      pipe_free[static_cast<std::size_t>(in.pipe)] = now + pipe_distance(in, model_);
      for (const Edge& e : predecessors[chosen]) {
        const auto before = static_cast<std::size_t>(e.to);
        ready[before] = std::max(ready[before], now + e.distance);
        if (--open_[before] == 0) candidates.push_back(e.to);
      }
      ++now;
    }
    std::vector<Line> placed;
    placed.reserve(n);
    for (auto i = order.rbegin(); i != order.rend(); ++i) placed.push_back(lines_[static_cast<std::size_t>(*i)]);
    lines_ = std::move(placed);
  }

  std::vector<Line>& lines_;
  const GpuModel& model_;
  ScheduleLimits limits_;
  std::vector<std::vector<Edge>> successors_;
  std::vector<int> open_;  ///< readers not placed yet
  LastWriters writers_;
  Readers readers_;
};

/// On sm_90, ptxas puts three loads that never take place before a copy by cp.async that follows another access to
/// shared memory, or the begin of a block.
void keep_copies_apart(Code::Block& block, int sm) {
  constexpr int kLoads = 3;
  Code none(sm);
  const Line load = none.emit("LDS", {kRZ, shared(kRZ)}).when(kPT, true);
  std::vector<Line> lines;
  bool behind_copy = false;
  for (const Line& line : block.lines) {
    const Instruction& in = line.instruction;
    if (in.opcode == Opcode::LDGSTS) {
      if (!behind_copy) lines.insert(lines.end(), kLoads, load);
      behind_copy = true;
    } else if (in.space == MemorySpace::Shared || in.opcode == Opcode::BAR) {
      behind_copy = false;
    }
    lines.push_back(line);
  }
  block.lines = std::move(lines);
}

}  // namespace

void schedule(Code& code, const GpuModel& model, const ScheduleLimits& limits) {
  const Words words(code.values());
  for (Code::Block& block : code.blocks()) {
    BlockScheduler(block.lines, words, model, limits).run();
    if (code.hopper()) keep_copies_apart(block, code.sm());
  }
}

}  // namespace forewarp::sketch

// The family `tiles`, the general form: a nest of loops over loads and stores whose addresses are sums of strides times
// indices, barriers, and so much arithmetic of given kinds. What is computed means nothing; what is loaded and stored
// without arithmetic in between is a copy.
#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "sketch/families/tensor.h"

namespace forewarp::sketch {
namespace {

constexpr std::int64_t kMostOffset = 1 << 23;  ///< of an instruction's immediate
constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;

enum class Step : std::uint8_t { Load, Read, Write, Store, Compute, Loop, Barrier, Commit, Wait };
enum class Kind : std::uint8_t { Fma, Fp16, Fp64, Mufu, Int, Imad, Mma, Count };
constexpr std::string_view kKinds[] = {"fma", "fp16", "fp64", "mufu", "int", "imad", "mma"};

/// A byte offset: a base and strides of indices.
struct Pattern {
  std::int64_t base = 0, block[3]{}, thread = 0, thread_x = 0, thread_y = 0, warp = 0, lane = 0, each = 0;
  std::map<std::string, std::int64_t> loops;
  std::int64_t ring = 0, phase = 0;  ///< what loops move starts again after so many bytes, and begins so far into them
  SourcePosition where;
};

struct Item {
  Step step{};
  SourcePosition where;
  int tensor = -1;
  bool async = false, matrix = false;
  int bytes = 4, count = 1, threads = 0;
  Pattern at, shared_at;
  std::string name;             ///< of what is loaded, or of a loop
  std::vector<std::string> of;  ///< loads that are used
  int counts[static_cast<int>(Kind::Count)]{};
  int independent = 8;
  Type type = Type::F16;
  int mma_k = 16;
  bool sparse = false;  ///< A's words are two of each four elements
  std::int64_t times = 1;
  int groups = 0;
  std::vector<Item> body;

  // While it is written.
  Value address, shared_address, ring_offset, guard;
  std::vector<Value> words;  ///< loaded
  std::vector<Value> sums[static_cast<int>(Kind::Count)];
};

struct TensorOf {
  std::string name;
  std::uint64_t bytes = 0;
  int buffer = -1;
  bool stored = false;
};

struct Plan {
  std::int64_t grid[3]{1, 1, 1};
  int block_x = 0, block_y = 1;
  std::int64_t shared = 0;
  bool shared_given = false;
  std::vector<TensorOf> tensors;
  std::vector<Item> body;
  int threads() const { return block_x * block_y; }
};

// ---- reading

class Reader {
 public:
  Reader(Plan& plan, Draft& draft) : plan_(plan), draft_(draft) {}

  void read(config::Map& m) {
    const config::Node grid = m.at("grid");
    const std::vector<config::Node> extents = grid.is_list() ? grid.list(1, 3) : std::vector<config::Node>{grid};
    for (std::size_t i = 0; i < extents.size(); ++i) plan_.grid[i] = extents[i].integer(1, i == 0 ? 1 << 30 : 65535);
    const config::Node block = m.at("block");
    const std::vector<config::Node> sides = block.is_list() ? block.list(1, 2) : std::vector<config::Node>{block};
    plan_.block_x = static_cast<int>(sides[0].integer(1, 1024));
    if (sides.size() > 1) {
      plan_.block_y = static_cast<int>(sides[1].integer(1, 1024));
      if (!is_power_of_two(plan_.block_x))
        throw sides[0].error("is no power of two", "threads along x are one, where there are rows of them");
    }
    if (plan_.threads() > 1024 || plan_.threads() % kWarpLanes != 0)
      throw block.error("is " + std::to_string(plan_.threads()) + " threads", "take a multiple of 32, at most 1024");
    for (const config::Entry& e : m.at("tensors").entries())
      plan_.tensors.push_back({e.key, e.value.unsigned_integer(16, kMostBytes - 1)});
    if (const auto shared = m.find("shared")) {
      plan_.shared = shared->integer(0, 1 << 20);
      plan_.shared_given = true;
    }
    plan_.body = read_body(m.at("body"));
    if (!plan_.shared_given && plan_.shared > 0)
      draft_.assume("shared: " + std::to_string(plan_.shared) + " bytes, up to the last that is used");
  }

 private:
  std::vector<Item> read_body(const config::Node& node) {
    std::vector<Item> body;
    for (const config::Node& step : node.list(1, 64)) body.push_back(read_step(step));
    return body;
  }

  Item read_step(const config::Node& node) {
    Item item;
    item.where = node.where();
    if (node.is_scalar()) {
      item.step = node.choice({"barrier", "commit"}) == 0 ? Step::Barrier : Step::Commit;
      return item;
    }
    bool found = false;
    node.read_map([&](config::Map& m) {
      const auto one = [&](const char* key, Step step, auto&& reader) {
        const auto n = m.find(key);
        if (!n) return;
        if (found) throw n->error("is a second step", "make it an item of its own");
        found = true;
        item.step = step;
        reader(*n);
      };
      one("load", Step::Load, [&](const config::Node& n) { read_access(n, item); });
      one("store", Step::Store, [&](const config::Node& n) { read_access(n, item); });
      one("read", Step::Read, [&](const config::Node& n) { read_access(n, item); });
      one("write", Step::Write, [&](const config::Node& n) { read_access(n, item); });
      one("compute", Step::Compute, [&](const config::Node& n) { read_compute(n, item); });
      one("wait", Step::Wait, [&](const config::Node& n) { item.groups = static_cast<int>(n.integer(0, 7)); });
      one("loop", Step::Loop, [&](const config::Node& n) { read_loop(n, item); });
      for (const char* word : {"barrier", "commit"})
        if (const auto n = m.find(word))
          throw n->error("is a value, and a step of that kind has none", std::string("write - ") + word);
      if (!found && m.node().entries().empty()) throw m.node().error("says nothing", "give a step");
    });
    return item;
  }

  void read_loop(const config::Node& node, Item& item) {
    node.read_map([&](config::Map& m) {
      const config::Node name = m.at("index");
      item.name = name.string();
      if (std::find_if(loops_.begin(), loops_.end(), [&](const auto& l) { return l.first == item.name; }) !=
          loops_.end())
        throw name.error("is the index of a loop around it", "call it otherwise");
      item.times = m.at("times").integer(1, 1 << 24);
      loops_.push_back({item.name, item.times});
      item.body = read_body(m.at("body"));
      loops_.pop_back();
    });
  }

  void read_access(const config::Node& node, Item& item) {
    const bool memory = item.step == Step::Load || item.step == Step::Store;
    node.read_map([&](config::Map& m) {
      if (memory) {
        const config::Node name = m.at(item.step == Step::Load ? "from" : "to");
        const std::string wanted = name.string();
        for (std::size_t t = 0; t < plan_.tensors.size(); ++t)
          if (plan_.tensors[t].name == wanted) item.tensor = static_cast<int>(t);
        if (item.tensor < 0) throw name.error("is no tensor", "declare it under tensors");
        if (item.step == Step::Store) plan_.tensors[static_cast<std::size_t>(item.tensor)].stored = true;
      }
      if (const auto bytes = m.find("bytes")) {
        item.bytes = static_cast<int>(bytes->integer(4, 16));
        if (!is_power_of_two(item.bytes))
          throw bytes->error("is " + std::to_string(item.bytes), "a lane takes 4, 8 or 16");
      }
      if (const auto count = m.find("count")) item.count = static_cast<int>(count->integer(1, 64));
      if (const auto threads = m.find("threads")) item.threads = static_cast<int>(threads->integer(1, plan_.threads()));
      if (item.step == Step::Load) {
        if (const auto shared = m.find("shared")) {
          item.async = true;
          if (item.bytes < 4)
            throw shared->error("takes no copies of " + std::to_string(item.bytes) + " bytes", "take 4, 8 or 16");
          item.shared_at = read_pattern(*shared, item, 0);
        } else if (const auto name = m.find("name")) {
          item.name = name->string();
        }
      }
      if (item.step == Step::Read) {
        if (const auto name = m.find("name")) item.name = name->string();
        if (const auto matrix = m.find("matrix")) {
          item.matrix = matrix->boolean();
          if (item.matrix) item.bytes = 16;
        }
      }
      if (item.step == Step::Write || item.step == Step::Store) item.of = read_names(m);
      const auto at = m.find("at");
      if (!at && memory) throw m.node().error("does not say where", "give at: {base, thread, ...}, strides in bytes");
      const std::uint64_t room = memory ? plan_.tensors[static_cast<std::size_t>(item.tensor)].bytes : 0;
      if (at) item.at = read_pattern(*at, item, room);
    });
  }

  static std::vector<std::string> read_names(config::Map& m) {
    std::vector<std::string> names;
    if (const auto of = m.find("of"))
      for (const config::Node& n : of->is_list() ? of->list(1, 16) : std::vector<config::Node>{*of})
        names.push_back(n.string());
    return names;
  }

  /// `room`: bytes of the tensor; 0: of shared memory.
  Pattern read_pattern(const config::Node& node, const Item& item, std::uint64_t room) {
    Pattern p;
    p.where = node.where();
    node.read_map([&](config::Map& m) {
      const auto stride = [&](std::string_view key, std::int64_t& to) {
        if (const auto n = m.find(key)) to = n->integer(-kMostBytes, kMostBytes);
      };
      stride("base", p.base);
      stride("block_x", p.block[0]);
      stride("block_y", p.block[1]);
      stride("block_z", p.block[2]);
      stride("thread", p.thread);
      stride("thread_x", p.thread_x);
      stride("thread_y", p.thread_y);
      stride("warp", p.warp);
      stride("lane", p.lane);
      stride("each", p.each);
      for (const auto& [name, times] : loops_)
        if (const auto n = m.find(name)) p.loops[name] = n->integer(-kMostBytes, kMostBytes);
      if (room > 0) return;
      if (const auto ring = m.find("ring")) {
        p.ring = ring->integer(1, 1 << 20);
        if (const auto phase = m.find("phase")) p.phase = phase->integer(0, p.ring - 1);
      }
    });
    check(node, p, item, room);
    return p;
  }

  void check(const config::Node& node, const Pattern& p, const Item& item, std::uint64_t room) {
    std::int64_t least = p.base, most = p.base;
    const auto span = [&](std::int64_t stride, std::int64_t extent) {
      const std::int64_t reach = stride * (extent - 1);
      (reach < 0 ? least : most) += reach;
    };
    for (int i = 0; i < 3; ++i) span(p.block[i], plan_.grid[i]);
    const int threads = item.threads > 0 ? item.threads : plan_.threads();
    span(p.thread, threads);
    span(p.thread_x, plan_.block_x);
    span(p.thread_y, plan_.block_y);
    span(p.warp, (threads + kWarpLanes - 1) / kWarpLanes);
    span(p.lane, std::min(threads, kWarpLanes));
    span(p.each, item.count);
    std::int64_t low = 0, high = 0;
    for (const auto& [name, times] : loops_)
      if (const auto s = p.loops.find(name); s != p.loops.end())
        (s->second < 0 ? low : high) += s->second * (times - 1);
    if (p.ring > 0) {
      if (low < 0) throw node.error("has a ring that is walked backwards", "give loops strides of 0 and more");
      std::int64_t least_stride = p.ring;
      for (const auto& [name, s] : p.loops) {
        if (s == 0) continue;
        if (p.ring % s != 0 || p.phase % s != 0)
          throw node.error("has a ring or a phase that is no multiple of the stride of " + name, "take whole strides");
        least_stride = std::min(least_stride, s);
      }
      high = std::min(high + p.phase, p.ring - least_stride);
    }
    least += low;
    most += high + item.bytes;
    const bool misaligned =
        std::any_of(p.loops.begin(), p.loops.end(), [&](const auto& l) { return l.second % item.bytes != 0; }) ||
        (p.base | p.phase | p.block[0] | p.block[1] | p.block[2] | p.thread | p.thread_x | p.thread_y | p.warp |
         p.lane | p.each) %
                item.bytes !=
            0;
    if (misaligned)
      throw node.error("is not aligned to accesses of " + std::to_string(item.bytes) + " bytes",
                       "take multiples of that, or fewer bytes");
    if (std::abs(p.each) * item.count >= kMostOffset)
      throw node.error("reaches further than an instruction's offset", "make it a loop");
    if (least < 0) throw node.error("begins " + std::to_string(-least) + " bytes before the start", "raise base");
    if (room > 0 && most > static_cast<std::int64_t>(room))
      throw node.error("reaches byte " + std::to_string(most) + " of " + std::to_string(room),
                       "make the tensor larger, or strides smaller");
    if (room > 0) return;
    if (plan_.shared_given && most > plan_.shared)
      throw node.error(
          "reaches byte " + std::to_string(most) + " of " + std::to_string(plan_.shared) + " of shared memory",
          "raise shared");
    if (!plan_.shared_given) plan_.shared = std::max(plan_.shared, most);
  }

  void read_compute(const config::Node& node, Item& item) {
    node.read_map([&](config::Map& m) {
      int all = 0;
      for (std::size_t k = 0; k < std::size(kKinds); ++k)
        if (const auto count = m.find(kKinds[k])) all += item.counts[k] = static_cast<int>(count->integer(1, 4096));
      if (all == 0) throw m.node().error("computes nothing", "give a count of fma, fp16, fp64, mufu, int, imad or mma");
      if (const auto independent = m.find("independent"))
        item.independent = static_cast<int>(independent->integer(1, 64));
      if (item.counts[static_cast<int>(Kind::Mma)] > 0) {
        if (const auto type = m.find("type"))
          item.type = read_type(*type, {Type::F16, Type::Bf16, Type::Tf32, Type::S8});
        if (const auto sparse = m.find("sparse")) {
          item.sparse = sparse->boolean();
          if (item.sparse && bytes_of(item.type) != 2)
            throw sparse->error("takes f16 or bf16 in a sketch", "leave it out");
        }
        item.mma_k = step_depth(item.type);
        if (const auto k = m.find("k")) {
          item.mma_k = static_cast<int>(k->integer(1, 64));
          if (item.mma_k != step_depth(item.type) && item.mma_k != step_depth(item.type) / 2)
            throw k->error("is " + std::to_string(item.mma_k),
                           "products of " + std::string(type_name(item.type)) + " are 16 x 8 x " +
                               std::to_string(step_depth(item.type)) + " or half as deep");
        }
      }
      item.of = read_names(m);
    });
  }

  Plan& plan_;
  Draft& draft_;
  std::vector<std::pair<std::string, std::int64_t>> loops_;
};

// ---- writing

class TilesKernel {
 public:
  TilesKernel(Plan& plan, const GpuModel& model, const std::string& name) : plan_(plan), w_(model, name) {}

  Kernel write(const SourcePosition& where) {
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) pointers_.push_back(w_.pointer_parameter());
    w_.descriptor();
    if (plan_.shared > 0) base_ = w_.copy(w_.shared_base());
    begin(plan_.body);
    write_body(plan_.body, false);
    return w_.finish(where, "load less at once, or take fewer independent sums", plan_.threads(), 0);
  }

 private:
  // ---- places and sums, before anything else

  void begin(std::vector<Item>& body) {
    for (Item& item : body) {
      switch (item.step) {
        case Step::Load:
        case Step::Store:
          item.address = global_address(item);
          if (item.async) item.shared_address = shared_address(item, item.shared_at);
          break;
        case Step::Read:
        case Step::Write:
          item.shared_address = shared_address(item, item.at);
          break;
        case Step::Compute:
          make_sums(item);
          break;
        case Step::Loop:
          begin(item.body);
          break;
        default:
          break;
      }
      if (item.threads > 0 && item.threads < plan_.threads())
        item.guard = w_.compare("LT.U32", w_.thread(), imm(item.threads));
      if ((item.step == Step::Load && !item.async) || item.step == Step::Read)
        for (int i = 0; i < item.count; ++i) item.words.push_back(w_.code.vector(item.bytes / 4));
    }
  }

  /// The sum of strides times indices of blocks and threads.
  Value offset_of(const Pattern& p) {
    Value sum = kRZ;
    const auto add = [&](std::int64_t stride, auto&& index) {
      if (stride == 0) return;
      sum = w_.mad(w_.copy(index()), imm(static_cast<int>(stride)), sum);
    };
    add(p.block[0], [&] { return w_.block_x(); });
    add(p.block[1], [&] { return w_.block_y(); });
    add(p.block[2], [&] { return w_.block_z(); });
    add(p.thread, [&] { return w_.thread(); });
    add(p.thread_x, [&] {
      return plan_.block_y == 1 ? w_.thread() : w_.and_bits(w_.thread(), static_cast<std::uint32_t>(plan_.block_x - 1));
    });
    add(p.thread_y, [&] { return plan_.block_y == 1 ? kRZ : w_.shift_right(w_.thread(), log2_of(plan_.block_x)); });
    add(p.warp, [&] { return w_.shift_right(w_.thread(), 5); });
    add(p.lane, [&] { return w_.and_bits(w_.thread(), 31); });
    return sum;
  }

  Value global_address(const Item& item) {
    const Value offset = offset_of(item.at);
    const Value from = item.at.base == 0 ? offset : w_.add(offset, imm(static_cast<int>(item.at.base)));
    return w_.wide_mad(from, imm(1), w_.pointer(pointers_[static_cast<std::size_t>(item.tensor)]));
  }
  Value shared_address(Item& item, const Pattern& p) {
    if (p.ring > 0) item.ring_offset = w_.number(static_cast<int>(p.phase));
    const Value offset = offset_of(p), at = w_.code.vector();
    w_.code.emit("IADD3", {at, offset, imm(static_cast<int>(p.base)), base_});
    return at;
  }

  static constexpr int words_of(Kind kind) { return kind == Kind::Mma ? 4 : kind == Kind::Fp64 ? 2 : 1; }

  void make_sums(Item& item) {
    for (int k = 0; k < static_cast<int>(Kind::Count); ++k)
      for (int i = 0; i < std::min(item.independent, item.counts[k]); ++i) {
        const int words = words_of(static_cast<Kind>(k));
        const Value sum = w_.code.vector(words);
        if (words == 1) w_.assign(sum, imm(0));
        for (int word = 0; words > 1 && word < words; word += 2)
          w_.code.emit("CS2R", {sum.at(word), special(SpecialRegister::Zero)});
        item.sums[k].push_back(sum);
        results_.push_back({sum, words});
      }
  }

  // ---- steps

  void write_body(std::vector<Item>& body, bool inside) {
    for (Item& item : body) write_step(item, inside);
  }

  void write_step(Item& item, bool inside) {
    Code& c = w_.code;
    switch (item.step) {
      case Step::Load:
        item.async ? copy(item) : load(item);
        break;
      case Step::Read: {
        const Value at = place(item);
        for (int i = 0; i < item.count; ++i)
          c.emit(item.matrix ? "LDSM.16.M88.4" : access_mnemonic("LDS", item.bytes),
                 {item.words[static_cast<std::size_t>(i)], shared(at, i * static_cast<int>(item.at.each))})
              .when(item.guard);
        latest_ = &item;
        break;
      }
      case Step::Write: {
        const Value at = place(item);
        for (int i = 0; i < item.count; ++i)
          c.emit(access_mnemonic("STS", item.bytes), {shared(at, i * static_cast<int>(item.at.each)), data(item, i)})
              .when(item.guard);
        break;
      }
      case Step::Store:
        for (int i = 0; i < item.count; ++i)
          w_.store_global(item.address, i * static_cast<int>(item.at.each), data(item, i), item.bytes, item.guard);
        break;
      case Step::Compute:
        compute(item);
        break;
      case Step::Barrier:
        w_.barrier();
        break;
      case Step::Commit:
        c.emit("LDGDEPBAR");
        break;
      case Step::Wait:
        c.emit("DEPBAR.LE", {scoreboard(0), imm(item.groups)});
        break;
      case Step::Loop:
        loop(item, inside);
        break;
    }
  }

  void load(Item& item) {
    const bool constant = !plan_.tensors[static_cast<std::size_t>(item.tensor)].stored;
    for (int i = 0; i < item.count; ++i)
      w_.load_global(item.words[static_cast<std::size_t>(i)], item.address, i * static_cast<int>(item.at.each),
                     item.bytes, constant, item.guard);
    latest_ = &item;
  }

  void copy(const Item& item) {
    const Value at = place(item);
    const char* mnemonic = item.bytes == 16 ? "LDGSTS.E.BYPASS.128" : item.bytes == 8 ? "LDGSTS.E.64" : "LDGSTS.E";
    for (int i = 0; i < item.count; ++i)
      w_.code
          .emit(mnemonic, {shared(at, i * static_cast<int>(item.shared_at.each)),
                           global(item.address, i * static_cast<int>(item.at.each), w_.descriptor())})
          .when(item.guard);
  }

  Value place(const Item& item) {
    return item.ring_offset.id < 0 ? item.shared_address : w_.add(item.shared_address, item.ring_offset);
  }

  /// The words that a step uses: of the loads that it names, or of the last one.
  std::vector<Value> words_of(const Item& item) {
    std::vector<Value> all;
    const auto take = [&](const Item& from) { all.insert(all.end(), from.words.begin(), from.words.end()); };
    for (const std::string& name : item.of) {
      const Item* from = find(plan_.body, name);
      if (from == nullptr)
        throw InputError(item.where, "there is no load or read called " + config::quoted(name),
                         "give one of them that name");
      take(*from);
    }
    if (item.of.empty() && latest_ != nullptr) take(*latest_);
    return all;
  }
  static const Item* find(const std::vector<Item>& body, const std::string& name) {
    for (const Item& item : body) {
      if (item.name == name && !item.words.empty()) return &item;
      if (const Item* inside = find(item.body, name)) return inside;
    }
    return nullptr;
  }
  int width_of(const Value& v) const { return w_.code.values()[static_cast<std::size_t>(v.id)].words; }

  /// What the i-th access of a step stores: sums where there are any and it names no load, else what was loaded.
  Value data(const Item& item, int i) {
    std::vector<Value> from;
    if (item.of.empty() && !results_.empty())
      for (const auto& [value, words] : results_) from.push_back(value);
    else
      from = words_of(item);
    const int words = item.bytes / 4;
    if (from.empty()) {
      const Value zero = w_.code.vector(words);
      for (int word = 0; word < words; ++word) w_.assign(zero.at(word), imm(0));
      return zero;
    }
    const Value first = from[static_cast<std::size_t>(i) % from.size()];
    if (width_of(first) == words) return first;
    std::vector<Value> singles;
    for (const Value& v : from)
      for (int word = 0; word < width_of(v); ++word) singles.push_back(v.at(word));
    if (words == 1) return singles[static_cast<std::size_t>(i) % singles.size()];
    const Value together = w_.code.vector(words);
    for (int word = 0; word < words; ++word)
      w_.assign(together.at(word), singles[static_cast<std::size_t>(i * words + word) % singles.size()]);
    return together;
  }

  void compute(const Item& item) {
    const std::vector<Value> words = words_of(item);
    std::vector<Value> singles;
    for (const Value& v : words)
      for (int word = 0; word < width_of(v); ++word) singles.push_back(v.at(word));
    if (singles.empty()) singles.push_back(kRZ);
    const auto single = [&](int i) { return singles[static_cast<std::size_t>(i) % singles.size()]; };
    int most = 0;
    for (const int count : item.counts) most = std::max(most, count);
    // Kinds in turn, as evenly as their counts allow.
    int done[static_cast<int>(Kind::Count)]{};
    for (int round = 0; round < most; ++round)
      for (int k = 0; k < static_cast<int>(Kind::Count); ++k) {
        const auto until = static_cast<int>(static_cast<std::int64_t>(round + 1) * item.counts[k] / most);
        for (; done[k] < until; ++done[k]) operate(item, static_cast<Kind>(k), done[k], words, single);
      }
  }

  template <class Single>
  void operate(const Item& item, Kind kind, int i, const std::vector<Value>& words, const Single& single) {
    Code& c = w_.code;
    const std::vector<Value>& sums = item.sums[static_cast<int>(kind)];
    const auto chains = static_cast<int>(sums.size());
    const Value sum = sums[static_cast<std::size_t>(i % chains)];
    switch (kind) {
      case Kind::Fma:
        c.emit("FFMA", {sum, single(i), single(i / chains + 1), sum});
        break;
      case Kind::Fp16:
        c.emit("HFMA2", {sum, single(i), single(i / chains + 1), sum});
        break;
      case Kind::Fp64:
        c.emit("DFMA", {sum, sum, sum, sum});
        break;
      case Kind::Mufu:
        c.emit("MUFU.EX2", {sum, i < chains ? single(i) : sum});
        break;
      case Kind::Int:
        c.emit("IADD3", {sum, sum, single(i), kRZ});
        break;
      case Kind::Imad:
        c.emit("IMAD", {sum, single(i), single(i / chains + 1), sum});
        break;
      case Kind::Mma: {
        std::vector<Value> fours;
        for (const Value& v : words)
          if (width_of(v) == 4) fours.push_back(v);
        if (fours.empty())
          throw InputError(item.where, "has no words for products of matrices",
                           "load or read 16 bytes a lane before it");
        const auto n = fours.size();
        // A from the first, B by halves from all, as tiles of a product would.
        const Value a = fours[static_cast<std::size_t>(i / 8) % n],
                    b = fours[(static_cast<std::size_t>(i / 2) + n / 2) % n];
        if (item.sparse) {
          c.emit(mnemonic(item), {sum, a, b, sum, single(i), imm(0)});
          break;
        }
        c.emit(mnemonic(item), {sum, a, b.at(i % 2 * 2), sum});
        break;
      }
      case Kind::Count:
        break;
    }
  }

  static std::string mnemonic(const Item& item) {
    if (item.sparse) return item.type == Type::Bf16 ? "HMMA.SP.16832.F32.BF16" : "HMMA.SP.16832.F32";
    const std::string shape = "168" + std::to_string(item.mma_k);
    switch (item.type) {
      case Type::Bf16:
        return "HMMA." + shape + ".F32.BF16";
      case Type::Tf32:
        return "HMMA." + shape + ".F32.TF32";
      case Type::S8:
        return "IMMA." + shape + ".S8.S8";
      default:
        return "HMMA." + shape + ".F32";
    }
  }

  void loop(Item& item, bool inside) {
    Code& c = w_.code;
    const Label again = c.new_label();
    const Value left = w_.number(static_cast<int>(item.times));
    c.place(again);
    write_body(item.body, true);
    step(item.body, item.name, 1);
    c.emit("IADD3", {left, left, imm(-1), kRZ});
    c.branch(again, w_.compare("NE", left, kRZ));
    if (inside) step(item.body, item.name, -item.times);  // it is entered again
  }

  /// Moves what a loop's index moves.
  void step(std::vector<Item>& body, const std::string& index, std::int64_t times) {
    for (Item& item : body) {
      step(item.body, index, times);
      const auto distance = [&](const Pattern& p) {
        const auto s = p.loops.find(index);
        return s == p.loops.end() ? 0 : s->second * times;
      };
      if (const std::int64_t by = distance(item.at); by != 0 && item.address.id >= 0)
        w_.advance(item.address, imm(static_cast<int>(by)));
      const Pattern& p = item.async ? item.shared_at : item.at;
      if (item.shared_address.id < 0) continue;
      const std::int64_t by = distance(p);
      if (by == 0) continue;
      if (p.ring == 0) {
        w_.code.emit("IADD3", {item.shared_address, item.shared_address, imm(static_cast<int>(by)), kRZ});
        continue;
      }
      const std::int64_t turned = (by % p.ring + p.ring) % p.ring;
      if (turned == 0) continue;
      const Value next = w_.add(item.ring_offset, imm(static_cast<int>(turned)));
      const Value over = w_.compare("GE", next, imm(static_cast<int>(p.ring))),
                  back = w_.add(next, imm(-static_cast<int>(p.ring)));
      w_.code.emit("SEL", {item.ring_offset, back, next, over});
    }
  }

  Plan& plan_;
  Writer w_;
  std::vector<int> pointers_;
  Value base_;
  const Item* latest_ = nullptr;
  std::vector<std::pair<Value, int>> results_;
};

}  // namespace

Draft draft_tiles(const std::string& id, const config::Node& node, const GpuModel& model) {
  Draft draft;
  Plan plan;
  node.read_map([&](config::Map& m) { Reader(plan, draft).read(m); });
  Launch launch;
  launch.kernel = id;
  launch.where = node.where();
  launch.grid = {static_cast<std::uint32_t>(plan.grid[0]), static_cast<std::uint32_t>(plan.grid[1]),
                 static_cast<std::uint32_t>(plan.grid[2])};
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  launch.dynamic_shared_bytes = static_cast<std::uint32_t>(plan.shared);
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    TensorOf& tensor = plan.tensors[t];
    const Fill fill = tensor.stored ? Fill(FillZero{}) : random_fill(Type::F32, static_cast<std::uint32_t>(t + 1));
    launch.arguments.push_back(pointer_to(draft.buffer(tensor.name, tensor.bytes, fill)));
  }
  draft.kernels.push_back(TilesKernel(plan, model, id).write(node.where()));
  draft.item.launches.push_back(std::move(launch));
  return draft;
}

}  // namespace forewarp::sketch

#include <algorithm>
#include <catch2/catch.hpp>

#include "advise/advice.h"
#include "advise/block_order.h"
#include "advise/fewer_bytes.h"
#include "advise/fusion.h"
#include "advise/launch_shapes.h"
#include "advise/sketch_advice.h"
#include "advise/sketch_changes.h"
#include "advise/whole_waves.h"
#include "advise/wide_accesses.h"
#include "base/error.h"

using namespace forewarp;
using namespace forewarp::advise;

namespace {

/// Blocks of a grid, each of which stores one word per lane: 4096 bytes to the right, 1 MiB down.
KernelTrace words(const Dim3& grid) {
  auto kernel = std::make_shared<Kernel>();
  Instruction store;
  store.opcode = store.native = Opcode::STG;
  store.memory = MemoryKind::Store;
  store.space = MemorySpace::Global;
  kernel->instructions = {store};
  KernelTrace trace;
  trace.kernel = kernel;
  trace.sm = 90;
  trace.launch.grid = grid;
  trace.launch.block = {32, 1, 1};
  trace.slopes = {BlockSlope{}, BlockSlope{4096, 1 << 20, 0, {}}};
  AccessPattern p;
  p.lanes = ~LaneMask{0};
  p.space = MemorySpace::Global;
  p.kind = MemoryKind::Store;
  p.bytes = 4;
  for (int lane = 0; lane < kWarpLanes; ++lane) p.offsets[static_cast<std::size_t>(lane)] = 4 * lane;
  trace.patterns = {p};
  BlockClass cls;
  cls.representative = {1, 2, 0};
  cls.population = grid.count();
  cls.paths = {{{{0, 1}}, 1}};
  cls.warps = {{0, {{(1 << 30) + 4096 + (2 << 20), 0, 1}}}};
  trace.classes = {cls};
  return trace;
}

std::uint64_t address(const KernelTrace& trace, std::uint64_t block) {
  const BlockClass& cls = trace.classes[trace.class_of(block)];
  const Access& access = cls.warps[0].accesses[0];
  const BlockDistance away = trace.distance(cls.representative, trace.block_index(block));
  return access.base + static_cast<std::uint64_t>(trace.slopes[access.slope].over(away));
}

std::uint64_t address_of(std::uint64_t x, std::uint64_t y) { return (1 << 30) + 4096 * x + (y << 20); }

Outcome outcome(double cycles, double half_pct) {
  Outcome o;
  o.cycles = cycles;
  o.low = cycles * (1 - half_pct / 100);
  o.high = cycles * (1 + half_pct / 100);
  return o;
}

const KeyChange* find(const std::vector<KeyChange>& changes, const std::string& text) {
  const auto at = std::find_if(changes.begin(), changes.end(), [&](const KeyChange& c) { return c.text() == text; });
  return at == changes.end() ? nullptr : &*at;
}

config::Node sketch_of(const std::string& text) {
  return config::parse("s: " + text, "a.yaml").entries().front().value;
}

}  // namespace

TEST_CASE("a gain's interval comes from both predictions", "[advise]") {
  const Gain exact = gain_between(outcome(1000, 0), 800, 800, 800);
  CHECK(exact.pct == Approx(20));
  CHECK(exact.low_pct == Approx(20));
  CHECK(exact.high_pct == Approx(20));
  const Gain wide = gain_between(outcome(1000, 3), 800, 800 * 0.96, 800 * 1.04);
  CHECK(wide.low_pct == Approx(20 - 80 * 0.05));
  CHECK(wide.high_pct == Approx(20 + 80 * 0.05));
}

TEST_CASE("stripes hold every block once, in their order", "[advise]") {
  const KernelTrace trace = words({6, 8, 1});
  const KernelTrace rows = *reordered(trace, {true, 4});
  REQUIRE(rows.launch.grid.count() == 48);
  std::uint64_t block = 0;
  for (std::uint64_t stripe = 0; stripe < 2; ++stripe)
    for (std::uint64_t x = 0; x < 6; ++x)
      for (std::uint64_t y = 0; y < 4; ++y) CHECK(address(rows, block++) == address_of(x, 4 * stripe + y));
  const KernelTrace columns = *reordered(trace, {false, 3});
  block = 0;
  for (std::uint64_t stripe = 0; stripe < 2; ++stripe)
    for (std::uint64_t y = 0; y < 8; ++y)
      for (std::uint64_t x = 0; x < 3; ++x) CHECK(address(columns, block++) == address_of(3 * stripe + x, y));
}

TEST_CASE("quotients and conditions of a class turn with the blocks", "[advise]") {
  KernelTrace trace = words({4, 6, 1});
  trace.quotients = {{BlockSlope{0, 1, 0, {}}, 0, 2}};  // y / 2
  trace.slopes[1].quotients[0] = 1 << 28;
  BlockClass upper = trace.classes[0];
  upper.representative = {0, 0, 0};
  upper.warps[0].accesses[0].base = 1 << 30;
  upper.conditions = {{BlockSlope{0, 1, 0, {}}, 0, 0, 1}};  // y = 0
  trace.classes.insert(trace.classes.begin(), upper);
  const KernelTrace turned = *reordered(trace, {true, 6});  // column by column
  for (std::uint64_t x = 0; x < 4; ++x)
    for (std::uint64_t y = 0; y < 6; ++y) {
      CHECK(turned.class_of(x * 6 + y) == trace.class_of(y * 4 + x));
      CHECK(address(turned, x * 6 + y) == address(trace, y * 4 + x));
    }
}

TEST_CASE("orders divide the grid and differ from its own", "[advise]") {
  CHECK(block_orders(words({64, 1, 1})).empty());
  const std::vector<BlockOrder> orders = block_orders(words({7, 8, 1}));
  CHECK(!orders.empty());
  for (const BlockOrder& o : orders) {
    CHECK((o.rows ? 8 : 7) % o.width == 0);
    CHECK(address(*reordered(words({7, 8, 1}), o), 1) != address_of(1, 0));
  }
  KernelTrace sampled = words({7, 8, 1});
  sampled.launch.inferred_blocks = 1;
  CHECK(block_orders(sampled).empty());
}

TEST_CASE("whole waves keep the blocks that come first", "[advise]") {
  const KernelTrace trace = words({265, 1, 1});
  const auto whole = whole_waves(trace, 132);
  REQUIRE(whole != nullptr);
  CHECK(whole->launch.grid.x == 264);
  CHECK(whole->classes[0].population == 264);
  CHECK(whole_waves(trace, 265) == nullptr);               // one wave, full
  CHECK(whole_waves(trace, 300) == nullptr);               // less than one
  CHECK(whole_waves(words({132, 9, 1}), 132) == nullptr);  // nine, full
  CHECK(whole_waves(words({100, 9, 1}), 132) == nullptr);  // six, or seven rows: too far from it
  const auto rows = whole_waves(words({66, 9, 1}), 132);
  REQUIRE(rows != nullptr);
  CHECK(rows->launch.grid.y == 8);
}

TEST_CASE("accesses to a buffer that stays on chip are left out", "[advise]") {
  const KernelTrace trace = words({4, 1, 1});
  const Range all{1 << 30, (1ull << 30) + (1 << 24)}, elsewhere{0, 1 << 20};
  CHECK(bytes_in_range(trace, all, Direction::Stores) == 4 * 128);
  CHECK(bytes_in_range(trace, all, Direction::Loads) == 0);
  CHECK(bytes_in_range(trace, elsewhere, Direction::Stores) == 0);
  CHECK(bytes_in_range(*without_range(trace, all, Direction::Stores), all, Direction::Stores) == 0);
  CHECK(bytes_in_range(*without_range(trace, all, Direction::Loads), all, Direction::Stores) == 4 * 128);
  CHECK(without_range(trace, all, Direction::Stores)->classes[0].warps[0].accesses.size() == 1);
}

TEST_CASE("launches hand over the buffers that one writes and a later one reads", "[advise]") {
  Case item;
  for (const char* name : {"a", "b"}) {
    Buffer buffer;
    buffer.name = name;
    buffer.bytes = 1 << 24;
    item.buffers.push_back(buffer);
  }
  const std::vector<std::uint64_t> addresses = place_buffers(item);
  const auto at = [&](std::size_t buffer, MemoryKind kind) {
    auto trace = std::make_shared<KernelTrace>(words({4, 1, 1}));
    trace->patterns[0].kind = kind;
    trace->classes[0].warps[0].accesses[0].base = addresses[buffer] + 4096;
    return std::shared_ptr<const KernelTrace>(trace);
  };
  const std::vector<std::shared_ptr<const KernelTrace>> chain = {at(0, MemoryKind::Store), at(1, MemoryKind::Store),
                                                                 at(0, MemoryKind::Load)};
  const std::vector<Fusion> found = fusions(item, chain);
  REQUIRE(found.size() == 1);  // neighbours share nothing
  CHECK(found[0].first == 0);
  CHECK(found[0].last == 2);
  REQUIRE(found[0].handed_over.size() == 1);
  CHECK(found[0].handed_over[0].read == 4 * 128);
  const Range& range = found[0].handed_over[0].range;
  CHECK(bytes_in_range(*fused(chain[0], found[0]), range, Direction::Stores) == 0);
  CHECK(bytes_in_range(*fused(chain[2], found[0]), range, Direction::Loads) == 0);
  CHECK(fused(chain[1], found[0]) == chain[1]);
}

TEST_CASE("values of half the size move half the bytes", "[advise]") {
  const KernelTrace trace = words({4, 1, 1});
  const Range all{1 << 30, (1ull << 30) + (1 << 24)};
  const auto half = half_the_bytes(trace);
  REQUIRE(half != nullptr);
  CHECK(bytes_in_range(*half, all, Direction::Stores) == 4 * 64);
  CHECK(half->patterns[0].offsets[31] == 62);
  KernelTrace bytes = trace;
  bytes.patterns[0].bytes = 1;
  CHECK(half_the_bytes(bytes) == nullptr);
}

TEST_CASE("four words of a straight stretch are one access of 16 bytes", "[advise]") {
  KernelTrace trace = words({4, 1, 1});
  auto kernel = std::make_shared<Kernel>(*trace.kernel);
  kernel->instructions[0].access_bytes = 4;
  kernel->instructions.resize(6, kernel->instructions[0]);
  trace.kernel = kernel;
  BlockClass& cls = trace.classes[0];
  cls.paths = {{{{0, 5}, {5, 1}}, 6}};
  const Access access = cls.warps[0].accesses[0];
  for (std::uint64_t i = 1; i < 6; ++i) cls.warps[0].accesses.push_back({access.base + 128 * i, 0, 1});
  const auto wide = widened(trace);
  REQUIRE(wide != nullptr);
  const std::vector<Access>& left = wide->classes[0].warps[0].accesses;
  REQUIRE(left.size() == 3);  // of four; the fifth; what another way leads to
  CHECK(wide->patterns[left[0].pattern].bytes == 16);
  CHECK(wide->patterns[left[0].pattern].offsets[31] == 31 * 16);
  CHECK(left[1] == Access{access.base + 128 * 4, 0, 1});
  CHECK(wide->kernel->instructions[0].opcode == Opcode::STG);
  CHECK(wide->kernel->instructions[3].opcode == Opcode::NOP);
  cls.paths = {{{{0, 3}, {3, 3}}, 6}};
  CHECK(widened(trace) == nullptr);
}

TEST_CASE("shapes keep the threads of a launch, or fill waves", "[advise]") {
  Launch l;
  l.grid = {1000, 1, 1};
  l.block = {256, 1, 1};
  bool waves = false;
  for (const Shape& s : other_shapes(l, 264)) {
    if (s.other_blocks)
      CHECK(s.grid.count() * s.block.count() == 256000);
    else
      CHECK(s.grid.count() % 264 == 0);
    waves = waves || !s.other_blocks;
  }
  CHECK(waves);
  l.block = {32, 8, 1};
  l.grid = {4, 16, 1};
  for (const Shape& s : other_shapes(l, 264)) CHECK(s.grid.count() * s.block.count() == 4 * 16 * 256);
  l.cluster = {2, 1, 1};
  CHECK(other_shapes(l, 264).empty());
}

TEST_CASE("keys of a sketch get other values, one at a time", "[advise]") {
  const config::Node sketch =
      sketch_of("{product: {type: f16, shape: [64, 64, 64], tile: [128, 64, 32], stages: 3, kv_tile: 64, heads: 8}}");
  const std::vector<KeyChange> changes = key_changes("s", sketch);
  for (const char* text :
       {"stages: 4 instead of 3", "stages: 2 instead of 3", "tile: [64, 64, 32] instead of [128, 64, 32]",
        "tile: [64, 128, 32] instead of [128, 64, 32]", "tile: [128, 64, 64] instead of [128, 64, 32]",
        "kv_tile: 128 instead of 64", "vector: 4, which the sketch leaves open"})
    CHECK(find(changes, text) != nullptr);
  for (const KeyChange& c : changes) {
    CHECK(c.key != "heads");
    CHECK(c.key != "shape");
    CHECK(c.from != c.to);
  }
  const KeyChange* stages = find(changes, "stages: 4 instead of 3");
  REQUIRE(stages != nullptr);
  CHECK(stages->where.starts_with("a.yaml:1:"));
  const config::Node changed = with_changes("s", sketch, {stages, find(changes, "kv_tile: 128 instead of 64")});
  const config::Node family = changed.entries().front().value.entries().front().value;
  family.read_map([](config::Map& m) {
    CHECK(m.at("stages").integer() == 4);
    CHECK(m.at("kv_tile").integer() == 128);
    CHECK(m.at("heads").integer() == 8);
    for (const char* key : {"type", "shape", "tile"}) m.at(key);
  });
}

TEST_CASE("types, layouts and pitches of tensors change where they stand", "[advise]") {
  const config::Node sketch = sketch_of(
      "{elementwise: {shape: [8, 8], tensors: {x: {type: f32, layout: columns, pitch: 33}, y: f32}, compute: [\"y = "
      "x\"]}}");
  const std::vector<KeyChange> changes = key_changes("s", sketch);
  CHECK(find(changes, "tensors.x.layout: rows instead of columns") != nullptr);
  CHECK(find(changes, "tensors.x.pitch: 64 instead of 33") != nullptr);
  const KeyChange* narrow = find(changes, "type: f16 instead of f32");
  REQUIRE(narrow != nullptr);
  const config::Node tensors =
      with_changes("s", sketch, {narrow}).entries()[0].value.entries()[0].value.entries()[1].value;
  CHECK(tensors.entries()[0].value.entries()[0].value.string() == "f16");
  CHECK(tensors.entries()[1].value.string() == "f16");
}

TEST_CASE("what a family refuses is counted, what changes nothing is not", "[advise]") {
  const config::Node sketch = sketch_of("{family: {stages: 3, vector: 2}}");
  // Cycles by key: stages of 4 and vectors of 4 save, both together most; everything else is refused or the same.
  const PredictSketch predict = [](const config::Node& root, bool) {
    double cycles = 0;
    root.entries()[0].value.entries()[0].value.read_map([&](config::Map& m) {
      const std::int64_t stages = m.at("stages").integer(2, 4), vector = m.at("vector").integer(2, 4);
      cycles = 10000.0 - 1000.0 * static_cast<double>(stages - 3) - 500.0 * static_cast<double>(vector - 2);
    });
    Prediction p;
    p.gpu = "g";
    p.grid = p.block = {1, 1, 1};
    p.metrics.set("gpc__cycles_elapsed.max", cycles);
    p.metrics.set("gpu__time_duration.sum", cycles / 2);
    p.coverage.cycles_low = p.coverage.cycles_high = cycles;
    return std::vector<Prediction>{p};
  };
  const ForEach each = [](std::size_t n, const std::function<void(std::size_t)>& work) {
    for (std::size_t i = 0; i < n; ++i) work(i);
  };
  const Advice a = advise_sketch("s", sketch, predict, each, 5);
  REQUIRE(a.suggestions.size() == 3);
  CHECK(a.suggestions[0].change == "stages and vector");
  CHECK(a.suggestions[0].cycles == 8000);
  CHECK(a.suggestions[0].gain.pct == Approx(20));
  CHECK(a.suggestions[2].change == (a.suggestions[1].change == "vector" ? "stages" : "vector"));
  CHECK(a.refused > 0);
}

#include "emulation/run/launch_order.h"

#include <catch2/catch.hpp>

#include "program/program.h"

using namespace forewarp;
using emulation::LaunchOrder;

namespace {

constexpr std::uint64_t kApart = 4096;

/// Launches over buffers 0, 1, 2, ...; each touches some of them.
struct Made {
  Case item;
  std::vector<std::uint64_t> addresses;

  Made(int buffers, const std::vector<std::vector<int>>& touched) {
    for (int b = 0; b < buffers; ++b) {
      Buffer buffer;
      buffer.bytes = 1024;
      item.buffers.push_back(buffer);
      addresses.push_back((static_cast<std::uint64_t>(b) + 1) * kApart);
    }
    for (const std::vector<int>& of : touched) {
      Launch& launch = item.launches.emplace_back();
      for (const int b : of) launch.arguments.push_back(Argument::pointer(b));
    }
  }

  LaunchOrder order(std::uint64_t module_bytes = 0) const { return {item, addresses, module_bytes}; }
};

/// A trace whose only store goes to a buffer, or elsewhere.
KernelTrace writing(int buffer, std::uint64_t address = 0) {
  KernelTrace trace;
  AccessPattern load, store;
  load.kind = MemoryKind::Load;
  load.space = store.space = MemorySpace::Global;
  load.lanes = store.lanes = 1;
  load.bytes = store.bytes = 4;
  store.kind = MemoryKind::Store;
  trace.patterns = {load, store};
  BlockClass& cls = trace.classes.emplace_back();
  WarpTrace& warp = cls.warps.emplace_back();
  warp.accesses.push_back({kApart, 0, 0});
  const std::uint64_t end_of_buffer = (static_cast<std::uint64_t>(buffer) + 1) * kApart + 1020;
  warp.accesses.push_back({address != 0 ? address : end_of_buffer, 1, 0});
  return trace;
}

using Launches = std::vector<int>;

}  // namespace

TEST_CASE("launches that nobody reads from are not run") {
  const Made made(3, {{0, 1}, {0, 2}, {1, 2}});
  LaunchOrder unknown = made.order();
  CHECK(unknown.run_before(1) == Launches{0});  // as far as one can know, it writes what the second reads
  LaunchOrder order = made.order();
  order.traced(0, writing(1));
  CHECK(order.run_before(1).empty());
  order.traced(1, writing(2));
  CHECK(order.run_before(2) == Launches{0, 1});
  CHECK(order.run_before(2).empty());
}

TEST_CASE("what a needed launch reads is needed as well") {
  const Made made(4, {{0, 1}, {1, 2}, {2, 3}});
  LaunchOrder order = made.order();
  order.traced(0, writing(1));
  order.traced(1, writing(2));
  CHECK(order.run_before(2) == Launches{0, 1});
}

TEST_CASE("no launch is run after one that overwrites what it reads") {
  // The first reads buffer 0 and writes 1, the second overwrites 0, the third reads 0, the fourth 1.
  const Made made(3, {{0, 1}, {0}, {0, 2}, {1}});
  LaunchOrder order = made.order();
  order.traced(0, writing(1));
  order.traced(1, writing(0));
  order.traced(2, writing(2));
  CHECK(order.run_before(2) == Launches{0, 1});
  CHECK(order.run_before(3).empty());
}

TEST_CASE("a number that is an address counts as a pointer, and pointers in files as pointers to everything") {
  Made made(2, {{0}, {1}});
  made.item.launches[1].arguments[0] = Argument::scalar(ArgumentKind::U64, kApart + 8);
  CHECK(made.order().run_before(1) == Launches{0});
  // Within a struct, too.
  Argument& packed = made.item.launches[1].arguments[0];
  packed.kind = ArgumentKind::Struct;
  packed.bytes.insert(packed.bytes.begin(), 8, std::uint8_t{0});
  CHECK(made.order().run_before(1) == Launches{0});
  Made filled(2, {{0}, {1}});
  filled.item.buffers[1].fill = FillFile{"x"};
  CHECK(filled.order().run_before(1) == Launches{0});
  // Who takes a buffer of pointers takes what they point to, and what that points to.
  Made batched(4, {{0}, {1}, {3}});
  CHECK(batched.order().run_before(1).empty());
  batched.item.buffers[1].fill = FillPointers{{{2, 0}}};
  CHECK(batched.order().run_before(1).empty());
  batched.item.buffers[2].fill = FillPointers{{{0, 512}}};
  CHECK(batched.order().run_before(1) == Launches{0});
  CHECK(batched.order().run_before(2).empty());
}

TEST_CASE("the program's variables join launches once one has written them") {
  const Made made(3, {{0}, {1}, {2}});
  LaunchOrder order = made.order(64);
  CHECK(order.run_before(1) == Launches{0});  // until it has been traced, it may write them
  order = made.order(64);
  order.traced(0, writing(0));
  CHECK(order.run_before(1).empty());
  order.traced(1, writing(0, kModuleDataAddress));
  CHECK(order.run_before(2) == Launches{0, 1});
}

// Events and the cursor: what each kind of instruction takes from a trace, and that a walk takes all of it.
#include "trace/events.h"

#include <catch2/catch.hpp>

#include "trace/test_support.h"

using namespace forewarp;

namespace {

Instruction instruction(Opcode opcode, MemorySpace space = MemorySpace::None, MemoryKind kind = MemoryKind::None) {
  Instruction in;
  in.opcode = opcode;
  in.space = space;
  in.memory = kind;
  return in;
}

/// 0 FADD, 1 LDGSTS, 2 LDGDEPBAR, 3 LDG, 4 DEPBAR, 5 BAR, 6 EXIT.
Kernel staged_copy() {
  Kernel kernel;
  kernel.instructions = {
      instruction(Opcode::FADD),      instruction(Opcode::LDGSTS, MemorySpace::Global, MemoryKind::AsyncCopy),
      instruction(Opcode::LDGDEPBAR), instruction(Opcode::LDG, MemorySpace::Global, MemoryKind::Load),
      instruction(Opcode::DEPBAR),    instruction(Opcode::BAR),
      instruction(Opcode::EXIT)};
  return kernel;
}

struct Seen {
  std::uint32_t pc;
  EventKind kind;
  std::vector<std::uint64_t> bases;
  std::uint64_t at;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> walk(const WarpCursor& cursor, const EventTable& events) {
  std::vector<Seen> seen;
  cursor.for_each_record(
      events, [&](std::uint32_t pc, const TraceEvent& event, std::span<const Access> records, std::uint64_t at) {
        seen.push_back({pc, event.kind, {}, at});
        for (const Access& access : records) seen.back().bases.push_back(access.base);
        return true;
      });
  return seen;
}

}  // namespace

TEST_CASE("instructions are events of a kind and take so many records") {
  const Kernel kernel = staged_copy();
  const EventTable events(kernel);
  const auto check = [&](std::uint32_t pc, EventKind kind, int records) {
    CHECK(events[pc].kind == kind);
    CHECK(events[pc].records == records);
  };
  check(0, EventKind::Issue, 0);
  check(1, EventKind::Transfer, 2);
  check(2, EventKind::Commit, 0);
  check(3, EventKind::Access, 1);
  check(4, EventKind::Wait, 0);
  check(5, EventKind::Arrive, 1);
  check(6, EventKind::Issue, 0);
  CHECK(events.all_records() == 4);
  CHECK(events.records(Run{2, 5}) == 2);
  CHECK(event_of(instruction(Opcode::LDC, MemorySpace::Constant, MemoryKind::Load)).records == 0);
  CHECK(event_of(instruction(Opcode::LD, MemorySpace::Generic, MemoryKind::Load)).records == 1);
  CHECK(event_of(instruction(Opcode::ATOMS, MemorySpace::Shared, MemoryKind::Atomic)).records == 1);
}

TEST_CASE("a cursor goes through a path run by run and takes each record once") {
  const Kernel kernel = staged_copy();
  const EventTable events(kernel);
  const WarpPath path{{{0, 3}, {1, 4}, {6, 1}}, 8};
  WarpTrace warp;
  for (std::uint64_t i = 0; i < events.records(path.runs); ++i) warp.accesses.push_back({i, 0, 0});
  REQUIRE(warp.accesses.size() == 5);
  const std::vector<Seen> all{
      {1, EventKind::Transfer, {0, 1}, 1}, {1, EventKind::Transfer, {2, 3}, 3}, {3, EventKind::Access, {4}, 5}};
  const WarpCursor start(path, warp);
  CHECK(walk(start, events) == all);

  std::vector<std::uint32_t> pcs;
  WarpCursor cursor = start;
  for (std::uint64_t left = path.instructions; !cursor.done(); --left) {
    CHECK(cursor.ahead() == left);
    pcs.push_back(cursor.pc());
    // What a walk from here sees is the rest of what one from the start sees.
    std::vector<Seen> rest;
    for (const Seen& one : all)
      if (one.at >= path.instructions - left) rest.push_back({one.pc, one.kind, one.bases, one.at + left - 8});
    CHECK(walk(cursor, events) == rest);
    WarpCursor leapt = start;
    leapt.advance(path.instructions - left, events);
    CHECK(leapt.pc() == cursor.pc());
    CHECK(leapt.records() == cursor.records());
    CHECK(leapt.ahead() == left);
    cursor.step(events[cursor.pc()].records);
  }
  CHECK(pcs == std::vector<std::uint32_t>{0, 1, 2, 1, 2, 3, 4, 6});
  CHECK(cursor.pc() == 6);
  CHECK(cursor.ahead() == 0);
  CHECK(cursor.records() == warp.accesses.data() + 5);
  CHECK(walk(cursor, events).empty());
}

TEST_CASE("a walk ends where its visitor says, and a cursor leaps over instructions") {
  const Kernel kernel = staged_copy();
  const EventTable events(kernel);
  const WarpPath path{{{1, 1}, {1, 1}, {1, 1}, {3, 1}}, 4};
  WarpTrace warp;
  for (std::uint64_t i = 0; i < 7; ++i) warp.accesses.push_back({i, 0, 0});
  WarpCursor cursor(path, warp);
  int visits = 0;
  cursor.for_each_record(events, [&](auto...) { return ++visits < 2; });
  CHECK(visits == 2);
  cursor.advance(2, events);
  CHECK(walk(cursor, events) == std::vector<Seen>{{1, EventKind::Transfer, {4, 5}, 0}, {3, EventKind::Access, {6}, 1}});
}

TEST_CASE("what a record asks of memory") {
  const auto effect = [](MemorySpace space, MemoryKind kind) {
    return effect_of(testing::pattern_of(space, kind, 4, [](int lane) { return 4 * lane; }));
  };
  const AccessEffect load = effect(MemorySpace::Global, MemoryKind::Load);
  CHECK(load.to_lines());
  CHECK(load.request == RequestKind::Read);
  CHECK(load.returns_data());
  CHECK(effect(MemorySpace::Local, MemoryKind::Store).request == RequestKind::Write);
  CHECK_FALSE(effect(MemorySpace::Global, MemoryKind::Store).returns_data());
  CHECK(effect(MemorySpace::Global, MemoryKind::Atomic).returns_data());
  CHECK(effect(MemorySpace::Global, MemoryKind::Atomic).changes_at_l2());
  CHECK_FALSE(effect(MemorySpace::Global, MemoryKind::Reduction).returns_data());
  CHECK(effect(MemorySpace::Shared, MemoryKind::Load).target == AccessTarget::Banks);
  // The two sides of an asynchronous copy.
  CHECK(effect(MemorySpace::Global, MemoryKind::AsyncCopy).to_lines());
  CHECK(effect(MemorySpace::Global, MemoryKind::AsyncCopy).request == RequestKind::Read);
  CHECK(effect(MemorySpace::Shared, MemoryKind::AsyncCopy).target == AccessTarget::Banks);
  CHECK(effect(MemorySpace::Shared, MemoryKind::AsyncCopy).request == RequestKind::Write);
}

#include "timing/engine/event_queue.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

using namespace forewarp;

namespace {

/// The events of the next cycle up to `limit`, by subject.
std::vector<std::uint32_t> take(EventQueue& q, Cycle limit, Cycle& at) {
  std::vector<Event> events;
  std::vector<std::uint32_t> subjects;
  if (q.take(limit, events, at))
    for (const Event& e : events) subjects.push_back(e.subject);
  return subjects;
}

}  // namespace

TEST_CASE("events come out by cycle and, within one, in the order they went in") {
  EventQueue q;
  CHECK(q.next() == kNever);
  q.push(7, {1, 0, 0, 0});
  q.push(3, {2, 0, 0, 0});
  q.push(7, {3, 0, 0, 0});
  q.push(100000, {4, 0, 0, 0});
  CHECK(q.next() == 3);
  Cycle at = 0;
  using Subjects = std::vector<std::uint32_t>;
  CHECK(take(q, 2, at).empty());
  CHECK(take(q, 7, at) == Subjects{2});
  CHECK(at == 3);
  CHECK(take(q, 7, at) == Subjects{1, 3});
  CHECK(at == 7);
  q.push(7, {5, 0, 0, 0});  // for the cycle that is being handled
  CHECK(take(q, 7, at) == Subjects{5});
  CHECK(at == 7);
  CHECK(q.next() == 100000);
  CHECK(take(q, kNever - 1, at) == Subjects{4});
  CHECK(at == 100000);
  CHECK(q.size() == 0);
}

TEST_CASE("events far ahead keep their place before later ones of the same cycle") {
  EventQueue q;
  q.push(5000, {1, 0, 0, 0});
  q.push(5000, {2, 0, 0, 0});
  q.advance(1000);  // now within the ring
  q.push(5000, {3, 0, 0, 0});
  Cycle at = 0;
  CHECK(take(q, 6000, at) == std::vector<std::uint32_t>{1, 2, 3});
  CHECK(at == 5000);
}

TEST_CASE("the queue agrees with a sorted multimap over random traffic") {
  EventQueue q;
  std::multimap<Cycle, std::uint32_t> reference;  // equal keys keep insertion order
  std::mt19937 random(1);
  Cycle now = 0;
  std::uint32_t id = 0;
  for (int step = 0; step < 50000; ++step) {
    const int pushes = static_cast<int>(random() % 3);
    for (int i = 0; i < pushes; ++i, ++id) {
      const Cycle at = now + (random() % 16 == 0 ? random() % 20000 : random() % 300);
      q.push(at, {id, 0, 0, 0});
      reference.emplace(at, id);
    }
    REQUIRE(q.next() == (reference.empty() ? kNever : reference.begin()->first));
    now += random() % 40;
    Cycle at = 0;
    while (!reference.empty() && reference.begin()->first <= now) {
      for (const std::uint32_t subject : take(q, now, at)) {
        REQUIRE(at == reference.begin()->first);
        REQUIRE(subject == reference.begin()->second);
        reference.erase(reference.begin());
      }
    }
    REQUIRE(take(q, now, at).empty());
    q.advance(now);
  }
}

TEST_CASE("many events of one cycle keep their order") {
  EventQueue q;
  std::vector<std::uint32_t> expected;
  Cycle at = 0;
  for (int round = 0; round < 3; ++round) {
    expected.clear();
    for (std::uint32_t i = 0; i < 100; ++i) {
      q.push(q.now() + 9, {i, 0, 0, 0});
      q.push(q.now() + 5, {1000 + i, 0, 0, 0});
      expected.push_back(i);
    }
    CHECK(take(q, kNever - 1, at).size() == 100);
    CHECK(take(q, kNever - 1, at) == expected);
    CHECK(q.size() == 0);
  }
}

TEST_CASE("what is due soon can be seen before it is taken") {
  EventQueue q;
  q.push(3, {1, 0, 0, 0});
  q.push(7, {3, 0, 0, 0});
  q.push(3, {2, 0, 0, 0});
  q.push(EventQueue::kBuckets + 5, {4, 0, 0, 0});
  const auto before = [&](Cycle limit) {
    std::vector<std::uint32_t> seen;
    q.for_each_before(limit, [&](const Event& e) { seen.push_back(e.subject); });
    return seen;
  };
  CHECK(before(3).empty());
  CHECK(before(4) == std::vector<std::uint32_t>{1, 2});
  CHECK(before(8) == std::vector<std::uint32_t>{1, 2, 3});
  CHECK(before(kNever) == std::vector<std::uint32_t>{1, 2, 3});
  CHECK(q.size() == 4);
}

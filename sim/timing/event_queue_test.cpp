#include "timing/event_queue.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

using namespace forewarp;

TEST_CASE("events come out by cycle and, within one, in the order they went in") {
  EventQueue q;
  CHECK(q.next() == kNever);
  q.push(7, {1, 0, 0, 0});
  q.push(3, {2, 0, 0, 0});
  q.push(7, {3, 0, 0, 0});
  q.push(100000, {4, 0, 0, 0});
  CHECK(q.next() == 3);
  Event e;
  Cycle at = 0;
  std::vector<std::uint32_t> order;
  CHECK_FALSE(q.pop(2, e, at));
  while (q.pop(7, e, at)) {
    order.push_back(e.subject);
    if (e.subject == 1) q.push(7, {5, 0, 0, 0});  // joins the cycle that is being handled
  }
  CHECK(order == std::vector<std::uint32_t>{2, 1, 3, 5});
  CHECK(q.next() == 100000);
  REQUIRE(q.pop(kNever - 1, e, at));
  CHECK(at == 100000);
  CHECK(q.size() == 0);
}

TEST_CASE("events far ahead keep their place before later ones of the same cycle") {
  EventQueue q;
  q.push(5000, {1, 0, 0, 0});
  q.push(5000, {2, 0, 0, 0});
  q.advance(1000);  // now within the ring
  q.push(5000, {3, 0, 0, 0});
  Event e;
  Cycle at = 0;
  for (std::uint32_t expected = 1; expected <= 3; ++expected) {
    REQUIRE(q.pop(6000, e, at));
    CHECK(e.subject == expected);
    CHECK(at == 5000);
  }
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
    Event e;
    Cycle at = 0;
    while (!reference.empty() && reference.begin()->first <= now) {
      REQUIRE(q.pop(now, e, at));
      REQUIRE(at == reference.begin()->first);
      REQUIRE(e.subject == reference.begin()->second);
      reference.erase(reference.begin());
    }
    REQUIRE_FALSE(q.pop(now, e, at));
    q.advance(now);
  }
}

#include "timing/sm/group_products.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {

constexpr MatrixSlabs kEight{.count = 8, .cycles = 4, .port_cycles = 3};

void read_both_until(GroupProducts& products, Cycle until) {
  for (std::size_t bank = 0; bank < GroupProducts::kBanks; ++bank) products.read_until(bank, until);
}

}  // namespace

TEST_CASE("products of warpgroups follow one another, slab after slab") {
  GroupProducts products;
  CHECK_FALSE(products.busy());
  const auto first = products.push(kEight, 100);
  const auto second = products.push(kEight, 101);
  CHECK(products.busy());
  CHECK(products.done(first) == 132);
  CHECK(products.done(second) == 164);
  products.advance(140);
  CHECK(products.done(first) == 132);
  CHECK(products.done(second) == 164);
  products.advance(1000);
  CHECK_FALSE(products.busy());
  CHECK(products.done(second) == 164);
  // After a pause the next begins when it is issued.
  CHECK(products.done(products.push(kEight, 1000)) == 1032);
}

TEST_CASE("a burst begins in a cycle in which nothing reads registers, and holds the ports") {
  GroupProducts products;
  const auto number = products.push(kEight, 10);
  products.advance(11);
  CHECK(products.burst_until(GroupProducts::kAllBanks) == 13);
  // Read by an instruction in cycles 13 to 15: the slab that could begin at 14 does at 16.
  read_both_until(products, 16);
  products.advance(16);
  CHECK(products.burst_until(GroupProducts::kAllBanks) == 13);
  CHECK(products.done(number) == 44);
  products.advance(17);
  CHECK(products.burst_until(GroupProducts::kAllBanks) == 19);
  // As long as each cycle has its instruction, none begins.
  for (Cycle now = 20; now < 60; ++now) {
    read_both_until(products, now + 1);
    products.advance(now + 1);
  }
  CHECK(products.done(number) == 60 + 6 * 4);
  products.advance(200);
  CHECK(products.done(number) == 84);
}

TEST_CASE("each bank has its burst, which waits for that bank alone") {
  GroupProducts products;
  const auto number = products.push(kEight, 10);
  products.read_until(0, 11);  // in cycle 10
  products.advance(11);
  CHECK(products.burst_until(1) == 0);
  CHECK(products.burst_until(2) == 13);
  CHECK(products.done(number) == 11 + 8 * 4);
  products.advance(12);
  CHECK(products.burst_until(1) == 14);
  CHECK(products.burst_until(2) == 13);
  // The next slab begins when four cycles have passed since both had begun, with both banks again.
  products.advance(16);
  CHECK(products.burst_until(1) == 18);
  CHECK(products.burst_until(2) == 18);
  // A bank that is read in every cycle holds up all.
  for (Cycle now = 16; now < 60; ++now) {
    products.read_until(1, now + 1);
    products.advance(now + 1);
  }
  CHECK(products.burst_until(1) == 22);
  CHECK(products.burst_until(2) == 18);
  CHECK(products.done(number) == 60 + 6 * 4);
  products.advance(200);
  CHECK(products.done(number) == 84);
}

TEST_CASE("many slabs at once are as many one by one") {
  for (const int fetch : {0, 3}) {
    MatrixSlabs shape = kEight;
    shape.fetch_cycles = static_cast<std::uint8_t>(fetch);
    shape.lead_cycles = 5;
    GroupProducts at_once, one_by_one;
    GroupProducts::Number last = 0;
    for (int i = 0; i < 200; ++i) {  // more than it remembers, or keeps in its queue
      last = at_once.push(shape, 7);
      CHECK(one_by_one.push(shape, 7) == last);
    }
    for (Cycle now = 7; now < 1000; ++now) one_by_one.advance(now);
    at_once.advance(999);
    CHECK(at_once.burst_until(GroupProducts::kAllBanks) == one_by_one.burst_until(GroupProducts::kAllBanks));
    CHECK(at_once.done(last) == 7 + 200u * (5 + 32 + static_cast<Cycle>(fetch)));
    CHECK(one_by_one.done(last) == at_once.done(last));
    at_once.advance(100000);
    CHECK(at_once.done(last) == one_by_one.done(last));
    CHECK(at_once.done(1) == 0);  // ended long ago
  }
}

TEST_CASE("a first factor in registers makes the first burst longer") {
  GroupProducts products;
  MatrixSlabs shape = kEight;
  shape.fetch_cycles = 3;
  const auto number = products.push(shape, 0);
  products.advance(1);
  CHECK(products.burst_until(GroupProducts::kAllBanks) == 6);
  CHECK(products.done(number) == 35);
}

TEST_CASE("what leaves a queue waits for the end of a burst, and the next burst for it") {
  GroupProducts products;
  const auto number = products.push(kEight, 0);
  products.advance(1);
  CHECK(products.wait_for_ports() == 2);
  CHECK(products.done(number) == 33);
}

TEST_CASE("to wait for a product that there is not is an error") {
  GroupProducts products;
  const auto number = products.push(kEight, 0);
  CHECK_THROWS(products.done(number + 1));
}

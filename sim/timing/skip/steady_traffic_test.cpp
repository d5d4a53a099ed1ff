#include "timing/skip/steady_traffic.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {
L2Traffic traffic(std::uint64_t read, std::uint64_t written) {
  L2Traffic t;
  t.read = read, t.written = written;
  return t;
}
}  // namespace

TEST_CASE("traffic that repeats is left out but for what replaces L2 at the end") {
  SteadyTraffic steady(1000, 1);
  std::uint64_t taken = 0, skipped = 0;
  for (std::uint64_t left = 500; left > 0; --left) {
    steady.add(10, traffic(320, 160));
    ++taken;
    const std::uint64_t skip = steady.may_skip(left - 1);
    if (skip == 0) continue;
    skipped = skip;
    break;
  }
  CHECK(taken >= 100);  // L2 has been replaced
  CHECK(taken < 140);
  CHECK(500 - taken - skipped == 100);
  CHECK(steady.expected(7).read == 7 * 320);
  CHECK(steady.expected(7).written == 7 * 160);
}

TEST_CASE("traffic that changes, or has had no time to repeat, is not left out") {
  SECTION("half of it has just begun to be found again") {
    SteadyTraffic steady(100, 1);
    for (int i = 0; i < 400; ++i) {
      steady.add(10, traffic(i < 200 ? 320u : 160u, 0));
      if (i >= 250 && i < 380) CHECK(steady.may_skip(1000) == 0);
    }
  }
  SECTION("it may repeat only after more steps than were seen") {
    SteadyTraffic steady(100, 60);
    for (int i = 0; i < 239; ++i) {
      steady.add(10, traffic(320, 0));
      CHECK(steady.may_skip(1000) == 0);
    }
  }
  SECTION("little is left") {
    SteadyTraffic steady(1000, 1);
    for (int i = 0; i < 200; ++i) {
      steady.add(10, traffic(320, 0));
      CHECK(steady.may_skip(100) == 0);
    }
  }
}

TEST_CASE("steps that touch nothing new bring nothing") {
  SteadyTraffic steady(100, 1);
  std::uint64_t skip = 0;
  for (int i = 0; i < 100 && skip == 0; ++i) {
    steady.add(10, {});
    skip = steady.may_skip(1000);
  }
  CHECK(skip > 0);
  CHECK(steady.expected(skip).read == 0);
}

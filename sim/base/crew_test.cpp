#include "base/crew.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

using namespace forewarp;

TEST_CASE("a crew does every piece of every step once, and a step ends before the next begins") {
  for (const unsigned threads : {1u, 2u, 3u}) {
    Crew crew(threads);
    CHECK(crew.size() == threads);
    std::vector<int> done(7, 0);
    for (int step = 0; step < 2000; ++step) {
      crew.run(7, [&](std::uint32_t piece, unsigned member) {
        if (member < threads && done[piece] == step) ++done[piece];
      });
    }
    CHECK(done == std::vector<int>(7, 2000));
  }
}

TEST_CASE("a crew tells what its first failing piece has thrown, and goes on") {
  Crew crew(2);
  const auto fail = [](std::uint32_t piece, unsigned) {
    if (piece > 2) throw std::runtime_error("piece " + std::to_string(piece));
  };
  CHECK_THROWS_WITH(crew.run(8, fail), "piece 3");
  std::atomic<int> done{0};
  crew.run(8, [&](std::uint32_t, unsigned) { ++done; });
  CHECK(done == 8);
}

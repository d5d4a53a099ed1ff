#include "base/style.h"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace forewarp;

TEST_CASE("text is painted only where colour is wanted") {
  CHECK(Style().paint(Tone::Heading, "Waves") == "Waves");
  const Style style(true);
  CHECK(style.paint(Tone::Heading, "Waves") == "\033[1mWaves\033[0m");
  CHECK(style.paint(Tone::Plain, "Waves") == "Waves");
  CHECK(style.paint(Tone::Error, "").empty());
}

TEST_CASE("codes of tones are known, others are not") {
  const Style style(true);
  CHECK(style.code_length("\033[1mWaves") == 4);
  CHECK(style.code_length("\033[0m") == 4);
  CHECK(style.code_length("\033[31mred") == 0);
  CHECK(style.code_length("\033[2Jclears the screen") == 0);
  CHECK(style.code_length("Waves") == 0);
  CHECK(Style().code_length("\033[1mWaves") == 0);
}

TEST_CASE("a pipe takes no colour") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK_FALSE(takes_colour(ends[1]));
  CHECK_FALSE(obeys_codes(ends[1]));
  ::close(ends[0]);
  ::close(ends[1]);
}

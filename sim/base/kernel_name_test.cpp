#include "base/kernel_name.h"

#include <catch2/catch.hpp>

using namespace forewarp;

TEST_CASE("a kernel's name may be its symbol, what a person reads, or the beginning of that") {
  const std::string symbol = "_Z6reduceIiLj256EEvPT_S1_j", read = demangle(symbol);
  REQUIRE(read == "void reduce<int, 256u>(int*, int*, unsigned int)");
  CHECK(name_fit(symbol, symbol, read) == NameFit::Exact);
  CHECK(name_fit(read, symbol, read) == NameFit::Exact);
  CHECK(name_fit("reduce<int, 256u>(int*, int*, unsigned int)", symbol, read) == NameFit::Exact);
  CHECK(name_fit("reduce<int, 256u>", symbol, read) == NameFit::Name);
  CHECK(name_fit("reduce<int", symbol, read) == NameFit::Prefix);
  CHECK(name_fit("void reduce", symbol, read) == NameFit::Prefix);
  CHECK(name_fit("educe", symbol, read) == NameFit::None);
  CHECK(name_fit("", symbol, read) == NameFit::None);
  CHECK(demangle("saxpy") == "saxpy");
}

#include "base/file.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace forewarp;
using Catch::Contains;

TEST_CASE("what is no file is not read") {
  CHECK_THROWS_WITH(read_text_file("/tmp"), Contains("is a folder"));
  CHECK_THROWS_WITH(read_text_file("/dev/zero"), Contains("is a device"));
  CHECK_THROWS_WITH(read_text_file("/tmp/there/is/no/such/file"), Contains("cannot be opened"));
}

TEST_CASE("a device without room says so") {
  CHECK_THROWS_WITH(write_file("/dev/full", std::string(1 << 16, 'x')), Contains("No space left"));
}

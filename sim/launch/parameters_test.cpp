#include "launch/parameters.h"

#include <catch2/catch.hpp>
#include <cstring>

using namespace forewarp;
using Catch::Matchers::Contains;

namespace {

Argument scalar(ArgumentKind kind, std::uint64_t bits) {
  Argument argument = Argument::scalar(kind, bits);
  argument.where = {"x.yaml", 7, 9};
  return argument;
}

Launch launch_of(std::vector<Argument> arguments) {
  Launch launch;
  launch.kernel = "k";
  launch.where = {"x.yaml", 2, 3};
  launch.arguments = std::move(arguments);
  return launch;
}

}  // namespace

TEST_CASE("arguments land at their slots") {
  const Argument pointer = Argument::pointer(1, 256);
  const Launch launch = launch_of({scalar(ArgumentKind::I32, 5), pointer, scalar(ArgumentKind::F16, 0x3c00)});
  const std::uint64_t addresses[] = {0x1000, 0x7f4000000000};
  const ParameterSlot slots[] = {{0, 4}, {8, 8}, {16, 2}};
  const auto area = pack_parameters(launch, addresses, slots);
  REQUIRE(area.size() == 18);
  std::uint32_t first = 0, gap = 1;
  std::uint64_t second = 0;
  std::uint16_t third = 0;
  std::memcpy(&first, area.data(), 4);
  std::memcpy(&gap, area.data() + 4, 4);
  std::memcpy(&second, area.data() + 8, 8);
  std::memcpy(&third, area.data() + 16, 2);
  CHECK(first == 5);
  CHECK(gap == 0);
  CHECK(second == 0x7f4000000100);
  CHECK(third == 0x3c00);
}

TEST_CASE("a struct is its bytes, with addresses where its pointers are") {
  Argument fields;
  fields.kind = ArgumentKind::Struct;
  fields.bytes = std::vector<std::uint8_t>(24, 0);
  fields.bytes[16] = 7;
  fields.pointers = {{0, {1, 0}}, {8, {0, 16}}};
  fields.where = {"x.yaml", 7, 9};
  const std::uint64_t addresses[] = {0x1000, 0x7f4000000000};
  const ParameterSlot slots[] = {{0, 4}, {8, 24}};
  const auto area = pack_parameters(launch_of({scalar(ArgumentKind::I32, 5), fields}), addresses, slots);
  std::uint64_t words[4];
  REQUIRE(area.size() == sizeof words);
  std::memcpy(words, area.data(), sizeof words);
  CHECK(words[0] == 5);
  CHECK(words[1] == 0x7f4000000000);
  CHECK(words[2] == 0x1010);
  CHECK(words[3] == 7);
  const ParameterSlot larger[] = {{0, 32}};
  CHECK_THROWS_WITH(pack_parameters(launch_of({fields}), addresses, larger),
                    Contains("x.yaml:7:9: argument 0 of kernel k has 32 bytes, but struct has 24"));
}

TEST_CASE("number and sizes must fit") {
  const ParameterSlot slots[] = {{0, 4}};
  CHECK_THROWS_WITH(pack_parameters(launch_of({}), {}, slots),
                    Contains("x.yaml:2:3: kernel k takes 1 arguments, but args has 0"));
  CHECK_THROWS_WITH(pack_parameters(launch_of({scalar(ArgumentKind::F64, 0)}), {}, slots),
                    Contains("x.yaml:7:9: argument 0 of kernel k has 4 bytes, but f64 has 8"));
}

TEST_CASE("integers may stand for narrower parameters when their value fits") {
  const ParameterSlot byte[] = {{0, 1}};
  CHECK(pack_parameters(launch_of({scalar(ArgumentKind::I32, 1)}), {}, byte) == std::vector<std::uint8_t>{1});
  CHECK(pack_parameters(launch_of({scalar(ArgumentKind::I32, 0xffffffff)}), {}, byte) ==
        std::vector<std::uint8_t>{0xff});
  CHECK(pack_parameters(launch_of({scalar(ArgumentKind::U32, 255)}), {}, byte) == std::vector<std::uint8_t>{255});
  CHECK_THROWS_AS(pack_parameters(launch_of({scalar(ArgumentKind::U32, 256)}), {}, byte), InputError);
  CHECK_THROWS_AS(pack_parameters(launch_of({scalar(ArgumentKind::I32, 0xffffff00)}), {}, byte), InputError);
  CHECK_THROWS_AS(pack_parameters(launch_of({scalar(ArgumentKind::F32, 0)}), {}, byte), InputError);
}

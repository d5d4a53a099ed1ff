#include "launch/tensor_map.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "launch/launch.h"
#include "launch/parameters.h"

using namespace forewarp;
using Catch::Matchers::Contains;

namespace {

/// Reads a case whose one argument is this.
Argument argument(const std::string& text) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tensor_map_test_" + std::to_string(::getpid()) + ".yaml")).string();
  write_file(path,
             "c:\n  kernel: k\n  grid: [1]\n  block: [32]\n  buffers: {a: {bytes: 1048576, fill: zero}}\n  args: [" +
                 text + "]\n");
  try {
    const LaunchFile file = read_launch_file(path);
    std::filesystem::remove(path);
    return file.cases.at(0).launches.at(0).arguments.at(0);
  } catch (...) {
    std::filesystem::remove(path);
    throw;
  }
}

std::string message(const std::string& text) {
  try {
    argument(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string map_of(const std::string& more) { return "{tensor_map: {pointer: a, " + more + "}}"; }

}  // namespace

TEST_CASE("a tensor map is what cuTensorMapEncodeTiled is told") {
  const Argument whole = argument(
      map_of("offset: 256, type: bf16, shape: [300, 200], strides: [640], box: [64, 128], element_strides: [3, 2], "
             "interleave: none, swizzle: 128B, l2_promotion: 128B, fill: nan, by: value"));
  CHECK(whole.kind == ArgumentKind::TensorMap);
  CHECK(whole.size() == 128);
  CHECK(whole.maps == std::vector<std::uint32_t>{0});
  CHECK(whole.pointers == std::vector<Argument::PlacedPointer>{{0, {0, 256}}});
  const std::optional<TensorMap> map = decode_tensor_map(whole.bytes);
  REQUIRE(map);
  CHECK(map->type == TensorType::Bf16);
  CHECK(map->rank == 2);
  CHECK(map->shape == std::array<std::uint64_t, 5>{300, 200, 1, 1, 1});
  CHECK(map->strides == std::array<std::uint64_t, 5>{2, 640, 0, 0, 0});
  CHECK(map->box == std::array<std::uint32_t, 5>{64, 128, 1, 1, 1});
  CHECK(map->steps == std::array<std::uint32_t, 5>{1, 2, 1, 1, 1});  // that of the innermost is ignored
  CHECK(map->swizzle == TensorSwizzle::B128);
  CHECK(map->promotion == TensorPromotion::B128);
  CHECK(map->fill == TensorFill::Nan);
  CHECK(map->extent(1) == 64);
  CHECK(map->box_bytes() == 64 * 64 * 2);
  CHECK(map->reach() == 199 * 640 + 600);
}

TEST_CASE("encoding a tensor map keeps all of it, and other bytes are none") {
  TensorMap m;
  m.address = 0x7f4000000100;
  m.type = TensorType::U16;
  m.interleave = TensorInterleave::B32;
  m.swizzle = TensorSwizzle::B32;
  m.promotion = TensorPromotion::B256;
  m.rank = 5;
  m.shape = {1ull << 32, 3, 4, 5, 6};
  m.strides = {2, 1ull << 34, 1ull << 35, 1ull << 36, 1ull << 37};
  m.box = {256, 1, 2, 3, 4};
  m.steps = {1, 2, 3, 4, 8};
  CHECK(decode_tensor_map(encode_tensor_map(m)) == m);
  CHECK(!decode_tensor_map(std::array<std::uint8_t, 128>{}));
}

TEST_CASE("tensor maps that the driver refuses are refused") {
  const std::string good = "type: f16, shape: [64, 64], strides: [128], box: [64, 64]";
  CHECK(message(map_of(good)) == "no error");
  CHECK(message(map_of(good + ", swizzle: 128B")) == "no error");
  CHECK_THAT(message(map_of(good + ", swizzle: 64B")), Contains("128 bytes, more than the swizzle's 64"));
  CHECK_THAT(message(map_of(good + ", interleave: 16B")), Contains("at least 3 dimensions"));
  CHECK_THAT(message(map_of(good + ", offset: 8")), Contains("aligned to 16 bytes"));
  CHECK_THAT(message(map_of("type: f16, shape: [60, 64], strides: [120], box: [64, 64]")),
             Contains("strides[0] must be a multiple of 16 bytes below 2^40"));
  CHECK_THAT(message(map_of("type: f16, shape: [64, 64], strides: [128], box: [64, 257]")),
             Contains("box[1] must be from 1 to 256"));
  CHECK_THAT(message(map_of("type: f16, shape: [64, 64], strides: [128], box: [4, 64]")),
             Contains("box[0] must take a multiple of 16 bytes, not 8"));
  CHECK_THAT(message(map_of("type: f16, shape: [0, 64], strides: [128], box: [8, 64]")), Contains("shape[0] must be"));
  CHECK_THAT(message(map_of("type: f16, shape: [64, 64], strides: [128], box: [8, 8], element_strides: [1, 9]")),
             Contains("element_strides[1] must be from 1 to 8"));
  CHECK_THAT(message(map_of("type: u16, shape: [64], box: [64], fill: nan")), Contains("floating-point type"));
  CHECK_THAT(message(map_of("type: f16, shape: [64, 8193], strides: [128], box: [64, 64]")),
             Contains("reaches beyond its buffer of 1048576 bytes"));
  CHECK_THAT(message(map_of(good + ", by: name")), Contains("by"));
  CHECK_THAT(message(map_of(good + ", colour: red")), Contains("colour"));
}

TEST_CASE("tensor maps lie in structs at multiples of 64 bytes") {
  const std::string map = "tensor_map: {pointer: a, type: u8, shape: [64], box: [16]}";
  const Argument whole = argument("{struct: {size: 256, fields: [{at: 8, pointer: a}, {at: 128, " + map + "}]}}");
  CHECK(whole.maps == std::vector<std::uint32_t>{128});
  Launch launch;
  launch.arguments = {Argument::scalar(ArgumentKind::I32, 7), whole};
  const ParameterSlot slots[] = {{0, 4}, {64, 256}};
  const std::uint64_t addresses[] = {0x7f4000000200};
  const std::vector<std::uint8_t> area = pack_parameters(launch, addresses, slots);
  CHECK(map_places(launch, slots) == std::vector<std::uint32_t>{192});
  const auto packed = decode_tensor_map(std::span(area).subspan(192, 128));
  REQUIRE(packed);
  CHECK(packed->address == 0x7f4000000200);
  CHECK_THAT(message("{struct: {size: 256, fields: [{at: 32, " + map + "}]}}"), Contains("no multiple of 64"));
}

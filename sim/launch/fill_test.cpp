#include "launch/fill.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "launch/narrow_float.h"

using namespace forewarp;

namespace {

template <class Element>
std::vector<Element> made(std::uint64_t count, const Fill& fill) {
  Buffer buffer;
  buffer.name = "b";
  buffer.bytes = count * sizeof(Element);
  buffer.fill = fill;
  const std::vector<std::uint8_t> bytes = make_buffer(buffer);
  std::vector<Element> elements(count);
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace

TEST_CASE("lcg writes (s >> 8) mod modulus after each step, at any length") {
  for (const std::uint32_t modulus : {1024u, 1000u, 7u, 1u}) {
    constexpr std::uint64_t kCount = (std::uint64_t{3} << 20) / 4 + 5;  // several chunks and a partial one
    const auto elements = made<std::uint32_t>(kCount, FillLcg{42, modulus});
    std::uint32_t s = 42;
    std::uint64_t wrong = 0;
    for (const std::uint32_t element : elements) {
      s = s * 1664525u + 1013904223u;
      wrong += element != (s >> 8) % modulus;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a part of a fill is that part of the whole") {
  Buffer buffer;
  buffer.name = "b";
  buffer.bytes = (std::uint64_t{2} << 20) + 24;
  for (const Fill& fill :
       {Fill{FillZero{}}, Fill{FillIota{}}, Fill{FillLcg{3, 1000}}, Fill{FillLcg{3, 1024}},
        Fill{FillUniform{ElementType::F32, -1, 1, 7}}, Fill{FillUniform{ElementType::F64, -1, 1, 7}},
        Fill{FillUniform{ElementType::F16, -1, 1, 7}}, Fill{FillUniform{ElementType::S8, -9, 9, 7}}}) {
    buffer.fill = fill;
    const std::vector<std::uint8_t> whole = make_buffer(buffer);
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{256} << 10, std::uint64_t{2} << 20}) {
      std::vector<std::uint8_t> part(std::min<std::uint64_t>(256 << 10, buffer.bytes - offset), 1);
      fill_part(buffer, {}, offset, part);
      CHECK(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)));
    }
  }
}

TEST_CASE("uniform is computed in float and converted to the type") {
  const FillUniform fill{ElementType::F32, -1, 1, 1};
  const std::uint64_t count = (1 << 20) + 3;
  const auto f32 = made<float>(count, fill);
  auto wide = fill, half = fill, brain = fill;
  wide.type = ElementType::F64;
  half.type = ElementType::F16;
  brain.type = ElementType::Bf16;
  const auto f64 = made<double>(count, wide);
  const auto f16 = made<std::uint16_t>(count, half);
  const auto bf16 = made<std::uint16_t>(count, brain);
  std::uint32_t s = 1;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    s = s * 1664525u + 1013904223u;
    const float unit = static_cast<float>(s >> 8) / 16777216.f;
    const float scaled = unit * 2.f;
    const float value = scaled + -1.f;
    wrong +=
        f32[i] != value || f64[i] != static_cast<double>(value) || f16[i] != to_f16(value) || bf16[i] != to_bf16(value);
  }
  CHECK(wrong == 0);
  // The first element, worked out by hand: s = 1015568748, s >> 8 = 3967065.
  CHECK(f32[0] == 3967065.f / 16777216.f * 2.f - 1.f);
}

TEST_CASE("f16 rounds to the nearest, ties to even") {
  // Against the definition: no other half is nearer, and a tie goes to the even one.
  std::uint32_t s = 7;
  for (int i = 0; i < 200000; ++i) {
    s = s * 1664525u + 1013904223u;
    const float value = std::ldexp(static_cast<float>(s >> 8) / 16777216.f + 0.5f, static_cast<int>(i % 40) - 25);
    const std::uint16_t rounded = to_f16(value);
    if (rounded >= 0x7bff || rounded == 0) continue;
    const double error = std::fabs(half_value(rounded) - value);
    const double up = std::fabs(half_value(static_cast<std::uint16_t>(rounded + 1)) - value);
    const double down = std::fabs(half_value(static_cast<std::uint16_t>(rounded - 1)) - value);
    REQUIRE(error <= up);
    REQUIRE(error <= down);
    if (error == up || error == down) REQUIRE((rounded & 1) == 0);
  }
  CHECK(to_f16(1.f) == 0x3c00);
  CHECK(to_f16(-2.f) == 0xc000);
  CHECK(to_f16(65504.f) == 0x7bff);
  CHECK(to_f16(65519.f) == 0x7bff);
  CHECK(to_f16(65520.f) == 0x7c00);
  CHECK(to_f16(0.f) == 0);
  CHECK(to_f16(-0.f) == 0x8000);
  CHECK(to_f16(std::ldexp(1.f, -24)) == 1);
  CHECK(to_f16(std::ldexp(1.f, -25)) == 0);
  CHECK(to_f16(std::ldexp(1.5f, -25)) == 1);
  CHECK(to_bf16(1.f) == 0x3f80);
  CHECK(to_bf16(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
  CHECK(to_bf16(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
}

TEST_CASE("e4m3 rounds to the nearest, ties to even, and stops at 448") {
  const auto value_of = [](int bits) {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    return exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  };
  // Halfway between neighbours the even one; a little to either side the nearer one.
  for (int low = 0; low < 0x7e; ++low) {
    const auto half_way = static_cast<float>((value_of(low) + value_of(low + 1)) / 2);
    CHECK(to_e4m3(static_cast<float>(value_of(low))) == low);
    CHECK(to_e4m3(half_way) == (low % 2 == 0 ? low : low + 1));
    CHECK(to_e4m3(std::nextafter(half_way, 0.f)) == low);
    CHECK(to_e4m3(-std::nextafter(half_way, 1e9f)) == (0x80 | (low + 1)));
  }
  CHECK(to_e4m3(448.f) == 0x7e);
  CHECK(to_e4m3(-1e30f) == 0xfe);
  CHECK(to_e4m3(std::nanf("")) == 0x7f);
}

TEST_CASE("bytes of uniform fills are rounded whole numbers or e4m3") {
  const auto s8 = made<std::int8_t>(100001, FillUniform{ElementType::S8, -128, 127, 5});
  const auto e4m3 = made<std::uint8_t>(100001, FillUniform{ElementType::E4m3, -4, 4, 5});
  const auto f32 = made<float>(100001, FillUniform{ElementType::F32, -128, 127, 5});
  const auto small = made<float>(100001, FillUniform{ElementType::F32, -4, 4, 5});
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < s8.size(); ++i)
    wrong += static_cast<float>(s8[i]) != std::nearbyint(f32[i]) || e4m3[i] != to_e4m3(small[i]);
  CHECK(wrong == 0);
  CHECK(*std::min_element(s8.begin(), s8.end()) == -128);
  CHECK(*std::max_element(s8.begin(), s8.end()) == 127);
}

TEST_CASE("zero and iota") {
  const auto zeros = made<std::uint32_t>(1000, FillZero{});
  CHECK(std::count(zeros.begin(), zeros.end(), 0u) == 1000);
  const auto iota = made<std::uint32_t>(600000, FillIota{});
  std::uint64_t wrong = 0;
  for (std::uint32_t i = 0; i < iota.size(); ++i) wrong += iota[i] != i;
  CHECK(wrong == 0);
}

TEST_CASE("fill_buffer overwrites what was there") {
  Buffer buffer;
  buffer.bytes = 3 << 20;
  std::vector<std::uint8_t> bytes(buffer.bytes, 0xff);
  fill_buffer(buffer, {}, bytes);
  CHECK(std::count(bytes.begin(), bytes.end(), 0) == 3 << 20);
}

TEST_CASE("a file fill needs a file of the buffer's size") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("fill_test_" + std::to_string(::getpid()))).string();
  write_file(path, "abcd");
  CHECK(made<char>(4, FillFile{path}) == std::vector<char>{'a', 'b', 'c', 'd'});
  CHECK_THROWS_WITH(made<char>(5, FillFile{path}), Catch::Contains("has 5 bytes") && Catch::Contains("has 4"));
  std::filesystem::remove(path);
  CHECK_THROWS_AS(made<char>(4, FillFile{path}), InputError);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);  // nobody writes to it
  CHECK_THROWS_WITH(made<char>(4, FillFile{path}), Catch::Contains("no regular file"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(made<char>(4, FillFile{"/dev/zero"}), Catch::Contains("no regular file"));
}

TEST_CASE("a buffer of pointers holds the addresses of others") {
  Buffer buffer;
  buffer.bytes = 24;
  buffer.fill = FillPointers{{{1, 0}, {0, 8}, {1, 512}}};
  const std::uint64_t addresses[] = {0x7f4000000000, 0x7f4000100000};
  std::vector<std::uint64_t> words(3);
  std::memcpy(words.data(), make_buffer(buffer, addresses).data(), 24);
  CHECK(words == std::vector<std::uint64_t>{0x7f4000100000, 0x7f4000000008, 0x7f4000100200});
  fill_part(buffer, addresses, 8, {reinterpret_cast<std::uint8_t*>(words.data()), 8});
  CHECK(words[0] == 0x7f4000000008);
}

TEST_CASE("elements must come out whole") {
  CHECK_THROWS_WITH(made<char>(6, FillIota{}), Catch::Contains("no whole number"));
}

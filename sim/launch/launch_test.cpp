#include "launch/launch.h"

#include <unistd.h>

#include <bit>
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"

using namespace forewarp;
using Catch::Matchers::Contains;

namespace {

/// A launch file with this content, removed at the end of the test.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& text)
      : path((std::filesystem::temp_directory_path() / ("launch_test_" + std::to_string(::getpid()) + ".yaml"))
                 .string()) {
    write_file(path, text);
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::string path;
};

LaunchFile read(const std::string& text) { return read_launch_file(TemporaryFile(text).path); }

/// The message of the InputError for this file, or "no error".
std::string message(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// A whole case around one changed line.
std::string with(const std::string& grid, const std::string& block, const std::string& args,
                 const std::string& more = "") {
  return "c:\n  kernel: k\n  grid: " + grid + "\n  block: " + block +
         "\n  buffers: {a: {bytes: 1024, fill: zero}}\n  args: " + args + "\n" + more;
}

}  // namespace

TEST_CASE("a whole launch file") {
  const LaunchFile file = read(R"(
sgemm_1024:
  kernel: sgemm_tiled
  grid: [32, 16]
  block: [256, 1, 1]
  dynamic_shared_bytes: 4096
  cluster: [2, 1, 1]
  buffers:
    a: {bytes: 4194304, fill: {uniform: {type: f16, low: -1, high: 1, seed: 1}}}
    i: {bytes: 4194304, fill: {lcg: {seed: 1, modulus: 1024}}}
    c: {bytes: 4194304, fill: zero}
    n: {bytes: 16, fill: iota}
    f: {bytes: 16, file: data.bin}
    g: {bytes: 16, fill: {file: data.bin}}
  args: [{pointer: a}, {pointer: c, offset: 256}, {i32: -1}, {u32: 4294967295}, {i64: -2}, {u64: 0xffffffffffffffff},
         {f32: 1.0}, {f64: 1.5}, {bf16: 1}, {f16: 1}]
two.launches-512:
  buffers: {}
  launches:
    - {kernel: first, grid: [1], block: [32], args: []}
    - {kernel: second, grid: [1], block: [32], args: []}
)");
  REQUIRE(file.cases.size() == 2);
  const Case& c = file.cases[0];
  CHECK(c.id == "sgemm_1024");
  REQUIRE(c.buffers.size() == 6);
  CHECK(std::get<FillUniform>(c.buffers[0].fill).type == ElementType::F16);
  CHECK(std::get<FillLcg>(c.buffers[1].fill).modulus == 1024);
  CHECK(std::holds_alternative<FillZero>(c.buffers[2].fill));
  CHECK(std::holds_alternative<FillIota>(c.buffers[3].fill));
  const std::string beside = (std::filesystem::temp_directory_path() / "data.bin").string();
  CHECK(std::get<FillFile>(c.buffers[4].fill).path == beside);
  CHECK(std::get<FillFile>(c.buffers[5].fill).path == beside);
  REQUIRE(c.launches.size() == 1);
  const Launch& launch = c.launches[0];
  CHECK(launch.grid == Dim3{32, 16, 1});
  CHECK(launch.block == Dim3{256, 1, 1});
  CHECK(launch.cluster == Dim3{2, 1, 1});
  CHECK(launch.dynamic_shared_bytes == 4096);
  REQUIRE(launch.arguments.size() == 10);
  CHECK(launch.arguments[1].pointers == std::vector<Argument::PlacedPointer>{{0, {2, 256}}});
  const std::uint64_t bits[] = {
      0xffffffff, 0xffffffff, ~1ULL, ~0ULL, std::bit_cast<std::uint32_t>(1.f), std::bit_cast<std::uint64_t>(1.5),
      0x3f80,     0x3c00};
  const std::uint32_t sizes[] = {4, 4, 8, 8, 4, 8, 2, 2};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(launch.arguments[i + 2].bits() == bits[i]);
    CHECK(launch.arguments[i + 2].size() == sizes[i]);
  }
  CHECK(launch.arguments[0].size() == 8);
  CHECK(file.cases[1].launches.size() == 2);
  CHECK(file.cases[1].launches[1].kernel == "second");
  CHECK(file.cases[1].launches[0].cluster == Dim3{0, 0, 0});
}

TEST_CASE("extents have limits and are never zero") {
  CHECK(message(with("[2147483647, 65535, 65535]", "[1024, 1, 1]", "[]")) == "no error");
  CHECK(message(with("[1]", "[1, 1024, 1]", "[]")) == "no error");
  CHECK_THAT(message(with("[0]", "[1]", "[]")),
             Contains(".yaml:3:10: c.grid[0] must be an integer from 1 to 2147483647"));
  CHECK_THAT(message(with("[2147483648]", "[1]", "[]")), Contains("2147483647"));
  CHECK_THAT(message(with("[1, 65536]", "[1]", "[]")), Contains("grid[1]"));
  CHECK_THAT(message(with("[1, 1, 65536]", "[1]", "[]")), Contains("grid[2]"));
  CHECK_THAT(message(with("[]", "[1]", "[]")), Contains("1 to 3 values"));
  CHECK_THAT(message(with("[1, 1, 1, 1]", "[1]", "[]")), Contains("1 to 3 values"));
  CHECK_THAT(message(with("[1]", "[1025]", "[]")), Contains("block[0]"));
  CHECK_THAT(message(with("[1]", "[1, 1, 65]", "[]")), Contains("block[2]"));
  CHECK_THAT(message(with("[1]", "[32, 33]", "[]")), Contains("has 1056 threads"));
  CHECK_THAT(message(with("[1]", "[0]", "[]")), Contains("block[0]"));
}

TEST_CASE("keys are checked") {
  CHECK_THAT(message("c: {kernel: k, grid: [1], block: [1], buffers: {}}\n"), Contains("c lacks the key 'args'"));
  CHECK_THAT(message("c: {kernel: k, grid: [1], block: [1], args: []}\n"), Contains("lacks the key 'buffers'"));
  CHECK_THAT(message("c: {kernel: k, grid: [1], blok: [1], buffers: {}, args: []}\n"),
             Contains("'block'") && Contains("'blok'"));
  CHECK_THAT(message(with("[1]", "[1]", "[]", "  dynamic_shared: 1\n")),
             Contains(".yaml:7:3") && Contains("unknown key 'dynamic_shared'; did you mean 'dynamic_shared_bytes'?"));
  CHECK_THAT(message(with("[1]", "[1]", "[]", "  grid: [2]\n")), Contains(".yaml:7:3: key 'grid' is repeated"));
  CHECK_THAT(message(with("[1]", "[1]", "[]", "c:\n  kernel: k\n")), Contains("key 'c' is repeated"));
  CHECK_THAT(message(with("[1]", "[1]", "[]", "  launches: []\n")), Contains("launches must be a list of 1 or more"));
  CHECK_THAT(message("c: {buffers: {}, kernel: k, launches: [{kernel: k, grid: [1], block: [1], args: []}]}\n"),
             Contains("unknown key 'kernel'") && Contains("accepted: buffers, launches"));
  CHECK_THAT(message("a b: {}\n"), Contains("case id 'a b'"));
  CHECK_THAT(message("{}\n"), Contains("holds no case"));
  CHECK_THAT(message("- 1\n"), Contains("must be a map"));
}

TEST_CASE("extents and sizes as people write them") {
  const auto launch = [](const std::string& grid, const std::string& bytes) {
    return "c: {kernel: k, grid: " + grid + ", block: 64, args: [], buffers: {a: {bytes: " + bytes +
           ", fill: zero}}}\n";
  };
  const auto bytes = [&](const std::string& text) {
    return read(launch("1", text)).cases.front().buffers.front().bytes;
  };
  const Launch one = read(launch("4096", "1")).cases.front().launches.front();
  CHECK((one.grid.x == 4096 && one.grid.y == 1 && one.grid.z == 1 && one.block.x == 64));
  CHECK(bytes("4096") == 4096);
  CHECK(bytes("4 MiB") == 4 << 20);
  CHECK(bytes("3KiB") == 3 << 10);
  CHECK(bytes("2 GiB") == std::uint64_t{2} << 30);
  CHECK(bytes("7 B") == 7);
  for (const char* text :
       {"MiB", "4 MB", "4  MiB", "-4 MiB", "1.5 MiB", "0 MiB", "2000 GiB", "99999999999999 GiB", "4 MiB x"})
    CHECK(message(launch("1", text)) != "no error");
  CHECK_THAT(message(launch("0", "1")), Contains("grid must be an integer from 1"));
}

TEST_CASE("buffers and fills are checked") {
  const auto buffer = [](const std::string& text) {
    return message("c: {kernel: k, grid: [1], block: [1], args: [], buffers: {a: " + text + "}}\n");
  };
  CHECK(buffer("{bytes: 8, fill: {uniform: {type: f64, low: 0, high: 0, seed: 0}}}") == "no error");
  CHECK_THAT(buffer("{bytes: 0, fill: zero}"), Contains("a.bytes must be an integer from 1"));
  CHECK_THAT(buffer("{fill: zero}"), Contains("lacks the key 'bytes'"));
  CHECK(buffer("{bytes: 8}") == message("c: {kernel: k, grid: [1], block: [1], args: [], buffers: {a: {bytes: 8}}}\n"));
  CHECK_THAT(buffer("{bytes: 8}"), Contains("lacks the key 'fill'"));
  CHECK_THAT(buffer("{bytes: 8, fill: ones}"),
             Contains("unknown fill 'ones'") && Contains("accepted: zero, iota, uniform, lcg, file"));
  CHECK_THAT(buffer("{bytes: 8, fill: {ones: 1}}"), Contains("unknown fill 'ones'"));
  CHECK_THAT(buffer("{bytes: 8, fill: {}}"), Contains("exactly one fill"));
  CHECK_THAT(buffer("{bytes: 8, fill: zero, file: x}"), Contains("unknown key 'file'"));
  CHECK_THAT(buffer("{bytes: 6, fill: iota}"), Contains("no whole number of the fill's 4-byte elements"));
  CHECK_THAT(buffer("{bytes: 12, fill: {uniform: {type: f64, low: 0, high: 1, seed: 1}}}"), Contains("8-byte"));
  CHECK_THAT(buffer("{bytes: 8, fill: {uniform: {type: f8, low: 0, high: 1, seed: 1}}}"),
             Contains("accepted: f32, f64, f16, bf16, e4m3, s8"));
  CHECK_THAT(buffer("{bytes: 8, fill: {uniform: {type: f32, low: 1, high: 0, seed: 1}}}"),
             Contains("is less than low"));
  CHECK_THAT(buffer("{bytes: 8, fill: {uniform: {type: f16, low: 0, high: 70000, seed: 1}}}"),
             Contains("from -65504 to 65504"));
  CHECK_THAT(buffer("{bytes: 8, fill: {uniform: {type: e4m3, low: 0, high: 500, seed: 1}}}"), Contains("to 448"));
  CHECK_THAT(buffer("{bytes: 8, fill: {uniform: {type: s8, low: -129, high: 0, seed: 1}}}"),
             Contains("from -128 to 127"));
  CHECK_THAT(buffer("{bytes: 8, fill: {uniform: {type: f32, low: -3e38, high: 3e38, seed: 1}}}"), Contains("too far"));
  CHECK_THAT(buffer("{bytes: 8, fill: {uniform: {type: f32, low: 0, high: 1}}}"), Contains("lacks the key 'seed'"));
  CHECK_THAT(buffer("{bytes: 8, fill: {lcg: {seed: 1, modulus: 0}}}"), Contains("modulus must be an integer from 1"));
  CHECK_THAT(buffer("{bytes: 8, fill: {lcg: {seed: -1, modulus: 2}}}"), Contains("seed must be an integer"));
}

TEST_CASE("arguments are checked") {
  const auto args = [](const std::string& text) { return message(with("[1]", "[1]", text)); };
  CHECK(args("[{pointer: a, offset: 1023}]") == "no error");
  CHECK_THAT(args("[{pointer: b}]"),
             Contains("c.args[0].pointer names no buffer of this case: 'b'") && Contains("buffers: a"));
  CHECK_THAT(args("[{pointer: a, offset: 1024}]"), Contains("offset must be an integer from 0 to 1023"));
  CHECK_THAT(args("[{i32: 2147483648}]"), Contains("-2147483648 to 2147483647"));
  CHECK_THAT(args("[{i32: 1.5}]"), Contains("must be an integer"));
  CHECK_THAT(args("[{u32: -1}]"), Contains("must be an integer from 0"));
  CHECK_THAT(args("[{f32: 1e39}]"), Contains("must be a number"));
  CHECK_THAT(args("[{f16: 65505}]"), Contains("65504"));
  CHECK_THAT(args("[{i32: 1, i64: 2}]"), Contains("unknown key 'i64'"));
  CHECK_THAT(args("[{i32: 1, offset: 2}]"), Contains("unknown key 'offset'"));
  CHECK_THAT(args("[{i16: 1}]"), Contains("unknown key 'i16'") && Contains("accepted: pointer, i32"));
  CHECK_THAT(args("[{}]"), Contains("names no value"));
  CHECK_THAT(args("[5]"), Contains("must be a map"));
  CHECK_THAT(args("[{struct: {size: 8, fields: [{at: 4, i64: 1}]}}]"),
             Contains("fields[0].at is too far back") && Contains("8 bytes ends beyond the struct's 8"));
  CHECK_THAT(args("[{struct: {size: 8, fields: [{at: 0, i32: 1}, {at: 2, i32: 1}]}}]"),
             Contains("fields[1].at is within another field"));
  CHECK_THAT(args("[{struct: {size: 8, fields: [{at: 0}]}}]"), Contains("fields[0] names no value"));
  CHECK_THAT(args("[{struct: {size: 8, fields: [{at: 8, i32: 1}]}}]"), Contains("at must be an integer from 0 to 7"));
  CHECK_THAT(args("[{struct: {size: 0, fields: []}}]"), Contains("size must be an integer from 1"));
  CHECK_THAT(args("[{bytes: 0ff}]"), Contains("two hexadecimal digits a byte"));
  CHECK_THAT(args("[{bytes: 0x}]"), Contains("hexadecimal digits alone"));
  CHECK_THAT(args("[{tensor_map: {}}]"), Contains("tensor_map lacks the key 'pointer'"));
}

TEST_CASE("structs, raw bytes and buffers of pointers are read") {
  const LaunchFile file = read(R"(
c:
  kernel: k
  grid: [1]
  block: [32]
  buffers:
    table: {bytes: 16, fill: {pointers: [{pointer: data, offset: 64}, {pointer: table}]}}
    data: {bytes: 128, fill: zero}
  args:
    - struct:
        size: 24
        fields:
          - {at: 0, pointer: data, offset: 4}
          - {at: 8, i32: -1}
          - {at: 12, struct: {size: 8, fields: [{at: 2, bytes: "0a0b"}, {at: 4, f32: 1.0}]}}
    - {bytes: "00ff7E"}
)");
  const Case& c = file.cases[0];
  CHECK(std::get<FillPointers>(c.buffers[0].fill).pointers == std::vector<Pointer>{{1, 64}, {0, 0}});
  const std::vector<Argument>& args = c.launches[0].arguments;
  REQUIRE(args.size() == 2);
  CHECK(args[0].kind == ArgumentKind::Struct);
  CHECK(args[0].pointers == std::vector<Argument::PlacedPointer>{{0, {1, 4}}});
  CHECK(args[0].bytes == std::vector<std::uint8_t>{0, 0, 0,    0,    0, 0, 0,    0,    0xff, 0xff, 0xff, 0xff,
                                                   0, 0, 0x0a, 0x0b, 0, 0, 0x80, 0x3f, 0,    0,    0,    0});
  CHECK(args[1].bytes == std::vector<std::uint8_t>{0, 0xff, 0x7e});
  const std::string pointers =
      "c: {kernel: k, grid: [1], block: [1], args: [], buffers: {a: {bytes: 24, fill: "
      "{pointers: [{pointer: a}]}}}}\n";
  CHECK_THAT(message(pointers), Contains("a.bytes is not that of the fill's 1 pointers, 8"));
}

TEST_CASE("tensor maps lie in buffers, or are passed by pointer") {
  const std::string map = "{pointer: a, type: f32, shape: [8, 4], strides: [32], box: [8, 2]";
  const std::string head = "c: {kernel: k, grid: [1], block: [1], buffers: {a: {bytes: 128, fill: zero}";
  const LaunchFile file = read(head + ", m: {bytes: 256, fill: {tensor_maps: [" + map + "}, " + map +
                               ", swizzle: 32B}]}}}, args: [{pointer: m, offset: 128}, {tensor_map: " + map +
                               ", by: pointer}}, {tensor_map: " + map + ", by: pointer}}]}\n");
  const Case& c = file.cases[0];
  REQUIRE(c.buffers.size() == 3);  // equal maps share one
  const std::vector<std::uint64_t> places = place_buffers(c);
  const std::vector<std::uint8_t> made = make_buffer(c.buffers[1], places);
  REQUIRE(made.size() == 256);
  const auto second = decode_tensor_map(std::span(made).subspan(128));
  REQUIRE(second);
  CHECK(second->address == places[0]);
  CHECK(second->swizzle == TensorSwizzle::B32);
  const std::vector<Argument>& args = c.launches[0].arguments;
  CHECK(args[1].pointers == std::vector<Argument::PlacedPointer>{{0, {2, 0}}});
  CHECK(args[2].pointers == args[1].pointers);
  CHECK(args[1].size() == 8);
  const auto own = decode_tensor_map(make_buffer(c.buffers[2], places));
  REQUIRE(own);
  CHECK(own->box[1] == 2);
  CHECK_THAT(message(head + ", m: {bytes: 128, fill: {tensor_maps: [" + map + "}, " + map + "}]}}}, args: []}\n"),
             Contains("m.bytes is not that of the fill's 2 tensor maps, 256"));
  CHECK_THAT(message(head + ", m: {bytes: 128, fill: {tensor_maps: [" + map + ", by: pointer}]}}}, args: []}\n"),
             Contains("by"));
}

TEST_CASE("clusters divide the grid") {
  CHECK(message(with("[4]", "[1]", "[]", "  cluster: [2]\n")) == "no error");
  CHECK_THAT(message(with("[5]", "[1]", "[]", "  cluster: [2]\n")), Contains("does not divide the grid"));
  CHECK_THAT(message(with("[64, 64]", "[1]", "[]", "  cluster: [8, 4]\n")), Contains("more than 16 blocks"));
  CHECK_THAT(message(with("[4]", "[1]", "[]", "  cluster: [0]\n")), Contains("cluster[0]"));
}

TEST_CASE("buffers are placed alike every time, aligned and apart") {
  Case c;
  for (const std::uint64_t bytes : {100u, 5000000u, 4u, 1u << 20, 7u}) {
    Buffer buffer;
    buffer.bytes = bytes;
    c.buffers.push_back(buffer);
  }
  const auto addresses = place_buffers(c);
  CHECK(addresses == place_buffers(c));
  REQUIRE(addresses.size() == 5);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    CHECK(addresses[i] % 512 == 0);
    if (c.buffers[i].bytes >= 1u << 20) CHECK(addresses[i] % (2 << 20) == 0);
    if (i > 0) CHECK(addresses[i] >= addresses[i - 1] + c.buffers[i - 1].bytes + 65536);
  }
}

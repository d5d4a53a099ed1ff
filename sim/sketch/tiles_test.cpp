#include <catch2/catch.hpp>

#include "sketch/test_support.h"

namespace forewarp::sketch {
namespace {

using test::gpu;
using test::Run;

/// Instructions of the first kernel whose text begins so.
int count(const Run& run, const std::string& beginning) {
  int n = 0;
  for (const std::string& text : run.sketches.program->kernels.front().text) n += text.starts_with(beginning) ? 1 : 0;
  return n;
}

TEST_CASE("tiles without arithmetic copy", "[sketch]") {
  for (const char* name : {"h200-sxm", "a100-sxm4-80gb"}) {
    CAPTURE(name);
    // Rows of 256 bytes in 16-byte chunks, walked by two loops; then turned within shared memory.
    const Run plain(R"(
t:
  tiles:
    grid: [2, 3]
    block: [16, 4]
    tensors: {a: 49152, b: 49152}
    body:
      - loop:
          index: i
          times: 2
          body:
            - loop:
                index: j
                times: 2
                body:
                  - load: {from: a, bytes: 16, count: 2, at: {block_x: 24576, block_y: 8192, i: 4096, j: 2048, thread_y: 512, thread_x: 16, each: 256}}
                  - store: {to: b, bytes: 16, count: 2, at: {block_x: 24576, block_y: 8192, i: 4096, j: 2048, thread_y: 512, thread_x: 16, each: 256}}
)",
                    gpu(name));
    CHECK(plain.start("a") == plain.end("b"));
    const Run ring(R"(
t:
  tiles:
    grid: 4
    block: 64
    tensors: {a: 32768, b: 32768}
    body:
      - load: {from: a, bytes: 16, at: {block_x: 8192, thread: 16}, shared: {thread: 16}}
      - commit
      - loop:
          index: i
          times: 7
          body:
            - load: {from: a, bytes: 16, at: {base: 1024, block_x: 8192, thread: 16, i: 1024}, shared: {thread: 16, i: 1024, ring: 3072, phase: 1024}}
            - commit
            - wait: 1
            - barrier
            - read: {bytes: 16, at: {thread: 16, i: 1024, ring: 3072}}
            - store: {to: b, bytes: 16, at: {block_x: 8192, thread: 16, i: 1024}}
            - barrier
)",
                   gpu(name));
    const auto a = ring.start("a"), b = ring.end("b");
    for (std::size_t block = 0; block < 4; ++block)
      CHECK(std::equal(a.begin() + static_cast<long>(block * 8192), a.begin() + static_cast<long>(block * 8192 + 7168),
                       b.begin() + static_cast<long>(block * 8192)));
  }
}

TEST_CASE("tiles compute as much as they say", "[sketch]") {
  const Run run(R"(
t:
  tiles:
    grid: 2
    block: 64
    tensors: {a: 65536, c: 65536}
    body:
      - loop:
          index: i
          times: 4
          body:
            - load: {from: a, bytes: 16, count: 2, at: {block_x: 16384, thread: 16, i: 4096, each: 1024}, name: x}
            - compute: {fma: 24, mufu: 6, int: 5, imad: 3, fp16: 7, of: x}
            - compute: {mma: 12, type: bf16, k: 8, independent: 4}
            - compute: {mma: 5, sparse: true}
      - store: {to: c, bytes: 16, at: {block_x: 1024, thread: 16}}
)",
                gpu("h200-sxm"));
  CHECK(count(run, "FFMA") == 24);
  CHECK(count(run, "MUFU.EX2") == 6);
  CHECK(count(run, "HFMA2") == 7);
  CHECK(count(run, "HMMA.1688.F32.BF16") == 12);
  CHECK(count(run, "HMMA.SP.16832.F32") == 5);
  CHECK(count(run, "LDG.E.128") == 2);
  CHECK(count(run, "STG.E.128") == 1);
}

TEST_CASE("errors in tiles say where", "[sketch]") {
  const auto message = [](const std::string& step) {
    return test::refusal("t:\n  tiles:\n    grid: 2\n    block: 64\n    tensors: {a: 4096}\n    body:\n      - " +
                         step);
  };
  using Catch::Contains;
  CHECK_THAT(message("load: {from: b, at: {thread: 4}}"), Contains("sketch.yaml:7:22") && Contains("is no tensor"));
  CHECK_THAT(message("load: {from: a, at: {thread: 64, block_x: 4096}}"), Contains("reaches byte"));
  CHECK_THAT(message("load: {from: a, bytes: 8, at: {thread: 4}}"), Contains("not aligned"));
  CHECK_THAT(message("load: {from: a, at: {base: -4}}"), Contains("before the start"));
  CHECK_THAT(message("compute: {mma: 4}"), Contains("has no words"));
  CHECK_THAT(message("compute: {fma: 4, of: y}"), Contains("no load or read called"));
  CHECK_THAT(message("loop: {index: i, times: 2, body: [{loop: {index: i, times: 2, body: [barrier]}}]}"),
             Contains("index of a loop around it"));
  CHECK_THAT(message("barrier: {}"), Contains("sketch.yaml:7:18") && Contains("write - barrier"));
  CHECK_THAT(message("barrier\n    shared: 300000"), Contains("sketch.yaml:3:5: takes 300000 bytes"));
}

}  // namespace
}  // namespace forewarp::sketch

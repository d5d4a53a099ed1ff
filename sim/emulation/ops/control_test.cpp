// Divergence and reconvergence, barriers of warps and blocks, calls, and what happens when nobody can go on.
#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"
#include "emulation/test_support.h"

using namespace forewarp::test;
using forewarp::InputError;
using forewarp::kWarpLanes;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Thread t stores R20:R21 at 8 t of buffer 0, for up to 128 threads in one block.
struct Threads {
  Bench bench;
  std::uint64_t executed = 0;
  Threads(const std::string& body, u32 threads = 32, int sm = 80)
      : bench("S2R R0, SR_TID.X\nMOV R1, 0x8\nIMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160]\n" + body, sm) {
    bench.block = {threads, 1, 1};
    bench.shared_bytes = 1024;
    bench.buffers = {std::vector<u64>(threads)};
  }
  Threads& run() {
    executed = bench.run();
    return *this;
  }
  u32 low(std::size_t t) const { return static_cast<u32>(bench.buffers[0][t]); }
  u32 high(std::size_t t) const { return static_cast<u32>(bench.buffers[0][t] >> 32); }
  std::string error() {
    try {
      bench.run();
    } catch (const InputError& e) {
      return e.what();
    }
    return {};
  }
};

const std::string kStore = "\nSTG.E.64 [R2.64], R20\nEXIT\n";

}  // namespace

TEST_CASE("nested branches come together again", "[control]") {
  Threads t(R"(
    ISETP.LT.AND P0, PT, R0, 0x10, PT
    LOP3.LUT R4, R0, 0x1, RZ, 0xc0, !PT
    ISETP.EQ.AND P1, PT, R4, RZ, PT
    BSSY B0, $after
    @!P0 BRA $upper
    BSSY B1, $inner_after
    @!P1 BRA $odd
    MOV R20, 0x1
    BRA $inner
  odd:
    MOV R20, 0x2
  inner:
    BSYNC B1
  inner_after:
    VOTE.ANY R21, PT, PT
    BRA $join
  upper:
    MOV R20, 0x3
  join:
    BSYNC B0
  after:
    VOTE.ANY R22, PT, PT
    IADD3 R20, R20, 0x100, RZ
    @!P0 MOV R21, R22
)" + kStore);
  t.run();
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(t.low(i) == 0x100 + (i >= 16 ? 3u : i % 2 == 0 ? 1u : 2u));
    CHECK(t.high(i) == (i < 16 ? 0x0000ffffu : 0xffffffffu));  // all that should be there were there
  }
}

TEST_CASE("loops of different length, with break and early exit", "[control]") {
  // Lane i adds 1, 2, ... i, leaving through BREAK in odd lanes; lanes 30 and 31 exit before.
  Threads t(R"(
    MOV R20, RZ
    MOV R21, RZ
    ISETP.GE.AND P0, PT, R0, 0x1e, PT
    @P0 EXIT
    MOV R4, RZ
    BSSY B0, $done
  loop:
    ISETP.GE.AND P0, PT, R4, R0, PT
    LOP3.LUT R5, R0, 0x1, RZ, 0xc0, !PT
    ISETP.NE.AND P1, PT, R5, RZ, P0
    @P1 BREAK B0
    @P1 BRA $broken
    @P0 BRA $sync
    IADD3 R4, R4, 0x1, RZ
    IADD3 R20, R20, R4, RZ
    BRA $loop
  sync:
    BSYNC B0
  done:
    VOTE.ANY R21, PT, PT
    STG.E.64 [R2.64], R20
    EXIT
  broken:
    IADD3 R20, R20, 0x1000, RZ
    STG.E.64 [R2.64], R20
    EXIT
)");
  t.run();
  for (u32 i = 0; i < 30; ++i) {
    INFO("lane " << i);
    const u32 sum = i * (i + 1) / 2;
    CHECK(t.low(i) == (i % 2 == 1 ? 0x1000 + sum : sum));
    CHECK(t.high(i) == (i % 2 == 1 ? 0u : 0x15555555u));
  }
  CHECK(t.low(30) == 0);
}

TEST_CASE("calls nest, spill their barriers and return where they came from", "[control]") {
  const Threads t = Threads(R"(
    MOV R4, R0
    LOP3.LUT R4, R4, 0x7, RZ, 0xc0, !PT
    MOV R1, c[0x0][0x28]
    MOV R20, $back
    MOV R21, RZ
    CALL.REL.NOINC $fib
  back:
    MOV R20, R4
    VOTE.ANY R21, PT, PT
    STG.E.64 [R2.64], R20
    EXIT
  fib:
    IADD3 R1, R1, -0x18, RZ
    STL [R1+0x10], R21
    STL [R1+0xc], R20
    STL [R1+0x8], R17
    STL [R1+0x4], R16
    STL [R1], R7
    BMOV.32.CLEAR R16, B6
    MOV R7, R4
    ISETP.GE.AND P0, PT, R7, 0x2, PT
    BSSY B6, $joined
    @!P0 BRA $sync
    MOV R21, RZ
    IADD3 R4, R7, -0x1, RZ
    MOV R20, $one
    CALL.REL.NOINC $fib
  one:
    MOV R17, R4
    IADD3 R4, R7, -0x2, RZ
    MOV R21, RZ
    MOV R20, $two
    CALL.REL.NOINC $fib
  two:
    IADD3 R7, R17, R4, RZ
  sync:
    BSYNC B6
  joined:
    LDL R20, [R1+0xc]
    BMOV.32 B6, R16
    MOV R4, R7
    LDL R21, [R1+0x10]
    LDL R7, [R1]
    LDL R16, [R1+0x4]
    LDL R17, [R1+0x8]
    IADD3 R1, R1, 0x18, RZ
    RET.REL.NODEC R20, 0x0
)")
                        .run();
  const u32 fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13};
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(t.low(i) == fibonacci[i % 8]);
    CHECK(t.high(i) == 0xffffffffu);
  }
}

TEST_CASE("indexed branches go through a table", "[control]") {
  // BRX prints its displacement from the next instruction: here minus that instruction's place, so R6 holds places.
  Threads t(R"(
    LOP3.LUT R4, R0, 0x3, RZ, 0xc0, !PT
    BSSY B0, $after
    ISETP.EQ.AND P0, PT, R4, RZ, PT
    ISETP.EQ.AND P1, PT, R4, 0x1, PT
    MOV R6, $other
    MOV R7, RZ
    @P0 MOV R6, $zero
    @P1 MOV R6, $one
    BRX R6, -0xc0
  zero:
    MOV R20, 0xa
    BRA $join
  one:
    MOV R20, 0xb
    BRA $join
  other:
    MOV R20, 0xc
  join:
    BSYNC B0
  after:
    VOTE.ANY R21, PT, PT
)" + kStore);
  t.run();
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(t.low(i) == (i % 4 == 0 ? 0xau : i % 4 == 1 ? 0xbu : 0xcu));
    CHECK(t.high(i) == ~0u);
  }
}

TEST_CASE("WARPSYNC joins lanes that come from different places", "[control]") {
  Threads t(R"(
    ISETP.LT.AND P0, PT, R0, 0x4, PT
    MOV R20, RZ
    @P0 BRA $few
    WARPSYNC 0xffffffff
    SHFL.BFLY PT, R20, R0, 0x1, 0x1f
    BRA $end
  few:
    IADD3 R20, R20, 0x1, RZ
    WARPSYNC 0xffffffff
    SHFL.BFLY PT, R20, R0, 0x1, 0x1f
  end:
    MOV R21, RZ
)" + kStore);
  t.run();
  for (u32 i = 0; i < 32; ++i) CHECK(t.low(i) == (i ^ 1));
}

TEST_CASE("WARPSYNC.EXCLUSIVE lets lanes of one mask pass at a time", "[control]") {
  Threads t(R"(
    LOP3.LUT R8, R0, 0x1, RZ, 0xc0, !PT
    ISETP.EQ.AND P1, PT, R8, RZ, PT
    MOV R6, 0x55555555
    @!P1 MOV R6, 0xaaaaaaaa
    ISETP.LT.AND P0, PT, R0, 0x4, PT
    MOV R21, RZ
    @P0 BRA $few
    IADD3 R21, R0, 0x0, RZ
    BRA $sum
  few:
    IADD3 R21, R0, 0x100, RZ
  sum:
    WARPSYNC.EXCLUSIVE R6
    REDUX.SUM.S32 UR4, R21
    MOV R20, UR4
    MOV R21, RZ
)" + kStore,
            32, 90);
  t.run();
  // 0 + 2 + ... + 30 and 1 + 3 + ... + 31, and 0x100 for each of the two of the first four lanes.
  for (u32 i = 0; i < 32; ++i) CHECK(t.low(i) == (i % 2 == 0 ? 240u : 256u) + 0x200u);
}

TEST_CASE("collectives run once for lanes that come from different places", "[control]") {
  Threads t(R"(
    ISETP.LT.AND P0, PT, R0, 0x4, PT
    MOV R11, R0
    MOV R6, 0xffffffff
    BSSY B0, $after
    @P0 BRA $few
    WARPSYNC.COLLECTIVE R6, $many_resume
    SHFL.BFLY P1, R20, R11, 0x5, 0x1f
    ENDCOLLECTIVE
  many_resume:
    MOV R21, 0x1
    BRA $join
  few:
    IADD3 R11, R11, 0x40, RZ
    WARPSYNC.COLLECTIVE R6, $few_resume
    SHFL.BFLY P1, R20, R11, 0x5, 0x1f
    ENDCOLLECTIVE
  few_resume:
    MOV R21, 0x2
  join:
    BSYNC B0
  after:
    VOTE.ALL R22, P2, PT
    SEL R21, R21, RZ, P2
)" + kStore,
            32, 90);
  t.run();
  for (u32 i = 0; i < 32; ++i) {
    INFO("lane " << i);
    CHECK(t.low(i) == ((i ^ 5) < 4 ? (i ^ 5) + 0x40 : (i ^ 5)));
    CHECK(t.high(i) == (i < 4 ? 2u : 1u));
  }
}

TEST_CASE("BRA.DIV asks whether the warp is together", "[control]") {
  Threads t(R"(
    MOV R21, RZ
    MOV R20, 0x1
    BRA.DIV ~URZ, $apart
    MOV R20, 0x2
  apart:
    BSSY B0, $after
    ISETP.LT.AND P0, PT, R0, 0x4, PT
    @P0 BRA $join
    MOV R21, 0x3
    BRA.DIV ~URZ, $join
    MOV R21, 0x4
  join:
    BSYNC B0
  after:
)" + kStore);
  t.run();
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(t.low(i) == 2);
    CHECK(t.high(i) == (i < 4 ? 0u : 3u));
  }
}

TEST_CASE("block barriers: all threads, named ones with counts, arrivals, reductions", "[control]") {
  // Warp w waits for values of the next warp, over shared memory.
  Threads all(R"(
    SHF.L.U32 R4, R0, 0x2, RZ
    STS [R4], R0
    BAR.SYNC.DEFER_BLOCKING 0x0
    IADD3 R5, R0, 0x20, RZ
    LOP3.LUT R5, R5, 0x7f, RZ, 0xc0, !PT
    SHF.L.U32 R5, R5, 0x2, RZ
    LDS R20, [R5]
    ISETP.GT.AND P0, PT, R0, 0x63, PT
    BAR.RED.POPC.DEFER_BLOCKING 0x0, P0
    B2R.RESULT R21
    BAR.RED.OR.DEFER_BLOCKING 0x0, !PT
    B2R.RESULT RZ, P1
    @P1 IADD3 R21, R21, 0x1000, RZ
    BAR.RED.AND.DEFER_BLOCKING 0x0, PT
    B2R.RESULT RZ, P1
    @P1 IADD3 R21, R21, 0x2000, RZ
)" + kStore,
              128);
  all.run();
  for (u32 i = 0; i < 128; ++i) {
    CHECK(all.low(i) == (i + 32) % 128);
    CHECK(all.high(i) == 28 + 0x2000);
  }
  // Warps 0 and 1 produce and go on; warps 2 and 3 wait for them, two at a time.
  Threads pairs(R"(
    SHF.R.U32.HI R4, RZ, 0x5, R0
    LOP3.LUT R5, R4, 0x1, RZ, 0xc0, !PT
    IADD3 R5, R5, 0x1, RZ
    ISETP.GE.AND P0, PT, R4, 0x2, PT
    SHF.L.U32 R6, R5, 0x2, RZ
    @P0 BRA $wait
    STS [R6], R5
    BAR.ARV R5, 0x40
    BRA $end
  wait:
    BAR.SYNC.DEFER_BLOCKING R5, 0x40
  end:
    LDS R20, [R6]
    MOV R21, RZ
)" + kStore,
                128);
  pairs.run();
  for (u32 i = 64; i < 128; ++i) CHECK(pairs.low(i) == i / 32 % 2 + 1);
}

TEST_CASE("threads that have exited are not waited for", "[control]") {
  Threads t(R"(
    ISETP.GE.AND P0, PT, R0, 0x28, PT
    @P0 EXIT
    BAR.SYNC.DEFER_BLOCKING 0x0
    BSSY B0, $after
    ISETP.LT.AND P1, PT, R0, 0x8, PT
    @P1 EXIT
    BSYNC B0
  after:
    MOV R20, 0x1
    VOTE.ANY R21, PT, PT
)" + kStore,
            96);
  t.run();
  for (std::size_t i = 0; i < 96; ++i) CHECK(t.low(i) == (i >= 8 && i < 40 ? 1u : 0u));
  CHECK(t.high(8) == 0xffffff00u);
  CHECK(t.high(32) == 0x000000ffu);
}

TEST_CASE("spinning lanes and warps let the others go on", "[control]") {
  // Lane 0 of warp 1 sets the flag that warp 0 waits for; inside a warp lane 31 sets what lane 0 waits for.
  Threads t(R"(
    ISETP.GE.AND P0, PT, R0, 0x20, PT
    MOV R4, 0x1
    @P0 BRA $set
  wait:
    LDS R5, [0x10]
    ISETP.EQ.AND P1, PT, R5, RZ, PT
    @P1 BRA $wait
    BRA $inside
  set:
    STS [0x10], R4
  inside:
    LOP3.LUT R6, R0, 0x1f, RZ, 0xc0, !PT
    ISETP.EQ.AND P1, PT, R6, 0x1f, PT
    SHF.R.U32.HI R7, RZ, 0x3, R0
    LOP3.LUT R7, R7, 0xc, RZ, 0xc0, !PT
    BSSY B0, $after
    @P1 BRA $give
  take:
    LDS R5, [R7+0x20]
    ISETP.EQ.AND P2, PT, R5, RZ, PT
    YIELD
    @P2 BRA $take
    BRA $join
  give:
    STS [R7+0x20], R4
  join:
    BSYNC B0
  after:
    MOV R20, 0x7
    VOTE.ANY R21, PT, PT
)" + kStore,
            64);
  t.bench.instruction_limit = 10'000'000;
  t.run();
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(t.low(i) == 7);
    CHECK(t.high(i) == ~0u);
  }
}

TEST_CASE("one side of a branch runs to its end before the other", "[control]") {
  // Both sides count in the same uniform register, longer than a warp's turn: ptxas does so, as the sides do not
  // interleave.
  Threads t(R"(
    ISETP.GE.AND P0, PT, R0, 0x4, PT
    MOV R20, RZ
    BSSY B0, $after
    @P0 BRA $others
    UMOV UR4, URZ
  first:
    UIADD3 UR4, UR4, 0x1, URZ
    IADD3 R20, R20, 0x1, RZ
    ISETP.LE.AND P1, PT, R20, UR4, PT
    ISETP.LT.AND P1, PT, R20, 0xc350, P1
    @P1 BRA $first
    BRA $join
  others:
    UMOV UR4, URZ
  second:
    UIADD3 UR4, UR4, 0x1, URZ
    IADD3 R20, R20, 0x1, RZ
    ISETP.LE.AND P1, PT, R20, UR4, PT
    ISETP.LT.AND P1, PT, R20, 0xea60, P1
    @P1 BRA $second
  join:
    BSYNC B0
  after:
    MOV R21, UR4
)" + kStore,
            32);
  t.bench.instruction_limit = 10'000'000;
  t.run();
  for (std::size_t i = 0; i < 32; ++i) CHECK(t.low(i) == (i < 4 ? 50000u : 60000u));
}

TEST_CASE("a deadlock says what every warp waits for", "[control]") {
  Threads half(R"(
    ISETP.LT.AND P0, PT, R0, 0x30, PT
    BSSY B0, $after
    @!P0 BRA $join
    BAR.SYNC.DEFER_BLOCKING 0x0
  join:
    BSYNC B0
  after:
)" + kStore,
               64);
  const std::string text = half.error();
  INFO(text);
  for (const char* part :
       {"deadlock", "warp 0", "warp 1", "block barrier 0", "32 of all threads", "convergence barrier B0", "BAR.SYNC"}) {
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("what never ends says where every warp goes round", "[control]") {
  Threads endless("loop:\nBRA $loop\nEXIT", 64);
  endless.bench.instruction_limit = 1000;
  const std::string text = endless.error();
  INFO(text);
  for (const char* part : {"goes on after", "warp 0, lanes 0xffffffff at 0x", "warp 1, lanes 0xffffffff at 0x", "BRA"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("what is not emulated stops a warp that reaches it, and no other", "[control]") {
  const std::string body = "ISETP.LT.AND P0, PT, R0, 0x10, PT\nMOV R20, 0x1\n@P0 BRA $done\n";
  SECTION("reached") {
    Threads t(body + "MUFU.RCP64H.FTZ R20, R20\nIPA R20, R20\n done:" + kStore);
    const std::string error = t.error();
    CHECK(error.find("thread (16,0,0)") != std::string::npos);
    CHECK(error.find("IPA R20, R20") != std::string::npos);
    CHECK(error.find("--assume-opcodes") != std::string::npos);
  }
  SECTION("passed by") {
    Threads t("ISETP.GE.AND P0, PT, R0, RZ, PT\nMOV R20, 0x1\n@P0 BRA $done\nIPA R20, R20\n done:" + kStore);
    t.run();
    CHECK(t.low(31) == 1);
  }
  SECTION("guarded") {
    Threads t("MOV R20, 0x1\n@!PT IPA R20, R20" + kStore);
    t.run();
    CHECK(t.low(0) == 1);
  }
  SECTION("a trap") {
    Threads t(body + "BPT.TRAP 0x1\n done:" + kStore);
    CHECK(t.error().find("the kernel stops itself here") != std::string::npos);
  }
  SECTION("textures, where they run") {
    Threads reached(body + "TLD.SCR.B.LZ.1D R20, R20, RZ, 0x1, 0x1\n done:" + kStore);
    CHECK(reached.error().find("textures and surfaces") != std::string::npos);
    Threads passed(body + "BRA $done\nTLD.SCR.B.LZ.1D R20, R20, RZ, 0x1, 0x1\n done:" + kStore);
    passed.run();
    CHECK(passed.low(31) == 1);
  }
}

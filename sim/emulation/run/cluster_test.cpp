// Clusters: blocks that run at the same time, meet at a barrier of their own and reach each other's shared memory.
#include <unistd.h>

#include <Eigen/Dense>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "emulation/classes/classes_support.h"
#include "emulation/run/kernels_support.h"
#include "emulation/test_support.h"
#include "trace/events.h"

using namespace forewarp;
using namespace forewarp::test;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kBlocks = 4;

// R0 = thread, R3 = block, R6 = rank, R2:R3 points to the thread's element of the result; UR6 is a barrier at offset
// 0x10 of the block's shared memory, of `ARRIVALS`.
const std::string kStart = R"(
    S2R R0, SR_TID.X
    S2R R7, SR_CTAID.X
    S2R R6, SR_CgaCtaId
    S2UR UR7, SR_CgaCtaId
    UMOV UR6, 0x410
    ULEA UR6, UR7, UR6, 0x18
    MOV R1, 0x8
    MOV R20, RZ
    MOV R21, RZ
    LEA R8, R7, R0, 0x5
    IMAD.WIDE.U32 R2, R8, R1, c[0x0][0x160]
)";
const std::string kEnd = "\nSTG.E.64 [R2.64], R20\nEXIT\n";

Bench clusters(const std::string& body, u32 arrivals = 2) {
  char barrier[96];
  std::snprintf(barrier, sizeof barrier, "UMOV UR4, 0x%x\nUMOV UR5, 0x%x\n", (0x100000u - arrivals) << 1,
                (0x100000u - arrivals) << 11);
  Bench bench(kStart + barrier + body + kEnd, 90);
  bench.grid = {kBlocks, 1, 1};
  bench.cluster = {2, 1, 1};
  bench.shared_bytes = 1024;
  bench.buffers = {std::vector<u64>(32 * kBlocks)};
  return bench;
}

std::string error_of(Bench bench) {
  try {
    bench.run();
  } catch (const InputError& e) {
    return e.what();
  }
  return {};
}

const std::string kMeet = "\nUCGABAR_ARV\nUCGABAR_WAIT\n";

// The other block's window: R10:R11 is the generic address of the thread's word there, R12 its own word's offset.
const std::string kOtherWord = R"(
    LOP3.LUT R9, R6, 0x1, RZ, 0x3c, !PT
    LEA R10, R0, 0x420, 0x2
    LEA R12, R6, R10, 0x18
    LEA R10, R9, R10, 0x18
    S2R R11, SR_SWINHI
)";

const std::string kArrive = R"(
    SYNCS.EXCH.64 URZ, [UR6], UR4
    UCGABAR_ARV
    UCGABAR_WAIT
    MOV R9, 0x410
    LEA R9, R0, R9, 0x18
    ISETP.LT.U32.AND P0, PT, R0, 0x2, PT
    @P0 SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [R9+URZ], RZ
    SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR6], RZ
    @P1 MOV R20, 0x7
)";

}  // namespace

TEST_CASE("what a block stores in another's shared memory is there behind the cluster's barrier", "[cluster]") {
  Bench bench =
      clusters(kOtherWord + "LEA R20, R7, R0, 0x8\nST.E [R10.64], R20\nMOV R20, RZ\n" + kMeet + "LDS R20, [R12]");
  bench.run();
  for (u32 block = 0; block < kBlocks; ++block)
    for (u32 t = 0; t < 32; ++t) CHECK(bench.buffers[0][32 * block + t] == ((block ^ 1) << 8 | t));
}

TEST_CASE("loads and atomics reach another block's shared memory", "[cluster]") {
  Bench bench = clusters(kOtherWord + "LEA R20, R7, R0, 0x8\nSTS [R12], R20\n" + kMeet +
                         "LD.E R20, [R10.64]\nATOM.E.ADD.STRONG.GPU PT, R21, [R10.64], R20\n" + kMeet +
                         "LDS R14, [R12]\nIADD3 R21, R14, RZ, RZ");
  bench.run();
  for (u32 block = 0; block < kBlocks; ++block) {
    const u64 other = (block ^ 1) << 8 | 5, own = block << 8 | 5;
    CHECK(bench.buffers[0][32 * block + 5] == (other | (own + own) << 32));
  }
}

TEST_CASE("lanes arrive at the barriers of several blocks", "[cluster]") {
  Bench bench = clusters(kArrive);
  bench.run();
  for (const u64 value : bench.buffers[0]) CHECK(value == 7);
}

TEST_CASE("a store completes its bytes at the barrier there", "[cluster]") {
  // The block's own arrival announces the 128 bytes that the other one's warp stores.
  Bench bench = clusters(kOtherWord + R"(
    SYNCS.EXCH.64 URZ, [UR6], UR4
    MOV R13, 0x80
    ISETP.EQ.U32.AND P0, PT, R0, RZ, PT
    @P0 SYNCS.ARRIVE.TRANS64 RZ, [UR6], R13
    UCGABAR_ARV
    UCGABAR_WAIT
    MOV R11, 0x410
    LEA R11, R9, R11, 0x18
    LEA R20, R7, R0, 0x8
    STAS [R10.64], R20
    MOV R20, RZ
    SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR6], RZ
    @P1 LDS R20, [R12]
  )",
                         1);
  bench.run();
  for (u32 block = 0; block < kBlocks; ++block) CHECK(bench.buffers[0][32 * block + 9] == ((block ^ 1) << 8 | 9));
}

TEST_CASE("a stretch of shared memory is copied to another block's", "[cluster]") {
  Bench bench = clusters(kOtherWord + R"(
    LEA R20, R7, R0, 0x8
    STS [R12], R20
    MOV R20, RZ
    SYNCS.EXCH.64 URZ, [UR6], UR4
    MOV R13, 0x80
    ISETP.EQ.U32.AND P0, PT, R0, RZ, PT
    @P0 SYNCS.ARRIVE.TRANS64 RZ, [UR6], R13
    UCGABAR_ARV
    UCGABAR_WAIT
    ULOP3.LUT UR10, UR7, 0x1, URZ, 0x3c, !UPT
    UMOV UR8, 0x4a0
    ULEA UR8, UR10, UR8, 0x18
    UMOV UR9, 0x410
    ULEA UR9, UR10, UR9, 0x18
    UMOV UR12, 0x420
    ULEA UR12, UR7, UR12, 0x18
    UMOV UR13, 0x8
    UBLKCP.S.S [UR8], [UR12], UR13
    SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR6], RZ
    @P1 LDS R20, [R12+0x80]
  )",
                         1);
  bench.run();
  for (u32 block = 0; block < kBlocks; ++block) CHECK(bench.buffers[0][32 * block + 9] == ((block ^ 1) << 8 | 9));
}

TEST_CASE("a cluster that waits for ever is described block by block", "[cluster]") {
  const std::string phase = error_of(clusters(kArrive, 3));
  CHECK_THAT(phase,
             Catch::Contains("deadlock") && Catch::Contains("block 1 of the cluster:\n  warp 0") &&
                 Catch::Contains("`SYNCS.PHASECHK.TRANS64.TRYWAIT") &&
                 Catch::Contains("waits at the barrier at shared offset 0x10 for the end of phase 0, in which 1 of "
                                 "3 arrivals"));
  const std::string barrier = error_of(clusters(R"(
    SYNCS.EXCH.64 URZ, [UR6], UR4
    ISETP.EQ.U32.AND P0, PT, R6, RZ, PT
    @P0 BRA $meets
    SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR6], RZ
  meets:
    UCGABAR_ARV
    UCGABAR_WAIT
  )"));
  CHECK_THAT(barrier, Catch::Contains("waits at the cluster's barrier, where 1 of 2 warps have not arrived") &&
                          Catch::Contains("block 1 of the cluster"));
}

TEST_CASE("a block's rank follows the cluster's shape, x fastest", "[cluster]") {
  Bench bench = clusters(
      "S2R R9, SR_CTAID.Y\nLEA R8, R9, R7, 0x2\nLEA R8, R8, R0, 0x5\n"
      "IMAD.WIDE.U32 R2, R8, R1, c[0x0][0x160]\nMOV R20, R6");
  bench.grid = {4, 4, 1};
  bench.cluster = {2, 2, 1};
  bench.buffers = {std::vector<u64>(32 * 16)};
  bench.run();
  for (u32 y = 0; y < 4; ++y)
    for (u32 x = 0; x < 4; ++x) CHECK(bench.buffers[0][32 * (4 * y + x)] == x % 2 + 2 * (y % 2));
}

TEST_CASE("a warp that has exited is not waited for", "[cluster]") {
  Bench bench = clusters("ISETP.EQ.U32.AND P0, PT, R6, RZ, PT\n@P0 EXIT\n" + kMeet + "MOV R20, 0x3");
  bench.run();
  CHECK(bench.buffers[0][0] == 0);
  CHECK(bench.buffers[0][32] == 3);
}

TEST_CASE("what is wrong about a cluster is said", "[cluster]") {
  CHECK_THAT(error_of(clusters(kOtherWord + "MOV R9, 0x2\nLEA R10, R9, 0x420, 0x18\nLD.E R20, [R10.64]")),
             Catch::Contains("belongs to block 2 of a cluster of 2"));
  CHECK_THAT(error_of(clusters(kOtherWord + "LDS R20, [R10]")), Catch::Contains("reaches its own block's"));
  CHECK_THAT(error_of(clusters("UCGABAR_ARV\nUCGABAR_ARV")), Catch::Contains("arrives at the cluster's barrier again"));
  CHECK_THAT(error_of(clusters("MOV R9, 0x410\nLOP3.LUT R6, R6, 0x1, RZ, 0x3c, !PT\nLEA R9, R6, R9, 0x18\n"
                               "SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [R9+URZ], RZ")),
             Catch::Contains("of block 1 of the cluster was not initialised"));
}

namespace {

EmulatedCase emulated(const Program& program, const Case& item) { return emulate_values(program, item, {}); }

template <class T>
std::vector<T> as(const std::vector<std::uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

TEST_CASE("kernels that use a cluster's shared memory compute what they say", "[cluster][kernels]") {
  const Program program = load_program(kTraces + "sm_90/reduce_04_clusters.cubin");
  const LaunchFile launches = read_launch_file(kTraces + "reduce_04_clusters.yaml");
  int checked = 0;
  for (const Case& item : launches.cases) {
    if (!is_check(item)) continue;
    ++checked;
    INFO(item.id);
    const Launch& launch = item.launches.front();
    const auto in = make_buffer(item.buffers[0]);
    const auto out = emulated(program, item).buffers[1];
    if (launch.kernel == "histogram_cluster") {
      std::vector<u32> bins(out.size() / 4);
      const auto values = as<u32>(in);
      for (int i = 0; i < int_argument(launch, 2); ++i) ++bins[values[static_cast<std::size_t>(i)] % bins.size()];
      CHECK(as<u32>(out) == bins);
    } else if (launch.kernel == "sum_rows_cluster") {
      const auto values = as<float>(in), sums = as<float>(out);
      const auto n = static_cast<Eigen::Index>(int_argument(launch, 2));
      for (std::size_t row = 0; row < sums.size(); ++row) {
        const Eigen::Map<const Eigen::VectorXf> all(values.data() + static_cast<Eigen::Index>(row) * n, n);
        CHECK(static_cast<double>(sums[row]) == Approx(all.cast<double>().sum()).margin(1e-4));
      }
    } else {
      const auto values = as<float>(in), turned = as<float>(out);
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(turned[i] == values[i ^ 128]);
    }
  }
  CHECK(checked == 6);
}

TEST_CASE("blocks of a rank make a class", "[cluster]") {
  const Program program = load_program(kTraces + "sm_90/matmul_24_cluster_multicast.cubin");
  Case item = read_launch_file(kTraces + "matmul_24_cluster_multicast.yaml").cases.front();
  item.launches.front().grid = {4, 2, 1};
  for (Argument& argument : item.launches.front().arguments)
    if (argument.kind == ArgumentKind::I32) argument = Argument::scalar(ArgumentKind::I32, 512);
  const auto trace = trace_launch(program, item, 0, {});
  REQUIRE(trace->classes.size() == 2);
  u64 multicasts = 0, arrivals = 0;
  for (const BlockClass& c : trace->classes) {
    CHECK(c.population == 4);
    const EventTable events(*trace->kernel);
    for (const WarpTrace& warp : c.warps) {
      WarpCursor(c.paths[warp.path], warp)
          .for_each_record(events, [&](u32, const TraceEvent& event, auto records, u64) {
            if (event.kind == EventKind::Transfer) multicasts += blocks_of(trace->patterns[records[1].pattern]) == 3;
            if (event.kind == EventKind::Phase) arrivals += blocks_of(trace->patterns[records[0].pattern]) == 3;
            return true;
          });
    }
  }
  CHECK(multicasts == 2 * 2 * 8);      // two panels a tile
  CHECK(arrivals == 2 * 2 * (8 - 1));  // of two groups, for every tile but the last
}

namespace {

Program launches_program() {
  return load_program(std::string(FOREWARP_SOURCE_DIR) + "/sim/program/testdata/launches_sm90a.cubin");
}

LaunchFile launch_file(const std::string& text) {
  const auto path = (std::filesystem::temp_directory_path() / ("cluster_test_" + std::to_string(::getpid()))).string();
  write_file(path, text);
  LaunchFile file = read_launch_file(path);
  std::filesystem::remove(path);
  return file;
}

std::string launch_of(const std::string& kernel, const std::string& grid, const std::string& cluster) {
  return "c: {kernel: " + kernel + ", grid: " + grid + ", block: [64]" +
         (cluster.empty() ? "" : ", cluster: " + cluster) +
         ", buffers: {out: {bytes: 65536, fill: zero}}, args: [{pointer: out}]}\n";
}

}  // namespace

TEST_CASE("indices of clusters are followed from block to block", "[cluster]") {
  const Program program = launches_program();
  const struct {
    const char *grid, *cluster;
    std::size_t ranks;
  } launches[] = {{"[48, 2]", "[2]", 2}, {"[12, 8]", "[2, 2]", 4}, {"[45]", "[3]", 3}, {"[7, 6]", "[7, 2]", 14}};
  for (const auto& [grid, cluster, ranks] : launches) {
    INFO(grid << " in clusters of " << cluster);
    const LaunchFile file = launch_file(launch_of("by_cluster", grid, cluster));
    const Case& item = file.cases.front();
    const Launch& launch = item.launches.front();
    const auto out = as<u32>(emulated(program, item).buffers[0]);
    for (u32 y = 0; y < launch.grid.y; ++y)
      for (u32 x = 0; x < launch.grid.x; ++x) {
        const u32 inside = x % launch.cluster.x + y % launch.cluster.y * 16;
        CHECK(out[(y * launch.grid.x + x) * 64] == inside + x / launch.cluster.x * 256 + y / launch.cluster.y * 65536);
      }
    TraceOptions each;
    each.block_classes = false;
    each.all_values = true;
    const auto truth = trace_launch(program, item, 0, each);
    const auto trace = trace_launch(program, item, 0, {});
    CHECK(wrong_blocks(*trace, *truth) == 0);
    CHECK(trace->classes.size() == ranks);
  }
}

TEST_CASE("a kernel that declares clusters is launched in them", "[cluster]") {
  const Program program = launches_program();
  CHECK(program.kernel("declared_clusters").cluster == Dim3{2, 2, 1});
  CHECK(program.kernel("by_cluster").cluster.count() == 0);
  const auto settled = [&](const std::string& grid, const std::string& cluster) {
    LaunchFile file = launch_file(launch_of("declared_clusters", grid, cluster));
    settle_clusters(program, file);
    return file.cases.front();
  };
  CHECK(settled("[4, 4]", "").launches.front().cluster == Dim3{2, 2, 1});
  CHECK(settled("[4, 4]", "[2, 2]").launches.front().cluster == Dim3{2, 2, 1});
  CHECK_THROWS_WITH(settled("[4, 4]", "[2]"),
                    Catch::Contains("is compiled for clusters of [2, 2, 1] blocks (__cluster_dims__), but the launch "
                                    "gives [2, 1, 1]") &&
                        Catch::Contains("leave `cluster` out"));
  CHECK_THROWS_WITH(settled("[4, 3]", ""), Catch::Contains("which do not divide the grid"));
  CHECK(as<u32>(emulated(program, settled("[4, 4]", "")).buffers[0])[64 * 5] == 17);  // block (1, 1)
}

namespace {

const std::string kMap = "pointer: data, type: u32, shape: [32, 32], strides: [128], box: [32, 4]";

/// What copy_by_map leaves of words 0, 1, 2, ... by maps that begin so many words further on.
void check_copied(const std::vector<std::uint8_t>& bytes, const std::vector<u32>& starts) {
  const auto words = as<u32>(bytes);
  for (std::size_t block = 0; block < starts.size(); ++block)
    for (u32 i = 0; i < 128; ++i) CHECK(words[block * 128 + i] == starts[block] + 2 * 32 + i);
}

}  // namespace

TEST_CASE("tensor maps may lie in global memory", "[cluster]") {
  const Program program = launches_program();
  const auto run = [&](const std::string& launches, const std::string& more = "") {
    return launch_file("c: {buffers: {data: {bytes: 8192, fill: iota}, out: {bytes: 1024, fill: zero}" + more + "}, " +
                       launches + "}\n")
        .cases.front();
  };
  const std::string rest = "{pointer: out}, {i32: 2}]";
  // A buffer of them: each block reads its own.
  const Case table = run("kernel: copy_by_map, grid: [2], block: [32], args: [{pointer: maps}, " + rest,
                         ", maps: {bytes: 256, fill: {tensor_maps: [{" + kMap + "}, {" + kMap + ", offset: 4096}]}}");
  check_copied(emulated(program, table).buffers[1], {0, 1024});
  TraceOptions each;
  each.block_classes = false;
  each.all_values = true;
  CHECK(wrong_blocks(*trace_launch(program, table, 0, {}), *trace_launch(program, table, 0, each)) == 0);
  // One that is passed by pointer, twice the same, lies in a buffer of its own.
  const std::string by_pointer =
      "{kernel: copy_by_map, grid: [1], block: [32], args: [{tensor_map: {" + kMap + ", by: pointer}}, " + rest + "}";
  const Case passed = run("launches: [" + by_pointer + ", " + by_pointer + "]");
  CHECK(passed.buffers.size() == 3);
  check_copied(emulated(program, passed).buffers[1], {0});
  // One that a kernel copies to where the next one reads it.
  const std::string from_copy = "{kernel: copy_by_map, grid: [1], block: [32], args: [{pointer: place}, " + rest + "}";
  const std::string copies = "{kernel: copy_of_map, grid: [1], block: [32], args: [{tensor_map: {" + kMap +
                             ", by: pointer}}, {pointer: place}]}";
  const Case copied = run("launches: [" + copies + ", " + from_copy + "]", ", place: {bytes: 128, fill: zero}");
  check_copied(emulated(program, copied).buffers[1], {0});
  CHECK(trace_launch(program, copied, 1, {})->totals().size() > 0);
  const Case none = run("launches: [" + from_copy + "]", ", place: {bytes: 128, fill: zero}");
  CHECK_THROWS_WITH(emulated(program, none), Catch::Contains("there is no tensor map at"));
  const Case askew = run("kernel: copy_by_map, grid: [1], block: [32], args: [{pointer: maps, offset: 16}, " + rest,
                         ", maps: {bytes: 256, fill: {tensor_maps: [{" + kMap + "}, {" + kMap + "}]}}");
  CHECK_THROWS_WITH(emulated(program, askew), Catch::Contains("is not aligned to 64 bytes"));
}

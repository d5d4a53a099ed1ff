#include "report/profile.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "report/suites.h"

using namespace forewarp;
using Catch::Contains;

namespace {

/// A file that goes away again.
class Scratch {
 public:
  explicit Scratch(const std::string& text, const std::string& suffix = ".csv")
      : path_((std::filesystem::temp_directory_path() / ("forewarp_report_test" + suffix)).string()) {
    write_file(path_, text);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const std::string kHeader =
    "# gpu: made by hand\n"
    "case,launch,kernel,grid,block,gpc__cycles_elapsed.max,gpc__cycles_elapsed.max:min,gpc__cycles_elapsed.max:max,"
    "gpc__cycles_elapsed.max:runs,warm:gpc__cycles_elapsed.max,dram__bytes_read.sum\n";

}  // namespace

TEST_CASE("profiles give medians, spans and counters") {
  const Scratch file(kHeader + "a,0,\"k<1,2>\",1 1 1,32 1 1,1000,990,1010,5,800,4096\na,1,k,1 1 1,32 1 1,,,,,,\n");
  const auto cold = read_profile(file.path(), "stem", CacheState::Cold);
  REQUIRE(cold.size() == 1);  // the second row was never measured
  CHECK(cold[0].kernel == "k<1,2>");
  CHECK(cold[0].cycles == 1000);
  CHECK(cold[0].cycles_min == 990);
  CHECK(cold[0].cycles_max == 1010);
  CHECK(cold[0].metric("dram__bytes_read.sum") == 4096.0);
  CHECK_FALSE(cold[0].metric("gpc__cycles_elapsed.max:min"));
  const auto warm = read_profile(file.path(), "stem", CacheState::Warm);
  REQUIRE(warm.size() == 1);
  CHECK(warm[0].cycles == 800);
  CHECK_FALSE(warm[0].metric("dram__bytes_read.sum"));
}

TEST_CASE("profiles with mistakes name the line") {
  CHECK_THROWS_WITH(read_profile(Scratch(kHeader + "a,0\n").path(), "s", CacheState::Cold),
                    Contains(":3") && Contains("2 columns"));
  CHECK_THROWS_WITH(read_profile(Scratch(kHeader + "a,0,k,g,b,fast,1,1,1,1,1\n").path(), "s", CacheState::Cold),
                    Contains("'fast', not a finite number"));
  for (const std::string cycles : {"nan", "inf", "-inf"})
    CHECK_THROWS_WITH(
        read_profile(Scratch(kHeader + "a,0,k,g,b," + cycles + ",1,1,1,1,1\n").path(), "s", CacheState::Cold),
        Contains("not a finite number"));
  CHECK_THROWS_WITH(read_profile(Scratch("case,gpc__cycles_elapsed.max\na,1\n").path(), "s", CacheState::Cold),
                    Contains("no column kernel"));
  CHECK_THROWS_AS(read_profile(Scratch("").path(), "s", CacheState::Cold), InputError);
}

TEST_CASE("a launch's class follows from its counters") {
  using Metrics = std::vector<std::pair<std::string, double>>;
  const auto of = [](double lanes, double bytes, double compute, double memory) {
    return classify_kernel(Metrics{{"smsp__thread_inst_executed_per_inst_executed.ratio", lanes},
                                   {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 300},
                                   {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", bytes},
                                   {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 100},
                                   {"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio", 32},
                                   {"sm__throughput.avg.pct_of_peak_sustained_elapsed", compute},
                                   {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", memory}});
  };
  CHECK(of(32, 32, 20, 90) == KernelClass::Memory);
  CHECK(of(32, 32, 95, 90) == KernelClass::Compute);
  CHECK(of(32, 32, 59, 30) == KernelClass::Latency);
  CHECK(of(23, 4, 95, 90) == KernelClass::Divergent);
  CHECK(of(32, 10, 95, 90) == KernelClass::Strided);  // 15.5 bytes over loads and stores
  CHECK(of(32, 11, 95, 90) == KernelClass::Compute);  // 16.25
  CHECK_FALSE(classify_kernel(Metrics{{"sm__throughput.avg.pct_of_peak_sustained_elapsed", 90}}));
}

TEST_CASE("a third of the swept cases is sealed, by their names") {
  CHECK(is_sealed("made.sweep", "g"));
  CHECK_FALSE(is_sealed("made.sweep", "j"));
  CHECK_FALSE(is_sealed("made", "g"));
  int sealed = 0;
  for (int i = 0; i < 3000; ++i) sealed += is_sealed("made.sweep", "case_" + std::to_string(i)) ? 1 : 0;
  CHECK(sealed > 900);
  CHECK(sealed < 1100);
}

TEST_CASE("suites are read strictly") {
  const std::string good =
      "ladder:\n  title: A ladder\n  gpu: h200-sxm\n  cache: cold\n  traces:\n    - all_of_it\n"
      "    - {stem: some, cases: [a, b]}\n  tolerance: {mean_pct: 20, worst_pct: 90}\n";
  {
    const Scratch file(good, ".yaml");
    const auto suites = read_suites(file.path());
    REQUIRE(suites.size() == 1);
    CHECK(suites[0].traces[0].cases.empty());
    CHECK(suites[0].traces[1].cases == std::vector<std::string>{"a", "b"});
    CHECK(suites[0].tolerance.worst_pct == 90);
    CHECK(suites[0].tolerance.p90_pct == 0);
    CHECK(suites[0].part == SuitePart::LookedAt);
    CHECK_THROWS_WITH(find_suite(suites, "other", "suites.yaml"), Contains("'other'") && Contains("ladder"));
  }
  CHECK(read_suites(Scratch(good + "  part: sealed\n", ".yaml").path())[0].part == SuitePart::Sealed);
  CHECK_THROWS_WITH(read_suites(Scratch(good + "  part: open\n", ".yaml").path()), Contains("looked_at"));
  CHECK_THROWS_WITH(read_suites(Scratch(good + "  tolerence: 3\n", ".yaml").path()), Contains("tolerence"));
}

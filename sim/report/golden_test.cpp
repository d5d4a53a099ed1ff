// Whole reports of a hand-made launch, byte by byte. After an intended change, run the tests once with
// FOREWARP_APPROVE=1 and review the diff of the golden files.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "report/comparison.h"
#include "report/json.h"
#include "report/test_support.h"
#include "report/text.h"
#include "report/validation.h"

using namespace forewarp;

namespace {

void check_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(FOREWARP_SOURCE_DIR) + "/sim/report/golden/" + name;
  if (std::getenv("FOREWARP_APPROVE") != nullptr) write_file(path, text);
  CHECK(text == read_text_file(path));
}

Prediction second_launch() {
  Prediction p = testing::small_prediction();
  p.launch = 1;
  p.warnings = {"made by hand"};
  p.coverage.extrapolated = true;
  return p;
}

MeasuredLaunch measured(int launch, double cycles) {
  MeasuredLaunch m;
  m.stem = "hand_01_made";
  m.case_id = "hand_made";
  m.kernel = "_Z5smallPf";
  m.launch = launch;
  m.cycles = cycles;
  m.cycles_min = cycles - 10;
  m.cycles_max = cycles + 20;
  m.metrics = {{"smsp__inst_executed.sum", 120},
               {"dram__bytes_read.sum", 12800},
               {"lts__t_sector_hit_rate.pct", 24},
               {"unknown__metric.sum", 1}};
  return m;
}

}  // namespace

TEST_CASE("a launch as text") { check_golden("launch.txt", write_text(std::vector{testing::small_prediction()})); }

TEST_CASE("a launch as JSON") {
  check_golden("launch.json", write_json(testing::small_gpu(), std::vector{testing::small_prediction()}));
}

TEST_CASE("several launches as text") {
  check_golden("launches.txt", write_text(std::vector{testing::small_prediction(), second_launch()}));
}

TEST_CASE("a validation as text and JSON") {
  Suite suite;
  suite.name = "hand";
  suite.title = "made by hand";
  suite.gpu = "small";
  suite.tolerance = {10, 0, 50};
  const std::vector<PredictedTrace> traces{{"hand_01_made", {testing::small_prediction(), second_launch()}}};
  const std::vector<MeasuredLaunch> list{measured(0, 1900), measured(1, 2600)};
  const Validation v = validate(suite, "small", traces, list, {{"hand_02_broken", "broken", "no such kernel"}});
  REQUIRE(v.launches.size() == 2);
  CHECK(v.violations.size() == 2);  // the mean, and the case that failed
  check_golden("validation.txt", write_validation_text(v));
  check_golden("validation.json", write_validation_json(v));
}

TEST_CASE("a sealed suite says nothing of single launches") {
  Suite suite;
  suite.part = SuitePart::Sealed;
  const std::vector<PredictedTrace> traces{{"hand_01_made", {testing::small_prediction(), second_launch()}}};
  const std::vector<MeasuredLaunch> list{measured(0, 1900), measured(1, 2600)};
  const Validation v = validate(suite, "small", traces, list, {});
  CHECK(v.cycles.cases == 2);
  for (const std::string& text : {write_validation_text(v), write_validation_json(v)}) {
    CHECK(text.find(list[0].case_id) == std::string::npos);
    CHECK(text.find("1900") == std::string::npos);
    CHECK(text.find("2600") == std::string::npos);
  }
}

TEST_CASE("GPUs side by side as text") {
  std::vector<ComparedGpu> gpus(2);
  gpus[0] = {"small", {testing::small_prediction(), second_launch()}, {measured(0, 1900)}};
  gpus[1] = {"other", {testing::small_prediction()}, {}};
  check_golden("comparison.txt", write_comparison_text("Made by hand", gpus));
}

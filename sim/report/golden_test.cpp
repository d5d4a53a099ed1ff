// Whole reports of a hand-made launch, byte by byte. After an intended change, run the tests once with
// FOREWARP_APPROVE=1 and review the diff of the golden files.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "report/comparison.h"
#include "report/format.h"
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

/// Without the codes of tones.
std::string plain(std::string text) {
  for (std::size_t at = 0; at < text.size();)
    if (const std::size_t code = Style(true).code_length(std::string_view(text).substr(at)); code > 0)
      text.erase(at, code);
    else
      ++at;
  return text;
}

bool has(const std::string& text, Tone tone, const std::string& words) {
  return text.find(Style(true).paint(tone, words)) != std::string::npos;
}

}  // namespace

TEST_CASE("a launch as text") { check_golden("launch.txt", write_text(std::vector{testing::small_prediction()})); }

TEST_CASE("a launch as JSON") {
  check_golden("launch.json", write_json(testing::small_gpu(), std::vector{testing::small_prediction()}));
}

TEST_CASE("colour changes nothing but the colour") {
  const std::vector<Prediction> one{testing::small_prediction()}, two{testing::small_prediction(), second_launch()};
  for (const auto& list : {one, two}) {
    const std::string coloured = write_text(list, Style(true));
    CHECK(coloured.size() > write_text(list).size());
    CHECK(plain(coloured) == write_text(list));
  }
  CHECK(has(write_text(one, Style(true)), Tone::Heading, "GPU speed of light"));
  CHECK(has(write_text(two, Style(true)), Tone::Verdict, cause_title(two.front().bottleneck.kind)));
  const std::vector<ComparedGpu> gpus{{"small", two, {measured(0, 1900)}}};
  CHECK(plain(write_comparison_text("Made by hand", gpus, Style(true))) == write_comparison_text("Made by hand", gpus));
}

TEST_CASE("errors beyond a suite's tolerance are coloured") {
  Suite suite;
  const std::vector<PredictedTrace> traces{{"hand_01_made", {testing::small_prediction(), second_launch()}}};
  const std::vector<MeasuredLaunch> list{measured(0, 1900), measured(1, 2600)};
  const auto errors = [&](Tolerance tolerance) {
    suite.tolerance = tolerance;
    const Validation v = validate(suite, "small", traces, list, {});
    const std::string text = write_validation_text(v, Style(true));
    std::size_t red = 0, yellow = 0;
    for (const ValidatedLaunch& l : v.launches) {
      const double difference = 100 * (l.predicted->cycles() - l.measured->cycles) / l.measured->cycles;
      const std::string cell = (difference >= 0 ? "+" : "") + report::percent_text(difference);
      red += has(text, Tone::Error, cell);
      yellow += has(text, Tone::Warning, cell);
    }
    return std::pair{red, yellow};
  };
  CHECK(errors({0, 0, 0}) == std::pair<std::size_t, std::size_t>{0, 0});
  CHECK(errors({0, 0.01, 0}) == std::pair<std::size_t, std::size_t>{0, 2});
  CHECK(errors({0, 0.01, 0.02}) == std::pair<std::size_t, std::size_t>{2, 0});
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
  const std::string coloured = write_validation_text(v, Style(true));
  CHECK(plain(coloured) == write_validation_text(v));
  CHECK(has(coloured, Tone::Heading, "Error of the cycles"));
  CHECK(has(coloured, Tone::Error, "OUTSIDE TOLERANCE:"));
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

#include "report/published.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "report/test_support.h"

using namespace forewarp;
using Catch::Contains;

namespace {

const std::string kRow =
    "- id: a\n  gpu: g\n  stem: s\n  case: c\n  launch: 0\n  published: 14.2\n  unit: TFLOP/s\n  work: 2000\n"
    "  source: \"somebody\"\n  differs: \"nothing\"\n";

std::vector<PublishedRow> read(const std::string& text) {
  const std::string path = (std::filesystem::temp_directory_path() / "forewarp_published_test.yaml").string();
  write_file(path, text);
  return read_published(path);
}

}  // namespace

TEST_CASE("published rows are read strictly and say whence they come") {
  const auto rows = read(kRow);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].published == 14.2);
  CHECK(rows[0].source == "somebody");
  CHECK(rows[0].sm_clock_mhz == 0);
  CHECK(read(kRow + "  sm_clock_mhz: 1200\n")[0].sm_clock_mhz == 1200);
  CHECK_THROWS_WITH(read(kRow + "  note: x\n"), Contains("note"));
  CHECK_THROWS_WITH(read(kRow.substr(0, kRow.find("  source"))), Contains("source"));
}

TEST_CASE("a prediction is put into the row's unit") {
  const PredictedTime time{4000, 2000, 2.5, 0.5};
  PublishedRow row;
  row.work = 1000;
  row.unit = PublishedUnit::GigabytesPerSecond;
  CHECK(predicted_value(row, time) == Approx(0.5));
  row.unit = PublishedUnit::TeraflopsPerSecond;
  CHECK(predicted_value(row, time) == Approx(0.0005));
  row.unit = PublishedUnit::Cycles;
  CHECK(predicted_value(row, time) == Approx(4));
  // A stream of launches: as long as one, unless that is shorter than the host's gap.
  row.work = 1;
  row.unit = PublishedUnit::MicrosecondsALaunch;
  CHECK(predicted_value(row, time) == Approx(2.5));
  CHECK(predicted_value(row, {4000, 6000, 2.5, 0.5}) == Approx(6.5));
}

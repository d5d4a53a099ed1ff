#include "report/published.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "config/config.h"
#include "report/accuracy.h"
#include "report/case_json.h"
#include "report/format.h"
#include "report/table.h"

namespace forewarp {

namespace {

using report::fixed;
using report::percent_text;
using report::signed_percent;
using report::Table;

constexpr std::array<const char*, 5> kUnits = {"us", "GB/s", "TFLOP/s", "cycles", "us/launch"};

PublishedRow read_row(const config::Node& node) {
  PublishedRow r;
  node.read_map([&](config::Map& m) {
    r.id = m.at("id").string();
    r.gpu = m.at("gpu").string();
    r.stem = m.at("stem").string();
    if (const auto n = m.find("low")) r.low = n->string();
    r.case_id = m.at("case").string();
    const config::Node launch = m.at("launch");
    r.launch = launch.string() == "all" ? PublishedRow::kAllLaunches : static_cast<int>(launch.integer(0, 100000));
    if (const auto n = m.find("sm_clock_mhz")) r.sm_clock_mhz = n->number(100, 10000);
    r.published = m.at("published").number(1e-9, 1e15);
    r.unit = static_cast<PublishedUnit>(m.at("unit").choice({kUnits[0], kUnits[1], kUnits[2], kUnits[3], kUnits[4]}));
    r.work = m.at("work").number(1e-9, 1e18);
    r.source = m.at("source").string();
    r.differs = m.at("differs").string();
  });
  return r;
}

const char* unit_name(const PublishedRow& r) { return kUnits[static_cast<std::size_t>(r.unit)]; }

}  // namespace

std::vector<PublishedRow> read_published(const std::string& path) {
  std::vector<PublishedRow> rows;
  for (const config::Node& node : config::read_file(path).list(1)) rows.push_back(read_row(node));
  return rows;
}

double predicted_value(const PublishedRow& r, const PredictedTime& time) {
  const auto& [cycles, ns, stream_gap_us, hand_over_us] = time;
  switch (r.unit) {
    case PublishedUnit::Microseconds:
      return ns / 1e3 / r.work;
    case PublishedUnit::GigabytesPerSecond:
      return r.work / ns;
    case PublishedUnit::TeraflopsPerSecond:
      return r.work / ns / 1e3;
    case PublishedUnit::Cycles:
      return cycles / r.work;
    case PublishedUnit::MicrosecondsALaunch:
      return std::max(stream_gap_us, hand_over_us + ns / 1e3) / r.work;
  }
  return 0;
}

std::string write_published_text(const std::vector<PublishedResult>& all, Style style) {
  std::string out =
      style.paint(Tone::Heading, "forewarp " FOREWARP_VERSION "  published measurements of A100 and H100") + "\n\n";
  Table t({{"row", Table::Left},
           {"GPU model", Table::Left},
           {"published", Table::Right},
           {"predicted", Table::Right},
           {"unit", Table::Left},
           {"error", Table::Right},
           {"source", Table::Left},
           {"what differs", Table::Left}});
  std::map<std::string, std::vector<double>> errors;
  std::vector<double> list;
  for (const PublishedResult& r : all) {
    const bool failed = !r.failure.empty();
    t.row({r.row.id, r.row.gpu, fixed(r.row.published, 1), failed ? "-" : fixed(r.predicted, 1), unit_name(r.row),
           failed ? "-" : signed_percent(r.predicted, r.row.published), r.row.source, r.row.differs});
    if (failed) continue;
    errors[r.row.gpu].push_back(error_pct(r.predicted, r.row.published));
    list.push_back(errors[r.row.gpu].back());
  }
  out += t.text("  ", style) + "\n";
  const auto line = [&](const std::string& name, std::vector<double> of) {
    const ErrorSummary e = summarize(std::move(of));
    out += "  " + style.paint(Tone::Heading, name + ":") + " " + std::to_string(e.cases) + " rows, mean error " +
           percent_text(e.mean) + ", median " + percent_text(e.median) + ", 90th percentile " + percent_text(e.p90) +
           ", worst " + percent_text(e.worst) + "\n";
  };
  for (auto& [gpu, of] : errors) line(gpu, of);
  line("all", list);
  for (const PublishedResult& r : all)
    if (!r.failure.empty()) out += style.paint(Tone::Error, "FAILED") + " " + r.row.id + ": " + r.failure + "\n";
  return out;
}

std::string write_published_json(const std::vector<PublishedResult>& all, const std::vector<std::string>& changes) {
  using Json = nlohmann::ordered_json;
  Json j{{"forewarp", FOREWARP_VERSION}, {"suite", "published"}};
  report::add_changes(changes, j);
  j["rows"] = Json::array();
  for (const PublishedResult& r : all) {
    Json row{
        {"id", r.row.id},           {"gpu", r.row.gpu},       {"case", r.row.case_id},   {"published", r.row.published},
        {"unit", unit_name(r.row)}, {"source", r.row.source}, {"differs", r.row.differs}};
    if (r.failure.empty()) {
      row["predicted"] = r.predicted;
      row["error_pct"] = error_pct(r.predicted, r.row.published);
    } else {
      row["failure"] = r.failure;
    }
    j["rows"].push_back(std::move(row));
  }
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace forewarp

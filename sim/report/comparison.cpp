#include "report/comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/accuracy.h"
#include "report/case_json.h"
#include "report/format.h"
#include "report/table.h"

namespace forewarp {

namespace {

using report::fixed;
using report::percent_text;
using report::Table;

const MeasuredLaunch* find_measured(const ComparedGpu& gpu, const Prediction& p) {
  const auto found = std::find_if(gpu.measured.begin(), gpu.measured.end(), [&](const MeasuredLaunch& m) {
    return m.case_id == p.case_id && m.launch == p.launch;
  });
  return found == gpu.measured.end() ? nullptr : &*found;
}

const Prediction* find_launch(const ComparedGpu& gpu, const Prediction& row) {
  const auto found = std::find_if(gpu.predictions.begin(), gpu.predictions.end(), [&](const Prediction& p) {
    return p.case_id == row.case_id && p.launch == row.launch;
  });
  return found == gpu.predictions.end() ? nullptr : &*found;
}

/// Each launch once, in order of the first GPU that has it.
std::vector<const Prediction*> all_launches(const std::vector<ComparedGpu>& gpus) {
  std::vector<const Prediction*> all;
  for (const ComparedGpu& gpu : gpus)
    for (const Prediction& p : gpu.predictions)
      if (std::none_of(all.begin(), all.end(),
                       [&](const Prediction* seen) { return seen->case_id == p.case_id && seen->launch == p.launch; }))
        all.push_back(&p);
  return all;
}

std::string divergence_cell(const Prediction& p) {
  return fixed(p.divergence.enabled_lanes, 1) + ", " + percent_text(p.metrics.get("forewarp__divergent_branches.pct"));
}

/// A kernel's name without its parameters.
std::string short_name(const std::string& kernel) { return kernel.substr(0, kernel.find('(')); }

void add_row(Table& t, const ComparedGpu& gpu, const Prediction& p, bool first, bool measured) {
  const MeasuredLaunch* m = find_measured(gpu, p);
  std::vector<Table::Cell> cells{first ? report::launch_label(p) : "",
                                 first ? short_name(p.kernel) : "",
                                 gpu.gpu,
                                 fixed(p.cycles(), 0),
                                 report::duration(p.time_ns()),
                                 {cause_title(p.bottleneck.kind), Tone::Verdict},
                                 p.roofline.attained == 0 ? "-" : report::si(p.roofline.attained, "FLOP/s"),
                                 report::roofline_position(p),
                                 percent_text(p.metrics.get("forewarp__wasted_sectors.pct")),
                                 divergence_cell(p),
                                 fixed(p.occupancy.waves, 2),
                                 report::top_stall(p)};
  if (measured) {
    cells.emplace_back(m == nullptr ? "" : fixed(m->cycles, 0));
    cells.emplace_back(m == nullptr ? "" : report::signed_percent(p.cycles(), m->cycles));
  }
  t.row(std::move(cells));
}

}  // namespace

std::string write_comparison_text(const std::string& title, const std::vector<ComparedGpu>& gpus, Style style) {
  std::string out = style.paint(Tone::Heading, "forewarp " FOREWARP_VERSION "  " + title) + "\n\n";
  if (gpus.empty()) return out;
  std::vector<Table::Column> columns{{"case", Table::Left},
                                     {"kernel", Table::Left},
                                     {"GPU", Table::Left},
                                     {"cycles", Table::Right},
                                     {"time", Table::Right},
                                     {"bound by", Table::Left},
                                     {"rate", Table::Right},
                                     {"roofline", Table::Right},
                                     {"wasted sectors", Table::Right},
                                     {"lanes, divergent", Table::Right},
                                     {"waves", Table::Right},
                                     {"top stall", Table::Left}};
  const bool measured = std::any_of(gpus.begin(), gpus.end(), [](const ComparedGpu& g) { return !g.measured.empty(); });
  if (measured) {
    columns.push_back({"measured cycles", Table::Right});
    columns.push_back({"error", Table::Right});
  }
  Table t(std::move(columns));
  std::vector<std::vector<double>> errors(gpus.size());
  for (const Prediction* row : all_launches(gpus)) {
    bool first = true;
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      const Prediction* p = find_launch(gpus[g], *row);
      if (p == nullptr) continue;
      add_row(t, gpus[g], *p, first, measured);
      first = false;
      if (const MeasuredLaunch* m = find_measured(gpus[g], *p)) errors[g].push_back(error_pct(p->cycles(), m->cycles));
    }
  }
  out += t.text("", style);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const ErrorSummary e = summarize(errors[g]);
    if (e.cases == 0) continue;
    out += "\n" + style.paint(Tone::Heading, gpus[g].gpu + ":") + " " + std::to_string(e.cases) +
           (e.cases == 1 ? " launch" : " launches") + " measured; error of the predicted cycles: mean " +
           percent_text(e.mean) + ", median " + percent_text(e.median) + ", 90th percentile " + percent_text(e.p90) +
           ", worst " + percent_text(e.worst) + "\n";
  }
  return out;
}

std::string write_comparison_json(const std::vector<ComparedGpu>& gpus) {
  using Json = nlohmann::ordered_json;
  Json j;
  j["forewarp"] = FOREWARP_VERSION;
  j["gpus"] = Json::array();
  for (const ComparedGpu& gpu : gpus) {
    Json of_gpu;
    of_gpu["gpu"] = gpu.gpu;
    if (!gpu.predictions.empty()) report::add_changes(gpu.predictions.front().gpu_changes, of_gpu);
    if (!gpu.predictions.empty()) of_gpu["machine"] = report::machine_json(gpu.predictions.front());
    of_gpu["cases"] = Json::array();
    for (const Prediction& p : gpu.predictions) {
      Json c{{"id", p.case_id}, {"launch", p.launch}, {"kernel", p.kernel}};
      report::add_launch_json(p, c);
      if (const MeasuredLaunch* m = find_measured(gpu, p)) {
        c["measured_cycles"] = m->cycles;
        c["error_pct"] = error_pct(p.cycles(), m->cycles);
        c["counters"] = Json::object();
        for (const auto& [name, value] : m->metrics)
          if (const auto predicted = p.metrics.find(name))
            c["counters"][name] = {{"measured", value}, {"predicted", *predicted}};
      }
      of_gpu["cases"].push_back(std::move(c));
    }
    j["gpus"].push_back(std::move(of_gpu));
  }
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace forewarp

#include "sweep/results.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

using namespace forewarp;
using namespace forewarp::sweep;
using Catch::Matchers::Contains;

namespace {

std::string launch(double time, double cycles, double ratio) {
  const nlohmann::ordered_json j{{"metrics",
                                  {{"gpu__time_duration.sum", time},
                                   {"gpc__cycles_elapsed.max", cycles},
                                   {"smsp__issue_active.avg.per_cycle_active", ratio}}},
                                 {"cycles_interval_95", {cycles - 1, cycles + 1}},
                                 {"gpu", "h200-sxm"},
                                 {"bound_by", "latency"},
                                 {"warnings", nlohmann::ordered_json::array()}};
  return j.dump();
}

SweepFile file_of(std::size_t points) {
  const config::Node root = config::parse("a: 1", "sweep.yaml");
  SweepFile file{.path = "sweep.yaml", .title = "Sizes", .kind = "kernel", .what = root, .gpu = root};
  file.variables = {"n"};
  file.best = {"gpu__time_duration.sum", false};
  for (std::size_t i = 0; i < points; ++i) file.points.push_back({{"n", std::to_string(i), static_cast<double>(i)}});
  return file;
}

}  // namespace

TEST_CASE("rows keep the sweep's order, and the best is named first", "[sweep]") {
  SweepFile file = file_of(3);
  file.derive = {{"rate", "(n + 1) * 100 / gpu__time_duration.sum"}, {"twice", "2 * rate"}};
  const Results r = make_results(file, {{"[" + launch(50, 99, 0.5) + "]", ""},
                                        {"", "does not fit\n  take fewer threads"},
                                        {"[" + launch(40, 80, 0.5) + "]", ""}});
  CHECK(r.columns == std::vector<std::string>{"gpu__time_duration.sum", "rate", "twice"});
  CHECK(r.order == std::vector<std::size_t>{2, 0});
  CHECK(r.rows[2].values[2] == 15.0);
  CHECK(write_csv(r) ==
        "n,gpu__time_duration.sum,rate,twice,cycles_low_95,cycles_high_95,bound_by,error\n"
        "0,50,2,4,98,100,latency,\n"
        "1,,,,,,,does not fit\n"
        "2,40,7.5,15,79,81,latency,\n");
  CHECK_THAT(write_text(r, 1), Contains("... 1 more") && Contains("1 of 3 points could not be predicted") &&
                                   Contains("n = 1: does not fit"));
  const auto json = nlohmann::json::parse(write_json(r));
  CHECK(json["sweep"]["order"] == nlohmann::json::parse("[2, 0]"));
  CHECK(json["sweep"]["rows"][0]["values"]["n"] == 0);
  CHECK(json["sweep"]["rows"][1]["error"] == "does not fit\n  take fewer threads");
}

TEST_CASE("launches of a case add up, where the metric does", "[sweep]") {
  SweepFile file = file_of(1);
  const std::vector<Outcome> two{{"[" + launch(50, 99, 0.5) + "," + launch(20, 40, 0.25) + "]", ""}};
  CHECK(make_results(file, two).rows[0].values[0] == 70.0);
  CHECK(make_results(file, two).rows[0].low == 137.0);
  file.columns = {"smsp__issue_active.avg.per_cycle_active"};
  CHECK_THROWS_WITH(make_results(file, two), Contains("does not add up over several launches"));
  file.launch = 1;
  CHECK(make_results(file, two).rows[0].values[1] == 0.25);
  file.launch = 2;
  CHECK_THROWS_WITH(make_results(file, two), Contains("there is no launch 2"));
  file.launch = 0;
  file.columns = {"gpu__time_duratoin.sum"};
  file.named = {{"gpu__time_duratoin.sum", {"a.sweep.yaml", 7, 11}}};
  CHECK_THROWS_WITH(make_results(file, two),
                    Contains("a.sweep.yaml:7:11: ") && Contains("did you mean 'gpu__time_duration.sum'?"));
}

TEST_CASE("the Pareto front is what no point beats in both", "[sweep]") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<double, double>> points(1 + random() % 30);
    for (auto& [x, y] : points) x = random() % 8, y = random() % 8;
    const Objective first{"x", (round & 1) != 0}, second{"y", (round & 2) != 0};
    const auto no_worse = [](const Objective& o, double a, double b) { return a == b || o.better(a, b); };
    std::vector<std::size_t> wanted;
    for (std::size_t i = 0; i < points.size(); ++i) {
      bool beaten = false;
      for (const auto& [x, y] : points)
        beaten = beaten || (no_worse(first, x, points[i].first) && no_worse(second, y, points[i].second) &&
                            std::pair(x, y) != points[i]);
      if (!beaten) wanted.push_back(i);
    }
    std::vector<std::size_t> found = pareto_front(points, first, second);
    std::sort(found.begin(), found.end());
    CHECK(found == wanted);
  }
}

TEST_CASE("a name that is no metric is found before anything is predicted", "[sweep]") {
  const std::vector<std::string> names{"gpu__time_duration.sum", "dram__bytes_read.sum",
                                       "forewarp__waves_<term>, and more", "launch__<a|b>_size"};
  SweepFile file = file_of(1);
  file.derive = {{"rate", "n / dram__bytes_read.sum"}};
  file.columns = {"rate", "n", "dram__bytes_read.sum", "forewarp__waves_tail.pct", "launch__a_size"};
  CHECK_NOTHROW(check_metrics(file, names));
  file.pareto = {{"gpu__time_duration.sum", false}, {"dram__bytes_raed.sum", false}};
  file.named = {{"dram__bytes_raed.sum", {"a.sweep.yaml", 5, 9}}};
  CHECK_THROWS_WITH(check_metrics(file, names),
                    Contains("a.sweep.yaml:5:9: there is no metric 'dram__bytes_raed.sum'") &&
                        Contains("did you mean 'dram__bytes_read.sum'?"));
  file.pareto.reset();
  file.columns.push_back("launch__a_length");
  CHECK_THROWS_WITH(check_metrics(file, names), Contains("there is no metric 'launch__a_length'"));
  file.columns.pop_back();
  file.best.metric = "raet";
  CHECK_THROWS_WITH(check_metrics(file, names), Contains("did you mean 'rate'?"));
  file.best.metric = "rate";
  file.derive = {{"rate", "n / gpu__time_duraton.sum"}};
  CHECK_THROWS_WITH(check_metrics(file, names), Contains("there is no metric 'gpu__time_duraton.sum'"));
}

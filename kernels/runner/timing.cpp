#include "timing.h"

#include <algorithm>
#include <cstdio>

namespace forewarp::runner {
namespace {

constexpr double kLongMicroseconds = 200e3;
constexpr int kLongRepeats = 3;

std::uint64_t scrub_bytes(const Context& context) {
  const auto l2 = static_cast<std::uint64_t>(std::max(0, context.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)));
  return std::max<std::uint64_t>(4 * l2, 64 << 20);
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  Spread spread;
  spread.count = static_cast<int>(values.size());
  if (values.empty()) return spread;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  spread.median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  spread.least = values.front();
  spread.most = values.back();
  return spread;
}

CaseTimer::CaseTimer(const Context& context) : scrub_(scrub_bytes(context)) {}

/// Overwriting the scrub buffer evicts everything from L2. What it leaves is dirty, so a kernel that fills L2 also pays
/// for writing that back; a profiler, which invalidates the caches instead, does not show this.
Spread CaseTimer::cold(const DeviceCase& item, std::size_t launch, int repeat) {
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    FW_CUDA(cuMemsetD32Async(scrub_.address(), static_cast<unsigned>(i), scrub_.bytes() / 4, nullptr));
    before_.record();
    item.launch(launch);
    after_.record();
    times.push_back(after_.milliseconds_since(before_) * 1e3);
    if (times.back() > kLongMicroseconds) repeat = std::min(repeat, kLongRepeats);
  }
  return spread_of(std::move(times));
}

Spread CaseTimer::warm(const DeviceCase& item, std::size_t launch, int repeat) {
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    if (i == 0) item.launch(launch);
    item.launch(launch);  // also keeps the device busy while the host queues the measured launch
    before_.record();
    item.launch(launch);
    after_.record();
    times.push_back(after_.milliseconds_since(before_) * 1e3);
    if (times.back() > kLongMicroseconds) repeat = std::min(repeat, kLongRepeats);
  }
  return spread_of(std::move(times));
}

Spread CaseTimer::whole(const DeviceCase& item, int repeat) {
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    item.launch(item.launches() - 1);
    before_.record();
    for (std::size_t launch = 0; launch < item.launches(); ++launch) item.launch(launch);
    after_.record();
    times.push_back(after_.milliseconds_since(before_) * 1e3);
    if (times.back() > kLongMicroseconds) repeat = std::min(repeat, kLongRepeats);
  }
  return spread_of(std::move(times));
}

std::vector<TimingRow> CaseTimer::time(const DeviceCase& item, const std::string& stem, int repeat) {
  std::vector<TimingRow> rows;
  for (std::size_t launch = 0; launch < item.launches(); ++launch) {
    TimingRow row{stem, item.description().id, item.function(launch).symbol, static_cast<int>(launch), {}, {}};
    row.cold = cold(item, launch, repeat);
    row.warm = warm(item, launch, repeat);
    rows.push_back(row);
  }
  if (item.launches() > 1) rows.push_back({stem, item.description().id, "", -1, {}, whole(item, repeat)});
  return rows;
}

std::string timing_csv(const std::vector<TimingRow>& rows) {
  std::string text =
      "stem,case,launch,kernel,cold_us_median,cold_us_min,cold_us_max,warm_us_median,warm_us_min,warm_us_max,repeats\n";
  for (const TimingRow& row : rows) {
    char numbers[200];
    std::snprintf(numbers, sizeof numbers, "%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%d\n", row.cold.median, row.cold.least,
                  row.cold.most, row.warm.median, row.warm.least, row.warm.most, row.warm.count);
    text += row.stem + "," + row.id + "," + (row.launch < 0 ? "all" : std::to_string(row.launch)) + ",\"" + row.kernel +
            "\"," + numbers;
  }
  return text;
}

std::string timing_table(const std::vector<TimingRow>& rows) {
  std::size_t id_width = 4, kernel_width = 6;
  for (const TimingRow& row : rows) {
    id_width = std::max(id_width, row.id.size());
    kernel_width = std::max(kernel_width, row.kernel.size());
  }
  char line[1024];
  std::snprintf(line, sizeof line, "%-*s %6s %-*s %12s %25s %12s %25s\n", static_cast<int>(id_width), "case", "launch",
                static_cast<int>(kernel_width), "kernel", "cold us", "(least .. most)", "warm us", "(least .. most)");
  std::string text = line;
  for (const TimingRow& row : rows) {
    std::snprintf(line, sizeof line, "%-*s %6s %-*s %12.2f (%10.2f .. %10.2f) %12.2f (%10.2f .. %10.2f)\n",
                  static_cast<int>(id_width), row.id.c_str(),
                  row.launch < 0 ? "all" : std::to_string(row.launch).c_str(), static_cast<int>(kernel_width),
                  row.kernel.c_str(), row.cold.median, row.cold.least, row.cold.most, row.warm.median, row.warm.least,
                  row.warm.most);
    text += line;
  }
  return text;
}

}  // namespace forewarp::runner

#include "report/profile.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/file.h"

namespace forewarp {

namespace {

constexpr const char* kCycles = "gpc__cycles_elapsed.max";

/// Fields of one line; quoted fields may hold commas and doubled quotes, but no line breaks.
std::vector<std::string> split_line(const std::string& line, const SourcePosition& where) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) throw InputError(where, "a quote is not closed");
  return fields;
}

double number(const std::string& text, const std::string& column, const SourcePosition& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    throw InputError(where, "column " + column + " is '" + text + "', not a finite number");
  return value;
}

bool is_metric(const std::string& column) {
  return column.find("__") != std::string::npos && column.find(':') == std::string::npos;
}

/// One row of the table, by column name.
class Row {
 public:
  Row(const std::vector<std::string>& header, std::vector<std::string> fields, SourcePosition where)
      : header_(header), fields_(std::move(fields)), where_(std::move(where)) {
    if (fields_.size() != header_.size()) {
      throw InputError(where_, "has " + std::to_string(fields_.size()) + " columns, the header has " +
                                   std::to_string(header_.size()));
    }
  }
  const std::string& text(const std::string& column) const {
    const auto found = std::find(header_.begin(), header_.end(), column);
    if (found == header_.end()) throw InputError(where_, "there is no column " + column);
    return fields_[static_cast<std::size_t>(found - header_.begin())];
  }
  std::optional<double> find(const std::string& column) const {
    const auto found = std::find(header_.begin(), header_.end(), column);
    if (found == header_.end()) return std::nullopt;
    const std::string& field = fields_[static_cast<std::size_t>(found - header_.begin())];
    if (field.empty()) return std::nullopt;
    return number(field, column, where_);
  }
  std::vector<std::pair<std::string, double>> metrics() const {
    std::vector<std::pair<std::string, double>> all;
    for (std::size_t c = 0; c < header_.size(); ++c)
      if (is_metric(header_[c]) && !fields_[c].empty())
        all.emplace_back(header_[c], number(fields_[c], header_[c], where_));
    return all;
  }
  const SourcePosition& where() const { return where_; }

 private:
  const std::vector<std::string>& header_;
  std::vector<std::string> fields_;
  SourcePosition where_;
};

/// Nothing if the row lacks cycles for this cache state, for example because its launch was only timed by events.
std::optional<MeasuredLaunch> read_row(const Row& row, const std::string& stem, CacheState caches) {
  const std::string prefix = caches == CacheState::Warm ? "warm:" : "";
  const auto cycles = row.find(prefix + kCycles);
  if (!cycles) return std::nullopt;
  MeasuredLaunch m;
  m.stem = stem;
  m.case_id = row.text("case");
  m.kernel = row.text("kernel");
  m.launch = static_cast<int>(number(row.text("launch"), "launch", row.where()));
  m.cycles = *cycles;
  m.cycles_min = row.find(prefix + kCycles + ":min").value_or(*cycles);
  m.cycles_max = row.find(prefix + kCycles + ":max").value_or(*cycles);
  m.metrics = row.metrics();
  m.time_ns = row.find(prefix + "gpu__time_duration.sum").value_or(0);
  m.kind = classify_kernel(m.metrics);
  if (caches == CacheState::Cold) return m;
  m.metrics.clear();
  if (const auto time = row.find("warm:gpu__time_duration.sum")) {
    m.metrics = {{kCycles, *cycles}, {"gpu__time_duration.sum", *time}};
  }
  return m;
}

}  // namespace

std::optional<double> MeasuredLaunch::metric(const std::string& name) const {
  for (const auto& [metric_name, value] : metrics)
    if (metric_name == name) return value;
  return std::nullopt;
}

std::vector<MeasuredLaunch> read_profile(const std::string& path, const std::string& stem, CacheState caches) {
  const std::string text = read_text_file(path);
  std::vector<std::string> header;
  std::vector<MeasuredLaunch> launches;
  int line_number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    const SourcePosition where{path, line_number, 0};
    std::vector<std::string> fields = split_line(line, where);
    if (header.empty()) {
      header = std::move(fields);
      continue;
    }
    if (auto launch = read_row(Row(header, std::move(fields), where), stem, caches))
      launches.push_back(std::move(*launch));
  }
  if (header.empty()) throw InputError({path}, "is empty");
  return launches;
}

}  // namespace forewarp

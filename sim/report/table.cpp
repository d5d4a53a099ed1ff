#include "report/table.h"

#include <algorithm>

#include "report/format.h"

namespace forewarp::report {

std::string Table::text(const std::string& indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = columns_[c].title.size();
    for (const auto& row : rows_)
      if (c < row.size()) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell) {
    std::string text = indent;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) text += "  ";
      text += columns_[c].side == Left ? left(cell(c), widths[c]) : right(cell(c), widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string out;
  if (std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.title.empty(); })) {
    out = line([&](std::size_t c) { return columns_[c].title; });
    out += line([&](std::size_t c) { return std::string(widths[c], '-'); });
  }
  for (const auto& row : rows_) out += line([&](std::size_t c) { return c < row.size() ? row[c] : std::string(); });
  return out;
}

std::string launch_label(const Prediction& p) {
  return p.launch == 0 ? p.case_id : p.case_id + "#" + std::to_string(p.launch);
}

std::string roofline_position(const Prediction& p) {
  return p.roofline.attained == 0 ? "-" : percent_text(p.roofline.attained_pct) + " of " + p.roofline.binding;
}

std::string top_stall(const Prediction& p) {
  for (const StallShare& s : p.stalls)
    if (s.reason != Stall::Selected) return std::string(stall_name(s.reason)) + " " + fixed(s.share_pct, 0) + " %";
  return "-";
}

}  // namespace forewarp::report

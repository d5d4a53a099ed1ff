#include "report/table.h"

#include <algorithm>

#include "report/format.h"

namespace forewarp::report {

std::string Table::text(const std::string& indent, Style style) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = columns_[c].title.size();
    for (const auto& row : rows_)
      if (c < row.size()) width = std::max(width, row[c].text.size());
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell, Tone whole) {
    std::vector<Cell> cells;
    for (std::size_t c = 0; c < columns_.size(); ++c) cells.push_back(cell(c));
    while (!cells.empty() && cells.back().text.empty()) cells.pop_back();
    std::string text = indent;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) text += "  ";
      const std::size_t padding = widths[c] - cells[c].text.size();
      const std::string painted = style.paint(whole == Tone::Plain ? cells[c].tone : whole, cells[c].text);
      if (columns_[c].side == Right) text.append(padding, ' ');
      text += painted;
      if (columns_[c].side == Left && c + 1 < cells.size()) text.append(padding, ' ');
    }
    return text + "\n";
  };
  std::string out;
  if (std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.title.empty(); })) {
    out = line([&](std::size_t c) { return Cell(columns_[c].title); }, Tone::Dim);
    out += line([&](std::size_t c) { return Cell(std::string(widths[c], '-')); }, Tone::Dim);
  }
  for (const auto& row : rows_)
    out += line([&](std::size_t c) { return c < row.size() ? row[c] : Cell(""); }, Tone::Plain);
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

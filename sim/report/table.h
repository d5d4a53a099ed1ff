// Plain-text tables. A column is as wide as its widest cell; there is a header unless no column has a title.
#pragma once

#include <string>
#include <vector>

#include "base/style.h"
#include "report/prediction.h"

namespace forewarp::report {

class Table {
 public:
  enum Side : std::uint8_t { Left, Right };
  struct Column {
    std::string title;
    Side side;
  };
  struct Cell {
    Cell(std::string words, Tone in = Tone::Plain) : text(std::move(words)), tone(in) {}
    Cell(const char* words, Tone in = Tone::Plain) : text(words), tone(in) {}
    std::string text;
    Tone tone;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  /// Tones change no width.
  std::string text(const std::string& indent, Style style = Style()) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Cells that several tables share.
std::string launch_label(const Prediction&);       ///< case id, with the launch number if there are several
std::string roofline_position(const Prediction&);  ///< "43.1 % of L1", "-" without floating-point work
std::string top_stall(const Prediction&);          ///< "long_scoreboard 45 %"

}  // namespace forewarp::report

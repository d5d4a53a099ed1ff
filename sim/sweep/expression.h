// Values and formulas of a sweep: a point gives each variable a value; a text that begins with = is a formula of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.h"

namespace forewarp::sweep {

/// A variable with its value, which may be a number.
struct Setting {
  std::string name;
  std::string text;
  std::optional<double> number = {};
};
using Point = std::vector<Setting>;

/// Whole numbers as such, others with as many digits as they need.
std::string number_text(double value);
/// "n = 1024, gpu = h200-sxm"
std::string point_text(const Point&);

/// + - * / % ^, comparisons, && ||, ?: and ceil, floor, round, min, max, sqrt, log2, ... of the point's numbers.
/// Throws InputError that says what is wrong with it, or that the result is no finite number.
double evaluate(const std::string& formula, const Point&);

/// What a scalar of a file says for a point: the value of =FORMULA, the text of =VARIABLE, anything else as it stands.
std::string text_of(const config::Node& scalar, const Point&);
/// The same for every scalar below a node.
config::Node resolve(const config::Node&, const Point&);

/// Names of metrics that a formula holds.
std::vector<std::string> metrics_in(const std::string& formula);

}  // namespace forewarp::sweep

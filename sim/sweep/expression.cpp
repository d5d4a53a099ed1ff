#include "sweep/expression.h"

#include <muParser.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace forewarp::sweep {

namespace {

constexpr std::size_t kLongestFormula = 1000;

std::string known_names(const Point& point) {
  std::string names;
  for (const Setting& s : point)
    if (s.number) names += (names.empty() ? "" : ", ") + s.name;
  return "numbers here: " + (names.empty() ? "none" : names);
}

/// Variables cannot be given values by a formula.
bool assigns(const std::string& formula) {
  for (std::size_t i = 0; i < formula.size(); ++i) {
    if (formula[i] != '=') continue;
    const bool compares = (i > 0 && std::string_view("<>!=").find(formula[i - 1]) != std::string_view::npos) ||
                          (i + 1 < formula.size() && formula[i + 1] == '=');
    if (!compares) return true;
  }
  return false;
}

}  // namespace

std::string number_text(double value) {
  char text[40];
  const bool whole = value == std::floor(value) && std::abs(value) < 9e15;
  const std::to_chars_result end = whole ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value))
                                         : std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

std::string point_text(const Point& point) {
  std::string text;
  for (const Setting& s : point) text += (text.empty() ? "" : ", ") + s.name + " = " + s.text;
  return text;
}

double evaluate(const std::string& formula, const Point& point) {
  const std::string shown = "formula " + config::quoted(formula);
  if (formula.size() > kLongestFormula) throw InputError(shown + " is too long");
  if (assigns(formula)) throw InputError(shown + " assigns a value", "compare with ==");
  double result = 0;
  try {
    mu::Parser parser;
    parser.DefineNameChars("0123456789_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    parser.DefineFun("ceil", static_cast<mu::fun_type1>([](double x) { return std::ceil(x); }));
    parser.DefineFun("floor", static_cast<mu::fun_type1>([](double x) { return std::floor(x); }));
    parser.DefineFun("round", static_cast<mu::fun_type1>([](double x) { return std::round(x); }));
    parser.DefineOprt(
        "%", [](double a, double b) { return std::fmod(a, b); }, mu::prMUL_DIV, mu::oaLEFT);
    for (const Setting& s : point)
      if (s.number) parser.DefineConst(s.name, *s.number);
    parser.SetExpr(formula);
    result = parser.Eval();
    if (parser.GetNumResults() != 1) throw InputError(shown + " has several values", "write one formula");
  } catch (const mu::ParserError& e) {
    std::string what = e.GetMsg();
    if (what.ends_with('.')) what.pop_back();
    throw InputError(shown + ": " + what, known_names(point));
  }
  if (!std::isfinite(result)) throw InputError(shown + " is no finite number for " + point_text(point));
  return result;
}

std::string text_of(const config::Node& scalar, const Point& point) {
  std::string text = scalar.string();
  if (!text.starts_with('=')) return text;
  text.erase(0, text.find_first_not_of(" ", 1));
  text.erase(text.find_last_not_of(" ") + 1);
  const auto named = std::find_if(point.begin(), point.end(), [&](const Setting& s) { return s.name == text; });
  if (named != point.end()) return named->text;
  try {
    return number_text(evaluate(text, point));
  } catch (const InputError& e) {
    throw InputError(scalar.where(), e.what());
  }
}

config::Node resolve(const config::Node& node, const Point& point) {
  return config::rewrite(node, [&](const config::Node& scalar) -> std::optional<std::string> {
    if (!scalar.string().starts_with('=')) return std::nullopt;
    return text_of(scalar, point);
  });
}

std::vector<std::string> metrics_in(const std::string& formula) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : formula + " ") {
    const bool part =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (part) {
      name += c;
      continue;
    }
    if (name.find("__") != std::string::npos) names.push_back(name);
    name.clear();
  }
  return names;
}

}  // namespace forewarp::sweep

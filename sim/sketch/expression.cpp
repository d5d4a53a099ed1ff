#include "sketch/expression.h"

#include <cctype>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "config/config.h"

namespace forewarp::sketch {
namespace {

struct Function {
  std::string_view name;
  std::size_t arguments;
};
constexpr Function kFunctions[] = {{"exp", 1}, {"log", 1}, {"sin", 1}, {"cos", 1},     {"sqrt", 1}, {"rsqrt", 1},
                                   {"abs", 1}, {"max", 2}, {"min", 2}, {"sigmoid", 1}, {"relu", 1}, {"where", 3}};
constexpr int kDeepest = 64;

class Parser {
 public:
  Parser(std::string_view text, const SourcePosition& where) : text_(text), where_(where) {}

  Statement statement() {
    Statement s;
    s.where = here();
    s.target = name("the name of a result");
    blanks();
    if (at_ >= text_.size() || text_[at_] != '=') fail("'=' expected", "write RESULT = EXPRESSION");
    ++at_;
    s.value = comparison(0);
    blanks();
    if (at_ < text_.size()) fail("an operator expected", "write one statement a string");
    return s;
  }

 private:
  SourcePosition here() {
    blanks();
    SourcePosition p = where_;
    if (p.column > 0) p.column += static_cast<int>(at_);
    return p;
  }
  [[noreturn]] void fail(const std::string& what, const std::string& remedy) {
    const std::string rest(text_.substr(std::min(at_, text_.size()), 16));
    throw InputError(here(), what + (rest.empty() ? " at the end" : " before " + config::quoted(rest)), remedy);
  }
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view symbol) {
    blanks();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  std::string name(const char* wanted) {
    blanks();
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    if (at_ == start || std::isdigit(static_cast<unsigned char>(text_[start])))
      fail(std::string(wanted) + " expected", "");
    return std::string(text_.substr(start, at_ - start));
  }
  static Expression call(const std::string& function, const SourcePosition& where, std::vector<Expression> arguments) {
    Expression e;
    e.kind = Expression::Kind::Call;
    e.name = function;
    e.where = where;
    e.arguments = std::move(arguments);
    return e;
  }

  Expression comparison(int depth) {
    if (depth > kDeepest) fail("the expression is nested too deeply", "name parts of it");
    Expression left = sum(depth);
    for (const std::string_view symbol : {"<=", ">=", "==", "!=", "<", ">"}) {
      const SourcePosition p = here();
      if (accept(symbol)) return call(std::string(symbol), p, {std::move(left), sum(depth)});
    }
    return left;
  }
  Expression sum(int depth) {
    Expression left = product(depth);
    for (;;) {
      const SourcePosition p = here();
      if (accept("+")) {
        left = call("+", p, {std::move(left), product(depth)});
      } else if (accept("-")) {
        left = call("-", p, {std::move(left), product(depth)});
      } else {
        return left;
      }
    }
  }
  Expression product(int depth) {
    Expression left = factor(depth);
    for (;;) {
      const SourcePosition p = here();
      if (accept("*")) {
        left = call("*", p, {std::move(left), factor(depth)});
      } else if (accept("/")) {
        left = call("/", p, {std::move(left), factor(depth)});
      } else {
        return left;
      }
    }
  }
  Expression factor(int depth) {
    if (depth > kDeepest) fail("the expression is nested too deeply", "name parts of it");
    const SourcePosition p = here();
    if (accept("-")) return call("neg", p, {factor(depth + 1)});
    if (accept("(")) {
      Expression inner = comparison(depth + 1);
      if (!accept(")")) fail("')' expected", "");
      return inner;
    }
    Expression e;
    e.where = p;
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.')) {
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), e.number);
      if (error != std::errc{}) fail("a number expected", "");
      at_ = static_cast<std::size_t>(end - text_.data());
      return e;
    }
    e.name = name("a name, a number or '('");
    e.kind = Expression::Kind::Name;
    if (!accept("(")) return e;
    return function(std::move(e), depth);
  }
  Expression function(Expression e, int depth) {
    std::vector<std::string> known;
    for (const Function& f : kFunctions) {
      known.emplace_back(f.name);
      if (f.name != e.name) continue;
      e.kind = Expression::Kind::Call;
      do e.arguments.push_back(comparison(depth + 1));
      while (accept(","));
      if (!accept(")")) fail("')' expected", "");
      if (e.arguments.size() != f.arguments)
        throw InputError(e.where, e.name + " takes " + std::to_string(f.arguments) + " arguments, not " +
                                      std::to_string(e.arguments.size()));
      return e;
    }
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    const std::string near = config::nearest(e.name, known);
    throw InputError(e.where, "there is no function " + config::quoted(e.name),
                     near.empty() ? "functions: " + list : "did you mean " + near + "?");
  }

  std::string_view text_;
  SourcePosition where_;
  std::size_t at_ = 0;
};

}  // namespace

std::string Expression::text() const {
  if (kind == Kind::Name) return name;
  if (kind == Kind::Number) {
    char t[40];
    std::snprintf(t, sizeof t, "%.9g", number);
    return t;
  }
  std::string t = name + "(";
  for (const Expression& a : arguments) t += a.text() + ",";
  return t + ")";
}

Statement parse_statement(const std::string& text, const SourcePosition& where) {
  return Parser(text, where).statement();
}

}  // namespace forewarp::sketch

// Expressions over elements: names, numbers, + - * /, comparisons, functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace forewarp::sketch {

struct Expression {
  enum class Kind { Number, Name, Call };
  Kind kind = Kind::Number;
  double number = 0;
  std::string name;  ///< of a tensor, or of a function; operators are functions called + - * / < <= > >= == != neg
  std::vector<Expression> arguments;
  SourcePosition where;

  std::string text() const;  ///< equal for equal expressions
};

struct Statement {
  std::string target;
  Expression value;
  SourcePosition where;
};

/// "y = max(x, 0)". InputError with the column in the text.
Statement parse_statement(const std::string& text, const SourcePosition& where);

}  // namespace forewarp::sketch

// Errors for people. Bad input is an InputError: what is wrong, where, and what to do about it. Whoever finds the
// problem throws it; cli/main.cpp alone catches it, prints it and exits with 1.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace forewarp {

/// A place in an input file; line and column start at 1, 0 means unknown.
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;

  std::string text() const {
    std::string t = file;
    if (line > 0) t.append(":").append(std::to_string(line));
    if (line > 0 && column > 0) t.append(":").append(std::to_string(column));
    return t;
  }
};

/// Wrong input from the user. `remedy` says what to do; it may be empty.
class InputError : public std::runtime_error {
 public:
  InputError(const SourcePosition& where, const std::string& what, const std::string& remedy = {})
      : std::runtime_error(compose(where, what, remedy)) {}
  /// A template, so that the braces of InputError({file, line}, "what") can only be a SourcePosition.
  template <class Text>
  requires std::is_convertible_v<const Text&, std::string>
  explicit InputError(const Text& what, const std::string& remedy = {})
      : InputError(SourcePosition{}, std::string(what), remedy) {}

 private:
  static std::string compose(const SourcePosition& where, const std::string& what, const std::string& remedy) {
    std::string t = where.file.empty() ? what : where.text() + ": " + what;
    if (!remedy.empty()) t += "\n  " + remedy;
    return t;
  }
};

/// A broken invariant of our own code: exit code 4.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void fail_check(const char* expression, const char* file, int line, const std::string& detail) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + expression +
                      (detail.empty() ? "" : ": " + detail));
}

}  // namespace forewarp

/// Checks an invariant in every build, for conditions that are cheap beside the work around them.
#define FW_CHECK(condition, detail)                                                   \
  do {                                                                                \
    if (!(condition)) ::forewarp::fail_check(#condition, __FILE__, __LINE__, detail); \
  } while (false)

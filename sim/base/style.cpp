#include "base/style.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace forewarp {

namespace {

constexpr std::string_view kReset = "\033[0m";
/// By tone. The colours are the terminal's own, which suit its ground.
constexpr std::array<std::string_view, 6> kCodes = {"", "\033[1m", "\033[1;36m", "\033[33m", "\033[1;31m", "\033[2m"};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string Style::paint(Tone tone, std::string_view text) const {
  if (!coloured_ || tone == Tone::Plain || text.empty()) return std::string(text);
  return std::string(kCodes[static_cast<std::size_t>(tone)]).append(text).append(kReset);
}

std::size_t Style::code_length(std::string_view text) const {
  if (!coloured_) return 0;
  if (text.starts_with(kReset)) return kReset.size();
  for (const std::string_view code : kCodes)
    if (!code.empty() && text.starts_with(code)) return code.size();
  return 0;
}

bool obeys_codes(int stream) {
  const char* terminal = std::getenv("TERM");
  return ::isatty(stream) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

bool takes_colour(int stream) { return obeys_codes(stream) && !is_set("NO_COLOR"); }

}  // namespace forewarp

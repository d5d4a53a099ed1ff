#include "report/format.h"

#include <array>
#include <charconv>
#include <cmath>

namespace forewarp::report {

namespace {

std::string grouped(std::string digits) {
  const std::size_t start = digits.starts_with('-') ? 1 : 0;
  const std::size_t dot = digits.find('.');
  std::size_t at = dot == std::string::npos ? digits.size() : dot;
  while (at > start + 3) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string plain(double value, int decimals) {
  std::array<char, 400> buffer;
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  if (error != std::errc{}) return "?";
  std::string text(buffer.data(), end);
  if (text.find_first_not_of("-0.") == std::string::npos && text.starts_with('-')) text.erase(0, 1);  // no minus zero
  return text;
}

/// Three significant digits for 0 <= value < 1000.
std::string three_digits(double value) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return plain(value, decimals);
}

}  // namespace

std::string fixed(double value, int decimals) { return grouped(plain(value, decimals)); }

std::string count(std::uint64_t value) { return grouped(std::to_string(value)); }

std::string shortest(double value) {
  std::array<char, 40> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : "?";
}

std::string percent_text(double value) { return plain(value, 1) + " %"; }

std::string signed_percent(double predicted, double measured) {
  if (measured == 0) return "-";
  const double difference = 100 * (predicted - measured) / measured;
  return (difference >= 0 ? "+" : "") + percent_text(difference);
}

std::string si(double value, std::string_view unit) {
  static constexpr std::array<const char*, 7> kPrefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  double scaled = std::abs(value);
  while (scaled >= 999.5 && prefix + 1 < kPrefixes.size()) {
    scaled /= 1000;
    ++prefix;
  }
  const bool whole = prefix == 0 && scaled == std::floor(scaled);
  return (value < 0 ? "-" : "") + (whole ? plain(scaled, 0) : three_digits(scaled)) + " " + kPrefixes[prefix] +
         std::string(unit);
}

std::string bytes_text(double value) { return si(value, "B"); }

std::string duration(double nanoseconds) {
  if (nanoseconds < 999.5) return three_digits(nanoseconds) + " ns";
  if (nanoseconds < 999.5e3) return three_digits(nanoseconds / 1e3) + " us";
  if (nanoseconds < 999.5e6) return three_digits(nanoseconds / 1e6) + " ms";
  return fixed(nanoseconds / 1e9, 2) + " s";
}

std::string extent(const Dim3& d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

std::string address(std::uint32_t instruction) {
  std::array<char, 16> buffer;
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::uint64_t{instruction} * 16, 16);
  std::string digits(buffer.data(), end);
  if (digits.size() < 4) digits.insert(0, 4 - digits.size(), '0');
  return (error == std::errc{} ? "0x" : "?") + digits;
}

std::string left(std::string_view text, std::size_t width) {
  std::string t(text);
  if (t.size() > width) {
    t.resize(width > 2 ? width - 2 : 0);
    t += "..";
  }
  t.resize(width, ' ');
  return t;
}

std::string right(std::string_view text, std::size_t width) {
  return text.size() >= width ? std::string(text) : std::string(width - text.size(), ' ') + std::string(text);
}

}  // namespace forewarp::report

// Number formatting for people. The rules are fixed: the same prediction always prints the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"

namespace forewarp::report {

std::string fixed(double value, int decimals);  ///< 1234.5 -> "1,234.50"
std::string count(std::uint64_t value);         ///< "1,234,567"
std::string shortest(double value);             ///< shortest text that reads back as the same number
std::string percent_text(double value);         ///< "12.3 %"
/// What is off, with its sign: "+1.8 %"; "-" where nothing was measured.
std::string signed_percent(double predicted, double measured);
std::string si(double value, std::string_view unit);  ///< three digits: 4.81e12, "B/s" -> "4.81 TB/s"
std::string bytes_text(double value);                 ///< "12.6 MB" (powers of 1000)
std::string duration(double nanoseconds);             ///< "12.3 us"
std::string extent(const Dim3&);                      ///< "32 x 32 x 1"
std::string address(std::uint32_t instruction);       ///< byte address of an instruction, "0x01a0"

std::string left(std::string_view text, std::size_t width);   ///< padded on the right; cut with ".." if too long
std::string right(std::string_view text, std::size_t width);  ///< padded on the left

}  // namespace forewarp::report

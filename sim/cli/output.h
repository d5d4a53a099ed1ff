// Where results go, checked before the work begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/style.h"

namespace forewarp::cli {

/// InputError if `path` cannot be written. Creates and changes nothing; "-" is always fine.
void check_writable(const std::string& path);

/// Writes the JSON result where `json` says, if anywhere, and the text to standard output unless the JSON goes there.
void write_results(const std::string& text, const std::optional<std::string>& json_path, const std::string& json);

/// When text for people is coloured: where the stream is a terminal that takes colour, everywhere, or nowhere.
enum class Colour : std::uint8_t { Auto, Always, Never };
void choose_colour(Colour);  ///< for all that follows
Style output_style();        ///< of standard output
Style error_style();         ///< of standard error

/// What a terminal would take for commands, other than tones of `style`, becomes a question mark: names come from files
/// of others.
std::string printable(std::string text, Style style = Style());
void warn(const std::string& message);  ///< to standard error

}  // namespace forewarp::cli

// Where results go, checked before the work begins.
#pragma once

#include <optional>
#include <string>

namespace forewarp::cli {

/// InputError if `path` cannot be written. Creates and changes nothing; "-" is always fine.
void check_writable(const std::string& path);

/// Writes the JSON result where `json` says, if anywhere, and the text to standard output unless the JSON goes there.
void write_results(const std::string& text, const std::optional<std::string>& json_path, const std::string& json);

/// What a terminal would take for commands becomes a question mark: names come from files of others.
std::string printable(std::string text);
void warn(const std::string& message);  ///< to standard error

}  // namespace forewarp::cli

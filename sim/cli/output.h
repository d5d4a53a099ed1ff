// Where results go, checked before the work that makes them.
#pragma once

#include <optional>
#include <string>

namespace forewarp::cli {

/// InputError when `path` could not be written later. Leaves nothing behind and changes no file; "-" is always fine.
void check_writable(const std::string& path);

/// The text goes to standard output unless the JSON result does; the JSON result goes where `json` says, if anywhere.
void write_results(const std::string& text, const std::optional<std::string>& json_path, const std::string& json);

void warn(const std::string& message);  ///< to standard error

}  // namespace forewarp::cli

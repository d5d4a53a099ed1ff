// Whole files in and out. Writing goes to a temporary beside the target and is renamed, so that a reader or a
// killed process never sees half a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forewarp {

std::string read_text_file(const std::string& path);                   ///< InputError if it cannot be read
std::vector<std::uint8_t> read_binary_file(const std::string& path);   ///< InputError if it cannot be read
/// Replaces `path` in one step; "-" writes to standard output. InputError if it cannot be written.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace forewarp

// Reads and writes whole files. A write goes to a temporary file beside the target and is then renamed, so nobody ever
// sees half a file, even if the process is killed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forewarp {

std::string read_text_file(const std::string& path);                  ///< InputError if it cannot be read
std::vector<std::uint8_t> read_binary_file(const std::string& path);  ///< InputError if it cannot be read
/// Replaces `path` atomically; "-" writes to standard output. InputError if it cannot be written.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace forewarp

#include "base/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace forewarp {

std::string read_text_file(const std::string& path) {
  std::error_code absent;
  const std::filesystem::file_status status = std::filesystem::status(path, absent);
  if (std::filesystem::is_directory(status)) throw InputError({path}, "is a folder, not a file");
  if (std::filesystem::is_character_file(status) || std::filesystem::is_block_file(status))
    throw InputError({path}, "is a device, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError({path}, std::string("cannot be opened: ") + std::strerror(errno));
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) throw InputError({path}, "cannot be read");
  return bytes;
}

std::vector<std::uint8_t> read_binary_file(const std::string& path) {
  const std::string text = read_text_file(path);
  return {text.begin(), text.end()};
}

void write_file(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() || std::fflush(stdout) != 0)
      throw InputError("standard output cannot be written");
    return;
  }
  // Devices and pipes cannot be replaced, only written to: renaming over /dev/null would destroy it.
  std::error_code status_error;
  const std::filesystem::file_status status = std::filesystem::status(path, status_error);
  const bool replace = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  const std::string beside = replace ? path + ".tmp" + std::to_string(::getpid()) : path;
  {
    errno = 0;
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    if (out) out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
    if (!out) {
      const int write_errno = errno;
      std::error_code ignored;
      if (replace) std::filesystem::remove(beside, ignored);
      throw InputError({path}, std::string("cannot be written: ") + std::strerror(write_errno),
                       "name a file in a folder that exists and that you may write to");
    }
  }
  if (!replace) return;
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    throw InputError({path}, "cannot be written: " + error.message());
  }
}

}  // namespace forewarp

#include "cli/output.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace forewarp::cli {

namespace {

std::atomic<Colour> chosen{Colour::Auto};

Style style_of(int stream) {
  return Style(chosen == Colour::Always || (chosen == Colour::Auto && takes_colour(stream)));
}

/// Whether `path` can be opened for writing. Opening for append changes nothing.
void probe(const std::string& path, const std::string& named) {
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) {
    throw InputError({named}, std::string("cannot be written: ") + std::strerror(errno),
                     "name a file in a folder that exists and that you may write to");
  }
  std::fclose(file);
}

}  // namespace

void check_writable(const std::string& path) {
  if (path == "-") return;
  if (path.empty()) throw InputError("the name of an output file is empty", "name a file, or - for standard output");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError({path}, "is a folder, not a file");
  const bool exists = std::filesystem::exists(path, error);
  if (exists) {
    probe(path, path);
    if (!std::filesystem::is_regular_file(path, error)) return;  // devices and pipes are written in place
  }
  // Files are replaced through a temporary neighbour, which must be possible as well.
  const std::string neighbour = path + ".probe" + std::to_string(::getpid());
  probe(neighbour, path);
  std::filesystem::remove(neighbour, error);
}

void write_results(const std::string& text, const std::optional<std::string>& json_path, const std::string& json) {
  if (json_path) write_file(*json_path, json);
  if (json_path != "-") write_file("-", printable(text, output_style()));
}

void choose_colour(Colour colour) { chosen = colour; }
Style output_style() { return style_of(STDOUT_FILENO); }
Style error_style() { return style_of(STDERR_FILENO); }

std::string printable(std::string text, Style style) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    char& c = text[i];
    if ((static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') && c != 127) continue;
    if (const std::size_t code = style.code_length(std::string_view(text).substr(i)); code > 0)
      i += code - 1;
    else
      c = '?';
  }
  return text;
}

void warn(const std::string& message) {
  std::fprintf(stderr, "%s %s\n", error_style().paint(Tone::Warning, "forewarp: warning:").c_str(),
               printable(message).c_str());
}

}  // namespace forewarp::cli

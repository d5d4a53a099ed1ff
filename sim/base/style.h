// Colour and weight of text on a terminal. Everything that prints for people asks here, so that no escape code stands
// anywhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace forewarp {

enum class Tone : std::uint8_t { Plain, Heading, Verdict, Warning, Error, Dim };

class Style {
 public:
  explicit Style(bool coloured = false) : coloured_(coloured) {}
  bool coloured() const { return coloured_; }

  /// `text` in a tone, or as it is where nothing is coloured.
  std::string paint(Tone tone, std::string_view text) const;

  /// Length of the code of a tone with which `text` begins; 0 if it begins otherwise, or if nothing is coloured.
  std::size_t code_length(std::string_view text) const;

 private:
  bool coloured_;
};

/// Whether a stream takes colour: it is a terminal that obeys escape codes, and NO_COLOR is not set.
bool takes_colour(int stream);
/// Whether it is a terminal that obeys escape codes.
bool obeys_codes(int stream);

}  // namespace forewarp

#include "fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string_view>

namespace forewarp::fuzz {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

/// Where numbers change their meaning.
std::uint64_t number(Random& random) {
  constexpr std::array<std::uint64_t, 16> kEdges{
      0,    1,     2,     7,          31,         32,         63,          127,
      0xff, 0x100, 0xfff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff};
  const std::uint64_t edge = kEdges[below(random, kEdges.size())];
  switch (below(random, 4)) {
    case 0:
      return edge;
    case 1:
      return edge - 1;
    case 2:
      return ~edge;
    default:
      return random() >> below(random, 64);
  }
}

std::string number_text(Random& random) {
  constexpr std::array<const char*, 12> kOdd{"-1",  "1e400", "nan", ".inf", "0x",   "1.5",
                                             "0.0", "-0",    "~",   "[]",   "null", "99999999999999999999"};
  return below(random, 3) == 0 ? kOdd[below(random, kOdd.size())] : std::to_string(number(random));
}

void replace(Bytes& bytes, std::size_t at, std::size_t count, std::span<const std::uint8_t> by) {
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto next = bytes.erase(from, from + static_cast<std::ptrdiff_t>(count));
  if (bytes.size() + by.size() <= kMostBytes) bytes.insert(next, by.begin(), by.end());
}

void damage_bytes(Bytes& bytes, Random& random) {
  const std::size_t at = below(random, bytes.size());
  if (below(random, 2) == 0) {
    bytes[at] = below(random, 2) == 0 ? static_cast<std::uint8_t>(bytes[at] ^ 1u << below(random, 8))
                                      : static_cast<std::uint8_t>(random());
    return;
  }
  const std::size_t width = std::size_t{1} << below(random, 4);
  std::uint64_t value = number(random);
  if (width > bytes.size() - at) return;
  if (below(random, 3) == 0) {  // near to what is there
    value = 0;
    std::memcpy(&value, bytes.data() + at, width);
    value += below(random, 33) - 16;
  }
  std::memcpy(bytes.data() + at, &value, width);
}

void move_stretch(Bytes& bytes, const Bytes& other, Random& random) {
  const std::size_t at = below(random, bytes.size());
  const std::size_t count = std::min(bytes.size() - at, below(random, std::size_t{1} << below(random, 10)));
  if (below(random, 3) == 0 || other.empty()) {
    replace(bytes, at, count, {});
    return;
  }
  const std::size_t from = below(random, other.size());
  const std::size_t taken = std::min(other.size() - from, below(random, std::size_t{1} << below(random, 10)));
  const Bytes stretch(other.begin() + static_cast<std::ptrdiff_t>(from),
                      other.begin() + static_cast<std::ptrdiff_t>(from + taken));
  replace(bytes, at, below(random, 2) == 0 ? count : 0, stretch);
}

bool in_word(std::uint8_t c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-'; }

struct Stretch {
  std::size_t at = 0, count = 0;
};
Stretch word_at(const Bytes& text, std::size_t at) {
  while (at < text.size() && !in_word(text[at])) ++at;
  std::size_t begin = at, end = at;
  while (begin > 0 && in_word(text[begin - 1])) --begin;
  while (end < text.size() && in_word(text[end])) ++end;
  return {begin, end - begin};
}
Stretch line_at(const Bytes& text, std::size_t at) {
  std::size_t begin = at, end = at;
  while (begin > 0 && text[begin - 1] != '\n') --begin;
  while (end < text.size() && text[end] != '\n') ++end;
  return {begin, std::min(end + 1, text.size()) - begin};
}

/// Words for others, numbers for numbers, lines twice or not at all.
void damage_text(Bytes& text, const Bytes& other, Random& random) {
  const std::size_t at = below(random, text.size());
  switch (below(random, 5)) {
    case 0: {
      const Stretch line = line_at(text, at);
      replace(text, line.at, line.count, {});
      return;
    }
    case 1: {
      const Stretch line = line_at(text, at);
      const Bytes copy(text.begin() + static_cast<std::ptrdiff_t>(line.at),
                       text.begin() + static_cast<std::ptrdiff_t>(line.at + line.count));
      replace(text, line_at(text, below(random, text.size())).at, 0, copy);
      return;
    }
    case 2: {
      const Stretch word = word_at(text, at);
      const std::string by = number_text(random);
      replace(text, word.at, word.count, {reinterpret_cast<const std::uint8_t*>(by.data()), by.size()});
      return;
    }
    case 3: {
      const Bytes& source = other.empty() ? text : other;
      const Stretch word = word_at(text, at), by = word_at(source, below(random, source.size()));
      const Bytes taken(source.begin() + static_cast<std::ptrdiff_t>(by.at),
                        source.begin() + static_cast<std::ptrdiff_t>(by.at + by.count));
      replace(text, word.at, word.count, taken);
      return;
    }
    default:
      move_stretch(text, other, random);
  }
}

void change_parts(Input& input, Random& random) {
  const std::size_t a = below(random, input.size()), b = below(random, input.size());
  switch (below(random, 3)) {
    case 0:
      input.erase(input.begin() + static_cast<std::ptrdiff_t>(a));
      return;
    case 1: {
      const Bytes copy = input[a];
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(b), copy);
      return;
    }
    default:
      std::swap(input[a], input[b]);
  }
}

}  // namespace

void mutate(const Target& target, Input& input, const Input& other, Random& random) {
  for (std::size_t times = 1 + below(random, 5); times > 0 && !input.empty(); --times) {
    if (target.parts_may_change && below(random, 16) == 0) {
      change_parts(input, random);
      continue;
    }
    const std::size_t part = below(random, input.size());
    Bytes& bytes = input[part];
    const Bytes& source = part < other.size() ? other[part] : bytes;
    const bool text = target.text && part + 1 == input.size();
    if (bytes.empty())
      bytes.push_back(static_cast<std::uint8_t>(random()));
    else if (text && below(random, 4) != 0)
      damage_text(bytes, Bytes(source), random);
    else if (below(random, 4) == 0)
      move_stretch(bytes, Bytes(source), random);
    else
      damage_bytes(bytes, random);
  }
}

}  // namespace forewarp::fuzz

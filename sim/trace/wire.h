// Serialisation for trace files: little-endian, integers as varints. One list of fields serves both directions: an
// Encoder and a Decoder are called with the same values.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace forewarp::wire {

/// The bytes are malformed. Whoever knows the file turns this into an InputError.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Bytes = std::vector<std::uint8_t>;

inline std::uint64_t zigzag(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
inline std::int64_t unzigzag(std::uint64_t v) { return static_cast<std::int64_t>((v >> 1) ^ (~(v & 1) + 1)); }

class Encoder {
 public:
  static constexpr bool kDecodes = false;

  Bytes bytes;

  void varint(std::uint64_t v) {
    while (v >= 0x80) {
      bytes.push_back(static_cast<std::uint8_t>(v | 0x80));
      v >>= 7;
    }
    bytes.push_back(static_cast<std::uint8_t>(v));
  }
  void signed_varint(std::int64_t v) { varint(zigzag(v)); }
  void text(std::string_view t) {
    varint(t.size());
    bytes.insert(bytes.end(), t.begin(), t.end());
  }
  void block(const Bytes& b) {
    varint(b.size());
    bytes.insert(bytes.end(), b.begin(), b.end());
  }
  std::size_t count(std::size_t n, std::size_t /*least_bytes*/ = 1) {
    varint(n);
    return n;
  }

  template <class... T>
  void operator()(const T&... values) {
    (value(values), ...);
  }

 private:
  template <class T>
  requires std::is_arithmetic_v<T>
  void value(T v) {
    if constexpr (std::is_signed_v<T>)
      signed_varint(v);
    else
      varint(v);
  }
  void value(const std::string& v) { text(v); }
  void value(const Bytes& v) { block(v); }
};

class Decoder {
 public:
  static constexpr bool kDecodes = true;

  explicit Decoder(std::span<const std::uint8_t> bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool finished() const { return at_ == end_; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }

  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) throw Malformed("it ends within a number");
      const std::uint64_t byte = *at_++;
      if (shift == 63 && byte > 1) break;
      v |= (byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
    throw Malformed("a number has more than 64 bits");
  }
  std::int64_t signed_varint() { return unzigzag(varint()); }
  std::string text() {
    const std::size_t n = count();
    std::string t(reinterpret_cast<const char*>(at_), n);
    at_ += n;
    return t;
  }
  std::span<const std::uint8_t> block() {
    const std::size_t n = count();
    at_ += n;
    return {at_ - n, n};
  }
  /// How many elements follow, each of at least so many bytes: a wrong number cannot ask for more memory than goes with
  /// the bytes that are there.
  std::size_t count(std::size_t = 0, std::size_t least_bytes = 1) {
    const std::uint64_t n = varint();
    if (n > remaining() / least_bytes) throw Malformed("it announces more than it holds");
    return static_cast<std::size_t>(n);
  }

  template <class... T>
  void operator()(T&... values) {
    (value(values), ...);
  }

 private:
  void value(bool& v) {
    const std::uint64_t n = varint();
    if (n > 1) throw Malformed("a flag is neither 0 nor 1");
    v = n == 1;
  }
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) void value(T& v) {
    if constexpr (std::is_signed_v<T>) {
      const std::int64_t n = signed_varint();
      v = static_cast<T>(n);
      if (static_cast<std::int64_t>(v) != n) throw Malformed("a number is out of its range");
    } else {
      const std::uint64_t n = varint();
      v = static_cast<T>(n);
      if (static_cast<std::uint64_t>(v) != n) throw Malformed("a number is out of its range");
    }
  }
  void value(std::string& v) { v = text(); }
  void value(Bytes& v) {
    const auto b = block();
    v.assign(b.begin(), b.end());
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace forewarp::wire

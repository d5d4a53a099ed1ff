#include "cache/timing_codec.h"

#include <cstring>
#include <string>
#include <type_traits>

namespace forewarp {
namespace {

class Writer {
 public:
  std::vector<std::uint8_t> bytes;

  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    // Padding would make equal results differ in bytes.
    static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);
    const auto* at = reinterpret_cast<const std::uint8_t*>(&value);
    bytes.insert(bytes.end(), at, at + sizeof value);
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(values.size());
    for (const T& value : values) (*this)(value);
  }
};

class Reader {
 public:
  explicit Reader(const std::vector<std::uint8_t>& bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool good() const { return good_; }
  bool finished() const { return good_ && at_ == end_; }

  template <class T>
  void operator()(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!has(sizeof value)) return;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
  }
  void operator()(std::string& text) {
    std::size_t n = 0;
    (*this)(n);
    if (!has(n)) return;
    text.assign(reinterpret_cast<const char*>(at_), n);
    at_ += n;
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    std::size_t n = 0;
    (*this)(n);
    if (!has(n)) return;  // each takes at least a byte
    values.resize(n);
    for (T& value : values) (*this)(value);
  }

 private:
  bool has(std::size_t bytes) {
    good_ = good_ && bytes <= static_cast<std::size_t>(end_ - at_);
    return good_;
  }
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool good_ = true;
};

/// One list of fields serves both directions.
template <class Codec, class Result>
void fields(Codec& codec, Result& r) {
  codec(r.elapsed_cycles);
  codec(r.counters);
  codec(r.spans);
  codec(r.skipped);
  codec(r.instruction_stalls);
  codec(r.coverage.warp_instructions);
  codec(r.coverage.simulated_warp_instructions);
  codec(r.coverage.extrapolated);
  codec(r.coverage.detailed_instructions);
  codec(r.coverage.method);
  codec(r.coverage.cycles_low);
  codec(r.coverage.cycles_high);
  codec(r.host_seconds);
  codec(r.host_seconds_of_lines);
  codec(r.warnings);
}

// Add new fields above, or cached predictions lack them; a block's record is not kept.
static_assert(sizeof(TimingResult) == sizeof(Cycle) + sizeof(TimingCounters) + 4 * sizeof(std::vector<int>) +
                                          sizeof(Coverage) + 2 * sizeof(double) + sizeof(TimingResult::record));
static_assert(sizeof(Coverage) == 6 * sizeof(std::uint64_t) + sizeof(std::string));

}  // namespace

std::vector<std::uint8_t> encode_timing(const TimingResult& result) {
  Writer writer;
  fields(writer, result);
  return std::move(writer.bytes);
}

std::optional<TimingResult> decode_timing(const std::vector<std::uint8_t>& bytes) {
  Reader reader(bytes);
  TimingResult result;
  fields(reader, result);
  if (!reader.finished()) return std::nullopt;
  return result;
}

}  // namespace forewarp

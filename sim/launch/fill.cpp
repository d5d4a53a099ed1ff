// The generator is the design's: s = s * 1664525 + 1013904223 (mod 2^32) before each element. n steps are again one
// multiplication and one addition, so a buffer is cut into chunks that threads fill from their own starting state, and
// a chunk into lanes that the compiler can keep in vector registers. The result is the same for any number of threads.
#include "launch/fill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <thread>

#include "base/file.h"
#include "launch/narrow_float.h"
#include "launch/parameters.h"

namespace forewarp {
namespace {

constexpr std::uint64_t kChunkBytes = 1 << 20;

/// s -> s * multiply + add (mod 2^32).
struct Step {
  std::uint32_t multiply = 1, add = 0;
  std::uint32_t operator()(std::uint32_t s) const { return s * multiply + add; }
  /// This step, then `next`.
  Step then(const Step& next) const { return {multiply * next.multiply, add * next.multiply + next.add}; }
};

constexpr Step kOne{1664525u, 1013904223u};

Step steps(std::uint64_t count) {
  Step result, power = kOne;
  for (; count != 0; count >>= 1, power = power.then(power))
    if (count & 1) result = result.then(power);
  return result;
}

/// Runs work(chunk) for every chunk below `chunks`, on as many threads as there are cores.
template <class Work>
void for_each_chunk(std::uint64_t chunks, const Work& work) {
  const std::uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::uint64_t threads = std::min(cores, chunks / 2 + 1);
  const auto run = [&](std::uint64_t thread) {
    for (std::uint64_t chunk = thread; chunk < chunks; chunk += threads) work(chunk);
  };
  std::vector<std::jthread> pool;
  for (std::uint64_t thread = 1; thread < threads; ++thread) pool.emplace_back(run, thread);
  run(0);
}

/// Elements first, first + 1, ... of the sequence; `value` turns a state into an element.
template <class Element, class Value>
void write_elements(std::span<std::uint8_t> bytes, std::uint32_t seed, std::uint64_t first, const Value& value) {
  constexpr std::size_t kLanes = 16;
  static const Step kLaneStep = steps(kLanes);
  std::array<std::uint32_t, kLanes> state{};
  std::uint32_t s = steps(first)(seed);
  for (std::uint32_t& lane : state) lane = s = kOne(s);
  const Step lane_step = kLaneStep;
  const std::uint64_t count = bytes.size() / sizeof(Element);
  std::array<Element, kLanes> elements;
  for (std::uint64_t i = 0; i < count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      elements[lane] = value(state[lane]);
      state[lane] = lane_step(state[lane]);
    }
    const std::uint64_t rest = std::min<std::uint64_t>(kLanes, count - i);
    std::memcpy(bytes.data() + i * sizeof(Element), elements.data(), rest * sizeof(Element));
  }
}

/// `first`: element of the sequence at which the bytes begin.
template <class Element, class Value>
void fill_elements(std::span<std::uint8_t> bytes, std::uint32_t seed, std::uint64_t first, const Value& value) {
  constexpr std::uint64_t kChunkElements = kChunkBytes / sizeof(Element);
  for_each_chunk((bytes.size() + kChunkBytes - 1) / kChunkBytes, [&](std::uint64_t chunk) {
    const std::uint64_t begin = chunk * kChunkBytes;
    const std::uint64_t size = std::min<std::uint64_t>(kChunkBytes, bytes.size() - begin);
    write_elements<Element>(bytes.subspan(begin, size), seed, first + chunk * kChunkElements, value);
  });
}

using Addresses = std::span<const std::uint64_t>;

void write(const FillZero&, const Buffer&, Addresses, std::uint64_t, std::span<std::uint8_t> bytes) {
  for_each_chunk((bytes.size() + kChunkBytes - 1) / kChunkBytes, [&](std::uint64_t chunk) {
    const std::uint64_t begin = chunk * kChunkBytes;
    std::memset(bytes.data() + begin, 0, std::min<std::uint64_t>(kChunkBytes, bytes.size() - begin));
  });
}

void write(const FillIota&, const Buffer&, Addresses, std::uint64_t offset, std::span<std::uint8_t> bytes) {
  for_each_chunk((bytes.size() + kChunkBytes - 1) / kChunkBytes, [&](std::uint64_t chunk) {
    const std::uint64_t begin = chunk * kChunkBytes, end = std::min<std::uint64_t>(begin + kChunkBytes, bytes.size());
    for (std::uint64_t at = begin; at < end; at += 4) {
      const auto element = static_cast<std::uint32_t>((offset + at) / 4);
      std::memcpy(bytes.data() + at, &element, 4);
    }
  });
}

void write(const FillUniform& fill, const Buffer&, Addresses, std::uint64_t offset, std::span<std::uint8_t> bytes) {
  // All in float, operation by operation: the contract is on bits.
  const auto low = static_cast<float>(fill.low);
  const float width = static_cast<float>(fill.high) - low;
  const auto value = [low, width](std::uint32_t s) { return static_cast<float>(s >> 8) / 16777216.f * width + low; };
  switch (fill.type) {
    case ElementType::F32:
      fill_elements<float>(bytes, fill.seed, offset / 4, value);
      break;
    case ElementType::F64:
      fill_elements<double>(bytes, fill.seed, offset / 8,
                            [=](std::uint32_t s) { return static_cast<double>(value(s)); });
      break;
    case ElementType::F16:
      fill_elements<std::uint16_t>(bytes, fill.seed, offset / 2, [=](std::uint32_t s) { return to_f16(value(s)); });
      break;
    case ElementType::Bf16:
      fill_elements<std::uint16_t>(bytes, fill.seed, offset / 2, [=](std::uint32_t s) { return to_bf16(value(s)); });
      break;
    case ElementType::E4m3:
      fill_elements<std::uint8_t>(bytes, fill.seed, offset, [=](std::uint32_t s) { return to_e4m3(value(s)); });
      break;
    case ElementType::S8:
      fill_elements<std::uint8_t>(bytes, fill.seed, offset, [=](std::uint32_t s) {
        return static_cast<std::uint8_t>(static_cast<std::int8_t>(std::nearbyint(value(s))));
      });
      break;
  }
}

void write(const FillLcg& fill, const Buffer& buffer, Addresses, std::uint64_t offset, std::span<std::uint8_t> bytes) {
  if (fill.modulus == 0) throw InputError(buffer.where, "the modulus of buffer " + buffer.name + " is zero");
  const std::uint32_t modulus = fill.modulus;
  if ((modulus & (modulus - 1)) == 0)
    fill_elements<std::uint32_t>(bytes, fill.seed, offset / 4,
                                 [modulus](std::uint32_t s) { return (s >> 8) & (modulus - 1); });
  else
    fill_elements<std::uint32_t>(bytes, fill.seed, offset / 4,
                                 [modulus](std::uint32_t s) { return (s >> 8) % modulus; });
}

void write(const FillFile& fill, const Buffer& buffer, Addresses, std::uint64_t, std::span<std::uint8_t> bytes) {
  // A pipe might never end, and what is too large is not read.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(fill.path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw InputError(buffer.where,
                     "buffer " + buffer.name + " is filled from " + fill.path + ", which is no regular file");
  const std::uintmax_t size = std::filesystem::file_size(fill.path, error);
  if (!error && size != bytes.size())
    throw InputError(buffer.where, "buffer " + buffer.name + " has " + std::to_string(bytes.size()) + " bytes, but " +
                                       fill.path + " has " + std::to_string(size));
  const std::vector<std::uint8_t> content = read_binary_file(fill.path);
  if (content.size() != bytes.size()) throw InputError(buffer.where, fill.path + " changed while it was read");
  std::copy(content.begin(), content.end(), bytes.begin());
}

void write(const FillPointers& fill, const Buffer&, Addresses addresses, std::uint64_t offset,
           std::span<std::uint8_t> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t address = address_of(fill.pointers[(offset + at) / sizeof(std::uint64_t)], addresses);
    std::memcpy(bytes.data() + at, &address, sizeof address);
  }
}

void write(const FillTensorMaps& fill, const Buffer&, Addresses addresses, std::uint64_t offset,
           std::span<std::uint8_t> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kTensorMapBytes) {
    const PlacedTensorMap& map = fill.maps[(offset + at) / kTensorMapBytes];
    const std::uint64_t address = address_of(map.pointer, addresses);
    std::copy(map.bytes.begin(), map.bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    std::memcpy(bytes.data() + at, &address, sizeof address);
  }
}

void check_whole_elements(const Buffer& buffer) {
  const std::uint32_t element = element_bytes(buffer.fill);
  if (buffer.bytes % element != 0)
    throw InputError(buffer.where, "buffer " + buffer.name + " has " + std::to_string(buffer.bytes) +
                                       " bytes, which is no whole number of the fill's " + std::to_string(element) +
                                       "-byte elements");
}

}  // namespace

std::uint32_t element_bytes(const Fill& fill) {
  if (std::holds_alternative<FillPointers>(fill)) return 8;
  if (std::holds_alternative<FillTensorMaps>(fill)) return kTensorMapBytes;
  if (std::holds_alternative<FillIota>(fill) || std::holds_alternative<FillLcg>(fill)) return 4;
  if (const auto* uniform = std::get_if<FillUniform>(&fill)) {
    switch (uniform->type) {
      case ElementType::F32:
        return 4;
      case ElementType::F64:
        return 8;
      case ElementType::F16:
        return 2;
      case ElementType::Bf16:
        return 2;
      case ElementType::E4m3:
      case ElementType::S8:
        return 1;
    }
  }
  return 1;
}

void fill_buffer(const Buffer& buffer, std::span<const std::uint64_t> addresses, std::span<std::uint8_t> bytes) {
  FW_CHECK(bytes.size() == buffer.bytes, "memory for buffer " + buffer.name);
  check_whole_elements(buffer);
  std::visit([&](const auto& fill) { write(fill, buffer, addresses, 0, bytes); }, buffer.fill);
}

void fill_part(const Buffer& buffer, std::span<const std::uint64_t> addresses, std::uint64_t offset,
               std::span<std::uint8_t> bytes) {
  FW_CHECK(offset % element_bytes(buffer.fill) == 0 && offset + bytes.size() <= buffer.bytes &&
               !std::holds_alternative<FillFile>(buffer.fill),
           "part of buffer " + buffer.name);
  check_whole_elements(buffer);
  std::visit([&](const auto& fill) { write(fill, buffer, addresses, offset, bytes); }, buffer.fill);
}

std::vector<std::uint8_t> make_buffer(const Buffer& buffer, std::span<const std::uint64_t> addresses) {
  std::vector<std::uint8_t> bytes;
  try {
    bytes.resize(buffer.bytes);
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw InputError(buffer.where, "buffer " + buffer.name + " of " + std::to_string(buffer.bytes) +
                                       " bytes does not fit in this machine's memory");
  }
  if (!std::holds_alternative<FillZero>(buffer.fill)) fill_buffer(buffer, addresses, bytes);
  return bytes;
}

}  // namespace forewarp

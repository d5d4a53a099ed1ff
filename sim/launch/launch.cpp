// The launch file's schema over the strict YAML reader. Its reference is docs/launch-file.md.
#include "launch/launch.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/limits.h"
#include "config/config.h"
#include "launch/fill.h"
#include "launch/narrow_float.h"

namespace forewarp {
namespace {

// Limits of CUDA itself, the same for every GPU since compute capability 3.0 (CUDA C++ Programming Guide, table of
// technical specifications).
constexpr std::uint64_t kMostThreads = 1024;
constexpr Dim3 kMostBlock{1024, 1024, 64};
constexpr Dim3 kMostGrid{0x7fffffff, 65535, 65535};

// Not limits of a GPU, but enough to catch a typing error.
constexpr std::uint64_t kMostBufferBytes = std::uint64_t{1} << 40;
constexpr std::uint32_t kMostSharedBytes = 1 << 20;
constexpr const char* kMapBuffer = "(tensor map) ";  // and a number: of a map that is passed by pointer
constexpr std::uint64_t kMostArgumentBytes = 32764;  // of all arguments together
constexpr double kMostF16 = 65504;
constexpr double kMostE4m3 = 448;

constexpr const char* kAcceptedValues =
    "accepted: pointer, i32, u32, i64, u64, f32, f64, f16, bf16, bytes, struct, tensor_map";

// Where device memory starts in a CUDA process on Linux, roughly, and the granularity of its pages.
constexpr std::uint64_t kFirstAddress = 0x7f40'0000'0000;
constexpr std::uint64_t kPageBytes = 2 << 20;
constexpr std::uint64_t kSmallAlignment = 512;
constexpr std::uint64_t kLargeBuffer = 1 << 20;
constexpr std::uint64_t kGap = 64 << 10;

/// One number, or one to three of them.
Dim3 read_extent(const config::Node& node, const Dim3& most) {
  if (node.is_scalar()) return {static_cast<std::uint32_t>(node.unsigned_integer(1, most.x)), 1, 1};
  const std::vector<config::Node> items = node.list(1, 3);
  const std::uint32_t limits[3] = {most.x, most.y, most.z};
  std::uint32_t extent[3] = {1, 1, 1};
  for (std::size_t i = 0; i < items.size(); ++i)
    extent[i] = static_cast<std::uint32_t>(items[i].unsigned_integer(1, limits[i]));
  return {extent[0], extent[1], extent[2]};
}

double read_float(const config::Node& node) {
  constexpr double most = std::numeric_limits<float>::max();
  return node.number(-most, most);
}

FillUniform read_uniform(const config::Node& node) {
  FillUniform fill;
  node.read_map([&](config::Map& m) {
    constexpr ElementType types[] = {ElementType::F32,  ElementType::F64,  ElementType::F16,
                                     ElementType::Bf16, ElementType::E4m3, ElementType::S8};
    fill.type = types[m.at("type").choice({"f32", "f64", "f16", "bf16", "e4m3", "s8"})];
    const double most = fill.type == ElementType::F16    ? kMostF16
                        : fill.type == ElementType::E4m3 ? kMostE4m3
                        : fill.type == ElementType::S8   ? 127
                                                         : std::numeric_limits<float>::max();
    fill.low = m.at("low").number(fill.type == ElementType::S8 ? -128 : -most, most);
    const config::Node high = m.at("high");
    fill.high = high.number(-most, most);
    if (fill.high < fill.low) throw high.error("is less than low");
    if (!std::isfinite(static_cast<float>(fill.high) - static_cast<float>(fill.low)))
      throw high.error("is too far from low for a float");
    fill.seed = static_cast<std::uint32_t>(m.at("seed").unsigned_integer(0, 0xffffffffu));
  });
  return fill;
}

FillLcg read_lcg(const config::Node& node) {
  FillLcg fill;
  node.read_map([&](config::Map& m) {
    fill.seed = static_cast<std::uint32_t>(m.at("seed").unsigned_integer(0, 0xffffffffu));
    fill.modulus = static_cast<std::uint32_t>(m.at("modulus").unsigned_integer(1, 0xffffffffu));
  });
  return fill;
}

FillFile file_fill(const config::Node& node, const std::string& launch_path) {
  return {(std::filesystem::path(launch_path).parent_path() / node.string()).string()};  // an absolute path stays one
}

/// NAME and, beside it in the map, `offset`.
Pointer read_pointer(const config::Node& node, config::Map& m, const std::vector<Buffer>& buffers) {
  const std::string name = node.string();
  const auto found = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == name; });
  if (found == buffers.end()) {
    std::string known;
    for (const Buffer& buffer : buffers) known += (known.empty() ? "" : ", ") + buffer.name;
    throw node.error("names no buffer of this case: " + config::quoted(name),
                     "buffers: " + (known.empty() ? "none" : known));
  }
  Pointer pointer{static_cast<int>(found - buffers.begin()), 0};
  if (const auto offset = m.find("offset")) pointer.offset = offset->unsigned_integer(0, found->bytes - 1);
  return pointer;
}

FillPointers read_pointers(const config::Node& node, const std::vector<Buffer>& buffers) {
  FillPointers fill;
  for (const config::Node& one : node.list(1))
    one.read_map([&](config::Map& m) { fill.pointers.push_back(read_pointer(m.at("pointer"), m, buffers)); });
  return fill;
}

/// 4194304, or 4 MiB.
std::uint64_t read_size(const config::Node& node, std::uint64_t most) {
  static constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"B", 1}};
  if (!node.is_scalar()) return node.unsigned_integer(1, most);
  const std::string text = node.string();
  for (const auto& [unit, scale] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::size_t digits = text.find_first_not_of("0123456789");
    const std::string_view between = std::string_view(text).substr(digits, text.size() - unit.size() - digits);
    if (digits == 0 || digits > 12 || !(between.empty() || between == " ")) break;
    const std::uint64_t count = std::stoull(text.substr(0, digits));
    if (count == 0 || count > most / scale) throw node.error("is not a size from 1 byte to 1024 GiB");
    return count * scale;
  }
  return node.unsigned_integer(1, most);
}

/// {pointer: NAME, type: T, shape: [...], strides: [...], box: [...], ...}: the arguments of cuTensorMapEncodeTiled.
PlacedTensorMap read_placed_map(config::Map& m, const std::vector<Buffer>& buffers);

FillTensorMaps read_tensor_maps(const config::Node& node, const std::vector<Buffer>& buffers) {
  FillTensorMaps fill;
  for (const config::Node& one : node.list(1))
    one.read_map([&](config::Map& m) { fill.maps.push_back(read_placed_map(m, buffers)); });
  return fill;
}

/// zero | iota | {uniform: {...}} | {lcg: {...}} | {file: PATH} | {pointers: [...]} | {tensor_maps: [...]}
Fill read_fill(const config::Node& node, const std::string& launch_path, const std::vector<Buffer>& buffers) {
  static const char* const kAccepted = "accepted: zero, iota, uniform, lcg, file, pointers, tensor_maps";
  if (node.is_scalar()) {
    const std::string name = node.string();
    if (name == "zero") return FillZero{};
    if (name == "iota") return FillIota{};
    throw node.error("unknown fill " + config::quoted(name), kAccepted);
  }
  const std::vector<config::Entry> entries = node.entries();
  if (entries.size() != 1) throw node.error("must name exactly one fill", kAccepted);
  const config::Entry& entry = entries.front();
  if (entry.key == "uniform") return read_uniform(entry.value);
  if (entry.key == "lcg") return read_lcg(entry.value);
  if (entry.key == "file") return file_fill(entry.value, launch_path);
  if (entry.key == "pointers") return read_pointers(entry.value, buffers);
  if (entry.key == "tensor_maps") return read_tensor_maps(entry.value, buffers);
  throw InputError(entry.where, "unknown fill " + config::quoted(entry.key), kAccepted);
}

std::vector<Buffer> read_buffers(const config::Node& node, const std::string& launch_path) {
  const std::vector<config::Entry> entries = node.entries();
  std::vector<Buffer> buffers;
  // Names and sizes first: a buffer may hold pointers to those that follow.
  for (const config::Entry& entry : entries) {
    Buffer& buffer = buffers.emplace_back();
    buffer.name = entry.key;
    buffer.where = entry.where;
    config::Map m(entry.value);
    buffer.bytes = read_size(m.at("bytes"), kMostBufferBytes);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Buffer& buffer = buffers[i];
    entries[i].value.read_map([&](config::Map& m) {
      const config::Node bytes = m.at("bytes");
      if (!m.has("fill") && m.has("file"))  // the short form of fill: {file: PATH}
        buffer.fill = file_fill(m.at("file"), launch_path);
      else
        buffer.fill = read_fill(m.at("fill"), launch_path, buffers);
      const std::uint32_t element = element_bytes(buffer.fill);
      if (buffer.bytes % element != 0)
        throw bytes.error("is no whole number of the fill's " + std::to_string(element) + "-byte elements");
      const auto* pointers = std::get_if<FillPointers>(&buffer.fill);
      if (pointers != nullptr && pointers->pointers.size() * element != buffer.bytes)
        throw bytes.error("is not that of the fill's " + std::to_string(pointers->pointers.size()) + " pointers, " +
                          std::to_string(pointers->pointers.size() * element));
      const auto* maps = std::get_if<FillTensorMaps>(&buffer.fill);
      if (maps != nullptr && maps->maps.size() * element != buffer.bytes)
        throw bytes.error("is not that of the fill's " + std::to_string(maps->maps.size()) + " tensor maps, " +
                          std::to_string(maps->maps.size() * element));
    });
  }
  return buffers;
}

std::uint64_t read_scalar(ArgumentKind kind, const config::Node& value) {
  switch (kind) {
    case ArgumentKind::I32:
      return static_cast<std::uint32_t>(static_cast<std::int32_t>(value.integer(INT32_MIN, INT32_MAX)));
    case ArgumentKind::U32:
      return value.unsigned_integer(0, UINT32_MAX);
    case ArgumentKind::I64:
      return static_cast<std::uint64_t>(value.integer());
    case ArgumentKind::U64:
      return value.unsigned_integer();
    case ArgumentKind::F32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(read_float(value)));
    case ArgumentKind::F64:
      return std::bit_cast<std::uint64_t>(value.number());
    case ArgumentKind::F16:
      return to_f16(static_cast<float>(value.number(-kMostF16, kMostF16)));
    case ArgumentKind::Bf16:
      return to_bf16(static_cast<float>(read_float(value)));
    case ArgumentKind::Pointer:
    case ArgumentKind::Bytes:
    case ArgumentKind::Struct:
    case ArgumentKind::TensorMap:
      break;
  }
  throw InternalError("no scalar");
}

/// "00ff...", two digits a byte.
std::vector<std::uint8_t> read_bytes(const config::Node& node) {
  const std::string text = node.string();
  std::vector<std::uint8_t> bytes;
  if (text.size() % 2 != 0 || text.size() / 2 > kMostArgumentBytes)
    throw node.error("must have two hexadecimal digits a byte, for at most " + std::to_string(kMostArgumentBytes));
  for (std::size_t i = 0; i < text.size(); i += 2) {
    std::uint8_t byte = 0;
    const char* end = text.data() + i + 2;
    if (const auto [stop, error] = std::from_chars(text.data() + i, end, byte, 16); error != std::errc{} || stop != end)
      throw node.error("must hold hexadecimal digits alone", "write it in quotes: bytes: \"00ff\"");
    bytes.push_back(byte);
  }
  return bytes;
}

std::optional<Argument> read_value(config::Map& m, std::vector<Buffer>& buffers);

/// Elements, one for each dimension, innermost first.
template <class Length>
void read_lengths(const config::Node& node, std::size_t count, Length* lengths) {
  const std::vector<config::Node> items = node.list(count, count);
  for (std::size_t i = 0; i < count; ++i)
    lengths[i] = static_cast<Length>(items[i].unsigned_integer(0, std::numeric_limits<Length>::max()));
}

PlacedTensorMap read_placed_map(config::Map& m, const std::vector<Buffer>& buffers) {
  TensorMap map;
  const config::Node& node = m.node();
  const Pointer pointer = read_pointer(m.at("pointer"), m, buffers);
  map.type = static_cast<TensorType>(m.at("type").choice(
      {"u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"}));
  const config::Node shape = m.at("shape");
  const std::size_t rank = shape.list(1, kMostTensorDims).size();
  map.rank = static_cast<int>(rank);
  read_lengths(shape, rank, map.shape.data());
  map.strides[0] = element_bytes(map.type);
  if (rank > 1) read_lengths(m.at("strides"), rank - 1, map.strides.data() + 1);
  read_lengths(m.at("box"), rank, map.box.data());
  if (const auto steps = m.find("element_strides")) read_lengths(*steps, rank, map.steps.data());
  if (const auto one = m.find("interleave"))
    map.interleave = static_cast<TensorInterleave>(one->choice({"none", "16B", "32B"}));
  if (const auto one = m.find("swizzle"))
    map.swizzle = static_cast<TensorSwizzle>(one->choice({"none", "32B", "64B", "128B"}));
  if (const auto one = m.find("l2_promotion"))
    map.promotion = static_cast<TensorPromotion>(one->choice({"none", "64B", "128B", "256B"}));
  if (const auto one = m.find("fill")) map.fill = static_cast<TensorFill>(one->choice({"zeros", "nan"}));
  if (map.interleave == TensorInterleave::None) map.steps[0] = 1;  // the driver ignores it
  map.address = pointer.offset;                                    // buffers are aligned
  if (const std::string fault = tensor_map_fault(map); !fault.empty())
    throw node.error("would be refused by the driver: " + fault);
  const std::uint64_t bytes = buffers[static_cast<std::size_t>(pointer.buffer)].bytes;
  __extension__ using Wide = unsigned __int128;
  Wide reach = pointer.offset + element_bytes(map.type);
  for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) reach += Wide{map.shape[d] - 1} * map.strides[d];
  if (reach > bytes)
    throw node.error("reaches beyond its buffer of " + std::to_string(bytes) + " bytes", "check shape and strides");
  map.address = 0;
  return {encode_tensor_map(map), pointer};
}

/// Where the map lies in global memory: in a buffer of its own, or that of an equal one before.
Argument pointer_to_map(const PlacedTensorMap& map, const SourcePosition& where, std::vector<Buffer>& buffers) {
  int before = 0;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const auto* fill = std::get_if<FillTensorMaps>(&buffers[b].fill);
    if (fill == nullptr || !buffers[b].name.starts_with(kMapBuffer)) continue;
    if (fill->maps.front() == map) return Argument::pointer(static_cast<int>(b));
    ++before;
  }
  buffers.push_back({kMapBuffer + std::to_string(before + 1), kTensorMapBytes, FillTensorMaps{{map}}, where});
  return Argument::pointer(static_cast<int>(buffers.size() - 1));
}

Argument read_tensor_map(const config::Node& node, std::vector<Buffer>& buffers) {
  PlacedTensorMap map;
  bool by_pointer = false;
  node.read_map([&](config::Map& m) {
    map = read_placed_map(m, buffers);
    if (const auto by = m.find("by")) by_pointer = by->choice({"value", "pointer"}) == 1;
  });
  if (by_pointer) return pointer_to_map(map, node.where(), buffers);
  Argument argument;
  argument.kind = ArgumentKind::TensorMap;
  argument.bytes.assign(map.bytes.begin(), map.bytes.end());
  argument.pointers.push_back({0, map.pointer});
  argument.maps.push_back(0);
  return argument;
}

/// {size: BYTES, fields: [{at: OFFSET, and what an argument is}, ...]}
Argument read_struct(const config::Node& node, std::vector<Buffer>& buffers) {
  Argument whole;
  whole.kind = ArgumentKind::Struct;
  node.read_map([&](config::Map& m) {
    whole.bytes.resize(m.at("size").unsigned_integer(1, kMostArgumentBytes));
    std::vector<bool> taken(whole.bytes.size(), false);
    for (const config::Node& one : m.at("fields").list()) {
      one.read_map([&](config::Map& f) {
        const config::Node place = f.at("at");
        const auto at = static_cast<std::uint32_t>(place.unsigned_integer(0, whole.bytes.size() - 1));
        const std::optional<Argument> field = read_value(f, buffers);
        if (!field) throw one.error("names no value", kAcceptedValues);
        if (at + field->size() > whole.size())
          throw place.error("is too far back: a field of " + std::to_string(field->size()) +
                            " bytes ends beyond the struct's " + std::to_string(whole.size()));
        for (std::uint32_t i = at; i < at + field->size(); ++i) {
          if (taken[i]) throw place.error("is within another field");
          taken[i] = true;
        }
        std::copy(field->bytes.begin(), field->bytes.end(), whole.bytes.begin() + at);
        for (const Argument::PlacedPointer& p : field->pointers) whole.pointers.push_back({at + p.at, p.pointer});
        for (const std::uint32_t map : field->maps) {
          if ((at + map) % kTensorMapAlignment != 0)
            throw place.error("is no multiple of 64, as a tensor map takes it");
          whole.maps.push_back(at + map);
        }
      });
    }
  });
  return whole;
}

/// The value that one key of a map names; none if no key does.
std::optional<Argument> read_value(config::Map& m, std::vector<Buffer>& buffers) {
  static constexpr std::pair<const char*, ArgumentKind> kScalars[] = {
      {"i32", ArgumentKind::I32}, {"u32", ArgumentKind::U32}, {"i64", ArgumentKind::I64}, {"u64", ArgumentKind::U64},
      {"f32", ArgumentKind::F32}, {"f64", ArgumentKind::F64}, {"f16", ArgumentKind::F16}, {"bf16", ArgumentKind::Bf16}};
  if (const auto pointer = m.find("pointer")) {
    const Pointer to = read_pointer(*pointer, m, buffers);
    return Argument::pointer(to.buffer, to.offset);
  }
  for (const auto& [name, kind] : kScalars)
    if (const auto value = m.find(name)) return Argument::scalar(kind, read_scalar(kind, *value));
  if (const auto bytes = m.find("bytes")) {
    Argument raw;
    raw.kind = ArgumentKind::Bytes;
    raw.bytes = read_bytes(*bytes);
    return raw;
  }
  if (const auto fields = m.find("struct")) return read_struct(*fields, buffers);
  if (const auto map = m.find("tensor_map")) return read_tensor_map(*map, buffers);
  return std::nullopt;
}

Argument read_argument(const config::Node& node, std::vector<Buffer>& buffers) {
  std::optional<Argument> argument;
  node.read_map([&](config::Map& m) { argument = read_value(m, buffers); });
  if (!argument) throw node.error("names no value", kAcceptedValues);
  argument->where = node.where();
  return *argument;
}

void check_cluster(const config::Node& node, const Launch& launch) {
  if (launch.cluster.count() > kMostClusterBlocks) throw node.error("has more than 16 blocks");
  if (!divides(launch.cluster, launch.grid)) throw node.error("does not divide the grid");
}

Launch read_launch(config::Map& m, std::vector<Buffer>& buffers) {
  Launch launch;
  launch.where = m.node().where();
  launch.kernel = m.at("kernel").string();
  launch.grid = read_extent(m.at("grid"), kMostGrid);
  const config::Node block = m.at("block");
  launch.block = read_extent(block, kMostBlock);
  if (launch.block.count() > kMostThreads)
    throw block.error("has " + std::to_string(launch.block.count()) + " threads; at most 1024 are possible");
  if (const auto cluster = m.find("cluster")) {
    launch.cluster = read_extent(*cluster, Dim3{16, 16, 16});
    check_cluster(*cluster, launch);
  }
  if (const auto shared = m.find("dynamic_shared_bytes"))
    launch.dynamic_shared_bytes = static_cast<std::uint32_t>(shared->unsigned_integer(0, kMostSharedBytes));
  for (const config::Node& argument : m.at("args").list()) launch.arguments.push_back(read_argument(argument, buffers));
  return launch;
}

void check_id(const config::Entry& entry) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '+';
  };
  if (!std::all_of(entry.key.begin(), entry.key.end(), fits))
    throw InputError(entry.where,
                     "case id " + config::quoted(entry.key) + " may hold letters, digits, '_', '-', '.' and '+' only");
}

std::size_t scalar_bytes(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::Pointer:
    case ArgumentKind::I64:
    case ArgumentKind::U64:
    case ArgumentKind::F64:
      return 8;
    case ArgumentKind::I32:
    case ArgumentKind::U32:
    case ArgumentKind::F32:
      return 4;
    case ArgumentKind::F16:
    case ArgumentKind::Bf16:
      return 2;
    case ArgumentKind::Bytes:
    case ArgumentKind::Struct:
    case ArgumentKind::TensorMap:
      break;
  }
  throw InternalError("no scalar");
}

}  // namespace

Argument Argument::pointer(int buffer, std::uint64_t offset) {
  Argument argument;
  argument.bytes.resize(sizeof(std::uint64_t));
  argument.pointers.push_back({0, {buffer, offset}});
  return argument;
}

Argument Argument::scalar(ArgumentKind kind, std::uint64_t bits) {
  Argument argument;
  argument.kind = kind;
  argument.bytes.resize(scalar_bytes(kind));
  std::memcpy(argument.bytes.data(), &bits, argument.bytes.size());
  return argument;
}

std::uint64_t Argument::bits() const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), std::min(bytes.size(), sizeof bits));
  return bits;
}

Case read_case(const std::string& id, const config::Node& item, const std::string& path) {
  Case result;
  result.id = id;
  result.where = item.where();
  item.read_map([&](config::Map& m) {
    result.buffers = read_buffers(m.at("buffers"), path);
    if (const auto launches = m.find("launches")) {
      for (const config::Node& node : launches->list(1))
        node.read_map([&](config::Map& one) { result.launches.push_back(read_launch(one, result.buffers)); });
    } else {
      result.launches.push_back(read_launch(m, result.buffers));
    }
  });
  return result;
}

LaunchFile read_launch_file(const std::string& path) {
  LaunchFile file;
  file.path = path;
  const config::Node root = config::read_file(path);
  for (const config::Entry& entry : root.entries()) {
    check_id(entry);
    Case item = read_case(entry.key, entry.value, path);
    for (Launch& launch : item.launches)  // of the single launch of a case: where the case begins
      if (launch.where.line == item.where.line && launch.where.column == item.where.column) launch.where = entry.where;
    item.where = entry.where;
    file.cases.push_back(std::move(item));
  }
  if (file.cases.empty()) throw root.error("holds no case");
  return file;
}

std::vector<std::uint64_t> place_buffers(const Case& item) {
  std::vector<std::uint64_t> addresses;
  std::uint64_t next = kFirstAddress;
  for (const Buffer& buffer : item.buffers) {
    const std::uint64_t alignment = buffer.bytes >= kLargeBuffer ? kPageBytes : kSmallAlignment;
    next = (next + alignment - 1) / alignment * alignment;
    addresses.push_back(next);
    next += buffer.bytes + kGap;
  }
  return addresses;
}

}  // namespace forewarp

#include "cache/content_key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "cache/engine_id.h"

namespace forewarp {
namespace {

void add_file(KeyMaker& maker, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return maker.add("absent");
  const std::vector<std::uint8_t> bytes = read_binary_file(path);
  maker.add(bytes.size());
  maker.add(XXH3_64bits(bytes.data(), bytes.size()));
}

void add(KeyMaker& maker, const Pointer& pointer) {
  maker.add(static_cast<std::uint64_t>(std::int64_t{pointer.buffer}));
  maker.add(pointer.offset);
}

struct AddFill {
  KeyMaker& maker;
  void operator()(const FillZero&) const {}
  void operator()(const FillIota&) const {}
  void operator()(const FillUniform& f) const {
    maker.add(static_cast<std::uint64_t>(f.type));
    maker.add(std::bit_cast<std::uint64_t>(f.low));
    maker.add(std::bit_cast<std::uint64_t>(f.high));
    maker.add(f.seed);
  }
  void operator()(const FillLcg& f) const {
    maker.add(f.seed);
    maker.add(f.modulus);
  }
  void operator()(const FillFile& f) const { add_file(maker, f.path); }
  void operator()(const FillPointers& f) const {
    maker.add(f.pointers.size());
    for (const Pointer& pointer : f.pointers) add(maker, pointer);
  }
  void operator()(const FillTensorMaps& f) const {
    maker.add(f.maps.size());
    for (const PlacedTensorMap& map : f.maps) {
      maker.add(std::string_view(reinterpret_cast<const char*>(map.bytes.data()), map.bytes.size()));
      add(maker, map.pointer);
    }
  }
};

void add(KeyMaker& maker, const Dim3& d) {
  maker.add(d.x);
  maker.add(d.y);
  maker.add(d.z);
}

void add(KeyMaker& maker, const Launch& launch) {
  maker.add(launch.kernel);
  add(maker, launch.grid);
  add(maker, launch.block);
  add(maker, launch.cluster);
  maker.add(launch.dynamic_shared_bytes);
  maker.add(launch.arguments.size());
  for (const Argument& a : launch.arguments) {
    maker.add(static_cast<std::uint64_t>(a.kind));
    maker.add(std::string_view(reinterpret_cast<const char*>(a.bytes.data()), a.bytes.size()));
    maker.add(a.pointers.size());
    for (const Argument::PlacedPointer& p : a.pointers) {
      maker.add(p.at);
      add(maker, p.pointer);
    }
  }
}

}  // namespace

std::string ContentKey::text() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(words[0]),
                static_cast<unsigned long long>(words[1]));
  return text;
}

void KeyMaker::add(std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<std::uint8_t>(value >> shift));
}

void KeyMaker::add(std::string_view text) {
  add(text.size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
}

ContentKey KeyMaker::key() const {
  const XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
  return {{hash.high64, hash.low64}};
}

ContentKey trace_key(const Program& program, const Case& item, int launch, bool assume_opcodes, int sm_count,
                     const Effort& effort) {
  KeyMaker maker;
  maker.add(kEngineId);
  maker.add(program.content_hash);
  add_file(maker, program.path + ".json");
  maker.add(assume_opcodes ? 1 : 0);
  maker.add(static_cast<std::uint64_t>(sm_count));
  maker.add(effort.memory_bytes);
  maker.add(std::bit_cast<std::uint64_t>(effort.seconds));
  maker.add(effort.exact ? 1 : 0);
  maker.add(item.id);
  maker.add(item.buffers.size());
  for (const Buffer& buffer : item.buffers) {
    maker.add(buffer.name);
    maker.add(buffer.bytes);
    maker.add(buffer.fill.index());
    std::visit(AddFill{maker}, buffer.fill);
  }
  maker.add(item.launches.size());
  for (const Launch& l : item.launches) add(maker, l);
  maker.add(static_cast<std::uint64_t>(launch));
  return maker.key();
}

ContentKey timing_key(const ContentKey& trace, const GpuModel& model, const SimulateOptions& options) {
  KeyMaker maker;
  maker.add(trace.words[0]);
  maker.add(trace.words[1]);
  maker.add(model.name);
  maker.add(model.content_hash);
  maker.add(static_cast<std::uint64_t>(options.caches));
  maker.add(options.full ? 1 : 0);
  maker.add(options.detailed_instructions);
  maker.add(std::bit_cast<std::uint64_t>(options.effort.seconds));
  maker.add(std::bit_cast<std::uint64_t>(options.effort.precision));
  return maker.key();
}

}  // namespace forewarp

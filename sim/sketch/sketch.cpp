#include "sketch/sketch.h"

#include <xxhash.h>

#include <algorithm>

#include "base/error.h"

namespace forewarp::sketch {
namespace {

struct Family {
  const char* key;
  Draft (*draft)(const std::string&, const config::Node&, const GpuModel&);
};
constexpr Family kFamilies[] = {
    {"elementwise", draft_elementwise}, {"reduction", draft_reduction}, {"matmul", draft_matmul},
    {"attention", draft_attention},     {"tiles", draft_tiles},
};

/// What no GPU launches, said where the sketch is.
void check_launches(const Draft& draft, const GpuModel& model) {
  constexpr std::uint32_t kMostRows = 65535;  ///< blocks along y and z
  for (std::size_t i = 0; i < draft.item.launches.size(); ++i) {
    const Launch& launch = draft.item.launches[i];
    if (launch.grid.y > kMostRows || launch.grid.z > kMostRows)
      throw InputError(launch.where,
                       "launches " + std::to_string(std::max(launch.grid.y, launch.grid.z)) +
                           " rows of blocks; a grid has " + std::to_string(kMostRows) + " at most",
                       "take larger tiles, or a smaller shape");
    const std::uint64_t shared = std::uint64_t{draft.kernels[i].static_shared_bytes} + launch.dynamic_shared_bytes;
    const auto most = static_cast<std::uint64_t>(model.occupancy.shared_block_max_bytes);
    if (shared > most)
      throw InputError(launch.where,
                       "takes " + std::to_string(shared) + " bytes of shared memory a block; " + std::to_string(most) +
                           " are the most",
                       "take smaller tiles, or fewer stages");
  }
}

Draft draft(const config::Entry& entry, const GpuModel& model) {
  Draft result;
  entry.value.read_map([&](config::Map& m) {
    const Family* chosen = nullptr;
    std::string keys;
    for (const Family& f : kFamilies) {
      keys += (keys.empty() ? "" : ", ") + std::string(f.key);
      const auto node = m.find(f.key);
      if (!node) continue;
      if (chosen != nullptr)
        throw node->error("is a second family; '" + std::string(chosen->key) + "' is there already",
                          "make it a sketch of its own");
      chosen = &f;
      result = f.draft(entry.key, *node, model);
    }
    if (chosen == nullptr && m.node().entries().empty())
      throw m.node().error("does not say what kernel it is", "give one of: " + keys);
  });
  result.item.id = entry.key;
  result.item.where = entry.where;
  check_launches(result, model);
  return result;
}

std::uint64_t hash_of(const std::vector<Kernel>& kernels) {
  std::string all;
  for (const Kernel& k : kernels) {
    all += k.name + " " + std::to_string(k.registers) + " " + std::to_string(k.static_shared_bytes) + "\n";
    for (std::size_t i = 0; i < k.instructions.size(); ++i) {
      const Control& c = k.instructions[i].control;
      all += k.text[i];
      for (const int field : {int{c.stall}, int{c.yield}, int{c.write_barrier}, int{c.read_barrier}, int{c.wait_mask}})
        all += " " + std::to_string(field);
      all += "\n";
    }
  }
  return XXH3_64bits(all.data(), all.size());
}

Sketches lower(const config::Node& root, const std::string& path, const GpuModel& model) {
  auto program = std::make_shared<Program>();
  auto launches = std::make_shared<LaunchFile>();
  Sketches sketches;
  program->path = launches->path = path;
  program->sm = model.sm;
  const std::vector<config::Entry> entries = root.entries();
  if (entries.empty()) throw root.error("has no sketch", "see docs/sketch.md for an example of each family");
  for (const config::Entry& entry : entries) {
    Draft d = draft(entry, model);
    for (Kernel& k : d.kernels) program->kernels.push_back(std::move(k));
    launches->cases.push_back(std::move(d.item));
    sketches.assumptions.push_back(std::move(d.assumptions));
  }
  program->content_hash = hash_of(program->kernels);
  sketches.program = std::move(program);
  sketches.launches = std::move(launches);
  return sketches;
}

}  // namespace

int Draft::buffer(const std::string& name, std::uint64_t bytes, const Fill& fill) {
  Buffer b;
  b.name = name;
  b.bytes = bytes;
  b.fill = fill;
  item.buffers.push_back(std::move(b));
  return static_cast<int>(item.buffers.size()) - 1;
}

Sketches read_sketches(const std::string& path, const GpuModel& model) {
  return lower(config::read_file(path), path, model);
}

Sketches read_sketches(const config::Node& root, const std::string& path, const GpuModel& model) {
  return lower(root, path, model);
}

Sketches parse_sketches(const std::string& text, const std::string& name, const GpuModel& model) {
  return lower(config::parse(text, name), name, model);
}

}  // namespace forewarp::sketch

#include "sketch/sketch.h"

#include <xxhash.h>

#include <algorithm>
#include <functional>

#include "base/effort.h"
#include "base/error.h"

namespace forewarp::sketch {
namespace {

struct Family {
  const char* key;
  Draft (*draft)(const std::string&, const config::Node&, const GpuModel&);
  double seconds = Effort{}.seconds;
};
// Of a product with many waves less than a second often says nearly as much as the usual budget (docs/sketch.md): its
// tiles are all alike, and its traffic settles before L2 is full.
constexpr double kOfProducts = 0.8;
constexpr Family kFamilies[] = {
    {"elementwise", draft_elementwise}, {"reduction", draft_reduction}, {"matmul", draft_matmul, kOfProducts},
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

/// What a sketch says of its kernels: a number, of a single one, or a map by name.
void read_given(const config::Node& node, const Draft& draft,
                const std::function<void(std::size_t, const config::Node&)>& give) {
  if (!node.is_map()) {
    if (draft.kernels.size() > 1) {
      std::string names;
      for (const Kernel& k : draft.kernels) names += (names.empty() ? "" : ", ") + k.name;
      throw node.error("does not say of which kernel", "write a map from their names: " + names);
    }
    return give(0, node);
  }
  node.read_map([&](config::Map& m) {
    for (std::size_t i = 0; i < draft.kernels.size(); ++i)
      if (const auto of_kernel = m.find(draft.kernels[i].name)) give(i, *of_kernel);
  });
}

void give_registers(const config::Node& node, Draft& draft) {
  constexpr int kLeast = 16, kMost = 255;
  read_given(node, draft, [&](std::size_t i, const config::Node& number) {
    Kernel& kernel = draft.kernels[i];
    const int taken = kernel.registers;
    kernel.registers = static_cast<int>(number.integer(kLeast, kMost));
    if (kernel.registers < taken)
      draft.assume("registers: " + std::to_string(kernel.registers) + " of " + kernel.name +
                   " as given; the code here takes " + std::to_string(taken) + ", and no spills are sketched");
  });
}

void give_shared(const config::Node& node, Draft& draft) {
  read_given(node, draft, [&](std::size_t i, const config::Node& number) {
    const Kernel& kernel = draft.kernels[i];
    const auto bytes = static_cast<std::uint32_t>(number.integer(0, 1 << 20));
    for (Launch& launch : draft.item.launches) {
      if (launch.kernel != kernel.name) continue;
      const std::uint32_t taken = kernel.static_shared_bytes + launch.dynamic_shared_bytes;
      if (bytes < taken)
        throw number.error("is less than the " + std::to_string(taken) + " bytes that " + kernel.name + " uses",
                           "give as many or more, or take smaller tiles");
      launch.dynamic_shared_bytes = bytes - kernel.static_shared_bytes;
    }
  });
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
      result.seconds = f.seconds;
    }
    if (chosen != nullptr) {
      if (const auto registers = m.find("registers")) give_registers(*registers, result);
      if (const auto shared = m.find("shared")) give_shared(*shared, result);
    } else if (m.node().entries().empty() || m.has("registers") || m.has("shared"))
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
    sketches.seconds.push_back(d.seconds);
    sketches.tiles.push_back(d.tiles);
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

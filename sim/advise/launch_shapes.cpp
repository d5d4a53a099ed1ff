#include "advise/launch_shapes.h"

#include <algorithm>

#include "base/error.h"

namespace forewarp::advise {

namespace {

constexpr std::uint32_t kBlocks[] = {64, 128, 256, 512, 1024};

std::uint32_t ceiling(std::uint64_t a, std::uint64_t b) { return static_cast<std::uint32_t>((a + b - 1) / b); }

bool plain(const Launch& l) { return l.cluster.count() <= 1 && l.block.z == 1; }

void add(std::vector<Shape>& shapes, const Launch& l, const Shape& shape) {
  const auto same = [](const Dim3& a, const Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; };
  const std::uint64_t threads = shape.block.count();
  if (threads < 32 || threads > 1024 || (same(shape.grid, l.grid) && same(shape.block, l.block))) return;
  if (std::any_of(shapes.begin(), shapes.end(),
                  [&](const Shape& s) { return same(s.grid, shape.grid) && same(s.block, shape.block); }))
    return;
  shapes.push_back(shape);
}

}  // namespace

std::vector<Shape> other_shapes(const Launch& l, std::uint64_t blocks_per_wave) {
  std::vector<Shape> shapes;
  if (!plain(l)) return shapes;
  const std::uint64_t threads_x = std::uint64_t{l.grid.x} * l.block.x, threads_y = std::uint64_t{l.grid.y} * l.block.y;
  if (l.block.y == 1) {
    for (const std::uint32_t block : kBlocks)
      add(shapes, l, {{ceiling(threads_x, block), l.grid.y, l.grid.z}, {block, 1, 1}, true});
  } else {
    const auto divided = [&](std::uint32_t x, std::uint32_t y) {
      if (x == 0 || y == 0) return;
      add(shapes, l, {{ceiling(threads_x, x), ceiling(threads_y, y), l.grid.z}, {x, y, 1}, true});
    };
    divided(l.block.x * 2, l.block.y / 2);
    divided(l.block.x / 2, l.block.y * 2);
    divided(l.block.x, l.block.y / 2);
    divided(l.block.x, l.block.y * 2);
  }
  if (l.grid.y == 1 && l.grid.z == 1 && blocks_per_wave > 0) {
    const auto waves = [&](std::uint64_t count) {
      const std::uint64_t blocks = count * blocks_per_wave;
      if (count > 0 && blocks < 1u << 31) add(shapes, l, {{static_cast<std::uint32_t>(blocks), 1, 1}, l.block, false});
    };
    waves(1);
    waves(l.grid.x / blocks_per_wave);
    waves(l.grid.x / blocks_per_wave + 1);
  }
  return shapes;
}

Case reshaped(const Case& item, int index, const Shape& shape) {
  Case other = item;
  Launch& launch = other.launches[static_cast<std::size_t>(index)];
  launch.grid = shape.grid;
  launch.block = shape.block;
  return other;
}

bool SameResults::tells() const {
  return std::any_of(item_.buffers.begin(), item_.buffers.end(),
                     [](const Buffer& b) { return !std::holds_alternative<FillZero>(b.fill); });
}

bool SameResults::of(const Case& other) {
  if (!tells()) return false;
  if (!known_) {
    own_ = emulate_values(program_, item_, options_).buffers;
    known_ = true;
  }
  try {
    return emulate_values(program_, other, options_).buffers == own_;
  } catch (const InputError&) {  // beyond a buffer, or deadlocked
    return false;
  }
}

}  // namespace forewarp::advise

// Buffers are made piece by piece; what is in them must be as if they had been made whole.
#include "emulation/machine/memory.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "program/program.h"

using namespace forewarp;
using emulation::GlobalMemory;
using emulation::GlobalView;

namespace {

Case case_of(std::uint64_t bytes, const Fill& fill, int buffers = 1) {
  Case item;
  for (int i = 0; i < buffers; ++i) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(i);
    buffer.bytes = bytes;
    buffer.fill = fill;
    item.buffers.push_back(buffer);
  }
  return item;
}

std::uint32_t word(GlobalMemory& memory, GlobalMemory::Region& region, std::uint64_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, memory.bytes(region, region.begin + offset, 4) + offset, 4);
  return value;
}

}  // namespace

TEST_CASE("a buffer reads as if it had been filled whole") {
  const std::uint64_t bytes = 3 * GlobalMemory::kChunkBytes + 64;
  const Case item = case_of(bytes, FillIota{});
  GlobalMemory memory(item);
  GlobalMemory::Region* region = memory.find(memory.addresses()[0], bytes);
  REQUIRE(region != nullptr);
  const std::uint64_t boundary = 2 * GlobalMemory::kChunkBytes;
  CHECK(word(memory, *region, boundary) == boundary / 4);
  CHECK(region->chunks[0] == GlobalMemory::Chunk::Absent);
  CHECK(region->chunks[2] == GlobalMemory::Chunk::Clean);
  // Across the boundary of two chunks, and a write into one that nobody has read.
  std::uint64_t wide = 0;
  std::memcpy(&wide, memory.bytes(*region, region->begin + boundary - 4, 8) + boundary - 4, 8);
  CHECK(wide == (boundary / 4 - 1 | boundary / 4 << 32));
  memory.before_write(*region, region->begin + 8, 4);
  std::memset(region->data + 8, 0, 4);
  CHECK(word(memory, *region, 8) == 0);
  CHECK(word(memory, *region, 12) == 3);
  const std::vector<std::uint8_t> all = memory.buffer(0);
  std::uint32_t last = 0;
  std::memcpy(&last, all.data() + bytes - 4, 4);
  CHECK(last == bytes / 4 - 1);
}

TEST_CASE("what was only read is dropped when much is held, and comes back the same; what was written stays") {
  constexpr std::uint64_t kBytes = std::uint64_t{400} << 20;
  const Case item = case_of(kBytes, FillIota{}, 2);
  GlobalMemory memory(item);
  GlobalMemory::Region* first = memory.find(memory.addresses()[0], kBytes);
  GlobalMemory::Region* second = memory.find(memory.addresses()[1], kBytes);
  memory.before_write(*first, first->begin, 4);
  std::memset(first->data, 0xff, 4);
  for (GlobalMemory::Region* region : {first, second})
    for (std::uint64_t at = 0; at < kBytes; at += GlobalMemory::kChunkBytes)
      if (at != 0) CHECK(word(memory, *region, at) == at / 4);
  CHECK(first->chunks[0] == GlobalMemory::Chunk::Written);
  CHECK(word(memory, *first, 0) == 0xffffffff);
  CHECK(first->chunks[1] == GlobalMemory::Chunk::Dropped);
  CHECK(word(memory, *first, GlobalMemory::kChunkBytes + 4) == GlobalMemory::kChunkBytes / 4 + 1);
}

TEST_CASE("undone writes leave what was there") {
  const Case item = case_of(2 * GlobalMemory::kChunkBytes, FillIota{});
  GlobalMemory memory(item);
  GlobalMemory::Region* region = memory.find(memory.addresses()[0], 4);
  const auto write = [&](std::uint64_t offset, int value) {
    memory.before_write(*region, region->begin + offset, 4);
    std::memset(region->data + offset, value, 4);
  };
  write(8, 1);
  memory.keep_writes_undoable();
  write(8, 2);                                 // in a chunk that had been written before
  write(GlobalMemory::kChunkBytes + 4096, 2);  // in one that had not
  CHECK(word(memory, *region, 8) == 0x02020202);
  CHECK(word(memory, *region, GlobalMemory::kChunkBytes + 4096) == 0x02020202);
  memory.undo_writes();
  CHECK(word(memory, *region, 8) == 0x01010101);
  CHECK(word(memory, *region, GlobalMemory::kChunkBytes + 4096) == GlobalMemory::kChunkBytes / 4 + 1024);
  write(GlobalMemory::kChunkBytes, 3);
  memory.undo_writes();
  CHECK(word(memory, *region, GlobalMemory::kChunkBytes) == 0x03030303);
}

TEST_CASE("a buffer larger than the machine's memory costs what is touched of it") {
  const Case item = case_of(std::uint64_t{1} << 37, FillUniform{});
  GlobalMemory memory(item);
  GlobalMemory::Region* region = memory.find(memory.addresses()[0], 4);
  CHECK(word(memory, *region, std::uint64_t{1} << 36) != 0);
}

TEST_CASE("any order is right until something is both read and written") {
  const Case item = case_of(64, FillIota{}, 3);
  GlobalMemory memory(item);
  const auto touch = [&](std::size_t buffer, std::uint8_t how) {
    memory.touch(*memory.find(memory.addresses()[buffer], 4), how);
  };
  touch(0, GlobalMemory::kRead);
  touch(1, GlobalMemory::kWritten);
  REQUIRE(memory.allow_any_order());
  touch(0, GlobalMemory::kRead);
  touch(1, GlobalMemory::kWritten);
  touch(2, GlobalMemory::kRead);
  CHECK_THROWS_AS(touch(2, GlobalMemory::kWritten), emulation::OrderMatters);
  CHECK_THROWS_AS(touch(2, GlobalMemory::kRead), emulation::OrderMatters);  // whoever reads it hears of it, too
  memory.undo_writes();
  touch(2, GlobalMemory::kRead);
  CHECK_FALSE(memory.allow_any_order());
  memory.forget_touches();
  CHECK(memory.allow_any_order());
  memory.undo_writes();
  touch(0, GlobalMemory::kRead | GlobalMemory::kWritten);
  CHECK_FALSE(memory.allow_any_order());
}

TEST_CASE("a buffer that is read must not have been left without what was stored there") {
  const Case item = case_of(4096, FillZero{}, 2);
  GlobalMemory memory(item);
  GlobalView view(memory, GlobalView::Writes::Done);
  GlobalMemory::Region &a = *memory.find(memory.addresses()[0], 1), &b = *memory.find(memory.addresses()[1], 1);
  view.open(a, a.begin, 4, GlobalMemory::kRead);
  view.leave(b);
  view.open(b, b.begin, 4, GlobalMemory::kWritten);
  CHECK(memory.allow_any_order());
  CHECK_THROWS_AS(view.leave(a), emulation::StoresMatter);
  CHECK_THROWS_AS(view.open(b, b.begin, 4, GlobalMemory::kRead), emulation::StoresMatter);
  memory.forget_touches();
  CHECK_NOTHROW(view.leave(a));
}

TEST_CASE("where more is read than can be held, order matters") {
  const Case item = case_of(std::uint64_t{400} << 20, FillIota{}, 2);
  GlobalMemory memory(item);
  const auto read = [&](std::size_t buffer) {
    memory.touch(*memory.find(memory.addresses()[buffer], 4), GlobalMemory::kRead);
  };
  read(0);
  REQUIRE(memory.allow_any_order());
  CHECK_THROWS_AS(read(1), emulation::OrderMatters);
}

TEST_CASE("threads that read side by side find the same") {
  constexpr std::uint64_t kBytes = 20 * GlobalMemory::kChunkBytes;
  const Case item = case_of(kBytes, FillIota{}, 2);
  GlobalMemory memory(item);
  REQUIRE(memory.allow_any_order());
  std::array<std::uint64_t, 2> wrong{};
  const auto read_all = [&](std::size_t thread) {
    GlobalView view(memory, GlobalView::Writes::Noted);
    for (std::uint64_t at = 0; at < kBytes; at += 4096) {
      const std::uint64_t address = memory.addresses()[at / 4096 % 2] + at;
      GlobalMemory::Region* region = view.find(address, 4);
      std::uint32_t value = 0;
      std::memcpy(&value, view.open(*region, address, 4, GlobalMemory::kRead) + at, 4);
      wrong[thread] += value != at / 4;
    }
  };
  {
    const std::jthread other(read_all, 1);
    read_all(0);
  }
  CHECK(wrong == std::array<std::uint64_t, 2>{});
}

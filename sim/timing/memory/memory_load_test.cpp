// The memory system under load: throughputs against the specification, conservation, determinism, and the host time
// of a request ([long]).
#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>
#include <random>
#include <vector>

#include "timing/memory/address_map.h"
#include "timing/memory/memory.h"
#include "timing/memory/memory_test_model.h"

using namespace forewarp;

namespace {

constexpr std::uint64_t kMegabyte = (1 << 20) / kLineBytes;  // in lines

/// Wide network and many misses in flight, so that DRAM is what limits.
GpuModel dram_bound() {
  GpuModel m = test_model();
  m.l2.miss_entries = 256;
  return m;
}

/// All SMs read (or write, or both in turn) whole lines of one stream.
enum class Stream { Read, Write, Copy };
LoadRun stream(MemorySystem& memory, Stream kind, std::uint64_t lines, int window, std::uint64_t first = 0) {
  std::uint64_t cursor = 0;
  return run_load(memory, 108, window, 0, [&](int, std::uint64_t, MemoryRequest& r) {
    if (cursor == lines) return false;
    const std::uint64_t i = cursor++;
    r.sectors = 15;
    const bool write = kind == Stream::Write || (kind == Stream::Copy && (i & 1) != 0);
    if (write) r.kind = RequestKind::Write;
    r.line = kind == Stream::Copy ? first + i / 2 + (write ? 1024 * kMegabyte : 0) : first + i;
    return true;
  });
}

double bytes_per_cycle(std::uint64_t bytes, const LoadRun& run) {
  return static_cast<double>(bytes) / static_cast<double>(run.cycles);
}

}  // namespace

TEST_CASE("a stream of 64 MB reaches what refresh leaves of the peak") {
  const GpuModel m = dram_bound();
  MemorySystem memory(m);
  const LoadRun run = stream(memory, Stream::Read, 64 * kMegabyte, 64);
  CHECK(run.replied == run.pushed);
  CHECK(memory.counters().dram_read_bytes == std::uint64_t{64} << 20);
  const double share = bytes_per_cycle(memory.counters().dram_read_bytes, run) / m.hbm.bytes_per_ns;
  std::cout << "stream read: " << share * 100 << " % of DRAM peak, row hits "
            << static_cast<double>(memory.counters().row_hits) / (2.0 * static_cast<double>(run.pushed)) * 100
            << " %\n";
  CHECK(share < 1 - 260.0 / 3900);
  CHECK(share > 0.97 * (1 - 260.0 / 3900));
}

TEST_CASE("reads mixed with writes lose the turns of the bus") {
  GpuModel m = dram_bound();
  m.l2.bytes = 8 << 20;  // writes leave L2 soon
  MemorySystem reads(m), copies(m);
  const LoadRun r = stream(reads, Stream::Read, 64 * kMegabyte, 64);
  const LoadRun c = stream(copies, Stream::Copy, 128 * kMegabyte, 64);
  const double read_rate = bytes_per_cycle(reads.counters().dram_read_bytes, r);
  const double copy_rate = bytes_per_cycle(copies.counters().dram_read_bytes + copies.counters().dram_write_bytes, c);
  std::cout << "copy: " << copy_rate / m.hbm.bytes_per_ns * 100 << " % of DRAM peak, " << copies.counters().turnarounds
            << " turns\n";
  CHECK(copy_rate < 0.97 * read_rate);
  CHECK(copy_rate > 0.75 * read_rate);
  CHECK(copies.counters().dram_write_bytes + copies.dirty_bytes() == std::uint64_t{64} << 20);
  // No turn is free: what the bus did not move is at least the turns' time.
  const double idle = static_cast<double>(c.cycles) * 80 -
                      static_cast<double>(copies.counters().dram_read_bytes + copies.counters().dram_write_bytes) / 16;
  CHECK(idle > static_cast<double>(copies.counters().turnarounds) / 2 * (8 + 5 - 14 + 12));
}

TEST_CASE("one slice gives its data rate, one SM and one GPC theirs") {
  GpuModel m = one_partition_model();
  const AddressMap map(m);
  std::vector<std::uint64_t> of_slice, any;
  for (std::uint64_t line = 0; of_slice.size() < 64; ++line) {
    if (map.home(line).slice == 7) of_slice.push_back(line);
    any.push_back(line);
  }
  const auto rate = [&](const std::vector<std::uint64_t>& lines, int first_sm, int sms, std::uint64_t per_sm) {
    MemorySystem memory(m);
    for (const std::uint64_t line : lines) memory.touch(line, 15, RequestKind::Read, 0);
    const LoadRun run = run_load(memory, first_sm + sms, 512, 0, [&](int sm, std::uint64_t i, MemoryRequest& r) {
      if (sm < first_sm || i == per_sm) return false;
      r.line = lines[(i * 7 + static_cast<std::uint64_t>(sm) * 13) % lines.size()];
      r.sectors = 15;
      return true;
    });
    CHECK(memory.counters().miss_sectors == 0);
    return bytes_per_cycle(run.pushed * kLineBytes, run);
  };
  CHECK(rate(of_slice, 0, 108, 1000) == Approx(64).epsilon(0.01));  // slice_bytes_per_cycle
  CHECK(rate(any, 5, 1, 40000) == Approx(64).epsilon(0.01));        // sm_response_bytes_per_cycle
  CHECK(rate(any, 0, 16, 10000) == Approx(640).epsilon(0.015));     // gpc_response_bytes_per_cycle
  m.l2.clock_ratio = 0.75;
  CHECK(rate(of_slice, 0, 108, 1000) == Approx(48).epsilon(0.01));
  m.l2.slice_bytes_per_cycle = 1024;  // now the tags: one line a cycle
  CHECK(rate(of_slice, 0, 108, 1000) == Approx(0.75 * 128).epsilon(0.01));
}

TEST_CASE("SMs of a GPC that read the same lines together share the way into it") {
  GpuModel m = test_model();
  m.l2.slice_bytes_per_cycle = 1024;
  m.l2.slice_tags_per_cycle = 16;
  m.l2.coalescer_cycles = 60;
  const auto rate = [&](int requests, int group) {
    m.l2.coalescer_requests = requests;
    MemorySystem memory(m);
    for (std::uint64_t line = 0; line < 16384; ++line) memory.touch(line, 15, RequestKind::Read, 0);
    const LoadRun run = run_load(memory, 16, 256, 0, [&](int sm, std::uint64_t i, MemoryRequest& r) {
      if (i == 4000) return false;
      r.line = static_cast<std::uint64_t>(sm / group) * 1024 + i % 1024;
      r.sectors = 15;
      return true;
    });
    return bytes_per_cycle(run.pushed * kLineBytes, run);
  };
  CHECK(rate(4, 1) == Approx(640).epsilon(0.03));   // gpc_response_bytes_per_cycle
  CHECK(rate(4, 4) == Approx(1024).epsilon(0.03));  // sm_response_bytes_per_cycle of 16
  CHECK(rate(1, 4) == Approx(640).epsilon(0.03));
  m.crossbar.gpc_fanout_bytes_per_cycle = 800;
  CHECK(rate(4, 4) == Approx(800).epsilon(0.03));
}

TEST_CASE("writes go at the rate of the SM's and the GPC's path, far ones at the fabric's") {
  GpuModel m = test_model();
  m.crossbar.fabric_bytes_per_cycle = 256;
  const AddressMap map(m);
  std::vector<std::uint64_t> far;
  for (std::uint64_t line = 0; far.size() < 4096; ++line) {
    if (map.home(line).partition == 1) far.push_back(line);
  }
  const auto rate = [&](bool all_far, int sms, std::uint64_t per_sm) {
    MemorySystem memory(m);
    const LoadRun run = run_load(memory, sms, 400, 0, [&](int sm, std::uint64_t i, MemoryRequest& r) {
      if (i == per_sm) return false;
      const std::uint64_t n = i + static_cast<std::uint64_t>(sm) * 97;
      r.line = all_far ? far[n % far.size()] : n % 8192;
      r.sectors = 15;
      r.kind = RequestKind::Write;
      return true;
    });
    return bytes_per_cycle(run.pushed * kLineBytes, run);
  };
  CHECK(rate(false, 1, 40000) == Approx(64).epsilon(0.02));
  CHECK(rate(true, 32, 4000) == Approx(256).epsilon(0.02));
  m.crossbar.fabric_bytes_per_cycle = 4096;
  CHECK(rate(false, 16, 10000) == Approx(512).epsilon(0.02));
}

TEST_CASE("a footprint that every SM reads fits L2 when its near copies do") {
  GpuModel m = test_model();
  m.l2.bytes = 4 << 20;
  const auto traffic = [&](std::uint64_t lines) {
    MemorySystem memory(m);
    const auto pass = [&](std::uint64_t from) {
      return run_load(memory, 108, 32, from, [&](int sm, std::uint64_t i, MemoryRequest& r) {
        // Every SM reads everything, each from its own place.
        if (i == lines / 8) return false;
        r.line = (i * 8 + static_cast<std::uint64_t>(sm)) % lines;
        r.sectors = 15;
        return true;
      });
    };
    Cycle now = 0;
    for (int i = 0; i < 3; ++i) now += pass(now).cycles + 1;
    const MemoryCounters before = memory.counters();
    pass(now);
    const MemoryCounters& after = memory.counters();
    return std::pair{(after.dram_read_bytes - before.dram_read_bytes) / static_cast<double>(lines * kLineBytes),
                     static_cast<double>(after.fabric_sectors - before.fabric_sectors) /
                         static_cast<double>(after.read_sectors - before.read_sectors)};
  };
  const auto small = traffic(3 * kMegabyte / 2), middle = traffic(5 * kMegabyte / 2), large = traffic(8 * kMegabyte);
  CHECK(small.first < 0.02);  // home and copy both fit
  CHECK(small.second < 0.01);
  CHECK(middle.first > 0.5);  // the homes would fit, were it not for the copies
  CHECK(large.first > 0.5);
}

TEST_CASE("random traffic loses nothing and repeats itself") {
  for (const bool copies : {true, false}) {
    GpuModel m = test_model();
    m.l2.bytes = 1 << 20;
    m.l2.miss_entries = 8;
    m.l2.ways = 4;
    m.l2.replicate_far_lines = copies;
    m.hbm.queue_entries = 16;
    m.hbm.write_high = 12;
    m.hbm.write_low = 4;
    LoadRun runs[2];
    for (LoadRun& run : runs) {
      MemorySystem memory(m);
      std::mt19937 random(11);
      std::uint64_t requests = 0;  // as L2 counts them: lanes that meet on one word each make one
      run = run_load(memory, 108, 100, 0, [&](int, std::uint64_t i, MemoryRequest& r) {
        if (i == 2000) return false;
        r.line = random() % 4 == 0 ? random() % 64 : random() % 40000;
        r.sectors = static_cast<std::uint8_t>(1 + random() % 15);
        r.kind = static_cast<RequestKind>(random() % 4);
        r.full_sectors = random() % 2 == 0;
        r.bytes = r.full_sectors ? 0 : 16;
        r.rounds = static_cast<std::uint8_t>(1 + random() % 32);
        requests += r.kind == RequestKind::Read || r.kind == RequestKind::Write ? 1 : r.rounds;
        return true;
      });
      const MemoryCounters& c = memory.counters();
      CHECK(run.pushed == 108 * 2000);
      CHECK(run.replied == run.pushed);
      CHECK(c.read_requests + c.write_requests + c.atomic_requests == requests);
      CHECK(c.read_replies == c.read_requests);
      CHECK(c.hit_sectors + c.miss_sectors >=
            c.read_sectors + c.write_sectors + c.atomic_sectors + c.reduction_sectors);
      CHECK(c.row_hits + c.row_misses + c.row_conflicts == (c.dram_read_bytes + c.dram_write_bytes) / 64);
      CHECK(memory.next_event() == kNever);
    }
    CHECK(runs[0].checksum == runs[1].checksum);
    CHECK(runs[0].cycles == runs[1].cycles);
  }
}

TEST_CASE("sets crowded from both sides do not lock each other up") {
  GpuModel m = test_model();
  m.l2.ways = 2;
  m.l2.miss_entries = 4;
  m.l2.bytes = 80 * 2 * kLineBytes;  // one set of two ways a slice
  MemorySystem memory(m);
  const LoadRun run = run_load(memory, 108, 64, 0, [&](int sm, std::uint64_t i, MemoryRequest& r) {
    if (i == 1000) return false;
    r.line = i * 31 + static_cast<std::uint64_t>(sm);
    r.sectors = 15;
    if (i % 5 == 0) r.kind = RequestKind::Reduction;
    return true;
  });
  CHECK(run.replied == 108 * 1000);
}

TEST_CASE("host time of a request", "[long]") {
  const auto measure = [](const char* what, bool copies, Stream kind, std::uint64_t lines) {
    GpuModel m = dram_bound();
    m.l2.replicate_far_lines = copies;
    MemorySystem memory(m);
    const auto start = std::chrono::steady_clock::now();
    const LoadRun run = stream(memory, kind, lines, 48);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << what << ": " << static_cast<double>(run.pushed) / seconds.count() / 1e6
              << " million requests a second, " << seconds.count() / static_cast<double>(run.pushed) * 1e6
              << " us each\n";
    CHECK(run.replied == run.pushed);
  };
  measure("stream read, copies  ", true, Stream::Read, 128 * kMegabyte);
  measure("stream read, no copies", false, Stream::Read, 128 * kMegabyte);
  measure("stream write          ", true, Stream::Write, 128 * kMegabyte);
  measure("copy                  ", true, Stream::Copy, 128 * kMegabyte);
}

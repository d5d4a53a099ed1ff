#include "timing/memory/hbm_channel.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "base/error.h"
#include "timing/memory/memory_test_model.h"

using namespace forewarp;

namespace {

GpuModel without_refresh() {
  GpuModel m = test_model();
  m.hbm.t_refi = 0;
  return m;
}

/// A channel with its owner's part: 1000 MHz, so that a cycle is a nanosecond.
struct Bench {
  explicit Bench(const GpuModel& m) : timings(m), channel(timings, 0, 1) {}

  void push(std::uint32_t bank, std::uint32_t row, bool write, Cycle now, std::uint16_t tag = 0) {
    Burst b;
    b.bank = static_cast<std::uint16_t>(bank);
    b.row = row;
    b.write = write;
    b.miss = tag;
    b.sectors = 3;
    channel.push({&b, 1}, now, output);
  }
  /// Runs up to and including `now`.
  void run(Cycle now) {
    for (Cycle at = channel.wake_cycle(); at <= now; at = channel.wake_cycle()) channel.advance(at, counters, output);
  }
  Cycle finish() {
    run(kNever - 1);
    return output.done.empty() ? 0 : output.done.back().at >> kTickBits;
  }

  HbmTimings timings;
  HbmChannel channel;
  ChannelOutput output;
  MemoryCounters counters;
};

}  // namespace

TEST_CASE("unloaded accesses take the sum of their commands") {
  Bench b(without_refresh());
  b.push(0, 1, false, 100);
  CHECK(b.finish() == 100 + 14 + 14 + 4);  // activate, read, burst
  b.push(0, 1, false, 200);
  CHECK(b.finish() == 200 + 14 + 4);  // row open
  b.push(0, 2, false, 300);
  CHECK(b.finish() == 300 + 14 + 14 + 14 + 4);  // precharge, activate, read
  CHECK(b.counters.row_misses == 1);
  CHECK(b.counters.row_hits == 1);
  CHECK(b.counters.row_conflicts == 1);
  CHECK(b.counters.dram_read_bytes == 3 * 64);
}

TEST_CASE("a row is not closed before tRAS, nor after a read or write before tRTP or tWR") {
  SECTION("tRAS") {
    Bench b(without_refresh());
    b.push(0, 1, false, 0);
    b.run(20);
    b.push(0, 2, false, 20);
    CHECK(b.finish() == 34 + 14 + 14 + 14 + 4);
  }
  SECTION("tRTP") {
    Bench b(without_refresh());
    b.push(0, 1, false, 0);
    b.finish();
    b.push(0, 1, false, 100);
    b.run(100);
    b.push(0, 2, false, 101);
    CHECK(b.finish() == 100 + 5 + 14 + 14 + 14 + 4);
  }
  SECTION("tWR") {
    Bench b(without_refresh());
    b.push(0, 1, true, 0);
    b.finish();
    b.push(0, 1, true, 100);
    b.run(100);
    b.push(0, 2, false, 101);
    CHECK(b.finish() == 100 + 5 + 4 + 16 + 14 + 14 + 14 + 4);
  }
}

TEST_CASE("hits of one bank follow at tCCD_L, hits of two groups at the burst") {
  Bench b(without_refresh());
  for (int i = 0; i < 10; ++i) b.push(0, 1, false, 0);
  CHECK(b.finish() == 14 + 9 * 6 + 14 + 4);
  Bench c(without_refresh());
  for (std::uint32_t i = 0; i < 40; ++i) c.push(i % 2, 1, false, 0);
  // The first two reads wait for their rows; after that the bus is never idle.
  CHECK(c.finish() == Approx(14 + 39 * 4 + 14 + 4).margin(5));
}

TEST_CASE("activations keep tRRD and tFAW") {
  Bench b(without_refresh());
  for (std::uint32_t bank = 0; bank < 8; ++bank) b.push(bank, 1, false, 0);
  b.finish();
  std::vector<Cycle> at;
  for (const auto& d : b.output.done) at.push_back(d.at >> kTickBits);
  CHECK(at[0] == 32);
  CHECK(at[1] == 36);
  CHECK(at[3] == 44);
  CHECK(at[4] == 16 + 32);  // the fifth row may open tFAW after the first
  CHECK(at[7] == 28 + 32);

  GpuModel m = without_refresh();
  m.hbm.t_faw = 40;
  Bench c(m);
  for (std::uint32_t i = 0; i < 60; ++i) c.push(i % 16, i / 16, false, 0);
  CHECK(c.finish() == 14 * 40 + 12 + 32);  // four rows in 40 ns, sixty rows
}

TEST_CASE("a stream of reads keeps the bus busy except for refresh") {
  for (const bool refresh : {false, true}) {
    Bench b(refresh ? test_model() : without_refresh());
    Cycle now = 0;
    const std::uint32_t accesses = 40000;
    for (std::uint32_t sent = 0; sent < accesses;) {
      while (sent < accesses && sent < b.output.done.size() + 64) {
        // Two rows of neighbouring banks in turn, as two streams give.
        const std::uint32_t chunk = sent / 32, bank = (2 * chunk + sent % 2) % 16;
        b.push(bank, chunk / 8, false, now);
        ++sent;
      }
      now = std::max(now, b.channel.wake_cycle());
      b.run(now);
    }
    const Cycle end = b.finish();
    const double peak = accesses * 4.0;
    const double share = peak / static_cast<double>(end);
    INFO("share of peak " << share);
    CHECK(share <= 1.0);
    if (refresh) {
      CHECK(share == Approx(1 - 260.0 / 3900).epsilon(0.03));
    } else {
      CHECK(share > 0.985);
    }
  }
}

GpuModel refreshed_bank_by_bank() {
  GpuModel m = test_model();
  m.hbm.refresh_banks = 1;
  m.hbm.t_refi = 3900;
  m.hbm.t_rfc = 260;
  return m;  // bank 0 falls due at 3900, the next bank 244 later
}

TEST_CASE("a bank is refreshed when what waits for its open row has been read") {
  Bench b(refreshed_bank_by_bank());
  b.push(0, 1, false, 3890);
  b.push(1, 1, false, 3890);
  CHECK(b.finish() == 3890 + 14 + 4 + 14 + 4);  // the second of the two; neither waits for the refresh
  b.push(0, 1, false, 3930);                    // tRAS, precharge, refresh; then the row is opened anew
  CHECK(b.finish() == 3890 + 34 + 14 + 260 + 14 + 14 + 4);
}

TEST_CASE("a refresh that fell due while nothing waited began then") {
  Bench b(refreshed_bank_by_bank());
  b.push(0, 1, false, 100);
  b.finish();  // leaves its row open
  b.push(0, 2, false, 4000);
  CHECK(b.finish() == 3900 + 14 + 260 + 14 + 14 + 4);
  b.push(1, 1, false, 5 * 3900 + 200);  // rounds later: not yet refreshed again, and no row is open
  CHECK(b.finish() == 5 * 3900 + 200 + 14 + 14 + 4);
  CHECK(b.counters.row_conflicts == 0);
}

TEST_CASE("banks that follow each other may be refreshed turns apart") {
  GpuModel m = refreshed_bank_by_bank();
  m.hbm.refresh_turns = 2;  // 0, 8, 1, 9, ... of sixteen
  Bench b(m);
  b.push(1, 1, false, 4150);
  CHECK(b.finish() == 4150 + 14 + 14 + 4);
  Bench c(m);
  c.push(8, 1, false, 4150);  // due since 3900 + 244
  CHECK(c.finish() == 4143 + 260 + 14 + 14 + 4);
  Bench d(m);
  d.push(0, 1, false, 2 * 3900 + 100);  // all had their turns: it is the first one's again
  CHECK(d.finish() == 2 * 3900 + 260 + 14 + 14 + 4);
}

TEST_CASE("row hits go first, but an old request is passed by one row's worth at most") {
  Bench b(without_refresh());
  b.push(0, 1, false, 0);
  b.run(14);  // row 1 open and read
  b.push(0, 2, false, 15, 99);
  for (std::uint16_t i = 0; i < 40; ++i) b.push(0, 1, false, 15, 1);
  b.finish();
  std::size_t position = 0;
  while (b.output.done[position].miss != 99) ++position;
  CHECK(position == 1 + 16);  // 1 KB row: sixteen accesses
}

TEST_CASE("turning the bus round costs tRTW and tWTR") {
  Bench b(without_refresh());
  b.push(0, 1, false, 0);
  b.finish();
  b.push(1, 1, false, 90);
  b.finish();
  b.push(0, 1, false, 200);
  b.run(200);
  b.push(1, 1, true, 200);
  b.run(250);
  CHECK(b.counters.turnarounds == 1);
  b.push(0, 1, false, 217);  // the write went at 216: read 216 + tCWL + burst + tWTR
  CHECK(b.finish() == 216 + 5 + 4 + 8 + 14 + 4);
  CHECK(b.counters.turnarounds == 2);
}

TEST_CASE("writes gather where reads leave the bus free, and go when nothing comes") {
  GpuModel m = without_refresh();  // marks 32 and 8
  m.hbm.write_idle_ns = 1000;
  Bench b(m);
  for (std::uint32_t i = 0; i < 19; ++i) b.push(0, 1, true, 0);
  b.run(900);
  CHECK(b.counters.dram_write_bytes == 0);
  b.push(0, 1, true, 900);
  b.push(1, 1, false, 905);  // the batch has begun: down to the low mark
  b.run(1100);
  CHECK(b.counters.dram_write_bytes == 12 * 64);
  CHECK(b.counters.dram_read_bytes == 64);
  b.push(0, 1, true, 2000);
  b.run(2990);
  CHECK(b.counters.dram_write_bytes == 12 * 64);
  b.run(3100);
  CHECK(b.counters.dram_write_bytes == 21 * 64);
}

TEST_CASE("writes wait for the high mark while reads come, then drain to the low mark") {
  Bench b(without_refresh());  // marks 32 and 8
  Cycle now = 0;
  std::uint64_t writes = 0;
  std::size_t reads = 0;
  for (std::uint32_t i = 0; i < 31; ++i) b.push(1, 7, true, now);
  for (std::uint32_t i = 0; i < 4; ++i, ++reads) b.push(0, 1, false, now);
  while (reads < 500) {
    now = b.channel.wake_cycle();
    b.run(now);
    while (reads < b.output.done.size() + 4) b.push(0, 1, false, now), ++reads;
    if (reads == 200) writes = b.counters.dram_write_bytes / 64;
    if (reads == 200) b.push(1, 7, true, now), ++reads;
  }
  // Writes that came before any read could go at once; nothing after that until the mark.
  CHECK(writes <= 1);
  b.finish();
  CHECK(b.counters.dram_write_bytes == 32 * 64);
  CHECK(b.counters.turnarounds >= 2);
  CHECK(b.counters.turnarounds <= 6);
  CHECK(b.output.taken.size() == 32);
}

TEST_CASE("reads and writes that both keep coming take turns") {
  Bench b(without_refresh());  // marks 32 and 8: batches of 24
  for (std::uint32_t i = 0; i < 2000; ++i) {
    b.push(i % 16, i / 16, true, 0);
    b.push(i % 16, 1000 + i / 16, false, 0);
  }
  b.run(4000);
  const double reads = static_cast<double>(b.counters.dram_read_bytes),
               writes = static_cast<double>(b.counters.dram_write_bytes);
  CHECK(reads > 0.4 * (reads + writes));
  CHECK(writes > 0.4 * (reads + writes));
  CHECK(b.counters.turnarounds <= (reads + writes) / 64 / 24 + 1);
}

TEST_CASE("writes beyond the window are taken later, none is lost") {
  Bench b(without_refresh());
  for (std::uint32_t i = 0; i < 300; ++i) b.push(i % 16, i / 16, true, 0);
  CHECK(b.output.taken.size() == 64);
  b.finish();
  CHECK(b.output.taken.size() == 300);
  CHECK(b.counters.dram_write_bytes == 300 * 64);
}

TEST_CASE("banks that are refreshed one after another leave the others free") {
  GpuModel m = test_model();  // channel 0 of 1: of 16 banks one each 243.75 ns, the first at 3900
  m.hbm.refresh_banks = 1;
  Bench b(m);
  b.push(1, 1, false, 3900 + 100);  // bank 0 is being refreshed
  CHECK(b.finish() == 4000 + 32);
  b.push(0, 1, false, 3900 + 110);
  CHECK(b.finish() == 3900 + 260 + 32);
  b.push(2, 1, false, 3900 + 488 + 10);  // the third refresh
  CHECK(b.finish() == 3900 + 487 + 260 + 32);
}

TEST_CASE("channels refresh the same banks within a part of the time between two refreshes") {
  GpuModel m = test_model();
  m.hbm.refresh_spread = 0.5;  // of 3900
  const HbmTimings timings(m);
  const auto answer = [&](std::uint32_t index, Cycle asked) {
    HbmChannel channel(timings, index, 2);
    ChannelOutput output;
    MemoryCounters counters;
    Burst burst;
    burst.sectors = 1, burst.row = 1, burst.miss = 0;
    channel.push({&burst, 1}, asked, output);
    for (Cycle at = channel.wake_cycle(); at != kNever; at = channel.wake_cycle())
      channel.advance(at, counters, output);
    return (output.done.at(0).at >> kTickBits) - asked;
  };
  const Cycle alone = answer(1, 100);
  CHECK(answer(1, 3900 - 100) == alone);
  CHECK(answer(1, 3900 + 10) == alone + 250);
  CHECK(answer(0, 2925 + 10) == alone + 250);
  CHECK(answer(0, 3900 + 10) == alone);
}

TEST_CASE("refreshes that fell due while the channel was idle cost nothing later") {
  Bench b(test_model());  // channel 0 of 1: refreshes at 3900, 7800, ...
  b.push(0, 1, false, 100);
  b.finish();
  b.push(0, 1, false, 100000);  // 25 periods later: the row is closed, the bank is free
  CHECK(b.finish() == 100000 + 32);
  CHECK(b.counters.row_misses == 2);
  b.push(0, 1, false, 101400 + 10);  // within a refresh: 101400 (+ precharge) + 260
  CHECK(b.finish() == 101400 + 14 + 260 + 32);
}

TEST_CASE("random traffic: everything comes back once and never faster than the bus") {
  Bench b(test_model());
  std::mt19937 random(3);
  Cycle now = 0;
  std::size_t reads = 0, writes = 0;
  for (int i = 0; i < 20000; ++i) {
    now += random() % 12;
    b.run(now);
    const bool write = random() % 3 == 0;
    b.push(random() % 16, random() % 4, write, now, 1);
    ++(write ? writes : reads);
  }
  b.finish();
  CHECK(b.output.done.size() == reads);
  CHECK(b.output.taken.size() == writes);
  CHECK(b.counters.dram_read_bytes == reads * 64);
  CHECK(b.counters.dram_write_bytes == writes * 64);
  CHECK(b.counters.row_hits + b.counters.row_misses + b.counters.row_conflicts == reads + writes);
  for (std::size_t i = 1; i < b.output.done.size(); ++i) {
    REQUIRE(b.output.done[i].at - b.output.done[i - 1].at >= b.timings.burst);
  }
}

TEST_CASE("a channel sees so many reads at a time, whatever they move, and as many writes as there is room for") {
  const auto with = [](int requests) {
    GpuModel m = without_refresh();
    m.hbm.read_requests = requests;
    return m;
  };
  const auto last_of_four = [&](int requests) {
    Bench b(with(requests));
    for (std::uint32_t bank = 0; bank < 4; ++bank) b.push(bank, 1, false, 0);
    return b.finish();
  };
  CHECK(last_of_four(4) == 3 * 4 + 14 + 14 + 4);   // rows opened tRRD apart
  CHECK(last_of_four(2) == 4 + 14 + 14 + 14 + 4);  // the fourth when the second read has gone
  CHECK(last_of_four(1) == 3 * 14 + 14 + 14 + 4);  // each when the read before it has gone
  Bench writes(with(1));
  for (std::uint32_t bank = 0; bank < 4; ++bank) writes.push(bank, 1, true, 0);
  CHECK(writes.output.taken.size() == 4);
}

TEST_CASE("a channel that cannot work is refused") {
  GpuModel m = test_model();
  m.hbm.write_low = m.hbm.write_high;
  CHECK_THROWS_AS(HbmTimings(m), InputError);
}

TEST_CASE("accesses of a line that travel together are as good as one by one, wherever the window cuts them") {
  GpuModel m = without_refresh();
  m.hbm.queue_entries = 17;
  m.hbm.write_high = 12;
  m.hbm.write_low = 4;
  Bench together(m), apart(m);
  std::mt19937 random(7);
  const auto make = [](std::uint32_t bank, std::uint32_t row, bool write, std::uint8_t sectors) {
    Burst burst;
    burst.bank = static_cast<std::uint16_t>(bank);
    burst.row = row;
    burst.write = write;
    burst.miss = static_cast<std::uint16_t>(row);
    burst.sectors = sectors;
    return burst;
  };
  Cycle now = 0;
  for (int i = 0; i < 3000; ++i) {
    now += random() % 8;
    const std::uint32_t bank = random() % 4, row = random() % 3;
    const bool write = random() % 3 == 0;
    together.run(now);
    apart.run(now);
    const std::array whole = {make(bank, row, write, 15)};
    const std::array parts = {make(bank, row, write, 3), make(bank, row, write, 12)};
    together.channel.push(whole, now, together.output);
    apart.channel.push(parts, now, apart.output);
  }
  CHECK(together.finish() == apart.finish());
  REQUIRE(together.output.done.size() == apart.output.done.size());
  for (std::size_t i = 0; i < apart.output.done.size(); ++i) {
    REQUIRE(together.output.done[i].at == apart.output.done[i].at);
    REQUIRE(together.output.done[i].sectors == apart.output.done[i].sectors);
  }
  CHECK(together.counters.row_hits == apart.counters.row_hits);
  CHECK(together.counters.turnarounds == apart.counters.turnarounds);
  const auto taken = [](const Bench& b) {
    int sectors = 0;
    for (const ChannelOutput::Taken& t : b.output.taken) sectors += std::popcount(unsigned{t.sectors});
    return sectors;
  };
  CHECK(taken(together) == taken(apart));
}

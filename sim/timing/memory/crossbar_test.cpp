#include "timing/memory/crossbar.h"

#include <catch2/catch.hpp>

#include "timing/memory/memory_test_model.h"

using namespace forewarp;

TEST_CASE("fixed-point rates keep their throughput and report whole cycles") {
  RateServer s;
  const FineCycle cost = fine_cost(3, 32);  // 10 2/3 cycles
  CHECK(fine_ceil(s.take(to_fine(5), cost)) == 5);
  CHECK(fine_ceil(s.take(to_fine(5), cost)) == 16);
  for (int i = 2; i < 300; ++i) s.take(0, cost);
  CHECK(fine_ceil(s.free()) == Approx(3205).margin(1));
}

TEST_CASE("SMs belong to TPCs, GPCs and partitions in order") {
  const Crossbar x(test_model());
  CHECK(x.gpc(0) == 0);
  CHECK(x.gpc(15) == 0);
  CHECK(x.gpc(16) == 1);
  CHECK(x.gpc(107) == 6);
  CHECK(x.partition(63) == 0);
  CHECK(x.partition(64) == 1);
}

TEST_CASE("the request port takes a few requests, then one an interval") {
  GpuModel m = test_model();
  m.crossbar.sm_requests_per_cycle_x16 = 8;  // one in two cycles
  Crossbar x(m);
  const Cycle now = 10;
  for (Cycle i = 0; i < 4; ++i) {
    REQUIRE(x.accepts(3, now));
    CHECK(x.send(3, 0, now) == now + 2 * i);
  }
  CHECK_FALSE(x.accepts(3, now));
  CHECK(x.accepts(4, now));
  const Cycle again = x.accepts_again(3, now);
  CHECK(again == now + 1);
  CHECK_FALSE(x.accepts(3, again - 1));
  CHECK(x.accepts(3, again));
  CHECK(x.accepts_again(4, now) == now);
}

TEST_CASE("reads leave two a cycle where the port takes two, what carries data takes its time") {
  GpuModel m = test_model();
  m.crossbar.sm_requests_per_cycle_x16 = 32;
  m.crossbar.sm_write_bytes_per_cycle = 32;
  Crossbar x(m);
  CHECK(x.send(3, 0, 10) == 10);
  CHECK(x.send(3, 0, 10) == 10);
  CHECK(x.send(3, 0, 10) == 11);
  CHECK(x.send(3, 0, 10) == 11);
  CHECK(x.send(3, 5, 10) == 12);  // a line and which bytes of it
  CHECK(x.send(3, 0, 10) == 17);
}

TEST_CASE("TPCs of a GPC are dealt to its CPCs in turn, which write side by side") {
  GpuModel m = test_model();  // SMs 0 to 15 are GPC 0's, two a TPC
  m.chip.cpcs_per_gpc = 3;
  Crossbar x(m);
  const int line = x.write_flits(4, true);
  for (int i = 0; i < 8; ++i) x.gather(0, line, 100);  // four lines a cycle
  CHECK(x.gather(1, line, 100) == 102);                // of the same TPC
  CHECK(x.gather(6, line, 100) == 103);                // the fourth TPC
  CHECK(x.gather(2, line, 100) == 100);
  CHECK(x.gather(4, line, 100) == 100);
  CHECK(x.gather(16, line, 100) == 100);
}

TEST_CASE("written data holds the SM's port and the CPC's path") {
  Crossbar x(test_model());  // 64 B an SM, 512 B a CPC, one a GPC
  CHECK(x.send(0, 4, 0) == 0);
  CHECK(x.send(0, 4, 0) == 2);
  CHECK(x.send(0, 1, 0) == 4);
  CHECK(x.send(0, 0, 0) == 5);
  // Sixteen SMs of a GPC with a line each: four lines a cycle.
  Cycle last = 0;
  for (std::uint16_t sm = 0; sm < 16; ++sm) last = x.gather(sm, x.write_flits(4, true), 100);
  CHECK(last == 104);  // the sixteenth starts 3.75 cycles later
  CHECK(x.gather(16, x.write_flits(4, true), 100) == 100);
  CHECK(x.write_flits(4, true) == 5);
  CHECK(x.write_flits(4, false) == 9);  // and which bytes of each sector
  CHECK(x.atomic_flits(1, 4, 4) == 2);
  CHECK(x.atomic_flits(1, 16, 4) == 3);  // and which words
  CHECK(x.atomic_flits(1, 32, 4) == 3);
  CHECK(x.atomic_flits(2, 32, 4) == 5);
  CHECK(x.atomic_flits(4, 16, 4) == 5);  // a lane a sector
  CHECK(x.atomic_flits(4, 128, 4) == 9);
  CHECK(x.atomic_flits(1, 16, 16) == 2);
  CHECK(x.atomic_flits(4, 128, 8) == 7);
  CHECK(x.atomic_flits(4, 128, 16) == 7);
  CHECK(Crossbar::atomic_sectors(1, 4, 4) == 1);
  CHECK(Crossbar::atomic_sectors(1, 16, 4) == 2);
  CHECK(Crossbar::atomic_sectors(2, 8, 4) == 3);
  CHECK(Crossbar::atomic_sectors(4, 128, 4) == 5);
}

TEST_CASE("responses are held by SM, TPC and GPC, whichever is slowest") {
  GpuModel m = test_model();
  m.crossbar.sm_response_bytes_per_cycle = 64;
  m.crossbar.tpc_response_bytes_per_cycle = 96;
  m.crossbar.gpc_response_bytes_per_cycle = 128;
  SECTION("one sector alone takes no time beyond the latency, further ones follow at the SM's rate") {
    CHECK(Crossbar(m).deliver(0, 1, 50) == 50);
    CHECK(Crossbar(m).deliver(0, 3, 50) == 51);
    CHECK(Crossbar(m).deliver(0, 4, 50) == 52);
  }
  SECTION("one SM: 64 B a cycle") {
    Crossbar x(m);
    Cycle last = 0;
    for (int i = 0; i < 1000; ++i) last = x.deliver(0, 4, 0);
    CHECK(last == 2000);
  }
  SECTION("a reply takes a cycle of the SM at least") {
    m.crossbar.sm_response_bytes_per_cycle = 128;
    m.crossbar.tpc_response_bytes_per_cycle = 256;
    m.crossbar.gpc_response_bytes_per_cycle = 1024;
    m.crossbar.gpc_fanout_bytes_per_cycle = 1024;
    Crossbar x(m);
    CHECK(x.deliver(0, 1, 50) == 50);
    CHECK(x.deliver(0, 1, 50) == 51);
    CHECK(x.deliver(16, 1, 50) == 50);
    CHECK(x.deliver(0, 0, 50) == 52);
    CHECK(x.deliver(0, 0, 50) == 52);
  }
  SECTION("two SMs of a TPC: 96 B a cycle") {
    Crossbar x(m);
    Cycle last = 0;
    for (int i = 0; i < 1500; ++i) last = x.deliver(static_cast<std::uint16_t>(i & 1), 4, 0);
    CHECK(last == Approx(2000).epsilon(0.01));
  }
  SECTION("all SMs of a GPC: 128 B a cycle") {
    Crossbar x(m);
    Cycle last = 0;
    for (int i = 0; i < 2000; ++i) last = x.deliver(static_cast<std::uint16_t>(i & 15), 4, 0);
    CHECK(last == Approx(2000).epsilon(0.01));
  }
  SECTION("what is sent to four SMs crosses into the GPC once, and all of it leaves at the rate of the fan-out") {
    m.crossbar.gpc_fanout_bytes_per_cycle = 1024;
    Crossbar wide(m);
    m.crossbar.gpc_fanout_bytes_per_cycle = 160;
    Crossbar narrow(m);
    Cycle last[2] = {0, 0};
    for (int i = 0; i < 2000; ++i) {
      const auto sm = static_cast<std::uint16_t>(i * 4 & 15);  // one of each fourth TPC
      last[0] = wide.deliver(sm, 4, 0, i % 4 != 0);
      last[1] = narrow.deliver(sm, 4, 0, i % 4 != 0);
    }
    CHECK(last[0] == Approx(1000).epsilon(0.01));  // 500 lines over the port of each SM
    CHECK(last[1] == Approx(1600).epsilon(0.01));
  }
}

TEST_CASE("the fabric has a path each way") {
  Crossbar x(test_model());  // 1024 B a cycle
  Cycle last = 0;
  for (int i = 0; i < 8000; ++i) last = x.cross(0, 4, 0);
  CHECK(last == Approx(1000).margin(1));
  CHECK(x.cross(1, 4, 0) == 0);
}

// The network between SMs and L2: a request port an SM (with write data), a shared write path a CPC, response paths of
// GPC, TPC and SM, and the fabric between the two partitions. Every stage is a RateServer; the caller enters a stage
// when simulated time reaches it, so queues form in order of arrival. Header traffic of reads and acknowledgements
// takes no bandwidth.
//
// SM i belongs to TPC i / sms_per_tpc; TPCs are numbered GPC after GPC; the first half of the GPCs (rounded up) sits at
// partition 0 (62 and 46 of 108 SMs on the two sides of one A100, hardware.md section 4).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hardware/gpu_model.h"
#include "timing/engine/rate_server.h"

namespace forewarp {

class Crossbar {
 public:
  explicit Crossbar(const GpuModel&);

  int partition(std::uint16_t sm) const { return partition_[sm]; }
  int gpc(std::uint16_t sm) const { return gpc_[sm]; }
  std::uint16_t cpc(std::uint16_t sm) const { return cpc_[sm]; }

  /// The port queues a few requests beyond the one it is sending.
  bool accepts(std::uint16_t sm, Cycle now) const { return ports_[sm].free() < to_fine(now) + port_depth_; }
  Cycle accepts_again(std::uint16_t sm, Cycle now) const;
  /// Cycle in which the request leaves the SM; `data_sectors` travel with it.
  Cycle send(std::uint16_t sm, int data_sectors, Cycle now);
  /// A write or an atomic of so many flits arrives at its CPC's path at `now`; cycle in which it enters the network.
  Cycle gather(std::uint16_t sm, int flits, Cycle now);
  /// A header and the data; a sector written in part takes a second flit that says which bytes. Atomics travel sector
  /// by sector, 16 bytes of operands a flit (kernels/micro l2_modify: 2.5 to 6.5 cycles of an SM for 1 to 4 whole
  /// sectors, 3.9 to 12 for parts; l2: RED of a lane 3.5, of 32 lanes on a line 19).
  static constexpr int write_flits(int sectors, bool whole) { return 1 + sectors * (whole ? 1 : 2); }
  static constexpr int kLineFlits = 5;  ///< of a line that is written whole
  static constexpr int atomic_flits(int sectors, int bytes) { return sectors + std::max(sectors, (bytes + 15) / 16); }
  /// A slice will take a reduction that the SM has sent no sooner than `until`: until then nothing of the SM's GPC gets
  /// past.
  void hold(std::uint16_t sm, Cycle until) { held_[gpc_[sm]] = std::max(held_[gpc_[sm]], until); }
  /// When a read that leaves the SM at `at` leaves its GPC.
  Cycle leaves_gpc(std::uint16_t sm, Cycle at) const { return std::max(at, held_[gpc_[sm]]); }
  /// Data arrives at the fabric, leaving partition `from`; cycle in which it starts to cross.
  Cycle cross(int from, int data_sectors, Cycle now);
  /// Data for the SM arrives at its GPC at `now`; cycle in which its last sector reaches the SM.
  Cycle deliver(std::uint16_t sm, int data_sectors, Cycle now);

 private:
  FineCycle request_cost_ = 0, port_depth_ = 0;
  FineCycle cpc_flit_ = 0;  ///< of a CPC's path, which takes cpc_write_bytes_per_cycle of whole lines
  SectorCost sm_write_{}, sm_response_{}, tpc_response_{}, gpc_response_{}, fabric_cost_{};
  std::vector<std::uint16_t> tpc_, cpc_, gpc_;
  std::vector<std::uint8_t> partition_;
  std::vector<Cycle> held_;  ///< by GPC
  std::vector<RateServer> ports_, sm_in_, tpc_in_, gpc_in_, cpc_out_;
  RateServer fabric_[2];
};

}  // namespace forewarp

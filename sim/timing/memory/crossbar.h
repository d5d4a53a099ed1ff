// The network between SMs and L2: a request port per SM (with write data), a shared write path per CPC, response paths
// of GPC, TPC and SM, and the fabric between the two partitions. Every stage is a RateServer. The caller enters a stage
// when simulated time reaches it, so queues form in order of arrival. Headers of reads and acknowledgements take no
// bandwidth.
//
// SM i belongs to TPC i / sms_per_tpc; TPCs are numbered GPC by GPC; the first half of the GPCs (rounded up) sits at
// partition 0.
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

  /// Whether the port takes a request; it queues a few beyond the one it is sending.
  bool accepts(std::uint16_t sm, Cycle now) const { return ports_[sm].free() < to_fine(now) + port_depth_; }
  Cycle accepts_again(std::uint16_t sm, Cycle now) const;
  /// Sends a request with data of `data_sectors`; returns the cycle in which it leaves the SM. What a mask or header of
  /// its own adds counts as a sector (port_sectors).
  Cycle send(std::uint16_t sm, int data_sectors, Cycle now);
  /// A write or atomic of `flits` reaches its CPC's path at `now`; returns the cycle in which it enters the network.
  Cycle gather(std::uint16_t sm, int flits, Cycle now);
  /// Flits of a write: a header and the data; a partly written sector takes one more that says which bytes.
  int write_flits(int sectors, bool whole) const { return 1 + sectors * (sector_flits_ + (whole ? 0 : 1)); }
  int line_flits() const { return write_flits(kLineBytes / kSectorBytes, true); }
  /// Flits of an atomic with `bytes` of operands: as of a write. Where several lanes add to a sector, one more says to
  /// which words; values of more than a word share it with those of another sector.
  int atomic_flits(int sectors, int bytes, int value_bytes) const {
    const int places = value_bytes > 4 ? (sectors + 1) / 2 : sectors;
    return write_flits(sectors, true) + (lanes_share_sectors(sectors, bytes, value_bytes) ? places : 0);
  }
  /// What an atomic takes of the SM's port, in sectors: its header goes with the operand of a single lane.
  static int atomic_sectors(int sectors, int bytes, int value_bytes) { return sectors + (bytes > value_bytes ? 1 : 0); }
  /// A slice will not take a reduction of this SM before `until`: head-of-line blocking, nothing of its GPC passes
  /// until then.
  void hold(std::uint16_t sm, Cycle until) { held_[gpc_[sm]] = std::max(held_[gpc_[sm]], until); }
  /// The cycle in which a read that leaves the SM at `at` leaves its GPC.
  Cycle leaves_gpc(std::uint16_t sm, Cycle at) const { return std::max(at, held_[gpc_[sm]]); }
  /// Data reaches the fabric, leaving partition `from`; returns the cycle in which it starts to cross.
  Cycle cross(int from, int data_sectors, Cycle now);
  /// Data for the SM reaches its GPC at `now`; returns the cycle in which its last sector reaches the SM. What L2 sends
  /// to several SMs crosses into the GPC once: `merged` with data that is charged to another of them.
  Cycle deliver(std::uint16_t sm, int data_sectors, Cycle now, bool merged = false);

 private:
  static bool lanes_share_sectors(int sectors, int bytes, int value_bytes) { return bytes > sectors * value_bytes; }

  FineCycle request_cost_ = 0, port_depth_ = 0;
  int sector_flits_ = 1;
  FineCycle cpc_flit_ = 0;  ///< cost of a flit on a CPC's path, from cpc_write_bytes_per_cycle of whole lines
  SectorCost sm_reply_{};   ///< of the SM's port: a reply takes a cycle at least
  SectorCost sm_write_{}, sm_response_{}, tpc_response_{}, gpc_response_{}, gpc_fanout_{}, fabric_cost_{};
  std::vector<std::uint16_t> tpc_, cpc_, gpc_;
  std::vector<std::uint8_t> partition_;
  std::vector<Cycle> held_;  ///< by GPC
  std::vector<RateServer> ports_, sm_in_, tpc_in_, gpc_in_, gpc_fanned_, cpc_out_;
  RateServer fabric_[2];
};

}  // namespace forewarp

#include "timing/memory/crossbar.h"

#include <algorithm>

#include "base/error.h"

namespace forewarp {
Crossbar::Crossbar(const GpuModel& model) {
  const CrossbarSpec& spec = model.crossbar;
  request_cost_ = fine_cost(spec.sm_requests_per_cycle_x16, 16);
  port_depth_ = request_cost_ * static_cast<FineCycle>(spec.port_requests);
  sm_write_ = sector_cost(spec.sm_write_bytes_per_cycle);
  sector_flits_ = (kSectorBytes + spec.flit_bytes - 1) / spec.flit_bytes;
  cpc_flit_ = fine_cost(spec.cpc_write_bytes_per_cycle, kLineBytes) / static_cast<FineCycle>(line_flits());
  sm_response_ = sector_cost(spec.sm_response_bytes_per_cycle);
  for (std::size_t n = 1; n < sm_reply_.size(); ++n) sm_reply_[n] = std::max(sm_response_[n], to_fine(1));
  tpc_response_ = sector_cost(spec.tpc_response_bytes_per_cycle);
  gpc_response_ = sector_cost(spec.gpc_response_bytes_per_cycle);
  gpc_fanout_ = sector_cost(spec.gpc_fanout_bytes_per_cycle);
  if (model.l2.partitions > 1) fabric_cost_ = sector_cost(spec.fabric_bytes_per_cycle);

  const std::size_t gpcs = model.chip.tpcs_per_gpc.size();
  gpc_ = gpc_of_sms(model.chip);
  cpc_ = cpc_of_sms(model.chip);
  if (gpc_.size() != static_cast<std::size_t>(model.chip.sm_count)) {
    throw InputError("the GPU model's tpcs_per_gpc do not add up to its sm_count", "correct the chip section");
  }
  for (std::size_t sm = 0; sm < gpc_.size(); ++sm) {
    tpc_.push_back(static_cast<std::uint16_t>(sm / static_cast<std::size_t>(model.chip.sms_per_tpc)));
    partition_.push_back(model.l2.partitions > 1 && of_gpc(spec.gpc_partitions, gpc_[sm]) == 1 ? 1 : 0);
  }
  tpc_in_.resize(static_cast<std::size_t>(tpc_.empty() ? 0 : tpc_.back() + 1));
  ports_.resize(tpc_.size());
  sm_in_.resize(tpc_.size());
  gpc_in_.resize(gpcs);
  gpc_fanned_.resize(gpcs);
  held_.resize(gpcs);
  cpc_out_.resize(gpcs * static_cast<std::size_t>(model.chip.cpcs_per_gpc));
}

Cycle Crossbar::accepts_again(std::uint16_t sm, Cycle now) const {
  if (accepts(sm, now)) return now;
  return fine_floor(ports_[sm].free() - port_depth_) + 1;
}

Cycle Crossbar::send(std::uint16_t sm, int data_sectors, Cycle now) {
  const FineCycle cost = std::max(request_cost_, sm_write_[static_cast<std::size_t>(data_sectors)]);
  return fine_floor(ports_[sm].take(to_fine(now), cost));
}

Cycle Crossbar::gather(std::uint16_t sm, int flits, Cycle now) {
  return fine_ceil(cpc_out_[cpc_[sm]].take(to_fine(now), flits * cpc_flit_));
}

Cycle Crossbar::cross(int from, int data_sectors, Cycle now) {
  return fine_ceil(fabric_[from].take(to_fine(now), fabric_cost_[static_cast<std::size_t>(data_sectors)]));
}

Cycle Crossbar::deliver(std::uint16_t sm, int data_sectors, Cycle now, bool merged) {
  // Four queues in one step: a TPC is fed by its GPC alone and an SM by its TPC alone, so they see the same order.
  const auto n = static_cast<std::size_t>(data_sectors);
  FineCycle at = gpc_in_[gpc_[sm]].take(to_fine(now), merged ? 0 : gpc_response_[n]);
  at = gpc_fanned_[gpc_[sm]].take(at, gpc_fanout_[n]);
  at = tpc_in_[tpc_[sm]].take(at, tpc_response_[n]);
  at = sm_in_[sm].take(at, sm_reply_[n]);
  // The path is cut-through: the first sector is covered by the response latency, the others follow at the rate of the
  // narrowest stage.
  if (n == 0) return fine_ceil(at);
  return fine_ceil(at + std::max({gpc_response_[n] - gpc_response_[1], tpc_response_[n] - tpc_response_[1],
                                  sm_response_[n] - sm_response_[1]}));
}

}  // namespace forewarp

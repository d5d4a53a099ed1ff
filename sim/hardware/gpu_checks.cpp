// What the leaves of a GPU file must be to each other. A file that passes is one the simulator can divide by.
#include <algorithm>
#include <bit>
#include <numeric>

#include "base/types.h"
#include "hardware/gpu_schema.h"

namespace forewarp {
namespace {

class Checks {
 public:
  explicit Checks(const GpuFile& file) : file_(file) {}

  void require(bool holds, const std::string& path, const std::string& what, const std::string& remedy) const {
    if (!holds) throw InputError(file_.places.at(path), path + " " + what, remedy);
  }
  void divides(std::int64_t part, std::int64_t whole, const std::string& path, const std::string& of) const {
    require(whole % part == 0, path,
            "is " + std::to_string(whole) + ", no multiple of " + of + ", " + std::to_string(part),
            "correct one of the two");
  }
  template <class Number>
  void at_most(Number small, Number large, const std::string& path, const std::string& of) const {
    require(small <= large, path, "is more than " + of, "correct one of the two");
  }

 private:
  const GpuFile& file_;
};

void check_chip(const Checks& c, const GpuModel& m) {
  const ChipSpec& s = m.chip;
  c.require(m.sm == 80 || m.sm == 90, "sm", "is neither 80 nor 90", "only these two architectures are modelled");
  c.divides(s.sms_per_tpc, s.sm_count, "chip.sm_count", "chip.sms_per_tpc");
  const int tpcs = std::accumulate(s.tpcs_per_gpc.begin(), s.tpcs_per_gpc.end(), 0),
            wanted = s.sm_count / s.sms_per_tpc;
  c.require(tpcs == wanted, "chip.tpcs_per_gpc",
            "adds up to " + std::to_string(tpcs) + " TPCs, but sm_count / sms_per_tpc is " + std::to_string(wanted),
            "list the TPCs of every GPC");
}

/// Of the ways between an SM and its slices the shortest one must take time: requests travel forward in it.
void check_ways(const Checks& c, const GpuModel& m) {
  const CrossbarSpec& x = m.crossbar;
  const std::size_t gpcs = m.chip.tpcs_per_gpc.size();
  for (const auto* list : {&x.gpc_ends, &x.gpc_partitions})
    c.require(list->size() == gpcs, list == &x.gpc_ends ? "crossbar.gpc_ends" : "crossbar.gpc_partitions",
              "has " + std::to_string(list->size()) + " entries for " + std::to_string(gpcs) + " GPCs",
              "list one for each GPC of chip.tpcs_per_gpc");
  const int slices = m.l2.slices / m.l2.partitions;
  const bool copies = m.l2.partitions == 2 && m.l2.replicate_far_lines;
  const int least = *std::min_element(x.tpc_cycles.begin(), x.tpc_cycles.end()) -
                    x.slice_cycles * (slices - 1) / slices - (copies ? x.copy_cycles / 2 : 0);
  const auto way = [&](const std::string& path, int mean, int less) {
    c.require(mean + less >= 1, path,
              "is " + std::to_string(mean) + ", but tpc_cycles, slice_cycles and copy_cycles take " +
                  std::to_string(-less) + " off it for the nearest",
              "let the nearest way take at least a cycle");
  };
  way("crossbar.request_cycles", x.request_cycles, least / 2);
  way("crossbar.response_cycles", x.response_cycles, least - least / 2);
}

void check_occupancy(const Checks& c, const GpuModel& m) {
  const OccupancySpec& s = m.occupancy;
  c.require(s.max_threads == s.max_warps * kWarpLanes, "occupancy.max_threads", "is not max_warps x 32",
            "correct one of the two");
  c.at_most(s.max_threads_per_block, s.max_threads, "occupancy.max_threads_per_block", "max_threads");
  c.divides(kWarpLanes, s.max_threads_per_block, "occupancy.max_threads_per_block", "a warp's threads");
  c.divides(m.issue.sub_partitions, s.max_warps, "occupancy.max_warps", "issue.sub_partitions");
  c.require(s.max_warps / m.issue.sub_partitions <= kWarpSlots, "occupancy.max_warps",
            "is more than " + std::to_string(kWarpSlots) + " a sub-partition", "correct one of the two");
  c.divides(kWarpLanes, s.register_unit, "occupancy.register_unit", "a warp's threads");
  c.divides(std::int64_t{m.issue.sub_partitions} * s.register_unit, s.registers, "occupancy.registers",
            "issue.sub_partitions x register_unit");
  c.at_most(s.shared_block_max_bytes + s.shared_reserved_bytes, s.shared_bytes, "occupancy.shared_block_max_bytes",
            "shared_bytes - shared_reserved_bytes");
  c.divides(s.shared_unit_bytes, s.shared_bytes, "occupancy.shared_bytes", "shared_unit_bytes");
  const std::string carveouts = "occupancy.carveouts_bytes";
  for (std::size_t i = 1; i < s.carveouts_bytes.size(); ++i)
    c.require(s.carveouts_bytes[i - 1] < s.carveouts_bytes[i], carveouts, "is not ascending",
              "sort it, each size once");
  c.require(s.carveouts_bytes.back() == s.shared_bytes, carveouts, "does not end with shared_bytes",
            "correct one of the two");
  c.at_most(s.carveout_unused_bytes, s.shared_bytes, "occupancy.carveout_unused_bytes", "shared_bytes");
  c.at_most(s.carveout_spare_bytes, s.shared_bytes, "occupancy.carveout_spare_bytes", "shared_bytes");
  const int set = m.l1.ways * kLineBytes;
  for (const int carveout : s.carveouts_bytes) {
    const int l1 = s.unified_bytes - carveout;
    c.require(l1 >= set && l1 % set == 0, carveouts,
              "leaves " + std::to_string(l1) + " bytes of unified_bytes to L1 for " + std::to_string(carveout) +
                  ", no whole number of sets of l1.ways x 128 bytes",
              "correct carveouts_bytes, unified_bytes or l1.ways");
  }
}

void check_caches(const Checks& c, const GpuModel& m) {
  const InstructionCacheSpec& i = m.icache;
  c.divides(16, i.line_bytes, "icache.line_bytes", "an instruction's 16 bytes");
  c.divides(i.line_bytes, i.l0_bytes, "icache.l0_bytes", "line_bytes");
  c.divides(i.line_bytes, i.l1_bytes, "icache.l1_bytes", "line_bytes");
  c.divides(i.line_bytes, i.l2_bytes, "icache.l2_bytes", "line_bytes");
  if (i.launch_bytes > 0) c.divides(i.line_bytes, i.launch_bytes, "icache.launch_bytes", "line_bytes");
  c.at_most(i.l0_bytes, i.l1_bytes, "icache.l0_bytes", "l1_bytes");
  c.at_most(i.l1_bytes, i.l2_bytes, "icache.l1_bytes", "l2_bytes");
  const CrossbarSpec& x = m.crossbar;
  c.at_most(x.sm_response_bytes_per_cycle, x.tpc_response_bytes_per_cycle, "crossbar.sm_response_bytes_per_cycle",
            "tpc_response_bytes_per_cycle");
  c.at_most(x.tpc_response_bytes_per_cycle, x.gpc_response_bytes_per_cycle, "crossbar.tpc_response_bytes_per_cycle",
            "gpc_response_bytes_per_cycle");
  c.at_most(x.gpc_response_bytes_per_cycle, x.gpc_fanout_bytes_per_cycle, "crossbar.gpc_response_bytes_per_cycle",
            "gpc_fanout_bytes_per_cycle");
  c.at_most(x.sm_write_bytes_per_cycle, x.cpc_write_bytes_per_cycle, "crossbar.sm_write_bytes_per_cycle",
            "cpc_write_bytes_per_cycle");
  const L2Spec& l2 = m.l2;
  c.divides(l2.partitions, l2.slices, "l2.slices", "partitions");
  c.divides(std::int64_t{l2.slices} * l2.ways * kLineBytes, l2.bytes, "l2.bytes", "slices x ways x 128");
}

void check_hbm(const Checks& c, const GpuModel& m) {
  const HbmSpec& s = m.hbm;
  c.divides(m.l2.partitions, s.channels, "hbm.channels", "l2.partitions");
  c.divides(kSectorBytes, s.access_bytes, "hbm.access_bytes", "a sector's 32 bytes");
  c.divides(s.access_bytes, s.row_bytes, "hbm.row_bytes", "access_bytes");
  c.require(std::has_single_bit(static_cast<unsigned>(m.l2.chunk_bytes)), "l2.chunk_bytes", "is no power of two",
            "slices are chosen by address bits");
  c.divides(m.l2.chunk_bytes, s.row_bytes, "hbm.row_bytes", "l2.chunk_bytes");
  c.at_most(s.t_ccd_s, s.t_ccd_l, "hbm.t_ccd_s", "t_ccd_l");
  c.at_most(s.t_rcd, s.t_ras, "hbm.t_rcd", "t_ras");
  c.at_most(s.t_rrd, s.t_faw, "hbm.t_rrd", "t_faw");
  const int banks = s.bank_groups * s.banks_per_group;
  c.require(banks % s.refresh_turns == 0, "hbm.refresh_turns",
            "is " + std::to_string(s.refresh_turns) + ", no divisor of the " + std::to_string(banks) +
                " banks of bank_groups x banks_per_group",
            "correct one of the three");
  c.require(s.t_rfc + s.t_rp < s.t_refi, "hbm.t_rfc", "and t_rp leave no time between refreshes",
            "correct t_rfc or t_refi");
  const double burst = s.access_bytes * s.channels / s.bytes_per_ns;
  c.require(s.t_ccd_s > 0.8 * burst && s.t_ccd_s < 1.25 * burst, "hbm.t_ccd_s",
            "is " + std::to_string(s.t_ccd_s) +
                " ns, but a burst takes access_bytes x channels / bytes_per_ns = " + std::to_string(burst) + " ns",
            "correct one of the four");
  c.at_most(s.write_high, s.queue_entries, "hbm.write_high", "queue_entries");
  c.require(s.bank_groups * s.banks_per_group <= 64, "hbm.banks_per_group", "makes more than 64 banks a channel",
            "the bank state is a 64-bit mask");
  c.require(s.write_low < s.write_high, "hbm.write_low", "is not below write_high", "correct one of the two");
}

}  // namespace

void check_gpu(const GpuFile& file) {
  const Checks checks(file);
  check_chip(checks, file.model);
  check_ways(checks, file.model);
  check_occupancy(checks, file.model);
  check_caches(checks, file.model);
  check_hbm(checks, file.model);
}

}  // namespace forewarp

#include "hardware/gpu_schema.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace forewarp {
namespace {

using config::Map;
using config::Node;

constexpr double kHuge = 1e6;  // no latency, size in entries or rate of a GPU is near it

/// One group of leaves, `{value, unit, source, ref}` each.
class Group {
 public:
  Group(Map& map, GpuFile& file) : map_(map), file_(file) {}

  int integer(std::string_view key, std::string_view unit, int low, int high) {
    int result = 0;
    leaf(key, unit, [&](const Node& value) {
      result = static_cast<int>(value.integer(low, high));
      return value.string();
    });
    return result;
  }

  std::int64_t size(std::string_view key, std::string_view unit, std::int64_t low, std::int64_t high) {
    std::int64_t result = 0;
    leaf(key, unit, [&](const Node& value) {
      result = value.integer(low, high);
      return value.string();
    });
    return result;
  }

  double number(std::string_view key, std::string_view unit, double low, double high) {
    double result = 0;
    leaf(key, unit, [&](const Node& value) {
      result = value.number(low, high);
      return value.string();
    });
    return result;
  }

  bool boolean(std::string_view key) {
    bool result = false;
    leaf(key, "bool", [&](const Node& value) {
      result = value.boolean();
      return value.string();
    });
    return result;
  }

  std::vector<int> integers(std::string_view key, std::string_view unit, int low, int high) {
    std::vector<int> result;
    leaf(key, unit, [&](const Node& value) {
      std::string text;
      for (const Node& item : value.list(1, 64)) {
        result.push_back(static_cast<int>(item.integer(low, high)));
        text += (text.empty() ? "[" : ", ") + item.string();
      }
      return text + "]";
    });
    return result;
  }

  int cycles(std::string_view key, int low = 0, int high = 100000) { return integer(key, "cycles", low, high); }
  int bytes_per_cycle(std::string_view key) { return integer(key, "bytes/cycle", 1, 1 << 16); }
  double ns(std::string_view key) { return number(key, "ns", 0.01, kHuge); }

 private:
  /// A number that was found on another GPU is one that was transferred. What a family was measured on must be said.
  void read_source(Map& m, const Node& value, Leaf& leaf) const {
    const Node source = m.at("source");
    leaf.written = static_cast<Provenance>(source.choice({"measured", "vendor", "paper", "fitted", "assumed"}));
    leaf.source = leaf.written;
    leaf.where = value.where();
    const bool found = leaf.written == Provenance::Measured || leaf.written == Provenance::Fitted;
    if (const auto on = m.find("on")) {
      leaf.on = on->string();
      if (leaf.written == Provenance::Assumed)
        throw on->error("names a GPU, but the number is assumed", "say how it was found, or leave out `on`");
      const std::string& name = file_.model.name;
      if (leaf.on != name && !name.starts_with(leaf.on + "-")) leaf.source = Provenance::Transferred;
    } else if (found && leaf.where.file != file_.path) {
      throw source.error("is " + std::string(provenance_text(leaf.written)) + " in the file of a family",
                         "name the GPU it was found on: on: h200-sxm");
    }
  }

  template <class Read>
  void leaf(std::string_view key, std::string_view unit, Read&& read) {
    const std::string& family = file_.model.family;
    const Node node = map_.at(key, family.empty() ? ""
                                                  : "family " + family + " leaves it to its products: add it to " +
                                                        file_.path + " in " + std::string(unit));
    node.read_map([&](Map& m) {
      Leaf leaf;
      leaf.path = node.path();
      const Node value = m.at("value");
      leaf.value = read(value);
      const Node unit_node = m.at("unit");
      leaf.unit = unit_node.string();
      if (leaf.unit != unit) {
        throw unit_node.error("is " + config::quoted(leaf.unit) + ", but this number is in " + config::quoted(unit),
                              "convert the value and write unit: " + std::string(unit));
      }
      read_source(m, value, leaf);
      leaf.ref = m.at("ref").string();
      ++file_.model.leaves[static_cast<std::size_t>(leaf.source)];
      file_.places.emplace(leaf.path, value.where());
      file_.leaves.push_back(std::move(leaf));
    });
  }

  Map& map_;
  GpuFile& file_;
};

template <class Reader>
void read_group(Map& parent, std::string_view key, GpuFile& file, Reader&& reader) {
  parent.at(key).read_map([&](Map& map) {
    Group group(map, file);
    reader(group);
  });
}

void read_chip(Group& g, ChipSpec& s) {
  s.sm_count = g.integer("sm_count", "SM", 1, 1024);
  s.sms_per_tpc = g.integer("sms_per_tpc", "SM", 1, 8);
  s.tpcs_per_gpc = g.integers("tpcs_per_gpc", "TPC", 1, 64);
  s.cpcs_per_gpc = g.integer("cpcs_per_gpc", "CPC", 1, 64);
  s.sm_clock_mhz = g.number("sm_clock_mhz", "MHz", 100, 10000);
}

void read_occupancy(Group& g, OccupancySpec& s) {
  constexpr int kMiB = 1 << 20;
  s.max_warps = g.integer("max_warps", "warps", 1, 64);
  s.max_threads = g.integer("max_threads", "threads", 32, 2048);
  s.max_blocks = g.integer("max_blocks", "blocks", 1, 64);
  s.max_threads_per_block = g.integer("max_threads_per_block", "threads", 32, 1024);
  s.registers = g.integer("registers", "registers", 1024, kMiB);
  s.registers_per_thread_min = g.integer("registers_per_thread_min", "registers", 1, 255);
  s.registers_per_thread_max = g.integer("registers_per_thread_max", "registers", 16, 255);
  s.register_unit = g.integer("register_unit", "registers", 1, 4096);
  s.shared_bytes = g.integer("shared_bytes", "bytes", 1024, kMiB);
  s.shared_block_max_bytes = g.integer("shared_block_max_bytes", "bytes", 1024, kMiB);
  s.shared_reserved_bytes = g.integer("shared_reserved_bytes", "bytes", 0, 65536);
  s.shared_unit_bytes = g.integer("shared_unit_bytes", "bytes", 1, 65536);
  s.unified_bytes = g.integer("unified_bytes", "bytes", 1024, kMiB);
  s.carveouts_bytes = g.integers("carveouts_bytes", "bytes", 0, kMiB);
  s.carveout_unused_bytes = g.integer("carveout_unused_bytes", "bytes", 0, kMiB);
  s.carveout_half_warps = g.integer("carveout_half_warps", "warps", 1, 64);
  s.carveout_quarter_warps = g.integer("carveout_quarter_warps", "warps", 1, 64);
  s.carveout_spare_bytes = g.integer("carveout_spare_bytes", "bytes", 0, kMiB);
  s.carveout_spare_warps = g.integer("carveout_spare_warps", "warps", 0, 64);
}

void read_issue(Group& g, IssueSpec& s) {
  s.sub_partitions = g.integer("sub_partitions", "sub-partitions", 1, 8);
  s.branch_cycles = g.cycles("branch_cycles");
  s.barrier_release_cycles = g.cycles("barrier_release_cycles");
  s.barrier_per_warp_cycles = g.cycles("barrier_per_warp_cycles");
  s.first_cycles = g.cycles("first_cycles");
  s.exit_cycles = g.cycles("exit_cycles");
  s.scoreboard_limit = g.integer("scoreboard_limit", "instructions", 1, 255);
  s.membar_gpu_cycles = g.cycles("membar_gpu_cycles");
  s.membar_cta_cycles = g.cycles("membar_cta_cycles");
  s.membar_gpu_interval = g.cycles("membar_gpu_interval");
  s.membar_cta_interval = g.cycles("membar_cta_interval");
  s.constant_hit_cycles = g.cycles("constant_hit_cycles");
  s.constant_miss_cycles = g.cycles("constant_miss_cycles");
  s.constant_line_bytes = g.integer("constant_line_bytes", "bytes", 16, 4096);
  s.register_bank_count = g.integer("register_bank_count", "banks", 1, 16);
  s.register_window_cycles = g.cycles("register_window_cycles", 3, 32);
  s.wide_product_interval = g.cycles("wide_product_interval", 1, 64);
  s.wide_product_dispatch_cycles = g.cycles("wide_product_dispatch_cycles", 1, 64);
  s.wide_product_operand_cycles = g.cycles("wide_product_operand_cycles", 0, 64);
  s.wide_product_chain_cycles = g.cycles("wide_product_chain_cycles", 0, 64);
}

/// Keys of the pipes that have a spec, in the order of Pipe. No unit is modelled for textures and the TMA.
constexpr std::string_view kPipes[] = {"alu",    "fma", "fma_heavy", "fp16", "fp64",   "xu",
                                       "tensor", "lsu", "adu",       "cbu",  "uniform"};
static_assert(std::size(kPipes) == static_cast<std::size_t>(Pipe::Tex), "a pipe without a key");

void read_pipes(Map& root, GpuFile& file) {
  root.at("pipes").read_map([&](Map& pipes) {
    for (std::size_t p = 0; p < std::size(kPipes); ++p) {
      PipeSpec& spec = file.model.pipes[p];
      read_group(pipes, kPipes[p], file, [&](Group& g) {
        const bool optional = static_cast<Pipe>(p) == Pipe::FmaHeavy;  // missing from some of the GPUs
        spec.interval = g.cycles("interval", optional ? 0 : 1, 255);
        spec.per_sm = g.boolean("per_sm");
      });
    }
  });
}

void read_tensor(Group& g, TensorSpec& s) {
  s.product_bits = g.integer("product_bits", "bits/cycle", 64, 1 << 20);
  s.fp64_products = g.integer("fp64_products", "products/cycle", 1, 1 << 16);
  s.fp64_least_cycles = g.cycles("fp64_least_cycles", 1, 255);
  s.fetch_cycles = g.cycles("fetch_cycles", 1, 64);
  s.fetch_pair_cycles = g.cycles("fetch_pair_cycles", 0, 64);
  s.fetch_metadata_cycles = g.cycles("fetch_metadata_cycles", 0, 64);
  s.fp64_result_cycles = g.cycles("fp64_result_cycles", 1, 255);
}

void read_async(Group& g, AsyncSpec& s) {
  s.product_result_cycles = g.cycles("product_result_cycles", 1, 1024);
  s.slab_columns = g.integer("slab_columns", "columns", 8, 256);
  s.slab_port_cycles = g.cycles("slab_port_cycles", 0, 64);
  s.factor_fetch_cycles = g.cycles("factor_fetch_cycles", 0, 64);
  s.group_release_cycles = g.cycles("group_release_cycles", 1, 1024);
  s.phase_interval = g.cycles("phase_interval", 1, 1024);
  s.phase_check_cycles = g.cycles("phase_check_cycles", 1, 1024);
  s.phase_complete_cycles = g.cycles("phase_complete_cycles", 1, 1024);
  s.box_start_cycles = g.cycles("box_start_cycles", 1, 4096);
  s.box_line_x16 = g.integer("box_line_x16", "cycles/16", 1, 4096);
  s.box_complete_cycles = g.cycles("box_complete_cycles", 1, 4096);
}

void read_cluster(Group& g, ClusterSpec& s) {
  s.hop_cycles = g.cycles("hop_cycles", 1, 4096);
  s.arrive_cycles = g.cycles("arrive_cycles", 1, 4096);
  s.sm_bytes_per_cycle = g.integer("sm_bytes_per_cycle", "bytes/cycle", 1, 4096);
  s.load_bytes_per_cycle = g.integer("load_bytes_per_cycle", "bytes/cycle", 1, 4096);
  s.cpc_bytes_per_cycle = g.integer("cpc_bytes_per_cycle", "bytes/cycle", 1, 4096);
  s.cpc_atomics_x16 = g.integer("cpc_atomics_x16", "sectors/16 cycles", 1, 4096);
  s.barrier_cycles = g.cycles("barrier_cycles", 1, 4096);
  s.fence_cycles = g.cycles("fence_cycles", 1, 4096);
  s.multicast_cycles = g.cycles("multicast_cycles", 0, 4096);
  s.interval_x16 = g.integer("interval_x16", "cycles/16", 0, 4096);
}

void read_icache(Group& g, const IssueSpec& issue, InstructionCacheSpec& s) {
  constexpr int kMost = 1 << 24;
  s.l0_bytes = g.integer("l0_bytes", "bytes", 128, kMost);
  s.l1_bytes = g.integer("l1_bytes", "bytes", 128, kMost);
  s.l2_bytes = g.integer("l2_bytes", "bytes", 128, kMost);
  s.ways = g.integer("ways", "ways", 1, 64);
  s.line_bytes = g.integer("line_bytes", "bytes", 16, 4096);
  s.l1_hit_cycles = g.cycles("l1_hit_cycles");
  s.l2_hit_cycles = g.cycles("l2_hit_cycles");
  s.memory_cycles = g.cycles("memory_cycles");
  s.first_cycles = g.cycles("first_cycles");
  s.warm_first_cycles = g.cycles("warm_first_cycles");
  s.launch_bytes = g.integer("launch_bytes", "bytes", 0, kMost);
  s.prefetch_lines = g.integer("prefetch_lines", "lines", 0, 1024);
  s.stream_lines = g.integer("stream_lines", "lines", 0, 1024);
  s.l1_line_cycles = g.integer("l1_line_cycles", "cycles", 1, 10000);
  s.l2_line_cycles = g.integer("l2_line_cycles", "cycles", 1, 10000);
  s.memory_line_cycles = g.integer("memory_line_cycles", "cycles", 1, 10000);
  s.feed_cycles =
      g.integer("feed_cycles", "cycles", 0, std::min(issue.branch_cycles, issue.first_cycles));  // of both a part
  s.feed_line_cycles = g.integer("feed_line_cycles", "cycles", 1, 1000);
  s.feed_interval_cycles = g.integer("feed_interval_cycles", "cycles", 1, 1000);
  s.feed_lines = g.integer("feed_lines", "lines", 2, 1024);
  s.jump_lines = g.integer("jump_lines", "lines", 1, s.feed_lines);
}

void read_latency(Group& g, VariableLatencySpec& s) {
  s.mufu = g.cycles("mufu", 1);
  s.conversion = g.cycles("conversion", 1);
  s.popc = g.cycles("popc", 1);
  s.shuffle = g.cycles("shuffle", 1);
  s.vote = g.cycles("vote", 1);
  s.s2r = g.cycles("s2r", 1);
  s.fp64 = g.cycles("fp64", 1);
  s.shared_load = g.cycles("shared_load", 1);
  s.shared_store_read = g.cycles("shared_store_read", 1);
  s.shared_atomic = g.cycles("shared_atomic", 1);
  s.global_read_release = g.cycles("global_read_release", 1);
  s.match = g.cycles("match", 1);
  s.redux = g.cycles("redux", 1);
  s.movm = g.cycles("movm", 1);
  s.queued_behind = g.cycles("queued_behind", 0, 1024);
  s.queued_read_release = g.cycles("queued_read_release", 0, 1024);
  s.copy_release = g.cycles("copy_release", 1, 1024);
}

void read_memory_pipe(Group& g, MemoryPipeSpec& s) {
  s.queue_entries = g.integer("queue_entries", "entries", 1, 1024);
  s.lsu_interval = g.cycles("lsu_interval", 1, 1024);
  s.lead_cycles = g.cycles("lead_cycles", 1, 1024);
  s.shuffle_interval = g.cycles("shuffle_interval", 1, 1024);
  s.shared_wavefront_cycles = g.cycles("shared_wavefront_cycles", 1, 1024);
  s.shared_conflict_latency = g.cycles("shared_conflict_latency", 0, 1024);
  s.wide_latency = g.cycles("wide_latency", 0, 1024);
  s.warp_wavefront_cycles = g.cycles("warp_wavefront_cycles", 1, 1024);
  s.port_wavefront_cycles = g.cycles("port_wavefront_cycles", 0, 1024);
  s.register_cycles = g.cycles("register_cycles", 0, 16);
  s.fill_wavefront_cycles = g.cycles("fill_wavefront_cycles", 0, 16);
  s.movm_interval = g.cycles("movm_interval", 1, 255);
  s.shared_queue_entries = g.integer("shared_queue_entries", "entries", 1, 64);
  s.tags_ahead_cycles = g.cycles("tags_ahead_cycles", 0, 1024);
}

void read_l1(Group& g, L1Spec& s) {
  s.hit_cycles = g.cycles("hit_cycles", 1);
  s.tags_per_cycle = g.integer("tags_per_cycle", "lines/cycle", 1, 64);
  s.tag_bank_masks = g.integers("tag_bank_masks", "address bits", 0, (1 << 30) - 1);
  s.data_bytes_per_cycle = g.bytes_per_cycle("data_bytes_per_cycle");
  s.ways = g.integer("ways", "ways", 1, 4096);
  s.loads_in_flight = g.integer("loads_in_flight", "loads", 1, 32768);
  s.miss_lines = g.integer("miss_lines", "lines", 1, 32768);
  s.store_bank_lines = g.integer("store_bank_lines", "lines", 0, 16);
  s.store_partial_lines = g.integer("store_partial_lines", "lines", 1, 32);
  s.store_wait_cycles = g.cycles("store_wait_cycles");
  s.store_wavefront_cycles = g.cycles("store_wavefront_cycles", 1);
  s.out_requests = g.integer("out_requests", "requests", 1, 32);
}

void read_crossbar(Group& g, CrossbarSpec& s) {
  s.request_cycles = g.cycles("request_cycles", 1);
  s.response_cycles = g.cycles("response_cycles", 1);
  s.far_cycles = g.cycles("far_cycles");
  s.tpc_cycles = g.integers("tpc_cycles", "cycles", -32, 32);
  s.slice_cycles = g.integer("slice_cycles", "cycles", 0, 32);
  s.copy_cycles = g.integer("copy_cycles", "cycles", 0, 64);
  s.gpc_ends = g.integers("gpc_ends", "end", 0, 1);
  s.gpc_partitions = g.integers("gpc_partitions", "partition", 0, 1);
  s.sm_requests_per_cycle_x16 = g.integer("sm_requests_per_cycle_x16", "requests/16 cycles", 1, 1024);
  s.port_requests = g.integer("port_requests", "requests", 1, 1024);
  s.sm_response_bytes_per_cycle = g.bytes_per_cycle("sm_response_bytes_per_cycle");
  s.tpc_response_bytes_per_cycle = g.bytes_per_cycle("tpc_response_bytes_per_cycle");
  s.gpc_response_bytes_per_cycle = g.bytes_per_cycle("gpc_response_bytes_per_cycle");
  s.gpc_fanout_bytes_per_cycle = g.bytes_per_cycle("gpc_fanout_bytes_per_cycle");
  s.sm_write_bytes_per_cycle = g.bytes_per_cycle("sm_write_bytes_per_cycle");
  s.sm_write_flits = g.integer("sm_write_flits", "flits", 1, 0xFFFF);
  s.cpc_write_bytes_per_cycle = g.bytes_per_cycle("cpc_write_bytes_per_cycle");
  s.cpc_fabric_writes = g.integer("cpc_fabric_writes", "requests", 1, 1 << 20);
  s.cpc_reads = g.integer("cpc_reads", "requests", 1, 1 << 20);
  s.slice_write_bytes_per_cycle = g.bytes_per_cycle("slice_write_bytes_per_cycle");
  s.fabric_bytes_per_cycle = g.bytes_per_cycle("fabric_bytes_per_cycle");
  s.flit_bytes = g.integer("flit_bytes", "bytes", 16, 128);
}

void read_l2(Group& g, L2Spec& s) {
  s.bytes = g.size("bytes", "bytes", 1 << 16, std::int64_t{1} << 33);
  s.partitions = g.integer("partitions", "partitions", 1, 2);
  s.partition_bits = g.integers("partition_bits", "address bits", 7, 20);
  s.chunk_bytes = g.integer("chunk_bytes", "bytes", kLineBytes, 4096);
  s.slices = g.integer("slices", "slices", 1, 1024);
  s.ways = g.integer("ways", "ways", 1, 1024);
  s.hit_cycles = g.cycles("hit_cycles", 1);
  s.slice_bytes_per_cycle = g.bytes_per_cycle("slice_bytes_per_cycle");
  s.slice_tags_per_cycle = g.integer("slice_tags_per_cycle", "lines/cycle", 1, 64);
  s.atomic_word_interval = g.cycles("atomic_word_interval", 1, 1024);
  s.atomic_interval = g.cycles("atomic_interval", 1, 1024);
  s.fetch_bytes = g.integer("fetch_bytes", "bytes", 32, 128);
  s.miss_entries = g.integer("miss_entries", "entries", 4, 32766);
  s.clock_ratio = g.number("clock_ratio", "ratio", 0.05, 20);
  s.replicate_far_lines = g.boolean("replicate_far_lines");
  s.dirty_share = g.number("dirty_share", "ratio", 0.01, 1);
  s.dirty_share_read = g.number("dirty_share_read", "ratio", 0.01, 1);
  s.victim_choices = g.integer("victim_choices", "lines", 1, 2);
  s.spare_dirty = g.number("spare_dirty", "ratio", 0, 1);
  s.partial_share = g.number("partial_share", "ratio", 0.01, 1);
  s.coalescer_requests = g.integer("coalescer_requests", "requests", 1, 64);
  s.coalescer_cycles = g.cycles("coalescer_cycles");
  s.cold_dirty_bytes = g.size("cold_dirty_bytes", "bytes", 0, std::int64_t{1} << 30);
  s.cold_dirty_sets = g.integer("cold_dirty_sets", "sets", 1, 64);
}

void read_hbm(Group& g, HbmSpec& s) {
  s.channels = g.integer("channels", "pseudo-channels", 1, 4096);
  s.bank_groups = g.integer("bank_groups", "bank groups", 1, 64);
  s.banks_per_group = g.integer("banks_per_group", "banks", 1, 64);
  s.row_bytes = g.integer("row_bytes", "bytes", 128, 1 << 16);
  s.access_bytes = g.integer("access_bytes", "bytes", 32, 256);
  s.bytes_per_ns = g.number("bytes_per_ns", "bytes/ns", 1, 1e5);
  s.t_cl = g.ns("t_cl");
  s.t_rcd = g.ns("t_rcd");
  s.t_rp = g.ns("t_rp");
  s.t_ras = g.ns("t_ras");
  s.t_wr = g.ns("t_wr");
  s.t_rtp = g.ns("t_rtp");
  s.t_cwl = g.ns("t_cwl");
  s.t_ccd_s = g.ns("t_ccd_s");
  s.t_ccd_l = g.ns("t_ccd_l");
  s.t_rrd = g.ns("t_rrd");
  s.t_faw = g.ns("t_faw");
  s.t_wtr = g.ns("t_wtr");
  s.t_rtw = g.ns("t_rtw");
  s.t_rfc = g.ns("t_rfc");
  s.t_refi = g.ns("t_refi");
  s.refresh_banks = g.integer("refresh_banks", "banks", 1, 64);
  s.refresh_turns = g.integer("refresh_turns", "turns", 1, 64);
  s.refresh_spread = g.number("refresh_spread", "ratio", 0, 1);
  s.queue_entries = g.integer("queue_entries", "entries", 1, 4096);
  s.read_requests = g.integer("read_requests", "requests", 1, 4096);
  s.write_high = g.integer("write_high", "entries", 1, 4096);
  s.write_low = g.integer("write_low", "entries", 0, 4096);
  s.write_idle_ns = g.number("write_idle_ns", "ns", 0, 100000);
  s.controller_ns = g.number("controller_ns", "ns", 0, kHuge);
}

void read_launch(Group& g, LaunchSpec& s) {
  s.start_cycles = g.cycles("start_cycles");
  s.end_cycles = g.cycles("end_cycles");
  s.gpc_after_gpc = g.boolean("gpc_after_gpc");
  s.tpcs_apart = g.integer("tpcs_apart", "TPC", 0, 64);
  s.blocks_per_cycle_x16 = g.integer("blocks_per_cycle_x16", "blocks/16 cycles", 1, 1024);
  s.blocks_back_per_cycle_x16 = g.integer("blocks_back_per_cycle_x16", "blocks/16 cycles", 1, 1024);
  s.block_start_cycles = g.cycles("block_start_cycles");
  s.warp_start_interval = g.cycles("warp_start_interval");
  s.block_end_cycles = g.cycles("block_end_cycles");
  s.read_bytes = g.integer("read_bytes", "bytes", 0, 1 << 20);
  s.stream_gap_us = g.number("stream_gap_us", "us", 0, kHuge);
  s.graph_gap_us = g.number("graph_gap_us", "us", 0, kHuge);
  s.hand_over_us = g.number("hand_over_us", "us", 0, kHuge);
}

}  // namespace

GpuFile read_gpu(const Node& root, const std::string& path) {
  GpuFile file;
  GpuModel& m = file.model;
  file.path = path;
  m.name = std::filesystem::path(path).stem().string();
  root.read_map([&](Map& map) {
    m.title = map.at("title").string();
    if (const auto family = map.find("family")) m.family = std::filesystem::path(family->string()).stem().string();
    m.sm = Group(map, file).integer("sm", "sm", 80, 90);
    read_group(map, "chip", file, [&](Group& g) { read_chip(g, m.chip); });
    read_group(map, "occupancy", file, [&](Group& g) { read_occupancy(g, m.occupancy); });
    read_group(map, "issue", file, [&](Group& g) { read_issue(g, m.issue); });
    read_pipes(map, file);
    read_group(map, "tensor", file, [&](Group& g) { read_tensor(g, m.tensor); });
    if (m.sm >= 90) read_group(map, "async", file, [&](Group& g) { read_async(g, m.async); });
    if (m.sm >= 90) read_group(map, "cluster", file, [&](Group& g) { read_cluster(g, m.cluster); });
    read_group(map, "icache", file, [&](Group& g) { read_icache(g, m.issue, m.icache); });
    read_group(map, "latency", file, [&](Group& g) { read_latency(g, m.latency); });
    read_group(map, "memory_pipe", file, [&](Group& g) { read_memory_pipe(g, m.memory_pipe); });
    read_group(map, "l1", file, [&](Group& g) { read_l1(g, m.l1); });
    read_group(map, "crossbar", file, [&](Group& g) { read_crossbar(g, m.crossbar); });
    read_group(map, "l2", file, [&](Group& g) { read_l2(g, m.l2); });
    read_group(map, "hbm", file, [&](Group& g) { read_hbm(g, m.hbm); });
    read_group(map, "launch", file, [&](Group& g) { read_launch(g, m.launch); });
  });
  return file;
}

}  // namespace forewarp

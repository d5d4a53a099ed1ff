// The GPU model: every number of a GPU that the simulator uses, read from hwmodels/*.yaml. Code has no defaults; a
// missing or unknown leaf is an error. Cycles are SM clock cycles unless the name says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/instruction.h"

namespace forewarp {

struct ChipSpec {
  int sm_count = 0;
  int sms_per_tpc = 0;
  std::vector<int> tpcs_per_gpc;  ///< one entry per GPC; sums to sm_count / sms_per_tpc
  double sm_clock_mhz = 0;        ///< under load; time = cycles / clock
  int cpcs_per_gpc = 1;           ///< a GPC's TPCs are dealt to them in turn; 1 if there are none
};

/// GPC of each SM: SM i belongs to TPC i / sms_per_tpc, TPCs are numbered GPC by GPC.
std::vector<std::uint16_t> gpc_of_sms(const ChipSpec&);
/// CPC of each SM, numbered GPC by GPC.
std::vector<std::uint16_t> cpc_of_sms(const ChipSpec&);

/// Of a list with an entry for each GPC; one that is empty stands for zeros.
inline int of_gpc(const std::vector<int>& list, std::size_t gpc) { return list.empty() ? 0 : list[gpc]; }

/// The limits on resident blocks of an SM.
struct OccupancySpec {
  int max_warps = 0, max_threads = 0, max_blocks = 0;  ///< per SM
  int max_threads_per_block = 0;
  int registers = 0;  ///< 32-bit, per SM
  int registers_per_thread_min = 0;
  int registers_per_thread_max = 0;
  int register_unit = 0;             ///< registers a warp's allocation is rounded up to
  int shared_bytes = 0;              ///< maximum shared memory of an SM
  int shared_block_max_bytes = 0;    ///< maximum of a block
  int shared_reserved_bytes = 0;     ///< per block, by the driver
  int shared_unit_bytes = 0;         ///< allocation granularity
  int unified_bytes = 0;             ///< L1 and shared memory together
  std::vector<int> carveouts_bytes;  ///< shared sizes the unified memory can be configured to, ascending
  int carveout_unused_bytes = 0;     ///< chosen for small blocks that use no shared memory
  int carveout_half_warps = 0;       ///< half of that for blocks of this many warps,
  int carveout_quarter_warps = 0;    ///< a quarter for blocks of this many
  int carveout_spare_bytes = 0;      ///< up to here the driver chooses room for twice the blocks that fit otherwise,
  int carveout_spare_warps = 0;      ///< unless a block has more warps than this
};

/// A pipe of a sub-partition, or of the SM if shared. On sm_90 Pipe::Fma is a pair of half-width pipes and
/// Pipe::FmaHeavy its heavy half; interval 0 of FmaHeavy says that the GPU has no halves. Pipe::None has no spec.
struct PipeSpec {
  int interval = 0;     ///< cycles between two warp instructions of one sub-partition; 0: the GPU has no such pipe
  bool per_sm = false;  ///< one pipe shared by the four sub-partitions
};

/// The tensor pipe of a sub-partition, for products of a warp's matrices. Its arithmetic multiplies a fixed number of
/// bits a cycle, whatever the elements' type, but for doubles; its operands come in no less than a fixed time
/// (tensor.h).
struct TensorSpec {
  int product_bits = 0;       ///< elements multiplied a cycle times the bits of one; twice as many with a sparse factor
  int fp64_products = 0;      ///< doubles multiplied a cycle
  int fp64_least_cycles = 0;  ///< between two products of doubles
  int fetch_cycles = 0;       ///< least between two products
  int fetch_pair_cycles = 0;  ///< ... and for each pair of registers of the first factor
  int fetch_metadata_cycles = 0;  ///< ... and for where a sparse factor's elements are
  int fp64_result_cycles = 0;     ///< from the last product of doubles to their sum
};

/// What an SM does beside its warps: products of warpgroups, barriers in shared memory, copies of boxes. sm_90.
struct AsyncSpec {
  int product_result_cycles = 0;  ///< from the end of a group's arithmetic until who waits for it goes on
  int slab_columns = 0;           ///< of a product whose sums are read and written together
  int slab_port_cycles = 0;       ///< in which they hold the register ports if they are four registers a lane
  int factor_fetch_cycles = 0;    ///< before the first of them, where the first factor is in registers
  int group_release_cycles = 0;   ///< from the last warp of a warpgroup that comes to WARPGROUP.ARRIVE
  int phase_interval = 0;         ///< between two operations on barriers
  int phase_check_cycles = 0;     ///< from the issue of a wait whose phase is over to its predicate
  int phase_complete_cycles = 0;  ///< from the issue of the last arrival to the predicate of who waits
  int box_start_cycles = 0;       ///< from the issue of a copy to its first request
  int box_line_x16 = 0;           ///< between its requests, in sixteenths of a cycle
  int box_complete_cycles = 0;    ///< from its last data to the predicate of who waits
};

/// What joins the SMs of a GPC for blocks of a cluster. sm_90.
struct ClusterSpec {
  int hop_cycles = 0;            ///< one way from an SM to another: a load, a store
  int arrive_cycles = 0;         ///< an arrival at a barrier there
  int sm_bytes_per_cycle = 0;    ///< that an SM stores in others' shared memory
  int load_bytes_per_cycle = 0;  ///< that it loads from there
  int cpc_bytes_per_cycle = 0;   ///< that leave the SMs of a CPC for others
  int cpc_atomics_x16 = 0;   ///< sectors of atomics, or answers to them, that do so in 16 cycles, besides their bytes
  int barrier_cycles = 0;    ///< from the last warp that arrives at a cluster's barrier to the first issue behind it
  int fence_cycles = 0;      ///< a fence of all kinds of accesses (MEMBAR.ALL), with nothing to wait for
  int multicast_cycles = 0;  ///< added to a copy that goes to several blocks
  int interval_x16 = 0;      ///< between two clusters that are handed out, beside what their blocks take
};

struct IssueSpec {
  int sub_partitions = 0;
  int branch_cycles = 0;            ///< from issue of a taken branch to the next issue of that warp (branch_resolving)
  int barrier_release_cycles = 0;   ///< last arrival to first issue after BAR.SYNC, alone
  int barrier_per_warp_cycles = 0;  ///< added per further warp of the block (SM-wide: two blocks share the unit)
  int first_cycles = 0;             ///< from there to its first issue, at least
  int exit_cycles = 0;              ///< EXIT to warp slot free
  int scoreboard_limit = 63;        ///< instructions in flight that a scoreboard counter can count
  int membar_gpu_cycles = 0, membar_cta_cycles = 0;
  int membar_gpu_interval = 0, membar_cta_interval = 0;  ///< between two fences of an SM
  int constant_hit_cycles = 0;                           ///< LDC / ULDC result after issue, hit
  int constant_miss_cycles = 0;                          ///< first touch of a constant line by an SM
  int constant_line_bytes = 0;
  int register_bank_count = 0;     ///< banks with one read port each
  int register_window_cycles = 0;  ///< cycles from the issue on in which an operand may be read
  // A product of 64 bits (IMAD.WIDE, IMAD.HI) makes two passes through its pipe.
  int wide_product_interval = 0;         ///< cycles it holds the pipe
  int wide_product_dispatch_cycles = 0;  ///< cycles in which its sub-partition issues nothing else, its own included
  int wide_product_operand_cycles = 0;   ///< from a fixed-latency result that it multiplies, at least
  int wide_product_chain_cycles = 0;     ///< from another one's result that it multiplies, at least
};

struct InstructionCacheSpec {
  int l0_bytes = 0, l1_bytes = 0, l2_bytes = 0;  ///< sub-partition, SM, GPC
  int line_bytes = 0;
  int l1_hit_cycles = 0;       ///< L0 miss that hits the SM's cache
  int l2_hit_cycles = 0;       ///< added if that misses but hits the GPC's
  int memory_cycles = 0;       ///< added if it goes to L2 or DRAM
  int first_cycles = 0;        ///< added to an SM's first fetch in a launch
  int warm_first_cycles = 0;   ///< the same if an earlier launch left the code in the caches
  int launch_bytes = 0;        ///< code that a launch brings into the GPCs' caches before its blocks start
  int prefetch_lines = 0;      ///< lines fetched ahead in sequence
  int stream_lines = 0;        ///< lines the GPC's cache fetches ahead of requests
  int l1_line_cycles = 0;      ///< between two lines that a sub-partition takes from the SM's cache
  int l2_line_cycles = 0;      ///< between two lines that come from L2
  int memory_line_cycles = 0;  ///< between two lines that come from memory
  // From a sub-partition's cache to its warps.
  int feed_cycles = 0;           ///< latency of a line; the last part of IssueSpec::branch_cycles
  int feed_line_cycles = 0;      ///< between two lines of any warps
  int feed_interval_cycles = 0;  ///< between two lines of one warp
  int feed_lines = 0;            ///< most lines a warp has, the current one included
  int jump_lines = 2;            ///< that a jump asks for: where it goes, and those behind
  int ways = 8;                  ///< of the sets of all three caches
};

/// Result latencies of operations that complete through a scoreboard, issue to dependent issue, idle machine.
struct VariableLatencySpec {
  int mufu = 0, conversion = 0, popc = 0, shuffle = 0, vote = 0, s2r = 0, fp64 = 0, shared_load = 0,
      shared_store_read = 0, shared_atomic = 0, global_read_release = 0 /* sources read by LDG/STG: read barrier */,
      match = 0, redux = 0, movm = 0,
      queued_behind = 0 /* further, of one that its unit begins right behind another of the same warp */,
      queued_read_release = 0 /* from when its unit could take the next to its sources' read barrier */,
      copy_release = 0 /* from the last data of a group of copies in shared memory to its scoreboard's count */;
};

struct MemoryPipeSpec {
  int queue_entries = 0;            ///< memory instructions a sub-partition can queue (mio/lg throttle beyond)
  int shared_queue_entries = 0;     ///< ... and those that the SM's shared queue holds
  int lsu_interval = 0;             ///< cycles between two memory instructions accepted by the SM's shared unit
  int lead_cycles = 0;              ///< from issue to the earliest arrival at the shared unit
  int shuffle_interval = 0;         ///< SM-wide cycles a SHFL occupies
  int shared_wavefront_cycles = 0;  ///< SM-wide cycles of one shared-memory wavefront
  int shared_conflict_latency = 0;  ///< latency of each further wavefront, of shared memory and L1
  int wide_latency = 0;             ///< latency of each further wavefront of a wide load
  int warp_wavefront_cycles = 0;    ///< between two of a warp's wavefronts of a store or atomic, others' in between
  int port_wavefront_cycles = 0;    ///< a sub-partition's port for results is held by each wavefront
  int register_cycles = 0;          ///< a sub-partition's way there is held by each register of an address or value
  int fill_wavefront_cycles = 0;    ///< SM-wide cycles the banks are held by a wavefront of a copy past L1
  int movm_interval = 0;            ///< cycles between two MOVM of a sub-partition
  int tags_ahead_cycles = 0;        ///< work the banks may still have when the tags take the next access
};

struct L1Spec {
  int hit_cycles = 0;               ///< LDG issue to dependent issue
  int tags_per_cycle = 0;           ///< lines looked up per cycle, one in each tag bank
  std::vector<int> tag_bank_masks;  ///< bit k of a line's bank: parity of its address under mask k; none: no banks
  int data_bytes_per_cycle = 0;
  int ways = 0;
  int loads_in_flight = 0;         ///< loads with data outstanding
  int miss_lines = 0;              ///< lines in flight, however many loads wait for them
  int store_bank_lines = 0;        ///< lines of stores that wait to be merged, of each bank of tags; 0: none
  int store_partial_lines = 1;     ///< that one counts for where lanes store parts of words
  int store_wait_cycles = 0;       ///< in which no store comes, from the last one to a line until that leaves
  int store_wavefront_cycles = 1;  ///< from wavefront to wavefront of a store, and from a store to the next
  int out_requests = 32;           ///< reductions and boxes that wait for the crossbar; reads wait at their misses
};

/// Load latencies compose: L2 hit = l1.hit + crossbar.request + l2.hit + crossbar.response, a far one has far_cycles
/// more, and a miss adds hbm.controller_ns + t_rp + t_rcd + t_cl + a burst (row conflict, idle).
struct CrossbarSpec {
  int request_cycles = 0;   ///< SM to L2 slice, near partition, one way, idle
  int response_cycles = 0;  ///< L2 slice to SM
  int far_cycles = 0;       ///< more for a line whose home is the other partition, round trip
  /// What the way of a read has more than the mean, there and back: by the place of the SM's TPC in its GPC; at the
  /// slices at either end of a partition for GPCs at the other (less for those at that end); for a copy than for a line
  /// at home.
  std::vector<int> tpc_cycles;
  int slice_cycles = 0, copy_cycles = 0;
  std::vector<int> gpc_ends;          ///< by GPC: the end of its partition that it lies at, 0 or 1
  std::vector<int> gpc_partitions;    ///< by GPC: the partition that is near
  int sm_requests_per_cycle_x16 = 0;  ///< line requests one SM may send in 16 cycles
  int port_requests = 4;              ///< that wait in an SM's port
  int sm_response_bytes_per_cycle = 0;
  int tpc_response_bytes_per_cycle = 0;
  int gpc_response_bytes_per_cycle = 0;
  int gpc_fanout_bytes_per_cycle = 0;  ///< to all its SMs, what is sent to several counted for each
  int sm_write_bytes_per_cycle = 0;
  int sm_write_flits = 0;               ///< of an SM, not acknowledged yet
  int cpc_write_bytes_per_cycle = 0;    ///< of whole lines
  int cpc_fabric_writes = 0;            ///< of a CPC, in line for the fabric; the next holds up what the CPC writes
  int cpc_reads = 0;                    ///< of a CPC, below its port, not answered yet
  int slice_write_bytes_per_cycle = 0;  ///< what a slice takes of them
  int fabric_bytes_per_cycle = 0;       ///< between the two partitions, each way
  int flit_bytes = 32;                  ///< data of a write that a flit carries
};

/// Slice rates and atomic_interval count L2 cycles (one is 1 / clock_ratio SM cycles); hit_cycles counts SM cycles.
struct L2Spec {
  std::int64_t bytes = 0;  ///< both partitions
  int partitions = 0;
  std::vector<int> partition_bits{13, 17, 20};  ///< address bits whose parity is the partition, within a 2 MB page
  int chunk_bytes = 256;                        ///< neighbours that lie in one slice
  int slices = 0;                               ///< in total
  int ways = 0;
  int hit_cycles = 0;             ///< lookup to data, inside the slice
  int slice_bytes_per_cycle = 0;  ///< data stage of one slice
  int slice_tags_per_cycle = 0;
  int atomic_interval = 0;            ///< cycles between two atomic sectors of one slice
  int atomic_word_interval = 0;       ///< cycles between two lanes that add to one word
  int fetch_bytes = 0;                ///< a read miss fetches aligned pieces of this size from memory
  int miss_entries = 0;               ///< sector misses in flight per slice
  double clock_ratio = 1;             ///< L2 clock over SM clock
  bool replicate_far_lines = false;   ///< a line homed in the other partition is also kept near
  double partial_share = 1;           ///< of the lines; partly written ones beyond it are read and written back
  int coalescer_requests = 1;         ///< reads of one line by SMs of one GPC that are merged before the slice
  int coalescer_cycles = 0;           ///< how long after its lookup a hit can still be joined
  double dirty_share = 1;             ///< of the lines; what is written beyond it is written back
  double dirty_share_read = 1;        ///< of the lines; beyond it reads, and writes to dirty lines, write one back
  int victim_choices = 1;             ///< of so many of a set's oldest lines one leaves
  double spare_dirty = 0;             ///< how often dirty lines are spared where a slice fetches all it can
  std::int64_t cold_dirty_bytes = 0;  ///< dirty data of others in caches that a profiler has flushed
  int cold_dirty_sets = 1;            ///< one of so many sets holds some of it
};

/// One HBM pseudo-channel; times in nanoseconds.
struct HbmSpec {
  int channels = 0;  ///< pseudo-channels in total
  int bank_groups = 0, banks_per_group = 0;
  int row_bytes = 0;
  int access_bytes = 0;     ///< one column burst
  double bytes_per_ns = 0;  ///< peak of the whole device
  double t_cl = 0, t_rcd = 0, t_rp = 0, t_ras = 0, t_wr = 0, t_rtp = 0, t_cwl = 0, t_ccd_s = 0, t_ccd_l = 0, t_rrd = 0,
         t_faw = 0, t_wtr = 0, t_rtw = 0, t_rfc = 0, t_refi = 0;
  int refresh_banks = 1;      ///< that are refreshed together
  int refresh_turns = 1;      ///< parts of the banks that take turns: neighbours are refreshed so many turns apart
  double refresh_spread = 1;  ///< of the channels' refreshes, as a part of the time between two of a bank
  int queue_entries = 0;      ///< accesses a channel's scheduler chooses from, of reads and as many of writes
  int read_requests = 0;      ///< reads of lines, of one access or more, that these may belong to
  int write_high = 0, write_low = 0;  ///< write queue marks that turn the bus round
  double write_idle_ns = 0;           ///< without reads and arrivals, until fewer writes than half a batch go
  double controller_ns = 0;           ///< fixed part of the miss path, both ways
};

struct LaunchSpec {
  int start_cycles = 0;               ///< gpc cycles before the first block starts
  int end_cycles = 0;                 ///< after the last block has left
  int blocks_per_cycle_x16 = 0;       ///< blocks handed out GPU-wide in 16 cycles, while there is room
  int blocks_back_per_cycle_x16 = 0;  ///< ... and taken back when they have ended
  bool gpc_after_gpc = false;         ///< blocks are dealt to the TPCs of a GPC, then of the next; else in turn
  int tpcs_apart = 0;                 ///< of the first GPC: blocks reach them before all others
  int block_start_cycles = 0;         ///< slot granted to the sub-partition having the warp
  int warp_start_interval = 0;        ///< between the first issues of two warps of a block
  int block_end_cycles = 0;           ///< last EXIT to slot reusable
  int read_bytes = 0;                 ///< from memory, besides the code, for a launch in cold caches
  double stream_gap_us = 0, graph_gap_us = 0;  ///< start-to-start overhead of dependent launches
  double hand_over_us = 0;  ///< from the end of a kernel to the start of the next, which waits for it
};

/// Where a number came from. Transferred is not written in a file: it is what a measured, fitted or published number
/// of another GPU is for this one.
enum class Provenance : std::uint8_t { Measured, Vendor, Paper, Fitted, Assumed, Transferred, Count };

const char* provenance_text(Provenance);  ///< as the files spell it

/// A leaf that was given another value than its file has (--set).
struct LeafChange {
  std::string path, value;
  std::string was = {};  ///< known once the file has been read
};

struct GpuModel {
  std::string name;  ///< file name without .yaml
  std::string title;
  std::string family;               ///< whose leaves it shares; empty: the file says everything itself
  std::vector<LeafChange> changes;  ///< in the order of the command line
  int sm = 0;                       ///< architecture of cubins it runs: 80 or 90
  ChipSpec chip;
  OccupancySpec occupancy;
  IssueSpec issue;
  std::array<PipeSpec, static_cast<std::size_t>(Pipe::Count)> pipes{};
  TensorSpec tensor;
  AsyncSpec async;
  ClusterSpec cluster;
  InstructionCacheSpec icache;
  VariableLatencySpec latency;
  MemoryPipeSpec memory_pipe;
  L1Spec l1;
  CrossbarSpec crossbar;
  L2Spec l2;
  HbmSpec hbm;
  LaunchSpec launch;
  std::array<int, static_cast<std::size_t>(Provenance::Count)> leaves{};  ///< how many leaves of each provenance
  std::uint64_t content_hash = 0;  ///< of the bytes of its file and its family's, and of the changes

  const PipeSpec& pipe(Pipe p) const { return pipes[static_cast<std::size_t>(p)]; }
};

/// One number of a file as it is written there.
struct Leaf {
  std::string path;   ///< "l2.hit_cycles"
  std::string value;  ///< "82", "[0, 8192]"
  std::string unit;
  Provenance source{};   ///< for this GPU
  Provenance written{};  ///< as the file says it: differs where the number was transferred
  std::string on;        ///< GPU on which it was measured; empty: this one, or nobody measured it
  std::string ref;
  SourcePosition where;  ///< of its value: in the GPU's file, in its family's, or on the command line
};

/// By name (a100-sxm4-40gb, ... found in the hwmodels folder) or by path of a YAML file; InputError lists the names.
/// A change is "LEAF=VALUE"; the schema and the checks hold for it as for what a file says.
GpuModel load_gpu_model(const std::string& name_or_path, const std::vector<std::string>& changes = {});
/// The text of a change, and what a text changes: InputError when it is not LEAF=VALUE.
std::string leaf_change(const std::string& leaf, double value);
LeafChange parse_change(const std::string& text);
/// Of the hwmodels folder, sorted. The folder is $FOREWARP_HWMODELS, or one beside the executable or a folder above it,
/// or the one of the source tree, or ./hwmodels.
std::vector<std::string> gpu_model_names();
/// Every leaf in the order of the schema; the file is checked as by load_gpu_model.
std::vector<Leaf> describe_gpu(const std::string& name_or_path, const std::vector<std::string>& changes = {});

}  // namespace forewarp

// forewarp addresses: every thread's global memory accesses in the order of its program, as the timing model gets them.
#include <array>
#include <bit>
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "trace/class_index.h"
#include "trace/events.h"

namespace forewarp::cli {

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::uint32_t kInstructionBytes = 16;

CommandLine make_command_line() {
  CommandLine c(
      "addresses IMAGE --launch FILE [--case ID] [--out FILE|-]",
      "Lists the global memory accesses of every thread of a case's launches, in the order of the thread's program:\n"
      "which instruction (its place in the function, in bytes), whether it reads (r), writes (w) or is an atomic (a),\n"
      "how many bytes, in which buffer and where in it. For small launches: kernels/addresses compares them with a "
      "GPU's.",
      {"forewarp addresses traces/sm_90/copy_02_strided.cubin --launch traces/copy_02_strided.yaml \\\n"
       "      --case copy_strided_check_1000_stride_3",
       "forewarp addresses traces/sm_90/attention_03_flash.cubin --launch traces/attention_03_flash.yaml \\\n"
       "      --case flash_attention_check_96 --out flash.csv"});
  namespace po = boost::program_options;
  c.model()("launch", po::value<std::string>()->value_name("FILE"), "launch file");
  c.model()("case", po::value<std::vector<std::string>>()->value_name("ID"), "the case, where the file has several");
  c.add_assume_opcodes();
  c.add_architecture();
  c.output()("out", po::value<std::string>()->value_name("FILE")->default_value("-"),
             "where to write, - for standard output");
  c.add_cache();
  c.positional("IMAGE");
  return c;
}

char kind_letter(MemoryKind kind) {
  if (kind == MemoryKind::Load) return 'r';
  return kind == MemoryKind::Store ? 'w' : 'a';
}

/// Names places in memory by buffer.
class Buffers {
 public:
  explicit Buffers(const Case& item) : item_(item), addresses_(place_buffers(item)) {}

  std::string name(std::uint64_t address) const {
    for (std::size_t i = 0; i < addresses_.size(); ++i)
      if (address - addresses_[i] < item_.buffers[i].bytes)
        return item_.buffers[i].name + "," + std::to_string(address - addresses_[i]);
    return "," + std::to_string(address);
  }

 private:
  const Case& item_;
  std::vector<std::uint64_t> addresses_;
};

using LaneLines = std::array<std::string, kWarpLanes>;

/// Adds what one executed instruction accesses to its lanes' lines.
void add_access(const Access& access, const AccessPattern& pattern, std::int64_t shift, const std::string& head,
                const Buffers& buffers, LaneLines& lines) {
  for (LaneMask lanes = pattern.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
    const std::uint64_t address = access.base + static_cast<std::uint64_t>(std::int64_t{pattern.offsets[lane]} + shift);
    lines[lane] += head + buffers.name(address) + "\n";
  }
}

void list_warp(const KernelTrace& trace, const EventTable& events, const BlockClass& cls, std::size_t warp,
               std::uint64_t block, const Buffers& buffers, std::string& out) {
  const BlockDistance distance = trace.distance(cls.representative, trace.block_index(block));
  LaneLines lines;
  const std::uint64_t threads = trace.launch.block.count();
  const auto who = [&](std::size_t lane) {
    return std::to_string(trace.launch.launch_index) + "," + std::to_string(block) + "," +
           std::to_string(warp * kWarpLanes + lane) + ",";
  };
  const WarpCursor start(cls.paths[cls.warps[warp].path], cls.warps[warp]);
  start.for_each_record(
      events, [&](std::uint32_t pc, const TraceEvent&, std::span<const Access> records, std::uint64_t) {
        for (const Access& access : records) {
          const AccessPattern& pattern = trace.patterns[access.pattern];
          if (pattern.space != MemorySpace::Global) continue;
          const std::string head = std::to_string(pc * kInstructionBytes) + "," + kind_letter(pattern.kind) + "," +
                                   std::to_string(pattern.bytes) + ",";
          add_access(access, pattern, trace.slopes[access.slope].over(distance), head, buffers, lines);
        }
        return true;
      });
  for (std::size_t lane = 0; lane < kWarpLanes && warp * kWarpLanes + lane < threads; ++lane) {
    const std::string head = who(lane);
    for (std::size_t begin = 0; begin < lines[lane].size();) {
      const std::size_t end = lines[lane].find('\n', begin) + 1;
      out += head;
      out.append(lines[lane], begin, end - begin);
      begin = end;
    }
  }
}

}  // namespace

int run_addresses(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const std::string launch_file = c.text("launch"), out = c.text("out");
  check_writable(out);
  const std::optional<PredictionCache> cache = c.cache();
  const Workload workload = load_workload(c.text("IMAGE"), launch_file,
                                          {c.has("assume-opcodes"), c.architecture(), cache ? &*cache : nullptr});
  const Case& item = choose_one_case(*workload.launches, c.texts("case"));
  const Buffers buffers(item);
  std::string text = "# buffers:";
  for (const Buffer& buffer : item.buffers) text += " " + buffer.name;
  text += "\nlaunch,block,thread,pc,kind,bytes,buffer,offset\n";
  // Every block is wanted, not a sample.
  const Effort all{std::uint64_t{1} << 40, 1e9, true};
  for_each_trace(workload, item, all, [&](const KernelTrace& trace) {
    text += "# launch " + std::to_string(trace.launch.launch_index) + ": " +
            std::to_string(trace.launch.block.count()) + " threads a block\n";
    const ClassIndex classes(trace);
    const EventTable events(*trace.kernel);
    for (std::uint64_t block = 0; block < trace.launch.grid.count(); ++block) {
      const BlockClass& cls = trace.classes[classes.class_of(block)];
      for (std::size_t warp = 0; warp < cls.warps.size(); ++warp)
        list_warp(trace, events, cls, warp, block, buffers, text);
      if (text.size() > kMostBytes)
        throw InputError(item.where, "case " + item.id + " accesses memory too often to list it",
                         "choose a smaller case");
    }
  });
  write_file(out, text);
  return kDone;
}

}  // namespace forewarp::cli

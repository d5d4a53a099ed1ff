// forewarp trace: writes what every warp of the launches executes to a file.
#include <boost/program_options.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/workers.h"
#include "report/format.h"
#include "report/table.h"
#include "trace/trace_file.h"

namespace forewarp::cli {

namespace {

CommandLine make_command_line() {
  CommandLine c(
      "trace IMAGE --launch FILE --out FILE [options]",
      "Works out what every warp of the launches executes and which addresses it touches, and writes it to a file\n"
      "that `forewarp simulate` replays on any GPU model of the code's architecture.",
      {"forewarp trace traces/sm_90/matmul_03_shared_tiled.cubin --launch traces/matmul_03_shared_tiled.yaml \\\n"
       "      --case sgemm_shared_tiled_1024 --out tiled.fwt",
       "forewarp trace traces/sm_80/reduce_01_softmax_rows.cubin --launch traces/reduce_01_softmax_rows.yaml \\\n"
       "      --out softmax.fwt"});
  namespace po = boost::program_options;
  c.model()("launch", po::value<std::string>()->value_name("FILE"), "launch file");
  c.model()("case", po::value<std::vector<std::string>>()->value_name("ID"),
            "only this case of the launch file; may be repeated");
  c.add_effort();
  c.add_assume_opcodes();
  c.add_architecture();
  c.output()("out", po::value<std::string>()->value_name("FILE"), "trace file to write");
  c.add_cache();
  c.positional("IMAGE");
  return c;
}

}  // namespace

int run_trace(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const std::string launch_file = c.text("launch"), out = c.text("out");
  check_writable(out);
  if (std::error_code error;
      out != "-" && std::filesystem::exists(out, error) && !std::filesystem::is_regular_file(out, error))
    throw InputError({out}, "is no regular file", "name a file to write, or - for standard output");
  const Effort effort = c.effort();
  const std::optional<PredictionCache> cache = c.cache();
  const Workload workload = load_workload(c.text("IMAGE"), launch_file,
                                          {c.has("assume-opcodes"), c.architecture(), cache ? &*cache : nullptr});
  const std::vector<const Case*> cases = choose_cases(*workload.launches, c.texts("case"));

  report::Table table({{"case", report::Table::Left},
                       {"kernel", report::Table::Left},
                       {"blocks", report::Table::Right},
                       {"block classes", report::Table::Right},
                       {"warp instructions", report::Table::Right}});
  TraceWriter writer(out);
  {
    Progress progress(cases.size());
    for (const Case* item : cases) {
      progress.started(item->id);
      for_each_trace(workload, *item, effort, [&](const KernelTrace& trace) {
        writer.begin_launch(trace);
        for (const BlockClass& block_class : trace.classes) writer.add_class(trace, block_class);
        std::uint64_t executed = 0;
        for (const InstructionCount& count : trace.totals()) executed += count.executed;
        table.row({item->id, trace.kernel->demangled, report::count(trace.launch.grid.count()),
                   report::count(trace.classes.size()), report::count(executed)});
      });
      progress.finished();
    }
  }
  writer.finish();
  if (out != "-") write_file("-", table.text("", output_style()));
  return kDone;
}

}  // namespace forewarp::cli

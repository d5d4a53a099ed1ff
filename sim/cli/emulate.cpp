// forewarp emulate: computes a kernel's results on the CPU.
#include <boost/program_options.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/workers.h"
#include "emulation/emulation.h"
#include "report/format.h"

namespace forewarp::cli {

namespace {

struct Dump {
  std::size_t buffer = 0;
  std::string path;
};

CommandLine make_command_line() {
  CommandLine c(
      "emulate IMAGE --launch FILE --dump BUFFER=FILE [options]",
      "Executes all launches of a case on the CPU, values and all, and writes buffers as they are afterwards:\n"
      "raw bytes, the check that the emulator computes what a GPU would.",
      {"forewarp emulate traces/sm_90/matmul_02_coalesced.cubin --launch traces/matmul_02_coalesced.yaml \\\n"
       "      --case sgemm_coalesced_check_64 --dump c=c.bin",
       "forewarp emulate traces/sm_80/attention_03_flash.cubin --launch traces/attention_03_flash.yaml \\\n"
       "      --case flash_attention_check_64 --dump o=o.bin"});
  namespace po = boost::program_options;
  c.model()("launch", po::value<std::string>()->value_name("FILE"), "launch file");
  c.model()("case", po::value<std::vector<std::string>>()->value_name("ID"),
            "case of the launch file; needed when it has several");
  c.add_assume_opcodes();
  c.add_architecture();
  c.output()("dump", po::value<std::vector<std::string>>()->value_name("BUFFER=FILE"),
             "write this buffer; may be repeated");
  c.output()("budget", po::value<double>()->value_name("SECONDS")->default_value(Effort{}.seconds),
             "processor seconds, at a nominal rate, that one block may take before it counts as one that never ends");
  c.add_cache();
  c.positional("IMAGE");
  return c;
}

std::vector<Dump> read_dumps(const std::vector<std::string>& words, const Case& item) {
  std::vector<Dump> dumps;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      throw UsageError("--dump is BUFFER=FILE, not '" + word + "'");
    const std::string name = word.substr(0, equals);
    Dump dump{item.buffers.size(), word.substr(equals + 1)};
    std::string names;
    for (std::size_t b = 0; b < item.buffers.size(); ++b) {
      names += (b == 0 ? "" : ", ") + item.buffers[b].name;
      if (item.buffers[b].name == name) dump.buffer = b;
    }
    if (dump.buffer == item.buffers.size())
      throw InputError(item.where, "case " + item.id + " has no buffer '" + name + "'", "buffers: " + names);
    check_writable(dump.path);
    dumps.push_back(std::move(dump));
  }
  return dumps;
}

}  // namespace

int run_emulate(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const std::string launch_file = c.text("launch");
  if (!c.has("dump")) throw UsageError("--dump is missing: name the buffers to write");
  const std::optional<PredictionCache> cache = c.cache();
  const Workload workload = load_workload(c.text("IMAGE"), launch_file,
                                          {c.has("assume-opcodes"), c.architecture(), cache ? &*cache : nullptr});
  const Case& item = choose_one_case(*workload.launches, c.texts("case"));
  const std::vector<Dump> dumps = read_dumps(c.texts("dump"), item);

  std::vector<std::string> warnings;
  EmulationOptions options;
  options.ignore_unknown_instructions = c.has("assume-opcodes");
  options.warnings = &warnings;
  Effort effort;
  effort.seconds = c.number("budget");
  if (!(effort.seconds > 0 && effort.seconds <= 1e9)) throw UsageError("--budget is a number of seconds above 0");
  options.instruction_limit = effort.block_instructions();
  EmulatedCase result;
  {
    Progress progress(1);
    progress.started(item.id);
    result = emulate_values(*workload.program, item, options);
  }
  for (const std::string& warning : warnings) warn(item.id + ": " + warning);
  std::string text = item.id + ": " + report::count(result.warp_instructions) + " warp instructions executed\n";
  bool to_standard_output = false;
  for (const Dump& dump : dumps) {
    const std::vector<std::uint8_t>& bytes = result.buffers[dump.buffer];
    write_file(dump.path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    text += item.buffers[dump.buffer].name + ": " + report::count(bytes.size()) + " bytes to " + dump.path + "\n";
    to_standard_output = to_standard_output || dump.path == "-";
  }
  if (!to_standard_output) write_file("-", text);
  return kDone;
}

}  // namespace forewarp::cli

// forewarp plot, report, timeline: the command line of what plots/forewarp_plots draws from result files.
//
// Drawing is arranging Vega-Lite templates, and vl-convert, which renders them, is a Python package; so these commands
// check what they are given and hand over to plots/forewarp_plots. Nothing of the simulator is needed there.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/places.h"

namespace forewarp::cli {

namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

using Words = std::vector<std::string>;

/// The interpreter that ./run.sh sets up with vl-convert beside it, or the system's.
std::string find_python() {
  const fs::path own = fs::path(home_folder()) / ".venv" / "bin" / "python";
  std::error_code ignored;
  return fs::exists(own, ignored) ? own.string() : "python3";
}

/// Runs the drawing package, whose exit codes and messages are this program's.
int draw(Words words) {
  const fs::path package = fs::path(home_folder()) / "plots" / "forewarp_plots";
  std::error_code ignored;
  if (!fs::is_directory(package, ignored))
    throw InputError({package.string()}, "is not there, and it is what draws",
                     "set FOREWARP_HOME to the project's folder");
  words.insert(words.begin(),
               {find_python(), "-B", package.string(), error_style().coloured() ? "--color=always" : "--color=never"});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kInternal;
  if (code == 127) throw InputError("drawing needs Python 3, which is not installed", "`./run.sh build` installs it");
  return code;
}

void pass(const CommandLine& c, const std::string& name, Words& words) {
  if (c.has(name)) words.insert(words.end(), {"--" + name + "=" + c.text(name)});
}

void pass_all(const CommandLine& c, const std::string& name, Words& words) {
  for (const std::string& value : c.texts(name)) words.push_back("--" + name + "=" + value);
}

/// After `--`, so that a file's name is not taken for an option.
void pass_results(const CommandLine& c, const std::string& name, Words& words) {
  words.emplace_back("--");
  for (const std::string& path : c.texts(name)) words.push_back(path);
}

void add_cases(CommandLine& c) {
  c.model()("case", po::value<Words>()->value_name("ID"),
            "only this case, or launch ID#N; repeat it for more, in order");
}

void add_modes(CommandLine& c) {
  c.model()("mode", po::value<Words>()->value_name("stream|graph"),
            "how launches are queued: one call each, or one for a captured graph (default: stream)")(
      "join", po::value<std::string>()->value_name("NAME"), "take all launches for one sequence of this name");
}

CommandLine make_plot_line() {
  CommandLine c(
      "plot KIND [RESULT.json ...] --out FILE [options]",
      "Draws results that other commands wrote with --json; nothing is simulated. KIND is roofline, sweep, waves,\n"
      "coalescing, divergence, memory, mix, stalls, ladder, traffic, occupancy, timeline, warps, validation, cost, "
      "tornado "
      "(of whatif)\n"
      "or pareto (of sweep). FILE ends in .svg, .png, .pdf, .html (one interactive page that needs no network) or "
      ".json (the "
      "Vega-Lite specification).",
      {"forewarp plot waves tiled.json --out waves.svg",
       "forewarp plot roofline ladder.json --machine tpu-v5e --out roofline.html"});
  c.positional("KIND");
  c.rest("RESULT.json", true);
  add_cases(c);
  c.model()(
      "points", po::value<Words>()->value_name("FILE.csv"),
      "sweep: a measured or published curve beside it (size, ns); cost: what predictions cost (validation/speed)")(
      "measured", po::value<std::string>()->value_name("FILE.csv"), "timeline: measured whole sequences (case, us)")(
      "machine", po::value<Words>()->value_name("NAME|FILE"),
      "roofline: ceilings of a machine without SMs (hwmodels/ceilings)")(
      "work", po::value<Words>()->value_name("CASE=OPERATIONS"),
      "roofline: what counts as a case's work, where the GPU counts no floating-point operation")(
      "formula", po::value<Words>()->value_name("CASE:LEVEL=BYTES[:TEXT]"), "traffic: what a bar should be")(
      "level", po::value<Words>()->value_name("NAME"), "traffic: only this level; repeat it for more")(
      "pc", po::value<std::string>()->value_name("ADDRESS"),
      "coalescing: the instruction (default: the one that wastes most)")(
      "cycles", po::value<std::string>()->value_name("FROM:TO"),
      "warps: only these cycles (default: the whole record)");
  add_modes(c);
  c.output()("out", po::value<std::string>()->value_name("FILE"), "where the picture goes")(
      "title", po::value<std::string>()->value_name("TEXT"), "in place of the kind's own title")(
      "width", po::value<std::string>()->value_name("PIXELS"), "the picture is no wider (240 to 4000)")(
      "theme", po::value<std::string>()->value_name("light|dark"),
      "the ground it stands on (default: light; a page follows the reader's system)");
  return c;
}

CommandLine make_report_line() {
  CommandLine c(
      "report RESULT.json [RESULT.json ...] --html FILE [options]",
      "Writes one page of a run: what bounds each launch and why, its pictures, its counters with what they mean, its\n"
      "instructions, warnings and coverage, in the order of Nsight Compute's sections. The page needs no network.",
      {"forewarp report tiled.json --html tiled.html",
       "forewarp report ladder.json --case sgemm_vectorized_1024 --html vectorized.html"});
  c.rest("RESULT.json");
  add_cases(c);
  c.output()("html", po::value<std::string>()->value_name("FILE"), "where the page goes")(
      "theme", po::value<std::string>()->value_name("auto|light|dark"),
      "the page's ground; auto: as the reader's system prefers (default: auto)");
  return c;
}

CommandLine make_timeline_line() {
  CommandLine c(
      "timeline RESULT.json [RESULT.json ...] --perfetto FILE [options]",
      "Writes the launches as a trace that Perfetto and chrome://tracing open: host calls and kernels, blocks on SMs,\n"
      "memory bandwidth and what warps wait for. `forewarp plot timeline` draws the launches alone.",
      {"forewarp timeline student.json --perfetto student.perfetto.json",
       "forewarp timeline sin_cos.json --mode graph --perfetto graph.perfetto.json"});
  c.rest("RESULT.json");
  add_cases(c);
  add_modes(c);
  c.output()("perfetto", po::value<std::string>()->value_name("FILE"), "where the trace goes");
  return c;
}

}  // namespace

int run_plot(const Arguments& arguments) {
  CommandLine c = make_plot_line();
  if (!c.parse(arguments)) return kDone;
  const std::string kind = c.text("KIND");
  Words words{"plot", "--out=" + c.text("out")};
  for (const char* name : {"case", "points", "machine", "formula", "work", "level", "mode"}) pass_all(c, name, words);
  for (const char* name : {"measured", "pc", "cycles", "join", "title", "width", "theme"}) pass(c, name, words);
  pass_results(c, "RESULT.json", words);
  words.insert(words.end() - static_cast<std::ptrdiff_t>(c.texts("RESULT.json").size()), kind);
  return draw(std::move(words));
}

int run_report(const Arguments& arguments) {
  CommandLine c = make_report_line();
  if (!c.parse(arguments)) return kDone;
  std::error_code ignored;
  Words words{"report", "--html=" + c.text("html"),
              "--forewarp=" + fs::read_symlink("/proc/self/exe", ignored).string()};
  pass_all(c, "case", words);
  pass(c, "theme", words);
  pass_results(c, "RESULT.json", words);
  return draw(std::move(words));
}

int run_timeline(const Arguments& arguments) {
  CommandLine c = make_timeline_line();
  if (!c.parse(arguments)) return kDone;
  Words words{"timeline", "--perfetto=" + c.text("perfetto")};
  pass_all(c, "case", words);
  pass_all(c, "mode", words);
  pass(c, "join", words);
  pass_results(c, "RESULT.json", words);
  return draw(std::move(words));
}

}  // namespace forewarp::cli

// The command `forewarp`: finds the subcommand, and turns whatever it throws into one message and an exit code. This is
// the only place that catches errors.
#include <boost/program_options/errors.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>

#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"

namespace {

using namespace forewarp;

struct Command {
  std::string_view name;
  std::string_view purpose;
  int (*run)(const cli::Arguments&);
};

constexpr Command kCommands[] = {
    {"predict", "predict how a kernel performs on a GPU", cli::run_predict},
    {"sketch", "predict kernels that are not written yet", cli::run_sketch},
    {"sweep", "predict over ranges of launches and GPUs", cli::run_sweep},
    {"whatif", "halve and double each resource of a GPU", cli::run_whatif},
    {"advise", "try changes of a kernel or a sketch, and rank them", cli::run_advise},
    {"addresses", "list the memory accesses of every thread", cli::run_addresses},
    {"trace", "write what every warp executes to a file", cli::run_trace},
    {"simulate", "replay a trace on a GPU model", cli::run_simulate},
    {"emulate", "compute a kernel's results on the CPU", cli::run_emulate},
    {"validate", "compare predictions with measured profiles", cli::run_validate},
    {"calibrate", "compare the calibration kernels with their profiles, by unit", cli::run_calibrate},
    {"compare", "put the same cases on several GPUs side by side", cli::run_compare},
    {"plot", "draw a picture of results", cli::run_plot},
    {"report", "write a page of a result", cli::run_report},
    {"timeline", "write a sequence of launches as a trace for Perfetto", cli::run_timeline},
    {"bench", "measure forewarp's own speed and memory", cli::run_bench},
    {"list", "list the kernels of a cubin, or write a launch file for one", cli::run_list},
    {"describe", "list GPUs, metrics and opcodes", cli::run_describe},
};

void print_help(std::ostream& out) {
  out << "forewarp " FOREWARP_VERSION
         ": predicts how CUDA kernels perform on a GPU that need not be there.\n\n"
         "Usage: forewarp COMMAND ...\n\n";
  for (const Command& c : kCommands) out << "  " << c.name << std::string(11 - c.name.size(), ' ') << c.purpose << "\n";
  out << "\n`forewarp COMMAND --help` says more. Exit codes: 0 done, 1 bad input, 2 usage, 3 validation outside its\n"
         "tolerance, 4 internal error.\n";
}

int dispatch(int argc, char** argv) {
  if (argc < 2) {
    print_help(std::cerr);
    return cli::kUsage;
  }
  const std::string_view name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(std::cout);
    return cli::kDone;
  }
  if (name == "--version") {
    std::cout << "forewarp " FOREWARP_VERSION "\n";
    return cli::kDone;
  }
  for (const Command& c : kCommands)
    if (c.name == name) return c.run(cli::Arguments(argv + 2, argv + argc));
  throw cli::UsageError("there is no command '" + std::string(name) + "'; `forewarp --help` lists them");
}

int fail(const char* kind, const char* what, int code) {
  const std::string message = std::string("forewarp: ") + kind + cli::printable(what);
  const std::size_t first = message.find('\n');  // the remedy follows
  std::fprintf(stderr, "%s%s\n", cli::error_style().paint(Tone::Error, message.substr(0, first)).c_str(),
               first == std::string::npos ? "" : message.c_str() + first);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const InputError& e) {
    return fail("", e.what(), cli::kBadInput);
  } catch (const cli::UsageError& e) {
    return fail("", e.what(), cli::kUsage);
  } catch (const boost::program_options::error& e) {
    return fail("", e.what(), cli::kUsage);
  } catch (const std::bad_alloc&) {
    return fail("", "out of memory\n  give less by --memory, take a smaller problem, or a machine with more",
                cli::kBadInput);
  } catch (const std::exception& e) {
    return fail("internal error: ", e.what(), cli::kInternal);
  }
}

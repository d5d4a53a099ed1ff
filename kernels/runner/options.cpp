#include "options.h"

#include <charconv>
#include <cstring>

namespace forewarp::runner {
namespace {

int number(const std::string& option, const std::string& text, int low, int high) {
  int value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size() || value < low || value > high)
    throw UsageError(option + " takes a number from " + std::to_string(low) + " to " + std::to_string(high) +
                     ", not '" + text + "'");
  return value;
}

Dump dump(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw UsageError("--dump takes BUFFER=FILE, not '" + text + "'");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void check(const Options& options) {
  if (options.help || options.query) return;
  if (options.images.empty()) throw UsageError("no cubin is named");
  for (const Image& image : options.images)
    if (image.launch_file.empty()) throw UsageError(image.cubin + " has no --launch FILE after it");
  if (options.profile && !(options.csv.empty() && options.dumps.empty()))
    throw UsageError("--profile launches and nothing else: no --csv, no --dump");
  if (!options.profile && !options.manifest.empty()) throw UsageError("--manifest goes with --profile");
  if (!options.profile && options.distinct != 0) throw UsageError("--distinct goes with --profile");
  if (!options.profile && options.deadline != 0) throw UsageError("--deadline goes with --profile");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) throw UsageError(word + " needs a value");
      return argv[++i];
    };
    if (word == "--launch") {
      const std::string path = value();
      if (options.images.empty() || !options.images.back().launch_file.empty())
        throw UsageError("--launch FILE follows its cubin");
      options.images.back().launch_file = path;
    } else if (word == "--case") {
      options.cases.push_back(value());
    } else if (word == "--repeat") {
      options.repeat = number(word, value(), 0, 100000);
    } else if (word == "--distinct") {
      options.distinct = number(word, value(), 1, 100000);
    } else if (word == "--deadline") {
      options.deadline = number(word, value(), 1, 1000000);
    } else if (word == "--device") {
      options.device = number(word, value(), 0, 1023);
    } else if (word == "--dump") {
      options.dumps.push_back(dump(value()));
    } else if (word == "--csv") {
      options.csv = value();
    } else if (word == "--manifest") {
      options.manifest = value();
    } else if (word == "--warm") {
      options.warm = true;
    } else if (word == "--profile") {
      options.profile = true;
    } else if (word == "--list") {
      options.list = true;
    } else if (word == "--query") {
      options.query = true;
    } else if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word.starts_with("--")) {
      throw UsageError("unknown option " + word);
    } else {
      options.images.push_back({word, {}});
    }
  }
  check(options);
  return options;
}

const char* usage() {
  return R"(forewarp-run launches the kernels of a cubin on this machine's GPU as a launch file says, and times them.

  forewarp-run CUBIN --launch FILE [CUBIN --launch FILE]... [options]

  --case ID           run this case only; may be given several times
  --list              print the cases and launches, touch no GPU
  --query             print what the driver says of the device

timing (the default mode): every launch with events, once for each repeat with cold caches (L2 overwritten before
it), then once for each repeat warm, after two launches of the same kernel
  --repeat N          repeats (default 5; 0 runs each case once, untimed); at most 3 for launches longer than 0.2 s
  --csv FILE          the table as CSV; - for standard output
  --dump BUFFER=FILE  write a buffer as it is after one run of the case's launches, before anything is timed

profiling: launches and nothing else, for a profiler around this program (ncu --profile-from-start off)
  --profile           launch every launch of every case --repeat times (default 1), each between cuProfilerStart and Stop
  --warm              before each of them the same launch once more, outside the profiler's range
  --distinct N        of launches of a case that are alike in kernel, grid and block profile the first N only
  --deadline SECONDS  stop cleanly before the first launch after so many seconds
  --manifest FILE     CSV of the profiled launches in order

  --device N          device ordinal (default 0)

Buffers are filled once for a case and never restored: kernels that write in place see their own results when they
are repeated.

  forewarp-run sgemm.cubin --launch sgemm.yaml --case sgemm_1024 --csv -
  ncu --profile-from-start off --csv --page raw forewarp-run --profile a.cubin --launch a.yaml --manifest m.csv
)";
}

}  // namespace forewarp::runner

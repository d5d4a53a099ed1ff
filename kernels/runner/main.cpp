// forewarp-run: the kernels of a cubin on a real GPU, as a launch file says; see usage() in options.cpp.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "base/file.h"
#include "device_case.h"
#include "driver.h"
#include "options.h"
#include "profiling.h"
#include "timing.h"

namespace forewarp::runner {
namespace {

constexpr int kDefaultRepeat = 5;

struct Work {
  std::string stem, cubin;
  LaunchFile file;
  std::vector<const Case*> cases;
};

std::vector<std::unique_ptr<Work>> read_work(const Options& options) {
  std::vector<std::unique_ptr<Work>> all;
  std::set<std::string> missing(options.cases.begin(), options.cases.end());
  for (const Image& image : options.images) {
    auto work = std::make_unique<Work>();
    work->stem = std::filesystem::path(image.launch_file).stem().string();
    work->cubin = image.cubin;
    work->file = read_launch_file(image.launch_file);
    for (const Case& item : work->file.cases) {
      if (!options.cases.empty() &&
          std::find(options.cases.begin(), options.cases.end(), item.id) == options.cases.end())
        continue;
      missing.erase(item.id);
      work->cases.push_back(&item);
    }
    all.push_back(std::move(work));
  }
  if (!missing.empty()) throw InputError("no launch file has a case " + *missing.begin(), "--list prints the cases");
  return all;
}

void print_list(const std::vector<std::unique_ptr<Work>>& all) {
  for (const auto& work : all)
    for (const Case* item : work->cases)
      for (std::size_t i = 0; i < item->launches.size(); ++i) {
        const Launch& launch = item->launches[i];
        std::printf("%s %zu %s (%u,%u,%u)x(%u,%u,%u)\n", item->id.c_str(), i, launch.kernel.c_str(), launch.grid.x,
                    launch.grid.y, launch.grid.z, launch.block.x, launch.block.y, launch.block.z);
      }
}

void run_once(const DeviceCase& item, const Options& options) {
  for (std::size_t i = 0; i < item.launches(); ++i) item.launch(i);
  FW_CUDA(cuCtxSynchronize());
  for (const Dump& dump : options.dumps) {
    const std::vector<std::uint8_t> bytes = item.read(dump.buffer);
    write_file(dump.path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
}

/// A case that fails is reported and left out; an error that poisons the context ends the run.
int run_all(const std::vector<std::unique_ptr<Work>>& all, const Options& options) {
  std::size_t chosen = 0;
  for (const auto& work : all) chosen += work->cases.size();
  if (!options.dumps.empty() && chosen != 1) throw UsageError("--dump needs exactly one case; choose it with --case");
  const Context context(options.device);
  Manifest manifest(options.manifest);
  FillCache fills;
  std::unique_ptr<CaseTimer> timer;
  const int repeat = options.repeat < 0 ? kDefaultRepeat : options.repeat;
  if (!options.profile && repeat > 0) timer = std::make_unique<CaseTimer>(context);
  const Deadline deadline = options.deadline == 0
                                ? Deadline::max()
                                : std::chrono::steady_clock::now() + std::chrono::seconds(options.deadline);
  std::vector<TimingRow> rows;
  int failures = 0;
  for (const auto& work : all) {
    const Module module(work->cubin);
    for (const Case* item : work->cases) try {
        const DeviceCase device_case(module, *item, fills);
        if (options.profile) {
          if (!profile_case(device_case, work->stem, options, deadline, manifest)) {
            std::fprintf(stderr, "stopped at the deadline in case %s\n", item->id.c_str());
            return failures == 0 ? 0 : 1;
          }
          continue;
        }
        run_once(device_case, options);
        if (!timer) continue;
        for (TimingRow& row : timer->time(device_case, work->stem, repeat)) rows.push_back(std::move(row));
        if (!options.csv.empty() && options.csv != "-") write_file(options.csv, timing_csv(rows));
      } catch (const CudaError& error) {
        std::fprintf(stderr, "case %s: %s\n", item->id.c_str(), error.what());
        ++failures;
        FW_CUDA(cuCtxSynchronize());
      }
  }
  if (!rows.empty()) std::fputs(options.csv == "-" ? timing_csv(rows).c_str() : timing_table(rows).c_str(), stdout);
  return failures == 0 ? 0 : 1;
}

int run(const Options& options) {
  if (options.help) {
    std::fputs(usage(), stdout);
    return 0;
  }
  if (options.query) {
    std::fputs(describe_device(Context(options.device)).c_str(), stdout);
    return 0;
  }
  const auto all = read_work(options);
  if (options.list) {
    print_list(all);
    return 0;
  }
  return run_all(all, options);
}

}  // namespace
}  // namespace forewarp::runner

int main(int argc, char** argv) {
  using namespace forewarp;
  try {
    return runner::run(runner::parse_options(argc, argv));
  } catch (const runner::UsageError& error) {
    std::fprintf(stderr, "forewarp-run: %s\n%s", error.what(), runner::usage());
    return 2;
  } catch (const std::runtime_error& error) {  // InputError, CudaError
    std::fprintf(stderr, "forewarp-run: %s\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forewarp-run: internal error: %s\n", error.what());
    return 4;
  }
}

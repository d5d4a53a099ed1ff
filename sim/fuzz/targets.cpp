#include "fuzz/targets.h"

#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "emulation/emulation.h"
#include "hardware/gpu_model.h"
#include "hardware/occupancy.h"
#include "launch/launch.h"
#include "program/program.h"
#include "timing/simulate.h"
#include "trace/trace_file.h"

namespace forewarp::fuzz {
namespace {

const std::string kRoot = FOREWARP_SOURCE_DIR;
constexpr const char* kImages[] = {"forms_sm80",    "forms_sm90",   "lines_sm90", "separate_sm80",
                                   "separate_sm90", "runtime_sm90", "async_sm90a"};

Bytes contents(const std::string& path) { return read_binary_file(kRoot + "/" + path); }

void write(const std::string& path, const Bytes& bytes) {
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// --- images ----------------------------------------------------------------------------------------------------------

std::vector<Input> image_seeds() {
  std::vector<Input> seeds;
  for (const std::string name : kImages) {
    const std::string cubin = "sim/program/testdata/" + name + ".cubin";
    seeds.push_back({contents(cubin), contents(cubin + ".json")});
  }
  return seeds;
}

void run_image(const Input& input, const std::string& folder) {
  const std::string cubin = folder + "/image.cubin";
  write(cubin, input.empty() ? Bytes{} : input[0]);
  write(cubin + ".json", input.size() < 2 ? Bytes{} : input[1]);
  for_each_kernel(cubin, ImageOptions{}, [](const ImagePart&, const Kernel& kernel) { stopping_instructions(kernel); });
}

std::vector<Input> fatbin_seeds() {
  std::vector<Input> seeds{{contents("sim/program/testdata/separate.fatbin")}};
  for (const char* name : kImages) seeds.push_back({contents(std::string("sim/program/testdata/") + name + ".cubin")});
  return seeds;
}

void run_fatbin(const Input& input, const std::string& folder) {
  const std::string path = folder + "/image.fatbin";
  write(path, input.empty() ? Bytes{} : input[0]);
  ImageOptions options;
  options.instructions = false;
  for_each_kernel(path, options, [](const ImagePart&, const Kernel&) {});
}

// --- launch files and models -----------------------------------------------------------------------------------------

std::vector<Input> files_in(const std::string& folder, std::uintmax_t most_bytes) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/" + folder))
    if (entry.path().extension() == ".yaml" && entry.file_size() <= most_bytes) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> seeds;
  for (const std::string& path : paths) seeds.push_back({read_binary_file(path)});
  return seeds;
}

std::vector<Input> launch_seeds() { return files_in("traces", 4096); }

void run_launch(const Input& input, const std::string& folder) {
  constexpr std::uint64_t kFilled = 1 << 16;
  const std::string path = folder + "/launch.yaml";
  write(path, input.empty() ? Bytes{} : input[0]);
  const LaunchFile file = read_launch_file(path);
  for (const Case& item : file.cases) {
    const std::vector<std::uint64_t> places = place_buffers(item);
    for (const Buffer& buffer : item.buffers)
      if (buffer.bytes <= kFilled) make_buffer(buffer, places);
  }
}

std::vector<Input> model_seeds() { return files_in("hwmodels", std::uintmax_t{1} << 20); }

void run_model(const Input& input, const std::string& folder) {
  // Models name the file of their family.
  if (!std::filesystem::exists(folder + "/families"))
    std::filesystem::copy(kRoot + "/hwmodels/families", folder + "/families");
  const std::string path = folder + "/model.yaml";
  write(path, input.empty() ? Bytes{} : input[0]);
  load_gpu_model(path);
  describe_gpu(path);
}

// --- traces: a part is a section, its kind in front of its contents --------------------------------------------------

template <class T>
T number_at(const Bytes& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void put(Bytes& bytes, T value) {
  bytes.resize(bytes.size() + sizeof value);
  std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

constexpr std::size_t kStart = 12, kHeader = 40;

Input sections_of(const Bytes& file) {
  Input sections;
  for (std::size_t at = kStart; at + kHeader <= file.size();) {
    const auto size = number_at<std::uint64_t>(file, at + 8), stored = number_at<std::uint64_t>(file, at + 16);
    Bytes section(4 + size);
    std::memcpy(section.data(), file.data() + at, 4);
    ZSTD_decompress(section.data() + 4, size, file.data() + at + kHeader, stored);
    at += kHeader + stored;
    sections.push_back(std::move(section));
  }
  return sections;
}

Bytes file_of(const Input& sections) {
  Bytes file{0x89, 'F', 'W', 'T', '\r', '\n', 0x1a, '\n'};
  put(file, kTraceFormatVersion);
  std::uint32_t number = 0;
  for (const Bytes& section : sections) {
    const std::size_t size = section.size() < 4 ? 0 : section.size() - 4;
    Bytes stored(ZSTD_compressBound(size));
    stored.resize(ZSTD_compress(stored.data(), stored.size(), section.data() + (section.size() - size), size, 1));
    Bytes header;
    put(header, section.size() < 4 ? 0u : number_at<std::uint32_t>(section, 0));
    put(header, number++);
    put(header, std::uint64_t{size});
    put(header, std::uint64_t{stored.size()});
    put(header, std::uint64_t{XXH3_64bits(stored.data(), stored.size())});
    put(header, std::uint64_t{XXH3_64bits(header.data(), header.size())});
    file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), stored.begin(), stored.end());
  }
  return file;
}

std::vector<Input> trace_seeds() {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("forewarp-fuzz-" + std::to_string(getpid()) + ".trace")).string();
  std::vector<Input> seeds;
  for (const std::string name : {"reduce_01_softmax_rows", "divergence_01_branch_ways", "copy_05_transpose"}) {
    const Program program = load_program(kRoot + "/traces/sm_80/" + name + ".cubin");
    LaunchFile file = read_launch_file(kRoot + "/traces/" + name + ".yaml");
    Case& item = file.cases.front();
    for (Launch& launch : item.launches) launch.grid = {std::min(launch.grid.x, 6u), 1, 1};
    write_traces(path, {*trace_launch(program, item, 0)});
    seeds.push_back(sections_of(read_binary_file(path)));
  }
  std::filesystem::remove(path);
  return seeds;
}

/// What the reader lets through, the timing model takes: of a small GPU, so that many go by.
void run_trace(const Input& input, const std::string& folder) {
  constexpr std::uint64_t kMostInstructions = 200'000;
  const std::string path = folder + "/a.trace";
  write(path, file_of(input));
  static const GpuModel gpu = load_gpu_model("a100-sxm4-40gb");
  for (const KernelTrace& trace : read_traces(path)) {
    std::uint64_t length = 0;
    for (const BlockClass& c : trace.classes)
      for (const WarpTrace& warp : c.warps) length += c.paths[warp.path].instructions;
    if (trace.classes.empty() || length > kMostInstructions || trace.sm != 80) continue;
    const LaunchInfo& launch = trace.launch;
    const Occupancy occupancy =
        compute_occupancy(gpu, *trace.kernel, launch.grid, launch.block, launch.dynamic_shared_bytes);
    SimulateOptions options;
    options.effort.seconds = 0.01;
    options.detailed_instructions = 10'000;
    simulate(gpu, trace, occupancy, options);
  }
}

constexpr Target kTargets[] = {
    {"image", true, false, image_seeds, run_image},    {"fatbin", false, false, fatbin_seeds, run_fatbin},
    {"launch", true, false, launch_seeds, run_launch}, {"trace", false, true, trace_seeds, run_trace},
    {"model", true, false, model_seeds, run_model},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace forewarp::fuzz

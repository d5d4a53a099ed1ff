// Stored work comes back; damaged entries and those of other keys do not.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "cache/prediction_cache.h"
#include "cache/timing_codec.h"

using namespace forewarp;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  Scratch() {
    std::string name = (fs::temp_directory_path() / "forewarp_cache_test_XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~Scratch() { fs::remove_all(folder); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  std::string folder;
};

TimingResult some_timing() {
  TimingResult r;
  r.elapsed_cycles = 12345;
  r.counters.memory.dram_read_bytes = 1 << 20;
  r.counters.stalls[3] = 77;
  r.spans = {{5, 2, 10, 20}, {6, 3, 11, 21}};
  r.skipped = {{100, 200}};
  r.instruction_stalls.resize(4);
  r.instruction_stalls[2][1] = 9;
  r.coverage = {1000, 10, true, true, 3000000, "by hand", 2.5, 2.5};
  r.warnings = {"careful", ""};
  return r;
}

const ContentKey kKey{{1, 2}}, kOther{{1, 3}};

}  // namespace

TEST_CASE("a timing result survives its bytes, all of them") {
  const TimingResult before = some_timing();
  const std::vector<std::uint8_t> bytes = encode_timing(before);
  const auto after = decode_timing(bytes);
  REQUIRE(after);
  CHECK(after->elapsed_cycles == before.elapsed_cycles);
  CHECK(after->counters.memory.dram_read_bytes == before.counters.memory.dram_read_bytes);
  CHECK(after->counters.stalls == before.counters.stalls);
  REQUIRE(after->spans.size() == 2);
  CHECK(after->spans[1].end == 21);
  CHECK(after->skipped[0].to == 200);
  CHECK(after->instruction_stalls == before.instruction_stalls);
  CHECK(after->coverage.method == "by hand");
  CHECK(after->coverage.cycles_high == 2.5);
  CHECK(after->warnings == before.warnings);
  for (std::size_t n = 0; n < bytes.size(); n += 7)
    CHECK_FALSE(
        decode_timing(std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n))));
}

TEST_CASE("what is kept is found under its key alone") {
  const Scratch scratch;
  const PredictionCache cache(scratch.folder + "/made/when/needed");
  CHECK_FALSE(cache.timing(kKey));
  cache.keep(kKey, some_timing());
  REQUIRE(cache.timing(kKey));
  CHECK(cache.timing(kKey)->elapsed_cycles == 12345);
  CHECK_FALSE(cache.timing(kOther));
  for (const fs::path& file : scratch.files()) CHECK(file.extension() != ".tmp");
}

TEST_CASE("an entry that is cut short, changed or put under another key counts as absent and is written again") {
  const Scratch scratch;
  const PredictionCache cache(scratch.folder);
  cache.keep(kKey, some_timing());
  REQUIRE(scratch.files().size() == 1);
  const fs::path file = scratch.files().front();
  const std::string good = read_text_file(file.string());
  for (std::size_t n : {std::size_t{0}, std::size_t{5}, std::size_t{50}, good.size() - 1}) {
    write_file(file.string(), good.substr(0, n));
    CHECK_FALSE(cache.timing(kKey));
  }
  for (std::size_t at = 0; at < good.size(); at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_file(file.string(), bad);
    CHECK_FALSE(cache.timing(kKey));
  }
  cache.keep(kOther, some_timing());
  for (const fs::path& other : scratch.files())
    if (other != file) fs::copy_file(other, file, fs::copy_options::overwrite_existing);
  CHECK_FALSE(cache.timing(kKey));
  cache.keep(kKey, some_timing());
  CHECK(cache.timing(kKey));
}

TEST_CASE("a store stays below its size: what has not been used for longest goes, and nothing that is not its own") {
  const Scratch scratch;
  std::vector<std::uint8_t> noise(10'000);  // does not compress
  std::uint64_t state = 1;
  for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>((state = state * 6364136223846793005u + 1) >> 56);
  const Store store(scratch.folder, 100'000);
  write_file(scratch.folder + "/mine.txt", std::string(200'000, 'x'));
  const auto key = [](std::uint64_t i) { return ContentKey{{i, i}}; };
  const auto now = fs::file_time_type::clock::now();
  for (std::uint64_t i = 0; i < 12; ++i) {
    store.put(key(i), "timing", noise);
    fs::last_write_time(store.place(key(i), "timing"), now - std::chrono::hours(24 - i));
  }
  write_file(fs::path(store.place(key(3), "timing")).parent_path().string() + "/not_an_entry", "y");
  REQUIRE(store.get(key(0), "timing"));  // used again: the youngest now
  // Two processes may trim at a time: the second finds the first one's work done, or half done.
  std::jthread other([&] { store.trim(); });
  store.trim();
  other.join();
  CHECK(store.get(key(0), "timing"));
  CHECK_FALSE(store.get(key(1), "timing"));
  CHECK(store.get(key(11), "timing"));
  std::uintmax_t bytes = 0;
  for (const fs::path& file : scratch.files())
    if (file.extension() == ".timing") bytes += fs::file_size(file);
  CHECK(bytes <= 80'000);
  CHECK(bytes >= 60'000);
  CHECK(fs::exists(scratch.folder + "/mine.txt"));
}

TEST_CASE("what is kept is looked after without being asked") {
  const Scratch scratch;
  const PredictionCache cache(scratch.folder, 1);  // nothing fits
  cache.keep(kKey, some_timing());
  CHECK_FALSE(cache.timing(kKey));
}

TEST_CASE("a folder that cannot be written is no error") {
  const PredictionCache cache("/proc/nowhere");
  cache.keep(kKey, some_timing());
  CHECK_FALSE(cache.timing(kKey));
  CHECK_FALSE(cache.trace(kKey));
}

TEST_CASE("keys follow what a prediction depends on") {
  Program program;
  program.content_hash = 7;
  program.path = "/nowhere/image.cubin";
  Case item;
  item.id = "one";
  item.buffers.push_back({"a", 64, FillLcg{1, 10}, {}});
  item.launches.push_back({"kernel", {1, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0, {}, {}});
  const ContentKey base = trace_key(program, item, 0, false);
  CHECK(trace_key(program, item, 0, false) == base);
  CHECK_FALSE(trace_key(program, item, 1, false) == base);
  CHECK_FALSE(trace_key(program, item, 0, true) == base);
  Case changed = item;
  changed.buffers[0].fill = FillLcg{2, 10};
  CHECK_FALSE(trace_key(program, changed, 0, false) == base);
  changed = item;
  changed.launches[0].grid.y = 2;
  CHECK_FALSE(trace_key(program, changed, 0, false) == base);
  Program other = program;
  other.content_hash = 8;
  CHECK_FALSE(trace_key(other, item, 0, false) == base);

  GpuModel gpu;
  gpu.name = "x";
  gpu.content_hash = 1;
  SimulateOptions options;
  const ContentKey timing = timing_key(base, gpu, options);
  options.full = true;
  CHECK_FALSE(timing_key(base, gpu, options) == timing);
  options = {};
  options.caches = CacheState::Warm;
  CHECK_FALSE(timing_key(base, gpu, options) == timing);
  gpu.content_hash = 2;
  CHECK_FALSE(timing_key(base, gpu, {}) == timing);
}

TEST_CASE("how much may be kept") {
  ::unsetenv("FOREWARP_CACHE_MIB");
  CHECK(default_cache_bytes() == std::uint64_t{2048} << 20);
  ::setenv("FOREWARP_CACHE_MIB", "3", 1);
  CHECK(default_cache_bytes() == std::uint64_t{3} << 20);
  ::setenv("FOREWARP_CACHE_MIB", "many", 1);
  CHECK_THROWS_AS(default_cache_bytes(), InputError);
  ::unsetenv("FOREWARP_CACHE_MIB");
}

TEST_CASE("where things are kept") {
  ::setenv("FOREWARP_CACHE", "/some/where", 1);
  CHECK(default_cache_folder() == "/some/where");
  ::setenv("FOREWARP_CACHE", "", 1);
  CHECK_FALSE(default_cache_folder());
  ::unsetenv("FOREWARP_CACHE");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  CHECK(default_cache_folder() == "/x/forewarp");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/me", 1);
  CHECK(default_cache_folder() == "/home/me/.cache/forewarp");
}

// forewarp_fuzz TARGET [--runs N] [--seconds S] [--seed N]
//
// Run n damages an input in a way that follows from the seed and the runs before, so a defect comes again with the same
// options. A defect is anything but an InputError: another exception, a report of a sanitizer, ten seconds of the
// processor, two gigabytes. The files of the run are left where the message says.
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/error.h"
#include "fuzz/mutate.h"

namespace {

/// How often each pair of branches followed each other in this run. A slot is the hash of both places.
constexpr std::size_t kSlots = std::size_t{1} << 16;
std::array<std::uint8_t, kSlots> taken;
std::uintptr_t last_place = 0;

#ifdef FOREWARP_FUZZ
constexpr bool kGuided = true;
#else
constexpr bool kGuided = false;
#endif

}  // namespace

#ifdef FOREWARP_FUZZ
extern "C" void __sanitizer_cov_trace_pc();
extern "C" void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  std::uint8_t& count = taken[(place ^ last_place) % kSlots];
  if (count < 255) ++count;
  last_place = place * 0x9e3779b1u >> 7;
}
#endif

namespace forewarp::fuzz {
namespace {

constexpr unsigned kMostSeconds = 10;
constexpr long kMostKib = 2L << 20;
constexpr std::size_t kMostKept = 4000;

std::array<char, 256> place{};  ///< what to say of a run that does not end

/// Of the processor, so that a busy machine does not matter.
void limit_time(unsigned seconds) {
  const itimerval timer{{0, 0}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

void too_long(int) {
  const char* text = place.data();
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(1);
  _exit(1);
}

/// Bits for 1, 2, 3, 4 to 7, ... times: a loop's length counts roughly.
std::uint8_t bucket(std::uint8_t count) {
  return static_cast<std::uint8_t>(count < 4     ? count
                                   : count < 8   ? 4
                                   : count < 16  ? 8
                                   : count < 32  ? 16
                                   : count < 128 ? 32
                                                 : 64);
}

class Fuzzer {
 public:
  Fuzzer(const Target& target, std::uint64_t seed)
      : target_(target), seed_(seed), kept_(target.seeds()), seeds_(kept_.size()), seen_(kSlots, 0) {
    folder_ = (std::filesystem::temp_directory_path() / ("forewarp-fuzz-" + std::to_string(getpid()))).string();
    std::filesystem::create_directories(folder_);
    // The first runs are the files as they are: they load, or the target is no good.
    for (const Input& input : kept_) {
      try {
        run(input);
      } catch (const InputError& error) {
        defect(std::string("a file of the project is refused: ") + error.what());
      }
      is_new();
    }
  }
  ~Fuzzer() { std::filesystem::remove_all(folder_); }
  Fuzzer(const Fuzzer&) = delete;
  Fuzzer& operator=(const Fuzzer&) = delete;

  void one(std::uint64_t number) {
    number_ = number;
    std::seed_seq sequence{seed_ & 0xffffffffu, seed_ >> 32, number & 0xffffffffu, number >> 32};
    Random random(sequence);
    // Half of the time what was found last, or a file of the project.
    const std::size_t from =
        random() % 2 == 0 ? random() % kept_.size() : kept_.size() - 1 - random() % std::min(kept_.size(), seeds_ + 16);
    Input input = kept_[from];
    mutate(target_, input, kept_[random() % kept_.size()], random);
    try {
      run(input);
      ++accepted_;
    } catch (const InputError&) {
    } catch (const std::exception& error) {
      defect(error.what());
    }
    if (is_new() && kept_.size() < kMostKept) kept_.push_back(std::move(input));
    struct rusage usage {};
    getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss > kMostKib) defect("it takes " + std::to_string(usage.ru_maxrss >> 10) + " MiB");
  }

  std::uint64_t accepted() const { return accepted_; }
  std::size_t found() const { return kept_.size() - seeds_; }

 private:
  void run(const Input& input) {
    std::snprintf(place.data(), place.size(), "%s, seed %llu, run %llu: more than %u seconds; its files are in %s\n",
                  target_.name, static_cast<unsigned long long>(seed_), static_cast<unsigned long long>(number_),
                  kMostSeconds, folder_.c_str());
    if constexpr (kGuided) {
      taken.fill(0);
      last_place = 0;
    }
    limit_time(kMostSeconds);
    try {
      target_.run(input, folder_);
    } catch (...) {
      limit_time(0);
      throw;
    }
    limit_time(0);
  }

  bool is_new() {
    if constexpr (!kGuided) return false;
    bool any = false;
    for (std::size_t word = 0; word < kSlots; word += sizeof(std::uint64_t)) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, taken.data() + word, sizeof eight);
      if (eight == 0) continue;  // most are
      for (std::size_t i = word; i < word + sizeof eight; ++i) {
        if (taken[i] == 0) continue;
        const std::uint8_t bit = bucket(taken[i]);
        any |= (seen_[i] & bit) != bit;
        seen_[i] = static_cast<std::uint8_t>(seen_[i] | bit);
      }
    }
    return any;
  }

  [[noreturn]] void defect(const std::string& what) {
    std::fprintf(stderr, "%s, seed %llu, run %llu: %s\nits files are in %s\n", target_.name,
                 static_cast<unsigned long long>(seed_), static_cast<unsigned long long>(number_), what.c_str(),
                 folder_.c_str());
    std::fflush(nullptr);
    _exit(1);  // leaves the files
  }

  const Target& target_;
  std::uint64_t seed_, number_ = 0, accepted_ = 0;
  std::vector<Input> kept_;
  std::size_t seeds_;
  std::vector<std::uint8_t> seen_;
  std::string folder_;
};

int usage() {
  std::fprintf(stderr, "forewarp_fuzz TARGET [--runs N] [--seconds S] [--seed N]; targets:");
  for (const Target& target : targets()) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  return 2;
}

int run(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) return usage();
  std::uint64_t runs = 1000, seed = 1, seconds = 0;
  for (int i = 2; i < argc; i += 2) {
    const std::string option = argv[i];
    std::uint64_t* value = option == "--runs"      ? &runs
                           : option == "--seed"    ? &seed
                           : option == "--seconds" ? &seconds
                                                   : nullptr;
    if (value == nullptr) return usage();
    *value = std::strtoull(argv[i + 1], nullptr, 10);
    if (value == &seconds) runs = ~std::uint64_t{0};
  }
  for (const Target& target : targets()) {
    if (std::strcmp(target.name, argv[1]) != 0) continue;
    std::signal(SIGPROF, too_long);
    Fuzzer fuzzer(target, seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    std::uint64_t done = 0;
    while (done < runs && (seconds == 0 || std::chrono::steady_clock::now() < end)) fuzzer.one(++done);
    std::printf("%s: %llu damaged inputs, %llu of them loaded, %zu went new ways; no defect\n", target.name,
                static_cast<unsigned long long>(done), static_cast<unsigned long long>(fuzzer.accepted()),
                fuzzer.found());
    return 0;
  }
  return usage();
}

}  // namespace
}  // namespace forewarp::fuzz

int main(int argc, char** argv) {
  try {
    return forewarp::fuzz::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forewarp_fuzz: %s\n", error.what());
    return 1;
  }
}

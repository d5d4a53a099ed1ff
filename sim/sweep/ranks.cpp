#include "sweep/ranks.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/error.h"

namespace forewarp::sweep {

namespace {

// Questions: a letter, then the place of a point, then a result. Answers: a place, or one of these.
constexpr char kDraw = 'd', kResult = 'r', kError = 'e', kGiveBack = 'g', kLeave = 'l';
constexpr const char* kWait = "wait";
constexpr const char* kEnd = "end";
constexpr const char* kKept = "kept";

constexpr auto kPoll = std::chrono::milliseconds(1);
constexpr auto kPause = std::chrono::milliseconds(50);

/// What the launchers of Open MPI, MPICH and Slurm tell the processes that they start.
bool started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

std::string answer_to(const std::string& question, Store& store) {
  const char kind = question.at(0);
  if (kind == kDraw) {
    if (const auto place = store.draw()) return std::to_string(*place);
    return store.left() == 0 ? kEnd : kWait;
  }
  std::size_t digits = 0;
  const std::size_t place = std::stoull(question.substr(1), &digits);
  const std::string text = question.substr(std::min(question.size(), digits + 2));
  if (kind == kGiveBack) store.give_back(place);
  if (kind == kResult) store.finish(place, {text, ""});
  if (kind == kError) store.finish(place, {"", text});
  return kKept;
}

}  // namespace

std::shared_ptr<Ranks> join_ranks() {
  if (!started_by_mpi()) return nullptr;
  std::error_code ignored;
  const std::filesystem::path module =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "libforewarp_mpi.so";
  const char* remedy =
      "build it with Open MPI and Boost.MPI (libopenmpi-dev, libboost-mpi-dev), or start it without mpirun, several "
      "times for the same --out if you like";
  if (!std::filesystem::exists(module, ignored))
    throw InputError("mpirun started this forewarp, but it was built without MPI", remedy);
  // Its parts look for what MPI's library defines.
  void* handle = ::dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) throw InputError({module.string()}, std::string("cannot be loaded: ") + ::dlerror(), remedy);
  using Make = Ranks* (*)();
  const auto make = reinterpret_cast<Make>(::dlsym(handle, "forewarp_mpi_ranks"));
  FW_CHECK(make != nullptr, module.string());
  return std::shared_ptr<Ranks>(make());
}

void serve(Ranks& ranks, Store& store) {
  int working = ranks.size() - 1;
  while (working > 0) {
    const auto question = ranks.question();
    if (!question) {
      std::this_thread::sleep_for(kPoll);
      continue;
    }
    const auto& [rank, text] = *question;
    if (text.at(0) == kLeave) --working;
    ranks.answer(rank, text.at(0) == kLeave ? kKept : answer_to(text, store));
  }
}

std::string AskingQueue::ask(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return ranks_.ask(text);
}

std::optional<std::size_t> AskingQueue::draw() {
  while (true) {
    const std::string answer = ask({kDraw});
    if (answer == kEnd) return std::nullopt;
    if (answer != kWait) return std::stoull(answer);
    std::this_thread::sleep_for(kPause);
  }
}

void AskingQueue::finish(std::size_t place, const Outcome& outcome) {
  ask((outcome.error.empty() ? kResult : kError) + std::to_string(place) + " " + outcome.result + outcome.error);
}

void AskingQueue::give_back(std::size_t place) { ask(kGiveBack + std::to_string(place)); }

void AskingQueue::leave() { ask({kLeave}); }

}  // namespace forewarp::sweep

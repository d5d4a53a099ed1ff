#include "cli/workers.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "cli/output.h"

namespace forewarp::cli {

namespace {

constexpr std::size_t kManyPieces = 10;  // alike enough for the mean to say how long the rest takes

std::string time_text(double seconds) {
  char text[40];
  if (seconds < 100)
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  else if (seconds < 6000)
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  else
    std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
  return text;
}

/// A line that is longer would leave its first part behind when it is drawn again.
std::size_t columns_of(int stream) {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : kUsual - 1;
}

}  // namespace

Progress::Progress(std::size_t total, std::size_t before) : total_(total), before_(before), done_(before) {
  if (obeys_codes(STDERR_FILENO)) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  if (drawn_) std::fprintf(stderr, "\r\033[K");
}

void Progress::started(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
}

void Progress::finished() {
  const std::lock_guard lock(mutex_);
  ++done_;
}

void Progress::finished(std::size_t all) {
  const std::lock_guard lock(mutex_);
  done_ = all;
}

void Progress::draw() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::string line = std::to_string(done_) + " of " + std::to_string(total_) + " done, " + time_text(seconds);
  if (total_ >= kManyPieces && done_ > before_ && done_ < total_)
    line += ", about " +
            time_text(seconds * static_cast<double>(total_ - done_) / static_cast<double>(done_ - before_)) + " left";
  if (!what_.empty()) line += ": " + what_.substr(0, 60);
  line.resize(std::min(line.size(), columns_of(STDERR_FILENO)));
  std::fprintf(stderr, "\r\033[K%s", error_style().paint(Tone::Dim, printable(line)).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::run(const std::stop_token& stop) {
  auto pause = std::chrono::milliseconds(1000);
  while (true) {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) return;
    if (stop.stop_requested()) return;
    draw();
    pause = std::chrono::milliseconds(200);
  }
}

std::vector<std::exception_ptr> run_side_by_side(std::size_t count, unsigned threads, bool stop_at_first,
                                                 const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto worker = [&] {
    while (!(stop_at_first && failed)) {
      const std::size_t i = next++;
      if (i >= count) return;
      try {
        work(i);
      } catch (...) {  // rethrown by the thread that asked for the work
        failures[i] = std::current_exception();
        failed = true;
      }
    }
  };
  const auto helpers = static_cast<std::size_t>(std::min<std::size_t>(threads, count));
  if (helpers <= 1) {
    worker();
    return failures;
  }
  std::vector<std::jthread> pool;
  for (std::size_t t = 0; t < helpers; ++t) pool.emplace_back(worker);
  pool.clear();  // joins
  return failures;
}

unsigned threads_for_each(unsigned threads, std::size_t pieces) {
  return std::max(1u, threads / static_cast<unsigned>(std::clamp<std::size_t>(pieces, 1, threads)));
}

void rethrow_first(const std::vector<std::exception_ptr>& failures) {
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace forewarp::cli

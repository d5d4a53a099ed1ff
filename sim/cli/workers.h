// Independent pieces of work in parallel, and a progress line.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace forewarp::cli {

/// A progress line on standard error, if that is a terminal, once the work has taken a second.
class Progress {
 public:
  /// `before`: pieces of the total that need no work any more. With many pieces, the line says how long is left.
  explicit Progress(std::size_t total, std::size_t before = 0);
  ~Progress();  ///< erases the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void started(const std::string& what);
  void finished();
  void finished(std::size_t all);  ///< so many in all, by others too

 private:
  void draw();
  void run(const std::stop_token&);

  const std::size_t total_, before_;
  std::size_t done_ = 0;
  std::string what_;
  bool drawn_ = false;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

/// Calls work(0) ... work(count - 1) on up to `threads` threads. Returns what each threw, or null. With
/// `stop_at_first`, no piece after a failed one is started; the pieces before it are always done.
std::vector<std::exception_ptr> run_side_by_side(std::size_t count, unsigned threads, bool stop_at_first,
                                                 const std::function<void(std::size_t)>& work);

/// Threads that each of so many pieces may use for itself when they run side by side.
unsigned threads_for_each(unsigned threads, std::size_t pieces);

/// Throws the first failure of the list, if there is one.
void rethrow_first(const std::vector<std::exception_ptr>&);

}  // namespace forewarp::cli

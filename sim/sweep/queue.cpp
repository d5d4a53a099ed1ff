#include "sweep/queue.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"

namespace forewarp::sweep {

namespace {

constexpr auto kRenewal = std::chrono::seconds(Store::kLeaseSeconds / 4);
constexpr auto kPause = std::chrono::milliseconds(50);

}  // namespace

struct StoreQueue::Renewal {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::jthread thread;
};

StoreQueue::StoreQueue(Store& store) : store_(store), renewal_(std::make_unique<Renewal>()) {
  renewal_->thread = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(renewal_->mutex);
    while (!renewal_->wake.wait_for(lock, stop, kRenewal, [&] { return stop.stop_requested(); })) {
      try {
        store_.renew();
      } catch (const InputError&) {  // leases end later than the next try; who draws or finishes will say what is wrong
      }
    }
  });
}

StoreQueue::~StoreQueue() = default;

std::optional<std::size_t> StoreQueue::draw() {
  while (true) {
    if (const auto place = store_.draw()) return place;
    if (store_.left() == 0) return std::nullopt;
    std::this_thread::sleep_for(kPause);
  }
}

void compute(Queue& queue, Source& source, std::span<const Point> points, unsigned threads,
             const std::function<void()>& finished) {
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take = [&](std::size_t place) {
    Outcome outcome;
    try {
      outcome.result = source.predict(points[place]);
    } catch (const InputError& e) {
      outcome.error = e.what();
    } catch (...) {
      queue.give_back(place);
      throw;
    }
    queue.finish(place, outcome);
    finished();
  };
  const auto work = [&] {
    try {
      while (!stop) {
        const std::optional<std::size_t> place = queue.draw();
        if (!place) return;
        take(*place);
      }
    } catch (...) {  // rethrown below
      stop = true;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace forewarp::sweep

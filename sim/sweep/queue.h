// Who gets which point: threads draw points and hand in results, whatever the store is and wherever it lies.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "sweep/source.h"
#include "sweep/store.h"

namespace forewarp::sweep {

class Queue {
 public:
  virtual ~Queue() = default;
  /// The next point's place; none when every point has its result. Waits while others compute the last ones, since one
  /// of them may be killed.
  virtual std::optional<std::size_t> draw() = 0;
  virtual void finish(std::size_t place, const Outcome&) = 0;
  virtual void give_back(std::size_t place) = 0;
};

/// Of the store itself; keeps its points while it lives.
class StoreQueue : public Queue {
 public:
  explicit StoreQueue(Store& store);
  ~StoreQueue() override;
  std::optional<std::size_t> draw() override;
  void finish(std::size_t place, const Outcome& outcome) override { store_.finish(place, outcome); }
  void give_back(std::size_t place) override { store_.give_back(place); }

 private:
  struct Renewal;
  Store& store_;
  std::unique_ptr<Renewal> renewal_;
};

/// Computes what there is to draw. An InputError is a point's result; anything else ends the sweep, and what was drawn
/// is given back. `finished` is called after each point, from any thread.
void compute(Queue&, Source&, std::span<const Point>, unsigned threads, const std::function<void()>& finished);

}  // namespace forewarp::sweep

#include "sweep/ranks.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <thread>

using namespace forewarp;
using namespace forewarp::sweep;

namespace {

/// What MPI carries, between threads.
struct Wire {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<int, std::string>> questions;
  std::map<int, std::string> answers;
};

class WiredRanks : public Ranks {
 public:
  WiredRanks(Wire& wire, int rank, int size) : wire_(wire), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string of_first(const std::string& text) override { return text; }
  std::optional<std::pair<int, std::string>> question() override {
    const std::lock_guard lock(wire_.mutex);
    if (wire_.questions.empty()) return std::nullopt;
    auto first = wire_.questions.front();
    wire_.questions.pop_front();
    return first;
  }
  void answer(int to, const std::string& text) override {
    const std::lock_guard lock(wire_.mutex);
    wire_.answers[to] = text;
    wire_.changed.notify_all();
  }
  std::string ask(const std::string& text) override {
    std::unique_lock lock(wire_.mutex);
    wire_.questions.emplace_back(rank_, text);
    wire_.changed.wait(lock, [&] { return wire_.answers.count(rank_) != 0; });
    const std::string answer = wire_.answers[rank_];
    wire_.answers.erase(rank_);
    return answer;
  }

 private:
  Wire& wire_;
  int rank_, size_;
};

struct Echo : Source {
  Identity identify(const Point&) override { return {}; }
  std::string predict(const Point& point) override {
    if (point[0].text == "7") throw InputError("seven\ndoes not fit");
    return "[result of " + point[0].text + "]";
  }
};

}  // namespace

TEST_CASE("ranks that ask compute what one that has the store does", "[sweep]") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("forewarp_ranks_" + std::to_string(::getpid()) + ".sqlite")).string();
  std::vector<PlannedPoint> planned;
  std::vector<Point> points;
  for (int i = 0; i < 60; ++i) {
    planned.push_back({{"key" + std::to_string(i), ""}, std::to_string(i)});
    points.push_back({{"n", std::to_string(i)}});
  }
  Echo source;
  {
    Store store(path, planned);
    Wire wire;
    std::vector<std::jthread> others;
    for (int rank = 1; rank < 4; ++rank)
      others.emplace_back([&, rank] {
        WiredRanks ranks(wire, rank, 4);
        AskingQueue queue(ranks);
        compute(queue, source, points, 2, [] {});
        queue.leave();
      });
    WiredRanks first(wire, 0, 4);
    serve(first, store);
    others.clear();
    CHECK(store.left() == 0);
    const std::vector<Outcome> outcomes = store.outcomes();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      CHECK(outcomes[i].result == (i == 7 ? "" : "[result of " + std::to_string(i) + "]"));
      CHECK(outcomes[i].error == (i == 7 ? "seven\ndoes not fit" : ""));
    }
  }
  std::filesystem::remove(path);
}

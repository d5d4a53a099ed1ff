// The results of a sweep in an SQLite file, shared by all threads and processes that compute it. Points are drawn and
// results kept in transactions, so whatever is killed, a result that was kept is never computed again, and a point that
// was drawn by a process that is gone is drawn again.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sweep/source.h"

struct sqlite3;

namespace forewarp::sweep {

struct PlannedPoint {
  Identity identity;
  std::string values;  ///< JSON
};

/// Who draws: this machine and process, as nobody else at any time. A process on this machine that no longer runs has
/// lost its points; one elsewhere loses them when its lease ends.
std::string process_name();
bool is_gone(const std::string& process);

class Store {
 public:
  static constexpr int kLeaseSeconds = 60;

  /// Opens or makes the file for the points of a sweep; what it holds of them already counts. InputError if it is no
  /// database of a sweep, or if another process computes other points in it.
  Store(const std::string& path, std::span<const PlannedPoint> points, std::string process = process_name());
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// A point to be computed, as its place in the list; none while all that are left are being computed by others.
  std::optional<std::size_t> draw();
  void finish(std::size_t place, const Outcome&);
  /// Computed nothing for it: others may draw it.
  void give_back(std::size_t place);
  /// Keeps what this process has drawn for another kLeaseSeconds.
  void renew();

  std::size_t left();  ///< different points that have no result yet
  std::size_t total() const { return keys_.size(); }
  /// By place in the list. Every point must have its result.
  std::vector<Outcome> outcomes();

 private:
  void order(std::span<const PlannedPoint> points);
  void open();
  void plan(std::span<const PlannedPoint> points);
  void free_the_gone();

  std::string path_, process_;
  std::vector<std::string> keys_;                       ///< different ones, in the order in which they are drawn
  std::vector<std::size_t> turn_of_;                    ///< by place: of its key
  std::unordered_map<std::string, std::size_t> first_;  ///< by key: the first place that has it
  std::mutex mutex_;                                    ///< of what follows
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> database_;
};

}  // namespace forewarp::sweep

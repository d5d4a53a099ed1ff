// The processes that mpirun starts, on one machine or many. Rank 0 has the store of a sweep; the others ask it for
// points and send it results, so no other machine needs to see the database.
//
// What speaks MPI is a module of its own (mpi_ranks.cpp), loaded when mpirun started this process: a forewarp that was
// built with MPI runs where there is none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sweep/queue.h"

namespace forewarp::sweep {

class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Rank 0's text, on every rank.
  virtual std::string of_first(const std::string& text) = 0;
  /// Of rank 0: a question of another rank, if one has come.
  virtual std::optional<std::pair<int, std::string>> question() = 0;
  virtual void answer(int rank, const std::string& text) = 0;
  /// Of the others: rank 0's answer. From one thread at a time.
  virtual std::string ask(const std::string& text) = 0;
};

/// The ranks that this process is one of; none when mpirun did not start it. InputError where it did, but this forewarp
/// was built without MPI.
std::shared_ptr<Ranks> join_ranks();

/// Rank 0: answers the others until each has said that it is done.
void serve(Ranks&, Store&);

/// The queue of the other ranks.
class AskingQueue : public Queue {
 public:
  explicit AskingQueue(Ranks& ranks) : ranks_(ranks) {}
  std::optional<std::size_t> draw() override;
  void finish(std::size_t place, const Outcome&) override;
  void give_back(std::size_t place) override;
  void leave();  ///< nothing will be asked any more

 private:
  std::string ask(const std::string& text);
  Ranks& ranks_;
  std::mutex mutex_;
};

}  // namespace forewarp::sweep

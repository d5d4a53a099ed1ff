// The module that speaks MPI: text messages between rank 0 and the others.
#include <boost/mpi.hpp>

#include "sweep/ranks.h"

namespace {

namespace mpi = boost::mpi;

class MpiRanks : public forewarp::sweep::Ranks {
 public:
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  std::string of_first(const std::string& text) override {
    std::string shared = text;
    mpi::broadcast(world_, shared, 0);
    return shared;
  }
  std::optional<std::pair<int, std::string>> question() override {
    const auto status = world_.iprobe(mpi::any_source, kQuestion);
    if (!status) return std::nullopt;
    std::pair<int, std::string> question{status->source(), ""};
    world_.recv(question.first, kQuestion, question.second);
    return question;
  }
  void answer(int to, const std::string& text) override { world_.send(to, kAnswer, text); }
  std::string ask(const std::string& text) override {
    world_.send(0, kQuestion, text);
    std::string answer;
    world_.recv(0, kAnswer, answer);
    return answer;
  }

 private:
  static constexpr int kQuestion = 1, kAnswer = 2;
  mpi::environment environment_{mpi::threading::serialized};
  mpi::communicator world_;
};

}  // namespace

extern "C" forewarp::sweep::Ranks* forewarp_mpi_ranks() { return new MpiRanks; }

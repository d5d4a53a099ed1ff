#include "report/warp_states.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {
MetricPair stall(const std::string& name, double measured, double predicted) {
  return {"smsp__average_warps_issue_stalled_" + name + "_per_issue_active.ratio", measured, predicted};
}
}  // namespace

TEST_CASE("the top warp state is named on both sides, selected left out") {
  const WarpStates s = warp_states({{"smsp__inst_executed.sum", 9, 9},
                                    stall("selected", 7, 7),
                                    stall("wait", 1, 3),
                                    stall("long_scoreboard", 4, 2),
                                    stall("barrier", 3.3, 0)});
  CHECK(s.states.size() == 3);
  CHECK(s.measured_top == "long_scoreboard");
  CHECK(s.predicted_top == "wait");
  CHECK(s.leads);
  CHECK_FALSE(s.agrees());
}

TEST_CASE("only launches whose measured top leads by a fifth count for the agreement") {
  const WarpStates clear = warp_states({stall("wait", 2, 2), stall("barrier", 1, 1)});
  const WarpStates close = warp_states({stall("wait", 2, 1), stall("barrier", 1.9, 2)});
  const WarpStates wrong = warp_states({stall("wait", 2, 1), stall("barrier", 1, 2)});
  CHECK_FALSE(close.leads);
  CHECK(warp_states({}).measured_top.empty());
  const TopStallAgreement a = agreement({clear, close, wrong, warp_states({})});
  CHECK(a.launches == 2);
  CHECK(a.agree == 1);
  CHECK(a.pct() == Approx(50));
}

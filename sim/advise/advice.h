// What `forewarp advise` says: changes of a kernel that were simulated, and what each would gain.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/style.h"
#include "hardware/gpu_model.h"
#include "report/prediction.h"

namespace forewarp::advise {

/// What was predicted of something: of one launch, or of all of a case with the gaps between them.
struct Outcome {
  std::vector<Prediction> launches;
  double cycles = 0, low = 0, high = 0;  ///< with their 95 % interval
  double time_ns = 0;
  bool extrapolated = false;
};

Outcome outcome_of(std::vector<Prediction> launches);
/// Cycles between the end of one launch and the start of the next.
double gap_cycles(const Prediction&);

/// A number of the simulation as it is and with the change. Those of one thing are in cycles of the launch.
struct Evidence {
  std::string counter;  ///< "warps wait for long_scoreboard"
  double before = 0, after = 0;
};

/// Cycles saved, in percent of those before, with the 95 % interval that follows from both.
struct Gain {
  double pct = 0, low_pct = 0, high_pct = 0;
};

/// Intervals are taken to be independent: neighbouring simulations err alike, so that it is rather too wide.
Gain gain_between(const Outcome& before, double after, double after_low, double after_high);

/// How a gain was found.
enum class Basis : std::uint8_t {
  Tried,   ///< the changed kernel or launch was predicted
  AtMost,  ///< the launch was simulated without the fault; what replaces it is not counted
  Counted  ///< from the blocks' stays in the simulation
};
const char* basis_name(Basis);

struct Suggestion {
  std::string change;  ///< "uncoalesced", "block_order", "tile", ...
  std::string what;    ///< to do
  std::string where;   ///< "file.cu:12", a place in the launch file or the sketch; empty: no single place
  std::string why;     ///< the counters of the launch that show it; may be empty
  std::string cost;    ///< what it may cost; may be empty
  Basis basis = Basis::Tried;
  bool mended = false;  ///< a limit that is met once the faults before it are mended: its gain is what comes on top
  double cycles = 0, time_ns = 0;  ///< with the change
  Gain gain;
  Evidence evidence;
};

struct Advice {
  std::string case_id, kernel, gpu;
  int launch = -1;  ///< -1: all of the case
  double cycles = 0, low = 0, high = 0, time_ns = 0;
  std::string verdict;                  ///< the first cause in a sentence; may be empty
  std::vector<Suggestion> suggestions;  ///< best first
  int tried = 0;                        ///< changes that were simulated
  int refused = 0;                      ///< that were thought of and do not work
  std::vector<std::string> notes;       ///< what was not tried, and why
};

/// Below this a change is no suggestion: a simulation of the same launch moves by as much with any change of its
/// timing.
inline constexpr double kNoticeablePct = 1;

/// What changed most in favour of the second: a unit's busy cycles where it was the limit, else idle SMs, else what
/// warps wait for.
Evidence evidence_of(const Outcome& before, const Outcome& after);

/// What of registers, shared memory and resident blocks is another: "2 blocks of 8 warps -> 1 of 8 on an SM".
std::string resources_text(const Occupancy& before, const Occupancy& after);

/// For a first look at a change, before the best are simulated as the launch itself was: a part of the effort.
SimulateOptions quick(SimulateOptions);

/// Calls the work for 0, 1, ... count - 1, in any order and side by side.
using ForEach = std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)>;

/// At most `top` suggestions of each are kept.
std::string write_text(const std::vector<Advice>&, std::size_t top, Style style = Style());
std::string write_json(const GpuModel&, const std::vector<Advice>&, std::size_t top);

}  // namespace forewarp::advise

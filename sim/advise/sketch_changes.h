// Other values for the keys of a sketch, one at a time. The rules know names of keys, not families: what a family does
// not accept, or cannot be lowered, is refused when it is tried.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace forewarp::advise {

/// A value of a key, for the sketch to be laid over with.
struct KeyChange {
  std::string key;    ///< "stages", "tensors.x.layout", "type" of all values
  std::string from;   ///< as the sketch has it; empty: it does not say
  std::string to;     ///< "4", "[128, 256, 32]"
  std::string cost;   ///< beyond registers, shared memory and occupancy; may be empty
  std::string where;  ///< file, line and column of the key, or of the family that lacks it
  config::Node over;  ///< a root to lay over the sketch's: {id: {family: {key: value}}}

  std::string text() const;  ///< "stages: 4 instead of 3"
};

/// Of a file's sketch `id`, with everything that stands behind it. Deterministic, without those that leave it as it is.
std::vector<KeyChange> key_changes(const std::string& id, const config::Node& sketch);

/// A root with the sketch alone, and with changes laid over it.
config::Node with_changes(const std::string& id, const config::Node& sketch,
                          const std::vector<const KeyChange*>& changes);

}  // namespace forewarp::advise

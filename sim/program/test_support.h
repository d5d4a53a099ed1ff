// Shared by the loader's tests: where the test cubins are, and an instruction with every field as one line.
#pragma once

#include <string>

#include "program/program.h"

namespace forewarp::test {

inline std::string data(const std::string& name) { return FOREWARP_SOURCE_DIR "/sim/program/testdata/" + name; }
inline std::string trace(const std::string& name) { return FOREWARP_SOURCE_DIR "/traces/" + name; }

/// guard mnemonic (native) encoding pipe class latency [memory] : results <- sources : control
std::string describe(const Instruction&);

/// A copy of test cubins in a folder of its own, to be damaged.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string copy(const std::string& from, const std::string& name) const;  ///< the path of the copy
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// The message of the InputError that loading throws, or "" if it loads.
std::string load_error(const std::string& cubin, UnknownOpcode = UnknownOpcode::Reject);

}  // namespace forewarp::test

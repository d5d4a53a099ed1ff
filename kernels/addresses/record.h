// What the patch on the device and the library on the host share.
#pragma once

#include <cstdint>

/// One global memory access of one thread.
struct AccessRecord {
  uint64_t address;
  uint64_t pc;
  uint32_t thread;    ///< of the grid: block x threads of a block + thread in its block, both x fastest
  uint32_t sequence;  ///< accesses of this thread before
  uint32_t bytes;
  uint32_t flags;  ///< Sanitizer_DeviceMemoryFlags
};

struct Recording {
  unsigned long long used;  ///< records that were wanted; those beyond `room` are lost
  unsigned long long room;
  AccessRecord* records;
  uint32_t* counts;  ///< by thread of the grid
};

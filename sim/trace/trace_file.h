// Traces on disk. A file holds any number of launches: a header each (launch, architecture, kernel), then its block
// classes one after another, each preceded by the patterns and slopes that it is the first to use. Writer and reader
// hold one class at a time.
//
//   file    = magic (8 bytes), format version (u32), section...
//   section = kind (u32), number (u32, from 0), size (u64), stored size (u64), hash of the payload (u64),
//             hash of the preceding 32 bytes (u64), payload (zstd)
//   kinds   = "LNCH" launch, "PATT" patterns, "SLOP" slopes, "CLAS" class, "ENDT" end: nothing follows
// All little-endian; hashes are XXH3.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trace/trace.h"
#include "trace/wire.h"

namespace forewarp {

inline constexpr std::uint32_t kTraceFormatVersion = 16;

/// Writes beside the target and renames in finish(), so nobody sees half a file; "-" is standard output. A writer that
/// is destroyed before finish() leaves nothing behind. InputError if the file cannot be written.
class TraceWriter {
 public:
  explicit TraceWriter(const std::string& path);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Starts a launch: everything of `trace` but its classes. Its kernel must be set.
  void begin_launch(const KernelTrace& trace);
  /// Writes a class of the current launch, and what it adds to the trace's tables of patterns and slopes.
  void add_class(const KernelTrace& trace, const BlockClass& c);
  void finish();

 private:
  void section(std::uint32_t kind, const wire::Bytes& payload);
  void put(const void* data, std::size_t bytes);
  void abandon();

  std::string path_, beside_;
  std::FILE* file_ = nullptr;
  std::uint32_t number_ = 0;
  bool launched_ = false;
  std::size_t patterns_ = 0, slopes_ = 0;  ///< of the current launch, already written
};

/// InputError if the file is missing, not a trace, of another version, truncated, damaged or contradictory.
class TraceReader {
 public:
  explicit TraceReader(const std::string& path);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  /// Moves to the next launch, skipping unread classes. The trace has no classes yet; its tables grow as they are read.
  /// False at the end of the file.
  bool next_launch(KernelTrace& trace);
  /// The next class of that launch; patterns and slopes it needs are appended to `trace`.
  std::optional<BlockClass> next_class(KernelTrace& trace);

 private:
  struct Section {
    std::uint32_t kind = 0;
    wire::Bytes payload;
  };
  const Section& peek();
  void get(void* data, std::size_t bytes);
  wire::Bytes get_bytes(std::size_t size);
  [[noreturn]] void damaged(const std::string& what) const;

  std::string path_;
  std::FILE* file_ = nullptr;
  std::uint32_t number_ = 0;
  std::optional<Section> ahead_;
  std::uint64_t covered_ = 0;  ///< blocks of the classes of this launch that have been read
};

void write_traces(const std::string& path, const std::vector<KernelTrace>& traces);
std::vector<KernelTrace> read_traces(const std::string& path);

}  // namespace forewarp

#include "trace/trace_file.h"

#include <unistd.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "trace/class_codec.h"
#include "trace/kernel_codec.h"

namespace forewarp {
namespace {

// As in PNG: a byte above 127, the name, and the line ends that a transfer in text mode would change.
constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'F', 'W', 'T', '\r', '\n', 0x1a, '\n'};

constexpr std::uint32_t kind_of(const char (&name)[5]) {
  return static_cast<std::uint32_t>(name[0]) | static_cast<std::uint32_t>(name[1]) << 8 |
         static_cast<std::uint32_t>(name[2]) << 16 | static_cast<std::uint32_t>(name[3]) << 24;
}
constexpr std::uint32_t kLaunch = kind_of("LNCH"), kPatterns = kind_of("PATT"), kSlopes = kind_of("SLOP"),
                        kClass = kind_of("CLAS"), kEnd = kind_of("ENDT");

constexpr std::size_t kHeaderBytes = 40;
constexpr std::uint64_t kMostSectionBytes = std::uint64_t{1} << 30;  ///< no kernel and no class of a block comes near
constexpr int kCompressionLevel = 6;

template <class T>
void store(std::uint8_t* at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}
template <class T>
T load(const std::uint8_t* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) value |= static_cast<T>(at[i]) << (8 * i);
  return value;
}

wire::Bytes compress(const wire::Bytes& bytes) {
  wire::Bytes out(ZSTD_compressBound(bytes.size()));
  const std::size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kCompressionLevel);
  FW_CHECK(!ZSTD_isError(n), ZSTD_getErrorName(n));
  out.resize(n);
  return out;
}

/// Takes memory as bytes come out, not as the header promises. False: they are not so many.
bool decompress(const wire::Bytes& stored, std::size_t size, wire::Bytes& out) {
  constexpr std::size_t kStep = std::size_t{1} << 20;
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  for (std::size_t done = 0;;) {
    out.resize(std::min(size, std::max(done + kStep, done * 2)));
    ZSTD_outBuffer part{out.data(), out.size(), done};
    const std::size_t taken = in.pos;
    const std::size_t more = ZSTD_decompressStream(context.get(), &part, &in);
    if (ZSTD_isError(more)) return false;
    if (more == 0) return part.pos == size && in.pos == in.size;
    if (part.pos == done && in.pos == taken) return false;
    done = part.pos;
  }
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path) : path_(path) {
  if (path == "-") {
    file_ = stdout;
  } else {
    beside_ = path + ".tmp" + std::to_string(::getpid());
    file_ = std::fopen(beside_.c_str(), "wb");
    if (!file_)
      throw InputError({path}, std::string("cannot be written: ") + std::strerror(errno),
                       "name a file in a folder that exists and that you may write to");
  }
  put(kMagic.data(), kMagic.size());
  std::array<std::uint8_t, 4> version;
  store(version.data(), kTraceFormatVersion);
  put(version.data(), version.size());
}

TraceWriter::~TraceWriter() { abandon(); }

void TraceWriter::abandon() {
  if (file_ && file_ != stdout) {
    std::fclose(file_);
    std::error_code ignored;
    std::filesystem::remove(beside_, ignored);
  }
  file_ = nullptr;
}

void TraceWriter::put(const void* data, std::size_t bytes) {
  FW_CHECK(file_, "the trace was finished");
  if (std::fwrite(data, 1, bytes, file_) == bytes) return;
  const std::string reason = std::strerror(errno);
  abandon();
  throw InputError({path_}, "cannot be written: " + reason, "make room on the disk or name another file");
}

void TraceWriter::section(std::uint32_t kind, const wire::Bytes& payload) {
  const wire::Bytes stored = compress(payload);
  std::array<std::uint8_t, kHeaderBytes> header;
  store(header.data(), kind);
  store(header.data() + 4, number_++);
  store(header.data() + 8, std::uint64_t{payload.size()});
  store(header.data() + 16, std::uint64_t{stored.size()});
  store(header.data() + 24, std::uint64_t{XXH3_64bits(stored.data(), stored.size())});
  store(header.data() + 32, std::uint64_t{XXH3_64bits(header.data(), 32)});
  put(header.data(), header.size());
  put(stored.data(), stored.size());
}

void TraceWriter::begin_launch(const KernelTrace& trace) {
  FW_CHECK(trace.kernel, "a trace without a kernel cannot be replayed");
  wire::Encoder out;
  encode_launch(out, trace.launch);
  encode_quotients(out, trace.quotients);
  out(trace.sm);
  encode_kernel(out, *trace.kernel);
  section(kLaunch, out.bytes);
  launched_ = true;
  patterns_ = slopes_ = 0;
}

void TraceWriter::add_class(const KernelTrace& trace, const BlockClass& c) {
  FW_CHECK(launched_, "a class belongs to a launch");
  if (trace.patterns.size() > patterns_) {
    wire::Encoder out;
    encode_patterns(out, trace.patterns, patterns_);
    section(kPatterns, out.bytes);
    patterns_ = trace.patterns.size();
  }
  if (trace.slopes.size() > slopes_) {
    wire::Encoder out;
    encode_slopes(out, trace.slopes, slopes_);
    section(kSlopes, out.bytes);
    slopes_ = trace.slopes.size();
  }
  wire::Encoder out;
  encode_class(out, c, *trace.kernel);
  section(kClass, out.bytes);
}

void TraceWriter::finish() {
  section(kEnd, {});
  const bool flushed = std::fflush(file_) == 0;
  const std::string reason = flushed ? "" : std::strerror(errno);
  if (!flushed) {
    abandon();
    throw InputError({path_}, "cannot be written: " + reason, "make room on the disk or name another file");
  }
  if (file_ == stdout) {
    file_ = nullptr;
    return;
  }
  std::fclose(file_);
  file_ = nullptr;
  std::error_code error;
  std::filesystem::rename(beside_, path_, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(beside_, ignored);
    throw InputError({path_}, "cannot be written: " + error.message());
  }
}

TraceReader::TraceReader(const std::string& path) : path_(path) {
  if (std::filesystem::is_directory(path)) throw InputError({path}, "is a folder, not a file");
  file_ = std::fopen(path.c_str(), "rb");
  if (!file_) throw InputError({path}, std::string("cannot be opened: ") + std::strerror(errno));
  std::array<std::uint8_t, 12> start{};
  const std::size_t n = std::fread(start.data(), 1, start.size(), file_);
  const auto fail = [&](const std::string& what, const std::string& remedy) {
    std::fclose(file_);
    file_ = nullptr;
    throw InputError({path}, what, remedy);
  };
  if (n < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), start.begin()))
    fail("is not a forewarp trace", "write one with: forewarp trace IMAGE --launch FILE --out FILE");
  const auto version = load<std::uint32_t>(start.data() + kMagic.size());
  if (n == start.size() && version != kTraceFormatVersion)
    fail("is a trace of format " + std::to_string(version) + ", this version reads format " +
             std::to_string(kTraceFormatVersion),
         "write it again with: forewarp trace");
  if (n < start.size()) fail("is truncated: it ends within its header", "copy or write it again");
}

TraceReader::~TraceReader() {
  if (file_) std::fclose(file_);
}

void TraceReader::damaged(const std::string& what) const {
  throw InputError({path_}, "is damaged at section " + std::to_string(number_) + ": " + what, "copy or write it again");
}

void TraceReader::get(void* data, std::size_t bytes) {
  if (std::fread(data, 1, bytes, file_) == bytes) return;
  if (std::ferror(file_)) throw InputError({path_}, std::string("cannot be read: ") + std::strerror(errno));
  throw InputError({path_}, "is truncated: it ends within section " + std::to_string(number_),
                   "copy or write it again");
}

/// A file that is shorter than it says gets no memory for the rest.
wire::Bytes TraceReader::get_bytes(std::size_t size) {
  constexpr std::size_t kStep = std::size_t{1} << 20;
  wire::Bytes bytes;
  while (bytes.size() < size) {
    const std::size_t done = bytes.size();
    bytes.resize(std::min(size, std::max(done + kStep, done * 2)));
    get(bytes.data() + done, bytes.size() - done);
  }
  return bytes;
}

const TraceReader::Section& TraceReader::peek() {
  if (ahead_) return *ahead_;
  std::array<std::uint8_t, kHeaderBytes> header;
  get(header.data(), header.size());
  if (load<std::uint64_t>(header.data() + 32) != XXH3_64bits(header.data(), 32)) damaged("its header fails its check");
  if (load<std::uint32_t>(header.data() + 4) != number_) damaged("another section belongs here");
  const auto size = load<std::uint64_t>(header.data() + 8), stored_size = load<std::uint64_t>(header.data() + 16);
  if (size > kMostSectionBytes || stored_size > ZSTD_compressBound(size)) damaged("it claims an impossible size");
  const wire::Bytes stored = get_bytes(static_cast<std::size_t>(stored_size));
  if (load<std::uint64_t>(header.data() + 24) != XXH3_64bits(stored.data(), stored.size()))
    damaged("its contents fail their check");
  Section section{load<std::uint32_t>(header.data()), {}};
  if (!decompress(stored, static_cast<std::size_t>(size), section.payload)) damaged("it does not decompress");
  if (section.kind == kEnd && std::fgetc(file_) != EOF) damaged("something follows the end");
  ++number_;
  ahead_ = std::move(section);
  return *ahead_;
}

bool TraceReader::next_launch(KernelTrace& trace) {
  while (peek().kind != kLaunch) {
    if (peek().kind == kEnd) return false;
    ahead_.reset();
  }
  try {
    wire::Decoder in(peek().payload);
    trace = {};
    trace.launch = decode_launch(in);
    decode_quotients(in, trace.quotients);
    in(trace.sm);
    trace.kernel = std::make_shared<const Kernel>(decode_kernel(in));
    if (!in.finished()) throw wire::Malformed("bytes are left over");
    if (trace.launch.counted.size() > trace.kernel->instructions.size())
      throw wire::Malformed("it counts instructions beyond the kernel");
  } catch (const wire::Malformed& e) {
    --number_;
    damaged(std::string("the launch makes no sense: ") + e.what());
  }
  ahead_.reset();
  covered_ = 0;
  return true;
}

std::optional<BlockClass> TraceReader::next_class(KernelTrace& trace) {
  while (true) {
    const Section& section = peek();
    if (section.kind == kLaunch || section.kind == kEnd) {
      if (covered_ != 0 && covered_ != trace.launch.grid.count())
        damaged("the classes before it do not make up the grid");
      return std::nullopt;
    }
    std::optional<BlockClass> c;
    try {
      wire::Decoder in(section.payload);
      if (section.kind == kPatterns)
        decode_patterns(in, trace.patterns);
      else if (section.kind == kSlopes)
        decode_slopes(in, trace.slopes);
      else if (section.kind == kClass)
        c = decode_class(in, trace);
      else
        throw wire::Malformed("it is of no known kind");
      if (!in.finished()) throw wire::Malformed("bytes are left over");
      if (c && c->population > trace.launch.grid.count() - covered_)
        throw wire::Malformed("the classes have more blocks than the grid");
    } catch (const wire::Malformed& e) {
      --number_;
      damaged(std::string("it makes no sense: ") + e.what());
    }
    ahead_.reset();
    if (c) {
      covered_ += c->population;
      return c;
    }
  }
}

void write_traces(const std::string& path, const std::vector<KernelTrace>& traces) {
  TraceWriter writer(path);
  for (const KernelTrace& trace : traces) {
    writer.begin_launch(trace);
    for (const BlockClass& c : trace.classes) writer.add_class(trace, c);
  }
  writer.finish();
}

std::vector<KernelTrace> read_traces(const std::string& path) {
  TraceReader reader(path);
  std::vector<KernelTrace> traces;
  for (KernelTrace trace; reader.next_launch(trace);) {
    while (auto c = reader.next_class(trace)) trace.classes.push_back(std::move(*c));
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace forewarp

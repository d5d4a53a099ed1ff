#include "trace/trace_file.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "trace/builder.h"
#include "trace/class_codec.h"
#include "trace/events.h"
#include "trace/kernel_codec.h"

using namespace forewarp;

namespace {

/// A file that goes with the test.
class ScratchFile {
 public:
  ScratchFile() {
    static int number = 0;
    path = (std::filesystem::temp_directory_path() /
            ("forewarp_trace_" + std::to_string(::getpid()) + "_" + std::to_string(number++)))
               .string();
  }
  ~ScratchFile() { std::filesystem::remove(path); }
  std::string path;
};

using Random = std::mt19937_64;

template <class T>
T any(Random& r) {
  return static_cast<T>(r() >> (r() % 64));
}
int below(Random& r, int n) { return static_cast<int>(r() % static_cast<unsigned>(n)); }

Instruction random_instruction(Random& r) {
  Instruction i;
  i.opcode = static_cast<Opcode>(below(r, static_cast<int>(Opcode::Count)));
  i.native = static_cast<Opcode>(below(r, static_cast<int>(Opcode::Count)));
  i.modifier_count = static_cast<std::uint8_t>(below(r, Instruction::kMaxModifiers + 1));
  for (int m = 0; m < i.modifier_count; ++m) {
    i.modifier_list[static_cast<std::size_t>(m)] = static_cast<Modifier>(below(r, static_cast<int>(Modifier::Count)));
    i.modifiers.set(static_cast<std::size_t>(i.modifier_list[static_cast<std::size_t>(m)]));
  }
  i.pipe = static_cast<Pipe>(below(r, static_cast<int>(Pipe::Count)));
  i.space = static_cast<MemorySpace>(below(r, 6));
  i.memory = static_cast<MemoryKind>(below(r, 6));
  i.access_bytes = any<std::uint8_t>(r);
  i.encoding = any<std::uint16_t>(r);
  i.operand_count = static_cast<std::uint8_t>(below(r, 9));
  for (int o = 0; o < i.operand_count; ++o) {
    Operand& operand = i.operands[static_cast<std::size_t>(o)];
    operand.kind = static_cast<OperandKind>(below(r, 14));
    operand.index = static_cast<std::uint8_t>(operand.kind == OperandKind::Register ? below(r, 256) : below(r, 6));
    operand.offset = any<std::int32_t>(r);
    operand.immediate = any<std::uint32_t>(r);
    operand.negate = below(r, 2) == 1;
  }
  i.control.stall = static_cast<std::uint8_t>(below(r, 16));
  i.control.write_barrier = static_cast<std::uint8_t>(below(r, kScoreboards));
  i.control.wait_mask = static_cast<std::uint8_t>(below(r, 64));
  return i;
}

std::shared_ptr<Kernel> random_kernel(Random& r, int instructions) {
  auto kernel = std::make_shared<Kernel>();
  kernel->name = "kernel_" + std::to_string(r());
  kernel->demangled = "kernel(float*)";
  kernel->registers = below(r, 256);
  kernel->required_block = {any<std::uint32_t>(r), 1, 0};
  kernel->cluster = {any<std::uint32_t>(r), 2, 1};
  kernel->parameters.resize(3);
  kernel->constants.push_back({2, {1, 2, 0, 255}});
  kernel->functions.push_back({"callee", 0, 1});
  kernel->indirect_branches.push_back({0, {0, 0, 0}});
  for (int i = 0; i < instructions; ++i) {
    kernel->instructions.push_back(random_instruction(r));
    kernel->text.push_back("line " + std::to_string(i));
  }
  return kernel;
}

BlockClass random_class(Random& r, const KernelTrace& trace, std::uint64_t population = 1) {
  const int instructions = static_cast<int>(trace.kernel->instructions.size());
  const EventTable events(*trace.kernel);
  BlockClass c;
  c.representative = {static_cast<std::uint32_t>(below(r, 5)), static_cast<std::uint32_t>(below(r, 4)), 0};
  c.single = below(r, 2) == 1;
  c.population = population;
  for (int i = below(r, 3); i > 0; --i)
    c.conditions.push_back(
        {{any<std::int64_t>(r), -1, 0}, i == 1 ? INT64_MIN : -5, INT64_MAX, 1 + any<std::int64_t>(r) / 2});
  for (auto& condition : c.conditions) condition.modulus = std::max<std::int64_t>(1, condition.modulus);
  for (int p = 1 + below(r, 3); p > 0; --p) {
    WarpPath path;
    for (int n = 1 + below(r, 30); n > 0; --n) {
      const int first = below(r, instructions);
      path.runs.push_back(
          {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(1 + below(r, instructions - first))});
      path.instructions += path.runs.back().count;
    }
    c.paths.push_back(path);
  }
  for (std::uint64_t w = 0; w < trace.launch.block.count() / kWarpLanes; ++w) {
    WarpTrace warp;
    warp.path = static_cast<std::uint32_t>(below(r, static_cast<int>(c.paths.size())));
    for (std::uint64_t n = events.records(c.paths[warp.path].runs); n > 0; --n)
      warp.accesses.push_back({any<std::uint64_t>(r), static_cast<std::uint32_t>(r() % trace.patterns.size()),
                               static_cast<std::uint32_t>(r() % trace.slopes.size())});
    c.warps.push_back(warp);
  }
  c.counts.edit().resize(static_cast<std::size_t>(below(r, instructions + 1)));
  for (InstructionCount& count : c.counts.edit()) {
    count.executed = any<std::uint64_t>(r);
    count.addresses = any<std::uint64_t>(r);
    count.bank_conflicts = any<std::uint64_t>(r);
  }
  return c;
}

KernelTrace random_trace(Random& r) {
  KernelTrace trace;
  trace.kernel = random_kernel(r, 1 + below(r, 60));
  trace.sm = 90;
  trace.launch.case_id = "case_" + std::to_string(r() % 100);
  trace.launch.launch_index = below(r, 4);
  trace.launch.grid = {5, 4, 1};
  trace.launch.block = {32, 8, 1};
  trace.launch.dynamic_shared_bytes = any<std::uint32_t>(r);
  if (below(r, 2) == 1) trace.launch.counted.resize(trace.kernel->instructions.size(), {1, 32, any<std::uint64_t>(r)});
  trace.slopes = {{}, {any<std::int64_t>(r), -any<std::int32_t>(r), INT64_MIN}};
  for (int i = 1 + below(r, 20); i > 0; --i) {
    AccessPattern p;
    p.lanes = any<LaneMask>(r);
    p.space = static_cast<MemorySpace>(below(r, 4));
    p.kind = static_cast<MemoryKind>(below(r, 6));
    p.bytes = static_cast<std::uint8_t>(1 << below(r, 5));
    p.base_offset = static_cast<std::uint8_t>(below(r, kLineBytes));
    p.fetch_bytes = below(r, 2) == 0 ? 0 : 64u << below(r, 3);
    for (auto& offset : p.offsets) offset = any<std::int32_t>(r);
    p.offsets[0] = INT32_MIN;
    p.offsets[1] = INT32_MAX;
    trace.patterns.push_back(p);
  }
  std::uint64_t left = trace.launch.grid.count();
  for (int i = below(r, 4); i > 0; --i)
    left -= trace.classes.emplace_back(random_class(r, trace, i == 1 ? left : 3)).population;
  return trace;
}

std::vector<std::uint8_t> kernel_bytes(const Kernel& kernel) {
  wire::Encoder out;
  encode_kernel(out, kernel);
  return out.bytes;
}

void check_equal(const KernelTrace& a, const KernelTrace& b) {
  CHECK(a.launch == b.launch);
  CHECK(a.sm == b.sm);
  CHECK(a.classes == b.classes);
  // Tables travel with the classes that use them.
  if (!a.classes.empty()) {
    CHECK(a.patterns == b.patterns);
    CHECK(a.slopes == b.slopes);
  }
  CHECK(kernel_bytes(*a.kernel) == kernel_bytes(*b.kernel));
  REQUIRE(a.kernel->instructions.size() == b.kernel->instructions.size());
  for (std::size_t i = 0; i < a.kernel->instructions.size(); ++i) {
    const Instruction &x = a.kernel->instructions[i], &y = b.kernel->instructions[i];
    REQUIRE(x.opcode == y.opcode);
    REQUIRE(x.native == y.native);
    REQUIRE(x.modifiers == y.modifiers);
    REQUIRE(x.modifier_list == y.modifier_list);
    REQUIRE(x.control.stall == y.control.stall);
    REQUIRE(x.operands[0].offset == y.operands[0].offset);
    REQUIRE(x.operands[0].immediate == y.operands[0].immediate);
  }
  CHECK(a.kernel->constants[0].bytes == b.kernel->constants[0].bytes);
  CHECK(a.kernel->indirect_branches[0].targets == b.kernel->indirect_branches[0].targets);
  CHECK(a.kernel->text == b.kernel->text);
}

std::string read_error(const std::string& path) {
  try {
    read_traces(path);
  } catch (const InputError& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("random traces come back as they were") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Random r(seed);
    std::vector<KernelTrace> traces;
    for (int i = below(r, 3); i >= 0; --i) traces.push_back(random_trace(r));
    const ScratchFile file;
    write_traces(file.path, traces);
    const auto back = read_traces(file.path);
    REQUIRE(back.size() == traces.size());
    for (std::size_t i = 0; i < traces.size(); ++i) check_equal(traces[i], back[i]);
  }
}

TEST_CASE("every opcode and modifier has a name that leads back to it") {
  Kernel kernel;
  kernel.instructions.resize(static_cast<std::size_t>(Modifier::Count));
  for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
    kernel.instructions[i].opcode = static_cast<Opcode>(i % static_cast<std::size_t>(Opcode::Count));
    kernel.instructions[i].modifiers.set(i);
  }
  wire::Encoder out;
  encode_kernel(out, kernel);
  wire::Decoder in(out.bytes);
  const Kernel back = decode_kernel(in);
  for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
    REQUIRE(back.instructions[i].opcode == kernel.instructions[i].opcode);
    REQUIRE(back.instructions[i].modifiers == kernel.instructions[i].modifiers);
  }
}

TEST_CASE("any flipped bit is noticed") {
  Random r(7);
  KernelTrace trace = random_trace(r);
  while (trace.classes.empty()) trace = random_trace(r);
  const ScratchFile file;
  write_traces(file.path, {trace});
  const std::string bytes = read_text_file(file.path);
  std::fstream io(file.path, std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, char byte) {
    io.seekp(static_cast<std::streamoff>(at));
    io.put(byte).flush();
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    put(i, static_cast<char>(bytes[i] ^ (1 << (i % 8))));
    INFO("byte " << i << " of " << bytes.size());
    const char* expected = i < 8 ? "is not a forewarp trace" : i < 12 ? "is a trace of format" : "is damaged";
    REQUIRE(read_error(file.path).find(expected) != std::string::npos);
    put(i, bytes[i]);
  }
  CHECK(read_error(file.path).empty());
}

TEST_CASE("any missing or added byte is noticed") {
  Random r(8);
  const KernelTrace trace = random_trace(r);
  const ScratchFile file;
  write_traces(file.path, {trace});
  const std::string bytes = read_text_file(file.path);
  write_file(file.path, bytes + "x");
  CHECK(read_error(file.path).find("something follows the end") != std::string::npos);
  for (std::size_t n = bytes.size(); n-- > 0;) {
    std::filesystem::resize_file(file.path, n);
    REQUIRE(read_error(file.path).find(n < 8 ? "is not a forewarp trace" : "is truncated") != std::string::npos);
  }
}

TEST_CASE("contents that were forged are refused or read, never trusted") {
  Random r(12);
  for (int round = 0; round < 3000; ++round) {
    KernelTrace trace = random_trace(r);
    wire::Encoder out;
    const int what = below(r, 4);
    if (what == 0) encode_class(out, random_class(r, trace), *trace.kernel);
    if (what == 1) encode_kernel(out, *trace.kernel);
    if (what == 2) encode_patterns(out, trace.patterns, 0);
    if (what == 3) encode_launch(out, trace.launch);
    for (int n = 1 + below(r, 4); n > 0; --n) out.bytes[r() % out.bytes.size()] = any<std::uint8_t>(r);
    wire::Decoder in(out.bytes);
    try {
      if (what == 0) decode_class(in, trace);
      if (what == 1) decode_kernel(in);
      if (what == 2) decode_patterns(in, trace.patterns);
      if (what == 3) decode_launch(in);
    } catch (const wire::Malformed&) {
    }
  }
  SUCCEED();
}

TEST_CASE("clusters that no GPU launches are refused") {
  const auto decoded = [](const Dim3& cluster) {
    LaunchInfo launch;
    launch.grid = {8, 6, 1};
    launch.cluster = cluster;
    wire::Encoder out;
    encode_launch(out, launch);
    wire::Decoder in(out.bytes);
    return decode_launch(in).cluster;
  };
  for (const Dim3& cluster : {Dim3{0, 0, 0}, Dim3{1, 1, 1}, Dim3{4, 2, 1}, Dim3{8, 2, 1}})
    CHECK(decoded(cluster) == cluster);
  for (const Dim3& cluster : {Dim3{0, 1, 1}, Dim3{3, 1, 1}, Dim3{16, 1, 1}, Dim3{8, 3, 1}, Dim3{1, 1, 2}})
    CHECK_THROWS_AS(decoded(cluster), wire::Malformed);
}

TEST_CASE("boxes that no GPU copies are refused") {
  const auto decoded = [](std::int32_t bytes, std::int32_t rows) {
    AccessPattern box{.lanes = 3, .space = MemorySpace::Global, .kind = MemoryKind::AsyncCopy};
    box.offsets[0] = bytes;
    box.offsets[1] = rows;
    wire::Encoder out;
    encode_patterns(out, {box}, 0);
    wire::Decoder in(out.bytes);
    std::vector<AccessPattern> patterns;
    decode_patterns(in, patterns);
    return patterns.size();
  };
  CHECK(decoded(128, 256) == 1);
  CHECK_THROWS_AS(decoded(128, 0), wire::Malformed);
  CHECK_THROWS_AS(decoded(-16, 8), wire::Malformed);
  CHECK_THROWS_AS(decoded(128, 1 << 30), wire::Malformed);
}

TEST_CASE("what is no trace is told apart") {
  const ScratchFile file;
  CHECK(read_error(file.path).find("cannot be opened") != std::string::npos);
  CHECK(read_error("/tmp").find("is a folder") != std::string::npos);
  write_file(file.path, "sgemm:\n  kernel: sgemm\n");
  CHECK(read_error(file.path).find("is not a forewarp trace") != std::string::npos);
}

TEST_CASE("sections of other files do not fit") {
  Random r(9);
  KernelTrace trace = random_trace(r);
  trace.classes = {random_class(r, trace, 17), random_class(r, trace, 3)};
  const ScratchFile file, broken;
  write_traces(file.path, {trace});
  const std::string bytes = read_text_file(file.path);
  // Leave a section out: sizes stand at byte 16 of each header.
  std::vector<std::size_t> starts;
  for (std::size_t at = 12; at < bytes.size();) {
    starts.push_back(at);
    std::uint64_t stored = 0;
    for (int i = 7; i >= 0; --i)
      stored = stored << 8 | static_cast<std::uint8_t>(bytes[at + 16 + static_cast<std::size_t>(i)]);
    at += 40 + stored;
  }
  REQUIRE(starts.size() == 6);  // launch, patterns, slopes, two classes, end
  write_file(broken.path, bytes.substr(0, starts[3]) + bytes.substr(starts[4]));
  CHECK(read_error(broken.path).find("another section belongs here") != std::string::npos);
}

TEST_CASE("a writer that does not finish leaves nothing") {
  Random r(10);
  const KernelTrace trace = random_trace(r);
  const ScratchFile file;
  {
    TraceWriter writer(file.path);
    writer.begin_launch(trace);
  }
  CHECK_FALSE(std::filesystem::exists(file.path));
  CHECK_THROWS_AS(TraceWriter("/no/such/folder/file"), InputError);
}

TEST_CASE("launches can be read without their classes") {
  Random r(11);
  std::vector<KernelTrace> traces;
  for (int i = 0; i < 3; ++i) traces.push_back(random_trace(r));
  const ScratchFile file;
  write_traces(file.path, traces);
  TraceReader reader(file.path);
  KernelTrace trace;
  int launches = 0;
  while (reader.next_launch(trace)) CHECK(trace.launch == traces[static_cast<std::size_t>(launches++)].launch);
  CHECK(launches == 3);
}

TEST_CASE("a long product stays small") {
  // The inner loop of a naive 4096 product: a broadcast of A and a row of B, 4096 times by 32 warps, not unrolled.
  auto kernel = std::make_shared<Kernel>();
  kernel->instructions.resize(8);
  for (const std::size_t i : {1u, 2u}) {
    kernel->instructions[i].space = MemorySpace::Global;
    kernel->instructions[i].memory = MemoryKind::Load;
    kernel->instructions[i].access_bytes = 4;
  }
  KernelTrace trace;
  trace.kernel = kernel;
  trace.launch.grid = {128, 128, 1};
  trace.launch.block = {32, 32, 1};
  TracePools pools(trace);
  BlockTraceBuilder builder(*kernel, 32, pools);
  std::array<std::uint64_t, 32> a{}, b{};
  for (int warp = 0; warp < 32; ++warp)
    for (std::uint64_t k = 0; k < 4096; ++k) {
      for (std::uint64_t l = 0; l < 32; ++l) {
        a[l] = 0x10000000 + (static_cast<std::uint64_t>(warp) * 4096 + k) * 4;
        b[l] = 0x20000000 + (k * 4096 + l) * 4;
      }
      for (std::uint32_t pc = 0; pc < 8; ++pc) {
        builder.execute(warp, pc, ~0u, ~0u);
        if (pc == 1) builder.access(warp, pc, ~0u, a.data(), MemorySpace::Global, {0, 4096 * 32 * 4, 0}, true);
        if (pc == 2) builder.access(warp, pc, ~0u, b.data(), MemorySpace::Global, {128, 0, 0}, true);
      }
    }
  trace.classes.push_back(builder.finish());
  trace.classes[0].population = 128 * 128;
  CHECK(trace.patterns.size() == 33);
  CHECK(trace.classes[0].paths.size() == 1);
  const ScratchFile file;
  write_traces(file.path, {trace});
  CHECK(std::filesystem::file_size(file.path) < 10'000);
  CHECK(read_traces(file.path)[0].classes == trace.classes);
}

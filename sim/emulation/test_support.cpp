#include "emulation/test_support.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>

#include "program/decode.h"

namespace forewarp::test {
namespace {

std::string trimmed(const std::string& line) {
  const auto first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
}

struct Source {
  std::vector<std::string> lines;
  std::map<std::string, std::size_t> labels;
};

Source split(const std::string& text) {
  Source source;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    line = trimmed(line.substr(0, line.find("//")));
    if (line.empty()) continue;
    if (line.back() == ':') {
      source.labels[line.substr(0, line.size() - 1)] = source.lines.size();
    } else {
      source.lines.push_back(line);
    }
  }
  return source;
}

std::string resolve_labels(std::string operands, const std::map<std::string, std::size_t>& labels) {
  for (std::size_t at; (at = operands.find('$')) != std::string::npos;) {
    std::size_t end = at + 1;
    while (end < operands.size() && (std::isalnum(static_cast<unsigned char>(operands[end])) || operands[end] == '_'))
      ++end;
    char text[32];
    std::snprintf(text, sizeof text, "0x%zx", labels.at(operands.substr(at + 1, end - at - 1)) * 16);
    operands.replace(at, end - at, text);
  }
  return operands;
}

/// Guard fields of the code word: bits 12..15.
std::uint64_t guard_bits(const std::string& predicate) {
  if (predicate.empty()) return std::uint64_t{kPredicateTrue} << 12;
  const bool negated = predicate[1] == '!';
  const char digit = predicate.back();
  const std::uint64_t index = digit == 'T' ? kPredicateTrue : static_cast<std::uint64_t>(digit - '0');
  return index << 12 | static_cast<std::uint64_t>(negated) << 15;
}

}  // namespace

Kernel assemble(const std::string& text, int sm) {
  const Source source = split(text);
  Kernel kernel;
  kernel.name = kernel.demangled = "test";
  kernel.parameter_base = 0x160;
  kernel.shared_base = sm >= 90 ? 0x400 : 0;
  UnknownForms unknown;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    std::istringstream words(source.lines[i]);
    TextInstruction in;
    words >> in.opcode;
    if (in.opcode[0] == '@') {
      in.predicate = in.opcode;
      words >> in.opcode;
    }
    std::getline(words, in.operands);
    in.operands = resolve_labels(trimmed(in.operands), source.labels);
    DecodeContext context;
    context.sm = sm;
    context.place = source.lines[i];
    context.operand.code.low = guard_bits(in.predicate);
    context.operand.address = static_cast<std::uint32_t>(i * 16);
    context.operand.code_bytes = static_cast<std::uint32_t>(source.lines.size() * 16);
    kernel.instructions.push_back(decode(in, context, unknown));
    kernel.text.push_back(source.lines[i]);
  }
  if (!unknown.forms.empty()) throw std::runtime_error("cannot assemble:" + unknown.list());
  return kernel;
}

Bench::Bench(const std::string& source, int sm) : kernel_(assemble(source, sm)), sm_(sm) {}

std::uint64_t Bench::run() {
  using namespace emulation;
  Case item;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(i);
    buffer.bytes = buffers[i].size() * 8;
    buffer.fill = FillZero{};
    item.buffers.push_back(buffer);
  }
  GlobalMemory global(item);
  ConstantBanks banks;
  banks.banks.push_back({0, std::vector<std::uint8_t>(0x400)});
  const auto put = [&](std::size_t at, std::uint64_t value) {
    std::memcpy(banks.banks[0].bytes.data() + at, &value, 8);
  };
  put(0x0, block.x | std::uint64_t{block.y} << 32);
  put(0x8, block.z | std::uint64_t{grid.x} << 32);
  put(0x18, kSharedWindow);
  put(0x20, kLocalWindow);
  put(0x28, kDefaultStackBytes);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    put(0x160 + 8 * i, global.addresses()[i]);
    GlobalMemory::Region* region = global.find(global.addresses()[i], 1);
    const std::uint64_t size = buffers[i].size() * 8;
    if (size == 0) continue;
    global.before_write(*region, region->begin, size);
    std::memcpy(region->data, buffers[i].data(), size);
  }
  banks.banks.insert(banks.banks.end(), constants.begin(), constants.end());

  const DecodedKernel decoded = decode_kernel(kernel_, banks, UnknownInstruction::Reject);
  LaunchState state;
  state.kernel = &decoded;
  state.constants = &banks;
  state.global = &global;
  state.grid = grid;
  state.block = block;
  state.shared_bytes = shared_bytes;
  state.sm = sm_;
  state.instruction_limit = instruction_limit;
  state.cluster = cluster;
  const Dim3 extent = state.cluster_extent();
  ClusterExecutor executor(state);
  NoObserver observer;
  std::uint64_t executed = 0;
  for (std::uint32_t y = 0; y < grid.y; y += extent.y) {
    for (std::uint32_t x = 0; x < grid.x; x += extent.x) {
      executor.run(Dim3{x, y, 0}, [&](std::size_t) -> NoObserver& { return observer; });
      executed += executor.executed();
    }
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::memcpy(buffers[i].data(), global.buffer(i).data(), buffers[i].size() * 8);
  }
  return executed;
}

Outputs execute(const std::string& body, const Inputs& inputs, int sm) {
  Bench bench(R"(
    S2R R0, SR_TID.X
    MOV R1, 0x8
    IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160]
    IMAD.WIDE.U32 R4, R0, R1, c[0x0][0x168]
    IMAD.WIDE.U32 R6, R0, R1, c[0x0][0x170]
    IMAD.WIDE.U32 R8, R0, R1, c[0x0][0x178]
    LDG.E.64 R10, [R2.64]
    LDG.E.64 R12, [R4.64]
    LDG.E.64 R14, [R6.64]
    LOP3.LUT R16, R0, 0x1, RZ, 0xc0, !PT
    ISETP.EQ.AND P2, PT, R16, RZ, PT
    ISETP.LT.AND P3, PT, R0, 0x10, PT
)" + body + R"(
    STG.E.64 [R8.64], R20
    SEL R22, RZ, 0x1, !P0
    SEL R23, RZ, 0x1, !P1
    STG.E.64 [R8.64+0x100], R22
    EXIT
)",
              sm);
  bench.buffers = {{inputs.a.begin(), inputs.a.end()},
                   {inputs.b.begin(), inputs.b.end()},
                   {inputs.c.begin(), inputs.c.end()},
                   std::vector<std::uint64_t>(64)};
  bench.shared_bytes = 4096;
  bench.run();
  Outputs out;
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    out.d[i] = bench.buffers[3][i];
    out.p |= static_cast<std::uint32_t>(bench.buffers[3][32 + i] & 1u) << i;
    out.q |= static_cast<std::uint32_t>(bench.buffers[3][32 + i] >> 32 & 1u) << i;
  }
  return out;
}

Lanes edge_integers() {
  return {0,          1,          2,          3,          5,          7,          8,          15,
          16,         31,         32,         33,         63,         64,         65,         0x7f,
          0x80,       0xff,       0x100,      0x7fff,     0x8000,     0xffff,     0x10000,    0x12345678,
          0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xaaaaaaaa, 0xdeadbeef, 0xfffffffe, 0xffffffff};
}

Lanes edge_floats() {
  return {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
          0x3f800000, 0xbf800000, 0x3f000000, 0x3f7fffff, 0x3f800001, 0x40000000, 0x40490fdb, 0xc0490fdb,
          0x3eaaaaab, 0x4b000000, 0x4b000001, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0x7f7fffff,
          0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x33800000, 0x42f6e979};
}

Lanes rotated(const Lanes& lanes, int by) {
  Lanes out;
  for (std::size_t i = 0; i < kWarpLanes; ++i) out[i] = lanes[(i + static_cast<std::size_t>(by)) % kWarpLanes];
  return out;
}

}  // namespace forewarp::test

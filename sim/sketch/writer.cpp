#include "sketch/writer.h"

#include <algorithm>

#include "base/error.h"

namespace forewarp::sketch {
namespace {

constexpr int kParameters90 = 0x210, kParameters80 = 0x160;
constexpr int kDescriptor90 = 0x208, kDescriptor80 = 0x118;
constexpr int kSharedBase90 = 0x400;
constexpr int kStackOffset = 0x28;
constexpr int kMostRegisters = 255;

}  // namespace

std::string access_mnemonic(std::string_view base, int bytes) {
  std::string m(base);
  const bool global = m.starts_with("LDG") || m.starts_with("STG");
  if (global) m += ".E";
  switch (bytes) {
    case 1:
      return m + ".U8";
    case 2:
      return m + ".U16";
    case 8:
      return m + ".64";
    case 16:
      return m + ".128";
    default:
      return m;
  }
}

Writer::Writer(const GpuModel& gpu, std::string name) : code(gpu.sm), model(gpu), name_(std::move(name)) {
  // R1 is the stack pointer whether there is a stack or not.
  Line& line =
      code.hopper() ? code.emit("LDC", {kRZ, constant(kStackOffset)}) : code.emit("MOV", {kRZ, constant(kStackOffset)});
  line.instruction.operands[0].index = 1;
  code.place(code.new_label());
}

int Writer::pointer_parameter() {
  parameter_bytes_ = (parameter_bytes_ + 7) / 8 * 8;
  parameters_.push_back({parameter_bytes_, 8});
  parameter_bytes_ += 8;
  return (code.hopper() ? kParameters90 : kParameters80) + static_cast<int>(parameters_.back().offset);
}
int Writer::tensor_map_parameter() {
  // Where nvcc puts them: on 128 bytes of bank 0.
  constexpr std::uint32_t kAlign = 128;
  const std::uint32_t at = (kParameters90 + parameter_bytes_ + kAlign - 1) / kAlign * kAlign;
  parameters_.push_back({at - kParameters90, kTensorMapBytes});
  parameter_bytes_ = at - kParameters90 + kTensorMapBytes;
  return static_cast<int>(at);
}
int Writer::offset_of(int parameter) const { return parameter - (code.hopper() ? kParameters90 : kParameters80); }
int Writer::integer_parameter() {
  parameters_.push_back({parameter_bytes_, 4});
  parameter_bytes_ += 4;
  return (code.hopper() ? kParameters90 : kParameters80) + static_cast<int>(parameters_.back().offset);
}

Value Writer::pointer(int parameter) {
  const Value v = code.vector(2);
  if (code.hopper()) {
    code.emit("LDC.64", {v, constant(parameter)});
  } else {
    code.emit("MOV", {v, constant(parameter)});
    code.emit("MOV", {v.at(1), constant(parameter + 4)});
  }
  return v;
}
Value Writer::integer(int parameter) {
  const Value v = code.vector();
  code.emit(code.hopper() ? "LDC" : "MOV", {v, constant(parameter)});
  return v;
}
Value Writer::uniform_integer(int parameter) {
  const Value v = code.uniform();
  code.emit("ULDC", {v, constant(parameter)});
  return v;
}
Value Writer::descriptor() {
  if (descriptor_.id < 0) {
    descriptor_ = code.uniform(2);
    code.emit("ULDC.64", {descriptor_, constant(code.hopper() ? kDescriptor90 : kDescriptor80)});
  }
  return descriptor_;
}

Value Writer::thread() {
  if (thread_.id < 0) {
    thread_ = code.vector();
    code.emit("S2R", {thread_, special(SpecialRegister::TidX)});
  }
  return thread_;
}

namespace {
Value block_index(Code& code, SpecialRegister which) {
  const Value v = code.hopper() ? code.uniform() : code.vector();
  code.emit(code.hopper() ? "S2UR" : "S2R", {v, special(which)});
  return v;
}
}  // namespace

Value Writer::block_x() {
  if (block_x_.id < 0) block_x_ = block_index(code, SpecialRegister::CtaIdX);
  return block_x_;
}
Value Writer::block_y() {
  if (block_y_.id < 0) block_y_ = block_index(code, SpecialRegister::CtaIdY);
  return block_y_;
}
Value Writer::block_z() {
  if (block_z_.id < 0) block_z_ = block_index(code, SpecialRegister::CtaIdZ);
  return block_z_;
}

Value Writer::shared_base(int offset) {
  if (base_.id < 0) {
    base_ = code.uniform();
    if (code.hopper()) {
      const Value rank = code.uniform(), start = code.uniform();
      code.emit("S2UR", {rank, special(SpecialRegister::CgaCtaId)});
      code.emit("UMOV", {start, imm(kSharedBase90)});
      code.emit("ULEA", {base_, rank, start, imm(0x18)});
    } else {
      code.emit("UMOV", {base_, kURZ});
    }
  }
  if (offset == 0) return base_;
  const Value v = code.uniform();
  code.emit("UIADD3", {v, base_, imm(offset), kURZ});
  return v;
}

Value Writer::number(int n) { return copy(imm(n)); }
Value Writer::copy(Arg from) {
  const Value v = code.vector();
  assign(v, from);
  return v;
}
void Writer::assign(Value to, Arg from) { code.emit("IMAD.MOV.U32", {to, kRZ, kRZ, from}); }

Value Writer::add(Value a, Arg b) {
  const Value v = code.vector();
  if (b.operand.kind == OperandKind::Immediate && code.hopper()) {
    code.emit("VIADD", {v, a, b});
  } else if (b.operand.kind == OperandKind::Immediate) {
    code.emit("IADD3", {v, a, b, kRZ});
  } else if (b.operand.kind == OperandKind::UniformRegister) {
    code.emit("IADD3", {v, a, b, kRZ});
  } else {
    code.emit("IMAD.IADD", {v, a, imm(1), b});
  }
  return v;
}
Value Writer::mad(Arg a, Arg b, Arg c) {
  const Value v = code.vector();
  code.emit("IMAD", {v, a, b, c});
  return v;
}
Value Writer::wide_mad(Arg a, Arg b, Arg c) {
  const Value v = code.vector(2);
  code.emit("IMAD.WIDE", {v, a, b, c});
  return v;
}
Value Writer::uniform_wide_mad(Arg a, Arg b, Arg c) {
  const Value v = code.uniform(2);
  code.emit("UIMAD.WIDE", {v, a, b, c});
  return v;
}
Value Writer::shift_left(Value a, int bits) {
  if (bits == 0) return a;
  const Value v = code.vector();
  code.emit("IMAD.SHL.U32", {v, a, imm(1 << bits), kRZ});
  return v;
}
Value Writer::shift_right(Value a, int bits) {
  if (bits == 0) return a;
  const Value v = code.vector();
  code.emit("SHF.R.U32.HI", {v, kRZ, imm(bits), a});
  return v;
}
Value Writer::and_bits(Value a, std::uint32_t mask) {
  const Value v = code.vector();
  code.emit("LOP3.LUT", {v, a, imm(mask), kRZ, imm(0xc0), !kPT});
  return v;
}
Value Writer::exclusive_or(Value a, Arg b) {
  const Value v = code.vector();
  code.emit("LOP3.LUT", {v, a, b, kRZ, imm(0x3c), !kPT});
  return v;
}
Value Writer::compare(std::string_view how, Arg a, Arg b) { return compare_and(how, a, b, kPT); }
Value Writer::compare_and(std::string_view how, Arg a, Arg b, Arg with) {
  const Value p = code.predicate();
  code.emit("ISETP." + std::string(how) + ".AND", {p, kPT, a, b, with});
  return p;
}
void Writer::advance(Value pair, Arg bytes) {
  const Value carry = code.predicate();
  code.emit("IADD3", {pair, carry, pair, bytes, kRZ});
  const bool backwards =
      bytes.operand.kind == OperandKind::Immediate && static_cast<std::int32_t>(bytes.operand.immediate) < 0;
  code.emit("IADD3.X", {pair.at(1), pair.at(1), backwards ? imm(-1) : kRZ, kRZ, carry, !kPT});
}

Value Writer::fp(std::string_view mnemonic, Arg a) {
  const Value v = code.vector();
  code.emit(mnemonic, {v, a});
  return v;
}
Value Writer::fp(std::string_view mnemonic, Arg a, Arg b) {
  const Value v = code.vector();
  code.emit(mnemonic, {v, a, b});
  return v;
}
Value Writer::fp(std::string_view mnemonic, Arg a, Arg b, Arg c) {
  const Value v = code.vector();
  code.emit(mnemonic, {v, a, b, c});
  return v;
}

Value Writer::load_global(Value address, int offset, int bytes, bool only_read, Value guard, bool negated) {
  const Value v = code.vector(bytes <= 4 ? 1 : bytes / 4);
  load_global(v, address, offset, bytes, only_read, guard, negated);
  return v;
}
void Writer::load_global(Value into, Value address, int offset, int bytes, bool only_read, Value guard, bool negated) {
  const std::string mnemonic = access_mnemonic("LDG", bytes) + (only_read ? ".CONSTANT" : "");
  code.emit(mnemonic, {into, global(address, offset, descriptor())}).when(guard, negated);
}
void Writer::store_global(Value address, int offset, Value data, int bytes, Value guard, bool negated) {
  code.emit(access_mnemonic("STG", bytes), {global(address, offset, descriptor()), data}).when(guard, negated);
}
Value Writer::load_shared(Value address, int offset, int bytes, Value uniform) {
  const Value v = code.vector(bytes <= 4 ? 1 : bytes / 4);
  code.emit(access_mnemonic("LDS", bytes), {v, shared(address, offset, uniform)});
  return v;
}
void Writer::store_shared(Value address, int offset, Value data, int bytes, Value uniform) {
  code.emit(access_mnemonic("STS", bytes), {shared(address, offset, uniform), data});
}
void Writer::barrier() { code.emit("BAR.SYNC.DEFER_BLOCKING", {imm(0)}); }

Kernel Writer::finish(const SourcePosition& where, const std::string& remedy, int threads, std::uint32_t shared_bytes,
                      int taken) {
  code.exit();
  const Label self = code.new_label();
  code.place(self);
  code.branch(self);
  Kernel kernel;
  kernel.name = kernel.demangled = name_;
  kernel.parameters = parameters_;
  kernel.parameter_bytes = parameter_bytes_;
  kernel.parameter_base = code.hopper() ? kParameters90 : kParameters80;
  kernel.shared_base = code.hopper() ? kSharedBase90 : 0;
  kernel.static_shared_bytes = shared_bytes;
  kernel.max_threads = static_cast<std::uint32_t>(threads);
  kernel.barrier_count = 1;
  const Placement takes = assemble(code, model, kernel);
  const auto refuse = [&](int count, const std::string& what) {
    throw InputError(where, "needs " + std::to_string(count) + " " + what, remedy);
  };
  // An SM hands them out by eight to a thread, in whole warps.
  const int left = std::min(kMostRegisters, model.occupancy.registers / threads / 8 * 8);
  const int most = std::max(left, taken);
  if (takes.registers > most)
    refuse(takes.registers, "registers a thread; " +
                                (most == kMostRegisters ? "there are" : std::to_string(threads) + " threads leave") +
                                " " + std::to_string(most));
  if (taken > 0) kernel.registers = left;
  if (takes.predicates > kPredicateTrue)
    refuse(takes.predicates, "predicates at once; there are " + std::to_string(kPredicateTrue));
  if (takes.uniforms > kUniformRegisterZero)
    refuse(takes.uniforms, "uniform registers at once; there are " + std::to_string(kUniformRegisterZero));
  return kernel;
}

}  // namespace forewarp::sketch

#include "sketch/families/groups.h"

#include <algorithm>

namespace forewarp::sketch {
namespace {

constexpr int kMapsAddress = 0x198;  ///< in bank 0: where the parameters are
constexpr std::uint32_t kSharedBytes = 0x3ffff;

Argument argument_of(const TensorMap& map, int buffer) {
  const auto encoded = encode_tensor_map(map);
  Argument argument;
  argument.kind = ArgumentKind::TensorMap;
  argument.bytes.assign(encoded.begin(), encoded.end());
  argument.pointers.push_back({0, {buffer, 0}});
  argument.maps.push_back(0);
  return argument;
}

}  // namespace

Argument map_of(int buffer, Type type, std::int64_t rows, std::int64_t columns, int box_rows, std::int64_t matrices) {
  TensorMap map;
  map.type = type == Type::F16    ? TensorType::F16
             : type == Type::Bf16 ? TensorType::Bf16
             : type == Type::Tf32 ? TensorType::Tf32
                                  : TensorType::U8;
  map.swizzle = TensorSwizzle::B128;
  map.rank = matrices > 0 ? 3 : 2;
  map.shape = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows),
               static_cast<std::uint64_t>(std::max<std::int64_t>(matrices, 1)), 1, 1};
  map.strides[0] = element_bytes(map.type);
  map.strides[1] = map.shape[0] * map.strides[0];
  if (matrices > 0) map.strides[2] = map.shape[1] * map.strides[1];
  map.box = {kRowBytes / element_bytes(map.type), static_cast<std::uint32_t>(box_rows), 1, 1, 1};
  return argument_of(map, buffer);
}

Argument map_of_floats(int buffer, std::int64_t rows, std::int64_t columns, int box) {
  TensorMap map;
  map.type = TensorType::F32;
  map.rank = 2;
  map.shape = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), 1, 1, 1};
  map.strides[0] = element_bytes(map.type);
  map.strides[1] = map.shape[0] * map.strides[0];
  map.box = {static_cast<std::uint32_t>(box), 1, 1, 1, 1};
  return argument_of(map, buffer);
}

Value uniform_number(Writer& w, std::uint32_t bits) {
  const Value v = w.code.uniform();
  w.code.emit("UMOV", {v, imm(bits)});
  return v;
}
Value uniform_add(Writer& w, Value a, int by) {
  const Value v = w.code.uniform();
  w.code.emit("UIADD3", {v, a, imm(by), kURZ});
  return v;
}
Value to_uniform(Writer& w, Value a) {
  const Value v = w.code.uniform();
  w.code.emit("R2UR", {v, a});
  return v;
}

void find_maps(Writer& w, const int* parameters, Value* maps, int count) {
  const Value start = w.code.uniform(2);
  w.code.emit("ULDC.64", {start, constant(kMapsAddress)});
  for (int i = 0; i < count; ++i) {
    maps[i] = w.code.uniform(2);
    w.code.emit("UIADD3.64", {maps[i], start, imm(w.offset_of(parameters[i])), kURZ});
  }
}

void start_barrier(Writer& w, Value address, int arrivals) {
  // What is left to come counts down from 2^20, in two fields.
  constexpr std::uint32_t kAll = 0x100000;
  const std::uint32_t left = kAll - static_cast<std::uint32_t>(arrivals);
  const Value state = w.code.uniform(2);
  w.code.emit("UMOV", {state, imm(left << 1)});
  w.code.emit("UMOV", {state.at(1), imm(left << 11)});
  w.code.emit("SYNCS.EXCH.64", {kURZ, at(address), state});
}

void wait_for_phase(Writer& w, Value barrier, Value parity, bool clustered) {
  Code& c = w.code;
  const Label again = c.new_label();
  c.place(again);
  const Value over = c.predicate();
  c.emit("SYNCS.PHASECHK.TRANS64.TRYWAIT", {over, at(barrier), parity});
  if (clustered) c.emit("CCTL.IVALL").when(over);
  c.branch(again, over, true);
}

void fetch_box(Writer& w, Value map, Value to, int offset, Value barrier, Value x, int x_offset, Value y,
               Value blocks) {
  Code& c = w.code;
  const Value words = c.uniform(4);
  c.emit("UIADD3", {words, to, imm(offset), kURZ});
  c.emit("UMOV", {words.at(1), barrier});
  c.emit("UIADD3", {words.at(2), x, imm(x_offset), kURZ});
  c.emit("UMOV", {words.at(3), y});
  if (blocks.id < 0)
    c.emit("UTMALDG.2D", {at(words), at(map)});
  else
    c.emit("UTMALDG.2D.MULTICAST", {at(words), at(map), blocks});
}

RingTurn first_turn(Writer& w) { return {w.number(0), w.number(0), w.number(0)}; }

void next_turn(Writer& w, const RingTurn& t, int stages, int stage_bytes) {
  Code& c = w.code;
  const Value stage = w.add(t.stage, imm(stage_bytes)), barrier = w.add(t.barrier, imm(kBarrierBytes));
  const Value same = w.compare("NE", stage, imm(stages * stage_bytes));
  c.emit("SEL", {t.stage, stage, kRZ, same});
  c.emit("SEL", {t.barrier, barrier, kRZ, same});
  c.emit("LOP3.LUT", {t.parity, t.parity, imm(0x80000000u), kRZ, imm(0x3c), !kPT}).when(same, true);
}

Value in_ring(Writer& w, Value base, Value offset, int further) {
  const Value v = w.code.uniform(), sum = w.code.uniform();
  w.code.emit("R2UR", {v, offset});
  w.code.emit("UIADD3", {sum, v, base, imm(further)});
  return sum;
}

Value factor_start(Writer& w, Value byte, std::uint32_t panel) {
  const Value chunk = w.shift_right(w.and_bits(byte, kSharedBytes), log2_of(kChunk)), v = w.code.vector();
  w.code.emit("LOP3.LUT", {v, chunk, imm(panel << 16), kRZ, imm(0xfc), !kPT});
  return to_uniform(w, v);
}

}  // namespace forewarp::sketch

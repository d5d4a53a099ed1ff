#include "sketch/families/tensor.h"

#include <algorithm>

namespace forewarp::sketch {
namespace {

constexpr int kWays = 8;  ///< chunks that change places: a row of all banks
constexpr int kTurns = kWays * kChunk / kStepBytes;

/// Byte of (row, chunk) in a tile whose rows are so many chunks: chunks change places by row.
Value place_in_tile(Writer& w, Value row, Value chunk, int chunks) {
  const int ways = std::min(chunks, kWays);
  const Value turned = w.and_bits(w.shift_right(row, 3 - log2_of(ways)), static_cast<std::uint32_t>(ways - 1));
  const Value swapped = w.exclusive_or(chunk, turned);
  return w.mad(row, imm(chunks * kChunk), w.shift_left(swapped, 4));
}

}  // namespace

Value further(Writer& w, Value pair, Value by) {
  const Value sum = w.code.vector(2), carry = w.code.predicate();
  w.code.emit("IADD3", {sum, carry, pair, by, kRZ});
  w.code.emit("IADD3.X", {sum.at(1), pair.at(1), by.at(1), kRZ, carry, !kPT});
  return sum;
}

void advance_by(Writer& w, Value pair, Value by) {
  const Value carry = w.code.predicate();
  w.code.emit("IADD3", {pair, carry, pair, by, kRZ});
  w.code.emit("IADD3.X", {pair.at(1), pair.at(1), by.at(1), kRZ, carry, !kPT});
}

Value element_address(Writer& w, int parameter, Value row, Value pitch, Value column, Type type) {
  const Value place = w.code.vector(2);
  w.assign(place, column);
  w.code.emit("IMAD.MOV.U32", {place.at(1), kRZ, kRZ, kRZ});
  const Value sum = w.wide_mad(row, pitch, place);
  const Value base = w.pointer(parameter), carry = w.code.predicate(), at = w.code.vector(2);
  const int shift = log2_of(bytes_of(type));
  if (shift == 0) {
    w.code.emit("IADD3", {at, carry, sum, base, kRZ});
    w.code.emit("IADD3.X", {at.at(1), sum.at(1), base.at(1), kRZ, carry, !kPT});
    return at;
  }
  w.code.emit("LEA", {at, carry, sum, base, imm(shift)});
  w.code.emit("LEA.HI.X", {at.at(1), sum, base.at(1), sum.at(1), imm(shift), carry});
  return at;
}

// ---- copies

TileCopy::TileCopy(Writer& w, int rows, int row_bytes, int threads, Value thread)
    : w_(&w), rows_(rows), chunks_(row_bytes / kChunk), threads_(threads) {
  row_ = w.shift_right(thread, log2_of(chunks_));
  chunk_ = w.and_bits(thread, static_cast<std::uint32_t>(chunks_ - 1));
}

void TileCopy::find_places(Value base) {
  for (int p = 0; p < passes(); ++p) {
    if (p > 0 && offset(p) != 0) {
      places_.push_back(places_[0]);
      continue;
    }
    Value to = place_in_tile(*w_, p == 0 ? row_ : w_->add(row_, imm(p * rows_a_pass())), chunk_, chunks_);
    if (base.id >= 0) to = w_->add(to, base);
    places_.push_back(to);
  }
}

int TileCopy::offset(int pass) const { return rows_a_pass() % kWays == 0 ? pass * rows_a_pass() * pitch() : 0; }

Value TileCopy::begin(int pass, Value inside, int& distance) {
  Code& c = w_->code;
  distance = pass * step_bytes;
  if (pass == 0 || step_bytes != 0)
    at_pass_ = at;
  else
    at_pass_ = further(*w_, at_pass_, step);
  const Value out = c.predicate();
  if (inside.id < 0)
    c.emit("ISETP.LT.AND", {out, kPT, rows_left, imm(pass * rows_a_pass() + 1), kPT});
  else
    c.emit("ISETP.LT.OR", {out, kPT, rows_left, imm(pass * rows_a_pass() + 1), !inside});
  return out;
}

void TileCopy::copy(int pass, Value to, int offset, Value inside, Value when, int along) {
  int distance = 0;
  const Value out = begin(pass, inside, distance);
  w_->code
      .emit(whole_lines ? "LDGSTS.E.BYPASS.LTC128B.128" : "LDGSTS.E.BYPASS.128",
            {shared(to, offset), global(at_pass_, distance + along, w_->descriptor()), !out})
      .when(when);
}

void TileCopy::fetch(int pass, Value& into, Value inside, int along) {
  int distance = 0;
  const Value out = begin(pass, inside, distance);
  if (into.id < 0) into = w_->code.vector(4);
  w_->code.emit("CS2R", {into, special(SpecialRegister::Zero)});
  w_->code.emit("CS2R", {into.at(2), special(SpecialRegister::Zero)});
  w_->load_global(into, at_pass_, distance + along, kChunk, true, out, true);
}

// ---- words

TileWords::TileWords(Writer& w, Factor factor, int row_bytes, Value first, Value lane, int turns, int panel_bytes)
    : w_(&w),
      turns_with_step_(factor == Factor::A || factor == Factor::BTurned),
      transposes_(factor == Factor::ATurned || factor == Factor::B),
      pitch_(row_bytes),
      next_(panel_bytes > 0 ? panel_bytes : kWays * kChunk) {
  const int chunks = row_bytes / kChunk;
  Value row, chunk;
  switch (factor) {
    case Factor::A:
    case Factor::B:
      // Lanes 0 to 15 give the rows of the left chunk, the others those of the right one.
      row = w.and_bits(lane, 15);
      chunk = w.shift_right(lane, 4);
      break;
    case Factor::ATurned:
    case Factor::BTurned:
      // Lanes 0 to 7 and 8 to 15 give the same rows of two chunks.
      row = w.code.vector();
      w.code.emit("LOP3.LUT", {row, w.shift_right(lane, 1), imm(8), w.and_bits(lane, 7), imm(0xea), !kPT});
      chunk = w.and_bits(w.shift_right(lane, 3), 1);
      break;
  }
  if (turns_with_step_) {
    if (first.id >= 0) row = w.add(first, row);
  } else {
    if (first.id >= 0) chunk = w.add(first, chunk);
  }
  Value from;
  if (panel_bytes > 0) {
    const Value panel = w.shift_right(chunk, log2_of(chunks));
    chunk = w.and_bits(chunk, static_cast<std::uint32_t>(chunks - 1));
    from = w.mad(panel, imm(panel_bytes), place_in_tile(w, row, chunk, chunks));
  } else {
    from = place_in_tile(w, row, chunk, chunks);
  }
  from_.push_back(from);
  for (int t = 1; t < std::min(turns, kTurns); ++t) from_.push_back(w.exclusive_or(from_[0], imm(t * kStepBytes)));
}

void TileWords::load(Value words, int strip, int step, Value base, int offset) const {
  const int turn = turns_with_step_ ? step : strip, along = turns_with_step_ ? strip : step;
  // Only chunks of one row of banks change places: the rest of the way is a distance.
  const int distance = along * kStrip * pitch_ + turn / kTurns * next_;
  w_->code.emit(transposes_ ? "LDSM.16.MT88.4" : "LDSM.16.M88.4",
                {words, shared(from_[static_cast<std::size_t>(turn % kTurns)], offset + distance, base)});
}

// ---- products

void multiply(Writer& w, Type type, Value sum, Value a, Value b, Value other) {
  const char* mnemonic = "HMMA.16816.F32";
  if (type == Type::Bf16) mnemonic = "HMMA.16816.F32.BF16";
  if (type == Type::Tf32) mnemonic = "HMMA.1688.F32.TF32";
  if (type == Type::S8) mnemonic = "IMMA.16832.S8.S8";
  w.code.emit(mnemonic, {sum, a, b, other});
}

Value pack(Writer& w, Type type, Value low, Value high) {
  const Value word = w.code.vector();
  pack(w, type, word, low, high);
  return word;
}
void pack(Writer& w, Type type, Value into, Value low, Value high) {
  w.code.emit(type == Type::Bf16 ? "F2FP.BF16.F32.PACK_AB" : "F2FP.F16.F32.PACK_AB", {into, high, low});
}

Value zero_sums(Writer& w) {
  const Value sum = w.code.vector(4);
  w.code.emit("CS2R", {sum, special(SpecialRegister::Zero)});
  w.code.emit("CS2R", {sum.at(2), special(SpecialRegister::Zero)});
  return sum;
}

void wait_for_copies(Writer& w, int groups) {
  w.code.emit("DEPBAR.LE", {scoreboard(0), imm(groups)});
  w.barrier();
}

}  // namespace forewarp::sketch

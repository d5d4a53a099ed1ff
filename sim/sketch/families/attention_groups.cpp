#include "sketch/families/attention_groups.h"

namespace forewarp::sketch {
namespace {

constexpr std::uint32_t kParity = 0x80000000;

}  // namespace

Value AttentionGroups::stage_of(Value count) {
  const Value v = w_.code.uniform();
  w_.code.emit("ULOP3.LUT", {v, count, imm(kStages - 1), kURZ, imm(0xc0), never()});
  return v;
}

Value AttentionGroups::parity_of(Value count, bool before) {
  const Value high = w_.code.uniform(), bit = w_.code.uniform();
  w_.code.emit("USHF.L.U32", {high, count, imm(31 - log2_of(kStages)), kURZ});
  w_.code.emit("ULOP3.LUT", {bit, high, imm(kParity), kURZ, imm(before ? 0x0c : 0xc0), never()});
  return w_.copy(bit);
}

Value AttentionGroups::times(Value uniform, int by, Value and_add) {
  const Value v = w_.code.uniform();
  w_.code.emit("UIMAD", {v, uniform, imm(by), and_add});
  return v;
}

Arg AttentionGroups::never() {
  Arg a = uniform_true();
  a.operand.invert = true;
  return a;
}

void AttentionGroups::show_barriers(Label meet) {
  w_.code.emit("MEMBAR.ALL.CTA");
  w_.code.emit("FENCE.VIEW.ASYNC.S");
  w_.code.converge(meet);
  w_.barrier();
}

void AttentionGroups::give_registers() { w_.code.emit("USETMAXREG.DEALLOC.CTAPOOL", {imm(kProducerRegisters)}); }

void AttentionGroups::expect(Value barrier, int bytes) {
  w_.code.emit("SYNCS.ARRIVE.TRANS64", {kRZ, at(barrier), w_.number(bytes)});
}

void AttentionGroups::fetch(int map, Value to, int panel_bytes, Value row, Value head, Value barrier) {
  Code& c = w_.code;
  for (int panel = 0; panel < panels(); ++panel) {
    const Value words = c.uniform(5);
    c.emit("UIADD3", {words, to, imm(panel * panel_bytes), kURZ});
    c.emit("UMOV", {words.at(1), barrier});
    c.emit("UMOV", {words.at(2), imm(panel * kPanel)});
    c.emit("UMOV", {words.at(3), row});
    c.emit("UMOV", {words.at(4), head});
    c.emit("UTMALDG.3D", {at(words), at(maps_[map])});
  }
}

void AttentionGroups::take_registers() {
  Code& c = w_.code;
  const Label again = c.new_label();
  c.place(again);
  Arg got = uniform_true();
  got.operand.index = 0;
  c.emit("USETMAXREG.TRY_ALLOC.CTAPOOL", {got, imm(kConsumerRegisters)});
  c.place(c.new_label());  // the assembler follows no uniform predicates
  const Value have = c.predicate();
  c.emit("PLOP3.LUT", {have, kPT, kPT, kPT, got, imm(0x80), imm(0)});
  c.branch(again, have, true);
}

void AttentionGroups::wait_for_products(int left) {
  w_.code.emit("WARPGROUP.DEPBAR.LE", {scoreboard(0), imm(left)});
  part();
}

void AttentionGroups::give_back(Value stage, int empty) {
  w_.code.emit("SYNCS.ARRIVE.TRANS64.A1T0", {kRZ, at(barrier_of(stage, empty)), kRZ}).when(first_thread_);
}

Value AttentionGroups::factors() {
  const Value v = w_.code.uniform(4);
  for (const int word : {1, 3}) w_.code.emit("UMOV", {v.at(word), imm(kFactorHigh)});
  return v;
}

std::string AttentionGroups::mnemonic(int columns) const {
  return "HGMMA.64x" + std::to_string(columns) + "x16.F32" + (plan_.type == Type::Bf16 ? ".BF16" : "");
}

void AttentionGroups::clear(Value sums, int words) {
  for (int word = 0; word < words; word += 2) w_.code.emit("CS2R", {sums.at(word), special(SpecialRegister::Zero)});
}

void AttentionGroups::store_rows(Value sums, Value rows, int panel_bytes) {
  Code& c = w_.code;
  // Lane 8 i + r has row r of the i-th matrix of eight.
  const Value lane = w_.and_bits(thread_, 31), in_strip = w_.and_bits(lane, kStrip - 1);
  const Value warp = w_.and_bits(w_.shift_right(thread_, 5), 3);
  const Value row = w_.mad(warp, imm(kStrip), in_strip);
  const Value chunk = w_.exclusive_or(w_.and_bits(row, 7), w_.shift_right(lane, 4));
  const Value to = w_.mad(row, imm(kRowBytes), rows), chunk_bytes = w_.shift_left(chunk, log2_of(kChunk));
  for (int strip = 0; strip < kPanel / kStrip; ++strip) {
    const Value address = w_.add(to, strip == 0 ? chunk_bytes : w_.exclusive_or(chunk_bytes, imm(2 * strip * kChunk)));
    for (int panel = 0; panel < panels(); ++panel) {
      const Value words = c.vector(4);
      for (int i = 0; i < 4; ++i) {
        const Value pair = sums.at(panel * kPanel / 2 + strip * 8 + 2 * i);
        pack(w_, plan_.type, words.at(i), pair, pair.at(1));
      }
      c.emit("STSM.16.M88.4", {shared(address, panel * panel_bytes), words});
    }
  }
}

void AttentionGroups::publish(Arg barrier, int threads) {
  w_.code.emit("MEMBAR.ALL.CTA");
  w_.code.emit("FENCE.VIEW.ASYNC.S");
  w_.code.emit("BAR.SYNC.DEFER_BLOCKING", {barrier, imm(threads)});
}

void AttentionGroups::store_boxes(int map, Value rows, int panel_bytes, Value row, Value head) {
  Code& c = w_.code;
  for (int panel = 0; panel < panels(); ++panel) {
    const Value words = c.uniform(4);
    c.emit("UIADD3", {words, rows, imm(panel * panel_bytes), kURZ});
    c.emit("UMOV", {words.at(1), imm(panel * kPanel)});
    c.emit("UMOV", {words.at(2), row});
    c.emit("UMOV", {words.at(3), head});
    c.emit("UTMASTG.3D", {at(words), at(maps_[map])});
  }
}

void AttentionGroups::wait_for_boxes() {
  w_.code.emit("UTMACMDFLUSH");
  w_.code.emit("DEPBAR.LE", {scoreboard(0), imm(0)});  // shared memory goes with the block
}

}  // namespace forewarp::sketch

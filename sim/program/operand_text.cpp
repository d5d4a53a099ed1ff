#include "program/operand_text.h"

#include <cctype>
#include <charconv>
#include <utility>

#include "program/traits.h"

namespace forewarp {
namespace {

constexpr std::pair<std::string_view, SpecialRegister> kSpecialRegisters[] = {
    {"SR_LANEID", SpecialRegister::LaneId},
    {"SR_TID.X", SpecialRegister::TidX},
    {"SR_TID.Y", SpecialRegister::TidY},
    {"SR_TID.Z", SpecialRegister::TidZ},
    {"SR_CTAID.X", SpecialRegister::CtaIdX},
    {"SR_CTAID.Y", SpecialRegister::CtaIdY},
    {"SR_CTAID.Z", SpecialRegister::CtaIdZ},
    {"SR_VIRTID", SpecialRegister::VirtId},
    {"SR_VIRTUALSMID", SpecialRegister::SmId},
    {"SR_EQMASK", SpecialRegister::EqMask},
    {"SR_LTMASK", SpecialRegister::LtMask},
    {"SR_LEMASK", SpecialRegister::LeMask},
    {"SR_GTMASK", SpecialRegister::GtMask},
    {"SR_GEMASK", SpecialRegister::GeMask},
    {"SR_CLOCKLO", SpecialRegister::ClockLo},
    {"SR_CLOCKHI", SpecialRegister::ClockHi},
    {"SR_GLOBALTIMERLO", SpecialRegister::GlobalTimerLo},
    {"SR_GLOBALTIMERHI", SpecialRegister::GlobalTimerHi},
    {"SR_SWINHI", SpecialRegister::SwinHi},
    {"SR_SMEMSZ", SpecialRegister::SmemSize},
    {"SR_CgaCtaId", SpecialRegister::CgaCtaId},
    {"SR_TID", SpecialRegister::CombinedTid},
    {"SR_SWINLO", SpecialRegister::SwinLo},
    {"SR_LWINHI", SpecialRegister::LwinHi},
    {"SR_LWINLO", SpecialRegister::LwinLo},
    {"SRZ", SpecialRegister::Zero},
};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$' || c == '@';
}

/// Numbered names: prefix and a number below `limit`, or prefix and `zero_letter` for the last index.
std::optional<int> numbered(std::string_view name, std::string_view prefix, int limit, char zero_letter,
                            int zero_index) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.size() == 1 && name[0] == zero_letter) return zero_index;
  int value = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc{} || end != name.data() + name.size() || value < 0 || value >= limit) return std::nullopt;
  return value;
}

class Parser {
 public:
  Parser(std::string_view text, const OperandContext& context, Instruction& instruction)
      : text_(text), context_(context), instruction_(instruction) {}

  void run() {
    for (skip_separators(); at_ < text_.size(); skip_separators()) parse_operand();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw OperandError(what + " at '" + std::string(text_.substr(at_ < text_.size() ? at_ : text_.size())) + "'");
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool accept(std::string_view literal) {
    if (!text_.substr(at_).starts_with(literal)) return false;
    at_ += literal.size();
    return true;
  }
  void expect(char c) {
    if (peek() != c) fail(std::string("'") + c + "' expected");
    ++at_;
  }
  void skip_separators() {
    while (peek() == ' ' || peek() == ',') ++at_;
  }
  /// The JSON may write R5desc[UR4][R2.64] without a comma: a name ends where a descriptor begins.
  std::string_view take_name() {
    const std::size_t start = at_;
    while (is_name_character(peek())) {
      if (at_ > start && (descriptor_ahead("desc[") || descriptor_ahead("gdesc["))) break;
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }
  bool descriptor_ahead(std::string_view prefix) const { return text_.substr(at_).starts_with(prefix); }

  void append(const Operand& operand) {
    if (instruction_.operand_count >= Instruction::kMaxOperands) fail("more operands than an instruction can have");
    instruction_.operands[instruction_.operand_count++] = operand;
    previous_was_float_ = false;
  }

  void parse_operand() {
    Operand operand;
    bool bars = false;
    if (!number_ahead()) {
      if (accept("-")) operand.negate = true;
      if (accept("~") || accept("!")) operand.invert = true;
      if (accept("|")) operand.absolute = bars = true;
    }
    if (text_.substr(at_).starts_with("32@")) {
      append(filled_in());
      return;
    }
    if (number_ahead()) {
      parse_number();
      return;
    }
    if (peek() == '[') {
      parse_address(operand);
    } else if (peek() == '{') {
      parse_mask(operand);
    } else if (accept("c[")) {
      parse_constant(operand);
    } else if (accept("cx[")) {
      parse_bindless(operand);
    } else if (accept("desc[") || accept("gdesc[")) {
      parse_descriptor(operand);
    } else {
      parse_named(operand);
    }
    if (bars) expect('|');
    if (peek() == '.') parse_suffixes(operand, take_name().substr(1));
    append(operand);
  }

  /// 32@lo((symbol + 0x10)): half an address that a linker fills in.
  Operand filled_in() {
    if (!context_.immediate) fail("a symbol that the cubin does not place");
    while (at_ < text_.size() && peek() != '(' && peek() != ',') ++at_;
    int depth = 0;
    do {
      depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
      ++at_;
    } while (depth > 0 && at_ < text_.size());
    Operand operand;
    operand.kind = OperandKind::Immediate;
    operand.immediate = *context_.immediate;
    return operand;
  }

  bool number_ahead() const {
    const std::size_t sign = peek() == '-' || peek() == '+' ? 1 : 0;
    const std::string_view rest = text_.substr(at_ + sign);
    if (!rest.empty() && (std::isdigit(static_cast<unsigned char>(rest[0])) || rest[0] == '.')) return true;
    return rest.starts_with("INF") || rest.starts_with("QNAN") || rest.starts_with("SNAN");
  }

  std::uint64_t take_hex() {
    if (!accept("0x")) fail("a hexadecimal number expected");
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value, 16);
    if (error != std::errc{}) fail("a hexadecimal number expected");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  /// Integers are printed in hexadecimal and exactly; anything else is a float, whose bits are 32..63 of the code word.
  void parse_number() {
    const std::size_t sign = peek() == '-' || peek() == '+' ? 1 : 0;
    Operand operand;
    if (text_.substr(at_ + sign).starts_with("0x")) {
      at_ += sign;
      const bool negative = sign == 1 && text_[at_ - 1] == '-';
      const std::uint64_t magnitude = take_hex();
      const auto value = static_cast<std::uint32_t>(negative ? ~magnitude + 1 : magnitude);
      if (takes_target(instruction_)) {
        append(make_target(target_offset(value)));
        return;
      }
      operand.kind = OperandKind::Immediate;
      operand.immediate = value;
      append(operand);
      return;
    }
    at_ += sign;
    while (is_name_character(peek()) || ((peek() == '-' || peek() == '+') && text_[at_ - 1] == 'e')) ++at_;
    if (previous_was_float_) return;  // the other half of a packed pair: one 32-bit immediate
    operand.kind = OperandKind::Immediate;
    operand.immediate = static_cast<std::uint32_t>(context_.code.bits(32, 32));
    append(operand);
    previous_was_float_ = true;
  }

  /// Indexed branches print their displacement from the next instruction, all others the place itself.
  std::uint32_t target_offset(std::uint32_t printed) const {
    if (context_.target) return *context_.target;
    const bool relative = instruction_.opcode == Opcode::BRX || instruction_.opcode == Opcode::BRXU;
    if (relative) return context_.address + 16 + printed;
    return instruction_.has(Modifier::ABS) ? printed : printed - context_.base;
  }

  Operand make_target(std::uint32_t offset) const {
    if (offset % 16 != 0 || offset >= context_.code_bytes)
      fail(context_.target ? "the callee is not in this image," : "the branch target lies outside the code,");
    Operand operand;
    operand.kind = OperandKind::Target;
    operand.immediate = offset / 16;
    return operand;
  }

  /// [R2.64+UR4+0x10] in any subset; desc[URn] in front is handled by the caller.
  void parse_address(Operand& operand) {
    expect('[');
    operand.kind = OperandKind::Memory;
    operand.index = kRegisterZero;
    parse_sum(operand);
    expect(']');
    // With .E an address has 64 bits although the text of some forms (ATOMG.CAS) does not say so.
    if (instruction_.has(Modifier::E) && !narrow_index_ && operand.index != kRegisterZero && is_far_operand()) {
      operand.wide = true;
    }
  }

  /// The first address of LDGSTS is in shared memory.
  bool is_far_operand() const { return instruction_.opcode != Opcode::LDGSTS || instruction_.operand_count > 0; }

  void parse_sum(Operand& operand) {
    narrow_index_ = false;
    do {
      if (peek() == '0' || peek() == '-') {
        const bool negative = accept("-");
        const auto magnitude = static_cast<std::int32_t>(take_hex());
        operand.offset += negative ? -magnitude : magnitude;
        continue;
      }
      parse_index(operand, take_name());
    } while (accept("+"));
  }

  void parse_index(Operand& operand, std::string_view name) {
    const std::size_t dot = name.find('.');
    const std::string_view base = name.substr(0, dot);
    if (const auto uniform = numbered(base, "UR", kUniformRegisterZero, 'Z', kUniformRegisterZero)) {
      operand.uniform = static_cast<std::uint8_t>(*uniform);
      return;
    }
    const auto index = numbered(base, "R", kRegisterZero, 'Z', kRegisterZero);
    if (!index) fail("a register expected in an address before");
    operand.index = static_cast<std::uint8_t>(*index);
    if (dot == std::string_view::npos) return;
    const std::string_view suffix = name.substr(dot + 1);
    if (suffix == "64") {
      operand.wide = true;
    } else if (suffix == "U32") {
      narrow_index_ = true;
    } else if (const auto scale = numbered(suffix, "X", 17, ' ', 0)) {
      operand.scale = static_cast<std::uint8_t>(*scale);
    } else {
      fail("unknown suffix ." + std::string(suffix) + " of an index register before");
    }
  }

  void parse_constant(Operand& operand) {
    operand.kind = OperandKind::Constant;
    operand.index = kRegisterZero;
    operand.bank = static_cast<std::uint8_t>(take_hex());
    expect(']');
    while (peek() == ' ') ++at_;  // half precision instructions print c[0x0] [0x160]
    expect('[');
    parse_sum(operand);
    expect(']');
  }

  /// cx[UR4][0x10]: the bank is chosen by a descriptor in a uniform register pair.
  void parse_bindless(Operand& operand) {
    operand.kind = OperandKind::Constant;
    operand.index = kRegisterZero;
    operand.bank = kBindlessBank;
    operand.descriptor = take_uniform();
    expect(']');
    expect('[');
    parse_sum(operand);
    expect(']');
  }

  void parse_descriptor(Operand& operand) {
    const std::uint8_t uniform = take_uniform();
    expect(']');
    if (peek() == '[') {
      operand.descriptor = uniform;
      parse_address(operand);
      return;
    }
    operand.kind = OperandKind::Descriptor;
    operand.index = uniform;
  }

  std::uint8_t take_uniform() {
    const std::string_view name = take_name();
    const auto uniform =
        numbered(name.substr(0, name.find('.')), "UR", kUniformRegisterZero, 'Z', kUniformRegisterZero);
    if (!uniform) fail("a uniform register expected before");
    return static_cast<std::uint8_t>(*uniform);
  }

  /// {5,4,2}: scoreboards of DEPBAR as a bit mask.
  void parse_mask(Operand& operand) {
    expect('{');
    operand.kind = OperandKind::Immediate;
    while (peek() != '}') {
      if (!std::isdigit(static_cast<unsigned char>(peek()))) fail("a scoreboard number expected");
      operand.immediate |= 1u << (peek() - '0');
      ++at_;
      skip_separators();
    }
    expect('}');
  }

  void parse_named(Operand& operand) {
    const std::string_view name = take_name();
    if (name.empty()) fail("not an operand");
    for (const auto& [text, special] : kSpecialRegisters) {
      if (text != name) continue;
      operand.kind = OperandKind::Special;
      operand.special = special;
      return;
    }
    if (name.starts_with("SR_") || name.starts_with("SR")) {
      operand.kind = OperandKind::Special;
      return;
    }
    const std::size_t dot = name.find('.');
    if (parse_register(operand, name.substr(0, dot))) {
      if (dot != std::string_view::npos) parse_suffixes(operand, name.substr(dot + 1));
      return;
    }
    const auto offset = context_.target ? context_.target : context_.symbol ? context_.symbol(name) : std::nullopt;
    if (!offset) fail("unknown name '" + std::string(name) + "' before");
    operand = make_target(*offset);
  }

  bool parse_register(Operand& operand, std::string_view base) {
    struct Kind {
      std::string_view prefix;
      OperandKind kind;
      int limit;
      char zero_letter;
      int zero_index;
    };
    static constexpr Kind kKinds[] = {
        {"R", OperandKind::Register, kRegisterZero, 'Z', kRegisterZero},
        {"UR", OperandKind::UniformRegister, kUniformRegisterZero, 'Z', kUniformRegisterZero},
        {"P", OperandKind::Predicate, kPredicateTrue, 'T', kPredicateTrue},
        {"UP", OperandKind::UniformPredicate, kPredicateTrue, 'T', kPredicateTrue},
        {"B", OperandKind::Barrier, 16, ' ', 0},
        {"SB", OperandKind::Scoreboard, 6, ' ', 0},
        {"gsb", OperandKind::Scoreboard, 4, ' ', 0},
        {"P", OperandKind::PredicateFile, 0, 'R', 0},
        {"UP", OperandKind::PredicateFile, 0, 'R', 1},
    };
    for (const Kind& kind : kKinds) {
      const auto index = numbered(base, kind.prefix, kind.limit, kind.zero_letter, kind.zero_index);
      if (!index) continue;
      operand.kind = kind.kind;
      operand.index = static_cast<std::uint8_t>(*index);
      return true;
    }
    return false;
  }

  void parse_suffixes(Operand& operand, std::string_view suffixes) {
    while (!suffixes.empty()) {
      const std::size_t dot = suffixes.find('.');
      apply_suffix(operand, suffixes.substr(0, dot));
      suffixes = dot == std::string_view::npos ? std::string_view{} : suffixes.substr(dot + 1);
    }
  }

  void apply_suffix(Operand& operand, std::string_view suffix) {
    if (suffix == "reuse") {
      operand.reuse = true;
    } else if (suffix == "H0_H0") {
      operand.half = HalfSelect::H0;
    } else if (suffix == "H1_H1") {
      operand.half = HalfSelect::H1;
    } else if (suffix == "H0_NH1") {
      operand.half = HalfSelect::Turned;
    } else if (suffix == "F32") {
      operand.half = HalfSelect::F32;
    } else if (suffix == "64") {
      operand.wide = true;
    } else if (suffix.size() == 2 && suffix[0] == 'B' && suffix[1] >= '0' && suffix[1] <= '3') {
      operand.byte = static_cast<std::uint8_t>(suffix[1] - '0');
    } else if (suffix == "H1") {
      operand.byte = 2;
    } else if (suffix == "SIGN") {
      operand.sign = true;
    } else if (suffix.starts_with("tnsp") || suffix.starts_with("neg")) {
      add_matrix_modifier(suffix);  // of a descriptor: which of A and B is transposed or negated
    } else if (suffix != "H0" && suffix != "H1_H0" && suffix != "ROW" && suffix != "COL") {
      fail("unknown suffix ." + std::string(suffix) + " before");
    }
  }

  void add_matrix_modifier(std::string_view suffix) {
    const auto modifier = find_modifier(suffix);
    if (!modifier) fail("unknown suffix ." + std::string(suffix) + " before");
    instruction_.modifiers.set(static_cast<std::size_t>(*modifier));
  }

  std::string_view text_;
  const OperandContext& context_;
  Instruction& instruction_;
  std::size_t at_ = 0;
  bool previous_was_float_ = false;
  bool narrow_index_ = false;
};

}  // namespace

void parse_operands(std::string_view text, const OperandContext& context, Instruction& instruction) {
  Parser(text, context, instruction).run();
}

}  // namespace forewarp

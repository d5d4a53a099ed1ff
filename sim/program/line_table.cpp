#include "program/line_table.h"

#include <cstring>

namespace forewarp {
namespace {

// DWARF 4, section 6.2.5.
enum Standard : std::uint8_t {
  kCopy = 1,
  kAdvancePc = 2,
  kAdvanceLine = 3,
  kSetFile = 4,
  kConstAddPc = 8,
  kFixedAdvancePc = 9
};
enum Extended : std::uint8_t { kEndSequence = 1, kSetAddress = 2, kInlinedCall = 0x90 /* NVIDIA's own */ };

/// Reads forward; past the end it gives zeros and says so.
class Reader {
 public:
  Reader(std::span<const std::uint8_t> bytes, std::uint64_t at, std::uint64_t end)
      : bytes_(bytes), at_(at), end_(end) {}

  std::uint64_t at() const { return at_; }
  bool done() const { return at_ >= end_; }
  bool good() const { return good_; }
  void seek(std::uint64_t at) {
    good_ = good_ && at >= at_ && at <= end_;
    at_ = good_ ? at : end_;
  }
  template <class T>
  T fixed() {
    T value{};
    if (end_ - at_ < sizeof value) {
      seek(end_ + 1);
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t unsigned_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !done(); shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  std::int64_t signed_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !done();) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      break;
    }
    return static_cast<std::int64_t>(value);
  }
  std::string text() {
    std::string result;
    while (!done()) {
      const char c = static_cast<char>(fixed<std::uint8_t>());
      if (c == 0) break;
      result += c;
    }
    return result;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::uint64_t at_, end_;
  bool good_ = true;
};

struct Header {
  std::uint8_t instruction_bytes = 1, line_range = 1, opcode_base = 1;
  std::int8_t line_base = 0;
  std::vector<std::uint8_t> operands;  ///< by standard opcode, from 1
  std::vector<std::string> files;      ///< from 1
};

bool read_header(Reader& in, Header& header) {
  const auto version = in.fixed<std::uint16_t>();
  if (version < 2 || version > 4) return false;
  const auto length = in.fixed<std::uint32_t>();
  const std::uint64_t program = in.at() + length;
  header.instruction_bytes = in.fixed<std::uint8_t>();
  if (version >= 4) in.fixed<std::uint8_t>();  // operations an instruction: 1
  in.fixed<std::uint8_t>();                    // whether rows start as statements
  header.line_base = in.fixed<std::int8_t>();
  header.line_range = in.fixed<std::uint8_t>();
  header.opcode_base = in.fixed<std::uint8_t>();
  if (header.line_range == 0 || header.opcode_base == 0) return false;
  header.operands.assign(1, 0);
  for (int i = 1; i < header.opcode_base; ++i) header.operands.push_back(in.fixed<std::uint8_t>());
  while (in.good() && !in.text().empty()) {
  }  // folders
  header.files.assign(1, "");
  for (std::string name = in.text(); in.good() && !name.empty(); name = in.text()) {
    header.files.push_back(name.substr(name.rfind('/') + 1));
    in.unsigned_number();  // folder
    in.unsigned_number();  // time
    in.unsigned_number();  // size
  }
  in.seek(program);
  return in.good();
}

/// One unit's line program.
class Program {
 public:
  Program(Reader& in, const Header& header, const std::map<std::uint64_t, std::size_t>& targets,
          std::vector<LineRow>& rows)
      : in_(in), header_(header), targets_(targets), rows_(rows) {}

  void run() {
    while (!in_.done() && in_.good()) {
      const auto opcode = in_.fixed<std::uint8_t>();
      if (opcode >= header_.opcode_base) {
        const int adjusted = opcode - header_.opcode_base;
        advance(static_cast<std::uint64_t>(adjusted / header_.line_range));
        line_ += static_cast<std::uint64_t>(std::int64_t{header_.line_base} + adjusted % header_.line_range);
        add();
      } else if (opcode == 0) {
        extended();
      } else {
        standard(opcode);
      }
    }
  }

 private:
  void advance(std::uint64_t instructions) { address_ += instructions * header_.instruction_bytes; }

  void add() {
    if (!placed_) return;
    lines_.push_back({file_, line_, caller_});
    Line at = lines_.back();
    std::uint64_t outermost = at.file;
    for (std::size_t of = at.caller; of != 0; of = lines_[of - 1].caller) outermost = lines_[of - 1].file;
    while (at.file != outermost) at = lines_[at.caller - 1];
    const std::string file = at.file < header_.files.size() ? header_.files[at.file] : "?";
    rows_.push_back({section_, address_, file + ":" + std::to_string(at.line)});
  }

  void standard(std::uint8_t opcode) {
    if (opcode == kCopy) return add();
    if (opcode == kAdvancePc) return advance(in_.unsigned_number());
    if (opcode == kSetFile) {
      file_ = in_.unsigned_number();
    } else if (opcode == kAdvanceLine) {
      line_ += static_cast<std::uint64_t>(in_.signed_number());
    } else if (opcode == kConstAddPc) {
      advance(static_cast<std::uint64_t>((255 - header_.opcode_base) / header_.line_range));
    } else if (opcode == kFixedAdvancePc) {
      address_ += in_.fixed<std::uint16_t>();
    } else {
      for (int i = 0; i < header_.operands[opcode]; ++i) in_.unsigned_number();
    }
  }

  /// Those of NVIDIA's own that say the names of functions are passed over.
  void extended() {
    const std::uint64_t length = in_.unsigned_number(), next = in_.at() + length;
    const auto opcode = length > 0 ? in_.fixed<std::uint8_t>() : std::uint8_t{0};
    if (opcode == kSetAddress) {
      const auto target = targets_.find(in_.at());
      placed_ = target != targets_.end();
      section_ = placed_ ? target->second : 0;
      address_ = in_.fixed<std::uint64_t>();
    } else if (opcode == kEndSequence) {
      if (placed_) rows_.push_back({section_, address_, ""});
      address_ = 0;
      file_ = 1;
      line_ = 1;
      placed_ = false;
      caller_ = 0;
      lines_.clear();
    } else if (opcode == kInlinedCall) {
      const std::uint64_t caller = in_.unsigned_number();
      caller_ = caller <= lines_.size() ? caller : 0;
    }
    in_.seek(next);
  }

  struct Line {
    std::uint64_t file = 1;
    std::uint64_t line = 1;
    std::size_t caller = 0;  ///< the row that it was inlined into, from 1; 0: none. Always an earlier one
  };

  Reader& in_;
  const Header& header_;
  const std::map<std::uint64_t, std::size_t>& targets_;
  std::vector<LineRow>& rows_;
  std::size_t section_ = 0;
  std::uint64_t address_ = 0, file_ = 1;
  std::uint64_t line_ = 1;  ///< of damaged tables it wraps
  bool placed_ = false;
  std::vector<Line> lines_;  ///< of the function's rows so far
  std::size_t caller_ = 0;   ///< as for Line
};

}  // namespace

std::vector<LineRow> read_line_table(std::span<const std::uint8_t> table,
                                     const std::map<std::uint64_t, std::size_t>& targets) {
  std::vector<LineRow> rows;
  std::uint64_t at = 0;
  while (at + 4 <= table.size()) {
    std::uint32_t length = 0;
    std::memcpy(&length, table.data() + at, 4);
    at += 4;
    if (length > table.size() - at) break;
    Reader in(table, at, at + length);
    Header header;
    if (read_header(in, header)) Program(in, header, targets, rows).run();
    at += length;
  }
  return rows;
}

}  // namespace forewarp

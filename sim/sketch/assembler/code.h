// Code that is being written: instructions over values without places, in basic blocks. assemble() orders them, gives
// values registers and writes the control fields, as ptxas would.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/gpu_model.h"
#include "program/program.h"

namespace forewarp::sketch {

enum class File : std::uint8_t { Vector, Uniform, Predicate };

/// Registers of one file that lie side by side, from `word` on; no id: the file's constant (RZ, URZ, PT).
struct Value {
  int id = -1;
  std::uint8_t word = 0;
  File file = File::Vector;

  Value at(int further) const { return {id, static_cast<std::uint8_t>(word + further), file}; }
  bool operator==(const Value&) const = default;
};
inline constexpr Value kRZ{-1, 0, File::Vector};
inline constexpr Value kURZ{-1, 0, File::Uniform};
inline constexpr Value kPT{-1, 0, File::Predicate};

struct Label {
  int id = -1;
};

/// An operand with the values that it names.
struct Arg {
  Operand operand;
  Value value, uniform{-1, 0, File::Uniform}, descriptor{-1, 0, File::Uniform};
  Label label;

  Arg(Value v);  // NOLINT: a value is an operand
  Arg(Label to);
};
Arg imm(std::uint32_t bits);
Arg imm(int number);
Arg imm(float number);
Arg operator-(const Value&);
Arg operator!(const Value& predicate);
Arg absolute(const Value&);
Arg constant(int offset);
Arg special(SpecialRegister);
Arg scoreboard(int index);
Arg convergence(int index);
/// [base + offset] in shared memory.
Arg shared(Value base, int offset = 0, Value uniform = kURZ);
/// desc[descriptor][base.64 + offset].
Arg global(Value base, int offset, Value descriptor);
/// gdesc[four uniform registers]: two factors of a product of warpgroups.
Arg factor_description(Value four);
Arg uniform_true();  ///< UPT
/// H0_H0 or H1_H1 of a packed pair.
Arg half(Value, int which);

/// Where an instruction stands relative to its neighbours, beside what its operands say.
struct Line {
  Instruction instruction;
  struct Names {
    Value value, uniform{-1, 0, File::Uniform}, descriptor{-1, 0, File::Uniform};
  };
  std::array<Names, Instruction::kMaxOperands> names{};
  Value guard = kPT;
  Label target;

  Line& when(Value predicate, bool negated = false);
};

/// A value's extent, and what placing it must respect.
struct ValueSpec {
  File file = File::Vector;
  std::uint8_t words = 1;
  std::int8_t bank = -1;  ///< wanted parity of a single register; -1: any
};

class Code {
 public:
  explicit Code(int sm) : sm_(sm) { place(new_label()); }
  int sm() const { return sm_; }
  bool hopper() const { return sm_ >= 90; }

  Value vector(int words = 1, int bank = -1) {
    return add({File::Vector, static_cast<std::uint8_t>(words), static_cast<std::int8_t>(bank)});
  }
  Value uniform(int words = 1) { return add({File::Uniform, static_cast<std::uint8_t>(words), -1}); }
  Value predicate() { return add({File::Predicate, 1, -1}); }

  /// Appends an instruction: mnemonic as nvdisasm prints it, operands in its order.
  Line& emit(std::string_view mnemonic, std::initializer_list<Arg> operands = {});

  Label new_label() { return {labels_++}; }
  void place(Label);
  void branch(Label to, Value guard = kPT, bool negated = false);
  void exit(Value guard = kPT, bool negated = false);
  /// Lanes that part between here and `meet` wait for each other there: place it with converge().
  void diverge(Label meet, int barrier = 0);
  void converge(Label meet, int barrier = 0);

  struct Block {
    Label label;
    std::vector<Line> lines;
  };
  std::vector<Block>& blocks() { return blocks_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<ValueSpec>& values() const { return values_; }

 private:
  Value add(ValueSpec);

  int sm_;
  int labels_ = 0;
  std::vector<Block> blocks_;
  std::vector<ValueSpec> values_;
};

/// Minimal distance in cycles from a fixed-latency result to who reads it.
int result_distance(const Instruction& writer, File file, const Instruction& reader, bool as_guard);
/// What the schedule leaves between an instruction and who reads its result, at best.
int planned_distance(const Instruction& writer, File file, const Instruction& reader, bool as_guard, const GpuModel&);
/// Cycles between two instructions of one pipe, as ptxas spaces them.
int pipe_distance(const Instruction&, const GpuModel&);

/// What keeps predicates and uniform registers few.
struct ScheduleLimits {
  int furthest = 0;             ///< most cycles planned between a predicate and its reader
  int most = 1 << 20;           ///< live at once of those that a block makes, where something else can be done
  int most_uniforms = 1 << 20;  ///< of uniform values, likewise
};
/// Orders the instructions of every block.
void schedule(Code&, const GpuModel&, const ScheduleLimits&);

struct Placement {
  std::vector<int> first;  ///< by value: its first register
  int registers = 0;       ///< vector registers in use
  int predicates = 0, uniforms = 0;
};
/// Gives every value a place, also beyond the registers that there are, for blocks of so many threads.
Placement place_values(const Code&, const GpuModel&, int threads);

/// Instructions with registers and targets, and their control fields: reuse, stall counts, scoreboards.
std::vector<Instruction> finish(const Code&, const Placement&, const GpuModel&);

/// As nvdisasm prints it.
std::string text_of(const Instruction&);

/// All of these. `kernel` gets instructions, text, functions and registers; the result says what it takes of each file,
/// and the kernel stays without instructions where there is not so much.
Placement assemble(Code&, const GpuModel&, Kernel& kernel);

}  // namespace forewarp::sketch

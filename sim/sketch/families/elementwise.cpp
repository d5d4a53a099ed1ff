// Element-wise kernels: statements over tensors of one shape, a thread an element (or a vector of them).
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "sketch/expression.h"
#include "sketch/families/common.h"

namespace forewarp::sketch {
namespace {

constexpr std::initializer_list<Type> kElementTypes = {Type::F32, Type::F16, Type::Bf16, Type::U8};

struct Tensor {
  std::string name;
  Type type = Type::F32;
  std::int64_t row_stride = 0, column_stride = 1;  ///< in elements; of one row: the whole tensor
  std::int64_t offset = 0;
  int buffer = -1;
  bool plain = true;  ///< elements in order
  SourcePosition where;
};

struct Plan {
  std::string id;
  std::int64_t rows = 1, columns = 0;
  int vector = 1;
  int block = 0;
  std::vector<Tensor> tensors;
  std::map<std::string, int> by_name;

  Tensor* find(const std::string& name) {
    const auto i = by_name.find(name);
    return i == by_name.end() ? nullptr : &tensors[static_cast<std::size_t>(i->second)];
  }
  std::int64_t elements() const { return rows * columns; }
};

void collect_names(const Expression& e, std::vector<const Expression*>& names) {
  if (e.kind == Expression::Kind::Name) names.push_back(&e);
  for (const Expression& a : e.arguments) collect_names(a, names);
}

bool is_comparison(const std::string& f) {
  return f == "<" || f == "<=" || f == ">" || f == ">=" || f == "==" || f == "!=";
}

std::string compare_modifier(const std::string& f) {
  return f == "<" ? "LT" : f == "<=" ? "LE" : f == ">" ? "GT" : f == ">=" ? "GE" : f == "==" ? "EQ" : "NEU";
}

/// One kernel: the statements that it fuses.
class KernelOf {
 public:
  KernelOf(Plan& plan, const std::vector<Statement>& statements, const std::set<std::string>& kept,
           const GpuModel& model, const std::string& name)
      : plan_(plan), statements_(statements), kept_(kept), w_(model, name) {}

  Kernel write(const SourcePosition& where) {
    find_tensors();
    Code& c = w_.code;
    for (Tensor* t : used_) pointers_[t->name] = w_.pointer_parameter();
    const int count = w_.integer_parameter();
    for (Tensor* t : used_)
      if (!t->plain) pitches_[t->name] = w_.integer_parameter();
    const Value thread = w_.thread(), block = w_.block_x();
    const bool grid_rows = plan_.rows > 1;
    if (grid_rows) row_ = w_.block_y();
    const Value size = c.vector();
    if (c.hopper())
      c.emit("LDC", {size, constant(0)});
    else
      c.emit("MOV", {size, constant(0)});
    index_ = w_.mad(size, block, thread);
    const Value outside = w_.compare("GE", index_, w_.uniform_integer(count));
    c.exit(outside);
    w_.descriptor();
    half_ = packed_halves();
    for (Tensor* t : inputs_) load(*t);
    for (const Statement& s : statements_) compute(s);
    for (Tensor* t : outputs_) store(*t);
    return w_.finish(where, "split the kernel", plan_.block, 0);
  }

  std::vector<Argument> arguments() const {
    std::vector<Argument> a;
    for (const Tensor* t : used_) a.push_back(pointer_to(t->buffer));
    a.push_back(number_argument((plan_.rows > 1 ? plan_.columns : plan_.elements()) / plan_.vector));
    for (const Tensor* t : used_)
      if (!t->plain) a.push_back(number_argument(t->column_stride == 1 ? t->row_stride : t->column_stride));
    return a;
  }
  bool computes_in_halves() const { return half_; }

 private:
  void find_tensors() {
    std::set<std::string> made, seen;
    for (const Statement& s : statements_) {
      std::vector<const Expression*> names;
      collect_names(s.value, names);
      for (const Expression* n : names) {
        Tensor* t = plan_.find(n->name);
        if (t == nullptr && made.count(n->name) == 0)
          throw InputError(n->where,
                           "there is no tensor " + config::quoted(n->name) + ", and no statement before this makes it",
                           "declare it under tensors");
        if (made.count(n->name) == 0 && seen.insert(n->name).second) inputs_.push_back(t);
      }
      made.insert(s.target);
      if (kept_.count(s.target) != 0) {
        Tensor* t = plan_.find(s.target);
        if (std::find(outputs_.begin(), outputs_.end(), t) == outputs_.end()) outputs_.push_back(t);
      }
    }
    used_ = inputs_;
    for (Tensor* t : outputs_)
      if (std::find(used_.begin(), used_.end(), t) == used_.end()) used_.push_back(t);
  }

  /// Halves stay halves where every tensor has them and every operation has a form for them.
  bool packed_halves() const {
    const auto in_halves = [](const Expression& e, const auto& self) -> bool {
      static const std::set<std::string> kForms{"+", "-", "*", "max", "min", "relu", "neg"};
      if (e.kind == Expression::Kind::Call && kForms.count(e.name) == 0) return false;
      return std::all_of(e.arguments.begin(), e.arguments.end(), [&](const Expression& a) { return self(a, self); });
    };
    return std::all_of(used_.begin(), used_.end(), [](const Tensor* t) { return t->type == Type::F16; }) &&
           std::all_of(statements_.begin(), statements_.end(),
                       [&](const Statement& s) { return in_halves(s.value, in_halves); });
  }

  int access_bytes(const Tensor& t) const { return bytes_of(t.type) * plan_.vector; }

  Value address(const Tensor& t) {
    const int size = access_bytes(t);
    const Value base = w_.pointer(pointers_.at(t.name));
    if (t.plain) return w_.wide_mad(index_, imm(size), base);
    Value place = index_;
    const Value pitch = w_.uniform_integer(pitches_.at(t.name));
    const auto column = [&] { return w_.shift_left(index_, log2_of(plan_.vector)); };
    if (t.column_stride == 1 && t.row_stride > 0) {
      place = w_.mad(row_, pitch, column());
    } else if (t.row_stride == 0 && t.column_stride == 1) {
      place = column();
    } else if (t.column_stride == 0) {
      place = w_.copy(row_);
    } else {
      place = w_.mad(index_, pitch, row_);
    }
    return w_.wide_mad(place, imm(bytes_of(t.type)), base);
  }

  void load(Tensor& t) {
    const bool rereads = std::find(outputs_.begin(), outputs_.end(), &t) != outputs_.end();
    const Value at = address(t);
    const int bytes = access_bytes(t), most = std::min(bytes, 16);
    for (int part = 0; part < bytes; part += most) {
      const Value v = w_.load_global(at, part + static_cast<int>(t.offset) * bytes_of(t.type), most, !rereads);
      loaded_[t.name].push_back(v);
    }
  }

  /// The e-th element of a thread.
  Value element(const Tensor& t, int e) {
    const std::string key = "[" + t.name + "]" + std::to_string(e);
    const auto known = memo_.find(key);
    if (known != memo_.end()) return known->second;
    const int size = bytes_of(t.type), at = e * size;
    const std::vector<Value>& parts = loaded_.at(t.name);
    const Value word = parts[static_cast<std::size_t>(at / 16)].at(at % 16 / 4);
    Value v = word;
    if (half_) {
      v = word;
    } else if (t.type == Type::F16) {
      v = w_.code.vector();
      w_.code.emit("HADD2.F32", {v, -kRZ, half(word, at % 4 / 2)});
    } else if (t.type == Type::Bf16) {
      v = at % 4 == 0 ? w_.shift_left(word, 16) : w_.and_bits(word, 0xffff0000);
    } else if (t.type == Type::U8 && plan_.vector > 1) {
      v = w_.and_bits(w_.shift_right(word, at % 4 * 8), 0xff);
    }
    memo_[key] = v;
    return v;
  }

  void compute(const Statement& s) {
    const bool mask = s.value.kind == Expression::Kind::Call && is_comparison(s.value.name);
    std::vector<Value> results;  // of the same name: its old values may be read
    const int step = half_ ? 2 : 1;
    for (int e = 0; e < plan_.vector; e += step) {
      element_ = e;
      if (mask) {
        const Value v = w_.code.vector();
        w_.code.emit("SEL", {v, kRZ, imm(1), !predicate(s.value)});
        results.push_back(v);
      } else {
        results.push_back(value(s.value));
      }
    }
    made_[s.target] = std::move(results);
    if (mask)
      masks_.insert(s.target);
    else
      masks_.erase(s.target);
    // What was worked out before holds for the new value no longer.
    const auto old = [&](const auto& m) {
      return m.first.find(s.target) != std::string::npos && m.first.front() != '[';
    };
    std::erase_if(memo_, old);
    std::erase_if(angles_, old);
  }

  Arg operand(const Expression& e) {
    if (e.kind != Expression::Kind::Number) return value(e);
    return half_ ? packed_number(e.number) : imm(static_cast<float>(e.number));
  }
  static Arg packed_number(double n) {
    std::uint32_t bits = 0;
    const _Float16 h = static_cast<_Float16>(n);
    static_assert(sizeof h == 2);
    std::uint16_t raw = 0;
    __builtin_memcpy(&raw, &h, 2);
    bits = raw | static_cast<std::uint32_t>(raw) << 16;
    return imm(bits);
  }

  Value value(const Expression& e) {
    if (e.kind == Expression::Kind::Name) {
      const auto made = made_.find(e.name);
      if (made != made_.end()) return made->second[static_cast<std::size_t>(element_ / (half_ ? 2 : 1))];
      return element(*plan_.find(e.name), element_);
    }
    if (e.kind == Expression::Kind::Number) return w_.copy(operand(e));
    const std::string key = std::to_string(element_) + ":" + e.text();
    const auto known = memo_.find(key);
    if (known != memo_.end()) return known->second;
    const Value v = call(e);
    memo_[key] = v;
    return v;
  }

  Value call(const Expression& e) {
    const std::string& f = e.name;
    const auto& a = e.arguments;
    if (half_) return half_call(e);
    if (f == "+" || f == "-") return sum(e);
    if (f == "*")
      return a[0].kind == Expression::Kind::Number ? w_.fp("FMUL", value(a[1]), operand(a[0]))
                                                   : w_.fp("FMUL", value(a[0]), operand(a[1]));
    if (f == "/") {
      if (a[0].kind == Expression::Kind::Number && a[0].number == 1) return reciprocal(w_, value(a[1]));
      if (a[1].kind == Expression::Kind::Number && is_power(a[1].number))
        return w_.fp("FMUL", value(a[0]), imm(static_cast<float>(1 / a[1].number)));
      return quotient(w_, value(a[0]), value(a[1]));
    }
    if (f == "neg") return w_.fp("FADD", -value(a[0]), -kRZ);
    if (f == "max" || f == "min" || f == "relu") {
      const Value v = w_.code.vector();
      const Value left = value(a[0]);
      const Arg right = f == "relu"                                                 ? Arg(kRZ)
                        : a[1].kind == Expression::Kind::Number && a[1].number == 0 ? Arg(kRZ)
                                                                                    : operand(a[1]);
      w_.code.emit("FMNMX", {v, left, right, f == "min" ? Arg(kPT) : !kPT});
      return v;
    }
    if (f == "abs") return w_.fp("FADD", absolute(value(a[0])), -kRZ);
    if (f == "exp")
      return a[0].kind == Expression::Kind::Call && a[0].name == "neg" ? exponential(w_, -value(a[0].arguments[0]))
                                                                       : exponential(w_, value(a[0]));
    if (f == "sigmoid") return reciprocal(w_, w_.fp("FADD", exponential(w_, -value(a[0])), imm(1.0f)));
    if (f == "log") return logarithm(w_, value(a[0]));
    if (f == "sqrt") return square_root(w_, value(a[0]));
    if (f == "rsqrt") return reciprocal_root(w_, value(a[0]));
    if (f == "sin" || f == "cos") {
      const std::string key = std::to_string(element_) + ":" + a[0].text();
      auto known = angles_.find(key);
      if (known == angles_.end())
        known = angles_
                    .emplace(key, reduce_angle(w_, value(a[0]),
                                               asks_for("sin", a[0].text()) && asks_for("cos", a[0].text())))
                    .first;
      return sine(w_, known->second, f == "cos");
    }
    if (f == "where") {
      const Value p = predicate(a[0]);
      return w_.fp("FSEL", value(a[1]), operand(a[2]), p);
    }
    if (is_comparison(f)) return w_.fp("FSEL", w_.copy(imm(1.0f)), kRZ, predicate(e));
    throw InputError(e.where, "'" + f + "' cannot be lowered");
  }

  bool asks_for(const std::string& function, const std::string& argument) const {
    const auto found = [&](const Expression& e, const auto& self) -> bool {
      if (e.kind == Expression::Kind::Call && e.name == function && e.arguments[0].text() == argument) return true;
      return std::any_of(e.arguments.begin(), e.arguments.end(), [&](const Expression& a) { return self(a, self); });
    };
    return std::any_of(statements_.begin(), statements_.end(),
                       [&](const Statement& s) { return found(s.value, found); });
  }

  static bool is_power(double n) {
    int exponent = 0;
    return n > 0 && std::frexp(n, &exponent) == 0.5;
  }

  /// A product and a sum are one instruction.
  Value sum(const Expression& e) {
    const auto& a = e.arguments;
    const bool minus = e.name == "-";
    const auto product = [](const Expression& x) {
      return x.kind == Expression::Kind::Call && x.name == "*" && x.arguments[0].kind != Expression::Kind::Number;
    };
    if (product(a[1])) {
      const Value x = value(a[1].arguments[0]);
      Arg factor = operand(a[1].arguments[1]);
      if (factor.operand.kind == OperandKind::Immediate && a[0].kind == Expression::Kind::Number)
        factor = w_.copy(factor);
      return w_.fp("FFMA", minus ? -x : Arg(x), factor, operand(a[0]));
    }
    if (product(a[0])) {
      const Value x = value(a[0].arguments[0]);
      Arg factor = operand(a[0].arguments[1]);
      const bool number = a[1].kind == Expression::Kind::Number;
      if (factor.operand.kind == OperandKind::Immediate && number) factor = w_.copy(factor);
      if (number) return w_.fp("FFMA", x, factor, imm(static_cast<float>(minus ? -a[1].number : a[1].number)));
      const Value y = value(a[1]);
      return w_.fp("FFMA", x, factor, minus ? -y : Arg(y));
    }
    if (a[1].kind == Expression::Kind::Number)
      return w_.fp("FADD", value(a[0]), imm(static_cast<float>(minus ? -a[1].number : a[1].number)));
    const Value y = value(a[1]);
    if (a[0].kind == Expression::Kind::Number) return w_.fp("FADD", minus ? -y : Arg(y), operand(a[0]));
    return w_.fp("FADD", value(a[0]), minus ? -y : Arg(y));
  }

  Value half_call(const Expression& e) {
    const std::string& f = e.name;
    const auto& a = e.arguments;
    const auto zero = [](const Expression& x) { return x.kind == Expression::Kind::Number && x.number == 0; };
    if (f == "max" || f == "min" || f == "relu") {
      const Value v = w_.code.vector();
      const Arg right = f == "relu" || zero(a[1]) ? half(kRZ, 0) : Arg(value(a[1]));
      w_.code.emit("HMNMX2", {v, value(a[0]), right, f == "min" ? Arg(kPT) : !kPT});
      return v;
    }
    if (f == "neg") return w_.fp("HADD2", -value(a[0]), half(kRZ, 0));
    if (f == "*") return w_.fp("HMUL2", value(a[0]), value(a[1]));
    const Value y = value(a[1]);
    return w_.fp("HADD2", value(a[0]), f == "-" ? -y : Arg(y));
  }

  Value predicate(const Expression& e) {
    const Value p = w_.code.predicate();
    if (e.kind == Expression::Kind::Call && is_comparison(e.name)) {
      const bool zero = e.arguments[1].kind == Expression::Kind::Number && e.arguments[1].number == 0;
      w_.code.emit("FSETP." + compare_modifier(e.name) + ".AND",
                   {p, kPT, value(e.arguments[0]), zero ? Arg(kRZ) : operand(e.arguments[1]), kPT});
      return p;
    }
    const Tensor* t = e.kind == Expression::Kind::Name ? plan_.find(e.name) : nullptr;
    const bool bytes =
        e.kind == Expression::Kind::Name && ((t != nullptr && t->type == Type::U8) || masks_.count(e.name) != 0);
    if (bytes)
      w_.code.emit("ISETP.NE.AND", {p, kPT, value(e), kRZ, kPT});
    else
      w_.code.emit("FSETP.NEU.AND", {p, kPT, value(e), kRZ, kPT});
    return p;
  }

  void store(const Tensor& t) {
    const std::vector<Value>& results = made_.at(t.name);
    const Value at = address(t);
    const int bytes = access_bytes(t), most = std::min(bytes, 16), size = bytes_of(t.type);
    const int offset = static_cast<int>(t.offset) * size;
    if (plan_.vector == 1) {
      w_.store_global(at, offset, half_ ? results[0] : narrow(w_, results[0], t.type), size);
      return;
    }
    for (int part = 0; part < bytes; part += most) {
      const Value group = w_.code.vector(std::max(1, most / 4));
      for (int word = 0; word < most / 4; ++word) {
        const int first = (part + word * 4) / size;
        const Value to = group.at(word);
        if (half_)
          w_.assign(to, results[static_cast<std::size_t>(first / 2)]);
        else if (size == 4)
          w_.assign(to, results[static_cast<std::size_t>(first)]);
        else
          w_.code.emit(t.type == Type::F16 ? "F2FP.F16.F32.PACK_AB" : "F2FP.BF16.F32.PACK_AB",
                       {to, results[static_cast<std::size_t>(first) + 1], results[static_cast<std::size_t>(first)]});
      }
      w_.store_global(at, part + offset, group, most);
    }
  }

  Plan& plan_;
  const std::vector<Statement>& statements_;
  const std::set<std::string>& kept_;
  Writer w_;
  std::vector<Tensor*> used_, inputs_, outputs_;
  std::map<std::string, int> pointers_, pitches_;
  Value index_, row_;
  std::map<std::string, std::vector<Value>> loaded_, made_;
  std::set<std::string> masks_;
  std::map<std::string, Value> memo_;
  std::map<std::string, Reduced> angles_;
  int element_ = 0;
  bool half_ = false;
};

Tensor read_tensor(const config::Entry& entry, const Plan& plan) {
  Tensor t;
  t.name = entry.key;
  t.where = entry.where;
  t.row_stride = plan.rows > 1 ? plan.columns : 0;
  if (entry.value.is_scalar()) {
    t.type = read_type(entry.value, kElementTypes);
    return t;
  }
  entry.value.read_map([&](config::Map& m) {
    t.type = read_type(m.at("type"), kElementTypes);
    if (const auto offset = m.find("offset")) t.offset = offset->integer(0, 1 << 20);
    const auto layout = m.find("layout");
    if (layout) {
      if (plan.rows == 1) throw layout->error("needs a shape of two dimensions", "write the shape as [rows, columns]");
      switch (layout->choice({"rows", "columns", "row", "column"})) {
        case 0:
          break;
        case 1:
          t.row_stride = 1;
          t.column_stride = plan.rows;
          break;
        case 2:
          t.row_stride = 0;
          break;
        default:
          t.column_stride = 0;
          t.row_stride = 1;
      }
      t.plain = layout->string() == "rows";
    }
    if (const auto pitch = m.find("pitch")) {
      if (plan.rows == 1) throw pitch->error("needs a shape of two dimensions", "write the shape as [rows, columns]");
      const bool columns = t.column_stride > 1;
      const std::int64_t least = columns ? plan.rows : plan.columns;
      (columns ? t.column_stride : t.row_stride) = pitch->integer(least, std::int64_t{1} << 31);
      t.plain = t.plain && t.row_stride == plan.columns;
    }
  });
  return t;
}

}  // namespace

Draft draft_elementwise(const std::string& id, const config::Node& node, const GpuModel& model) {
  Draft draft;
  Plan plan;
  plan.id = id;
  node.read_map([&](config::Map& m) {
    const config::Node shape = m.at("shape");
    const std::vector<config::Node> extents = shape.list(1, 2);
    plan.columns = extents.back().integer(1, std::int64_t{1} << 36);
    if (extents.size() == 2) plan.rows = extents.front().integer(1, std::int64_t{1} << 31);
    if (plan.elements() >= std::int64_t{1} << 31)
      throw shape.error("has 2^31 elements or more", "a sketch counts them in 32 bits");
    if (const auto vector = m.find("vector")) {
      plan.vector = static_cast<int>(vector->integer(1, 16));
      if (!is_power_of_two(plan.vector) || plan.columns % plan.vector != 0)
        throw vector->error("does not divide a row of " + std::to_string(plan.columns) + " elements",
                            "take 1, or a power of two that does");
    } else {
      draft.assume("vector: 1 element a thread and access");
    }
    plan.block = read_block(m, 256, draft);

    for (const config::Entry& e : m.at("tensors").entries()) {
      plan.by_name[e.key] = static_cast<int>(plan.tensors.size());
      plan.tensors.push_back(read_tensor(e, plan));
    }
    const auto fused_node = m.find("fused");
    const bool fused = !fused_node || fused_node->boolean();
    std::vector<std::vector<Statement>> kernels;
    const auto read = [](const config::Node& n) {
      SourcePosition p = n.where();
      return parse_statement(n.string(), p);
    };
    bool open = false;  // the last kernel takes further statements
    for (const config::Node& n : m.at("compute").list(1)) {
      if (n.is_list()) {
        kernels.emplace_back();
        for (const config::Node& s : n.list(1)) kernels.back().push_back(read(s));
        open = false;
        continue;
      }
      if (!open) kernels.emplace_back();
      kernels.back().push_back(read(n));
      open = fused;
    }

    // Results that leave their kernel, or that are declared, lie in memory.
    std::map<std::string, std::size_t> made_in;
    std::set<std::string> kept;
    for (std::size_t k = 0; k < kernels.size(); ++k)
      for (const Statement& s : kernels[k]) {
        std::vector<const Expression*> names;
        collect_names(s.value, names);
        for (const Expression* n : names)
          if (made_in.count(n->name) != 0 && made_in[n->name] != k) kept.insert(n->name);
        if (plan.find(s.target) != nullptr) kept.insert(s.target);
        made_in[s.target] = k;
      }
    for (const std::string& name : kept) {
      if (plan.find(name) != nullptr) continue;
      Tensor t;
      t.name = name;
      for (const auto& statements : kernels)
        for (const Statement& s : statements) {
          if (s.target != name) continue;
          t.where = s.where;
          if (s.value.kind == Expression::Kind::Call && is_comparison(s.value.name)) t.type = Type::U8;
        }
      t.row_stride = plan.rows > 1 ? plan.columns : 0;
      draft.assume(name + ": " + type_name(t.type) + " in memory, elements in order");
      plan.by_name[name] = static_cast<int>(plan.tensors.size());
      plan.tensors.push_back(t);
    }
    for (const Tensor& t : plan.tensors) {
      const std::int64_t step = bytes_of(t.type) * std::int64_t{plan.vector};
      const bool aligned = (t.row_stride * bytes_of(t.type)) % std::min<std::int64_t>(step, 16) == 0 || plan.rows == 1;
      if (plan.vector > 1 && (t.column_stride != 1 || !aligned || t.offset % plan.vector != 0))
        throw InputError(t.where,
                         config::quoted(t.name) + " cannot be read in vectors of " + std::to_string(plan.vector),
                         "its rows must begin at whole vectors; take vector: 1");
      if (plan.vector > 1 && step < 4)
        throw InputError(t.where, "vectors of " + config::quoted(t.name) + " are less than 4 bytes",
                         "take vector: 1, or 4 and more");
    }
    for (Tensor& t : plan.tensors) {
      const std::int64_t last = (plan.rows - 1) * t.row_stride + (plan.columns - 1) * t.column_stride + t.offset + 1;
      const std::int64_t bytes = ceiling(last * bytes_of(t.type), 16) * 16;
      const bool written = made_in.count(t.name) != 0;
      t.buffer =
          draft.buffer(t.name, static_cast<std::uint64_t>(bytes), written ? Fill{FillZero{}} : random_fill(t.type));
    }
    const bool plain = std::all_of(plan.tensors.begin(), plan.tensors.end(), [](const Tensor& t) { return t.plain; });
    if (plain) {
      plan.columns *= plan.rows;
      plan.rows = 1;
    } else {
      constexpr std::int64_t kMostRows = 65535;  ///< of blocks in a grid
      if (plan.rows > kMostRows)
        throw extents.front().error("is more rows of blocks than the 65535 of a grid, where a tensor has a layout",
                                    "take fewer rows, or tensors whose elements are in order");
      for (Tensor& t : plan.tensors) t.plain = false;  // each has a row to find
    }
    std::set<std::string> named;
    for (auto statements = kernels.rbegin(); statements != kernels.rend(); ++statements)
      for (auto s = statements->rbegin(); s != statements->rend(); ++s) {
        if (kept.count(s->target) == 0 && named.count(s->target) == 0)
          throw InputError(s->where, config::quoted(s->target) + " goes nowhere: no statement after this reads it",
                           "declare it under tensors, or leave it out");
        named.insert(s->target);
        std::vector<const Expression*> names;
        collect_names(s->value, names);
        for (const Expression* n : names) named.insert(n->name);
      }
    for (const Tensor& t : plan.tensors)
      if (named.count(t.name) == 0)
        throw InputError(t.where, "no statement reads or makes " + config::quoted(t.name), "leave it out");
    bool in_halves = false;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const std::string name =
          kernels.size() == 1 ? id : id + "_" + std::to_string(k + 1) + "_" + kernels[k].back().target;
      KernelOf writer(plan, kernels[k], kept, model, name);
      draft.kernels.push_back(writer.write(node.where()));
      in_halves |= writer.computes_in_halves();
      Launch launch;
      launch.kernel = name;
      launch.where = node.where();
      launch.block = {static_cast<std::uint32_t>(plan.block), 1, 1};
      launch.grid = {static_cast<std::uint32_t>(ceiling(plan.columns / plan.vector, plan.block)),
                     static_cast<std::uint32_t>(plan.rows), 1};
      launch.arguments = writer.arguments();
      draft.item.launches.push_back(std::move(launch));
    }
    const bool narrow_types = std::any_of(plan.tensors.begin(), plan.tensors.end(),
                                          [](const Tensor& t) { return t.type == Type::F16 || t.type == Type::Bf16; });
    if (narrow_types) draft.assume(in_halves ? "arithmetic: packed fp16, as every tensor is" : "arithmetic: fp32");
  });
  return draft;
}

}  // namespace forewarp::sketch

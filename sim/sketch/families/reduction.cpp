// Reductions along rows, a block a row: walks over the row, each thread every so many elements, with a reduction of the
// block's partial results in between (by warps, through shared memory).
#include <algorithm>
#include <functional>

#include "base/error.h"
#include "sketch/families/rows.h"

namespace forewarp::sketch {
namespace {

constexpr int kSlots = 32;  ///< of a reduction of the block: a float a warp

class RowKernel {
 public:
  RowKernel(const RowsPlan& plan, const GpuModel& model, const std::string& name) : plan_(plan), w_(model, name) {}

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    in_ = w_.pointer_parameter();
    if (plan_.operation == RowOperation::LayerNorm) {
      gamma_ = w_.pointer_parameter();
      beta_ = w_.pointer_parameter();
    }
    if (plan_.operation == RowOperation::SoftmaxBack) gradient_ = w_.pointer_parameter();
    out_ = w_.pointer_parameter();
    const int columns = w_.integer_parameter();
    w_.descriptor();
    thread_ = w_.thread();
    columns_ = w_.uniform_integer(columns);
    step_ = c.uniform();
    c.emit("ULDC", {step_, constant(0)});
    const Value block = w_.block_x();
    if (c.hopper()) {
      start_ = c.uniform();
      c.emit("UIMAD", {start_, block, columns_, kURZ});
    } else {
      start_ = w_.mad(block, columns_, kRZ);
    }
    none_ = w_.compare("GE", lane_place(), columns_);
    w_.shared_base();
    switch (plan_.operation) {
      case RowOperation::Softmax:
        softmax();
        break;
      case RowOperation::SoftmaxBack:
        softmax_back();
        break;
      case RowOperation::LayerNorm:
        layer_norm();
        break;
      case RowOperation::Sum:
      case RowOperation::Max:
        reduce_alone();
        break;
    }
    const std::uint32_t shared = static_cast<std::uint32_t>(regions_) * kSlots * 4;
    return w_.finish(where, "take less unrolling", plan_.block, shared);
  }

 private:
  /// Where this thread's first element lies in a row.
  Value lane_place() {
    if (plan_.vector == 1) return thread_;
    if (first_.id < 0) first_ = w_.shift_left(thread_, log2_of(plan_.vector));
    return first_;
  }

  /// The element's address: start of the row and place in it, to 64 bits, then to the pointer.
  Value address(Value pointer, Value place) {
    Code& c = w_.code;
    const Value carry = c.predicate(), low = c.vector(), high = c.vector(), at = c.vector(2);
    const int shift = log2_of(bytes_of(plan_.type));
    c.emit("IADD3", {low, carry, place, start_, kRZ});
    c.emit("LEA.HI.X.SX32", {high, place, kRZ, imm(1), carry});
    const Value overflow = c.predicate();
    c.emit("LEA", {at, overflow, low, pointer, imm(shift)});
    c.emit("LEA.HI.X", {at.at(1), low, pointer.at(1), high, imm(shift), overflow});
    return at;
  }

  /// A loop over this thread's elements of a row; the last ends the kernel for those that have none.
  void walk(const std::function<void(Value place)>& body, bool last) {
    Code& c = w_.code;
    const Label meet = c.new_label(), loop = c.new_label();
    if (last) {
      c.exit(none_);
    } else {
      c.diverge(meet);
      c.branch(meet, none_);
    }
    const Value place = w_.copy(lane_place());
    c.place(loop);
    body(place);
    if (plan_.vector == 1)
      c.emit("IADD3", {place, place, step_, kRZ});
    else
      c.emit("IMAD", {place, step_, imm(plan_.vector), place});
    const Value more = w_.compare("GE", place, columns_);
    c.branch(loop, more, true);
    if (!last) c.converge(meet);
  }

  Value pointer_uniform(int parameter) {
    const Value p = w_.code.uniform(2);
    w_.code.emit("ULDC.64", {p, constant(parameter)});
    return p;
  }

  /// Elements from an address, as floats.
  std::vector<Value> load(Value at) {
    const int bytes = bytes_of(plan_.type) * plan_.vector;
    const Value v = w_.load_global(at, 0, bytes);
    return floats(v);
  }
  std::vector<Value> floats(Value v) {
    std::vector<Value> all;
    const int size = bytes_of(plan_.type);
    for (int e = 0; e < plan_.vector; ++e) {
      const Value word = v.at(e * size / 4);
      if (plan_.type == Type::F16) {
        const Value f = w_.code.vector();
        w_.code.emit("HADD2.F32", {f, -kRZ, half(word, e % 2)});
        all.push_back(f);
      } else if (plan_.type == Type::Bf16) {
        all.push_back(e % 2 == 0 ? w_.shift_left(word, 16) : w_.and_bits(word, 0xffff0000));
      } else {
        all.push_back(word);
      }
    }
    return all;
  }

  void store(Value at, const std::vector<Value>& values) {
    const int size = bytes_of(plan_.type), bytes = size * plan_.vector;
    if (plan_.vector == 1) {
      w_.store_global(at, 0, narrow(w_, values[0], plan_.type), size);
      return;
    }
    const Value group = w_.code.vector(std::max(1, bytes / 4));
    for (int word = 0; word < bytes / 4; ++word) {
      const auto first = static_cast<std::size_t>(word * 4 / size);
      if (size == 4)
        w_.assign(group.at(word), values[first]);
      else
        w_.code.emit(plan_.type == Type::F16 ? "F2FP.F16.F32.PACK_AB" : "F2FP.BF16.F32.PACK_AB",
                     {group.at(word), values[first + 1], values[first]});
    }
    w_.store_global(at, 0, group, bytes);
  }

  /// In every thread: the reduction of every thread's value.
  Value block_reduce(Value value, Reduce how) {
    Code& c = w_.code;
    value = warp_reduce(w_, value, how);
    if (plan_.block == 32) return value;
    const bool another = regions_ == 0 || how != last_;  // each operation has its own array
    if (another) ++regions_;
    last_ = how;
    const int at = (regions_ - 1) * kSlots * 4;
    if (lane_.id < 0) {
      lane_ = w_.and_bits(thread_, 31);
      first_lane_ = w_.compare("EQ", lane_, kRZ);
      has_warp_ = w_.compare("LT.U32", lane_, imm(plan_.block / 32));
    }
    const Value mine = w_.and_bits(w_.shift_right(thread_, 3), 0x1ffffffc);
    c.emit("STS", {shared(mine, at, w_.shared_base()), value}).when(first_lane_);
    w_.barrier();
    const Value theirs = w_.shift_left(lane_, 2);
    const Value partial = c.vector();
    c.emit("IMAD.MOV.U32", {partial, kRZ, kRZ, how == Reduce::Sum ? imm(0) : imm(kMinusInfinity)});
    c.emit("LDS", {partial, shared(theirs, at, w_.shared_base())}).when(has_warp_);
    w_.barrier();
    return warp_reduce(w_, partial, how);
  }

  /// The reduction over the row of what `term` makes of each element.
  Value row_reduce(Reduce how, Value pointer, const std::function<Value(Value)>& term,
                   const std::function<void(Value total, Value element)>& fold = {}) {
    const Value total = w_.copy(how == Reduce::Sum ? imm(0) : imm(kMinusInfinity));
    walk(
        [&](Value place) {
          for (const Value e : load(address(pointer, place))) {
            if (fold) {
              fold(total, e);
              continue;
            }
            const Value t = term(e);
            if (how == Reduce::Sum)
              w_.code.emit("FADD", {total, t, total});
            else
              w_.code.emit("FMNMX", {total, t, total, !kPT});
          }
        },
        false);
    return block_reduce(total, how);
  }

  void softmax() {
    const Value from = pointer_uniform(in_);
    const Value largest = row_reduce(Reduce::Max, from, [](Value e) { return e; });
    const Value sum = row_reduce(Reduce::Sum, from, {}, [&](Value total, Value e) {
      // The last product of the exponential takes the sum along.
      const Value power = w_.fp("FADD", e, -largest);
      const Value result = exponential(w_, power);
      w_.code.emit("FADD", {total, result, total});
    });
    const Value to = pointer_uniform(out_);
    const Value scale = reciprocal(w_, sum);
    walk(
        [&](Value place) {
          std::vector<Value> results;
          for (const Value e : load(address(from, place)))
            results.push_back(w_.fp("FMUL", scale, exponential(w_, w_.fp("FADD", e, -largest))));
          store(address(to, place), results);
        },
        true);
  }

  /// scale p (g - sum of p g along the row).
  void softmax_back() {
    const Value p_from = pointer_uniform(in_), g_from = pointer_uniform(gradient_);
    const auto each = [&](Value place, const auto& use) {
      const std::vector<Value> p = load(address(p_from, place)), g = load(address(g_from, place));
      for (std::size_t e = 0; e < p.size(); ++e) use(p[e], g[e]);
    };
    const Value part = w_.copy(imm(0));
    walk([&](Value place) { each(place, [&](Value p, Value g) { w_.code.emit("FFMA", {part, p, g, part}); }); }, false);
    const Value sum = block_reduce(part, Reduce::Sum), to = pointer_uniform(out_);
    walk(
        [&](Value place) {
          std::vector<Value> results;
          each(place, [&](Value p, Value g) {
            results.push_back(w_.fp("FMUL", w_.fp("FMUL", p, imm(plan_.scale)), w_.fp("FADD", g, -sum)));
          });
          store(address(to, place), results);
        },
        true);
  }

  void layer_norm() {
    const Value from = pointer_uniform(in_);
    const Value length = w_.code.vector();
    w_.code.emit(w_.code.hopper() ? "I2FP.F32.S32" : "I2F", {length, columns_});
    const Value mean = quotient(w_, row_reduce(Reduce::Sum, from, [](Value e) { return e; }), length);
    const Value squares = row_reduce(Reduce::Sum, from, {}, [&](Value total, Value e) {
      const Value d = w_.fp("FADD", e, -mean);
      w_.code.emit("FFMA", {total, d, d, total});
    });
    const Value variance = w_.fp("FADD", quotient(w_, squares, length), imm(1e-5f));
    const Value scale = reciprocal_root(w_, variance);
    const Value gamma = w_.pointer(gamma_), beta = w_.pointer(beta_), to = pointer_uniform(out_);
    walk(
        [&](Value place) {
          const int size = bytes_of(plan_.type), bytes = size * plan_.vector;
          const std::vector<Value> x = load(address(from, place));
          const std::vector<Value> g = floats(w_.load_global(w_.wide_mad(place, imm(size), gamma), 0, bytes));
          const std::vector<Value> b = floats(w_.load_global(w_.wide_mad(place, imm(size), beta), 0, bytes));
          std::vector<Value> results;
          for (std::size_t e = 0; e < x.size(); ++e)
            results.push_back(w_.fp("FFMA", w_.fp("FMUL", scale, w_.fp("FADD", x[e], -mean)), g[e], b[e]));
          store(address(to, place), results);
        },
        true);
  }

  void reduce_alone() {
    const Reduce how = plan_.operation == RowOperation::Sum ? Reduce::Sum : Reduce::Max;
    const Value total = row_reduce(how, pointer_uniform(in_), [](Value e) { return e; });
    const Value others = w_.compare("NE", thread_, kRZ);
    w_.code.exit(others);
    const Value row = w_.copy(w_.block_x());
    const Value at = w_.wide_mad(row, imm(4), w_.pointer(out_));
    w_.store_global(at, 0, total, 4);
  }

  const RowsPlan& plan_;
  Writer w_;
  int in_ = 0, out_ = 0, gamma_ = 0, beta_ = 0, gradient_ = 0;
  Value thread_, columns_, step_, start_, none_, first_, lane_, first_lane_, has_warp_;
  int regions_ = 0;
  Reduce last_ = Reduce::Sum;
};

}  // namespace

Kernel row_kernel(const RowsPlan& plan, const GpuModel& model, const std::string& name, const SourcePosition& where) {
  return RowKernel(plan, model, name).write(where);
}

Draft draft_reduction(const std::string& id, const config::Node& node, const GpuModel& model) {
  Draft draft;
  RowsPlan plan;
  node.read_map([&](config::Map& m) {
    plan.operation = static_cast<RowOperation>(m.at("operation").choice({"softmax", "layer_norm", "sum", "max"}));
    const std::vector<config::Node> shape = m.at("shape").list(2, 2);
    plan.rows = shape[0].integer(1, std::int64_t{1} << 30);
    plan.columns = shape[1].integer(1, std::int64_t{1} << 30);
    if (plan.rows * plan.columns >= std::int64_t{1} << 31)
      throw m.at("shape").error("has 2^31 elements or more", "a sketch counts them in 32 bits");
    if (const auto type = m.find("type"))
      plan.type = read_type(*type, {Type::F32, Type::F16, Type::Bf16});
    else
      draft.assume("type: f32");
    if (const auto vector = m.find("vector")) {
      plan.vector = static_cast<int>(vector->integer(1, 16 / bytes_of(plan.type)));
      if (!is_power_of_two(plan.vector) || plan.columns % plan.vector != 0 ||
          (plan.vector > 1 && plan.vector * bytes_of(plan.type) < 4))
        throw vector->error("does not suit rows of " + std::to_string(plan.columns) + " elements",
                            "take 1, or a power of two that divides them, of 4 bytes or more");
    } else {
      draft.assume("vector: 1 element a thread and access");
    }
    plan.block = read_block(m, 256, draft);
    draft.assume("a block a row; every pass over a row loads it again, its loop is not unrolled");
  });
  const auto elements = static_cast<std::uint64_t>(plan.rows * plan.columns);
  const auto size = static_cast<std::uint64_t>(bytes_of(plan.type));
  const bool reduces = plan.operation == RowOperation::Sum || plan.operation == RowOperation::Max;
  Launch launch;
  launch.kernel = id;
  launch.where = node.where();
  launch.grid = {static_cast<std::uint32_t>(plan.rows), 1, 1};
  launch.block = {static_cast<std::uint32_t>(plan.block), 1, 1};
  launch.arguments.push_back(pointer_to(draft.buffer("in", elements * size, random_fill(plan.type))));
  if (plan.operation == RowOperation::LayerNorm)
    for (const char* name : {"gamma", "beta"})
      launch.arguments.push_back(
          pointer_to(draft.buffer(name, static_cast<std::uint64_t>(plan.columns) * size, random_fill(plan.type))));
  launch.arguments.push_back(pointer_to(
      draft.buffer("out", reduces ? static_cast<std::uint64_t>(plan.rows) * 4 : elements * size, FillZero{})));
  launch.arguments.push_back(number_argument(plan.columns));
  draft.kernels.push_back(row_kernel(plan, model, id, node.where()));
  draft.item.launches.push_back(std::move(launch));
  return draft;
}

}  // namespace forewarp::sketch

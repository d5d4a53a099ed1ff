#include "sketch/families/common.h"

namespace forewarp::sketch {
namespace {

struct TypeName {
  Type type;
  const char* name;
  int bytes;
};
constexpr TypeName kTypes[] = {{Type::F32, "f32", 4},   {Type::F16, "f16", 2}, {Type::Bf16, "bf16", 2},
                               {Type::Tf32, "tf32", 4}, {Type::S8, "s8", 1},   {Type::U8, "u8", 1},
                               {Type::E4m3, "e4m3", 1}};

const TypeName& row(Type type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

Type read_type(const config::Node& node, std::initializer_list<Type> accepted) {
  const std::string name = node.string();
  std::string names;
  for (const Type t : accepted) {
    if (name == type_name(t)) return t;
    names += (names.empty() ? "" : ", ") + std::string(type_name(t));
  }
  throw node.error("is " + config::quoted(name), "types here: " + names);
}

const char* type_name(Type type) { return row(type).name; }
int bytes_of(Type type) { return row(type).bytes; }

Fill random_fill(Type type, std::uint32_t seed) {
  FillUniform f;
  f.seed = seed;
  f.low = -1;
  f.high = 1;
  switch (type) {
    case Type::F16:
      f.type = ElementType::F16;
      break;
    case Type::Bf16:
      f.type = ElementType::Bf16;
      break;
    case Type::S8:
    case Type::U8:
      f.type = ElementType::S8;
      f.low = -4;
      f.high = 4;
      break;
    case Type::E4m3:
      f.type = ElementType::E4m3;
      break;
    case Type::F32:
    case Type::Tf32:
      break;
  }
  return f;
}

Value widen(Writer& w, Value v, Type type) {
  switch (type) {
    case Type::F16: {
      const Value f = w.code.vector();
      w.code.emit("HADD2.F32", {f, -kRZ, half(v, 0)});
      return f;
    }
    case Type::Bf16:
      return w.shift_left(v, 16);
    default:
      return v;
  }
}

Value narrow(Writer& w, Value v, Type type) {
  switch (type) {
    case Type::F16:
      return w.fp("F2FP.F16.F32.PACK_AB", kRZ, v);
    case Type::Bf16:
      return w.fp("F2FP.BF16.F32.PACK_AB", kRZ, v);
    default:
      return v;
  }
}

Value element_of(Writer& w, Value words, int e, Type type) {
  const Value word = words.at(e * bytes_of(type) / 4);
  if (type == Type::F16) {
    const Value f = w.code.vector();
    w.code.emit("HADD2.F32", {f, -kRZ, half(word, e % 2)});
    return f;
  }
  if (type == Type::Bf16) return e % 2 == 0 ? w.shift_left(word, 16) : w.and_bits(word, 0xffff0000);
  return word;
}

Argument pointer_to(int buffer) { return Argument::pointer(buffer); }
Argument number_argument(std::int64_t n) {
  return Argument::scalar(ArgumentKind::I32, static_cast<std::uint32_t>(static_cast<std::int32_t>(n)));
}

int read_block(config::Map& m, int usual, Draft& draft) {
  if (const auto node = m.find("block")) {
    const auto threads = static_cast<int>(node->integer(32, 1024));
    if (threads % 32 != 0)
      throw node->error("is " + std::to_string(threads) + " threads, no whole number of warps",
                        "take a multiple of 32");
    return threads;
  }
  draft.assume("block: " + std::to_string(usual) + " threads");
  return usual;
}

}  // namespace forewarp::sketch

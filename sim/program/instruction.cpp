#include "program/instruction.h"

#include <unordered_map>

namespace forewarp {
namespace {

constexpr const char* kOpcodeTexts[] = {
#define FW_OPCODE(name, ...) #name,
#include "program/opcodes.def"
#undef FW_OPCODE
};

constexpr const char* kModifierTexts[] = {
#define FW_MODIFIER(name, text) text,
#include "program/modifiers.def"
#undef FW_MODIFIER
};

template <typename Enum, std::size_t N>
std::unordered_map<std::string_view, Enum> index_texts(const char* const (&texts)[N]) {
  std::unordered_map<std::string_view, Enum> index;
  for (std::size_t i = 0; i < N; ++i) index.emplace(texts[i], static_cast<Enum>(i));
  return index;
}

}  // namespace

const char* opcode_text(Opcode opcode) {
  return opcode != Opcode::Unknown && opcode < Opcode::Count ? kOpcodeTexts[static_cast<std::size_t>(opcode)] : "?";
}

const char* modifier_text(Modifier modifier) {
  return modifier < Modifier::Count ? kModifierTexts[static_cast<std::size_t>(modifier)] : "?";
}

Opcode find_opcode(std::string_view text) {
  static const auto index = index_texts<Opcode>(kOpcodeTexts);
  const auto found = index.find(text);
  return found == index.end() ? Opcode::Unknown : found->second;
}

std::optional<Modifier> find_modifier(std::string_view text) {
  static const auto index = index_texts<Modifier>(kModifierTexts);
  const auto found = index.find(text);
  if (found == index.end()) return std::nullopt;
  return found->second;
}

}  // namespace forewarp

#include "advise/sketch_changes.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace forewarp::advise {

namespace {

using config::Entry;
using config::Node;

enum class Moves : std::uint8_t {
  Scale,    ///< half and twice of it; of a list, of each number alone, and two neighbours exchanged
  Step,     ///< one less, one and two more
  Flip,     ///< true and false
  Choices,  ///< of the values listed
};

struct Rule {
  const char* key;
  Moves moves;
  std::vector<const char*> usual;  ///< values where the sketch does not say, and all those of Choices
  const char* cost = "";
};

/// Keys that say how a kernel is made, not what it computes. A key of several words ("kv_tile") goes by the word that
/// is here.
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"tile",
       Moves::Scale,
       {"[64, 64, 32]", "[64, 128, 32]", "[128, 64, 32]", "[128, 128, 32]", "[128, 256, 32]", "[256, 128, 32]",
        "[128, 128, 64]", "[128, 256, 64]", "[256, 128, 64]", "[64, 64, 16]", "[128, 128, 8]", "[128, 64, 8]",
        "[128, 256, 128]", "[32, 128]", "[64, 64]", "[64, 128]", "[128, 32]", "[128, 64]", "[128, 128]"}},
      {"warp", Moves::Scale, {"[32, 32]", "[32, 64]", "[64, 32]", "[64, 64]", "[64, 128]", "[128, 64]"}},
      {"warps", Moves::Scale, {"2", "4", "8"}},
      {"thread", Moves::Scale, {"[4, 4]", "[4, 8]", "[8, 4]", "[8, 8]", "[8, 16]", "[16, 8]"}},
      {"stages", Moves::Step, {"2", "3", "4", "5", "6"}},
      {"ahead", Moves::Flip, {"true", "false"}},
      {"vector", Moves::Scale, {"1", "2", "4", "8", "16"}},
      {"block", Moves::Scale, {"64", "128", "256", "512", "1024"}},
      {"fused", Moves::Flip, {"true", "false"}},
      {"split_k", Moves::Scale, {"1", "2", "4", "8"}, "a second pass over the parts, or atomics"},
      {"persistent", Moves::Flip, {"true", "false"}},
      {"specialised", Moves::Flip, {"true", "false"}, "a warpgroup that only fetches"},
      {"algorithm", Moves::Choices, {"flash", "unfused"}},
      {"order", Moves::Scale, {"2", "4", "8", "16"}},
      {"copies", Moves::Choices, {"registers", "async", "tma"}},
      {"math", Moves::Choices, {"fma", "mma", "wgmma"}},
      {"cluster", Moves::Scale, {"[1, 1]", "[2, 1]", "[1, 2]"}},
      {"layout", Moves::Choices, {"rows"}, "whoever writes the tensor must lay it out so"},
  };
  return all;
}

/// Elements to whose multiples a pitch is rounded: 128 bytes of 4 each.
constexpr std::int64_t kPitch = 32;
/// Types that may be narrowed, and what to.
constexpr const char* kWide = "f32";
constexpr const char* kNarrow[] = {"f16", "bf16"};

const Rule* rule_of(const std::string& key) {
  const auto find = [](const std::string& name) -> const Rule* {
    const auto& all = rules();
    const auto at = std::find_if(all.begin(), all.end(), [&](const Rule& r) { return name == r.key; });
    return at == all.end() ? nullptr : &*at;
  };
  if (const Rule* whole = find(key)) return whole;
  for (std::size_t from = 0; from <= key.size();) {
    const std::size_t to = std::min(key.find('_', from), key.size());
    if (const Rule* word = find(key.substr(from, to - from)); word != nullptr && to - from < key.size()) return word;
    from = to + 1;
  }
  return nullptr;
}

std::optional<std::int64_t> whole_number(const Node& node) {
  if (!node.is_scalar()) return std::nullopt;
  const std::string text = node.string();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string list_text(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return text + "]";
}

/// A value of a file as it would be written in a line; empty where it is a map or holds anything but scalars.
std::string value_text(const Node& node) {
  if (node.is_scalar()) return node.string();
  if (!node.is_list()) return "";
  std::string text;
  for (const Node& one : node.list()) {
    if (!one.is_scalar()) return "";
    text += (text.empty() ? "" : ", ") + one.string();
  }
  return "[" + text + "]";
}

void scaled(std::int64_t n, std::vector<std::string>& values) {
  if (n % 2 == 0 && n > 1) values.push_back(std::to_string(n / 2));
  if (n > 0) values.push_back(std::to_string(n * 2));
}

void scaled_lists(const std::vector<std::int64_t>& numbers, std::vector<std::string>& values) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::vector<std::int64_t> other = numbers;
    if (numbers[i] % 2 == 0 && numbers[i] > 1) {
      other[i] = numbers[i] / 2;
      values.push_back(list_text(other));
    }
    other[i] = numbers[i] * 2;
    values.push_back(list_text(other));
  }
  for (std::size_t i = 0; i + 1 < numbers.size() && i < 1; ++i) {
    std::vector<std::int64_t> other = numbers;
    std::swap(other[i], other[i + 1]);
    values.push_back(list_text(other));
  }
}

/// Values to try instead of the one that is there.
std::vector<std::string> instead_of(const Node& node, const Rule& rule) {
  std::vector<std::string> values;
  if (rule.moves == Moves::Choices) {
    values.assign(rule.usual.begin(), rule.usual.end());
  } else if (rule.moves == Moves::Flip) {
    if (!node.is_scalar()) return values;
    values.push_back(node.string() == "true" ? "false" : "true");
  } else if (const auto n = whole_number(node)) {
    if (rule.moves == Moves::Scale) {
      scaled(*n, values);
    } else {
      for (const std::int64_t step : {-1, 1, 2})
        if (*n + step > 0) values.push_back(std::to_string(*n + step));
    }
  } else if (node.is_list() && rule.moves == Moves::Scale) {
    std::vector<std::int64_t> numbers;
    for (const Node& one : node.list()) {
      const auto number = whole_number(one);
      if (!number) return values;
      numbers.push_back(*number);
    }
    scaled_lists(numbers, values);
  }
  const std::string own = value_text(node);
  std::erase(values, own);
  return values;
}

/// Collects changes of one sketch.
class Finder {
 public:
  Finder(const std::string& id, const Node& sketch) : id_(id) {
    for (const Entry& family : sketch.entries()) {
      const bool given = family.key == "registers" || family.key == "shared";  // beside the family
      if (!family.value.is_map() || given) continue;
      walk(family.value, {family.key}, true);
      for (const Rule& rule : rules()) {
        if (rule.moves == Moves::Choices && std::string(rule.key) == "layout") continue;  // of a tensor
        const std::vector<Entry> entries = family.value.entries();
        if (std::any_of(entries.begin(), entries.end(), [&](const Entry& e) { return rule_of(e.key) == &rule; }))
          continue;
        for (const char* value : rule.usual)
          add({family.key, rule.key}, "", value, rule.cost, family.value.where().text());
      }
      narrow_types(family);
    }
  }
  std::vector<KeyChange> take() { return std::move(changes_); }

 private:
  using Path = std::vector<std::string>;

  void walk(const Node& map, const Path& path, bool family) {
    for (const Entry& e : map.entries()) {
      Path here = path;
      here.push_back(e.key);
      if (e.value.is_map()) {
        walk(e.value, here, false);
        continue;
      }
      if (e.key == "pitch") {
        if (const auto pitch = whole_number(e.value); pitch && *pitch % kPitch != 0)
          add(here, value_text(e.value), std::to_string((*pitch + kPitch - 1) / kPitch * kPitch),
              "memory between the rows", e.where.text());
        continue;
      }
      const Rule* rule = rule_of(e.key);
      if (rule == nullptr || (!family && e.key != "layout")) continue;
      for (const std::string& value : instead_of(e.value, *rule))
        add(here, value_text(e.value), value, rule->cost, e.where.text());
    }
  }

  /// Values in fewer bits: wherever the sketch says the wide type.
  void narrow_types(const Entry& family) {
    std::vector<Path> places;
    std::string where;
    const auto look = [&](const auto& self, const Node& map, const Path& path) -> void {
      for (const Entry& e : map.entries()) {
        Path here = path;
        here.push_back(e.key);
        if (e.value.is_map()) self(self, e.value, here);
        if (!e.value.is_scalar() || e.value.string() != kWide) continue;
        places.push_back(here);
        if (where.empty()) where = e.where.text();
      }
    };
    look(look, family.value, {family.key});
    if (places.empty()) return;
    for (const char* narrow : kNarrow) {
      std::string text = "{" + id_text() + ": {}}";
      Node over = config::parse(text, "advise");
      for (const Path& place : places) over = config::overlay(over, root_of(place, narrow), "");
      changes_.push_back({"type", kWide, narrow, "precision; whoever reads and writes the tensors", where, over});
    }
  }

  std::string id_text() const { return "\"" + id_ + "\""; }

  Node root_of(const Path& path, const std::string& value) const {
    std::string text = "{" + id_text() + ": ", closing = "}";
    for (const std::string& key : path) {
      text += "{\"" + key + "\": ";
      closing += "}";
    }
    return config::parse(text + value + closing, "advise");
  }

  void add(const Path& path, const std::string& from, const std::string& to, const char* cost,
           const std::string& where) {
    std::string key;
    for (std::size_t i = 1; i < path.size(); ++i) key += (key.empty() ? "" : ".") + path[i];
    changes_.push_back({key, from, to, cost, where, root_of(path, to)});
  }

  const std::string& id_;
  std::vector<KeyChange> changes_;
};

}  // namespace

std::string KeyChange::text() const {
  return key + ": " + to + (from.empty() ? ", which the sketch leaves open" : " instead of " + from);
}

std::vector<KeyChange> key_changes(const std::string& id, const Node& sketch) { return Finder(id, sketch).take(); }

Node with_changes(const std::string& id, const Node& sketch, const std::vector<const KeyChange*>& changes) {
  Node root = config::wrap(id, sketch);
  for (const KeyChange* change : changes) root = config::overlay(root, change->over, "");
  return root;
}

}  // namespace forewarp::advise

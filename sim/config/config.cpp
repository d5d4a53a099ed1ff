#include "config/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/file.h"
#include "config/document.h"

namespace forewarp::config {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

/// Edit distance from a to b; for "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t fewest = name.size() / 3 + 2;  // more edits than that are not a misspelling
  if (name.size() > 64) return best;
  for (const std::string& candidate : candidates) {
    if (name.size() >= 3 && (candidate.starts_with(name) || name.starts_with(candidate))) return candidate;
    const std::size_t edits = edit_distance(name, candidate);
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

namespace {

/// The values of another document become this one's.
void renumber(Value& value, std::uint32_t by) {
  value.file += by;
  for (Value& item : value.items) renumber(item, by);
  for (auto& [key, item] : value.entries) {
    key.file += by;
    renumber(item, by);
  }
}

void forget_places(Value& value) {
  value.line = value.column = 0;
  for (Value& item : value.items) forget_places(item);
  for (auto& [key, item] : value.entries) {
    key.line = key.column = 0;
    forget_places(item);
  }
}

bool has_key(const Value& map, std::string_view name) {
  return std::any_of(map.entries.begin(), map.entries.end(), [&](const auto& e) { return e.first.text == name; });
}

void lay_over(Value& base, const Value& over, std::string_view whole) {
  if (base.kind != ValueKind::Map || over.kind != ValueKind::Map || has_key(over, whole)) {
    base = over;
    return;
  }
  base.file = over.file, base.line = over.line, base.column = over.column;
  for (const auto& [key, value] : over.entries) {
    const auto at = std::find_if(base.entries.begin(), base.entries.end(),
                                 [&, &name = key.text](const auto& e) { return e.first.text == name; });
    if (at == base.entries.end())
      base.entries.emplace_back(key, value);
    else
      at->first = key, lay_over(at->second, value, whole);
  }
}

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

template <class Number>
std::string range_text(Number low, Number high) {
  using Limits = std::numeric_limits<Number>;
  const auto text = [](Number n) {
    if constexpr (std::is_floating_point_v<Number>)
      return number_text(n);
    else
      return std::to_string(n);
  };
  const bool from = low != Limits::lowest() || std::is_unsigned_v<Number>, to = high != Limits::max();
  if (from && to) return " from " + text(low) + " to " + text(high);
  if (from) return " of at least " + text(low);
  if (to) return " of at most " + text(high);
  return "";
}

/// Whole text as a number of the type; decimal, or 0x for integers.
template <class Number>
bool parse_number(std::string_view text, Number& number) {
  int base = 10;
  if constexpr (!std::is_floating_point_v<Number>) {
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
      base = 16;
      text.remove_prefix(2);
    }
  }
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<Number>)
    result = std::from_chars(text.data(), text.data() + text.size(), number);
  else
    result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string shown = "'";
  for (const char c : text.substr(0, 60)) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (text.size() > 60) shown += "...";
  return shown + "'";
}

bool Node::is_map() const { return value_->kind == ValueKind::Map; }
bool Node::is_list() const { return value_->kind == ValueKind::List; }
bool Node::is_scalar() const { return value_->kind == ValueKind::Scalar; }
bool Node::is_null() const { return value_->kind == ValueKind::Null; }

SourcePosition Node::where() const { return document_->place(*value_); }

InputError Node::error(const std::string& what, const std::string& remedy) const {
  return InputError(where(), path_.empty() ? what : path_ + " " + what, remedy);
}

Node Node::child(const Value& value, std::string_view step) const {
  std::string path = path_;
  if (!path.empty() && !step.starts_with('[')) path += '.';
  path += step;
  return Node(document_, &value, std::move(path));
}

std::string Node::shown() const {
  switch (value_->kind) {
    case ValueKind::Null:
      return "empty";
    case ValueKind::List:
      return "a list";
    case ValueKind::Map:
      return "a map";
    case ValueKind::Scalar:
      break;
  }
  return quoted(value_->text);
}

const std::string& Node::scalar(const char* wanted) const {
  if (!is_scalar()) throw error(std::string("must be ") + wanted + ", not " + shown());
  return value_->text;
}

std::int64_t Node::integer(std::int64_t low, std::int64_t high) const {
  std::int64_t number = 0;
  if (!is_scalar() || value_->quoted || !parse_number(std::string_view(value_->text), number) || number < low ||
      number > high)
    throw error("must be an integer" + range_text(low, high) + ", not " + shown());
  return number;
}

std::uint64_t Node::unsigned_integer(std::uint64_t low, std::uint64_t high) const {
  std::uint64_t number = 0;
  if (!is_scalar() || value_->quoted || !parse_number(std::string_view(value_->text), number) || number < low ||
      number > high)
    throw error("must be an integer" + range_text(low, high) + ", not " + shown());
  return number;
}

double Node::number(double low, double high) const {
  double number = 0;
  if (!is_scalar() || value_->quoted || !parse_number(std::string_view(value_->text), number) ||
      !std::isfinite(number) || number < low || number > high)
    throw error("must be a number" + range_text(low, high) + ", not " + shown());
  return number;
}

bool Node::boolean() const {
  const bool plain = is_scalar() && !value_->quoted;
  if (plain && value_->text == "true") return true;
  if (plain && value_->text == "false") return false;
  throw error("must be true or false, not " + shown());
}

std::string Node::string() const {
  if (scalar("a text").empty()) throw error("must not be empty");
  return value_->text;
}

std::size_t Node::choice(std::initializer_list<std::string_view> names) const {
  const std::string& text = scalar("a name");
  std::size_t index = 0;
  std::vector<std::string> all;
  for (const std::string_view name : names) {
    if (name == text) return index;
    all.emplace_back(name);
    ++index;
  }
  throw error("cannot be " + shown(), "accepted: " + joined(all));
}

std::vector<Node> Node::list(std::size_t fewest, std::size_t most) const {
  if (!is_list()) throw error("must be a list, not " + shown());
  const std::size_t size = value_->items.size();
  if (size < fewest || size > most)
    throw error("must be a list of " + std::to_string(fewest) +
                (most == fewest                                    ? ""
                 : most == std::numeric_limits<std::size_t>::max() ? " or more"
                                                                   : " to " + std::to_string(most)) +
                " values, not " + std::to_string(size));
  std::vector<Node> nodes;
  nodes.reserve(size);
  for (std::size_t i = 0; i < size; ++i)
    nodes.push_back(child(value_->items[i], std::string("[").append(std::to_string(i)) += ']'));
  return nodes;
}

std::vector<Entry> Node::entries() const {
  if (!is_map()) throw error("must be a map, not " + shown());
  std::vector<Entry> all;
  all.reserve(value_->entries.size());
  for (const auto& [key, value] : value_->entries)
    all.push_back({key.text, document_->place(key), child(value, key.text)});
  return all;
}

Map::Map(const Node& node) : node_(node) {
  if (!node.is_map()) throw node.error("must be a map, not " + node.shown());
  taken_.resize(node.value_->entries.size());
}

const Value* Map::take(std::string_view key) {
  if (std::find(accepted_.begin(), accepted_.end(), key) == accepted_.end()) accepted_.emplace_back(key);
  const auto& entries = node_.value_->entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first.text != key) continue;
    taken_[i] = 1;
    return &entries[i].second;
  }
  return nullptr;
}

Node Map::at(std::string_view key, const std::string& remedy) {
  const Value* value = take(key);
  if (value != nullptr) return node_.child(*value, key);
  std::vector<std::string> unread;
  const auto& entries = node_.value_->entries;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (taken_[i] == 0) unread.push_back(entries[i].first.text);
  const std::string near = nearest(key, unread);
  throw node_.error("lacks the key " + quoted(key), near.empty() ? remedy : "is " + quoted(near) + " meant to be it?");
}

std::optional<Node> Map::find(std::string_view key) {
  const Value* value = take(key);
  if (value == nullptr) return std::nullopt;
  return node_.child(*value, key);
}

bool Map::has(std::string_view key) const {
  const auto& entries = node_.value_->entries;
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first.text == key; });
}

void Map::finish() const {
  const auto& entries = node_.value_->entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (taken_[i] != 0) continue;
    const Value& key = entries[i].first;
    const std::string near = nearest(key.text, accepted_);
    throw InputError(node_.document_->place(key),
                     (node_.path_.empty() ? "" : node_.path_ + " has the ") + std::string("unknown key ") +
                         quoted(key.text) + (near.empty() ? "" : "; did you mean " + quoted(near) + "?"),
                     "accepted: " + joined(accepted_));
  }
}

Node overlay(const Node& base, const Node& over, std::string_view whole) {
  Document document = *base.document_;
  Value top = *over.value_;
  renumber(top, static_cast<std::uint32_t>(document.files.size()));
  document.files.insert(document.files.end(), over.document_->files.begin(), over.document_->files.end());
  lay_over(document.root, top, whole);
  auto merged = std::make_shared<const Document>(std::move(document));
  const Value* root = &merged->root;
  return Node(std::move(merged), root, "");
}

Node rewrite(const Node& node, const std::function<std::optional<std::string>(const Node&)>& replace) {
  auto document = std::make_shared<Document>();
  document->files = node.document_->files;
  const auto copy = [&](const auto& self, const Node& from) -> Value {
    Value value = *from.value_;
    for (std::size_t i = 0; i < value.items.size(); ++i)
      value.items[i] = self(self, from.child(from.value_->items[i], std::string("[").append(std::to_string(i)) += ']'));
    for (std::size_t i = 0; i < value.entries.size(); ++i) {
      const auto& [key, item] = from.value_->entries[i];
      value.entries[i].second = self(self, from.child(item, key.text));
    }
    if (value.kind != ValueKind::Scalar) return value;
    if (auto text = replace(from)) {
      value.text = std::move(*text);
      value.quoted = false;
    }
    return value;
  };
  document->root = copy(copy, node);
  const Value* root = &document->root;
  return Node(std::move(document), root, node.path_);
}

Node wrap(const std::string& key, const Node& node) {
  auto document = std::make_shared<Document>();
  document->files = node.document_->files;
  Value name = *node.value_;  // its place
  name.kind = ValueKind::Scalar;
  name.text = key;
  name.items.clear();
  name.entries.clear();
  document->root = name;
  document->root.kind = ValueKind::Map;
  document->root.entries.emplace_back(name, *node.value_);
  const Value* root = &document->root;
  return Node(std::move(document), root, "");
}

Node parse_argument(const std::string& text, const std::string& name) {
  Document document;
  try {
    document = parse_document(text, name);
  } catch (const InputError&) {
    throw InputError({name}, "is not understood", "write it as in a YAML file: 128, true or [1, 2]");
  }
  forget_places(document.root);
  auto kept = std::make_shared<const Document>(std::move(document));
  const Value* root = &kept->root;
  return Node(std::move(kept), root, "");
}

Node parse(const std::string& text, const std::string& name) {
  auto document = std::make_shared<const Document>(parse_document(text, name));
  const Value* root = &document->root;
  return Node(std::move(document), root, "");
}

Node read_file(const std::string& path) { return parse(read_text_file(path), path); }

}  // namespace forewarp::config

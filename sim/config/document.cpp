// YAML events to a tree. The event interface is used instead of YAML::Node because the latter keeps repeated keys
// silently, forgets where aliases stand, and reads the first of several documents without a word.
#include "config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "config/config.h"

namespace forewarp::config {
namespace {

// Aliases copy what they name; nested ones could multiply without end.
constexpr std::size_t kMostValues = 1'000'000;

class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  bool started() const { return started_; }
  Value take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) throw InputError(place(mark), "a second document starts here", "keep one document in a file");
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(ValueKind::Null, mark), anchor); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Value value = make(ValueKind::Scalar, mark);
    value.text = text;
    value.quoted = tag == "!";
    if (!value.quoted && (text.empty() || text == "~" || text == "null")) value.kind = ValueKind::Null;
    add(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw InputError(place(mark), "an alias to a value that contains it");
    add(found->second, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back({make(ValueKind::List, mark), anchor, {}, false, {}});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back({make(ValueKind::Map, mark), anchor, {}, false, {}});
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Value value;
    YAML::anchor_t anchor;
    Value key;
    bool has_key;
    std::unordered_map<std::string, int> lines;  ///< of a map's keys
  };

  SourcePosition place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  static Value make(ValueKind kind, const YAML::Mark& mark) {
    Value value;
    value.kind = kind;
    value.line = mark.line + 1;
    value.column = mark.column + 1;
    return value;
  }

  static std::size_t count(const Value& value) {
    std::size_t n = 1;
    for (const Value& item : value.items) n += count(item);
    for (const auto& [key, item] : value.entries) n += 1 + count(item);
    return n;
  }

  void close() {
    Open top = std::move(open_.back());
    open_.pop_back();
    add(std::move(top.value), top.anchor);
  }

  void add(Value value, YAML::anchor_t anchor) {
    // Containers were counted item by item; only a scalar or an alias brings new values.
    values_ += value.kind == ValueKind::Scalar || value.kind == ValueKind::Null ? 1 : count(value);
    if (values_ > kMostValues)
      throw InputError({file_, value.line, value.column}, "the file holds more than a million values");
    if (anchor != 0) anchors_[anchor] = value;
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& top = open_.back();
    if (top.value.kind == ValueKind::List) {
      top.value.items.push_back(std::move(value));
    } else if (!top.has_key) {
      check_key(top, value);
      top.key = std::move(value);
      top.has_key = true;
    } else {
      top.value.entries.emplace_back(std::move(top.key), std::move(value));
      top.has_key = false;
    }
  }

  void check_key(Open& map, const Value& key) const {
    const SourcePosition where{file_, key.line, key.column};
    if (key.kind != ValueKind::Scalar) throw InputError(where, "a key must be a name");
    const auto [first, is_new] = map.lines.emplace(key.text, key.line);
    if (!is_new)
      throw InputError(
          where, "key " + quoted(key.text) + " is repeated; it stands first in line " + std::to_string(first->second));
  }

  std::string file_;
  bool started_ = false;
  Value root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Value> anchors_;
  std::size_t values_ = 0;
};

}  // namespace

Document parse_document(const std::string& text, const std::string& file) {
  TreeBuilder builder(file);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw InputError({file, error.mark.line + 1, error.mark.column + 1}, "not valid YAML: " + error.msg);
  }
  if (!builder.started()) throw InputError({file}, "is empty; a YAML map is expected");
  return {{file}, builder.take_root()};
}

}  // namespace forewarp::config

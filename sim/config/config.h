// A strict YAML reader. Maps are closed: a key that nobody asks for, or that is repeated, is an error. Leaves are read
// with a type and a range. Every error has file, line, column and the accepted keys. Launch files and hardware models
// own their schemas; this reader knows none.
//
//   config::Node root = config::read_file("h200.yaml");
//   root.read_map([&](config::Map& m) {
//     sm_count = m.at("sm_count").integer(1, 1024);           // required
//     if (auto n = m.find("comment")) comment = n->string();  // optional
//   });                                                        // any other key: InputError
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace forewarp::config {

struct Document;
struct Value;
class Map;
struct Entry;

/// One value of a document. Cheap to copy; keeps its document alive.
class Node {
 public:
  bool is_map() const;
  bool is_list() const;
  bool is_scalar() const;
  bool is_null() const;

  SourcePosition where() const;
  const std::string& path() const { return path_; }  ///< "sm.l1.latency", for messages; empty at the root
  /// An error at this place: "PATH WHAT", with PATH the keys that lead here.
  InputError error(const std::string& what, const std::string& remedy = {}) const;

  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::uint64_t unsigned_integer(std::uint64_t low = 0,
                                 std::uint64_t high = std::numeric_limits<std::uint64_t>::max()) const;
  /// A finite number within [low, high].
  double number(double low = std::numeric_limits<double>::lowest(),
                double high = std::numeric_limits<double>::max()) const;
  bool boolean() const;
  std::string string() const;  ///< any scalar, not empty
  /// Index of the scalar in `names`; otherwise an error that lists them.
  std::size_t choice(std::initializer_list<std::string_view> names) const;

  std::vector<Node> list(std::size_t fewest = 0, std::size_t most = std::numeric_limits<std::size_t>::max()) const;
  /// Keys and values, in order, of a map whose keys are free names.
  std::vector<Entry> entries() const;

  /// Reads a closed map: a key that `reader` did not ask for is an error.
  template <class Reader>
  void read_map(Reader&& reader) const;

 private:
  friend class Map;
  friend Node parse(const std::string& text, const std::string& name);
  friend Node parse_argument(const std::string& text, const std::string& name);
  friend Node overlay(const Node& base, const Node& over, std::string_view whole);
  friend Node wrap(const std::string& key, const Node& node);
  friend Node rewrite(const Node& node, const std::function<std::optional<std::string>(const Node&)>& replace);
  Node(std::shared_ptr<const Document> document, const Value* value, std::string path)
      : document_(std::move(document)), value_(value), path_(std::move(path)) {}
  Node child(const Value& value, std::string_view step) const;
  const std::string& scalar(const char* wanted) const;
  std::string shown() const;

  std::shared_ptr<const Document> document_;
  const Value* value_;
  std::string path_;
};

struct Entry {
  std::string key;
  SourcePosition where;  ///< of the key
  Node value;
};

/// A closed map being read; made by Node::read_map.
class Map {
 public:
  explicit Map(const Node& node);
  const Node& node() const { return node_; }
  /// Required: InputError if it is missing, with `remedy` unless a key is there that may be meant to be it.
  Node at(std::string_view key, const std::string& remedy = {});
  std::optional<Node> find(std::string_view key);  ///< optional
  bool has(std::string_view key) const;            ///< does not count as asking for it
  void finish() const;                             ///< InputError for keys that nobody asked for

 private:
  const Value* take(std::string_view key);

  Node node_;
  std::vector<char> taken_;
  std::vector<std::string> accepted_;
};

template <class Reader>
void Node::read_map(Reader&& reader) const {
  Map map(*this);
  reader(map);
  map.finish();
}

/// The single document of a file. InputError if it cannot be read, is empty, is not YAML or has several documents.
Node read_file(const std::string& path);
/// The same from a string; `name` stands for the file in messages.
Node parse(const std::string& text, const std::string& name);

/// Text from a command line: errors name it by `name` alone, without line and column.
Node parse_argument(const std::string& text, const std::string& name);
/// The root of `base` with what the root of `over` says instead or besides, key by key; a map of `over` that has the
/// key `whole` replaces the one of `base` as it is. Every value keeps the place where it was read.
Node overlay(const Node& base, const Node& over, std::string_view whole);

/// A copy of `node` as a document of its own, each scalar with the text that `replace` gives for it, if any. Every
/// value keeps the place where it was read; a replaced one is never taken for quoted.
Node rewrite(const Node& node, const std::function<std::optional<std::string>(const Node&)>& replace);

/// A map with `node` behind `key` alone.
Node wrap(const std::string& key, const Node& node);

/// The candidate that is most likely meant by a misspelt name; empty when none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
/// A name for messages: quoted, shortened, control characters replaced.
std::string quoted(std::string_view text);

}  // namespace forewarp::config

// What config::Node reads: a YAML document as a plain tree with positions.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace forewarp::config {

enum class ValueKind { Null, Scalar, List, Map };

struct Value {
  ValueKind kind = ValueKind::Null;
  bool quoted = false;  ///< scalar written in quotes: never a number
  int line = 0, column = 0;
  std::string text;                              ///< Scalar
  std::vector<Value> items;                      ///< List
  std::vector<std::pair<Value, Value>> entries;  ///< Map; keys are scalars and distinct
};

struct Document {
  std::string file;
  Value root;
};

/// Parses exactly one YAML document.
Document parse_document(const std::string& text, const std::string& file);

}  // namespace forewarp::config

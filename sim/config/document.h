// What config::Node reads: a YAML document as a plain tree with positions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace forewarp::config {

enum class ValueKind { Null, Scalar, List, Map };

struct Value {
  ValueKind kind = ValueKind::Null;
  bool quoted = false;     ///< scalar written in quotes: never a number
  std::uint32_t file = 0;  ///< which of the document's files it stands in
  int line = 0, column = 0;
  std::string text;                              ///< Scalar
  std::vector<Value> items;                      ///< List
  std::vector<std::pair<Value, Value>> entries;  ///< Map; keys are scalars and distinct
};

struct Document {
  std::vector<std::string> files;  ///< several where one was laid over another
  Value root;

  SourcePosition place(const Value& value) const { return {files[value.file], value.line, value.column}; }
};

/// Parses exactly one YAML document.
Document parse_document(const std::string& text, const std::string& file);

}  // namespace forewarp::config

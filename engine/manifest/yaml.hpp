// SPDX-License-Identifier: MIT
// Private to manifest/: YAML text to a finite tree of nodes, each with its place. The only user of yaml-cpp.
//
// yaml-cpp takes duplicate keys, several documents, bytes that are no UTF-8, quotes that never end and aliases of what holds
// them, and knows no `<<`. Here one bounded walk over its events refuses the former and resolves the latter: aliases are
// copied within a budget, so what comes out holds no cycle and no bomb.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/problems.hpp"

namespace envsync::manifest {

struct Field;

struct Node {
  enum class Kind : u8 { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;           // scalar
  bool is_plain = false;      // scalar without quotes: true, 3.10
  Mark mark;                  // null as a value: the place of its key
  std::vector<Node> items;    // list
  std::vector<Field> fields;  // map, each key once, `<<` resolved

  bool is_scalar() const { return kind == Kind::scalar; }
  const Field* find(std::string_view key) const;
  Field* find(std::string_view key);
};

struct Field {
  std::string key;
  Mark key_mark;
  Node value;
};

/// Where `text` begins in the text that messages show.
struct Origin {
  u32 text = 0;
  u32 column = 0;  // bytes before it in its first line
};

/// The one document, or nothing if it cannot be read at all; errors are reported. An empty text is a null node.
/// LIMIT: 1 MiB of text, 32 levels, 100,000 nodes and 4 MiB of text after aliases are resolved.
std::optional<Node> read_yaml(std::string_view text, Origin origin, Problems& problems);

}  // namespace envsync::manifest

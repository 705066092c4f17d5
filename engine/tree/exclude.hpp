// SPDX-License-Identifier: MIT
// Which paths are not managed: patterns by gitignore's rules, and bytecode.
#pragma once

#include <string>
#include <vector>

#include <envsync/result.hpp>

#include "tree/path.hpp"

namespace envsync::tree {

enum class Bytecode : u8 { leave_out, ship };

class Exclude {
 public:
  Exclude() = default;
  /// Each pattern as one line of a .gitignore; "!" re-includes. An error names the pattern.
  static Result<Exclude> parse(const std::vector<std::string>& patterns);
  /// Whether the path itself matches; the walk does not descend into an excluded directory, so parents need not be
  /// looked at here. ".envsync*" is excluded at every depth, always.
  bool matches(const RelPath& path, bool is_dir) const;
  const std::vector<std::string>& patterns() const { return patterns_; }

 private:
  std::vector<std::string> patterns_;
  struct Compiled { std::vector<std::string> parts; bool negated = false, dir_only = false, anchored = false; };
  std::vector<Compiled> rules_;
};

/// "__pycache__" as a directory's name.
bool is_pycache_dir(std::string_view name);
/// For "x.pyc" or "x.pyo" beside "x.py": "x.py"; else empty. A sourceless .pyc is a file like others.
std::string source_beside(std::string_view pyc_name);
/// For "m.cpython-312.opt-1.pyc" in a __pycache__: "m"; empty where the name is no bytecode file.
std::string_view module_of_cached(std::string_view cached_name);

}  // namespace envsync::tree

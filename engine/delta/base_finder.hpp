// SPDX-License-Identifier: MIT
// Which file of a tree is likely to be an older version of another.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree/tree.hpp"

namespace envsync::delta {

class BaseFinder {
 public:
  /// Borrows the tree.
  explicit BaseFinder(const tree::Tree& have);
  /// The file at the same path; else the one of the same name, at least half and at most twice as large, whose path has the most in common
  /// with `path`; null: none.
  const tree::Entry* find(const tree::RelPath& path, u64 size) const;

 private:
  const tree::Tree* have_;
  std::unordered_map<std::string_view, std::vector<const tree::Entry*>> by_name_;
};

}  // namespace envsync::delta

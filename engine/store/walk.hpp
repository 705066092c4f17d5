// SPDX-License-Identifier: MIT
// A folder on disk laid against the part of a tree that should be there: each entry is met with its stat, whatever is in only
// one of the two is told. It is how the live tree, the staged and the displaced one are looked at. Private to store.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "os/files.hpp"
#include "tree/exclude.hpp"
#include "tree/tree.hpp"

namespace envsync::store {

/// The entries of each folder of a tree at and below `root`, in order of name. Borrows the tree.
class Children {
 public:
  Children(const tree::Tree& tree, const tree::RelPath& root);
  /// Indexes of the entries in `dir`.
  const std::vector<u32>& of(const tree::RelPath& dir) const;

 private:
  std::unordered_map<std::string_view, std::vector<u32>> children_;
  std::vector<u32> none_;
};

/// One entry on disk. `dir` and `name` reach it.
struct Met {
  const tree::RelPath& path;   // from the environment's root
  const os::Stat& stat;
  int dir;
  const std::string& name;     // one component; "" where the walk's root itself is met as a folder
};

enum class Into : u8 { enter, skip };

struct WalkHooks {
  std::function<Result<void>(u32 index, const Met&)> known;      // in the tree and on disk, perhaps of different kinds
  std::function<Result<void>(u32 index)> missing;                // in the tree only; called for each entry beneath it too
  std::function<Result<Into>(const Met&)> unknown;               // on disk only; folders are entered where it says so
};

/// Walks `at`/`rel`, which stands for `root` of the tree. One folder is open at a time, so depth costs no descriptors.
Result<void> walk_against(int at, const std::string& rel, const tree::Tree& tree, const tree::RelPath& root, const WalkHooks& hooks);

/// What is not managed, for an entry that no scan has seen: the rules of scan::scan.
struct Rules {
  tree::Exclude exclude;
  tree::Bytecode bytecode = tree::Bytecode::leave_out;
  enum class Verdict : u8 { managed, excluded, bytecode, look_inside };
  /// `look_inside`: a folder, which is what its entries are; an empty one is managed.
  Verdict verdict(const Met& met) const;
};

}  // namespace envsync::store

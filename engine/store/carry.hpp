// SPDX-License-Identifier: MIT
// Unmanaged entries of a displaced tree that the live one lacks: made, or made anew, between our link and the exchange. They
// move over by name, so that nobody's log or bytecode is lost with the old tree. Private to store.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/discard.hpp"
#include "store/walk.hpp"

namespace envsync::store {

/// Prefixes, as bytes, of paths whose unmanaged entries do not reach the new tree.
class Dropped {
 public:
  Dropped() = default;
  explicit Dropped(std::vector<std::string> prefixes) : prefixes_(std::move(prefixes)) {}
  bool whole(const tree::RelPath& path, bool is_dir) const;   // it and all beneath it
  bool some_below(const tree::RelPath& dir) const;

 private:
  std::vector<std::string> prefixes_;
};

/// What the build linked: the inode that each unmanaged file's name had then.
using LinkedNames = std::unordered_map<std::string, u64>;

class CarryOver {
 public:
  /// What becomes of a managed entry: the process that exchanged tells it and exchanges back; a later one carries it over.
  enum class Managed : u8 { tell, carry };
  CarryOver(os::Files& files, const Rules& rules, const Dropped& dropped, tree::RelPath commit_root, const Twin& displaced,
            const Twin& live, const LinkedNames& linked, Managed managed);
  /// For an entry of the displaced tree that its managed tree does not have.
  Result<Into> unknown(const Met& met);
  /// After the walk: what was linked and is gone from the displaced tree was deleted meanwhile, and is deleted.
  Result<void> finish();
  /// The first entry that is managed, and so a change of somebody's; empty: none.
  const std::string& difference() const { return difference_; }
  u64 carried() const { return carried_; }

 private:
  enum class Side : u8 { unmanaged, bytecode, open_question, managed };
  Result<Side> side_of(const Met& met);
  Result<Into> folder(const Met& met, Side side);
  Result<void> file(const Met& met, bool is_bytecode);
  Result<void> move(const Met& met, bool is_bytecode);
  Result<bool> parent_is_live(const tree::RelPath& path, bool is_bytecode);
  std::string in(const std::string& side, const tree::RelPath& path) const;

  os::Files& files_;           // these outlive this
  const Rules& rules_;
  const Dropped& dropped_;
  const tree::RelPath commit_root_;
  const Twin displaced_, live_;
  const LinkedNames& linked_;
  const Managed managed_;
  std::unordered_map<std::string, Side> folders_;   // those entered
  std::unordered_set<std::string> seen_;
  std::string difference_;
  u64 carried_ = 0;
};

}  // namespace envsync::store

// SPDX-License-Identifier: MIT
// Private to python/: removal before addition, on trees, once it is known what comes and what leaves.
#pragma once

#include <map>

#include "python/selection.hpp"

namespace envsync::python {

class TreeArithmetic {
 public:
  /// Borrows all of it; run() fills desired, taken, scripts, unmanaged and adds to the findings.
  TreeArithmetic(const DistributionSet& base, const DistributionSet& origin, const Selection& selection, const OverlayOptions& options, Overlay& out);
  Result<void> run();

 private:
  enum class Fate : u8 { stays, leaves, orphaned };  // orphaned: the owner of the content leaves, another owner stays
  struct Addition { std::size_t entry = 0; std::string label; };  // of the origin; the distribution or root that brings it
  struct Tally { u64 files = 0; tree::RelPath first; };       // what one finding counts
  struct Lacking { Tally tally; std::string names; };         // and lists
  using Tallies = std::map<std::pair<std::string, std::string>, Tally>;  // by the two distributions' labels

  static void count(Tallies& tallies, std::string one, std::string other, const tree::RelPath& path);
  void map_sites();
  std::optional<tree::RelPath> target_of(const Installed& one, const tree::RelPath& path) const;
  void remove();
  void find_unmanaged();
  void add();
  void add_entry(u32 owner, const OwnedEntry& owned);
  void meet_base(std::size_t there, const tree::RelPath& path, const Addition& addition);
  void add_missing(u32 owner);
  static void list(Lacking& lacking, const tree::RelPath& path);
  void tell_missing(const Installed& one, const Lacking& lacking, const Lacking& kept);
  void add_root(const std::string& root);
  bool is_root_free(const std::string& root, const std::vector<std::size_t>& entries);
  void add_root_entry(const std::string& root, std::size_t entry, const tree::RelPath& path);
  bool keep_equal_row(std::size_t there, const MissingRow& row);
  void settle_orphans();
  void keep_folders();
  void drop_blocked();
  std::map<tree::RelPath, std::size_t> new_folders();
  Result<void> build();
  void tell();
  void find(std::string_view code, Severity severity, const tree::RelPath& file, std::string what);
  bool is_staying(u32 distribution) const { return !leaves_[distribution]; }
  std::vector<std::string> staying_owners(std::size_t entry) const;

  const DistributionSet &base_, &origin_;
  const Selection& selection_;
  const OverlayOptions& options_;
  Overlay& out_;

  std::vector<bool> leaves_, comes_;               // by distribution
  std::vector<std::size_t> parents_;               // of the base's entries
  std::vector<Fate> fates_;                        // of the base's files and links
  std::vector<bool> has_children_;                 // the base's folders, before
  std::vector<bool> used_;                         // the base's folders that stay
  std::vector<bool> inside_left_;                  // the base's empty folders and unowned files inside what left
  std::map<tree::RelPath, tree::RelPath> sites_;   // of the origin -> of the base
  std::map<tree::RelPath, Addition> additions_;    // by path in the desired tree
  Tallies conflicts_, orphans_, foreign_, differing_, replaced_unowned_, blocked_, root_conflicts_;
};

}  // namespace envsync::python

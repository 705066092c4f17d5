// SPDX-License-Identifier: MIT
// The distributions of a tree with the paths that each owns. RECORD tells what a distribution owns; the tree, what is there.
// What a RECORD claims beyond the environment, or of the environment's own files, is set aside and never owned.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "python/environment.hpp"
#include "python/metadata.hpp"
#include "python/record.hpp"
#include "python/requirement.hpp"
#include "tree/tree.hpp"

namespace envsync::python {

using SmallFiles = std::map<std::string, std::string, std::less<>>;  // path in the tree -> text
using Sums = std::map<std::string, Sha256, std::less<>>;             // path in the tree -> sha256 of what is there

/// The files whose texts DistributionSet::read() uses: METADATA, RECORD and others of every dist-info of the tree.
std::vector<tree::RelPath> wanted_small_files(const tree::Tree& tree);

struct OwnedEntry {
  std::size_t entry = 0;      // of the tree; a file or a link
  std::optional<Sha256> sum;  // as RECORD has them; bytecode and what RECORD does not list have none
  std::optional<u64> size;
};
struct MissingRow {
  tree::RelPath path;
  std::optional<Sha256> sum;
  std::optional<u64> size;
};

struct Installed {
  Distribution about;         // name and version by METADATA, by the folder where there is none
  tree::RelPath site;         // the folder that holds the dist-info
  std::string unreadable;     // why RECORD tells nothing ("no RECORD"); such a distribution can neither leave nor come
  std::vector<RecordProblem> refused;  // rows that are not followed
  std::vector<OwnedEntry> owned;       // in tree order
  std::vector<MissingRow> missing;     // rows whose path the tree lacks, bytecode aside
  std::vector<Requirement> requirements;
  std::vector<std::string> unread_requirements;
  std::vector<std::string> provides_extra;  // normalized
  std::vector<EntryPoint> scripts;
  std::string installer;      // empty where nobody wrote it
  bool editable = false;

  const std::string& name() const { return about.name; }
  std::string label() const { return about.name + (about.version.empty() ? "" : " " + about.version); }
};

class DistributionSet {
 public:
  struct Claim { u32 distribution = 0, owned = 0; };  // index in all(), index in its owned

  /// Borrows the tree, which must outlive it. Files that the map lacks count as absent. `root`: the environment's absolute path,
  /// for absolute rows.
  static DistributionSet read(const tree::Tree& tree, const SmallFiles& files, std::string_view root = {});
  /// As read(), for who asks of few paths: claims of other paths may be missing, and so may `owned`, `missing` and `refused` of
  /// distributions that have none of these. RECORDs in which none of them can be are not parsed.
  static DistributionSet read_about(const tree::Tree& tree, const SmallFiles& files, std::string_view root, const std::vector<tree::RelPath>& paths);

  const tree::Tree& tree() const { return *tree_; }
  const std::vector<Installed>& all() const { return all_; }  // sorted by name
  /// Indexes in all(); several where a name is installed twice.
  std::vector<u32> named(std::string_view name) const;
  /// Who lists the entry, by index in all().
  std::span<const Claim> claims(std::size_t entry) const;
  bool is_unowned_file(std::size_t entry) const { return !tree_->entries()[entry].is_dir() && claims(entry).empty(); }

  /// Paths that several own with different content, where the sizes do not tell whose it is. Their sha256 make effective_owners() exact.
  std::vector<tree::RelPath> contested() const;
  void learn(const Sums& sums);
  /// Those whose row matches what is there, by sha256 where it is known, else by size. Without sha256, rows of the right size
  /// count as matching; so do rows that name no hash where no other row matches. Empty where all rows say something else.
  std::vector<u32> effective_owners(std::size_t entry) const;

 private:
  static DistributionSet read(const tree::Tree& tree, const SmallFiles& files, std::string_view root, const std::vector<std::string>* about);
  void add_claims();

  const tree::Tree* tree_ = nullptr;
  std::vector<Installed> all_;
  std::vector<Claim> claims_;            // by entry
  std::vector<std::size_t> claims_end_;  // of each entry, in claims_
  std::map<std::size_t, Sha256> sums_;   // by entry
};

/// pyvenv.cfg, bin/python*, bin/activate* and lib64: no distribution owns them, whatever its RECORD says.
bool is_environments_own(const tree::RelPath& path);

}  // namespace envsync::python

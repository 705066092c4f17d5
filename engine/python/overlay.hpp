// SPDX-License-Identifier: MIT
// Packages of one environment (the origin) laid onto another (the base), as arithmetic on what RECORDs say is owned:
//   desired = base - owned(distributions that leave) + owned(distributions that come)
// computed on trees before a byte moves. What a distribution that stays owns, with the content that is there, never leaves.
#pragma once

#include <string>
#include <vector>

#include <envsync/event.hpp>
#include <envsync/result.hpp>

#include "python/distribution_set.hpp"

namespace envsync::python {

enum class ClosureRule : u8 { pinned, none };
enum class ConflictRule : u8 { error, overlay, base };
enum class UnmanagedRule : u8 { remove, keep };
enum class IncompleteRule : u8 { refuse, base };

struct OverlayOptions {
  std::vector<std::string> packages;  // names in any spelling, globs, or top-level folders of the origin's site-packages
  ClosureRule closure = ClosureRule::pinned;
  bool evict_auto = true;             // with closure: pinned
  std::vector<std::string> evict;     // names and globs of the base, besides
  std::vector<std::string> roots;     // folders of site-packages, taken whole where no dist-info of the origin owns them
  ConflictRule conflicts = ConflictRule::error;
  UnmanagedRule unmanaged = UnmanagedRule::remove;
  IncompleteRule incomplete = IncompleteRule::refuse;
};

enum class StepKind : u8 { added, replaced, evicted };
/// What happens to one distribution, by name, and why.
struct PackageStep {
  StepKind kind = StepKind::replaced;
  std::string name;
  std::string from_version;  // several installed: "1.0, 2.0"
  std::string to_version;
  std::string why;           // "selected by 'torch'", "torch 2.11.0 pins triton==3.6.0", "only torch 2.9.1 needed it"
};

struct TakenPath {
  tree::RelPath path;         // in the desired tree
  tree::RelPath origin_path;  // in the origin's
};

/// A console script that the origin lacks although RECORD lists it: to be generated from entry_points.txt.
struct MissingScript {
  tree::RelPath path;         // in the desired tree, which does not hold it yet
  tree::RelPath dist_info;    // in the desired tree
  EntryPoint entry_point;
};

struct Overlay {
  tree::Tree desired;
  std::vector<TakenPath> taken;        // sorted; files and links whose entry is the origin's
  std::map<tree::RelPath, std::string> made;  // files whose text is written here, by finish_scripts()
  std::vector<MissingScript> scripts;
  std::vector<PackageStep> packages;   // sorted by name
  std::vector<tree::RelPath> unmanaged;   // files that nobody owned inside what left; removed or kept by the rule
  std::vector<tree::RelPath> rooted;   // what roots brought, or found equal: owned by no distribution, but by this overlay
  std::vector<Finding> findings;       // with an error among them, the tree must not be applied

  bool refused() const;
};

/// Both trees are environments (lib/pythonX.Y/site-packages below the root); stage_as_environment() makes one of a staged folder.
/// `environment`: of the target. Fails on nothing but a bug or a tree over its limits: what is wrong with the packages are findings.
Result<Overlay> lay_over(const DistributionSet& base, const DistributionSet& origin, const OverlayOptions& options, const MarkerEnvironment& environment);

/// The small files of the desired tree, from those of both sides: what the next overlay reads its base from.
SmallFiles small_files_after(const Overlay& overlay, const SmallFiles& base, const SmallFiles& origin);

}  // namespace envsync::python

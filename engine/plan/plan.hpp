// SPDX-License-Identifier: MIT
// Pure: from what the hosts said to what is to be done. No I/O, no clock: the same inputs give the same plan and digest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <envsync/event.hpp>

#include "manifest/manifest.hpp"
#include "python/overlay.hpp"
#include "tree/tree.hpp"

namespace envsync::plan {

/// What the base interpreter's host said of it; asked only where something is to be done.
struct Interpreter {
  std::string program;          // absolute; empty: the tree names none
  bool exists = false;
  int status = 0;               // of running it
  std::string version;          // "3.12", as it said itself
};

/// One target, as scanned. The trees are borrowed for the time of the call.
struct TargetFacts {
  std::string host, path;
  const tree::Tree* observed = nullptr;  // absent: no entries
  content::Digest observed_full;
  content::Digest observed_root;
  bool is_empty_dir = false;
  std::vector<std::string> problems;     // "path: what"
  std::optional<u32> current;            // generation
  content::Digest current_root;
  bool has_drifted = false;              // it is not what `current` records, by the rules of then
  std::vector<std::string> drift;        // what differs, described
  u64 disk_free = ~u64{0}, inodes_free = ~u64{0};
  std::vector<std::string> in_use;
};

/// What the user allows beyond the manifest.
struct Consent {
  bool adopt = false;
  bool delete_many = false;
  bool discard_drift = false;
};

enum class Purpose : u8 { apply, rollback };

struct Inputs {
  const manifest::Manifest* manifest = nullptr;
  Purpose purpose = Purpose::apply;
  const tree::Tree* wanted = nullptr;     // the source's tree, or a record's
  content::Digest wanted_full;
  std::string source_path;                // resolved; for same_path
  TargetFacts target;
  Interpreter interpreter;
  Consent consent;
  const python::DistributionSet *before = nullptr, *after = nullptr;  // of observed and wanted; null: lines go by names
  const std::vector<python::PackageStep>* steps = nullptr;  // of overlays; null: none
  const std::vector<Finding>* findings = nullptr;          // of the arithmetic of overlays; null: none
};

enum class Need : u8 { adopt, discard_drift, delete_many };
/// A refusal that a person or a flag may lift.
struct Refusal {
  Error error;
  std::optional<Need> lifted_by;
};

struct HostPlan {
  tree::Tree desired;
  std::vector<tree::Change> changes;      // borrow `desired` and Inputs::target.observed
  tree::RelPath commit_root;
  std::vector<std::string> drop_unmanaged;
  std::vector<PackageLine> packages;
  u64 packages_unchanged = 0;
  std::vector<PathLine> paths;
  u64 added = 0, removed = 0, changed = 0, metadata = 0;
  u64 bytes_wanted = 0;                   // contents that the live tree does not hold
  u64 disk_needed = 0, inodes_needed = 0;
  std::vector<Refusal> refusals;
  std::vector<Finding> findings;
  std::vector<bool> accept_used;          // by entry of the manifest's `accept`
  content::Digest digest;
};

/// The tree that the target should have: the wanted one, where an unchanged file keeps its mtime unless mtime is strict, and
/// under owner: agent every entry the owner that it will have there.
tree::Tree desired_tree(const tree::Tree& wanted, const tree::Tree& observed, const manifest::Settings& settings,
                        const tree::ComparePolicy& policy);
/// The smallest directory that exists on both sides, contains every change, and every member of a hard-link group of
/// which one changes. The root where the environment is absent.
tree::RelPath commit_root(const tree::Tree& observed, const tree::Tree& desired, const std::vector<tree::Change>& changes);

HostPlan make_plan(const Inputs& inputs);

/// The program behind bin/python of a tree: the first absolute link on the way, or `home` of pyvenv.cfg with pythonX.Y;
/// empty where neither names one. `pyvenv`: the file's text.
std::string base_interpreter(const tree::Tree& tree, std::string_view pyvenv);

}  // namespace envsync::plan

// SPDX-License-Identifier: MIT
#include "plan/plan.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "plan/refuse.hpp"
#include "python/package_lines.hpp"
#include "tree/staged_space.hpp"

namespace envsync::plan {

namespace {

using tree::Change;
using tree::ChangeKind;
using tree::Entry;
using tree::RelPath;
using tree::Tree;

/// The directory in which a change shows: itself for a directory whose metadata changes, else its parent.
RelPath place_of(const Change& change) {
  const Entry& entry = change.to != nullptr ? *change.to : *change.from;
  const bool is_kept_dir = change.from != nullptr && change.to != nullptr && change.from->is_dir() && change.to->is_dir();
  return is_kept_dir ? entry.path : entry.path.parent();
}

RelPath common(const RelPath& a, const RelPath& b) {
  RelPath at = a;
  while (!at.contains(b)) at = at.parent();
  return at;
}

/// Paths of every hard-link group of `tree` of which `touched` names a member.
void add_groups(const Tree& tree, const std::unordered_set<std::string>& touched, std::vector<RelPath>& places) {
  std::unordered_set<u32> groups;
  for (const Entry& entry : tree.entries()) {
    const tree::File* file = entry.file();
    if (file != nullptr && file->link_group != 0 && touched.contains(entry.path.bytes())) groups.insert(file->link_group);
  }
  if (groups.empty()) return;
  for (const Entry& entry : tree.entries()) {
    const tree::File* file = entry.file();
    if (file != nullptr && groups.contains(file->link_group)) places.push_back(entry.path.parent());
  }
}

PathLine line_of(const Change& change) {
  PathLine line;
  const Entry& entry = change.to != nullptr ? *change.to : *change.from;
  line.path = entry.path.bytes();
  line.bytes = entry.file() != nullptr ? entry.file()->size : 0;
  switch (change.kind) {
    case ChangeKind::added: line.kind = '+'; break;
    case ChangeKind::removed: line.kind = '-'; break;
    case ChangeKind::content: line.kind = '~'; break;
    case ChangeKind::metadata: line.kind = 'm'; break;
    case ChangeKind::type: line.kind = 't'; break;
  }
  return line;
}

void count_changes(HostPlan& plan, const Tree& observed) {
  auto held = tree::held_contents(observed, plan.changes);
  tree::StagedSpace needed;
  for (const Change& change : plan.changes) {
    plan.paths.push_back(line_of(change));
    switch (change.kind) {
      case ChangeKind::added: ++plan.added; break;
      case ChangeKind::removed: ++plan.removed; break;
      case ChangeKind::content:
      case ChangeKind::type: ++plan.changed; break;
      case ChangeKind::metadata: ++plan.metadata; break;
    }
    const tree::File* file = change.to != nullptr ? change.to->file() : nullptr;
    if (file == nullptr) continue;
    // Every changed file is a new inode, be its content there already or not.
    needed.add_file(file->size);
    if (held.insert(file->content()).second) plan.bytes_wanted += file->size;
  }
  // Directories below the commit root are made anew; what stays in them is linked.
  for (const Entry& entry : plan.desired.entries())
    if (entry.is_dir() && plan.commit_root.contains(entry.path)) needed.add_folder();
  plan.disk_needed = needed.bytes;
  plan.inodes_needed = needed.inodes;
}

/// A step of an overlay says why its package moves.
void say_why(const Inputs& inputs, HostPlan& plan) {
  if (inputs.steps == nullptr) return;
  for (PackageLine& line : plan.packages)
    for (const python::PackageStep& step : *inputs.steps)
      if (step.name == line.name) line.why = step.why;
}

content::Digest plan_digest(const Inputs& inputs, const HostPlan& plan) {
  Bytes bytes;
  put_string(bytes, inputs.target.host);
  put_string(bytes, inputs.target.path);
  for (const content::Digest& digest : {inputs.wanted_full, inputs.target.observed_full, plan.desired.full()})
    bytes.insert(bytes.end(), digest.bytes.begin(), digest.bytes.end());
  put_string(bytes, plan.commit_root.bytes());
  return content::digest_of(bytes);
}

}  // namespace

Tree desired_tree(const Tree& wanted, const Tree& observed, const manifest::Settings& settings, const tree::ComparePolicy& policy) {
  if (observed.is_absent()) return wanted;
  const bool keeps_mtimes = settings.mtime != manifest::MtimeRule::strict;
  const bool keeps_owners = settings.owner == manifest::OwnerRule::agent;
  const tree::Owner usual = observed.entries().front().owner;
  struct Kept { tree::Owner owner; i64 mtime_ns = 0; };
  const auto kept = [&](const Entry& entry, const Entry* there) {
    Kept out{entry.owner, entry.mtime_ns};
    if (keeps_owners) out.owner = there != nullptr ? there->owner : usual;
    if (!keeps_mtimes || entry.file() == nullptr || there == nullptr || there->file() == nullptr) return out;
    if (tree::same_content(*there, entry) && tree::same_metadata(*there, entry, policy)) out.mtime_ns = there->mtime_ns;
    return out;
  };
  // Mostly nothing differs in these, and no entry has to be copied.
  std::vector<std::pair<std::size_t, Kept>> others;
  auto at = observed.entries().begin();
  for (std::size_t i = 0; i < wanted.entries().size(); ++i) {
    const Entry& entry = wanted.entries()[i];
    while (at != observed.entries().end() && at->path < entry.path) ++at;
    const Kept want = kept(entry, at != observed.entries().end() && at->path == entry.path ? &*at : nullptr);
    if (want.owner != entry.owner || want.mtime_ns != entry.mtime_ns) others.emplace_back(i, want);
  }
  if (others.empty()) return wanted;
  std::vector<Entry> entries(wanted.entries().begin(), wanted.entries().end());
  for (const auto& [index, want] : others) {
    entries[index].owner = want.owner;
    entries[index].mtime_ns = want.mtime_ns;
  }
  auto tree = Tree::from_unsorted(std::move(entries));
  ENVSYNC_CHECK(tree.has_value());
  return std::move(*tree);
}

RelPath commit_root(const Tree& observed, const Tree& desired, const std::vector<Change>& changes) {
  if (observed.is_absent() || changes.empty()) return {};
  std::vector<RelPath> places;
  std::unordered_set<std::string> touched;
  for (const Change& change : changes) {
    places.push_back(place_of(change));
    touched.insert((change.to != nullptr ? change.to : change.from)->path.bytes());
  }
  add_groups(observed, touched, places);
  add_groups(desired, touched, places);
  RelPath root = places.front();
  for (const RelPath& place : places) root = common(root, place);
  const auto is_dir_in = [&](const Tree& tree) {
    const Entry* entry = tree.find(root);
    return entry != nullptr && entry->is_dir();
  };
  while (!is_dir_in(observed) || !is_dir_in(desired)) root = root.parent();
  return root;
}

HostPlan make_plan(const Inputs& inputs) {
  const manifest::Manifest& manifest = *inputs.manifest;
  const tree::ComparePolicy policy = manifest.compare_policy();
  const Tree& observed = *inputs.target.observed;
  HostPlan plan;
  plan.desired = desired_tree(*inputs.wanted, observed, manifest.settings, policy);
  plan.changes = tree::diff(observed, plan.desired, policy);
  plan.commit_root = commit_root(observed, plan.desired, plan.changes);
  plan.drop_unmanaged = python::stale_bytecode(plan.changes);
  count_changes(plan, observed);
  const bool is_exact = inputs.before != nullptr && inputs.after != nullptr;
  python::PackageChanges packages = is_exact ? python::package_changes(*inputs.before, *inputs.after, plan.changes)
                                             : python::package_changes(observed, plan.desired, plan.changes);
  plan.packages = std::move(packages.lines);
  plan.packages_unchanged = packages.unchanged;
  say_why(inputs, plan);
  plan.digest = plan_digest(inputs, plan);
  refuse(inputs, plan);
  return plan;
}

std::string base_interpreter(const Tree& tree, std::string_view pyvenv) {
  RelPath at = *RelPath::parse("bin/python");
  for (int hops = 0; hops < 8; ++hops) {
    const Entry* entry = tree.find(at);
    if (entry == nullptr || entry->symlink() == nullptr) break;
    const std::string& target = entry->symlink()->target;
    if (target.starts_with('/')) return target;
    const auto next = tree::RelPath::parse(at.parent().is_root() ? target : at.parent().bytes() + "/" + target);
    if (!next) break;
    at = *next;
  }
  const auto cfg = python::parse_pyvenv(pyvenv);
  const auto home = cfg.find("home");
  if (home == cfg.end() || !home->second.starts_with('/')) return {};
  const std::string version = python::pyvenv_version(cfg);
  return home->second + "/python" + (version.empty() ? "3" : version);
}

}  // namespace envsync::plan

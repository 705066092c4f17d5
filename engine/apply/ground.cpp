// SPDX-License-Identifier: MIT
#include "apply/ground.hpp"

#include <map>

namespace envsync::apply {

using tree::Change;
using tree::ChangeKind;
using tree::Entry;
using tree::RelPath;
using tree::Tree;

namespace {

using Entries = std::map<RelPath, const Entry*>;

const RelPath& path_of(const Change& change) { return (change.to != nullptr ? change.to : change.from)->path; }

std::set<RelPath> changed_paths(const Tree& from, const Tree& to, const tree::ComparePolicy& policy) {
  std::set<RelPath> out;
  for (const Change& change : tree::diff(from, to, policy)) out.insert(path_of(change));
  return out;
}

/// Folders above what came, as they are there; what lies below something that is no folder any more goes.
void mend(Entries& entries, const Tree& there) {
  for (auto at = entries.begin(); at != entries.end(); ++at)
    for (RelPath up = at->first.parent(); !up.is_root() && !entries.contains(up); up = up.parent())
      if (const Entry* folder = there.find(up); folder != nullptr && folder->is_dir()) entries.emplace(up, folder);
  for (auto at = entries.begin(); at != entries.end();) {
    const auto above = entries.find(at->first.parent());
    const bool is_held = at->first.is_root() || (above != entries.end() && above->second->is_dir());
    at = is_held ? std::next(at) : entries.erase(at);
  }
}

}  // namespace

Result<Tree> ground_now(const TargetTrees& trees, const tree::ComparePolicy& policy, const std::set<RelPath>& without) {
  const std::set<RelPath> overlaid = changed_paths(*trees.ground, *trees.recorded, policy);
  Entries entries;
  for (const Entry& entry : trees.ground->entries()) entries.emplace(entry.path, &entry);
  for (const Change& change : tree::diff(*trees.recorded, *trees.then, policy)) {
    if (overlaid.contains(path_of(change)) || without.contains(path_of(change))) continue;
    if (change.to != nullptr) entries.insert_or_assign(change.to->path, change.to);
    else entries.erase(change.from->path);
  }
  if (trees.then != trees.now) {
    for (const Entry& entry : trees.now->entries())
      if (trees.then->find(entry.path) == nullptr) entries.insert_or_assign(entry.path, &entry);
    for (const Entry& entry : trees.then->entries())
      if (trees.now->find(entry.path) == nullptr) entries.erase(entry.path);
  }
  mend(entries, *trees.now);
  // Groups of the one tree are not those of the other.
  constexpr u32 kThere = 1u << 31;
  const auto ground = trees.ground->entries();
  std::vector<Entry> out;
  out.reserve(entries.size());
  for (const auto& [path, entry] : entries) {
    out.push_back(*entry);
    const bool is_of_ground = entry >= ground.data() && entry < ground.data() + ground.size();
    tree::File* file = std::get_if<tree::File>(&out.back().body);
    if (!is_of_ground && file != nullptr && file->link_group != 0) file->link_group |= kThere;
  }
  return Tree::from_unsorted(std::move(out));
}

std::vector<std::pair<char, RelPath>> discarded_drift(const TargetTrees& trees, const Tree& desired, const tree::ComparePolicy& policy) {
  std::vector<std::pair<char, RelPath>> out;
  for (const Change& change : tree::diff(*trees.recorded, *trees.then, policy)) {
    const Entry* after = desired.find(path_of(change));
    const bool is_kept = change.to == nullptr ? after == nullptr
                                              : after != nullptr && tree::same_content(*after, *change.to) && tree::same_metadata(*after, *change.to, policy);
    if (is_kept) continue;
    out.emplace_back(change.kind == ChangeKind::added ? '+' : change.kind == ChangeKind::removed ? '-' : '~', path_of(change));
  }
  return out;
}

}  // namespace envsync::apply

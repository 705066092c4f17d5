// SPDX-License-Identifier: MIT
#include "python/package_lines.hpp"

#include <algorithm>
#include <unordered_set>

namespace envsync::python {
namespace {

using Versions = std::map<std::string, std::string>;  // by name; several of one name: "1.0, 2.0"

Versions versions_of(const DistributionSet& set) {
  Versions out;
  for (const Installed& one : set.all()) {
    std::string& versions = out[one.name()];
    versions += (versions.empty() ? "" : ", ") + one.about.version;
  }
  return out;
}

/// Empty where nobody owns the path. Of several, the one whose content is there.
std::string owner_of(const DistributionSet& set, const tree::RelPath& path) {
  const auto entry = set.tree().index_of(path);
  if (!entry) return {};
  const std::vector<u32> owners = set.effective_owners(*entry);
  if (!owners.empty()) return set.all()[owners.front()].name();
  const auto claims = set.claims(*entry);
  return claims.empty() ? std::string() : set.all()[claims.front().distribution].name();
}

PackageChange kind_of(const Versions& from, const Versions& to, const std::string& name, bool is_content_changed) {
  const auto before = from.find(name), after = to.find(name);
  if (name.empty()) return PackageChange::changed;
  if (before == from.end()) return PackageChange::added;
  if (after == to.end()) return PackageChange::removed;
  if (before->second != after->second) return PackageChange::changed;
  return is_content_changed ? PackageChange::rebuilt : PackageChange::changed;
}

}  // namespace

PackageChanges package_changes(const DistributionSet& from, const DistributionSet& to, const std::vector<tree::Change>& changes) {
  const Versions from_versions = versions_of(from), to_versions = versions_of(to);
  auto held = tree::held_contents(from.tree(), changes);
  struct Tally { u64 files = 0, bytes = 0; bool is_content_changed = false; };
  std::map<std::string, Tally> tallies;
  for (const tree::Change& change : changes) {
    const tree::Entry& entry = change.to != nullptr ? *change.to : *change.from;
    if (entry.is_dir()) continue;
    Tally& tally = tallies[owner_of(change.to != nullptr ? to : from, entry.path)];
    ++tally.files;
    tally.is_content_changed |= change.kind != tree::ChangeKind::metadata;
    const tree::File* file = change.to != nullptr ? change.to->file() : nullptr;
    // A content counts once, where it comes first: it is sent once.
    if (file != nullptr && held.insert(file->content()).second) tally.bytes += file->size;
  }
  // A distribution may go or come without a path of its own that changes: all it had is another's now.
  for (const auto* versions : {&from_versions, &to_versions})
    for (const auto& [name, version] : *versions)
      if (kind_of(from_versions, to_versions, name, false) != PackageChange::changed) tallies.try_emplace(name);
  PackageChanges out;
  for (const auto& [name, tally] : tallies) {
    const auto before = from_versions.find(name), after = to_versions.find(name);
    out.lines.push_back({.kind = kind_of(from_versions, to_versions, name, tally.is_content_changed), .name = name,
                         .from_version = before == from_versions.end() ? "" : before->second,
                         .to_version = after == to_versions.end() ? "" : after->second, .files = tally.files, .bytes = tally.bytes, .why = {}});
  }
  out.unchanged = static_cast<u64>(std::ranges::count_if(to_versions, [&tallies](const auto& v) { return !tallies.contains(v.first); }));
  return out;
}

}  // namespace envsync::python

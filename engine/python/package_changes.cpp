// SPDX-License-Identifier: MIT
// Which package a changed path belongs to. Names decide: RECORD, which knows, is content and not in a tree. So what no
// name tells (yaml belongs to PyYAML) stays in the line without a name rather than in a wrong one.
#include "python/environment.hpp"

#include "python/site_packages.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace envsync::python {
namespace {

using Versions = std::map<std::string, std::string>;  // by name; several of one name: "1.0, 2.0"

Versions versions_of(const tree::Tree& tree) {
  Versions out;
  for (const Distribution& d : distributions(tree)) {
    std::string& versions = out[d.name];
    versions += (versions.empty() ? "" : ", ") + d.version;
  }
  return out;
}

/// "numpy.libs" -> "numpy", "six.py" -> "six", "_cffi_backend.cpython-311-x86_64-linux-gnu.so" -> "_cffi_backend".
std::string_view stem_of(std::string_view top, bool is_file) {
  constexpr std::string_view kLibs = ".libs";
  if (!is_file && top.ends_with(kLibs)) return top.substr(0, top.size() - kLibs.size());
  return is_file ? top.substr(0, top.find('.')) : top;
}

std::string without_leading_dash(std::string name) { return name.starts_with('-') ? name.substr(1) : name; }

class Owners {
 public:
  /// Of one of two trees, whose distributions have these versions.
  Owners(const Versions& versions, const std::vector<tree::Change>& changes) {
    for (const auto& [name, version] : versions) names_.insert(name);
    for (const tree::Change& change : changes) {
      const auto item = site_item((change.to != nullptr ? change.to : change.from)->path.bytes());
      auto info = item ? info_of(item->top()) : std::nullopt;
      if (info && names_.contains(*info)) touched_.insert(*std::move(info));
    }
  }

  /// The name of the distribution that owns the path; empty where no name tells.
  const std::string& of(std::string_view path) {
    static const std::string kNobody;
    const auto item = site_item(path);
    if (!item) return kNobody;
    const std::string_view top = item->top();
    const auto by_top = tops_.find(std::string(top));
    if (by_top != tops_.end()) return by_top->second;
    const bool is_file = top.size() == item->below.size();
    if (auto name = find_by_top(top, is_file)) return tops_.emplace(std::string(top), *std::move(name)).first->second;
    // Three folders name a namespace package at most: google/cloud/storage.
    std::size_t end = 0;
    for (int depth = 0; depth < 3 && end != std::string_view::npos; ++depth) end = item->below.find('/', end + (depth > 0 ? 1 : 0));
    const std::string_view key = item->below.substr(0, end);
    const auto found = cache_.find(std::string(key));
    if (found != cache_.end()) return found->second;
    return cache_.emplace(std::string(key), find(key, end == std::string_view::npos)).first->second;
  }

 private:
  static std::optional<std::string> info_of(std::string_view top) {
    auto info = distribution_named(top);
    if (!info) return std::nullopt;
    return std::move(info->name);
  }

  /// A dist-info itself, or a folder or module of a distribution's own name.
  std::optional<std::string> find_by_top(std::string_view top, bool is_file) const {
    if (auto info = info_of(top)) return info;
    const std::string first = normalize_name(stem_of(top, is_file));
    for (const std::string& name : {first, without_leading_dash(first)}) {
      if (names_.contains(name)) return name;
    }
    return std::nullopt;
  }

  /// `key`: up to three components; `ends_in_file`: its last one is the file itself.
  std::string find(std::string_view key, bool ends_in_file) const {
    const std::string_view top = key.substr(0, key.find('/'));
    const std::string first = normalize_name(stem_of(top, ends_in_file && top.size() == key.size()));
    // Folders of a namespace package, the longest name last: ruamel/yaml is ruamel.yaml.
    std::vector<std::string> joined{first};
    for (std::size_t at = key.find('/'); at != std::string_view::npos; at = key.find('/', at + 1)) {
      const std::size_t end = key.find('/', at + 1);
      if (end == std::string_view::npos && ends_in_file) break;
      joined.push_back(joined.back() + "-" + normalize_name(key.substr(at + 1, end == std::string_view::npos ? end : end - at - 1)));
      if (names_.contains(joined.back())) return joined.back();
    }
    for (auto name = joined.rbegin(); name != joined.rend(); ++name) {
      if (auto near = only_touched_like(*name); !near.empty()) return near;
    }
    return {};
  }

  /// The one distribution whose dist-info changes and whose name goes on from `folder`, or is its python-: nvidia/cublas
  /// is nvidia-cublas-cu12, dateutil is python-dateutil. Empty where there is none, or more than one.
  std::string only_touched_like(const std::string& folder) const {
    const auto in_python = touched_.find("python-" + folder);
    const std::string begin = folder + "-";
    const auto first = touched_.lower_bound(begin);
    if (first == touched_.end() || !first->starts_with(begin)) return in_python == touched_.end() ? std::string() : *in_python;
    const auto second = std::next(first);
    const bool is_only = (second == touched_.end() || !second->starts_with(begin)) && in_python == touched_.end();
    return is_only ? *first : std::string();
  }

  std::unordered_set<std::string> names_;
  std::set<std::string> touched_;
  std::unordered_map<std::string, std::string> tops_;   // top-level name to owner, where it tells
  std::unordered_map<std::string, std::string> cache_;  // up to three components to owner, where it does not
};

std::string version_in(const Versions& versions, const std::string& name) {
  const auto found = versions.find(name);
  return found == versions.end() ? std::string() : found->second;
}

PackageChange kind_of(const Versions& from, const Versions& to, const std::string& name, bool is_content_changed) {
  if (name.empty()) return PackageChange::changed;
  if (!from.contains(name)) return PackageChange::added;
  if (!to.contains(name)) return PackageChange::removed;
  if (version_in(from, name) != version_in(to, name)) return PackageChange::changed;
  return is_content_changed ? PackageChange::rebuilt : PackageChange::changed;
}

}  // namespace

PackageChanges package_changes(const tree::Tree& from, const tree::Tree& to, const std::vector<tree::Change>& changes) {
  const Versions from_versions = versions_of(from), to_versions = versions_of(to);
  Owners before(from_versions, changes), after(to_versions, changes);
  auto held = tree::held_contents(from, changes);
  struct Tally { u64 files = 0, bytes = 0; bool is_content_changed = false; };
  std::map<std::string, Tally> tallies;
  for (const tree::Change& change : changes) {
    const tree::Entry& entry = change.to != nullptr ? *change.to : *change.from;
    if (entry.is_dir()) continue;
    Tally& tally = tallies[(change.to != nullptr ? after : before).of(entry.path.bytes())];
    ++tally.files;
    tally.is_content_changed |= change.kind != tree::ChangeKind::metadata;
    const tree::File* file = change.to != nullptr ? change.to->file() : nullptr;
    // A content counts once, where it comes first: it is sent once.
    if (file != nullptr && held.insert(file->content()).second) tally.bytes += file->size;
  }
  PackageChanges out;
  for (const auto& [name, tally] : tallies) {
    out.lines.push_back({.kind = kind_of(from_versions, to_versions, name, tally.is_content_changed), .name = name,
                         .from_version = version_in(from_versions, name), .to_version = version_in(to_versions, name),
                         .files = tally.files, .bytes = tally.bytes});
  }
  out.unchanged = static_cast<u64>(std::ranges::count_if(to_versions, [&tallies](const auto& v) { return !tallies.contains(v.first); }));
  return out;
}

}  // namespace envsync::python

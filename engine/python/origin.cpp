// SPDX-License-Identifier: MIT
#include "python/origin.hpp"

#include "python/site_packages.hpp"

#include <algorithm>

namespace envsync::python {

OriginShape shape_of(const tree::Tree& tree) {
  if (tree.entries().size() < 2) return OriginShape::nothing;
  if (!sites_of(tree).empty()) return OriginShape::environment;
  bool has_wheel = false, has_dist_info = false;
  for (const tree::Entry& entry : tree.entries()) {
    if (!entry.path.parent().is_root()) continue;
    has_wheel = has_wheel || (entry.file() != nullptr && entry.path.name().ends_with(".whl"));
    has_dist_info = has_dist_info || (entry.is_dir() && entry.path.name().ends_with(".dist-info"));
  }
  return has_wheel && !has_dist_info ? OriginShape::wheels : OriginShape::packages;
}

std::optional<tree::RelPath> site_of(const tree::Tree& environment) {
  const std::vector<tree::RelPath> sites = sites_of(environment);
  if (sites.size() != 1) return std::nullopt;
  return sites.front();
}

Result<tree::Tree> stage_as_environment(const tree::Tree& folder, const tree::RelPath& site) {
  std::vector<tree::Entry> entries;
  if (folder.is_absent()) return tree::Tree{};
  entries.reserve(folder.entries().size() + 4);
  for (const tree::Entry& entry : folder.entries()) {
    entries.push_back(entry);
    entries.back().path = site.join(entry.path);
  }
  constexpr u32 kFolderMode = 0755;
  for (tree::RelPath up = site; !up.is_root();) {
    up = up.parent();
    entries.push_back({.path = up, .mode = kFolderMode, .mtime_ns = 0, .owner = {}, .xattrs = {}, .body = tree::Dir{}});
  }
  return tree::Tree::from_unsorted(std::move(entries));
}

SmallFiles stage_as_environment(const SmallFiles& files, const tree::RelPath& site) {
  SmallFiles out;
  for (const auto& [path, text] : files) out.emplace(site.bytes() + "/" + path, text);
  return out;
}

}  // namespace envsync::python

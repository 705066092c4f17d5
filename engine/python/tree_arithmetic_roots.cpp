// SPDX-License-Identifier: MIT
// Folders taken whole from an origin that has no dist-info for them.
#include "python/tree_arithmetic.hpp"

#include "python/site_packages.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace envsync::python {

void TreeArithmetic::add_root(const std::string& root) {
  const auto folder = tree::RelPath::parse(root);
  bool is_found = false;
  for (const auto& [from, to] : sites_) {
    if (!folder || folder->is_root()) break;
    const std::vector<std::size_t> below = origin_.tree().below(from.join(*folder));
    is_found = is_found || !below.empty();
    if (below.empty() || !is_root_free(root, below)) continue;
    // Taken whole: what nobody owned there goes as inside a replaced package.
    for (const std::size_t old : base_.tree().below(to.join(*folder))) {
      if (!base_.is_unowned_file(old) || inside_left_[old]) continue;
      inside_left_[old] = true;
      out_.unmanaged.push_back(base_.tree().entries()[old].path);
      if (options_.unmanaged == UnmanagedRule::remove) fates_[old] = Fate::leaves;
    }
    for (const std::size_t entry : below) {
      const tree::Entry& taken = origin_.tree().entries()[entry];
      if (!taken.is_dir()) add_root_entry(root, entry, to.join(from.relative(taken.path)));
    }
  }
  if (!is_found) find("root_not_found", Severity::error, {}, fmt::format("the root '{}' is not in the origin's site-packages", printable(root)));
}

bool TreeArithmetic::is_root_free(const std::string& root, const std::vector<std::size_t>& entries) {
  std::set<u32> owners;
  for (const std::size_t entry : entries)
    for (const DistributionSet::Claim& claim : origin_.claims(entry)) owners.insert(claim.distribution);
  for (const u32 owner : owners) {
    const Installed& one = origin_.all()[owner];
    find("root_owned", Severity::error, one.about.folder, fmt::format("'{}' owns files below the root '{}' in the origin", one.label(), printable(root)));
  }
  return owners.empty();
}

/// A distribution that stays may have equal files there, or none of the same path.
void TreeArithmetic::add_root_entry(const std::string& root, std::size_t entry, const tree::RelPath& path) {
  const auto there = base_.tree().index_of(path);
  const bool is_kept = there && !base_.tree().entries()[*there].is_dir() && fates_[*there] != Fate::leaves;
  const std::vector<std::string> staying = is_kept ? staying_owners(*there) : std::vector<std::string>{};
  if (!staying.empty()) {
    const bool is_same = tree::same_content(base_.tree().entries()[*there], origin_.tree().entries()[entry]);
    if (is_same) out_.rooted.push_back(path);
    for (const std::string& owner : staying)
      if (!is_same) count(root_conflicts_, owner, root, path);
    return;
  }
  if (there) fates_[*there] = Fate::leaves;
  if (additions_.emplace(path, Addition{entry, root}).second) out_.rooted.push_back(path);
}

}  // namespace envsync::python

// SPDX-License-Identifier: MIT
#include "python/tree_arithmetic.hpp"

#include "python/site_packages.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace envsync::python {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// The index of each entry's parent.
std::vector<std::size_t> parents_of(const tree::Tree& tree) {
  std::vector<std::size_t> out(tree.entries().size(), kNone);
  std::map<std::string_view, std::size_t> folders;
  for (std::size_t i = 0; i < tree.entries().size(); ++i) {
    const std::string_view path = tree.entries()[i].path.bytes();
    if (!path.empty()) {
      const std::size_t slash = path.rfind('/');
      out[i] = folders.at(slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
    }
    if (tree.entries()[i].is_dir()) folders.emplace(path, i);
  }
  return out;
}

}  // namespace

TreeArithmetic::TreeArithmetic(const DistributionSet& base, const DistributionSet& origin, const Selection& selection, const OverlayOptions& options,
                               Overlay& out)
    : base_(base), origin_(origin), selection_(selection), options_(options), out_(out) {
  const std::size_t entries = base.tree().entries().size();
  leaves_.assign(base.all().size(), false);
  comes_.assign(origin.all().size(), false);
  for (const Move& move : selection.leaving) leaves_[move.index] = true;
  for (const Move& move : selection.coming) comes_[move.index] = true;
  fates_.assign(entries, Fate::stays);
  used_.assign(entries, false);
  inside_left_.assign(entries, false);
  has_children_.assign(entries, false);
}

Result<void> TreeArithmetic::run() {
  parents_ = parents_of(base_.tree());
  map_sites();
  remove();
  find_unmanaged();
  add();
  for (const std::string& root : options_.roots) add_root(root);
  settle_orphans();
  keep_folders();
  drop_blocked();
  tell();
  return build();
}

/// Packages go where the base has its own: lib/python3.12 onto lib/python3.12, whichever of lib and lib64 either side says.
void TreeArithmetic::map_sites() {
  const std::vector<tree::RelPath> there = sites_of(base_.tree());
  std::set<tree::RelPath> needed, missing;
  for (const Move& move : selection_.coming) needed.insert(origin_.all()[move.index].site);
  if (!options_.roots.empty())
    for (const tree::RelPath& site : sites_of(origin_.tree())) needed.insert(site);
  for (const tree::RelPath& site : needed) {
    auto found = std::ranges::find(there, site);
    if (found == there.end()) found = std::ranges::find_if(there, [&](const tree::RelPath& path) { return path.parent().name() == site.parent().name(); });
    if (found == there.end() && is_of_any_python(site)) found = there.begin();
    if (found != there.end()) sites_.emplace(site, *found);
    else missing.insert(site);
  }
  for (const tree::RelPath& site : missing) {
    find("python_mismatch", Severity::error, site,
         fmt::format("the origin's packages lie in '{}', the base's in '{}'", printable(site.bytes()), there.empty() ? "no site-packages" : printable(there.front().bytes())));
  }
}

void TreeArithmetic::count(Tallies& tallies, std::string one, std::string other, const tree::RelPath& path) {
  Tally& tally = tallies[{std::move(one), std::move(other)}];
  if (tally.files++ == 0) tally.first = path;
}

std::optional<tree::RelPath> TreeArithmetic::target_of(const Installed& one, const tree::RelPath& path) const {
  const auto site = sites_.find(one.site);
  if (site == sites_.end()) return std::nullopt;
  return site->first.contains(path) ? site->second.join(site->first.relative(path)) : with_headers_moved(path, site->first, site->second);
}

void TreeArithmetic::remove() {
  for (const Move& move : selection_.leaving) {
    for (const OwnedEntry& owned : base_.all()[move.index].owned) {
      const auto claims = base_.claims(owned.entry);
      const bool is_shared = std::ranges::any_of(claims, [&](const auto& claim) { return is_staying(claim.distribution); });
      if (!is_shared) {
        fates_[owned.entry] = Fate::leaves;
        continue;
      }
      const std::vector<u32> effective = base_.effective_owners(owned.entry);
      const auto stays = [&](u32 owner) { return is_staying(owner); };
      // Content of nobody is no worse after the plan than before it.
      if (!effective.empty() && std::ranges::none_of(effective, stays)) fates_[owned.entry] = Fate::orphaned;
    }
  }
}

/// What nobody owns lies inside what left where the nearest folder above that holds owned files holds files of it alone.
void TreeArithmetic::find_unmanaged() {
  const auto& entries = base_.tree().entries();
  std::vector<bool> has_owned(entries.size(), false), has_staying(entries.size(), false);
  const auto mark_up = [&](std::vector<bool>& marks, std::size_t at) {
    for (at = parents_[at]; at != kNone && !marks[at]; at = parents_[at]) marks[at] = true;
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (parents_[i] != kNone) has_children_[parents_[i]] = true;
    const auto claims = base_.claims(i);
    if (claims.empty()) continue;
    mark_up(has_owned, i);
    if (std::ranges::any_of(claims, [&](const auto& claim) { return is_staying(claim.distribution); })) mark_up(has_staying, i);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_empty_folder = entries[i].is_dir() && !has_children_[i];
    if (!is_empty_folder && !base_.is_unowned_file(i)) continue;
    std::size_t above = parents_[i];
    while (above != kNone && site_item(entries[above].path.bytes()) && !has_owned[above]) above = parents_[above];
    if (above == kNone || !site_item(entries[above].path.bytes()) || has_staying[above]) continue;
    inside_left_[i] = true;
    if (is_empty_folder) continue;
    out_.unmanaged.push_back(entries[i].path);
    if (options_.unmanaged == UnmanagedRule::remove) fates_[i] = Fate::leaves;
  }
}

void TreeArithmetic::add() {
  for (const Move& move : selection_.coming) {
    for (const OwnedEntry& owned : origin_.all()[move.index].owned) add_entry(move.index, owned);
    add_missing(move.index);
  }
}

void TreeArithmetic::add_entry(u32 owner, const OwnedEntry& owned) {
  const Installed& one = origin_.all()[owner];
  const tree::Entry& entry = origin_.tree().entries()[owned.entry];
  const auto path = target_of(one, entry.path);
  if (!path) return;
  const std::vector<u32> effective = origin_.effective_owners(owned.entry);
  const bool is_script = path->bytes().starts_with("bin/");  // its first line is written anew, whatever it says now
  if (effective.empty() && !is_script) count(differing_, one.label(), "", entry.path);
  if (!effective.empty() && std::ranges::none_of(effective, [&](u32 other) { return comes_[other]; }))
    count(foreign_, one.label(), origin_.all()[effective.front()].label(), entry.path);
  const Addition addition{owned.entry, one.label()};
  const auto there = base_.tree().index_of(*path);
  if (additions_.contains(*path)) return;
  if (there && !base_.tree().entries()[*there].is_dir() && fates_[*there] != Fate::leaves) return meet_base(*there, *path, addition);
  additions_.emplace(*path, addition);
}

/// The path holds something that did not leave.
void TreeArithmetic::meet_base(std::size_t there, const tree::RelPath& path, const Addition& addition) {
  const tree::Entry& old = base_.tree().entries()[there];
  const bool is_same = tree::same_content(old, origin_.tree().entries()[addition.entry]);
  // Equal content satisfies whoever stays; the base's own entry stays where one of them owns it.
  if (is_same && fates_[there] == Fate::stays && !base_.claims(there).empty()) return;
  const std::vector<u32> effective = base_.effective_owners(there);
  const auto stays = std::ranges::find_if(effective, [&](u32 owner) { return is_staying(owner); });
  if (!is_same && stays != effective.end()) {
    count(conflicts_, base_.all()[*stays].label(), addition.label, path);
    if (options_.conflicts != ConflictRule::overlay) return;
  } else if (!is_same && base_.claims(there).empty()) {
    count(replaced_unowned_, addition.label, "", path);
  }
  fates_[there] = Fate::leaves;
  additions_.emplace(path, addition);
}

/// Rows that the origin lacks: a file of the base that RECORDs say is the same, a script to generate, or a distribution that is not whole.
void TreeArithmetic::add_missing(u32 owner) {
  const Installed& one = origin_.all()[owner];
  Lacking lacking, kept;
  for (const MissingRow& row : one.missing) {
    const auto path = target_of(one, row.path);
    if (!path) continue;
    const auto there = base_.tree().index_of(*path);
    const bool is_file = there && !base_.tree().entries()[*there].is_dir();
    if (is_file && keep_equal_row(*there, row)) continue;
    const auto script = std::ranges::find_if(one.scripts, [&](const EntryPoint& point) { return path->bytes() == "bin/" + point.name; });
    if (script != one.scripts.end()) {
      out_.scripts.push_back({*path, *target_of(one, one.about.folder), *script});
      continue;
    }
    const bool keeps = options_.incomplete == IncompleteRule::base && is_file;
    if (keeps) fates_[*there] = Fate::stays;
    list(keeps ? kept : lacking, *path);
  }
  tell_missing(one, lacking, kept);
}

bool TreeArithmetic::keep_equal_row(std::size_t there, const MissingRow& row) {
  if (!row.sum) return false;
  for (const u32 owner : base_.effective_owners(there)) {
    for (const DistributionSet::Claim& claim : base_.claims(there)) {
      if (claim.distribution != owner || base_.all()[owner].owned[claim.owned].sum != row.sum) continue;
      fates_[there] = Fate::stays;
      return true;
    }
  }
  return false;
}

/// Nothing came in their place: the content stays, so that no path of what stays is lost, and the plan is refused.
void TreeArithmetic::settle_orphans() {
  for (const Move& move : selection_.leaving) {
    const Installed& one = base_.all()[move.index];
    for (const OwnedEntry& owned : one.owned) {
      if (fates_[owned.entry] != Fate::orphaned) continue;
      const std::vector<u32> effective = base_.effective_owners(owned.entry);
      if (std::ranges::find(effective, move.index) == effective.end()) continue;
      for (const std::string& other : staying_owners(owned.entry)) count(orphans_, other, one.label(), base_.tree().entries()[owned.entry].path);
    }
  }
}

std::vector<std::string> TreeArithmetic::staying_owners(std::size_t entry) const {
  std::vector<std::string> out;
  for (const DistributionSet::Claim& claim : base_.claims(entry))
    if (is_staying(claim.distribution)) out.push_back(base_.all()[claim.distribution].label());
  return out;
}

/// Folders stay where they hold something that stays, or held nothing before; the environment's own always do.
void TreeArithmetic::keep_folders() {
  const auto& entries = base_.tree().entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_dir = entries[i].is_dir();
    const bool is_own = is_dir && (entries[i].path.parent().is_root() || is_site(entries[i].path));
    const bool was_empty = is_dir && !has_children_[i] && !inside_left_[i];
    if (!is_own && !was_empty && (is_dir || fates_[i] == Fate::leaves)) continue;
    for (std::size_t at = is_dir ? i : parents_[i]; at != kNone && !used_[at]; at = parents_[at]) used_[at] = true;
  }
}

/// An addition below what is no folder, or in the place of a folder that stays, does not come.
void TreeArithmetic::drop_blocked() {
  const auto& entries = base_.tree().entries();
  std::erase_if(additions_, [&](const auto& item) {
    const auto& [path, addition] = item;
    std::optional<std::size_t> blocker;
    for (tree::RelPath up = path; !blocker && !up.is_root(); up = up.parent()) {
      const auto there = base_.tree().index_of(up);
      if (!there) continue;
      const bool is_dir = entries[*there].is_dir();
      if (up == path ? is_dir && used_[*there] : !is_dir && fates_[*there] != Fate::leaves) blocker = there;
    }
    if (!blocker) return false;
    const auto owners = base_.claims(*blocker);
    count(blocked_, addition.label, owners.empty() ? "" : base_.all()[owners.front().distribution].label(), entries[*blocker].path);
    return true;
  });
}

}  // namespace envsync::python

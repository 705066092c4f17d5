// SPDX-License-Identifier: MIT
// The end of the arithmetic: the desired tree, and what is to be said about it.
#include "python/tree_arithmetic.hpp"

#include "python/site_packages.hpp"

#include <fmt/format.h>

namespace envsync::python {
namespace {

/// Link groups of the origin's entries, moved away from the base's. LIMIT: a tree has at most 4,000,000 entries.
constexpr u32 kOriginGroups = 1u << 31;

// LIMIT: a RECORD may have a million rows, and a person reads a line.
constexpr u64 kNamesMax = 20;

std::string files(u64 count) { return count == 1 ? "1 file" : fmt::format("{} files", count); }

}  // namespace

/// The folders above additions that the base lacks, with the origin's entry for each; marks the base's own as used.
std::map<tree::RelPath, std::size_t> TreeArithmetic::new_folders() {
  std::map<tree::RelPath, std::size_t> out;
  for (const auto& [path, addition] : additions_) {
    // Both paths lead through as many folders.
    tree::RelPath from = origin_.tree().entries()[addition.entry].path.parent();
    for (tree::RelPath up = path.parent(); !up.is_root(); up = up.parent(), from = from.parent()) {
      const auto there = base_.tree().index_of(up);
      const bool is_folder = there && base_.tree().entries()[*there].is_dir();
      if (is_folder ? used_[*there] : out.contains(up)) break;
      if (is_folder) used_[*there] = true;
      else out.emplace(up, *origin_.tree().index_of(from));
    }
  }
  return out;
}

Result<void> TreeArithmetic::build() {
  const auto folders = new_folders();
  std::vector<tree::Entry> entries;
  entries.reserve(base_.tree().entries().size() + additions_.size());
  for (std::size_t i = 0; i < base_.tree().entries().size(); ++i) {
    const tree::Entry& entry = base_.tree().entries()[i];
    if (entry.is_dir() ? used_[i] : fates_[i] != Fate::leaves && !additions_.contains(entry.path)) entries.push_back(entry);
  }
  const auto take = [&](const tree::RelPath& path, std::size_t from) {
    entries.push_back(origin_.tree().entries()[from]);
    entries.back().path = path;
    tree::File* file = std::get_if<tree::File>(&entries.back().body);
    if (file != nullptr && file->link_group != 0) file->link_group |= kOriginGroups;
  };
  for (const auto& [path, from] : folders) take(path, from);
  for (const auto& [path, addition] : additions_) {
    take(path, addition.entry);
    out_.taken.push_back({path, origin_.tree().entries()[addition.entry].path});
  }
  TRY(out_.desired, tree::Tree::from_unsorted(std::move(entries)));
  return ok();
}

void TreeArithmetic::find(std::string_view code, Severity severity, const tree::RelPath& file, std::string what) {
  out_.findings.push_back({std::string(code), severity, file.bytes(), std::move(what)});
}

void TreeArithmetic::list(Lacking& lacking, const tree::RelPath& path) {
  if (lacking.tally.files == 0) lacking.tally.first = path;
  if (++lacking.tally.files > kNamesMax) return;
  const auto item = site_item(path.bytes());
  lacking.names += (lacking.names.empty() ? "" : ", ") + printable(item ? item->below : path.bytes());
}

void TreeArithmetic::tell_missing(const Installed& one, const Lacking& lacking, const Lacking& kept) {
  const bool is_refused = options_.incomplete == IncompleteRule::refuse;
  for (const Lacking* some : {&lacking, &kept}) {
    if (some->tally.files == 0) continue;
    find("incomplete", some == &lacking && is_refused ? Severity::error : Severity::warning, some->tally.first,
         fmt::format("'{}' lacks {} of its files in the origin{}: {}{}", one.label(), some->tally.files, some == &kept ? "; the base's own are kept" : "",
                     some->names, some->tally.files > kNamesMax ? fmt::format(", and {} more", some->tally.files - kNamesMax) : ""));
  }
}

void TreeArithmetic::tell() {
  const bool is_conflict = options_.conflicts == ConflictRule::error;
  const std::string_view loses = options_.conflicts == ConflictRule::overlay ? "loses" : is_conflict ? "would lose" : "keeps";
  const std::string_view against = options_.conflicts == ConflictRule::base ? "against" : "to";
  for (const auto& [pair, tally] : conflicts_)
    find("conflicts", is_conflict ? Severity::error : Severity::warning, tally.first,
         fmt::format("'{}' stays and {} {} {} '{}'", pair.first, loses, files(tally.files), against, pair.second));
  for (const auto& [pair, tally] : orphans_)
    find("owner_lost", Severity::error, tally.first,
         fmt::format("'{}' stays, and {} of it {} the content of '{}', which leaves", pair.first, files(tally.files), tally.files == 1 ? "has" : "have", pair.second));
  for (const auto& [pair, tally] : foreign_)
    find("not_effective", Severity::error, tally.first,
         fmt::format("{} of '{}' {} the content of '{}' in the origin, which does not come", files(tally.files), pair.first, tally.files == 1 ? "has" : "have", pair.second));
  for (const auto& [pair, tally] : differing_)
    find("record_mismatch", Severity::error, tally.first,
         fmt::format("{} of '{}' in the origin {} not what its RECORD says", files(tally.files), pair.first, tally.files == 1 ? "is" : "are"));
  for (const auto& [pair, tally] : root_conflicts_)
    find("root_conflict", Severity::error, tally.first,
         fmt::format("'{}' stays and would lose {} to the root '{}'", pair.first, files(tally.files), pair.second));
  for (const auto& [pair, tally] : blocked_) {
    const std::string owner = pair.second.empty() ? "nobody's" : fmt::format("of '{}'", pair.second);
    find("path_blocked", Severity::error, tally.first,
         fmt::format("{} of '{}' cannot come: this path is {} and stays", files(tally.files), pair.first, owner));
  }
  for (const auto& [pair, tally] : replaced_unowned_)
    find("unowned_replaced", Severity::note, tally.first, fmt::format("'{}' replaces {} that nobody owned", pair.first, files(tally.files)));
  if (!out_.unmanaged.empty())
    find("unmanaged", Severity::note, out_.unmanaged.front(),
         fmt::format("{} that nobody owned inside what left {}", files(out_.unmanaged.size()), options_.unmanaged == UnmanagedRule::keep ? "stay" : "go"));
}

}  // namespace envsync::python

// SPDX-License-Identifier: MIT
#include "python/lint.hpp"

#include "python/record_check.hpp"
#include "python/site_packages.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.hpp"

namespace envsync::python {
namespace {

constexpr std::size_t kNamesMax = 8;

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesMax)));
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kNamesMax ? ", ..." : "");
}

/// pip renames what it is about to remove to "~orch"; a crash leaves it.
void find_leftovers(const DistributionSet& set, std::vector<Finding>& out) {
  std::vector<std::string> names;
  u64 bytes = 0;
  tree::RelPath first;
  for (const tree::Entry& entry : set.tree().entries()) {
    const auto item = site_item(entry.path.bytes());
    if (!item || !item->top().starts_with('~')) continue;
    if (item->top().size() == item->below.size()) {
      if (names.empty()) first = entry.path;
      names.push_back(printable(item->top()));
    }
    if (const tree::File* file = entry.file()) bytes += file->size;
  }
  if (names.empty()) return;
  out.push_back({"leftover", Severity::warning, first.bytes(),
                 fmt::format("an interrupted uninstall left {} with {}; delete {}, or name {} in source.exclude", list_of(names), human_bytes(bytes), names.size() == 1 ? "it" : "them",
                             names.size() == 1 ? "it" : "them")});
}

void find_unreadable(const DistributionSet& set, std::vector<Finding>& out) {
  std::map<std::string, std::vector<const Installed*>> by_reason;
  for (const Installed& one : set.all())
    if (!one.unreadable.empty()) by_reason[one.unreadable].push_back(&one);
  for (const auto& [reason, all] : by_reason) {
    std::vector<std::string> labels;
    for (const Installed* one : all) labels.push_back(one->label());
    // Of an old egg-info nobody expects a RECORD.
    const bool is_old = std::ranges::all_of(all, [](const Installed* one) { return one->about.folder.name().ends_with(".egg-info"); });
    out.push_back({"record_unusable", is_old ? Severity::note : Severity::warning, all.front()->about.folder.bytes(),
                   fmt::format("{} {} {}: an overlay can neither replace nor remove {}", list_of(labels), all.size() == 1 ? "has" : "have", printable(reason), all.size() == 1 ? "it" : "them")});
  }
}

void find_twice(const DistributionSet& set, std::vector<Finding>& out) {
  const std::vector<Installed>& all = set.all();
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    while (end < all.size() && all[end].name() == all[i].name()) ++end;
    if (end - i > 1) {
      std::vector<std::string> versions;
      for (std::size_t at = i; at < end; ++at) versions.push_back(all[at].about.version.empty() ? "?" : all[at].about.version);
      out.push_back({"installed_twice", Severity::warning, all[i].about.folder.bytes(),
                     fmt::format("'{}' is installed {} times ({}); Python takes one of them, and which one is not defined", all[i].name(), end - i, list_of(versions))});
    }
    i = end;
  }
}

bool is_excluded(const tree::Exclude& exclude, const tree::RelPath& path) {
  if (exclude.matches(path, false)) return true;
  for (tree::RelPath up = path.parent(); !up.is_root(); up = up.parent())
    if (exclude.matches(up, true)) return true;
  return false;
}

/// Rows without files, told apart by whether the manifest left the files out.
void find_missing(const DistributionSet& set, const tree::Exclude* exclude, std::vector<Finding>& out) {
  for (const Installed& one : set.all()) {
    u64 excluded = 0, missing = 0;
    tree::RelPath first_excluded, first_missing;
    for (const MissingRow& row : one.missing) {
      const bool is_out = exclude != nullptr && is_excluded(*exclude, row.path);
      if ((is_out ? excluded : missing)++ == 0) (is_out ? first_excluded : first_missing) = row.path;
    }
    if (excluded > 0) {
      out.push_back({"excluded_files", Severity::warning, first_excluded.bytes(),
                     fmt::format("source.exclude leaves out {} of '{}'; on the target {}", excluded == 1 ? "a file" : fmt::format("{} files", excluded), one.label(),
                                 excluded == 1 ? "it stays as it is, or is missing" : "they stay as they are, or are missing")});
    }
    if (missing > 0) {
      out.push_back({"incomplete", Severity::warning, first_missing.bytes(),
                     fmt::format("'{}' lacks {} that its RECORD lists", one.label(), missing == 1 ? "a file" : fmt::format("{} files", missing))});
    }
  }
  for (Finding& finding : check_complete(set, {}, Severity::warning))
    if (finding.code != "incomplete") out.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> lint(const DistributionSet& set, const tree::Exclude* exclude) {
  std::vector<Finding> out;
  find_leftovers(set, out);
  find_twice(set, out);
  find_unreadable(set, out);
  find_missing(set, exclude, out);
  return out;
}

std::optional<Finding> shared_inodes(u64 shared, u64 files) {
  if (shared == 0) return std::nullopt;
  return Finding{"shared_inodes", Severity::note, {},
                 fmt::format("{} of {} files are hard links of files elsewhere, as uv makes them of its cache: whoever writes into one writes into the other; the target gets files of its own",
                             shared, files)};
}

}  // namespace envsync::python

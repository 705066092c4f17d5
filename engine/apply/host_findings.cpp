// SPDX-License-Identifier: MIT
// The source for this target's path: rewritten where the manifest says so, and what is odd about it.
#include <algorithm>

#include <fmt/format.h>

#include "apply/findings_cache.hpp"
#include "apply/host_job.hpp"
#include "python/lint.hpp"
#include "python/path_findings.hpp"

namespace envsync::apply {

/// As the manifest says it, where that is absolute: scripts name this path and not where its links lead to.
const std::string& HostJob::source_root() const {
  const manifest::Source& place = goal_.source->place();
  return place.path.starts_with('/') ? place.path : goal_.source->session().scan.path;
}

bool HostJob::relocates() const { return run_->manifest->invariants.relocate && source_root() != environment_root(); }

Result<const tree::Tree*> HostJob::relocated_source() {
  TRY(const tree::Tree* base, goal_.source->tree());
  if (!relocates()) return base;
  TRY(const python::SmallFiles* infos, goal_.source->texts(python::wanted_small_files(*base)));
  TRY(python::SmallFiles texts, goal_.source->read("launchers", python::wanted_launchers(*base)));
  texts.insert(infos->begin(), infos->end());
  const python::DistributionSet set = python::DistributionSet::read(*base, texts, source_root());
  TRY(relocation_, python::relocate(set, texts, source_root(), environment_root()));
  return &relocation_->tree;
}

/// Names, RECORDs and the files that hold paths decide what is found, and what the manifest says of them.
content::Digest HostJob::key_of_findings(const tree::Tree& tree, const std::vector<tree::RelPath>& path_files) const {
  std::vector<tree::RelPath> texts = python::wanted_small_files(tree);
  texts.insert(texts.end(), path_files.begin(), path_files.end());
  Bytes also;
  put_string(also, source_root());
  put_string(also, environment_root());
  for (const std::string& pattern : goal_.source->place().exclude) put_string(also, pattern);
  return findings_key(tree, texts, as_text(also));
}

/// All of it was so before this plan; files that the plan replaces are no longer the source's.
Result<void> HostJob::find_in_source() {
  const format::ScanReply& scan = goal_.source->session().scan;
  if (goal_.source->reading() == Reading::base) return ok();
  if (scan.root == session_->scan.root && layers_.empty() && !relocation_) return ok();
  TRY(const tree::Tree* tree, goal_.source->tree());
  const auto add = [&](std::vector<Finding> findings) {
    for (Finding& finding : findings) {
      const auto path = tree::RelPath::parse(finding.file);
      const bool is_replaced = path && !path->is_root() && (layered_.made.contains(*path) || layered_.taken.contains(*path));
      if (!is_replaced) layered_.findings.push_back(std::move(finding));
    }
  };
  const python::Roots roots{source_root(), environment_root()};
  std::optional<python::DistributionSet> set;  // where it is needed: RECORDs of 100,000 rows
  const auto read_set = [&]() -> Result<void> {
    TRY(const python::SmallFiles* texts, goal_.source->texts(python::wanted_small_files(*tree)));
    if (!set) set = python::DistributionSet::read(*tree, *texts, source_root());
    return ok();
  };
  const std::vector<tree::RelPath> path_files = python::wanted_path_files(*tree);
  const std::string label = fmt::format("{}:{}", source_text(), environment_root());
  const content::Digest key = key_of_findings(*tree, path_files);
  auto found = kept_findings(label, key);
  if (!found) {
    TRY_STATUS(read_set());
    TRY(const python::SmallFiles launchers, goal_.source->read("paths", path_files));
    TRY(const tree::Exclude exclude, tree::Exclude::parse(goal_.source->place().exclude));
    found = python::lint(*set, &exclude);
    std::ranges::move(python::find_paths(*set, launchers, roots), std::back_inserter(*found));
    keep_findings(*run_, label, key, *found);
  }
  add(*std::move(found));
  if (auto shared = python::shared_inodes(scan.linked_alone, scan.files)) layered_.findings.push_back(*std::move(shared));
  // Libraries are never rewritten: those that look below the old path are told, by the plan that brings them.
  const auto is_new_library = [&](const tree::Entry& entry) {
    if (entry.file() == nullptr || entry.path.name().find(".so") == std::string_view::npos) return false;
    const tree::Entry* there = observed_.find(entry.path);
    return there == nullptr || !tree::same_content(*there, entry);
  };
  if (roots.origin == roots.target || std::ranges::none_of(tree->entries(), is_new_library)) return ok();
  TRY_STATUS(read_set());
  TRY(const format::LibrariesReply libraries, goal_.source->session().endpoint->libraries({.of_root = true, .sonames = {}}, run_->stop));
  std::vector<python::LibraryPaths> searching;
  for (const format::LibraryInfo& one : libraries.libraries)
    if (auto path = tree::RelPath::parse(one.path); path && !one.search.empty()) searching.push_back({*std::move(path), one.search});
  std::vector<Finding> of_libraries = python::check_library_paths(*set, searching, roots);
  std::erase_if(of_libraries, [](const Finding& finding) { return finding.severity == Severity::note; });  // of build machines: they never worked
  add(std::move(of_libraries));
  return ok();
}

}  // namespace envsync::apply

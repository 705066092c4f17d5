// SPDX-License-Identifier: MIT
// invariants.record: what comes is held against RECORD by the agent that has it, while the target stages. That the same content
// arrives is what digests are for.
#include <algorithm>

#include <fmt/format.h>

#include "apply/host_job.hpp"
#include "apply/record.hpp"
#include "plan/accept.hpp"

namespace envsync::apply {

using namespace format;
using python::ExpectedFile;

namespace {

constexpr std::size_t kShownMax = 10;

std::vector<tree::RelPath> paths_of(const std::vector<ExpectedFile>& files) {
  std::vector<tree::RelPath> paths;
  for (const ExpectedFile& file : files) paths.push_back(file.path);
  return paths;
}

}  // namespace

Result<std::vector<Finding>> check_live_records(Run& run, Session& session) {
  TRY(const tree::Tree tree, fetch_tree(run, session, {}, session.scan.full));
  std::vector<WantedText> wanted;
  for (const tree::RelPath& path : python::wanted_small_files(tree)) wanted.push_back({path.bytes(), path, tree.find(path)->file()->content()});
  TRY(const python::SmallFiles texts, fetch_texts(run, session, "dist-infos", wanted));
  const python::DistributionSet set = python::DistributionSet::read(tree, texts, session.scan.path);
  const std::vector<ExpectedFile> expected = python::expected_files(set);
  TRY(const python::Sums sums, fetch_sums(run, session, paths_of(expected)));
  std::vector<Finding> findings = python::check_sums(expected, sums, Severity::error);
  for (Finding& finding : python::check_complete(set, {}, Severity::warning)) findings.push_back(std::move(finding));
  return findings;
}

/// Of the files that a RECORD lists: who has each, by the paths there.
Result<std::vector<Finding>> HostJob::check_records() {
  std::vector<Finding> findings;
  const manifest::RecordRule rule = run_->manifest->invariants.record;
  if (rule == manifest::RecordRule::none || !after_ || is_rollback()) return findings;
  std::vector<std::string> coming;
  for (const python::PackageStep& step : layered_.steps)
    if (step.kind != python::StepKind::evicted) coming.push_back(step.name);
  const bool is_all = rule == manifest::RecordRule::all;
  if (coming.empty() && !is_all) return findings;
  std::map<Source*, std::vector<ExpectedFile>> by_place;  // null: on the target already, as it was scanned
  for (ExpectedFile& file : python::expected_files(*after_, is_all ? std::vector<std::string>{} : coming)) {
    if (layered_.made.contains(file.path)) continue;  // its row was written with it
    const tree::Entry *wanted = plan_->desired.find(file.path), *there = observed_.find(file.path);
    const bool is_there = wanted != nullptr && there != nullptr && tree::same_content(*wanted, *there);
    Source* place = is_there ? nullptr : provider_of(file.path);
    if (is_there || place != nullptr) by_place[place].push_back(std::move(file));
  }
  for (auto& [place, files] : by_place) {
    std::vector<tree::RelPath> there;
    for (const ExpectedFile& file : files) there.push_back(place != nullptr ? path_there(file.path) : file.path);
    TRY(const python::Sums found, fetch_sums(*run_, place != nullptr ? place->session() : *session_, there));
    python::Sums sums;
    for (std::size_t i = 0; i < files.size(); ++i)
      if (const auto sum = found.find(there[i].bytes()); sum != found.end()) sums.emplace(files[i].path.bytes(), sum->second);
    for (Finding& finding : python::check_sums(files, sums, Severity::error)) findings.push_back(std::move(finding));
  }
  return findings;
}

/// What overlays bring must be what its RECORD says; of the rest it is told.
Result<void> HostJob::settle_records(std::vector<Finding> findings) {
  const auto is_of_overlay = [this](const Finding& finding) {
    const auto path = tree::RelPath::parse(finding.file);
    return path && layered_.taken.contains(*path);
  };
  for (Finding& finding : findings)
    if (!is_of_overlay(finding)) finding.severity = Severity::warning;
  note_accepts(*run_, plan::accept_findings(*run_->manifest, target_->name, findings), false);
  Error error{ErrorCode::invariant_violated, fmt::format("files that come to '{}' on {} are not what their RECORD says", session_->scan.path, target_->name)};
  u64 refused = 0;
  for (const Finding& finding : findings) {
    run_->dispatcher->on(FindingEvent{target_->name, finding});
    if (finding.severity != Severity::error) continue;
    if (refused++ < kShownMax) error.causes.push_back(fmt::format("'{}': {}", printable(finding.file), finding.what));
  }
  if (refused == 0) return ok();
  if (refused > kShownMax) error.causes.push_back(fmt::format("and {} more", refused - kShownMax));
  return std::move(error)
      .note("nothing was changed")
      .hint(fmt::format("install these packages again in the origin; where they were patched on purpose, add  {}", plan::accept_line(findings.front())));
}

}  // namespace envsync::apply

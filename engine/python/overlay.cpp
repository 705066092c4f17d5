// SPDX-License-Identifier: MIT
#include "python/overlay.hpp"

#include "python/selection.hpp"
#include "python/tree_arithmetic.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace envsync::python {
namespace {

/// What makes arithmetic on a distribution impossible or untrue.
void check_usable(const Installed& one, bool comes, std::vector<Finding>& findings) {
  const std::string_view moves = comes ? "comes" : "leaves";
  if (!one.unreadable.empty()) {
    findings.push_back({"record_unusable", Severity::error, one.about.folder.bytes(), fmt::format("'{}' {}, and has {}", one.label(), moves, one.unreadable)});
  }
  for (std::size_t i = 0; i < one.refused.size(); ++i) {
    // LIMIT: a hostile RECORD may hold as many of them as rows.
    constexpr std::size_t kShownMax = 20;
    const std::size_t left = one.refused.size() - i;
    const bool is_rest = i + 1 == kShownMax && left > 1;
    const RecordProblem& problem = one.refused[i];
    // A row that is not followed removes nothing; of what comes it would be a file that is missing.
    findings.push_back({"record_row_refused", comes ? Severity::error : Severity::warning, one.about.folder.child("RECORD").bytes(),
                        is_rest ? fmt::format("{} more rows of '{}'", left, one.label())
                                : fmt::format("row '{}' of '{}' {}", printable(problem.row), one.label(), problem.why)});
    if (is_rest) break;
  }
}

std::vector<PackageStep> steps_of(const DistributionSet& base, const DistributionSet& origin, const Selection& selection) {
  std::vector<PackageStep> out;
  for (const Move& move : selection.coming) {
    const Installed& one = origin.all()[move.index];
    PackageStep step{StepKind::added, one.name(), {}, one.about.version, move.why};
    for (const u32 old : base.named(one.name())) {
      step.kind = StepKind::replaced;
      step.from_version += (step.from_version.empty() ? "" : ", ") + base.all()[old].about.version;
    }
    out.push_back(std::move(step));
  }
  for (const Move& move : selection.leaving) {
    const Installed& one = base.all()[move.index];
    if (move.evicted) out.push_back({StepKind::evicted, one.name(), one.about.version, {}, move.why});
  }
  std::ranges::stable_sort(out, {}, &PackageStep::name);
  return out;
}

void check_requirements(const DistributionSet& base, const DistributionSet& origin, const Selection& selection, const OverlayOptions& options,
                        const MarkerEnvironment& environment, std::vector<Finding>& findings) {
  std::vector<const Installed*> before, there, after, coming;
  std::vector<bool> leaves(base.all().size(), false);
  for (const Move& move : selection.leaving) leaves[move.index] = true;
  for (std::size_t i = 0; i < base.all().size(); ++i) {
    before.push_back(&base.all()[i]);
    if (!leaves[i]) after.push_back(&base.all()[i]);
  }
  for (const Installed& one : origin.all()) there.push_back(&one);
  for (const Move& move : selection.coming) coming.push_back(&origin.all()[move.index]);
  after.insert(after.end(), coming.begin(), coming.end());
  const auto unmet = find_unmet(World(before, environment), World(there, environment), World(after, environment), coming, findings);
  find_bare_folders(origin, unmet, options, findings);
}

}  // namespace

bool Overlay::refused() const {
  return std::ranges::any_of(findings, [](const Finding& finding) { return finding.severity == Severity::error; });
}

Result<Overlay> lay_over(const DistributionSet& base, const DistributionSet& origin, const OverlayOptions& options, const MarkerEnvironment& environment) {
  Overlay out;
  const Selection selection = select(base, origin, options, environment, out.findings);
  for (const Move& move : selection.coming) check_usable(origin.all()[move.index], true, out.findings);
  for (const Move& move : selection.leaving) check_usable(base.all()[move.index], false, out.findings);
  check_requirements(base, origin, selection, options, environment, out.findings);
  out.packages = steps_of(base, origin, selection);
  TRY_STATUS(TreeArithmetic(base, origin, selection, options, out).run());
  return out;
}

SmallFiles small_files_after(const Overlay& overlay, const SmallFiles& base, const SmallFiles& origin) {
  SmallFiles out;
  for (const tree::RelPath& path : wanted_small_files(overlay.desired)) {
    if (const auto made = overlay.made.find(path); made != overlay.made.end()) {
      out.emplace(path.bytes(), made->second);
      continue;
    }
    const auto taken = std::ranges::lower_bound(overlay.taken, path, {}, &TakenPath::path);
    const bool is_taken = taken != overlay.taken.end() && taken->path == path;
    const SmallFiles& from = is_taken ? origin : base;
    const auto text = from.find(is_taken ? taken->origin_path.bytes() : path.bytes());
    if (text != from.end()) out.emplace(path.bytes(), text->second);
  }
  return out;
}

}  // namespace envsync::python

// SPDX-License-Identifier: MIT
#include "plan/accept.hpp"

#include <algorithm>

#include <fnmatch.h>

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace envsync::plan {

namespace {

constexpr std::size_t kShownMax = 20;

/// What to do about findings of a code, beside accepting them.
struct WayOut {
  std::string_view code, hint;
};
constexpr WayOut kWaysOut[] = {
    {"incomplete", "complete the origin, or set `incomplete: base` on the overlay to keep the environment's own files"},
    {"no_distribution", "copy their dist-infos beside them, take the overlay from the environment that they are of, or name the folder in the overlay's `roots`"},
    {"root_conflict", "name what stays in the overlay's `evict`, or copy the dist-infos of the root's files beside them"},
};

bool matches_host(const manifest::Accept& accept, const std::string& host) {
  return accept.hosts.empty() || std::ranges::any_of(accept.hosts, [&](const std::string& glob) { return ::fnmatch(glob.c_str(), host.c_str(), 0) == 0; });
}

/// By gitignore's rules: the path, or a folder above it.
bool matches_file(const tree::Exclude& files, const std::string& file) {
  const auto path = tree::RelPath::parse(file);
  if (!path) return false;
  for (tree::RelPath at = *path; !at.is_root(); at = at.parent())
    if (files.matches(at, at != *path)) return true;
  return false;
}

}  // namespace

std::vector<bool> accept_findings(const manifest::Manifest& manifest, const std::string& host, std::vector<Finding>& findings) {
  std::vector<bool> used(manifest.accept.size(), false);
  for (std::size_t i = 0; i < manifest.accept.size(); ++i) {
    const manifest::Accept& accept = manifest.accept[i];
    if (!matches_host(accept, host)) continue;
    const auto files = accept.files.empty() ? Result<tree::Exclude>(tree::Exclude{}) : tree::Exclude::parse({accept.files});
    if (!files) continue;
    for (Finding& finding : findings) {
      if (finding.code != accept.code || (!accept.files.empty() && !matches_file(*files, finding.file))) continue;
      used[i] = true;
      if (finding.severity == Severity::note) continue;
      finding.severity = Severity::note;
      finding.what += fmt::format(" (accepted{})", accept.why.empty() ? "" : ": " + accept.why);
    }
  }
  return used;
}

std::string accept_line(const Finding& finding) {
  const std::string files = finding.file.empty() ? "" : fmt::format(", files: \"{}\"", printable(finding.file));
  return fmt::format("accept: [{{code: {}{}, why: …}}]", finding.code, files);
}

void refuse_findings(const Inputs& inputs, HostPlan& plan) {
  std::vector<const Finding*> errors;
  for (const Finding& finding : plan.findings)
    if (finding.severity == Severity::error) errors.push_back(&finding);
  if (errors.empty()) return;
  Error error{ErrorCode::overlay_refused, fmt::format("the overlays cannot be laid onto '{}' on {}", inputs.target.path, inputs.target.host)};
  for (const Finding* finding : errors) {
    if (error.causes.size() == kShownMax) {
      error.causes.push_back(fmt::format("and {} more", errors.size() - kShownMax));
      break;
    }
    error.causes.push_back(fmt::format("{}: {}{}", finding->code, finding->what, finding->file.empty() ? "" : fmt::format(" ('{}')", printable(finding->file))));
  }
  error.notes.push_back("nothing was changed");
  for (const WayOut& way : kWaysOut)
    if (std::ranges::any_of(errors, [&](const Finding* finding) { return finding->code == way.code; })) error.hints.emplace_back(way.hint);
  error.hints.push_back(fmt::format("where that is known and fine, add  {}", accept_line(*errors.front())));
  plan.refusals.push_back({std::move(error), std::nullopt});
}

}  // namespace envsync::plan

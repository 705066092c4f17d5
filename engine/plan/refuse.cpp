// SPDX-License-Identifier: MIT
#include "plan/refuse.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "plan/accept.hpp"
#include "python/environment.hpp"

namespace envsync::plan {

namespace {

constexpr std::size_t kShownMax = 10;

Error nothing_changed(Error error) { return std::move(error).note("nothing was changed"); }

void refuse_problems(const Inputs& inputs, HostPlan& plan) {
  const auto& problems = inputs.target.problems;
  if (problems.empty()) return;
  Error error{ErrorCode::unreadable, fmt::format("'{}' on {} holds {} that cannot be kept", inputs.target.path, inputs.target.host,
                                                 problems.size() == 1 ? "an entry" : fmt::format("{} entries", problems.size()))};
  for (std::size_t i = 0; i < std::min(kShownMax, problems.size()); ++i) error.causes.push_back(problems[i]);
  plan.refusals.push_back({nothing_changed(std::move(error))
                               .hint("remove or unmount what is named, or name it in source.exclude"), std::nullopt});
}

void refuse_adoption(const Inputs& inputs, HostPlan& plan) {
  const TargetFacts& target = inputs.target;
  if (target.current || target.observed->is_absent() || target.is_empty_dir || inputs.consent.adopt) return;
  plan.refusals.push_back(
      {nothing_changed({ErrorCode::adoption_refused, fmt::format("'{}' on {} holds files that envsync does not know", target.path, target.host)})
           .hint("pass --adopt to go on; what is there becomes generation 0, to which `envsync rollback` returns"),
       Need::adopt});
}

void refuse_drift(const Inputs& inputs, HostPlan& plan) {
  const TargetFacts& target = inputs.target;
  if (!target.has_drifted || inputs.consent.discard_drift) return;
  Error error{ErrorCode::drift_refused, fmt::format("'{}' on {} was changed after generation {} was committed",
                                                    inputs.manifest->name, target.host, *target.current)};
  for (std::size_t i = 0; i < std::min(kShownMax, target.drift.size()); ++i) error.causes.push_back(target.drift[i]);
  if (target.drift.size() > kShownMax) error.causes.push_back(fmt::format("and {} more", target.drift.size() - kShownMax));
  plan.refusals.push_back({nothing_changed(std::move(error))
                               .hint("run `envsync status --files` to see the changes")
                               .hint(fmt::format("run `envsync {} --drift replace` to go on; what is replaced is kept as a generation",
                                                 inputs.purpose == Purpose::rollback ? "rollback" : "apply")),
                           Need::discard_drift});
}

void refuse_deletions(const Inputs& inputs, HostPlan& plan) {
  const TargetFacts& target = inputs.target;
  if (inputs.consent.delete_many || inputs.purpose == Purpose::rollback) return;
  const manifest::DeleteLimit& limit = inputs.manifest->settings.delete_limit;
  const u64 total = target.observed->entries().size();
  const bool is_over = limit.is_percent ? plan.removed * 100 > limit.value * total : plan.removed > limit.value;
  if (plan.removed == 0 || !is_over) return;
  const std::string allowed = limit.is_percent ? fmt::format("{}%", limit.value) : fmt::format("{} paths", limit.value);
  plan.refusals.push_back(
      {nothing_changed({ErrorCode::delete_limit, fmt::format("{} of {} paths of '{}' on {} would go, more than delete_limit ({}) allows",
                                                             plan.removed, total, target.path, target.host, allowed)})
           .hint("check `source`; pass --allow-delete to go on"),
       Need::delete_many});
}

void refuse_space(const Inputs& inputs, HostPlan& plan) {
  const TargetFacts& target = inputs.target;
  if (plan.changes.empty()) return;
  const bool lacks_bytes = plan.disk_needed > target.disk_free;
  const bool lacks_inodes = plan.inodes_needed > target.inodes_free;
  if (!lacks_bytes && !lacks_inodes) return;
  Error error{ErrorCode::no_space, fmt::format("{} lacks {} for the staged tree of '{}'", target.host, lacks_bytes ? "space" : "inodes", target.path)};
  error.causes.push_back(lacks_bytes ? fmt::format("need {}, have {}", human_bytes(plan.disk_needed), human_bytes(target.disk_free))
                                     : fmt::format("need {} inodes, have {}", plan.inodes_needed, target.inodes_free));
  plan.refusals.push_back({nothing_changed(std::move(error)).hint(target.current ? "run `envsync prune` to free what old generations hold" : "free some of it, or choose a path on another filesystem"), std::nullopt});
}

/// The only lib/pythonX.Y of the desired tree.
std::string tree_python(const tree::Tree& tree) {
  std::string found;
  const tree::RelPath lib = *tree::RelPath::parse("lib");
  for (const tree::Entry& entry : tree.entries()) {
    if (!entry.is_dir() || entry.path.parent() != lib || !entry.path.name().starts_with("python")) continue;
    found = entry.path.name().substr(6);
  }
  return found;
}

void refuse_pin(const Inputs& inputs, HostPlan& plan) {
  const std::string& pin = inputs.manifest->invariants.python;
  const std::string version = tree_python(plan.desired);
  if (pin.empty() || version.empty() || python::version_matches(pin, version)) return;
  plan.refusals.push_back({nothing_changed({ErrorCode::invariant_violated, fmt::format("'{}' is a Python {} environment, invariants.python is {}",
                                                                                       inputs.manifest->name, version, pin)}), std::nullopt});
}

void refuse_interpreter(const Inputs& inputs, HostPlan& plan) {
  const manifest::Invariants& invariants = inputs.manifest->invariants;
  const std::string version = tree_python(plan.desired);
  const Interpreter& base = inputs.interpreter;
  if (invariants.interpreter == manifest::InterpreterRule::ignore || base.program.empty() || plan.changes.empty()) return;
  Error error{ErrorCode::invariant_violated, fmt::format("the base interpreter '{}' does not work on {}", printable(base.program), inputs.target.host)};
  if (!base.exists) error.causes.push_back("no such program");
  else if (base.status != 0) error.causes.push_back(fmt::format("running it ended with status {}", base.status));
  else if (!version.empty() && base.version != version) error.causes.push_back(fmt::format("it is Python {}, the environment is for {}", base.version, version));
  else return;
  plan.refusals.push_back({nothing_changed(std::move(error))
                               .hint(fmt::format("install Python {} there so that '{}' exists, or set invariants.interpreter to ignore",
                                                 version.empty() ? "3" : version, printable(base.program))),
                           std::nullopt});
}

void refuse_use(const Inputs& inputs, HostPlan& plan) {
  const auto& in_use = inputs.target.in_use;
  if (in_use.empty() || plan.changes.empty() || inputs.manifest->invariants.in_use != manifest::InUseRule::refuse) return;
  Error error{ErrorCode::in_use, fmt::format("'{}' on {} is in use and invariants.in_use is refuse", inputs.target.path, inputs.target.host)};
  for (std::size_t i = 0; i < std::min(kShownMax, in_use.size()); ++i) error.causes.push_back(in_use[i]);
  plan.refusals.push_back({nothing_changed(std::move(error)).hint("stop these processes, or set invariants.in_use to warn"), std::nullopt});
}

void find_gone(const Inputs& inputs, HostPlan& plan) {
  const TargetFacts& target = inputs.target;
  if (!target.current || !target.observed->is_absent()) return;
  plan.findings.push_back({"path_gone", Severity::warning, {},
                           fmt::format("the tree of generation {} was deleted; what only it held of older generations is gone with it", *target.current)});
}

void refuse_path(const Inputs& inputs, HostPlan& plan) {
  if (inputs.source_path.empty() || inputs.source_path == inputs.target.path || inputs.manifest->invariants.relocate) return;
  plan.findings.push_back({"path_differs", Severity::warning, {},
                           fmt::format("source path '{}' differs: shebangs and activate scripts name the source's", printable(inputs.source_path))});
}

}  // namespace

void refuse(const Inputs& inputs, HostPlan& plan) {
  refuse_problems(inputs, plan);
  refuse_pin(inputs, plan);
  if (plan.changes.empty() && inputs.target.current && inputs.target.current_root == inputs.target.observed_root) {
    // The tree is as it would be; a name in the manifest that no origin has is wrong all the same.
    if (inputs.findings != nullptr) plan.findings = *inputs.findings;
    plan.accept_used = accept_findings(*inputs.manifest, inputs.target.host, plan.findings);
    refuse_findings(inputs, plan);
    return;
  }
  refuse_adoption(inputs, plan);
  refuse_drift(inputs, plan);
  refuse_deletions(inputs, plan);
  refuse_interpreter(inputs, plan);
  refuse_use(inputs, plan);
  refuse_space(inputs, plan);
  refuse_path(inputs, plan);
  find_gone(inputs, plan);
  if (inputs.findings != nullptr) plan.findings.insert(plan.findings.end(), inputs.findings->begin(), inputs.findings->end());
  plan.accept_used = accept_findings(*inputs.manifest, inputs.target.host, plan.findings);
  refuse_findings(inputs, plan);
}

}  // namespace envsync::plan

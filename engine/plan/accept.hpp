// SPDX-License-Identifier: MIT
// Findings that the manifest takes, and those that refuse a plan.
#pragma once

#include "plan/plan.hpp"

namespace envsync::plan {

/// Makes notes of the findings that an entry of `accept` takes; gives which entries took one, by index.
std::vector<bool> accept_findings(const manifest::Manifest& manifest, const std::string& host, std::vector<Finding>& findings);
/// The entry that would take a finding, as YAML.
std::string accept_line(const Finding& finding);
/// One refusal of all errors among the findings.
void refuse_findings(const Inputs& inputs, HostPlan& plan);

}  // namespace envsync::plan

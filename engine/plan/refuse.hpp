// SPDX-License-Identifier: MIT
// Why a plan is not carried out: every refusal at once, each with what is true now and what to do.
#pragma once

#include "plan/plan.hpp"

namespace envsync::plan {

/// Fills plan.refusals and plan.findings.
void refuse(const Inputs& inputs, HostPlan& plan);

}  // namespace envsync::plan

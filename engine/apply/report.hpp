// SPDX-License-Identifier: MIT
// From outcomes to the exit code and the summary.
#pragma once

#include <envsync/engine.hpp>

namespace envsync::apply {

/// By the table of exit codes: 0 where every host succeeded; the hosts' common code where all failed alike; 3 where some
/// succeeded; else 1. `verify` gives 4 where all succeeded and one differs.
int exit_code(const std::string& verb, const std::vector<Outcome>& outcomes);
SummaryEvent summarize(const std::string& verb, const Report& report, double seconds);

}  // namespace envsync::apply

// SPDX-License-Identifier: MIT
// Files held against the sha256 of their RECORD: before a tree is swapped in, and by `verify --record`.
#pragma once

#include "apply/texts.hpp"
#include "python/record_check.hpp"

namespace envsync::apply {

/// Distributions of the tree that a session's agent scanned: what of it is not as RECORDs say.
Result<std::vector<Finding>> check_live_records(Run& run, Session& session);

}  // namespace envsync::apply

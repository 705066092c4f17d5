// SPDX-License-Identifier: MIT
// What is odd about an environment as it is, whatever the plan: warnings at most.
#pragma once

#include <optional>
#include <vector>

#include <envsync/event.hpp>

#include "python/distribution_set.hpp"
#include "tree/exclude.hpp"

namespace envsync::python {

/// Leftovers of interrupted uninstalls, distributions that nobody can uninstall, rows without files, names that are installed twice,
/// files that the exclude rules (null: none) take from a distribution.
std::vector<Finding> lint(const DistributionSet& set, const tree::Exclude* exclude);

/// Hard links into an installer's cache: `shared` of `files` share their inode with a file outside the environment.
std::optional<Finding> shared_inodes(u64 shared, u64 files);

}  // namespace envsync::python

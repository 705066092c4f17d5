// SPDX-License-Identifier: MIT
// What is odd about an environment as it is, whatever the plan: warnings at most.
#pragma once

#include <vector>

#include <envsync/event.hpp>

#include "python/distribution_set.hpp"
#include "tree/exclude.hpp"

namespace envsync::python {

struct LintContext {
  const tree::Exclude* exclude = nullptr;  // by which the tree was scanned
  u64 links_outside = 0;                   // files that share their inode with one outside the environment
  u64 files = 0;
};

/// Leftovers of interrupted uninstalls, distributions that nobody can uninstall, rows without files, names that are installed twice,
/// files that the exclude rules take from a distribution, hard links into an installer's cache.
std::vector<Finding> lint(const DistributionSet& set, const LintContext& context);

}  // namespace envsync::python

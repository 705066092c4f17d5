// SPDX-License-Identifier: MIT
// What RECORDs say must be on a disk, for the check after staging and for `invariants.record`.
#pragma once

#include <string>
#include <vector>

#include <envsync/event.hpp>

#include "python/distribution_set.hpp"

namespace envsync::python {

struct ExpectedFile {
  tree::RelPath path;
  std::vector<Sha256> any_of;  // several owners may list a path; what is there must be what one of them says
  std::string owner;           // label of the first of them
};
/// Of the distributions of these names, or of all where the list is empty. Sorted by path; bytecode and rows without a hash have none.
std::vector<ExpectedFile> expected_files(const DistributionSet& set, const std::vector<std::string>& names = {});

/// Those whose sum is none of the expected. A path without a sum counts as absent.
std::vector<Finding> check_sums(const std::vector<ExpectedFile>& expected, const Sums& sums, Severity severity);

/// Rows without their file, and console scripts without their module. Of the names, or of all.
std::vector<Finding> check_complete(const DistributionSet& set, const std::vector<std::string>& names, Severity severity);

}  // namespace envsync::python

// SPDX-License-Identifier: MIT
// Changed paths by the distribution that owns them, as RECORDs say it.
#pragma once

#include "python/distribution_set.hpp"

namespace envsync::python {

/// As package_changes() of names, but exact: `from` and `to` are of the trees that were compared, or of equal paths.
PackageChanges package_changes(const DistributionSet& from, const DistributionSet& to, const std::vector<tree::Change>& changes);

}  // namespace envsync::python

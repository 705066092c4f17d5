// SPDX-License-Identifier: MIT
// What an overlay's origin may be beside an environment: a folder with packages and dist-infos beside each other, as a site-packages
// is, or as somebody copied them by hand.
#pragma once

#include <optional>

#include "python/distribution_set.hpp"

namespace envsync::python {

enum class OriginShape : u8 { environment, packages, wheels, nothing };
/// environment: it has a lib/pythonX.Y/site-packages; wheels: *.whl files and no dist-info; nothing: no entry.
OriginShape shape_of(const tree::Tree& tree);

/// The base's site-packages, where a staged folder's packages go; nullopt where it has none or several.
std::optional<tree::RelPath> site_of(const tree::Tree& environment);

/// The folder as the site-packages of an environment that holds nothing else, so that rows like ../../../bin/x mean the target's bin
/// and nothing of the origin's host. Paths of the origin are those below `site`.
Result<tree::Tree> stage_as_environment(const tree::Tree& folder, const tree::RelPath& site);
SmallFiles stage_as_environment(const SmallFiles& files, const tree::RelPath& site);

}  // namespace envsync::python

// SPDX-License-Identifier: MIT
// An environment for another path than the one it was made for: a closed list of texts is written anew, binaries never.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <envsync/result.hpp>

#include "python/distribution_set.hpp"

namespace envsync::python {

/// Small files of bin/, and pyvenv.cfg; what relocate() and the path findings read beside the texts of dist-infos.
std::vector<tree::RelPath> wanted_launchers(const tree::Tree& tree);

struct Relocation {
  tree::Tree tree;
  std::map<tree::RelPath, std::string> made;  // files whose text is written here
};

/// Rewrites what names `from`: the interpreters of scripts, activate scripts, pyvenv.cfg, and the rows of RECORD that list these. `texts`: of
/// dist-infos and of wanted_launchers(). Paths are absolute; where they are equal nothing changes.
/// A path that shells would read otherwise is refused.
Result<Relocation> relocate(const DistributionSet& set, const SmallFiles& texts, std::string_view from, std::string_view to);

/// The tree with other texts for some of its files, which are hard links of nothing then.
Result<tree::Tree> with_texts(const tree::Tree& tree, const std::map<tree::RelPath, std::string>& made);

}  // namespace envsync::python

// SPDX-License-Identifier: MIT
// What was found in a source, kept by what decides about it: a patched file changes nothing of it, and RECORDs of 100,000 rows need not be
// read to say the same again.
#pragma once

#include <string>
#include <vector>

#include <envsync/event.hpp>

#include "apply/run.hpp"
#include "content/digest.hpp"
#include "tree/tree.hpp"

namespace envsync::apply {

/// Names and kinds of all that the tree holds, and the contents of `texts`: contents of other files do not count. `also`: what else decides.
content::Digest findings_key(const tree::Tree& tree, const std::vector<tree::RelPath>& texts, std::string_view also);

/// The last findings under the label, where they were made for the same key.
std::optional<std::vector<Finding>> kept_findings(const std::string& label, const content::Digest& key);
void keep_findings(Run& run, const std::string& label, const content::Digest& key, const std::vector<Finding>& findings);

}  // namespace envsync::apply

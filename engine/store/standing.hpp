// SPDX-License-Identifier: MIT
// Who would be hurt if a displaced tree were deleted: a process that only maps or holds files open keeps them, but one that
// stands in a folder or has the tree mounted, as a container does, would find it empty. Private to store.
#pragma once

#include <string>
#include <vector>

namespace envsync::store {

/// Processes, described, that stand in or have mounted what lies at `staging`/`tx`/new; `tx` is unique on this machine.
/// Processes that may not be looked at are left out.
std::vector<std::string> standing_in(const std::string& staging_tx);

}  // namespace envsync::store

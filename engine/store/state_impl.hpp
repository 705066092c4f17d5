// SPDX-License-Identifier: MIT
// Private to store: what a State holds, and what its parts share.
#pragma once

#include "store/layout.hpp"
#include "store/state.hpp"

namespace envsync::store {

struct State::Impl {
  os::Files* files = nullptr;   // outlives the State
  Place place;
  os::Fd fd;                    // the state folder; not open: it does not exist
};

/// Names of the transactions' folders in staging, sorted.
Result<std::vector<std::string>> staging_names(int state);
/// The environment's folder; an empty descriptor where nothing is at the path. A path that is no folder is place_refused.
Result<os::Fd> open_live(const Place& place);

}  // namespace envsync::store

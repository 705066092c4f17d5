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
  std::vector<std::pair<scan::StatKey, scan::StatKey>> moves;  // of ctimes, not yet in the cache on disk
};

/// Names of the transactions' folders in staging, sorted.
Result<std::vector<std::string>> staging_names(int state);

}  // namespace envsync::store

// SPDX-License-Identifier: MIT
// Files that were verified while they were written go into the stat cache, so that nobody reads them again. Private to store.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "scan/stat_cache.hpp"
#include "tree/tree.hpp"

namespace envsync::store {

/// `indexes` are of `entries`; each lies at `path_of` beneath `at`. What cannot be looked at is left out.
void remember(scan::StatCache& cache, int at, std::span<const tree::Entry> entries, const std::vector<u32>& indexes, bool network,
              const std::function<std::string(const tree::Entry&)>& path_of);

}  // namespace envsync::store

// SPDX-License-Identifier: MIT
// Reads the files whose digest the walk could not know. Used by this room only.
#pragma once

#include <vector>

#include "scan/walk.hpp"

namespace envsync::scan {

struct ReadReport {
  std::vector<std::pair<u32, std::string>> failed;  // index in the listing, why; ascending
  u64 files = 0, bytes = 0;
};

/// Completes the entries and stats that `indexes` (ascending) name, in place.
Result<ReadReport> read_files(int root_fd, Listing& listing, std::vector<u32> indexes, const Options& options, const Believed& cache);

}  // namespace envsync::scan

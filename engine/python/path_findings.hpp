// SPDX-License-Identifier: MIT
// Absolute paths that an environment holds, and what is wrong with them where it will lie. All of it was so before the plan: warnings at most.
#pragma once

#include <string>
#include <vector>

#include <envsync/event.hpp>

#include "python/distribution_set.hpp"

namespace envsync::python {

/// The small files that find_paths() reads: launchers, .pth and .egg-link files, editable finders, direct_url.json, and texts that wheels
/// put beside their code (pkg-config files, kernelspecs).
std::vector<tree::RelPath> wanted_path_files(const tree::Tree& tree);

struct Roots {
  std::string_view origin;  // where the tree came from
  std::string_view target;  // where it will lie
};

/// One finding for each file that matters alone; where many say the same, one for all of them.
std::vector<Finding> find_paths(const DistributionSet& set, const SmallFiles& texts, const Roots& roots);

/// Libraries and their search paths, as an agent read them.
struct LibraryPaths { tree::RelPath path; std::string search; };
/// Absolute elements of RPATH and RUNPATH that are neither of the system nor of the environment.
std::vector<Finding> check_library_paths(const DistributionSet& set, const std::vector<LibraryPaths>& libraries, const Roots& roots);

}  // namespace envsync::python

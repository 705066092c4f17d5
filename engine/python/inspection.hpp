// SPDX-License-Identifier: MIT
// What an environment is, told by itself. No I/O.
#pragma once

#include <envsync/event.hpp>

#include "python/distribution_set.hpp"

namespace envsync::python {

/// Distributions, shared paths, files that nobody owns, bytecode, and what its pyvenv.cfg says; findings of lint() and find_paths().
/// The tree holds its bytecode. The set has learned the sums of contested() paths. `launchers`: the texts of wanted_path_files(). `root`:
/// where the environment lies. What only its host knows (host, program, answer) is left empty.
Inspection inspect(const DistributionSet& set, const SmallFiles& launchers, std::string_view pyvenv, std::string_view root);

}  // namespace envsync::python

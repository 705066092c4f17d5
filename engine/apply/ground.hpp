// SPDX-License-Identifier: MIT
// `source: target`: what overlays are laid onto is what the target had before the first of them, and what was changed there since
// outside of what they brought. Trees alone, no I/O.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "tree/tree.hpp"

namespace envsync::apply {

struct TargetTrees {
  const tree::Tree* ground = nullptr;    // of the current record
  const tree::Tree* recorded = nullptr;  // the record's own
  const tree::Tree* then = nullptr;      // what is there, as the record's rules see it
  const tree::Tree* now = nullptr;       // what is there, as this run's rules see it
};
/// The ground with what changed since: changes of paths that overlays had not touched; paths that this run's rules see and those of the
/// record did not, and the other way round. `without`: changes that are not taken over.
Result<tree::Tree> ground_now(const TargetTrees& trees, const tree::ComparePolicy& policy, const std::set<tree::RelPath>& without = {});

/// Changes since the record that `desired` does not hold: paths with what was done there ('+', '-', '~').
std::vector<std::pair<char, tree::RelPath>> discarded_drift(const TargetTrees& trees, const tree::Tree& desired, const tree::ComparePolicy& policy);

}  // namespace envsync::apply

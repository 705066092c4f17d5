// SPDX-License-Identifier: MIT
// One exit code for several runs and a signal.
#pragma once

#include <vector>

namespace envsync::cli {

/// Manifests run in order: where all end alike, that code; 4 beside success stays 4; else 3 where some succeeded, else 1.
int combined_exit_code(const std::vector<int>& codes);
/// 130 or 143 where a signal ended the run, unless the run succeeded all the same or its own code says more.
int interrupted_exit_code(int code, int signal);

}  // namespace envsync::cli

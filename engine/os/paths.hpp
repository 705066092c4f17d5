// SPDX-License-Identifier: MIT
// Absolute paths of this machine as users write them: homes, links that leave a tree, programs that can be run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <envsync/result.hpp>

#include "base/clock.hpp"
#include "os/fd.hpp"

namespace envsync::os {

/// "~/x" and "~" below the home folder of this process; other paths as they are.
std::string expand_home(const std::string& path);
/// All links resolved; nullopt where something on the way is missing.
std::optional<std::string> real_path(const std::string& path);
/// A regular file that this process may execute, links followed.
bool is_executable(const std::string& path);
/// $XDG_CACHE_HOME/envsync or ~/.cache/envsync; made with mode 700 where absent. Empty where there is none to be had.
std::string cache_folder();
/// Standard input to its end; more than `limit` bytes is an error.
Result<std::string> read_input(std::size_t limit);
/// The program that runs, to be read.
Result<Fd> open_self();

struct RunResult {
  int status = 0;        // as the shell gives it; 127 where it could not be started, 124 where it ran into the deadline
  std::string output;    // stdout and stderr together, at most 64 KiB
};
/// Runs a program with stdin closed and takes what it says.
RunResult run(const std::vector<std::string>& argv, Seconds limit);

}  // namespace envsync::os

// SPDX-License-Identifier: MIT
// Runs one function on several threads, the calling one among them. Used by this room only.
#pragma once

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include <envsync/types.hpp>

#include "os/process.hpp"
#include "scan/scan.hpp"

namespace envsync::scan {

inline u32 thread_count(const Options& options) {
  constexpr u32 kThreadsMax = 64;  // LIMIT: each may hold a folder and a large file open
  return std::clamp(options.threads != 0 ? options.threads : os::cpu_count(), u32{1}, kThreadsMax);
}

/// Returns when `work(number)` has returned on each thread; number 0 is the calling thread. Where the machine gives fewer
/// threads than wanted there are fewer: the work must be what any of them can do alone.
template <class Work>
void run_workers(u32 count, const Work& work) {
  std::vector<std::jthread> others;
  try {
    for (u32 i = 1; i < count; ++i) others.emplace_back([&work, i] { work(i); });
  } catch (const std::system_error&) {
  }
  work(0);
}

}  // namespace envsync::scan

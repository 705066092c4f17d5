// SPDX-License-Identifier: MIT
// Private to agent: the same work for many things, on every core.
#pragma once

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "os/process.hpp"

namespace envsync::agent {

/// Calls work(i) once for each i below `count`, in about that order; returns when all are done.
template <class Work>
void for_each_index(std::size_t count, const Work& work) {
  constexpr std::size_t kThreadsMax = 32;  // LIMIT: each may hold a buffer and a file
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  try {
    for (std::size_t i = 1; i < std::min<std::size_t>({os::cpu_count(), kThreadsMax, count}); ++i) others.emplace_back(run);
  } catch (const std::system_error&) {
    // The machine gives no more threads: those there are do it all.
  }
  run();
}

}  // namespace envsync::agent

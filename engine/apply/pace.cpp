// SPDX-License-Identifier: MIT
#include "apply/pace.hpp"

#include <algorithm>
#include <condition_variable>

namespace envsync::apply {

Deadline Pace::next(std::size_t bytes, Deadline now) {
  const std::lock_guard lock(mutex_);
  const Deadline at = std::max(now, free_);
  free_ = at + std::chrono::duration_cast<Deadline::duration>(Seconds{static_cast<double>(bytes) / rate_});
  return at;
}

void Pace::take(std::size_t bytes, const std::stop_token& stop) {
  const Deadline at = next(bytes, std::chrono::steady_clock::now());
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, at, [] { return false; });
}

}  // namespace envsync::apply

// SPDX-License-Identifier: MIT
#include "apply/pace.hpp"

#include <algorithm>

namespace envsync::apply {

Deadline Pace::next(std::size_t bytes, Deadline now) {
  const std::lock_guard lock(mutex_);
  const Deadline at = std::max(now, free_);
  free_ = at + std::chrono::duration_cast<Deadline::duration>(Seconds{static_cast<double>(bytes) / rate_});
  return at;
}

void Pace::take(std::size_t bytes, const std::stop_token& stop) {
  (void)wait_until(next(bytes, std::chrono::steady_clock::now()), stop);
}

}  // namespace envsync::apply

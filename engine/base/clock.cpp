// SPDX-License-Identifier: MIT
#include "base/clock.hpp"

#include <condition_variable>

namespace envsync {

bool wait_until(Deadline at, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, at, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace envsync

// SPDX-License-Identifier: MIT
// Time comes in through a Clock, so that tests need not wait.
#pragma once

#include <chrono>
#include <stop_token>

#include <envsync/types.hpp>

namespace envsync {

using Seconds = std::chrono::duration<double>;
using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();
inline Deadline deadline_in(Seconds s) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(s);
}

/// Waits for a point in time; false where `stop` came first.
bool wait_until(Deadline at, const std::stop_token& stop);

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::steady_clock::time_point steady() const = 0;
  /// Nanoseconds since 1970.
  virtual i64 realtime_ns() const = 0;
};

class SystemClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point steady() const override { return std::chrono::steady_clock::now(); }
  i64 realtime_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
};

}  // namespace envsync

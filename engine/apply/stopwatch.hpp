// SPDX-License-Identifier: MIT
// How long something went on in all, up to this moment. Thread-safe.
#pragma once

#include <mutex>

#include "base/clock.hpp"

namespace envsync::apply {

class Stopwatch {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    began_ = std::chrono::steady_clock::now();
    runs_ = true;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (runs_) sum_ += std::chrono::steady_clock::now() - began_;
    runs_ = false;
  }
  Seconds total() const {
    const std::lock_guard lock(mutex_);
    return runs_ ? Seconds(sum_ + (std::chrono::steady_clock::now() - began_)) : sum_;
  }

 private:
  mutable std::mutex mutex_;  // all below
  Seconds sum_{};
  std::chrono::steady_clock::time_point began_{};
  bool runs_ = false;
};

}  // namespace envsync::apply

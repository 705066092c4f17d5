// SPDX-License-Identifier: MIT
// A limit of bytes a second, kept over all who share it: each takes the next free moment, and waits for it.
#pragma once

#include <mutex>
#include <stop_token>

#include "base/clock.hpp"

namespace envsync::apply {

class Pace {
 public:
  explicit Pace(u64 bytes_per_second) : rate_(static_cast<double>(bytes_per_second)) {}
  /// When so many bytes may go, from `now` on; what follows goes after them. Nothing is saved up while nobody sends.
  Deadline next(std::size_t bytes, Deadline now);
  /// Waits for that; returns at once at a stop.
  void take(std::size_t bytes, const std::stop_token& stop);

 private:
  double rate_;
  std::mutex mutex_;  // free_
  Deadline free_{};
};

}  // namespace envsync::apply

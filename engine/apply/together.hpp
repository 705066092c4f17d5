// SPDX-License-Identifier: MIT
// settings.on_failure: all-or-nothing. Every host prepares; none swaps before all are ready.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

#include <envsync/event.hpp>
#include <envsync/result.hpp>

namespace envsync::apply {

class Together {
 public:
  /// At most `at_once` hosts prepare at a time; those that are ready do not count.
  Together(std::size_t hosts, std::size_t at_once) : pending_(hosts), places_(at_once) {}

  /// Waits for a place. False where it is not worth beginning any more.
  bool begin(std::stop_token stop);
  /// The host is ready to swap. Returns when all are, or with an error when one failed, at a stop, or after half an hour.
  Result<void> ready(std::stop_token stop);
  /// The host's outcome is there, whether it became ready or not.
  void ended(const Outcome& outcome);

 private:
  void leave_place();

  std::mutex mutex_;  // all below
  std::condition_variable_any changed_;
  std::size_t pending_;  // hosts that are neither ready nor have ended well
  std::size_t places_;
  std::string failed_;   // the first host that did
  bool is_swapping_ = false;
};

}  // namespace envsync::apply

// SPDX-License-Identifier: MIT
// How many connections to a host are worth having: more are tried while the last ones brought a tenth or more. Pure.
#pragma once

#include <envsync/types.hpp>

#include "base/clock.hpp"

namespace envsync::apply {

inline constexpr unsigned kLanesMax = 8;  // LIMIT: connections to one host

class Ramp {
 public:
  /// What is seen at a moment of the transfer.
  struct Sight {
    Seconds at{};             // of a clock that only goes on
    u64 wire_bytes = 0;       // moved so far, over all connections of the host
    u64 content_left = 0;     // not moved yet, as far as is known
    u64 content_moved = 0;
    unsigned lanes = 1;       // that carry something
    double busy = 1;          // since the last sight: the part of the time in which this host was waited for, and no other
    bool is_cpu_full = false; // here, since the last sight
  };
  /// How many more should be opened now: one, or as many as there are where the last brought nearly what the first ones did.
  unsigned more(const Sight& sight);
  /// The last trial brought nothing.
  bool has_settled() const { return has_settled_; }

 private:
  void begin(const Sight& sight);
  unsigned judge(const Sight& sight, double seconds);
  unsigned lanes_ = 0;       // of the window
  Sight from_{};             // where the window begins
  bool is_measuring_ = false;
  double busy_time_ = 0;
  bool was_cpu_full_ = false;
  Seconds last_{};
  double rate_before_ = 0;   // wire bytes a second before the trial; 0: there was none
  unsigned lanes_before_ = 0;
  bool has_settled_ = false;
};

}  // namespace envsync::apply

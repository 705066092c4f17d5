// SPDX-License-Identifier: MIT
#include "apply/ramp.hpp"

#include <algorithm>

namespace envsync::apply {

namespace {

// A new connection starts slowly: what it does in its first moments says nothing.
constexpr Seconds kSettle{0.3}, kWindow{0.5};
constexpr double kBetter = 1.10;
constexpr double kNearlyAll = 0.7;   // of what the lanes before brought, each
constexpr double kBusy = 0.6;        // below, somebody else is what the transfer waits for
constexpr double kWorthSeconds = 2;  // of transfer that must be left: a login takes a part of one
constexpr u64 kWorthBytes = 32u << 20;

}  // namespace

void Ramp::begin(const Sight& sight) {
  from_ = sight;
  busy_time_ = 0;
  was_cpu_full_ = false;
}

unsigned Ramp::more(const Sight& sight) {
  if (sight.lanes != lanes_) {
    // One was lost: what it brought is not known any more.
    if (sight.lanes < lanes_) rate_before_ = 0;
    lanes_ = sight.lanes;
    is_measuring_ = false;
    begin(sight);
    last_ = sight.at;
    return 0;
  }
  busy_time_ += sight.busy * (sight.at - last_).count();
  was_cpu_full_ = was_cpu_full_ || sight.is_cpu_full;
  last_ = sight.at;
  const double seconds = (sight.at - from_.at).count();
  if (!is_measuring_) {
    if (seconds < kSettle.count()) return 0;
    is_measuring_ = true;
    begin(sight);
    return 0;
  }
  if (seconds < kWindow.count()) return 0;
  return judge(sight, seconds);
}

unsigned Ramp::judge(const Sight& sight, double seconds) {
  const double rate = static_cast<double>(sight.wire_bytes - from_.wire_bytes) / seconds;
  const double content_rate = static_cast<double>(sight.content_moved - from_.content_moved) / seconds;
  const bool was_busy = busy_time_ >= kBusy * seconds, was_full = was_cpu_full_;
  begin(sight);
  unsigned step = 1;
  // A trial is judged by what it carried while it was waited for.
  if (rate_before_ > 0 && was_busy) {
    has_settled_ = has_settled_ || rate < rate_before_ * kBetter;
    const double share = static_cast<double>(sight.lanes) / static_cast<double>(std::max(1u, lanes_before_)) - 1;
    if (rate >= rate_before_ * (1 + kNearlyAll * share)) step = sight.lanes;
    rate_before_ = 0;
  }
  if (has_settled_ || was_full || !was_busy || sight.lanes >= kLanesMax) return 0;
  const bool is_worth_it = sight.content_left >= kWorthBytes && static_cast<double>(sight.content_left) >= content_rate * kWorthSeconds;
  if (!is_worth_it) return 0;
  rate_before_ = rate;
  lanes_before_ = sight.lanes;
  return std::min(step, kLanesMax - sight.lanes);
}

}  // namespace envsync::apply

// SPDX-License-Identifier: MIT
#include "apply/ramp.hpp"

namespace envsync::apply {

namespace {

// A new connection starts slowly: what it does in its first moments says nothing.
constexpr Seconds kSettle{0.4}, kWindow{0.6};
constexpr double kBetter = 1.10;
constexpr double kBusy = 0.6;        // below, somebody else is what the transfer waits for
constexpr double kWorthSeconds = 2;  // of transfer that must be left: a login takes a part of one
constexpr u64 kWorthBytes = 32u << 20;

}  // namespace

void Ramp::begin(const Sight& sight) {
  from_ = sight;
  busy_time_ = 0;
  was_cpu_full_ = false;
}

bool Ramp::wants_more(const Sight& sight) {
  if (sight.lanes != lanes_) {
    // One was lost: what it brought is not known any more.
    if (sight.lanes < lanes_) rate_before_ = 0;
    lanes_ = sight.lanes;
    is_measuring_ = false;
    begin(sight);
    last_ = sight.at;
    return false;
  }
  busy_time_ += sight.busy * (sight.at - last_).count();
  was_cpu_full_ = was_cpu_full_ || sight.is_cpu_full;
  last_ = sight.at;
  const double seconds = (sight.at - from_.at).count();
  if (!is_measuring_) {
    if (seconds < kSettle.count()) return false;
    is_measuring_ = true;
    begin(sight);
    return false;
  }
  if (seconds < kWindow.count()) return false;
  const double rate = static_cast<double>(sight.wire_bytes - from_.wire_bytes) / seconds;
  const double content_rate = static_cast<double>(sight.content_moved - from_.content_moved) / seconds;
  const bool was_busy = busy_time_ >= kBusy * seconds, was_full = was_cpu_full_;
  begin(sight);
  // Judged by what it carried while it was waited for.
  if (rate_before_ > 0 && was_busy) {
    has_settled_ = has_settled_ || rate < rate_before_ * kBetter;
    rate_before_ = 0;
  }
  if (has_settled_ || was_full || !was_busy || sight.lanes >= kLanesMax) return false;
  const bool is_worth_it = sight.content_left >= kWorthBytes && static_cast<double>(sight.content_left) >= content_rate * kWorthSeconds;
  if (!is_worth_it) return false;
  rate_before_ = rate;
  return true;
}

}  // namespace envsync::apply

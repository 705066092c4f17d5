// SPDX-License-Identifier: MIT
#include "apply/together.hpp"

#include <fmt/format.h>

namespace envsync::apply {

namespace {

constexpr std::chrono::minutes kPatience{30};  // LIMIT: what is ready waits so long for the others

}  // namespace

bool Together::begin(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return places_ > 0 || !failed_.empty(); });
  if (!failed_.empty() || stop.stop_requested()) return false;
  --places_;
  return true;
}

void Together::leave_place() {
  ++places_;
  changed_.notify_all();
}

Result<void> Together::ready(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  leave_place();
  if (--pending_ == 0 && failed_.empty()) is_swapping_ = true;
  const bool is_settled = changed_.wait_for(lock, stop, kPatience, [&] { return is_swapping_ || !failed_.empty(); });
  if (is_swapping_) return ok();
  if (stop.stop_requested()) return Error{ErrorCode::interrupted, "the run was stopped"};
  const std::string why = is_settled ? fmt::format("{} failed", failed_) : std::string("the others were not ready within 30 minutes");
  return Error{ErrorCode::failed, fmt::format("ready, and not swapped: {}", why)}.hint("settings.on_failure is all-or-nothing; run again when every host is well");
}

void Together::ended(const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  if (is_swapping_) return;
  if (outcome.error) {
    if (failed_.empty()) failed_ = outcome.host;
  } else if (--pending_ == 0 && failed_.empty()) {
    is_swapping_ = true;
  }
  leave_place();
}

}  // namespace envsync::apply

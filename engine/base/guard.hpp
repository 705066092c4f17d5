// SPDX-License-Identifier: MIT
// Runs a function when the scope ends, unless dismissed. For undoing, never for completing.
#pragma once

#include <utility>

namespace envsync {

template <class F>
class [[nodiscard]] ScopeGuard {
 public:
  explicit ScopeGuard(F undo) : undo_(std::move(undo)) {}
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  ~ScopeGuard() { if (is_armed_) undo_(); }
  void dismiss() noexcept { is_armed_ = false; }

 private:
  F undo_;
  bool is_armed_ = true;
};

}  // namespace envsync

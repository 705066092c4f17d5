// SPDX-License-Identifier: MIT
// TRY and TRY_STATUS show where a function leaves on an error. ENVSYNC_CHECK states what only a bug can break.
#pragma once

#include <string_view>

#include <envsync/result.hpp>

#define ENVSYNC_CONCAT_(a, b) a##b
#define ENVSYNC_CONCAT(a, b) ENVSYNC_CONCAT_(a, b)
#define ENVSYNC_TRY_(tmp, declaration, ...)        \
  auto tmp = (__VA_ARGS__);                        \
  if (!tmp) return std::move(tmp).error();         \
  declaration = std::move(tmp).value()

/// TRY(auto x, f()): declares x with f()'s value, or returns f()'s error.
#define TRY(declaration, ...) ENVSYNC_TRY_(ENVSYNC_CONCAT(try_, __LINE__), declaration, __VA_ARGS__)

/// TRY_STATUS(f()): goes on if f() succeeded, else returns its error.
#define TRY_STATUS(...)                                              \
  do {                                                               \
    if (auto status_ = (__VA_ARGS__); !status_) return std::move(status_).error(); \
  } while (false)

namespace envsync {
/// Prints where, says that this is a bug, and aborts.
[[noreturn]] void check_failed(std::string_view expression, std::string_view file, int line);
}  // namespace envsync

#define ENVSYNC_CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::envsync::check_failed(#expression, __FILE__, __LINE__))

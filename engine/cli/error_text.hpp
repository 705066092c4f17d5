// SPDX-License-Identifier: MIT
// An Error as a person reads it: what failed, where with the line and a caret, why, what is true now, what to do.
#pragma once

#include <string>

#include <envsync/event.hpp>

#include "cli/text.hpp"

namespace envsync::cli {

struct ErrorContext {
  Severity severity = Severity::error;
  std::string at;       // "host:path" where the error itself names no place; empty: none
  std::string run_log;  // named where a bug is reported; empty: none
};

std::string error_text(const Error& error, const Palette& palette, const ErrorContext& context = {});
std::string finding_text(const Finding& finding, const Palette& palette);

}  // namespace envsync::cli

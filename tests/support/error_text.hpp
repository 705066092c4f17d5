// SPDX-License-Identifier: MIT
// An Error as plain text, so that a test can hold a whole message.
#pragma once

#include <envsync/result.hpp>

#include <fmt/format.h>

namespace envsync::test {

inline std::string error_text(const Error& error) {
  std::string out = error.what + "\n";
  if (error.where) {
    const Location& at = *error.where;
    out += fmt::format(" --> {}:{}:{}\n", at.file, at.line, at.column);
    if (!at.line_text.empty()) {
      out += fmt::format(" | {}\n | {}{}\n", at.line_text, std::string(at.column - 1, ' '), std::string(at.length, '^'));
    }
  }
  for (const std::string& line : error.causes) out += "cause: " + line + "\n";
  for (const std::string& line : error.at_notes) out += "= note: " + line + "\n";
  for (const std::string& line : error.notes) out += "note: " + line + "\n";
  for (const std::string& line : error.hints) out += "hint: " + line + "\n";
  return out;
}

inline std::string errors_text(const std::vector<Error>& errors) {
  std::string out;
  for (const Error& error : errors) out += (out.empty() ? "" : "\n") + error_text(error);
  return out;
}

}  // namespace envsync::test

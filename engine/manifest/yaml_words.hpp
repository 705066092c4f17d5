// SPDX-License-Identifier: MIT
// Private to manifest/: what a YAML syntax error means, in words.
#pragma once

#include <string>
#include <string_view>

#include "manifest/problems.hpp"

namespace envsync::manifest {

struct SyntaxWords {
  std::string what;
  std::string hint;  // may be empty
};

/// `message` is yaml-cpp's; `lines_before` the text up to and with the line of the error, `column` the byte in that line.
SyntaxWords in_words(std::string_view message, std::string_view text_before, std::string_view line, std::size_t column);

}  // namespace envsync::manifest

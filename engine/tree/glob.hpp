// SPDX-License-Identifier: MIT
// One component of a pattern against one component of a path: *, ?, [a-z], [!a-z], [[:alpha:]], backslash. Used by this room only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace envsync::tree {

/// Bytes, not characters. Takes at most pattern * name steps.
bool glob_component(std::string_view pattern, std::string_view name);
/// Empty where the pattern is whole; else why it is not.
std::optional<std::string> wrong_with_glob(std::string_view pattern);

}  // namespace envsync::tree

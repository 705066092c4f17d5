// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include <envsync/types.hpp>

namespace envsync {

/// A rate with its unit: 50MB/s, 400Mbit/s. In bytes a second, never 0.
std::optional<u64> parse_rate(std::string_view text);

}  // namespace envsync

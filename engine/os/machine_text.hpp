// SPDX-License-Identifier: MIT
// Private to os: the text files by which the kernel and the machine tell about themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace envsync::os {

/// At most `limit` bytes; empty where it cannot be read.
std::string read_whole(const std::string& path, std::size_t limit);
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace envsync::os

// SPDX-License-Identifier: MIT
// Private to python/: absolute paths in texts, compared by components and never as string prefixes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <envsync/types.hpp>

namespace envsync::python {

/// "/a/b" holds "/a/b" and "/a/b/c", not "/a/bc". Both absolute, without a slash at the end.
bool lies_in(std::string_view path, std::string_view root);
/// Lexically: "." and "..", doubled slashes and one at the end resolved; of a path that is absolute.
std::string normalized(std::string_view path);

/// Where `root` stands in a text as a path of its own: no path goes on to the left or, but for a slash, to the right. Byte offsets.
std::vector<std::size_t> find_root(std::string_view text, std::string_view root);
/// The text with `root` replaced there.
std::string with_root_replaced(std::string_view text, std::string_view root, std::string_view by);
u32 line_of(std::string_view text, std::size_t offset);

}  // namespace envsync::python

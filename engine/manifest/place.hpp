// SPDX-License-Identifier: MIT
// Private to manifest/: the rules of paths and host names.
//
//   place := "local" | [user "@"] name [":" port] [":" path] | path        path: begins with / or ~/
//   name  := letters, digits, "." "_" "-" "+"  |  "[" IPv6 address "]"
#pragma once

#include <string>
#include <string_view>

#include "manifest/manifest.hpp"

namespace envsync::manifest {

/// The path of an environment without doubled and closing slashes. Refused: what is not absolute and not below "~/", the
/// whole machine, a home folder, "." and "..", envsync's own state.
Result<std::string> environment_path(std::string_view path);
/// "root@b300:22" as messages call it.
std::string host_name(const Host& host);
/// Ok, or why `name` cannot be a host's name.
Result<void> check_host_name(std::string_view name);
Result<void> check_user_name(std::string_view user);
/// A [ within the name: "gpu-[01-08]", where "[::1]" and "ada@[::1]" begin with it.
bool is_range(std::string_view text);
std::optional<u16> port_of(std::string_view digits);

}  // namespace envsync::manifest

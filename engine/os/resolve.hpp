// SPDX-License-Identifier: MIT
// Private to os: how a relative path beneath an open directory becomes a descriptor or a (directory, name) pair.
#pragma once

#include <string>
#include <string_view>

#include <envsync/result.hpp>

#include "os/fd.hpp"

namespace envsync::os {

/// "" and "." name the directory itself.
inline bool is_self(std::string_view rel) { return rel.empty() || rel == "."; }

/// Opens beneath `at` without following a link or crossing a mount; O_CLOEXEC is added. A descriptor, or -errno:
/// EINVAL for a path with an empty, "." or ".." component, ELOOP for a link, EXDEV for a mount on the way.
int open_beneath(int at, std::string_view rel, int flags);

/// The last component of a path and its directory, which costs nothing where the path has one component.
struct Name {
  Fd parent;         // holds `dir` open where it had to be opened
  int dir = -1;
  std::string last;  // "" is `dir` itself
  const char* c_str() const { return last.c_str(); }
};
Result<Name> locate(int at, std::string_view rel, std::string_view operation);

/// os_error() of an open_beneath() that gave `saved_errno`: says that a link or a mount lies on the path.
Error resolve_error(int saved_errno, std::string_view operation, std::string_view rel);

/// "/proc/self/fd/N", for calls that take a path only.
std::string proc_path(int fd);

}  // namespace envsync::os

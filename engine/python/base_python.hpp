// SPDX-License-Identifier: MIT
// The Python that an environment was made from, as a tree that can be brought to another host. No I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <envsync/result.hpp>

#include "tree/tree.hpp"

namespace envsync::python {

struct BasePython {
  std::string root;     // absolute: /root/.local/share/uv/python/cpython-3.12-linux-x86_64-gnu
  std::string program;  // below it
};
/// From pyvenv.cfg and the program that bin/python leads to. The system's own Python is refused, and one whose parts lie in several places.
Result<BasePython> base_python(std::string_view pyvenv, std::string_view program);

/// uv's and conda's bring all that they need; of others the host must have the libraries that they need and do not hold.
enum class BaseKind : u8 { uv, conda, other };
BaseKind kind_of(const BasePython& base, const tree::Tree& tree);

/// Why the tree is not a whole Python `version` ("3.12"); empty: it is.
std::string wrong_with_base(const BasePython& base, const tree::Tree& tree, std::string_view version);

struct Library { std::string path, soname, needed; };  // needed: names, ':' between
/// What they need and none of them is, sorted.
std::vector<std::string> needed_outside(const std::vector<Library>& libraries);

}  // namespace envsync::python

// SPDX-License-Identifier: MIT
// What the name of a wheel says about where it runs: PEP 425 and 427, of CPython on Linux.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <envsync/event.hpp>

namespace envsync::python {

struct WheelName {
  std::string name;     // normalized
  std::string version;  // as written
  std::vector<std::string> pythons, abis, platforms;  // py2.py3 is two
};
/// nullopt where the file name is none of a wheel.
std::optional<WheelName> parse_wheel_name(std::string_view file);

/// Why the wheel does not run on CPython `python` ("3.12") of `machine` ("x86_64"), such as "it is for cp311, not for Python 3.12"; empty: it does,
/// as far as its name tells. What glibc it needs is not asked here.
std::string wrong_with_tags(const WheelName& wheel, std::string_view python, std::string_view machine);

/// A finding for each wheel that does not run there, or whose file name is none.
std::vector<Finding> check_wheel_tags(const std::vector<std::string>& files, std::string_view python, std::string_view machine);

}  // namespace envsync::python

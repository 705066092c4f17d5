// SPDX-License-Identifier: MIT
// One place of the command line, looked at without a manifest.
#pragma once

#include <string>

#include <envsync/result.hpp>

#include "manifest/manifest.hpp"

namespace envsync::apply {

/// A path of this machine as the command line has it, complete.
std::string absolute_path(const std::string& path);

/// HOST:PATH or PATH, which names an environment.
Result<manifest::Source> place_of(const std::string& text);

}  // namespace envsync::apply

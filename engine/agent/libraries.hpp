// SPDX-License-Identifier: MIT
// What a shared library or a program says of itself: its name, which libraries it needs, and where it looks for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <envsync/types.hpp>

namespace envsync::agent {

struct LibraryFacts {
  std::string soname;
  std::string search;               // DT_RPATH, or DT_RUNPATH where it has one
  std::vector<std::string> needed;
};
/// From the headers of a 64-bit little-endian ELF file; a few reads, whatever its size. nullopt where it is none, or damaged.
std::optional<LibraryFacts> read_library(int fd);

/// Those of the names that this host's loader would not find in its cache or its usual folders.
std::vector<std::string> absent_sonames(const std::vector<std::string>& names);

}  // namespace envsync::agent

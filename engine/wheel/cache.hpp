// SPDX-License-Identifier: MIT
// Wheels that were unpacked once, in the user's cache folder: <cache>/wheels/<digest of the wheels>/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "content/digest.hpp"
#include "wheel/unpack.hpp"

namespace envsync::wheel {

/// Wheels that a path names.
struct Found {
  os::Fd folder;                   // that holds them
  std::vector<std::string> names;  // of the files, sorted
};
/// A *.whl file, or a folder that has some at its top and is neither an environment nor a folder of packages. nullopt: something else.
Result<std::optional<Found>> find(const std::string& path);

struct Unpacked {
  os::Fd root;       // holds it in the cache while it is open
  std::string path;  // absolute
};
/// The digest of an open file; the caller may know it without reading.
using DigestOf = std::function<Result<content::Digest>(int fd, std::string_view name)>;

/// `cache`: os::cache_folder(). Unpacks where the cache lacks them, and lets go of what was used least.
Result<Unpacked> unpacked(os::Files& files, const std::string& cache, const Found& wheels, const DigestOf& digest_of, const Progress& progress,
                          std::stop_token stop);

}  // namespace envsync::wheel

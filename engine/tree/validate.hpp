// SPDX-License-Identifier: MIT
// What an entry must be, wherever it comes from: the walk, a peer, a file. Used by this room only.
#pragma once

#include <optional>
#include <string>

#include "tree/tree.hpp"

namespace envsync::tree {

// LIMIT: what Linux itself allows (NAME_MAX, XATTR_SIZE_MAX, PATH_MAX with its NUL), so that no tree is refused that a disk can hold.
inline constexpr std::size_t kXattrNameMax = 255, kXattrValueMax = 65536, kXattrsMax = 4096, kTargetBytesMax = 4095;
inline constexpr std::size_t kEntriesMax = 4'000'000;

/// Empty where the entry alone is as tree.hpp says; else what is wrong with it.
std::optional<std::string> wrong_with(const Entry& entry);
/// An Error{corrupt} that names the path.
Error bad_tree(const RelPath& path, std::string_view why);

}  // namespace envsync::tree

// SPDX-License-Identifier: MIT
// Entries as columns: one kind of value after the other, which packs better than one entry after the other. Used by this room only.
#pragma once

#include <vector>

#include "tree/tree.hpp"

namespace envsync::tree {

void put_columns(Bytes& out, std::span<const Entry> entries);
/// Entries that each are valid alone; their order and their place in a tree are not looked at.
Result<std::vector<Entry>> take_columns(ByteView& in);
void put_paths(Bytes& out, std::span<const RelPath> paths);
Result<std::vector<RelPath>> take_paths(ByteView& in);

}  // namespace envsync::tree

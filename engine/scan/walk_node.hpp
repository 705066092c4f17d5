// SPDX-License-Identifier: MIT
// What the walk gathers, one node a folder, and how nodes become one sorted list. Used by this room only.
#pragma once

#include <vector>

#include "scan/walk.hpp"

namespace envsync::scan {

/// A file or a link.
struct Item {
  tree::Entry entry;
  StatKey key;
  bool is_linked = false;  // more than one link
  bool is_cached = false;
  bool is_read = true;     // nothing is left to read of it
};

struct Node {
  Node* parent = nullptr;               // of the root: null
  tree::Entry entry;                    // of the folder itself
  StatKey key;
  std::vector<Item> items;
  std::vector<Node*> subdirs;
  std::vector<tree::RelPath> found_dirs;  // until the walker has made nodes of them
  std::vector<Unmanaged> unmanaged;
  std::vector<Problem> problems;
  bool is_dropped = false;              // it is not part of the tree, nor is anything beneath it
};

/// Turns folders that hold only unmanaged entries into unmanaged entries themselves. Parents come before children in `nodes`.
void drop_unmanaged_dirs(const std::vector<Node*>& nodes);
/// Moves everything out of the nodes.
Listing to_listing(const std::vector<Node*>& nodes);

}  // namespace envsync::scan

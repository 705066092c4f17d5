// SPDX-License-Identifier: MIT
// Trees by their full digest, in the user's cache folder, so that a tree that the other side holds is never sent again
// and one that changed travels as a difference. Bounded; a broken or missing file is a miss, never an error.
#pragma once

#include <optional>
#include <string>

#include "os/files.hpp"
#include "tree/tree.hpp"

namespace envsync::store {

class TreeCache {
 public:
  /// `folder`: os::cache_folder(); empty: a cache that holds nothing.
  TreeCache(os::Files& files, const std::string& folder);
  /// Whether find() has something to read.
  bool has(const content::Digest& full) const;
  std::optional<tree::Tree> find(const content::Digest& full) const;
  /// Keeps the tree, and as the last one seen of `label` (such as "host:/path"). Older ones go beyond kTreesMax.
  /// `full` is the tree's full digest.
  void keep(const std::string& label, const tree::Tree& tree, const content::Digest& full);
  /// The full digest of the last tree kept of `label`.
  std::optional<content::Digest> last(const std::string& label) const;

 private:
  static constexpr std::size_t kTreesMax = 24;
  void sweep();
  void write(const std::string& name, ByteView bytes);
  os::Files* files_;  // outlives this
  os::Fd trees_;      // <folder>/trees; not open: no cache
};

}  // namespace envsync::store

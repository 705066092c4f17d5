// SPDX-License-Identifier: MIT
// Owner and attributes of a new inode: what the desired tree decides, and what belongs to the host and comes from the entry
// that was there before. Private to store.
#pragma once

#include <string>

#include "os/files.hpp"
#include "tree/tree.hpp"

namespace envsync::store {

struct XattrRules {
  tree::ComparePolicy policy;
  bool same_content = false;   // capabilities belong to the bytes that they were given to
};

/// An id of ~0 stays as it is. Where the ids are not `required`, they are given where this process may.
Result<void> give_owner(os::Files& files, int fd, tree::Owner owner, bool required);
/// `base_at`/`base_rel`: the entry before; `base_at` < 0: there was none. Attributes of the host that cannot be given are left out.
Result<void> give_xattrs(os::Files& files, int fd, const tree::Xattrs& desired, int base_at, const std::string& base_rel,
                         const XattrRules& rules);
/// Takes away what an earlier run gave a leftover file.
Result<void> remove_strange_xattrs(os::Files& files, int fd, const tree::Xattrs& desired);

}  // namespace envsync::store

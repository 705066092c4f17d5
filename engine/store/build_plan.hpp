// SPDX-License-Identifier: MIT
// How each entry of the desired tree comes into the staged one: pure, from the two trees. Private to store.
#pragma once

#include <unordered_map>
#include <vector>

#include "store/pool.hpp"
#include "store/transaction.hpp"

namespace envsync::store {

inline constexpr u32 kNoIndex = ~u32{0};

enum class How : u8 {
  outside,      // of the commit root: not touched
  folder,
  keep,         // as it is: a link of the live entry
  symlink,      // made new
  make,         // a file of its own inode, from its content
  join,         // another name of its link group's first file
};

struct BuildPlan {
  std::vector<How> how;                      // of desired.entries()
  std::vector<u32> base_of;                  // index in the observed tree of the entry with the same path, or kNoIndex
  std::vector<u32> desired_of;               // the same the other way round, of observed.entries()
  std::vector<u32> folders;                  // desired indexes, parents first
  std::unordered_map<ContentId, std::vector<u32>, content::ContentIdHash> contents;  // to be made: for each its How::make entries
  std::unordered_map<u32, std::vector<u32>> members;  // How::join entries of each link group's first entry
  bool root_is_dir = true;                   // the commit root
};

/// Checks that the commit root contains every change and exists with the same type on both sides.
Result<BuildPlan> plan_build(const Begin& begin, const tree::Tree& observed);

}  // namespace envsync::store

// SPDX-License-Identifier: MIT
// The walk: every entry beneath a root with its stat, in the order of a tree, before any file is read. Used by this room only.
#pragma once

#include <vector>

#include "scan/scan.hpp"

namespace envsync::scan {

/// What a walk looks at beside names and stats.
enum class Depth : u8 {
  stats,    // nothing else: link targets, attributes and digests stay empty
  entries,  // link targets, attributes, and digests where the cache has them
};

struct LinkedFile { u64 dev = 0, ino = 0; u32 index = 0; };  // a file with more than one link

struct Listing {
  std::vector<tree::Entry> entries;    // in byte order of path, the root first
  std::vector<StatKey> stats;          // of entries
  std::vector<u32> unread;             // indexes of files whose digest is not known, ascending
  std::vector<LinkedFile> linked;      // ascending by index
  std::vector<Unmanaged> unmanaged;    // sorted
  std::vector<Problem> problems;       // in any order
  u64 cache_hits = 0;
};

/// The stat cache, and how long a file on that filesystem must be settled to be believed. `cache` may be null.
struct Believed { StatCache* cache = nullptr; bool is_network = false; };

Result<Listing> walk(int root_fd, Depth depth, const Options& options, const Believed& cache);

/// What a StatCache may keep of an entry's attributes: user.* and security.capability; all else is the host's.
tree::Xattrs managed_xattrs(os::XattrList list);
/// What the tree gets of them.
tree::Xattrs wanted_xattrs(tree::Xattrs kept, const Options& options);

inline constexpr const char* kChanged = "changed while it was read";
/// Why an entry cannot be read, as a Problem says it.
std::string describe(const Error& error);
Error stopped();

}  // namespace envsync::scan

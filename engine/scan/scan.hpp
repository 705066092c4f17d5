// SPDX-License-Identifier: MIT
// Walks a root into a tree. Parallel, beneath a descriptor, never through a link or a mount; special files are reported
// and never opened; digests come from the stat cache where it may be trusted, else from the bytes.
#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include <envsync/result.hpp>

#include "os/files.hpp"
#include "scan/stat_cache.hpp"
#include "tree/exclude.hpp"
#include "tree/tree.hpp"

namespace envsync::scan {

struct Options {
  tree::Exclude exclude;
  tree::Bytecode bytecode = tree::Bytecode::leave_out;
  bool want_xattrs = true;       // user.*, and security.capability where `want_capabilities`
  bool want_capabilities = false;
  std::atomic<u64>* left_out = nullptr;  // counts the entries that have attributes which are left out; outlives the scan
  bool trust_cache = true;       // false: verify --full reads every byte
  u32 threads = 0;               // 0: one a core
  std::stop_token stop;
  /// Called now and then from one thread at a time with what is done and, once known, of how much.
  std::function<void(u64 files_hashed, u64 bytes_hashed, u64 bytes_to_hash)> progress;
};

/// An entry that is not managed: an excluded path or bytecode. A directory stands for all beneath it.
/// A directory that holds only unmanaged entries is unmanaged itself; an empty one is managed.
struct Unmanaged {
  tree::RelPath path;
  os::Kind kind = os::Kind::file;
  bool is_bytecode = false;  // not by a pattern; of a directory other than __pycache__: it holds nothing else
};

/// One path that keeps the tree from being copied whole.
struct Problem {
  tree::RelPath path;
  std::string what;   // "is a socket, pipe or device", "permission denied", "a filesystem is mounted here", "changed while it was read"
};

struct Counters {
  u64 entries = 0, files_hashed = 0, bytes_hashed = 0, cache_hits = 0;
  u64 linked_alone = 0;  // files with more than one link, of which the tree has one
};

struct Scan {
  tree::Tree tree;                  // managed entries; absent where the root does not exist
  std::vector<StatKey> stats;       // of tree.entries()[i], when it was scanned
  std::vector<Unmanaged> unmanaged; // sorted by path
  std::vector<Problem> problems;    // sorted by path; each of these paths is missing in the tree
  Counters counters;
};

/// Scans the directory `root_fd`; below 0: there is none. The cache gives and takes digests; the caller saves it. What concerns one
/// path is a Problem; an error is a root that cannot be listed, or a stop.
Result<Scan> scan(int root_fd, const Options&, StatCache& cache);

/// Stats every entry of `tree` beneath `root_fd` again (no reading) and names the first `limit` that differ from
/// `expected`, are gone, or are new. 2.5 µs a file. `exclude` and `bytecode` as in the scan, for what is new.
struct Differs { tree::RelPath path; std::string what; };
Result<std::vector<Differs>> recheck(int root_fd, const tree::Tree& tree, std::span<const StatKey> expected,
                                     const Options&, std::size_t limit);

}  // namespace envsync::scan

// SPDX-License-Identifier: MIT
// Deleting trees of ours whose files may be links of live ones: each deletion moves the ctime of the file that stays, and the
// stat cache moves with it, so that nothing is read again for it. Private to store.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "os/files.hpp"
#include "scan/stat_cache.hpp"

namespace envsync::store {

/// Where moved ctimes go: at once into a cache that a scan has filled, else into a list for the cache that is loaded next. A cache
/// that was only loaded must not be saved: it would forget what nobody has asked it for. Thread-safe.
class CacheMoves {
 public:
  explicit CacheMoves(scan::StatCache* cache) : cache_(cache) {}
  void moved(const scan::StatKey& from, const scan::StatKey& to);
  std::vector<std::pair<scan::StatKey, scan::StatKey>> take() { return std::exchange(list_, {}); }

 private:
  scan::StatCache* cache_;  // outlives this; null: the list
  std::mutex mutex_;        // guards list_
  std::vector<std::pair<scan::StatKey, scan::StatKey>> list_;
};

/// The folder or file that holds the same inodes under the same names, such as the live commit root; `at` < 0: there is none.
struct Twin {
  int at = -1;
  std::string rel;
};

struct Discarded { u64 files = 0, bytes = 0; };  // bytes: of those whose last link went

/// Deletes `rel` and all beneath it. Never through a link or a mount. Absent: success.
Result<Discarded> discard_tree(os::Files& files, int at, const std::string& rel, const Twin& twin, CacheMoves& moves);
/// Deletes only the files that are links of the twin's; what was written here stays.
Result<Discarded> discard_shared(os::Files& files, int at, const std::string& rel, const Twin& twin, CacheMoves& moves);

}  // namespace envsync::store

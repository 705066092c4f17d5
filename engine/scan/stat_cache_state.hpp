// SPDX-License-Identifier: MIT
// What a StatCache holds: slots in one vector and an open-addressed index, because a walk looks up 80,000 of them in 0.2 s
// and a node for each would cost more than the walk. Used by this room only.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "scan/stat_cache.hpp"

namespace envsync::scan {

struct StatCache::State {
  static constexpr std::size_t kEntriesMax = 8'000'000;  // LIMIT: twice the entries of the largest tree

  struct Slot {
    StatKey key;
    content::Digest digest;
    std::unique_ptr<tree::Xattrs> xattrs;  // null: none; few files have any
    bool has_xattrs = false, is_used = false, is_passed_over = false;
    Cached cached() const { return {digest, xattrs ? *xattrs : tree::Xattrs{}, has_xattrs}; }
    void assign(const Cached& c) {
      digest = c.digest;
      has_xattrs = c.has_xattrs;
      xattrs = c.xattrs.empty() ? nullptr : std::make_unique<tree::Xattrs>(c.xattrs);
    }
    bool equals(const Cached& c) const {
      return digest == c.digest && has_xattrs == c.has_xattrs && (xattrs ? *xattrs == c.xattrs : c.xattrs.empty());
    }
  };

  /// Slots and where each lies by its key.
  struct Table {
    std::vector<Slot> slots;
    std::vector<u32> index;  // 1 + slot, 0: free; a power of two, at most half full
    Slot* find(const StatKey& key);
    void insert(const StatKey& key, const Cached& cached, bool is_used);
    void reserve(std::size_t count);

   private:
    void place(std::size_t slot);
  };

  /// As the file had them. Looked up without the mutex, by all threads of a walk at once: nothing of it changes but the two flags of a
  /// slot, atomically; what is not true any more is passed over and added anew.
  Table loaded;
  mutable std::mutex mutex;  // guards everything below
  Table added;
  bool is_changed = false;

  Slot* find_loaded(const StatKey& key);
  /// Under the mutex.
  Slot* find(const StatKey& key);
  /// Under the mutex. What is known under the key from now on.
  void replace(const StatKey& key, const Cached& cached);
};

}  // namespace envsync::scan

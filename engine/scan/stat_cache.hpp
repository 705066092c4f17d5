// SPDX-License-Identifier: MIT
// Maps what stat says of a file to its digest and attributes. An entry is trusted only if mtime and ctime were older
// than the filesystem's own clock, by 20 ms (3 s on a network filesystem), when that stat was taken; such entries alone are stored.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <envsync/result.hpp>

#include "content/digest.hpp"
#include "os/files.hpp"
#include "tree/tree.hpp"

namespace envsync::scan {

struct StatKey {
  u64 dev = 0;
  u64 ino = 0, size = 0;
  i64 mtime_ns = 0, ctime_ns = 0;
  bool operator==(const StatKey&) const = default;
};
StatKey key_of(const os::Stat& stat);

struct Cached {
  content::Digest digest;
  tree::Xattrs xattrs;
  bool has_xattrs = false;   // false: only the digest is known
};

/// Thread-safe. A file that does not decode, or whose checksum is wrong, is an empty cache.
class StatCache {
 public:
  StatCache();
  StatCache(StatCache&&) noexcept;
  StatCache& operator=(StatCache&&) noexcept;
  /// Absent or broken: empty, never an error.
  static StatCache load(int at, const std::string& rel);
  static StatCache decode(ByteView bytes);
  Bytes encode() const;  // only entries that were looked up or put since loading, so that it does not grow for ever
  /// Atomic; failure leaves the old cache.
  Result<void> save(os::Files&, int at, const std::string& rel) const;
  std::optional<Cached> find(const StatKey&) const;
  /// `clock_ns`: os::filesystem_clock_ns() from before the stat. Too young: not stored.
  void put(const StatKey&, const Cached&, i64 clock_ns, bool network);
  /// The transaction's own links and unlinks move ctimes: what was trusted under `from` is the same file as `to`.
  void moved(const StatKey& from, const StatKey& to);
  std::size_t size() const;
  bool changed() const;      // since loading

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace envsync::scan

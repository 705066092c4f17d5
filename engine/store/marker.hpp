// SPDX-License-Identifier: MIT
// What names one inode over crashes and reboots. Inode numbers alone do not: ext4 gives a deleted folder's number to the next
// one made. Device numbers change with mounts and are no part of it. Private to store.
#pragma once

#include <optional>
#include <string>

#include <envsync/result.hpp>

#include "base/bytes.hpp"

namespace envsync::store {

struct Marker {
  u64 ino = 0;
  i64 btime_ns = 0;     // 0 where the filesystem has none
  std::string handle;   // type u32le and bytes of the kernel's file handle, which holds the inode's generation; empty where there is none
  auto operator<=>(const Marker&) const = default;
  /// Equal in all that both know.
  bool names_same(const Marker& other) const;
};

/// Of the entry itself, a link included; nullopt where nothing is there. A folder on which a filesystem is mounted is an error.
Result<std::optional<Marker>> marker_of(int at, const std::string& rel);

void put_marker(Bytes& out, const Marker& marker);
std::optional<Marker> take_marker(ByteView& in);

}  // namespace envsync::store

// SPDX-License-Identifier: MIT
// The names of what lies in an environment's state folder. Private to store; the agent reads a content of the pool by its path.
#pragma once

#include <string>

#include <fmt/format.h>

#include "content/digest.hpp"
#include "tree/path.hpp"

namespace envsync::store {

inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kCacheFile = "stat-cache";
inline constexpr const char* kStagingDir = "staging";
inline constexpr const char* kRecordsDir = "records";
inline constexpr const char* kContentsDir = "contents";

// Beneath staging/<tx>/.
inline constexpr const char* kJournalFile = "journal";
inline constexpr const char* kPartialDir = "partial";
inline constexpr const char* kNew = "new";
inline constexpr const char* kBaseRecord = "record-base";
inline constexpr const char* kDesiredRecord = "record";

/// Of a large content that is being received: its bytes, and beside them which segments are there.
inline std::string partial_path(const content::ContentId& id) { return fmt::format("{}/{}", kPartialDir, id.name()); }
inline std::string segments_path(const content::ContentId& id) { return partial_path(id) + ".segments"; }

inline std::string staging_path(const std::string& tx) { return fmt::format("{}/{}", kStagingDir, tx); }
inline std::string record_path(u32 number) { return fmt::format("{}/{}", kRecordsDir, number); }
inline std::string content_path(const content::ContentId& id) { return fmt::format("{}/{}", kContentsDir, id.name()); }

/// `path` as it is named beneath the transaction's folder: "new" is the commit root.
inline std::string in_new(const tree::RelPath& commit_root, const tree::RelPath& path) {
  const tree::RelPath below = commit_root.relative(path);
  return below.is_root() ? std::string(kNew) : fmt::format("{}/{}", kNew, below.bytes());
}

}  // namespace envsync::store

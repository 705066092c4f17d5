// SPDX-License-Identifier: MIT
// The only file system calls of envsync. Every operation names a path beneath an open directory: components are
// checked, symbolic links are never followed, mounts are never crossed (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
// RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV, or component by component where the kernel lacks openat2 or the path is
// longer than 4,095 bytes). Reading is done by free functions; what changes a disk goes through Files, so that a test can
// let each such operation fail once.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <envsync/result.hpp>

#include "base/bytes.hpp"
#include "os/fd.hpp"

namespace envsync::os {

enum class Kind : u8 { file, directory, symlink, other };
struct Stat {
  Kind kind = Kind::other;
  u32 mode = 0;          // permission bits with setuid, setgid, sticky: & 07777
  u32 uid = 0, gid = 0;
  u64 dev = 0, ino = 0, nlink = 0, size = 0, blocks = 0;  // blocks of 512 bytes
  u64 mount_id = 0;      // 0 where the kernel does not tell
  i64 mtime_ns = 0, ctime_ns = 0, btime_ns = 0;           // btime 0 where the filesystem has none
  bool immutable = false, append_only = false;
  bool mount_root = false;
};

/// errno as an Error{io}: "cannot OPERATION 'PATH'", cause: strerror. ENOSPC and EDQUOT give ErrorCode::no_space.
Error os_error(int saved_errno, std::string_view operation, std::string_view path);

// --- reading; `at` is an open directory, `rel` a relative path ("" or "." is the directory itself)
Result<Fd> open_dir_absolute(const std::string& path);              // follows links of the path's parents and its last component
Result<Fd> open_dir(int at, std::string_view rel);
Result<Fd> open_file(int at, std::string_view rel);                 // O_RDONLY | O_NOATIME where allowed; refuses what is not a regular file
Result<Stat> stat_at(int at, std::string_view rel);                 // of a link: the link itself
Result<std::optional<Stat>> stat_if_exists(int at, std::string_view rel);
Result<Stat> stat_fd(int fd);
Result<std::string> read_link(int at, std::string_view rel);
/// Reads from `offset` until `out` is full or the file ends; returns the bytes read.
Result<std::size_t> read_at(int fd, u64 offset, std::span<std::byte> out, std::string_view name_for_errors);
/// A whole small file; more than `limit` bytes is an error.
Result<std::string> read_small(int at, std::string_view rel, std::size_t limit);
struct DirEntry { std::string name; Kind kind; };                   // kind other where the filesystem does not tell
/// Unsorted, from the beginning; `dir_fd` is open for reading and listed by one thread at a time.
Result<std::vector<DirEntry>> list(int dir_fd, std::string_view name_for_errors);
using XattrList = std::vector<std::pair<std::string, std::string>>; // sorted by name
/// All attributes of an entry, links included (through /proc/self/fd where needed). Unsupported: empty.
Result<XattrList> xattrs(int at, std::string_view rel);
struct Space { u64 bytes_free = 0, inodes_free = 0; std::string filesystem; u64 type = 0; bool network = false; };  // inodes_free max where the filesystem has no limit
Result<Space> space(int fd);
/// The filesystem's handle of an entry: type and bytes, which a new file of the same inode number does not share. `name` is one
/// component, or "" for `at` itself. Empty where the filesystem gives none.
std::string handle_of(int at, const std::string& name);
/// The project whose quota an open folder counts for; 0 where there is none.
u32 project_of(int dir);
/// Whether this process may add and remove names in a folder.
bool may_change(int dir);
/// The clock that the filesystem stamps with: CLOCK_REALTIME_COARSE.
i64 filesystem_clock_ns();

/// What changes a disk. One object per transaction; safe to use from several threads. Modes of new entries pass the umask.
/// allocate() sets the size where the filesystem reserves and leaves it where it cannot.
class Files {
 public:
  virtual ~Files() = default;
  virtual Result<void> mkdir(int at, std::string_view rel, u32 mode) = 0;
  virtual Result<void> unlink(int at, std::string_view rel) = 0;
  virtual Result<void> rmdir(int at, std::string_view rel) = 0;
  virtual Result<void> rename(int from_at, std::string_view from, int to_at, std::string_view to) = 0;          // may replace
  virtual Result<void> rename_noreplace(int from_at, std::string_view from, int to_at, std::string_view to) = 0;
  virtual Result<void> rename_exchange(int a_at, std::string_view a, int b_at, std::string_view b) = 0;
  virtual Result<void> link(int from_at, std::string_view from, int to_at, std::string_view to) = 0;            // of a symlink: the link itself
  virtual Result<void> symlink(std::string_view target, int at, std::string_view rel) = 0;
  virtual Result<Fd> create(int at, std::string_view rel, u32 mode) = 0;     // O_EXCL, O_RDWR
  virtual Result<Fd> open_write(int at, std::string_view rel) = 0;           // an existing file with one link, O_RDWR
  virtual Result<void> write_at(int fd, u64 offset, ByteView bytes, std::string_view name_for_errors) = 0;      // all of it
  virtual Result<void> allocate(int fd, u64 size) = 0;                       // raw fallocate; success where unsupported
  virtual Result<void> truncate(int fd, u64 size) = 0;
  virtual Result<bool> reflink(int from_fd, int to_fd) = 0;                  // false where unsupported
  virtual Result<void> start_writeback(int fd, u64 offset, u64 size) = 0;    // sync_file_range; never waits
  virtual Result<void> chmod(int fd, u32 mode) = 0;
  virtual Result<void> chown(int at, std::string_view rel, u32 uid, u32 gid) = 0;
  virtual Result<void> set_mtime(int at, std::string_view rel, i64 mtime_ns) = 0;
  virtual Result<void> set_xattr(int fd, const std::string& name, std::string_view value) = 0;
  virtual Result<void> remove_xattr(int fd, const std::string& name) = 0;
  virtual Result<void> fsync(int fd, std::string_view name_for_errors) = 0;
  virtual Result<void> fdatasync(int fd, std::string_view name_for_errors) = 0;
  virtual Result<void> syncfs(int fd) = 0;
};

class PosixFiles final : public Files {
 public:
  Result<void> mkdir(int at, std::string_view rel, u32 mode) override;
  Result<void> unlink(int at, std::string_view rel) override;
  Result<void> rmdir(int at, std::string_view rel) override;
  Result<void> rename(int from_at, std::string_view from, int to_at, std::string_view to) override;
  Result<void> rename_noreplace(int from_at, std::string_view from, int to_at, std::string_view to) override;
  Result<void> rename_exchange(int a_at, std::string_view a, int b_at, std::string_view b) override;
  Result<void> link(int from_at, std::string_view from, int to_at, std::string_view to) override;
  Result<void> symlink(std::string_view target, int at, std::string_view rel) override;
  Result<Fd> create(int at, std::string_view rel, u32 mode) override;
  Result<Fd> open_write(int at, std::string_view rel) override;
  Result<void> write_at(int fd, u64 offset, ByteView bytes, std::string_view name_for_errors) override;
  Result<void> allocate(int fd, u64 size) override;
  Result<void> truncate(int fd, u64 size) override;
  Result<bool> reflink(int from_fd, int to_fd) override;
  Result<void> start_writeback(int fd, u64 offset, u64 size) override;
  Result<void> chmod(int fd, u32 mode) override;
  Result<void> chown(int at, std::string_view rel, u32 uid, u32 gid) override;
  Result<void> set_mtime(int at, std::string_view rel, i64 mtime_ns) override;
  Result<void> set_xattr(int fd, const std::string& name, std::string_view value) override;
  Result<void> remove_xattr(int fd, const std::string& name) override;
  Result<void> fsync(int fd, std::string_view name_for_errors) override;
  Result<void> fdatasync(int fd, std::string_view name_for_errors) override;
  Result<void> syncfs(int fd) override;
};

/// Writes `bytes` to `rel` by a sibling temporary file, fsync and rename: readers see the old file or the new.
Result<void> replace_file(Files&, int at, const std::string& rel, ByteView bytes, u32 mode);
/// As replace_file() with mode 0600, but for a cache: not synced. A power cut may leave an empty file, which its reader must know for one.
Result<void> replace_cache_file(Files&, int at, const std::string& rel, ByteView bytes);
/// Deletes everything below and including `rel`, never crossing a mount nor following a link; folders that are closed to their
/// owner are opened first. Absent: success. On an error part of the tree is gone.
Result<void> remove_tree(Files&, int at, const std::string& rel);
/// mkdir -p beneath `at`.
Result<void> make_dirs(Files&, int at, std::string_view rel, u32 mode);

}  // namespace envsync::os

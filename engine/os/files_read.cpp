// SPDX-License-Identifier: MIT
// The reading half of os/files.hpp.
#include "os/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <limits>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/resolve.hpp"

namespace envsync::os {
namespace {

constexpr i64 kSecond = 1'000'000'000;

Kind kind_of(u32 mode) {
  if (S_ISREG(mode)) return Kind::file;
  if (S_ISDIR(mode)) return Kind::directory;
  if (S_ISLNK(mode)) return Kind::symlink;
  return Kind::other;
}

i64 to_ns(const struct statx_timestamp& t) { return t.tv_sec * kSecond + t.tv_nsec; }
i64 to_ns(const struct timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; }

Stat from_statx(const struct statx& s) {
  Stat stat;
  stat.kind = kind_of(s.stx_mode);
  stat.mode = s.stx_mode & 07777u;
  stat.uid = s.stx_uid;
  stat.gid = s.stx_gid;
  stat.dev = ::makedev(s.stx_dev_major, s.stx_dev_minor);
  stat.ino = s.stx_ino;
  stat.nlink = s.stx_nlink;
  stat.size = s.stx_size;
  stat.blocks = s.stx_blocks;
  if (s.stx_mask & STATX_MNT_ID) stat.mount_id = s.stx_mnt_id;
  stat.mtime_ns = to_ns(s.stx_mtime);
  stat.ctime_ns = to_ns(s.stx_ctime);
  if (s.stx_mask & STATX_BTIME) stat.btime_ns = to_ns(s.stx_btime);
  const u64 attributes = s.stx_attributes & s.stx_attributes_mask;
  stat.immutable = attributes & STATX_ATTR_IMMUTABLE;
  stat.append_only = attributes & STATX_ATTR_APPEND;
  stat.mount_root = attributes & STATX_ATTR_MOUNT_ROOT;
  return stat;
}

Stat from_stat(const struct stat& s) {
  Stat stat;
  stat.kind = kind_of(s.st_mode);
  stat.mode = s.st_mode & 07777u;
  stat.uid = s.st_uid;
  stat.gid = s.st_gid;
  stat.dev = s.st_dev;
  stat.ino = s.st_ino;
  stat.nlink = s.st_nlink;
  stat.size = static_cast<u64>(s.st_size);
  stat.blocks = static_cast<u64>(s.st_blocks);
  stat.mtime_ns = to_ns(s.st_mtim);
  stat.ctime_ns = to_ns(s.st_ctim);
  return stat;
}

/// 0 or errno. `name` "" is `dir` itself.
int stat_call(int dir, const char* name, Stat& out) {
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name ? 0 : AT_EMPTY_PATH);
  struct statx found {};
  if (::statx(dir, name, flags, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, &found) == 0) {
    out = from_statx(found);
    return 0;
  }
  if (errno != ENOSYS && errno != EPERM) return errno;
  struct stat plain {};  // a kernel or a seccomp profile without statx
  if (::fstatat(dir, name, &plain, flags) != 0) return errno;
  out = from_stat(plain);
  return 0;
}

struct FilesystemName { u64 magic; const char* name; bool network; };
constexpr FilesystemName kFilesystems[] = {
    {0xef53, "ext4", false},         {0x58465342, "xfs", false},      {0x9123683e, "btrfs", false},
    {0x01021994, "tmpfs", false},    {0x794c7630, "overlayfs", false}, {0x2fc12fc1, "zfs", false},
    {0xf2f52010, "f2fs", false},     {0xca451a4e, "bcachefs", false}, {0x858458f6, "ramfs", false},
    {0x4d44, "vfat", false},         {0x6969, "nfs", true},           {0x517b, "smb", true},
    {0xff534d42, "cifs", true},      {0xfe534d42, "smb2", true},      {0x65735546, "fuse", true},
    {0x00c36400, "ceph", true},      {0x5346414f, "afs", true},       {0x01021997, "9p", true},
    {0x0bd00bd0, "lustre", true},    {0x01161970, "gfs2", true},      {0x7461636f, "ocfs2", true},
    {0x47504653, "gpfs", true},      {0x19830326, "beegfs", true},    {0xaad7aaea, "panfs", true},
    {0x786f4256, "vboxsf", true},
};

}  // namespace

Result<Fd> open_dir_absolute(const std::string& path) {
  int fd = -1;
  do fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return os_error(errno, "open", path);
  return Fd(fd);
}

Result<Fd> open_dir(int at, std::string_view rel) {
  const int fd = open_beneath(at, rel, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return resolve_error(-fd, "open", rel);
  return Fd(fd);
}

Result<Fd> open_file(int at, std::string_view rel) {
  // O_NONBLOCK: a FIFO that took a file's place must not hang the open.
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  int fd = open_beneath(at, rel, flags | O_NOATIME);
  if (fd == -EPERM) fd = open_beneath(at, rel, flags);  // O_NOATIME is for the owner only
  if (fd == -EAGAIN) {                                  // somebody holds a lease, which a blocking open breaks
    TRY(const Stat stat, stat_at(at, rel));
    if (stat.kind == Kind::file) fd = open_beneath(at, rel, flags & ~O_NONBLOCK);
  }
  if (fd < 0) return resolve_error(-fd, "open", rel);
  Fd file(fd);
  struct stat found {};
  if (::fstat(fd, &found) != 0) return os_error(errno, "stat", rel);
  if (!S_ISREG(found.st_mode)) {
    Error error = os_error(S_ISDIR(found.st_mode) ? EISDIR : EINVAL, "open", rel);
    error.causes = {"it is not a regular file"};
    return error;
  }
  return file;
}

Result<Stat> stat_at(int at, std::string_view rel) {
  TRY(const Name name, locate(at, rel, "stat"));
  Stat stat;
  if (const int saved = stat_call(name.dir, name.c_str(), stat)) return os_error(saved, "stat", rel);
  return stat;
}

Result<std::optional<Stat>> stat_if_exists(int at, std::string_view rel) {
  auto stat = stat_at(at, rel);
  if (stat) return std::optional<Stat>(*stat);
  const int saved = stat.error().sys_errno;
  if (saved == ENOENT || saved == ENOTDIR) return std::optional<Stat>();
  return std::move(stat).error();
}

Result<Stat> stat_fd(int fd) {
  Stat stat;
  if (const int saved = stat_call(fd, "", stat)) return os_error(saved, "stat", "an open file");
  return stat;
}

Result<std::string> read_link(int at, std::string_view rel) {
  TRY(const Name name, locate(at, rel, "read the link"));
  std::string target(256, '\0');
  for (;;) {
    const ssize_t got = ::readlinkat(name.dir, name.c_str(), target.data(), target.size());
    if (got < 0) return os_error(errno, "read the link", rel);
    if (static_cast<std::size_t>(got) < target.size()) {
      target.resize(static_cast<std::size_t>(got));
      return target;
    }
    if (target.size() > (1u << 20)) return os_error(ENAMETOOLONG, "read the link", rel);
    target.resize(target.size() * 4);
  }
}

Result<std::size_t> read_at(int fd, u64 offset, std::span<std::byte> out, std::string_view name_for_errors) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(fd, out.data() + done, out.size() - done, narrow<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error(errno, "read", name_for_errors);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::string> read_small(int at, std::string_view rel, std::size_t limit) {
  TRY(const Fd file, open_file(at, rel));
  TRY(const Stat stat, stat_fd(file.get()));
  const auto too_large = [&] {
    Error error = os_error(EFBIG, "read", rel);
    error.causes = {fmt::format("it is larger than {}", human_bytes(limit))};
    return error;
  };
  if (stat.size > limit) return too_large();
  // One byte more than the stat says: /proc tells 0, and a file may grow meanwhile.
  std::string text(static_cast<std::size_t>(stat.size) + 1, '\0');
  std::size_t done = 0;
  for (;;) {
    TRY(const std::size_t got, read_at(file.get(), done, std::as_writable_bytes(std::span(text)).subspan(done), rel));
    done += got;
    if (done < text.size()) break;
    if (done > limit) return too_large();
    text.resize(std::min(limit + 1, text.size() + 4096));
  }
  text.resize(done);
  return text;
}

Result<std::vector<DirEntry>> list(int dir_fd, std::string_view name_for_errors) {
  if (::lseek(dir_fd, 0, SEEK_SET) < 0) return os_error(errno, "list", name_for_errors);
  std::vector<DirEntry> entries;
  alignas(dirent64) std::array<char, 32768> buffer;
  for (;;) {
    const ssize_t got = ::getdents64(dir_fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error(errno, "list", name_for_errors);
    if (got == 0) return entries;
    for (ssize_t offset = 0; offset < got;) {
      // SAFETY: the kernel fills the aligned buffer with whole dirent64 records.
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + offset);
      offset += entry->d_reclen;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      entries.push_back({std::string(name), kind_of(DTTOIF(static_cast<u32>(entry->d_type)))});
    }
  }
}

Result<Space> space(int fd) {
  struct statfs found {};
  int rc = -1;
  do rc = ::fstatfs(fd, &found);
  while (rc < 0 && errno == EINTR);
  if (rc < 0) return os_error(errno, "read the free space of", "an open folder");
  Space space;
  const u64 unit = static_cast<u64>(found.f_frsize > 0 ? found.f_frsize : found.f_bsize);
  space.bytes_free = static_cast<u64>(found.f_bavail) * unit;
  space.inodes_free = found.f_files == 0 ? std::numeric_limits<u64>::max() : static_cast<u64>(found.f_ffree);
  space.type = static_cast<u64>(found.f_type) & 0xffffffffu;
  const auto* known = std::ranges::find(kFilesystems, space.type, &FilesystemName::magic);
  const bool is_known = known != std::end(kFilesystems);
  space.filesystem = is_known ? known->name : fmt::format("{:#x}", space.type);
  space.network = is_known && known->network;
  return space;
}

i64 filesystem_clock_ns() {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return to_ns(now);
}

}  // namespace envsync::os

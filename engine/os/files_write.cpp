// SPDX-License-Identifier: MIT
// PosixFiles: each operation on a name opens the parent beneath `at` and acts on the last component, so that a name in
// `at` itself costs one system call.
#include "os/files.hpp"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/resolve.hpp"

namespace envsync::os {
namespace {

template <class Call>
int again(Call call) {
  int rc = -1;
  do rc = call();
  while (rc < 0 && errno == EINTR);
  return rc;
}

/// The name of an entry to make, move or delete: never the folder itself.
Result<Name> locate_entry(int at, std::string_view rel, std::string_view operation) {
  if (is_self(rel)) return resolve_error(EINVAL, operation, rel);
  return locate(at, rel, operation);
}

Result<void> move(int from_at, std::string_view from, int to_at, std::string_view to, unsigned flags, std::string_view verb) {
  TRY(const Name old_name, locate_entry(from_at, from, verb));
  TRY(const Name new_name, locate_entry(to_at, to, verb));
  const auto call = [&] {
    return flags ? ::renameat2(old_name.dir, old_name.c_str(), new_name.dir, new_name.c_str(), flags)
                 : ::renameat(old_name.dir, old_name.c_str(), new_name.dir, new_name.c_str());
  };
  if (again(call) == 0) return ok();
  Error error = os_error(errno, verb, from);
  error.what += fmt::format(" {} '{}'", flags == RENAME_EXCHANGE ? "with" : "to", printable(to));
  return error;
}

}  // namespace

Result<void> PosixFiles::mkdir(int at, std::string_view rel, u32 mode) {
  TRY(const Name name, locate_entry(at, rel, "make the folder"));
  if (again([&] { return ::mkdirat(name.dir, name.c_str(), mode); }) == 0) return ok();
  return os_error(errno, "make the folder", rel);
}

Result<void> PosixFiles::unlink(int at, std::string_view rel) {
  TRY(const Name name, locate_entry(at, rel, "delete"));
  if (again([&] { return ::unlinkat(name.dir, name.c_str(), 0); }) == 0) return ok();
  return os_error(errno, "delete", rel);
}

Result<void> PosixFiles::rmdir(int at, std::string_view rel) {
  TRY(const Name name, locate_entry(at, rel, "delete the folder"));
  if (again([&] { return ::unlinkat(name.dir, name.c_str(), AT_REMOVEDIR); }) == 0) return ok();
  return os_error(errno, "delete the folder", rel);
}

Result<void> PosixFiles::rename(int from_at, std::string_view from, int to_at, std::string_view to) {
  return move(from_at, from, to_at, to, 0, "rename");
}
Result<void> PosixFiles::rename_noreplace(int from_at, std::string_view from, int to_at, std::string_view to) {
  return move(from_at, from, to_at, to, RENAME_NOREPLACE, "rename");
}
Result<void> PosixFiles::rename_exchange(int a_at, std::string_view a, int b_at, std::string_view b) {
  return move(a_at, a, b_at, b, RENAME_EXCHANGE, "exchange");
}

Result<void> PosixFiles::link(int from_at, std::string_view from, int to_at, std::string_view to) {
  TRY(const Name old_name, locate_entry(from_at, from, "link"));
  TRY(const Name new_name, locate_entry(to_at, to, "link"));
  if (again([&] { return ::linkat(old_name.dir, old_name.c_str(), new_name.dir, new_name.c_str(), 0); }) == 0) return ok();
  Error error = os_error(errno, "link", from);
  error.what += fmt::format(" as '{}'", printable(to));
  return error;
}

Result<void> PosixFiles::symlink(std::string_view target, int at, std::string_view rel) {
  TRY(const Name name, locate_entry(at, rel, "make the link"));
  if (target.find('\0') != std::string_view::npos) return os_error(EINVAL, "make the link", rel);
  const std::string text(target);
  if (again([&] { return ::symlinkat(text.c_str(), name.dir, name.c_str()); }) == 0) return ok();
  return os_error(errno, "make the link", rel);
}

Result<Fd> PosixFiles::create(int at, std::string_view rel, u32 mode) {
  TRY(const Name name, locate_entry(at, rel, "create"));
  constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int fd = again([&] { return ::openat(name.dir, name.c_str(), flags, mode); });
  if (fd < 0) return os_error(errno, "create", rel);
  return Fd(fd);
}

Result<Fd> PosixFiles::open_write(int at, std::string_view rel) {
  const int fd = open_beneath(at, rel, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return resolve_error(-fd, "open for writing", rel);
  Fd file(fd);
  struct stat found {};
  if (::fstat(fd, &found) != 0) return os_error(errno, "stat", rel);
  if (S_ISREG(found.st_mode) && found.st_nlink == 1) return file;
  Error error = os_error(S_ISREG(found.st_mode) ? EMLINK : EINVAL, "open for writing", rel);
  error.causes = {S_ISREG(found.st_mode) ? "it has more than one link" : "it is not a regular file"};
  return error;
}

Result<void> PosixFiles::write_at(int fd, u64 offset, ByteView bytes, std::string_view name_for_errors) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), narrow<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return os_error(done < 0 ? errno : EIO, "write", name_for_errors);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<u64>(done);
  }
  return ok();
}

Result<void> PosixFiles::allocate(int fd, u64 size) {
  if (size == 0) return ok();
  // Not posix_fallocate, which writes every block where the filesystem cannot reserve.
  if (again([&] { return ::fallocate(fd, 0, 0, narrow<off_t>(size)); }) == 0) return ok();
  if (errno == EOPNOTSUPP || errno == ENOSYS) return ok();
  return os_error(errno, "reserve space in", "an open file");
}

Result<void> PosixFiles::truncate(int fd, u64 size) {
  if (again([&] { return ::ftruncate(fd, narrow<off_t>(size)); }) == 0) return ok();
  return os_error(errno, "set the size of", "an open file");
}

Result<bool> PosixFiles::reflink(int from_fd, int to_fd) {
  if (again([&] { return ::ioctl(to_fd, FICLONE, from_fd); }) == 0) return true;
  switch (errno) {
    case EOPNOTSUPP: case ENOTTY: case ENOSYS: case EXDEV: case EINVAL: case EPERM: case ETXTBSY: return false;
    default: return os_error(errno, "reflink", "an open file");
  }
}

Result<void> PosixFiles::start_writeback(int fd, u64 offset, u64 size) {
  const auto call = [&] { return ::sync_file_range(fd, narrow<off_t>(offset), narrow<off_t>(size), SYNC_FILE_RANGE_WRITE); };
  if (again(call) == 0 || errno == ENOSYS || errno == EOPNOTSUPP || errno == ESPIPE) return ok();
  return os_error(errno, "write back", "an open file");
}

Result<void> PosixFiles::chmod(int fd, u32 mode) {
  if (again([&] { return ::fchmod(fd, mode); }) == 0) return ok();
  // A descriptor that was opened with O_PATH, as of a folder that even its owner cannot read.
  if (errno == EBADF && ::fcntl(fd, F_GETFD) >= 0 && ::chmod(proc_path(fd).c_str(), mode) == 0) return ok();
  return os_error(errno, "set the mode of", "an open file");
}

Result<void> PosixFiles::chown(int at, std::string_view rel, u32 uid, u32 gid) {
  TRY(const Name name, locate(at, rel, "set the owner of"));
  const int flags = AT_SYMLINK_NOFOLLOW | (name.last.empty() ? AT_EMPTY_PATH : 0);
  if (again([&] { return ::fchownat(name.dir, name.c_str(), uid, gid, flags); }) == 0) return ok();
  return os_error(errno, "set the owner of", rel);
}

Result<void> PosixFiles::set_mtime(int at, std::string_view rel, i64 mtime_ns) {
  TRY(const Name name, locate(at, rel, "set the time of"));
  constexpr i64 kSecond = 1'000'000'000;
  const i64 rest = ((mtime_ns % kSecond) + kSecond) % kSecond;  // times before 1970 count up from the second before
  const struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                    {.tv_sec = (mtime_ns - rest) / kSecond, .tv_nsec = rest}};
  if (name.last.empty() && ::futimens(name.dir, times) == 0) return ok();
  const char* entry = name.last.empty() ? "." : name.c_str();
  if (again([&] { return ::utimensat(name.dir, entry, times, AT_SYMLINK_NOFOLLOW); }) == 0) return ok();
  return os_error(errno, "set the time of", rel);
}

Result<void> PosixFiles::set_xattr(int fd, const std::string& name, std::string_view value) {
  if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0) return ok();
  return os_error(errno, "set the attribute", name);
}

Result<void> PosixFiles::remove_xattr(int fd, const std::string& name) {
  if (::fremovexattr(fd, name.c_str()) == 0 || errno == ENODATA) return ok();
  return os_error(errno, "remove the attribute", name);
}

// DURABILITY: an error of a sync is never retried: the kernel reports lost pages once and then calls them clean.
Result<void> PosixFiles::fsync(int fd, std::string_view name_for_errors) {
  if (again([&] { return ::fsync(fd); }) == 0) return ok();
  const int saved = errno;
  struct stat found {};
  // Some FUSE filesystems have no fsync of a folder and say so with EINVAL.
  if (saved == EINVAL && ::fstat(fd, &found) == 0 && S_ISDIR(found.st_mode)) return ok();
  return os_error(saved, "sync", name_for_errors);
}

Result<void> PosixFiles::fdatasync(int fd, std::string_view name_for_errors) {
  if (again([&] { return ::fdatasync(fd); }) == 0) return ok();
  return os_error(errno, "sync", name_for_errors);
}

Result<void> PosixFiles::syncfs(int fd) {
  if (again([&] { return ::syncfs(fd); }) == 0) return ok();
  return os_error(errno, "sync the filesystem of", "an open folder");
}

}  // namespace envsync::os

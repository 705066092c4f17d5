// SPDX-License-Identifier: MIT
#include "os/resolve.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "os/files.hpp"

namespace envsync::os {
namespace {

constexpr std::size_t kPathBytesMax = 4095;  // LIMIT: the kernel takes PATH_MAX with its zero byte

bool is_clean(std::string_view rel) {
  if (rel.find('\0') != std::string_view::npos) return false;
  for (std::size_t begin = 0;;) {
    const std::size_t end = rel.find('/', begin);
    const auto component = rel.substr(begin, end == std::string_view::npos ? end : end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    if (end == std::string_view::npos) return true;
    begin = end + 1;
  }
}

int openat2_call(int at, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<u64>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  long fd = -1;
  do fd = ::syscall(SYS_openat2, at, path, &how, sizeof how);
  while (fd < 0 && errno == EINTR);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

bool has_openat2() {
  // Old kernels answer ENOSYS, container runtimes with an old seccomp profile EPERM.
  static const bool has = [] {
    const int fd = openat2_call(AT_FDCWD, ".", O_PATH | O_DIRECTORY);
    if (fd >= 0) ::close(fd);
    return fd != -ENOSYS && fd != -EPERM && fd != -EINVAL && fd != -E2BIG;
  }();
  return has;
}

/// 0 where neither statx nor /proc tells.
u64 mount_of(int fd) {
  struct statx found {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &found) == 0 && (found.stx_mask & STATX_MNT_ID)) return found.stx_mnt_id;
  const Fd info(::open(fmt::format("/proc/self/fdinfo/{}", fd).c_str(), O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!info || ::read(info.get(), text, sizeof text - 1) <= 0) return 0;
  const char* line = std::strstr(text, "mnt_id:");
  return line ? std::strtoull(line + 7, nullptr, 10) : 0;
}

bool on_same_mount(int a, int b) {
  const u64 mount_a = mount_of(a), mount_b = mount_of(b);
  if (mount_a && mount_b) return mount_a == mount_b;
  struct stat stat_a {}, stat_b {};
  return ::fstat(a, &stat_a) == 0 && ::fstat(b, &stat_b) == 0 && stat_a.st_dev == stat_b.st_dev;
}

/// One component where there is no openat2: `name` in `dir`, a link is ELOOP, another mount EXDEV.
int open_component(int dir, const std::string& name, int flags) {
  int fd = -1;
  do fd = ::openat(dir, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    const int saved = errno;
    struct stat found {};
    const bool is_link = saved == ENOTDIR && ::fstatat(dir, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
    return is_link ? -ELOOP : -saved;
  }
  if (on_same_mount(dir, fd)) return fd;
  ::close(fd);
  return -EXDEV;
}

/// How many bytes of `rel` the next step opens: the rest, or as many whole components as one call takes.
std::size_t step_length(std::string_view rel, bool one_component) {
  if (one_component) return std::min(rel.find('/'), rel.size());
  if (rel.size() <= kPathBytesMax) return rel.size();
  const std::size_t cut = rel.rfind('/', kPathBytesMax);
  return cut == std::string_view::npos ? rel.size() : cut;
}

}  // namespace

int open_beneath(int at, std::string_view rel, int flags) {
  const bool with_openat2 = has_openat2();
  if (is_self(rel)) return with_openat2 ? openat2_call(at, ".", flags) : open_component(at, ".", flags);
  if (!is_clean(rel)) return -EINVAL;
  Fd held;
  int dir = at;
  for (;;) {
    const std::size_t length = step_length(rel, !with_openat2);
    const std::string step(rel.substr(0, length));
    const bool is_last = length == rel.size();
    const int step_flags = is_last ? flags : O_PATH | O_DIRECTORY;
    const int fd = with_openat2 ? openat2_call(dir, step.c_str(), step_flags) : open_component(dir, step, step_flags);
    if (fd < 0 || is_last) return fd;
    held = Fd(fd);
    dir = fd;
    rel.remove_prefix(length + 1);
  }
}

Result<Name> locate(int at, std::string_view rel, std::string_view operation) {
  Name name;
  name.dir = at;
  if (is_self(rel)) return name;
  if (!is_clean(rel)) return resolve_error(EINVAL, operation, rel);
  const std::size_t cut = rel.rfind('/');
  if (cut == std::string_view::npos) {
    name.last = rel;
    return name;
  }
  const int fd = open_beneath(at, rel.substr(0, cut), O_PATH | O_DIRECTORY);
  if (fd < 0) return resolve_error(-fd, operation, rel);
  name.parent = Fd(fd);
  name.dir = fd;
  name.last = rel.substr(cut + 1);
  return name;
}

Error os_error(int saved_errno, std::string_view operation, std::string_view path) {
  const bool is_full = saved_errno == ENOSPC || saved_errno == EDQUOT;
  Error error(is_full ? ErrorCode::no_space : ErrorCode::io, fmt::format("cannot {} '{}'", operation, printable(path)));
  const char* text = ::strerrordesc_np(saved_errno);
  std::string cause = text ? text : fmt::format("error {}", saved_errno);
  if (cause.size() > 1 && cause[1] >= 'a' && cause[1] <= 'z') cause[0] = static_cast<char>(cause[0] | 0x20);
  error.causes.push_back(std::move(cause));
  error.sys_errno = saved_errno;
  return error;
}

Error resolve_error(int saved_errno, std::string_view operation, std::string_view rel) {
  Error error = os_error(saved_errno, operation, rel);
  if (saved_errno == ELOOP) error.causes = {"a symbolic link lies on the path and is not followed"};
  if (saved_errno == EXDEV) error.causes = {"a mount point lies on the path and is not crossed"};
  if (saved_errno == EINVAL) error.causes.push_back("a path beneath a folder has no empty, '.' or '..' component");
  return error;
}

std::string proc_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace envsync::os

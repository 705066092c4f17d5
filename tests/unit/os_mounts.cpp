// SPDX-License-Identifier: MIT
// Mounts below a folder, and the same rules where the kernel has no openat2.
#include "os/files.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "support/os_folder.hpp"

using namespace envsync;
using namespace envsync::os;
using envsync::testing::Folder;

namespace {

template <class T>
int errno_of(const Result<T>& result) { return result ? 0 : result.error().sys_errno; }

constexpr int kNoMounts = 77;

/// Exit status of `body` in a process with its own mounts, where a tmpfs lies on `place`.
template <class Body>
int with_mount(const std::string& place, Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", place.c_str(), "tmpfs", 0, nullptr) != 0)
      ::_exit(kNoMounts);
    ::_exit(body());
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Runs the tests whose names begin with "beneath:" in a process where openat2 answers `error`.
int beneath_without_openat2(unsigned error) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    sock_filter filter[] = {
        {.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = offsetof(seccomp_data, nr)},
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .jt = 0, .jf = 1, .k = SYS_openat2},
        {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ERRNO | error},
        {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW},
    };
    const sock_fprog program = {.len = 4, .filter = filter};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(kNoMounts);
    ::execl("/proc/self/exe", "test_os", "-tc=beneath:*", "-m", nullptr);
    ::_exit(1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("beneath: a mount is told and not entered, and a tree that holds one is not deleted") {
  const Folder folder;
  folder.mkdir("tree/mnt");
  folder.write("tree/zz/f", "x");
  const int failed = with_mount(folder.path("tree/mnt"), [&] {
    PosixFiles files;
    folder.write("tree/mnt/inside", "x");
    const Fd root = open_dir_absolute(folder.path()).value();  // the test's own descriptor shows the mounts of before
    const auto mount = stat_at(root.get(), "tree/mnt");
    const bool holds[] = {
        mount && mount->mount_root && mount->mount_id != stat_at(root.get(), "tree")->mount_id,
        errno_of(open_dir(root.get(), "tree/mnt")) == EXDEV,
        errno_of(open_file(root.get(), "tree/mnt/inside")) == EXDEV,
        errno_of(files.create(root.get(), "tree/mnt/new", 0600)) == EXDEV,
        errno_of(files.unlink(root.get(), "tree/mnt/inside")) == EXDEV,
        !remove_tree(files, root.get(), "tree"),
        folder.has("tree/mnt/inside"),
        open_dir_absolute(folder.path("tree/mnt")).has_value(),
    };
    const auto first_failed = std::ranges::find(holds, false);
    return first_failed == std::end(holds) ? 0 : static_cast<int>(first_failed - holds) + 1;
  });
  if (failed == kNoMounts) MESSAGE("not checked: this user cannot make mounts");
  else CHECK(failed == 0);
  CHECK_FALSE(stat_at(folder.fd(), "tree/mnt")->mount_root);
}

TEST_CASE("without openat2 the same paths are refused") {
  CHECK(beneath_without_openat2(ENOSYS) == 0);
  CHECK(beneath_without_openat2(EPERM) == 0);
}

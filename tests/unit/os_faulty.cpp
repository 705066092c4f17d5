// SPDX-License-Identifier: MIT
#include "support/faulty_files.hpp"

#include <sys/wait.h>

#include <doctest/doctest.h>

#include "support/os_folder.hpp"

using namespace envsync;
using envsync::testing::Fault;
using envsync::testing::FaultyFiles;

namespace {

/// The signal that ended a child which made two folders under `fault`.
int signal_of_child(const envsync::testing::Folder& folder, const char* fault) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    FaultyFiles files(Fault::parse(fault).value());
    const bool made = files.mkdir(folder.fd(), "a", 0700) && files.mkdir(folder.fd(), "b", 0700);
    ::_exit(made ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a fault strikes once, at the n-th operation of its name") {
  const envsync::testing::Folder folder;
  FaultyFiles files(Fault::parse("mkdir:2:ENOSPC").value());
  CHECK(files.mkdir(folder.fd(), "a", 0700));
  CHECK(files.symlink("a", folder.fd(), "l"));
  const auto failed = files.mkdir(folder.fd(), "b", 0700);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::no_space);
  CHECK_FALSE(folder.has("b"));
  CHECK(files.has_struck());
  CHECK(files.mkdir(folder.fd(), "b", 0700));
  CHECK(files.total() == 4);
  CHECK(files.counts() == std::map<std::string, u64>{{"mkdir", 3}, {"symlink", 1}});
}

TEST_CASE("a short write leaves half of the bytes and reports no space") {
  const envsync::testing::Folder folder;
  FaultyFiles files(Fault::parse("any:2:short").value());
  const auto file = files.create(folder.fd(), "f", 0600).value();
  CHECK(files.write_at(file.get(), 0, as_bytes("12345678"), "f").error().sys_errno == ENOSPC);
  CHECK(folder.read("f") == "1234");
}

TEST_CASE("a process is killed before or after the operation that is named") {
  const envsync::testing::Folder before, after, never;
  CHECK(signal_of_child(before, "mkdir:2:before") == SIGKILL);
  CHECK(before.has("a"));
  CHECK_FALSE(before.has("b"));
  CHECK(signal_of_child(after, "any:2:after") == SIGKILL);
  CHECK(after.has("b"));
  CHECK(signal_of_child(never, "mkdir:3:after") == 0);
}

TEST_CASE("what is not a fault is refused") {
  for (const char* bad : {"", "mkdir", "mkdir:1", "mkdir:0:EIO", "mkdir:x:EIO", "mkdir:1x:EIO", "mkdir:1:EWHAT", "mkdir:1:"})
    CHECK_FALSE(Fault::parse(bad));
}

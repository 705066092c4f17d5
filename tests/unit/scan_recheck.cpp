// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <sys/xattr.h>

#include <doctest/doctest.h>

#include "support/scan_folder.hpp"

using namespace envsync;
using namespace envsync::testing;
using scan::Scan;

TEST_CASE("recheck finds what changed since the scan and nothing else") {
  Folder folder;
  for (const char* path : {"a", "b", "c", "d/e", "g/h", "p/m.py"}) folder.write(path, "1");
  folder.symlink("a", "link");
  const Scan scan = scan_all(folder);
  const auto recheck = [&](std::size_t limit = 100) {
    const auto differs = scan::recheck(folder.fd(), scan.tree, scan.stats, {}, limit);
    REQUIRE(differs);
    return told(*differs);
  };
  CHECK(recheck().empty());
  folder.write("p/__pycache__/m.cpython-312.pyc", "1");  // Python ran
  folder.write("q/__pycache__/n.cpython-312.pyc", "1");
  CHECK(recheck().empty());
  settle();
  folder.write("a", "22");
  ::chmod(folder.path("b").c_str(), 0600);
  std::filesystem::remove(folder.path("c"));
  ::chmod(folder.path("d").c_str(), 0700);
  folder.write("f", "1");
  std::filesystem::remove_all(folder.path("g"));
  folder.write("g", "1");
  std::filesystem::remove(folder.path("link"));
  folder.symlink("b", "link");
  std::filesystem::remove(folder.path("p/m.py"));
  REQUIRE(::mkfifo(folder.path("p/m.py").c_str(), 0644) == 0);
  CHECK(recheck() ==
        "a: its content changed; b: its metadata changed; c: is gone; d: its metadata changed; f: is new; g: is of another type; g/h: is gone; "
        "link: its content changed; p/m.py: is a socket, pipe or device");
  CHECK(recheck(2) == "a: its content changed; b: its metadata changed");
  CHECK(scan::recheck(-1, scan.tree, scan.stats, {}, 1)->front().what == "is gone");
}

TEST_CASE("an attribute of a folder counts at the recheck, its times do not") {
  Folder folder;
  folder.mkdir("d");
  const Scan scan = scan_all(folder);
  const auto recheck = [&] { return told(*scan::recheck(folder.fd(), scan.tree, scan.stats, {}, 10)); };
  os::PosixFiles files;
  REQUIRE(files.set_mtime(folder.fd(), "d", 12345));
  CHECK(recheck().empty());
  if (::setxattr(folder.path("d").c_str(), "user.a", "1", 1, 0) != 0) return;
  CHECK(recheck() == "d: its metadata changed");
}

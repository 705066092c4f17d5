// SPDX-License-Identifier: MIT
#include "os/files.hpp"

#include <algorithm>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "support/faulty_files.hpp"
#include "support/os_folder.hpp"

using namespace envsync;
using namespace envsync::os;
using envsync::testing::Folder;

namespace {

template <class T>
int errno_of(const Result<T>& result) { return result ? 0 : result.error().sys_errno; }

std::vector<std::string> names(const Folder& folder, std::string_view rel) {
  std::vector<std::string> all;
  const Fd dir = open_dir(folder.fd(), rel).value();
  const auto entries = list(dir.get(), rel).value();
  for (const auto& entry : entries) all.push_back(entry.name);
  std::ranges::sort(all);
  return all;
}

/// Whether `body` was true in a process of its own, which may give up what this one needs.
template <class Body>
bool in_child(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  int status = -1;
  ::waitpid(pid, &status, 0);
  return status == 0;
}

}  // namespace

TEST_CASE("beneath: a link on the path is refused by every operation, wherever it leads") {
  const Folder folder;
  folder.write("real/f", "secret");
  folder.symlink("real", "inside");
  folder.symlink("/etc", "outside");
  PosixFiles files;
  for (const std::string link : {"inside", "outside"}) {
    CAPTURE(link);
    CHECK(errno_of(open_file(folder.fd(), link + "/f")) == ELOOP);
    CHECK(errno_of(open_dir(folder.fd(), link)) == ELOOP);
    CHECK(errno_of(stat_at(folder.fd(), link + "/f")) == ELOOP);
    CHECK(errno_of(stat_if_exists(folder.fd(), link + "/f")) == ELOOP);
    CHECK(errno_of(read_link(folder.fd(), link + "/f")) == ELOOP);
    CHECK(errno_of(xattrs(folder.fd(), link + "/f")) == ELOOP);
    CHECK(errno_of(files.mkdir(folder.fd(), link + "/d", 0700)) == ELOOP);
    CHECK(errno_of(files.unlink(folder.fd(), link + "/f")) == ELOOP);
    CHECK(errno_of(files.rename(folder.fd(), "real/f", folder.fd(), link + "/g")) == ELOOP);
    CHECK(errno_of(files.link(folder.fd(), link + "/f", folder.fd(), "g")) == ELOOP);
    CHECK(errno_of(files.symlink("t", folder.fd(), link + "/s")) == ELOOP);
    CHECK(errno_of(files.create(folder.fd(), link + "/c", 0600)) == ELOOP);
    CHECK(errno_of(files.open_write(folder.fd(), link + "/f")) == ELOOP);
    CHECK(errno_of(files.chown(folder.fd(), link + "/f", 0, 0)) == ELOOP);
    CHECK(errno_of(files.set_mtime(folder.fd(), link + "/f", 1)) == ELOOP);
  }
  CHECK(names(folder, "real") == std::vector<std::string>{"f"});
}

TEST_CASE("beneath: paths that leave the folder or are not in normal form are refused") {
  const Folder folder;
  folder.write("d/f", "x");
  PosixFiles files;
  using namespace std::string_view_literals;
  for (const auto bad : {"../x"sv, "d/../d/f"sv, "/etc/passwd"sv, "d//f"sv, "d/./f"sv, "d/"sv, "./d"sv, ".."sv, "d\0f"sv}) {
    CAPTURE(bad);
    CHECK(errno_of(stat_at(folder.fd(), bad)) == EINVAL);
    CHECK(errno_of(open_file(folder.fd(), bad)) == EINVAL);
    CHECK(errno_of(files.unlink(folder.fd(), bad)) == EINVAL);
    CHECK(errno_of(files.create(folder.fd(), bad, 0600)) == EINVAL);
  }
  CHECK(errno_of(files.rmdir(folder.fd(), "")) == EINVAL);
  CHECK(errno_of(remove_tree(files, folder.fd(), ".")) == EINVAL);
  CHECK(stat_at(folder.fd(), "")->kind == Kind::directory);
  CHECK(stat_at(folder.fd(), ".")->ino == stat_at(folder.fd(), "")->ino);
  CHECK(open_dir(folder.fd(), ""));
}

TEST_CASE("beneath: a path longer than the kernel takes in one call is opened and deleted") {
  const Folder folder;
  PosixFiles files;
  const std::string component(200, 'n');
  std::string path = component;
  REQUIRE(files.mkdir(folder.fd(), path, 0700));
  while (path.size() < 9000) {
    path += "/" + component;
    REQUIRE(files.mkdir(folder.fd(), path, 0700));
  }
  REQUIRE(files.create(folder.fd(), path + "/f", 0600));
  CHECK(stat_at(folder.fd(), path + "/f")->kind == Kind::file);
  CHECK(open_file(folder.fd(), path + "/f"));
  CHECK(errno_of(open_file(folder.fd(), path + "/g")) == ENOENT);
  CHECK(errno_of(files.mkdir(folder.fd(), std::string(300, 'n'), 0700)) == ENAMETOOLONG);
  CHECK(remove_tree(files, folder.fd(), component));
  CHECK(names(folder, "").empty());
}

TEST_CASE("beneath: folders and links are opened as what they are") {
  const Folder folder;
  folder.write("d/f", "abc");
  folder.symlink("nowhere", "l");
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  CHECK(errno_of(open_file(folder.fd(), "d")) == EISDIR);
  CHECK(errno_of(open_file(folder.fd(), "fifo")) == EINVAL);  // and does not hang
  CHECK(errno_of(open_file(folder.fd(), "l")) == ELOOP);
  CHECK(errno_of(open_dir(folder.fd(), "d/f")) == ENOTDIR);
  CHECK(read_link(folder.fd(), "l").value() == "nowhere");
  CHECK(stat_at(folder.fd(), "l")->kind == Kind::symlink);
  CHECK(stat_at(folder.fd(), "fifo")->kind == Kind::other);
  CHECK_FALSE(stat_if_exists(folder.fd(), "d/f/below").value());
  CHECK_FALSE(stat_if_exists(folder.fd(), "missing/below").value());
}

TEST_CASE("a stat tells type, mode, links, size and the times") {
  const Folder folder;
  folder.write("f", "abcd", 0644);
  REQUIRE(::chmod(folder.path("f").c_str(), 04751) == 0);
  PosixFiles files;
  REQUIRE(files.link(folder.fd(), "f", folder.fd(), "g"));
  REQUIRE(files.set_mtime(folder.fd(), "f", -1));
  const Stat stat = stat_at(folder.fd(), "g").value();
  CHECK(stat.kind == Kind::file);
  CHECK(stat.mode == 04751);
  CHECK(stat.nlink == 2);
  CHECK(stat.size == 4);
  CHECK(stat.mtime_ns == -1);
  CHECK(stat.ctime_ns > 1'600'000'000'000'000'000);
  CHECK(stat.uid == ::geteuid());
  CHECK(stat.dev == stat_at(folder.fd(), "")->dev);
  CHECK(stat_fd(open_file(folder.fd(), "f")->get())->ino == stat.ino);
}

TEST_CASE("a listing can be taken twice from one descriptor and leaves out '.' and '..'") {
  const Folder folder;
  folder.write("f", "");
  folder.mkdir("d");
  folder.symlink("f", "l");
  const Fd dir = open_dir(folder.fd(), "").value();
  for (int round = 0; round < 2; ++round) {
    auto entries = list(dir.get(), "").value();
    std::ranges::sort(entries, {}, &DirEntry::name);
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].name == "d");
    CHECK(entries[0].kind == Kind::directory);
    CHECK(entries[1].kind == Kind::file);
    CHECK(entries[2].kind == Kind::symlink);
  }
}

TEST_CASE("an existing file is opened for writing only where it has one link") {
  const Folder folder;
  folder.write("f", "old");
  PosixFiles files;
  const Fd file = files.open_write(folder.fd(), "f").value();
  REQUIRE(files.write_at(file.get(), 2, as_bytes("DE"), "f"));
  CHECK(folder.read("f") == "olDE");
  REQUIRE(files.link(folder.fd(), "f", folder.fd(), "g"));
  CHECK(errno_of(files.open_write(folder.fd(), "f")) == EMLINK);
  CHECK(errno_of(files.create(folder.fd(), "f", 0600)) == EEXIST);
}

TEST_CASE("renames replace, refuse to replace, or exchange") {
  const Folder folder;
  folder.write("a", "A");
  folder.write("b", "B");
  folder.write("d/c", "C");
  PosixFiles files;
  CHECK(errno_of(files.rename_noreplace(folder.fd(), "a", folder.fd(), "b")) == EEXIST);
  REQUIRE(files.rename_exchange(folder.fd(), "a", folder.fd(), "d"));
  CHECK(folder.read("d") == "A");
  CHECK(folder.read("a/c") == "C");
  REQUIRE(files.rename(folder.fd(), "b", folder.fd(), "a/c"));
  CHECK(folder.read("a/c") == "B");
  REQUIRE(files.rename_noreplace(folder.fd(), "a/c", folder.fd(), "c"));
  CHECK(folder.read("c") == "B");
  const auto missing = files.rename(folder.fd(), "no\nsuch", folder.fd(), "x");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().what == "cannot rename 'no\\x0asuch' to 'x'");
  CHECK(missing.error().causes == std::vector<std::string>{"no such file or directory"});
}

TEST_CASE("a hard link of a symbolic link is that link") {
  const Folder folder;
  folder.symlink("target", "l");
  PosixFiles files;
  REQUIRE(files.link(folder.fd(), "l", folder.fd(), "m"));
  CHECK(read_link(folder.fd(), "m").value() == "target");
}

TEST_CASE("attributes of files, folders and links are read sorted, none is an empty list") {
  const Folder folder;
  folder.write("f", "");
  folder.symlink("f", "l");
  CHECK(xattrs(folder.fd(), "l").value().empty());
  PosixFiles files;
  const Fd file = open_file(folder.fd(), "f").value();
  const std::string large(2000, 'v');
  if (const auto set = files.set_xattr(file.get(), "user.b", large); !set) {
    CHECK(set.error().sys_errno == EOPNOTSUPP);
    return;
  }
  REQUIRE(files.set_xattr(file.get(), "user.a", std::string_view("\0x", 2)));
  CHECK(xattrs(folder.fd(), "f").value() == XattrList{{"user.a", std::string("\0x", 2)}, {"user.b", large}});
  CHECK(xattrs(file.get(), "").value().size() == 2);
  REQUIRE(files.remove_xattr(file.get(), "user.b"));
  CHECK(files.remove_xattr(file.get(), "user.b"));
  CHECK(xattrs(folder.fd(), "f").value().size() == 1);
}

TEST_CASE("a small file is read whole up to the limit and refused beyond it") {
  const Folder folder;
  folder.write("f", "12345");
  CHECK(read_small(folder.fd(), "f", 5).value() == "12345");
  CHECK(errno_of(read_small(folder.fd(), "f", 4)) == EFBIG);
  const Fd proc = open_dir_absolute("/proc/self").value();
  CHECK(read_small(proc.get(), "status", 1u << 16).value().find("Name:") == 0);  // its size is 0 by stat
  CHECK(errno_of(read_small(proc.get(), "status", 10)) == EFBIG);
}

TEST_CASE("read_at stops at the end of the file") {
  const Folder folder;
  folder.write("f", "12345");
  const Fd file = open_file(folder.fd(), "f").value();
  std::byte out[8];
  CHECK(read_at(file.get(), 2, out, "f").value() == 3);
  CHECK(read_at(file.get(), 9, out, "f").value() == 0);
}

TEST_CASE("allocate grows the file or leaves it, truncate sets its size") {
  const Folder folder;
  PosixFiles files;
  const Fd file = files.create(folder.fd(), "f", 0600).value();
  CHECK(files.allocate(file.get(), 0));
  REQUIRE(files.allocate(file.get(), 10'000));
  REQUIRE(files.truncate(file.get(), 3));
  CHECK(files.start_writeback(file.get(), 0, 3));
  CHECK(files.fsync(file.get(), "f"));
  CHECK(files.fdatasync(file.get(), "f"));
  CHECK(files.syncfs(folder.fd()));
  CHECK(files.fsync(folder.fd(), "the folder"));
  CHECK(stat_at(folder.fd(), "f")->size == 3);
  CHECK(errno_of(files.allocate(file.get(), u64{1} << 62)) != 0);
}

TEST_CASE("free space has numbers and a filesystem's name") {
  const Folder folder;
  const Space found = space(folder.fd()).value();
  CHECK(found.bytes_free > 0);
  CHECK(found.inodes_free > 0);
  CHECK_FALSE(found.filesystem.empty());
  CHECK(space(open_dir_absolute("/proc")->get())->bytes_free == 0);
}

TEST_CASE("no space and no quota have their own code") {
  CHECK(os_error(ENOSPC, "write", "f").code == ErrorCode::no_space);
  CHECK(os_error(EDQUOT, "write", "f").code == ErrorCode::no_space);
  CHECK(os_error(EIO, "write", "f").code == ErrorCode::io);
  CHECK(os_error(EIO, "write", "f").causes == std::vector<std::string>{"input/output error"});
}

TEST_CASE("replacing a file leaves the old one whole where any operation fails") {
  const Folder folder;
  folder.write("f", "old");
  envsync::testing::FaultyFiles files;
  REQUIRE(replace_file(files, folder.fd(), "g", as_bytes("new"), 0600));
  for (u64 n = 1; n <= files.total(); ++n) {
    CAPTURE(n);
    envsync::testing::FaultyFiles failing(
        {.operation = "", .at = n, .effect = envsync::testing::Fault::Effect::short_write, .error = 0});
    CHECK_FALSE(replace_file(failing, folder.fd(), "f", as_bytes("new"), 0600));
    CHECK(folder.read("f") == "old");
    CHECK(names(folder, "") == std::vector<std::string>{"f", "g"});
  }
  REQUIRE(replace_file(files, folder.fd(), "f", as_bytes("new"), 0600));
  CHECK(folder.read("f") == "new");
}

TEST_CASE("deleting a tree takes links and not what they point to") {
  const Folder folder;
  folder.write("keep/f", "x");
  folder.write("tree/a/b/c", "x");
  folder.symlink("../keep", "tree/a/to_keep");
  folder.symlink(folder.path("keep"), "link");
  PosixFiles files;
  CHECK(remove_tree(files, folder.fd(), "tree"));
  CHECK(remove_tree(files, folder.fd(), "tree"));  // absent
  CHECK(remove_tree(files, folder.fd(), "link"));
  CHECK(remove_tree(files, folder.fd(), "keep/no/such"));
  CHECK(names(folder, "") == std::vector<std::string>{"keep"});
  CHECK(folder.read("keep/f") == "x");
}

TEST_CASE("deleting a tree of hundreds of levels needs few descriptors") {
  const Folder folder;
  PosixFiles files;
  std::string path = "t";
  REQUIRE(files.mkdir(folder.fd(), path, 0700));
  for (int level = 0; level < 300; ++level) {
    path += "/d";
    REQUIRE(files.mkdir(folder.fd(), path, 0700));
    REQUIRE(files.mkdir(folder.fd(), path.substr(0, path.size() - 1) + "e", 0700));
  }
  CHECK(in_child([&] {
    const struct rlimit few = {.rlim_cur = 100, .rlim_max = 100};
    return ::setrlimit(RLIMIT_NOFILE, &few) == 0 && remove_tree(files, folder.fd(), "t").has_value();
  }));
  CHECK(names(folder, "").empty());
}

TEST_CASE("deleting a tree opens folders that their owner had closed") {
  CHECK(in_child([] {
    // Nothing is closed to root.
    if (::geteuid() == 0 && (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)) return false;
    const Folder folder;
    folder.write("t/a/f", "x");
    folder.write("t/b/c/f", "x");
    ::chmod(folder.path("t/a").c_str(), 0);
    ::chmod(folder.path("t/b/c").c_str(), 0500);
    ::chmod(folder.path("t/b").c_str(), 0500);
    PosixFiles files;
    return remove_tree(files, folder.fd(), "t").has_value() && !folder.has("t");
  }));
}

TEST_CASE("making folders counts what is there and refuses a file in the way") {
  const Folder folder;
  folder.write("f", "");
  envsync::testing::FaultyFiles files;
  CHECK(make_dirs(files, folder.fd(), "a/b/c", 0750));
  CHECK(files.total() == 3);
  CHECK(make_dirs(files, folder.fd(), "a/b/c", 0750));
  CHECK(files.total() == 3);
  CHECK(stat_at(folder.fd(), "a/b/c")->kind == Kind::directory);
  CHECK(errno_of(make_dirs(files, folder.fd(), "f/a", 0700)) == ENOTDIR);
  CHECK(make_dirs(files, folder.fd(), "", 0700));
}

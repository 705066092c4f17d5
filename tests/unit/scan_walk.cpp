// SPDX-License-Identifier: MIT
#include <csignal>
#include <cstring>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <doctest/doctest.h>

#include "base/guard.hpp"
#include "support/scan_folder.hpp"
#include "support/tree_literal.hpp"

using namespace envsync;
using namespace envsync::testing;
using scan::Options, scan::Scan;

namespace {

Options excluding(const std::vector<std::string>& patterns) {
  Options options;
  options.exclude = *tree::Exclude::parse(patterns);
  return options;
}

/// Runs `test` in a mount namespace of its own; nullopt where the machine gives none.
std::optional<bool> in_own_mounts(const std::function<bool()>& test) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(2);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(2);
    ::_exit(test() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return std::nullopt;
  return WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("a folder becomes the tree that it is") {
  Folder folder;
  folder.write("bin/tool", "x", 0755);
  folder.write("lib/a.py", "A");
  folder.write("lib-b", "");
  folder.write("lib.txt", "T", 0600);
  folder.mkdir("lib/empty");
  folder.symlink("tool", "bin/python");
  folder.symlink("/nowhere\n\xff", "bin/dangling");
  folder.symlink("lib", "folder");
  ::chmod(folder.path().c_str(), 0755);
  const Scan scan = scan_all(folder);
  CHECK(scan.problems.empty());
  CHECK(paths(scan) == "bin bin/dangling bin/python bin/tool folder lib lib-b lib.txt lib/a.py lib/empty");
  const tree::Tree expected = test::tree({"0755 bin/tool=x", "bin/python -> tool", "bin/dangling -> /nowhere\n\xff", "folder -> lib", "lib/a.py=A",
                                          "lib-b=", "0600 lib.txt=T", "lib/empty/"});
  CHECK(tree::diff(scan.tree, expected, {}).empty());
  CHECK(scan.tree.root({}) == expected.root({}));
  CHECK(scan.counters.entries == 11);
  CHECK(scan.counters.files_hashed == 4);
  CHECK(scan.counters.bytes_hashed == 3);
}

TEST_CASE("stats lie beside their entries, whatever the number of threads") {
  Folder folder;
  for (int i = 0; i < 40; ++i) folder.write("d" + std::to_string(i % 7) + "/e" + std::to_string(i % 3) + "/f" + std::to_string(i), std::to_string(i));
  content::Digest full;
  for (const u32 threads : {1u, 2u, 8u}) {
    Options options;
    options.threads = threads;
    const Scan scan = scan_all(folder, options);
    REQUIRE(scan.stats.size() == scan.tree.entries().size());
    for (std::size_t i = 0; i < scan.stats.size(); ++i)
      CHECK(scan.stats[i] == scan::key_of(*os::stat_at(folder.fd(), scan.tree.entries()[i].path.bytes())));
    CHECK((full.is_zero() || full == scan.tree.full()));
    full = scan.tree.full();
  }
}

TEST_CASE("names and link targets are bytes") {
  Folder folder;
  const std::string longest(255, 'n');
  for (const std::string& name : {std::string("new\nline"), std::string("\xff\xfe"), std::string("-rf"), std::string(" "), longest, std::string("a\\b"), std::string("...")})
    folder.write(name, "1");
  const Scan scan = scan_all(folder);
  CHECK(scan.problems.empty());
  CHECK(scan.tree.entries().size() == 8);
  for (const char* name : {"new\nline", "\xff\xfe", "-rf", " ", longest.c_str(), "a\\b", "..."}) CHECK(scan.tree.find(*tree::RelPath::parse(name)));
}

TEST_CASE("special files are named and never opened") {
  Folder folder;
  folder.write("kept", "1");
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0644) == 0);
  const os::Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, folder.path("socket").c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const Scan scan = scan_all(folder);
  CHECK(paths(scan) == "kept");
  CHECK(told(scan.problems) == "pipe: is a socket, pipe or device; socket: is a socket, pipe or device");
  CHECK(told(scan_all(folder, excluding({"pipe", "socket"})).problems).empty());
}

TEST_CASE("what cannot be read is named") {
  Folder folder;
  folder.write("closed", "1", 0000);
  folder.write("dir/f", "1");
  folder.write("kept", "1");
  ::chmod(folder.path("dir").c_str(), 0000);
  ::chmod(folder.path().c_str(), 0755);
  const ScopeGuard reopen([&] { ::chmod(folder.path("dir").c_str(), 0755); });
  const bool was_root = ::geteuid() == 0;
  if (was_root) REQUIRE(::seteuid(65534) == 0);  // root reads everything
  const ScopeGuard back([&] { if (was_root) static_cast<void>(::seteuid(0)); });
  const Scan scan = scan_all(folder);
  CHECK(paths(scan) == "kept");
  CHECK(told(scan.problems) == "closed: permission denied; dir: permission denied");
}

TEST_CASE("a root that cannot be listed is an error, not an empty tree") {
  Folder folder;
  scan::StatCache cache;
  const os::Fd file = *os::open_file(folder.fd(), (folder.write("f", "1"), "f"));
  CHECK_FALSE(scan::scan(file.get(), {}, cache));
  CHECK(scan::scan(-1, {}, cache)->tree.is_absent());
}

TEST_CASE("hard links within the tree are one group and are read once, links from outside are none") {
  Folder folder;
  folder.write("tree/a", "same");
  folder.mkdir("tree/d");
  REQUIRE(::link(folder.path("tree/a").c_str(), folder.path("tree/d/b").c_str()) == 0);
  folder.write("outside", "1");
  REQUIRE(::link(folder.path("outside").c_str(), folder.path("tree/c").c_str()) == 0);
  scan::StatCache cache;
  const os::Fd root = *os::open_dir(folder.fd(), "tree");
  const auto scan = scan::scan(root.get(), {}, cache);
  REQUIRE(scan);
  CHECK(tree::diff(scan->tree, test::tree({"a=same", "c=1", "d/b == a"}), {}).size() <= 1);  // the root's mode
  CHECK(scan->tree.find(*tree::RelPath::parse("d/b"))->file()->link_group == 2);
  CHECK(scan->tree.find(*tree::RelPath::parse("c"))->file()->link_group == 0);
  CHECK(scan->counters.files_hashed == 2);
}

TEST_CASE("attributes of the user travel, those of the host do not") {
  Folder folder;
  folder.write("f", "1");
  folder.mkdir("d");
  if (::setxattr(folder.path("f").c_str(), "user.note", "v\0w", 3, 0) != 0) {
    MESSAGE("the filesystem of $TMPDIR has no user attributes: not tested");
    return;
  }
  REQUIRE(::setxattr(folder.path("d").c_str(), "user.d", "", 0, 0) == 0);
  if (::geteuid() == 0) static_cast<void>(::setxattr(folder.path("f").c_str(), "trusted.host", "1", 1, 0));
  const auto of = [](const Scan& scan, const char* path) { return scan.tree.find(*tree::RelPath::parse(path))->xattrs; };
  scan::StatCache cache;
  settle();
  for (int round = 0; round < 2; ++round) {
    const Scan scan = scan_all(folder, cache);
    CHECK(of(scan, "f") == tree::Xattrs{{"user.note", std::string("v\0w", 3)}});
    CHECK(of(scan, "d") == tree::Xattrs{{"user.d", ""}});
    CHECK(scan.counters.files_hashed == (round == 0 ? 1 : 0));
  }
  Options without;
  without.want_xattrs = false;
  CHECK(of(scan_all(folder, cache, without), "f").empty());
  CHECK(of(scan_all(folder, cache, without), "d").empty());
}

TEST_CASE("a file's capabilities are kept in the cache and given to those who ask") {
  Folder folder;
  folder.write("f", "1");
  // vfs_cap_data, revision 2: cap_net_raw permitted
  const unsigned char capability[20] = {0, 0, 0, 2, 0, 0x20};
  if (::setxattr(folder.path("f").c_str(), "security.capability", capability, sizeof capability, 0) != 0) {
    MESSAGE("not privileged to set capabilities: not tested");
    return;
  }
  settle();
  scan::StatCache cache;
  CHECK(scan_all(folder, cache).tree.entries()[1].xattrs.empty());
  Options asking;
  asking.want_capabilities = true;
  const Scan scan = scan_all(folder, cache, asking);
  REQUIRE(scan.tree.entries()[1].xattrs.size() == 1);
  CHECK(scan.tree.entries()[1].xattrs[0].second.size() == 20);
  CHECK(scan.counters.files_hashed == 0);
}

TEST_CASE("excluded paths are unmanaged, a folder stands for all beneath it") {
  Folder folder;
  folder.write("keep/a.py", "1");
  folder.write("keep/a.log", "1");
  folder.write("logs/deep/x", "1");
  folder.write(".envsync-0/x", "1");
  folder.symlink("a", "keep/b.log");
  const Scan scan = scan_all(folder, excluding({"*.log", "/logs/"}));
  CHECK(paths(scan) == "keep keep/a.py");
  CHECK(unmanaged(scan) == ".envsync-0/ keep/a.log keep/b.log logs/");
}

TEST_CASE("bytecode is what lies in __pycache__ and an x.pyc beside its x.py") {
  Folder folder;
  for (const char* path : {"p/a.py", "p/a.pyc", "p/a.pyo", "p/only.pyc", "p/__pycache__/a.cpython-312.pyc", "p/q/__pycache__/b.cpython-312.pyc", "p/q/b.py", "q/__pycache__"})
    folder.write(path, "1");
  const Scan scan = scan_all(folder);
  CHECK(paths(scan) == "p p/a.py p/only.pyc p/q p/q/b.py q q/__pycache__");
  CHECK(unmanaged(scan) == "p/__pycache__/* p/a.pyc* p/a.pyo* p/q/__pycache__/*");
  Options ship;
  ship.bytecode = tree::Bytecode::ship;
  CHECK(unmanaged(scan_all(folder, ship)).empty());
  CHECK(scan_all(folder, ship).tree.file_count() == 8);
}

TEST_CASE("a folder that holds only unmanaged entries is unmanaged, an empty one is managed") {
  Folder folder;
  folder.write("gone/__pycache__/a.pyc", "1");
  folder.write("gone/deeper/__pycache__/b.pyc", "1");
  folder.write("mixed/x.log", "1");
  folder.write("mixed/__pycache__/c.pyc", "1");
  folder.write("half/x.log", "1");
  folder.mkdir("half/empty");
  folder.mkdir("empty");
  const Scan scan = scan_all(folder, excluding({"*.log"}));
  CHECK(paths(scan) == "empty half half/empty");
  CHECK(unmanaged(scan) == "gone/* half/x.log mixed/");
}

TEST_CASE("the root is managed even where it holds nothing that is") {
  Folder folder;
  folder.write("x.log", "1");
  const Scan scan = scan_all(folder, excluding({"*.log"}));
  CHECK(scan.tree.entries().size() == 1);
  CHECK(unmanaged(scan) == "x.log");
}

TEST_CASE("a folder with nothing but what cannot be copied stays managed") {
  Folder folder;
  folder.mkdir("d");
  REQUIRE(::mkfifo(folder.path("d/pipe").c_str(), 0644) == 0);
  folder.write("d/x.log", "1");
  const Scan scan = scan_all(folder, excluding({"*.log"}));
  CHECK(paths(scan) == "d");
  CHECK(told(scan.problems) == "d/pipe: is a socket, pipe or device");
}

TEST_CASE("a tree may be deeper than a path that the kernel takes, and needs few descriptors") {
  Folder folder;
  const std::string name(49, 'd');
  os::PosixFiles files;
  {
    os::Fd at = *os::open_dir(folder.fd(), "");
    for (int i = 0; i < 100; ++i) {
      REQUIRE(files.mkdir(at.get(), name, 0755));
      at = *os::open_dir(at.get(), name);
    }
    const os::Fd file = *files.create(at.get(), "leaf", 0644);
    REQUIRE(files.write_at(file.get(), 0, as_bytes("deep"), "leaf"));
  }
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit few{40, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const Scan scan = scan_all(folder);
  const auto differs = scan::recheck(folder.fd(), scan.tree, scan.stats, {}, 10);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(scan.problems.empty());
  REQUIRE(scan.tree.entries().size() == 102);
  const tree::Entry& leaf = scan.tree.entries().back();
  CHECK(leaf.path.bytes().size() == 100 * 50 + 4);
  CHECK(leaf.file()->digest == content::digest_of(as_bytes("deep")));
  CHECK(differs->empty());
  CHECK(os::remove_tree(files, folder.fd(), name));
}

TEST_CASE("a path too long for a message keeps its folder out, by name") {
  Folder folder;
  const std::string name(250, 'd');
  os::PosixFiles files;
  os::Fd at = *os::open_dir(folder.fd(), "");
  for (int i = 0; i < 66; ++i) {
    REQUIRE(files.mkdir(at.get(), name, 0755));
    at = *os::open_dir(at.get(), name);
  }
  const Scan scan = scan_all(folder);
  REQUIRE(scan.problems.size() == 1);
  CHECK(scan.problems[0].what == "holds an entry whose path is too long");
  CHECK(scan.tree.find(scan.problems[0].path) == nullptr);
  CHECK(os::remove_tree(files, folder.fd(), name));
}

TEST_CASE("a filesystem that is mounted below the root is named and not entered") {
  Folder folder;
  folder.write("file", "1");
  folder.write("other", "1");
  folder.mkdir("m");
  folder.mkdir("bound");
  const auto done = in_own_mounts([&] {
    if (::mount("none", folder.path("m").c_str(), "tmpfs", 0, nullptr) != 0) return false;
    if (::mount(folder.path("other").c_str(), folder.path("file").c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
    if (::mount(folder.path().c_str(), folder.path("bound").c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
    folder.write("m/inside", "1");
    const os::Fd root = *os::open_dir_absolute(folder.path());  // the folder's own is of the mounts before
    scan::StatCache cache;
    const auto scan = scan::scan(root.get(), {}, cache);
    const auto excluded = scan::scan(root.get(), excluding({"/m", "/bound", "/file"}), cache);
    return paths(*scan) == "other" && excluded->problems.empty() &&
           told(scan->problems) == "bound: a filesystem is mounted here; file: a filesystem is mounted here; m: a filesystem is mounted here";
  });
  if (!done) MESSAGE("no mount namespace to be had: not tested");
  else CHECK(*done);
}

TEST_CASE("a scan that is stopped says so") {
  Folder folder;
  folder.write("d/f", "1");
  std::stop_source source;
  source.request_stop();
  Options options;
  options.stop = source.get_token();
  scan::StatCache cache;
  const auto scan = scan::scan(folder.fd(), options, cache);
  REQUIRE_FALSE(scan);
  CHECK(scan.error().code == ErrorCode::interrupted);
}

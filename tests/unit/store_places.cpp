// SPDX-License-Identifier: MIT
// Places and users that make a commit harder: folders without the owner's write bit, other users, mounts, overlays, and people
// who stand in the tree.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/process.hpp"
#include "support/store_scenario.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

/// What `body` says, "" for success, from a process of its own, which may change its user, mounts and folder.
template <class Body>
std::string in_child(Body body) {
  os::PipePair pipe = os::make_pipe().value();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string text = body();
    static_cast<void>(::write(pipe.write.get(), text.data(), text.size()));
    ::_exit(0);
  }
  pipe.write.reset();
  std::string said;
  char buffer[4096];
  for (ssize_t got; (got = ::read(pipe.read.get(), buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : said + " (died)";
}

bool become_nobody() { return ::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0; }

bool own_mounts() { return ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0; }

constexpr const char* kNotHere = "not checked";

bool is_checked(const std::string& said) {
  if (said == kNotHere) MESSAGE("not checked: this user cannot become another one, or cannot mount");
  return said != kNotHere;
}

std::string apply_all(const std::string& env, std::initializer_list<Desired> trees, Settings settings = {}) {
  os::PosixFiles files;
  for (const Desired& to : trees) {
    const auto accepted = apply(files, env, to, settings);
    if (!accepted) return told(accepted);
    if (accepted->recovery_pending) return "pending: " + accepted->warnings.front();
    if (const auto wrong = differences(to.tree, env, settings); !wrong.empty()) return "differs: " + wrong;
    if (const auto lost = lost_contents(files, env); !lost.empty()) return "lost: " + lost;
  }
  return "";
}

}  // namespace

TEST_CASE("places: a user who is not root replaces folders without the owner's write bit, the commit root included") {
  FastFolder fast;
  const std::string env = fast.folder->path("env");
  REQUIRE(::chown(fast.folder->path().c_str(), 65534, 65534) == 0);
  const std::string said = in_child([&]() -> std::string {
    if (!become_nobody()) return kNotHere;
    const Desired one = desired({"0555 lib/", "0555 lib/d/", "0444 lib/a=one", "0444 lib/d/b=two", "0555 ro/", "0444 ro/x=1"});
    const Desired two = desired({"0555 lib/", "0555 lib/d/", "0444 lib/a=1", "0444 lib/d/b=two", "0444 lib/d/c=three", "0555 ro/", "0444 ro/x=1"});
    const auto sealed = [](Desired d) { return altered(d, "", [](tree::Entry& e) { e.mode = 0555; }); };
    if (const auto wrong = apply_all(env, {one, two, sealed(one), sealed(two), one}); !wrong.empty()) return wrong;
    return apply_all(env, {two, one}, {.commit_root = "lib"});
  });
  if (is_checked(said)) CHECK(said == "");
}

TEST_CASE("places: killed around the exchange, a commit root without the owner's write bit gets its mode back") {
  const auto trees = [] {
    return std::pair{desired({"0555 lib/", "0444 lib/a=one"}), desired({"0500 lib/", "0444 lib/a=1"})};
  };
  u64 killed = 0;
  for (u64 n = 20; n < 60; ++n) {
    FastFolder fast;
    const std::string env = fast.folder->path("env");
    REQUIRE(::chown(fast.folder->path().c_str(), 65534, 65534) == 0);
    const auto [base, to] = trees();
    const std::string said = in_child([&]() -> std::string {
      if (!become_nobody()) return kNotHere;
      if (const auto wrong = apply_all(env, {base}); !wrong.empty()) return wrong;
      const pid_t child = ::fork();
      if (child == 0) {
        FaultyFiles files(*Fault::parse(fmt::format("any:{}:before", n)));
        static_cast<void>(apply(files, env, to, {.commit_root = "lib"}));
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      os::PosixFiles files;
      Run run;
      if (const auto opened = run.open(files, env, {}); !opened) return told(opened);
      if (differences(base.tree, env) != "" && differences(to.tree, env) != "") return "neither: " + differences(to.tree, env);
      return WIFSIGNALED(status) ? "killed" : "";
    });
    if (!is_checked(said)) return;
    CAPTURE(n);
    CHECK((said == "" || said == "killed"));
    killed += said == "killed";
    if (said == "") break;
  }
  CHECK(killed > 5);
}

TEST_CASE("places: a path that is a mount point is refused, and so is a tree with a mount in it") {
  Folder folder;
  const std::string env = folder.path("env");
  os::PosixFiles files;
  REQUIRE(apply(files, env, desired({"a/x=1", "b/y=2", "run/z=3"})));
  const std::string said = in_child([&]() -> std::string {
    if (!own_mounts() || ::mount("none", folder.path("env/a").c_str(), "tmpfs", 0, nullptr) != 0) return kNotHere;
    const std::string inside = apply_all(env, {desired({"a/x=1", "b/y=3", "run/z=3"})});
    if (!inside.starts_with("place_refused: '" + env + "/a'")) return "inside: " + inside;
    ::umount(folder.path("env/a").c_str());
    if (::mount("none", env.c_str(), "tmpfs", 0, nullptr) != 0) return kNotHere;
    const std::string itself = apply_all(env, {desired({"a/x=1"})});
    return itself.find("a filesystem is mounted there") == itself.npos ? "itself: " + itself : "";
  });
  if (!is_checked(said)) return;
  CHECK(said == "");
  CHECK(differences(test::tree({"a/x=1", "b/y=2", "run/z=3"}), env) == "");
}

TEST_CASE("places: a mount inside an unmanaged folder is refused by name") {
  Folder folder;
  const std::string env = folder.path("env");
  os::PosixFiles files;
  const Settings settings{.commit_root = "", .exclude = {"/data/"}};
  REQUIRE(apply(files, env, desired({"a=1"}), settings));
  folder.mkdir("env/data/mnt");
  const std::string said = in_child([&]() -> std::string {
    if (!own_mounts() || ::mount("none", folder.path("env/data/mnt").c_str(), "tmpfs", 0, nullptr) != 0) return kNotHere;
    return apply_all(env, {desired({"a=2"})}, settings);
  });
  if (is_checked(said)) CHECK(said.starts_with("place_refused: '" + env + "/data/mnt'"));
}

TEST_CASE("places: a displaced tree that a process stands in stays until it has gone") {
  Folder folder;
  const std::string env = folder.path("env");
  os::PosixFiles files;
  REQUIRE(apply(files, env, desired({"lib/a=one", "lib/b=same"})));
  os::PipePair stay = os::make_pipe().value(), ready = os::make_pipe().value();
  const pid_t child = ::fork();
  if (child == 0) {
    stay.write.reset();
    if (::chdir(folder.path("env/lib").c_str()) != 0) ::_exit(1);
    static_cast<void>(::write(ready.write.get(), "y", 1));
    char end = 0;
    while (::read(stay.read.get(), &end, 1) < 0) {}
    ::_exit(::access("a", F_OK) == 0 ? 0 : 2);  // still there
  }
  char answer = 0;
  REQUIRE(::read(ready.read.get(), &answer, 1) == 1);
  const auto accepted = apply(files, env, desired({"lib/a=two", "lib/b=same"}));
  CHECK(told(accepted) == "");
  CHECK_FALSE(accepted->recovery_pending);
  REQUIRE(accepted->warnings.size() == 1);
  CHECK(accepted->warnings[0] == fmt::format("the tree before stays on disk for now: process {} stands in it", child));
  const auto staged = [&] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path(".envsync/env/staging"))) count += entry.exists();
    return count;
  };
  CHECK(staged() == 1);
  // A later run leaves it too, and does not take it for leftovers. "one" has gone into the pool.
  CHECK(told(apply(files, env, desired({"lib/a=three", "lib/b=same"}))) == "");
  CHECK(staged() == 1);
  stay.write.reset();
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 2);  // "a" itself was moved into the pool
  Run run;
  REQUIRE(run.open(files, env, {}));
  CHECK(staged() == 0);
  CHECK(run.counters.files_hashed == 0);  // the deletion moved the ctime of "b"
  CHECK(lost_contents(files, env) == "");
}

TEST_CASE("places: processes that use the tree are told before anything is swapped") {
  Folder folder;
  const std::string env = folder.path("env");
  os::PosixFiles files;
  REQUIRE(apply(files, env, desired({"lib/a=one"})));
  os::PipePair stay = os::make_pipe().value(), ready = os::make_pipe().value();
  const pid_t child = ::fork();
  if (child == 0) {
    stay.write.reset();
    const os::Fd held = os::open_file(folder.fd(), "env/lib/a").value();
    static_cast<void>(::write(ready.write.get(), "y", 1));
    char end = 0;
    while (::read(stay.read.get(), &end, 1) < 0) {}
    ::_exit(0);
  }
  char answer = 0;
  REQUIRE(::read(ready.read.get(), &answer, 1) == 1);
  Run run;
  Settings settings;
  settings.find_users = true;
  REQUIRE(run.open(files, env, settings));
  REQUIRE(run.begin(desired({"lib/a=two"}).tree, settings));
  stay.write.reset();
  ::waitpid(child, nullptr, 0);
  REQUIRE(run.transaction->needs().in_use.size() == 1);
  CHECK(run.transaction->needs().in_use[0].find(fmt::format("(process {}) holds open '{}/lib/a'", child, env)) != std::string::npos);
}

TEST_CASE("places: a displaced tree that a container has mounted stays until it has gone") {
  Folder folder;
  const std::string env = folder.path("env");
  os::PosixFiles files;
  REQUIRE(apply(files, env, desired({"lib/a=one", "lib/b=same"})));
  folder.mkdir("inside");
  os::PipePair stay = os::make_pipe().value(), ready = os::make_pipe().value();
  const pid_t child = ::fork();
  if (child == 0) {
    stay.write.reset();
    const bool is_mounted = own_mounts() && ::mount(env.c_str(), folder.path("inside").c_str(), nullptr, MS_BIND, nullptr) == 0;
    static_cast<void>(::write(ready.write.get(), is_mounted ? "y" : "n", 1));
    char end = 0;
    while (::read(stay.read.get(), &end, 1) < 0) {}
    ::_exit(::access(folder.path("inside/lib/b").c_str(), F_OK) == 0 ? 0 : 2);
  }
  char answer = 0;
  REQUIRE(::read(ready.read.get(), &answer, 1) == 1);
  const auto accepted = apply(files, env, desired({"lib/a=two", "lib/b=same"}));
  stay.write.reset();
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!is_checked(answer == 'n' ? kNotHere : "")) return;
  CHECK(told(accepted) == "");
  REQUIRE(accepted->warnings.size() == 1);
  CHECK(accepted->warnings[0].find("has it mounted") != std::string::npos);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(told(apply(files, env, desired({"lib/a=three", "lib/b=same"}))) == "");
}

TEST_CASE("places: a folder of an overlay's lower layer is refused, one of its upper layer is not") {
  Folder folder;
  for (const char* name : {"tmp", "merged"}) folder.mkdir(name);
  const std::string said = in_child([&]() -> std::string {
    if (!own_mounts() || ::mount("none", folder.path("tmp").c_str(), "tmpfs", 0, nullptr) != 0) return kNotHere;
    for (const char* name : {"tmp/upper", "tmp/work"}) folder.mkdir(name);
    folder.write("tmp/lower/env/lib/a", "image");
    folder.write("tmp/lower/env/top", "image");
    const std::string options = fmt::format("lowerdir={0}/tmp/lower,upperdir={0}/tmp/upper,workdir={0}/tmp/work", folder.path());
    if (::mount("overlay", folder.path("merged").c_str(), "overlay", 0, options.c_str()) != 0) return kNotHere;
    const std::string lower = apply_all(folder.path("merged/env"), {desired({"lib/a=new", "top=image"})});
    if (!lower.starts_with("place_refused")) return "lower: " + lower;
    os::PosixFiles files;
    Run run;  // before anything is sent, and below the root too
    const Settings below{.commit_root = "lib"};
    if (const auto opened = run.open(files, folder.path("merged/env"), below); !opened) return told(opened);
    const std::string early = told(run.begin(desired({"lib/a=new", "top=image"}).tree, below));
    if (early.find("a lower layer of an overlay") == early.npos) return "early: " + early;
    if (folder.read("merged/env/lib/a") != "image") return "moved";
    const std::string fresh = apply_all(folder.path("merged/fresh"), {desired({"lib/a=1", "b=2"}), desired({"lib/a=2", "b=2"})});
    return fresh.empty() ? "" : "fresh: " + fresh;
  });
  if (is_checked(said)) CHECK(said == "");
}

TEST_CASE("places: an immutable or append-only entry that would be replaced is refused by name") {
  Folder folder;  // chattr needs a filesystem with flags
  const std::string env = folder.path("env");
  os::PosixFiles files;
  REQUIRE(apply(files, env, desired({"lib/a=one", "lib/d/b=two", "c=3"})));
  for (const char* name : {"env/lib/a", "env/lib/d", "env/c"}) {
    CAPTURE(std::string(name));
    if (std::system(fmt::format("chattr +i '{}' 2>/dev/null", folder.path(name)).c_str()) != 0) {
      MESSAGE("not checked: no immutable flag here");
      return;
    }
    const std::string said = apply_all(env, {desired({"lib/a=1", "lib/d/b=2", "c=3"})});
    std::system(fmt::format("chattr -i '{}'", folder.path(name)).c_str());
    CHECK(said.starts_with("place_refused: '" + folder.path(name) + "' cannot be replaced: it is marked immutable or append-only"));
    CHECK(differences(test::tree({"lib/a=one", "lib/d/b=two", "c=3"}), env) == "");
  }
  CHECK(apply_all(env, {desired({"lib/a=1", "lib/d/b=2", "c=3"})}) == "");
}

TEST_CASE("places: a tree that counts for another project's quota is refused") {
  Folder folder;  // only where $TMPDIR's filesystem has projects
  const std::string env = folder.path("env");
  os::PosixFiles files;
  REQUIRE(apply(files, env, desired({"lib/a=one"})));
  const os::Fd dir = os::open_dir(folder.fd(), "env").value();
  struct fsxattr project {};
  const bool has_projects = ::ioctl(dir.get(), FS_IOC_FSGETXATTR, &project) == 0 && (project.fsx_projid = 42) == 42 &&
                            ::ioctl(dir.get(), FS_IOC_FSSETXATTR, &project) == 0;
  if (!has_projects) return;
  CHECK(apply_all(env, {desired({"lib/a=two"})}).find("another project's quota") != std::string::npos);
  CHECK(folder.read("env/lib/a") == "one");
}

TEST_CASE("places: what cannot be written to is a refused place, before anything is built") {
  Folder folder;
  folder.mkdir("ro");
  folder.write("a-file", "text");
  os::PosixFiles files;
  const auto first = [&](const std::string& env) { return told(apply(files, env, desired({"a=1"}))); };
  CHECK(told(store::resolve_place(folder.path("a-file/sub/env"))).find("'" + folder.path("a-file") + "' is not a folder") != std::string::npos);
  CHECK(told(store::resolve_place(folder.path("a-file/env"))).starts_with("place_refused"));
  const std::string said = in_child([&]() -> std::string {
    if (!own_mounts() || ::mount("none", folder.path("ro").c_str(), "tmpfs", 0, nullptr) != 0) return kNotHere;
    if (const auto made = first(folder.path("ro/kept")); !made.empty()) return made;
    if (::mount("none", folder.path("ro").c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0) return kNotHere;
    for (const char* env : {"ro/env", "ro/deep/er/env", "ro/kept"})
      if (const auto text = first(folder.path(env)); !text.starts_with("place_refused")) return std::string(env) + ": " + text;
    return "";
  });
  if (is_checked(said)) CHECK(said == "");
}

TEST_CASE("places: a first apply below a folder that may not be written to is refused although the state beside it may be") {
  Folder folder;
  folder.mkdir("parent/.envsync/env");
  for (const char* name : {"parent/.envsync/env", "parent/.envsync", "parent", ""}) REQUIRE(::chown(folder.path(name).c_str(), 65534, 65534) == 0);
  REQUIRE(::chmod(folder.path("parent").c_str(), 0555) == 0);
  const std::string said = in_child([&]() -> std::string {
    if (!become_nobody()) return kNotHere;
    os::PosixFiles files;
    Run run;
    if (const auto opened = run.open(files, folder.path("parent/env"), {}); !opened) return told(opened);
    return told(run.begin(desired({"a=1"}).tree, {}));
  });
  REQUIRE(::chmod(folder.path("parent").c_str(), 0755) == 0);
  if (is_checked(said)) CHECK(said.find("the folder that holds it may not be written to") != std::string::npos);
}

TEST_CASE("places: state of another user is told where there is none of this one") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  REQUIRE(apply(files, env, desired({"a=1"})));
  REQUIRE(::chmod(folder.path("").c_str(), 0755) == 0);
  CHECK(store::resolve_place(env)->foreign_state.empty());
  const std::string said = in_child([&]() -> std::string {
    if (!become_nobody()) return kNotHere;
    const auto place = store::resolve_place(env);
    return place ? place->foreign_state : told(place);
  });
  if (is_checked(said)) CHECK(said == "'" + folder.path(".envsync") + "' belongs to user 0");
}

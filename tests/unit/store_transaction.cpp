// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sys/stat.h>

#include "support/faulty_files.hpp"
#include "support/store_env.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

/// An environment, and what every test asks of it after a run.
struct Env {
  Folder folder;
  os::PosixFiles files;
  std::string path = folder.path("env");
  Settings settings = {};

  std::string apply(const Desired& to, const std::string& commit_root = "") {
    settings.commit_root = commit_root;
    const auto accepted = envsync::testing::apply(files, path, to, settings);
    if (!accepted) return told(accepted);
    std::string text;
    if (accepted->recovery_pending) text += "recovery pending ";
    for (const std::string& warning : accepted->warnings) text += warning + " ";
    if (const auto wrong = differences(to.tree, path, settings); !wrong.empty()) text += "differs: " + wrong;
    if (const auto lost = lost_contents(files, path); !lost.empty()) text += "lost: " + lost;
    return text;
  }
  u64 ino(const std::string& rel) const { return os::stat_at(folder.fd(), "env/" + rel)->ino; }
  os::Stat stat(const std::string& rel) const { return *os::stat_at(folder.fd(), "env/" + rel); }
};

}  // namespace

TEST_CASE("transaction: the first apply makes the tree at a path that was absent, parents included, and generation 1") {
  Env env;
  env.path = env.folder.path("deep/er/env");
  const Desired to = desired({"0755 bin/tool=#!", "lib/a.py=one", "lib/b.py=two", "lib/empty=", "bin/python -> tool", "lib/d/"});
  const auto accepted = apply(env.files, env.path, to);
  CHECK(told(accepted) == "");
  CHECK(accepted->generation == 1);
  CHECK_FALSE(accepted->adopted.has_value());
  CHECK_FALSE(accepted->recovery_pending);
  CHECK(differences(to.tree, env.path) == "");
  CHECK(generations(env.files, env.path) == "1");
  CHECK_FALSE(std::filesystem::exists(env.folder.path("deep/er/.envsync/env/staging") + "/x"));
  CHECK(std::filesystem::is_empty(env.folder.path("deep/er/.envsync/env/staging")));
}

TEST_CASE("transaction: a change replaces what differs and keeps the inodes of what does not") {
  Env env;
  CHECK(env.apply(desired({"lib/a.py=one", "lib/b.py=two", "lib/gone=x", "top=t"})) == "");
  const u64 kept = env.ino("lib/b.py"), top = env.ino("top"), root = env.ino("");
  const auto accepted = [&] {
    env.settings.commit_root = "lib";
    return apply(env.files, env.path, desired({"lib/a.py=1", "lib/b.py=two", "lib/new/c.py=three", "top=t"}), env.settings);
  }();
  CHECK(told(accepted) == "");
  CHECK(accepted->generation == 2);
  CHECK(accepted->bytes_written == 6);
  CHECK(differences(test::tree({"lib/a.py=1", "lib/b.py=two", "lib/new/c.py=three", "top=t"}), env.path) == "");
  CHECK(env.ino("lib/b.py") == kept);
  CHECK(env.ino("top") == top);
  CHECK(env.ino("") == root);
  CHECK(generations(env.files, env.path) == "1 2");
  CHECK(lost_contents(env.files, env.path) == "");
}

TEST_CASE("transaction: after a run nothing is hashed again, links and deletions notwithstanding") {
  Env env;
  CHECK(env.apply(desired({"lib/a.py=one", "lib/b.py=two", "lib/c.py=three", "lib/d.py == lib/c.py", "top=t"})) == "");
  CHECK(env.apply(desired({"lib/a.py=1", "lib/b.py=two", "lib/c.py=three", "lib/d.py == lib/c.py", "top=t"})) == "");
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    CHECK(run.counters.files_hashed == 0);
    CHECK(run.observed.tree.file_count() == 5);
    // A run that is dropped has linked and unlinked, too.
    REQUIRE(run.begin(desired({"lib/a.py=one", "lib/b.py=two", "lib/c.py=three", "lib/d.py == lib/c.py", "top=t"}).tree, env.settings));
    REQUIRE(run.transaction->abandon());
  }
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  CHECK(run.counters.files_hashed == 0);
}

TEST_CASE("transaction: a commit root that is a single file is exchanged alone") {
  Env env;
  CHECK(env.apply(desired({"lib/a.py=one", "lib/b.py=two"})) == "");
  const u64 lib = env.ino("lib"), other = env.ino("lib/b.py");
  CHECK(env.apply(desired({"lib/a.py=1", "lib/b.py=two"}), "lib/a.py") == "");
  CHECK(env.ino("lib") == lib);
  CHECK(env.ino("lib/b.py") == other);
  CHECK(env.apply(desired({"lib/a.py=one", "lib/b.py=two"}), "lib/a.py") == "");
  CHECK(generations(env.files, env.path) == "1 2 3");
}

TEST_CASE("transaction: a commit root that is a link is exchanged alone") {
  Env env;
  CHECK(env.apply(desired({"bin/python -> python3.11", "x=1"})) == "");
  CHECK(env.apply(desired({"bin/python -> python3.12", "x=1"}), "bin/python") == "");
}

TEST_CASE("transaction: files, folders and links become each other") {
  Env env;
  CHECK(env.apply(desired({"a=file", "b/in=x", "c -> a", "d/deep/er=y"})) == "");
  CHECK(env.apply(desired({"a/in=x", "b -> a", "c=file", "d=was a folder"})) == "");
  CHECK(env.apply(desired({"a -> c", "b=1", "c/x/y/z=2", "d/"})) == "");
  CHECK(env.apply(desired({"a=file", "b/in=x", "c -> a", "d/deep/er=y"})) == "");
}

TEST_CASE("transaction: a change of metadata alone is a new inode with the old content, and the old inode keeps its mode") {
  Env env;
  CHECK(env.apply(desired({"bin/tool=#!", "lib/a=x"})) == "");
  const os::Fd held = os::open_file(env.folder.fd(), "env/bin/tool").value();
  const auto accepted = apply(env.files, env.path, desired({"0755 bin/tool=#!", "lib/a=x"}), {.commit_root = "bin"});
  CHECK(told(accepted) == "");
  CHECK(env.stat("bin/tool").mode == 0755);
  CHECK(os::stat_fd(held.get())->mode == 0644);
  CHECK(env.apply(desired({"0755 bin/tool=#!", "0700 lib/", "lib/a=x"})) == "");
  CHECK(env.stat("lib").mode == 0700);
}

TEST_CASE("transaction: attributes are set, changed and taken away") {
  Env env;
  const Desired plain = desired({"lib/a=x", "lib/b=y"});
  const Desired marked = altered(plain, "lib/a", [](tree::Entry& e) { e.xattrs = {{"user.one", "1"}, {"user.two", std::string("\0\n", 2)}}; });
  const Desired folder_marked = altered(marked, "lib", [](tree::Entry& e) { e.xattrs = {{"user.dir", "d"}}; });
  CHECK(env.apply(folder_marked) == "");
  CHECK(env.apply(marked) == "");
  CHECK(env.apply(plain) == "");
  CHECK(env.apply(folder_marked) == "");
}

TEST_CASE("transaction: a link group shares one inode, grows, shrinks and comes apart") {
  Env env;
  CHECK(env.apply(desired({"a=same", "d/b == a", "d/c=same"})) == "");
  CHECK(env.ino("a") == env.ino("d/b"));
  CHECK(env.ino("a") != env.ino("d/c"));
  CHECK(env.apply(desired({"a=same", "d/b == a", "d/c == a"})) == "");
  CHECK(env.ino("a") == env.ino("d/c"));
  CHECK(env.apply(desired({"a=same", "d/b == a", "d/c=same"})) == "");
  CHECK(env.apply(desired({"a=same", "d/b=same", "d/c=same"})) == "");
  CHECK(env.ino("a") != env.ino("d/b"));
  CHECK(env.apply(desired({"a=else", "d/b == a", "d/c=same", "d/e == a"})) == "");
  CHECK(env.stat("a").nlink == 3);
}

TEST_CASE("transaction: an unchanged link group is linked, not copied") {
  Env env;
  CHECK(env.apply(desired({"a=same", "d/b == a", "x=1"})) == "");
  const u64 ino = env.ino("a");
  CHECK(env.apply(desired({"a=same", "d/b == a", "x=2"})) == "");
  CHECK(env.ino("a") == ino);
  CHECK(env.ino("d/b") == ino);
}

TEST_CASE("transaction: names with newlines, quotes, bytes that are no text and 255 of them") {
  Env env;
  const std::string longest(255, 'n');
  Desired to;
  to.tree = test::tree({"\n=1", "\"'\\=2", "-rf=3", "\xff\xfe=4", " =5", longest + "/" + longest + "=6", "*=7"});
  for (const char* text : {"1", "2", "3", "4", "5", "6", "7"}) add_text(to, text);
  CHECK(env.apply(to) == "");
  Desired less = to;
  less.tree = test::tree({"\n=7", "\xff\xfe=4", " =5", longest + "/" + longest + "=1"});
  CHECK(env.apply(less) == "");
}

TEST_CASE("transaction: times are written as desired, and not at all where the settings say so") {
  Env env;
  CHECK(env.apply(desired({"a=x"})) == "");
  CHECK(env.stat("a").mtime_ns == test::kLiteralMtimeNs);
  env.settings.policy.mtime = true;
  CHECK(env.apply(altered(desired({"a=x"}), "a", [](tree::Entry& e) { e.mtime_ns = 5; })) == "");
  CHECK(env.stat("a").mtime_ns == 5);
  env.settings.policy.mtime = false;
  env.settings.write_mtime = false;
  CHECK(env.apply(desired({"a=y"})) == "");
  CHECK(env.stat("a").mtime_ns > test::kLiteralMtimeNs);
}

TEST_CASE("transaction: a folder keeps its time unless its entries change") {
  Env env;
  CHECK(env.apply(desired({"same/a=x", "same/b=y", "other/a=x", "gone/a=1", "gone/b=2"})) == "");
  for (const char* name : {"env/same", "env/other", "env/gone"}) REQUIRE(env.files.set_mtime(env.folder.fd(), name, 1'000'000'000));
  CHECK(env.apply(desired({"same/a=x", "same/b=y", "other/a=changed", "gone/a=1"})) == "");
  CHECK(env.stat("same").mtime_ns == 1'000'000'000);
  CHECK(env.stat("other").mtime_ns > 1'000'000'000);
  CHECK(env.stat("gone").mtime_ns > 1'000'000'000);
}

TEST_CASE("transaction: the owner stays that of the file before, and is the desired one where the settings say so") {
  if (::geteuid() != 0) return;
  Env env;
  CHECK(env.apply(desired({"a=x", "d/b=y"})) == "");
  REQUIRE(env.files.chown(env.folder.fd(), "env/a", 1234, 2345));
  REQUIRE(env.files.chown(env.folder.fd(), "env/d", 12, 23));
  CHECK(env.apply(desired({"a=changed", "d/b=changed"})) == "");
  CHECK(env.stat("a").uid == 1234);
  CHECK(env.stat("a").gid == 2345);
  CHECK(env.stat("d").uid == 12);
  CHECK(env.stat("d/b").uid == 0);
  env.settings.policy.owner = env.settings.preserve_owner = true;
  CHECK(env.apply(altered(desired({"a=changed", "d/b=changed"}), "a", [](tree::Entry& e) { e.owner = {7, 8}; })) == "");
  CHECK(env.stat("a").uid == 7);
  CHECK(env.stat("a").gid == 8);
  CHECK(env.stat("d").uid == 0);
}

TEST_CASE("transaction: new entries inherit the group of a setgid folder") {
  if (::geteuid() != 0) return;
  Env env;
  CHECK(env.apply(desired({"d/a=x"})) == "");
  REQUIRE(env.files.chown(env.folder.fd(), "env/d", 0, 77));
  ::chmod(env.folder.path("env/d").c_str(), 02755);
  CHECK(env.apply(desired({"d/a=x", "d/new/b=y"})) == "");
  CHECK(env.stat("d").mode == 02755);
  CHECK(env.stat("d/new").mode == 02755);
  CHECK(env.stat("d/new").gid == 77);
  CHECK(env.stat("d/new/b").gid == 77);
}

TEST_CASE("transaction: setuid bits and modes without the owner's bits arrive") {
  Env env;
  CHECK(env.apply(desired({"04755 bin/su=x", "0200 none=y", "0555 ro/", "0444 ro/f=z"})) == "");
  CHECK(env.stat("bin/su").mode == 04755);
  CHECK(env.stat("none").mode == 0200);
  CHECK(env.apply(desired({"04755 bin/su=x2", "0200 none=y2", "0555 ro/", "0444 ro/f=z2", "0444 ro/g=new"})) == "");
}

TEST_CASE("transaction: staged content is read back where that is asked for") {
  Env env;
  env.settings.verify_staged = true;
  const auto accepted = apply(env.files, env.path, desired({"a=one", "b=two"}), env.settings);
  CHECK(told(accepted) == "");
  CHECK(accepted->bytes_read == 6);
}

TEST_CASE("transaction: a plan that changes something outside of its commit root is refused") {
  Env env;
  CHECK(env.apply(desired({"a/x=1", "b/y=2"})) == "");
  CHECK(env.apply(desired({"a/x=1", "b/y=3"}), "a") ==
        "protocol: a plan that does not fit the trees: 'b/y' changes outside of its commit root 'a'");
  CHECK(env.apply(desired({"a/x=1", "b/y=3"}), "c").starts_with("protocol: a plan that does not fit the trees"));
  CHECK(env.apply(desired({"a=1", "b/y=2"}), "a").starts_with("protocol: a plan that does not fit the trees"));
  CHECK(env.apply(desired({"a/x=1", "b/y=2", "a/.envsync/z=3"})).find("is where envsync keeps its state") != std::string::npos);
  CHECK(env.apply({}).starts_with("protocol: a plan that does not fit the trees: its desired tree is absent"));
  CHECK(differences(test::tree({"a/x=1", "b/y=2"}), env.path) == "");
}

TEST_CASE("transaction: a link group that reaches out of the commit root is refused") {
  Env env;
  CHECK(env.apply(desired({"a/x=1", "b/y=1"})) == "");
  CHECK(env.apply(desired({"a/x=1", "b/y == a/x"}), "b").starts_with("protocol: a plan that does not fit the trees"));
}

TEST_CASE("transaction: a path that envsync does not know is left alone without consent; with it, it becomes generation 0") {
  Env env;
  env.folder.write("env/lib/a.py", "mine");
  env.settings.adopt = false;
  CHECK(env.apply(desired({"lib/a.py=one"})).starts_with("adoption_refused"));
  CHECK(env.folder.read("env/lib/a.py") == "mine");
  env.settings.adopt = true;
  const auto accepted = apply(env.files, env.path, desired({"lib/a.py=one"}), env.settings);
  CHECK(told(accepted) == "");
  CHECK(accepted->adopted == 0u);
  CHECK(accepted->generation == 1);
  CHECK(generations(env.files, env.path) == "0a 1");
  CHECK(lost_contents(env.files, env.path) == "");
}

TEST_CASE("transaction: an empty folder needs no consent and makes no generation 0") {
  Env env;
  env.folder.mkdir("env");
  env.settings.adopt = false;
  CHECK(env.apply(desired({"lib/a.py=one"})) == "");
  CHECK(generations(env.files, env.path) == "1");
}

TEST_CASE("transaction: what somebody changed since is a generation of its own before it is replaced") {
  Env env;
  CHECK(env.apply(desired({"a=one", "b=two"})) == "");
  std::filesystem::remove(env.folder.path("env/b"));
  env.folder.write("env/b", "drifted");
  const auto accepted = apply(env.files, env.path, desired({"a=one", "b=three"}));
  CHECK(told(accepted) == "");
  CHECK(accepted->adopted == 2u);
  CHECK(accepted->generation == 3);
  CHECK(generations(env.files, env.path) == "1 2a 3");
  auto state = store::State::open(env.files, store::resolve_place(env.path).value(), store::OpenMode::existing).value();
  const auto drifted = state.load(2);
  REQUIRE(drifted);
  CHECK(tree::diff(drifted->tree, test::tree({"a=one", "b=drifted"}), {}).empty());
}

TEST_CASE("transaction: times that nobody compares are no drift") {
  Env env;
  CHECK(env.apply(desired({"a=one", "b=two"})) == "");
  REQUIRE(env.files.set_mtime(env.folder.fd(), "env/a", 12345));
  CHECK(env.apply(desired({"a=one", "b=three"})) == "");
  CHECK(generations(env.files, env.path) == "1 2");
}

TEST_CASE("transaction: a commit that finds the tree changed swaps nothing") {
  for (const int what : {0, 1, 2, 3, 4}) {
    CAPTURE(what);
    Env env;
    CHECK(env.apply(desired({"lib/a=one", "lib/b=two", "lib/d/"})) == "");
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    const Desired to = desired({"lib/a=one", "lib/b=new", "lib/d/"});
    REQUIRE(run.begin(to.tree, env.settings));
    REQUIRE(run.put(to));
    REQUIRE(run.transaction->seal({}));
    if (what == 0) env.folder.write("env/lib/a", "mine");
    if (what == 1) std::filesystem::remove(env.folder.path("env/lib/b"));
    if (what == 2) env.folder.write("env/lib/new", "mine");
    if (what == 3) ::chmod(env.folder.path("env/lib/d").c_str(), 0700);
    if (what == 4) env.folder.mkdir("env/lib/empty");
    const tree::Tree before = tree_at(env.path);
    const auto committed = run.transaction->commit({});
    REQUIRE_FALSE(committed);
    CHECK(committed.error().code == ErrorCode::changed_meanwhile);
    CHECK(differences(before, env.path) == "");
    CHECK(run.state->usage()->journal_state == "clean");
  }
}

TEST_CASE("transaction: a path that was made or deleted since the scan is not touched") {
  Env env;
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  const Desired to = desired({"a=1"});
  REQUIRE(run.begin(to.tree, env.settings));
  REQUIRE(run.put(to));
  REQUIRE(run.transaction->seal({}));
  env.folder.write("env/theirs", "x");
  CHECK(told(run.transaction->commit({})).starts_with("changed_meanwhile"));
  CHECK(env.folder.read("env/theirs") == "x");
}

TEST_CASE("transaction: revert after the commit puts the old tree back, and unmanaged files made meanwhile come with it") {
  Env env;
  env.settings.exclude = {"*.log"};
  CHECK(env.apply(desired({"lib/a=one"})) == "");
  {
    Run run;
    REQUIRE(run.open(env.files, env.path, env.settings));
    const Desired to = desired({"lib/a=two", "lib/b=x"});
    REQUIRE(run.begin(to.tree, env.settings));
    REQUIRE(run.put(to));
    REQUIRE(run.transaction->seal({}));
    REQUIRE(run.transaction->commit({}));
    CHECK(differences(to.tree, env.path, env.settings) == "");
    env.folder.write("env/lib/new.log", "said");
    CHECK(told(run.transaction->revert()) == "");
  }
  CHECK(differences(test::tree({"lib/a=one"}), env.path, env.settings) == "");
  CHECK(env.folder.read("env/lib/new.log") == "said");
  CHECK(generations(env.files, env.path) == "1");
  // The first apply can be taken back too.
  Env fresh;
  Run run;
  REQUIRE(run.open(fresh.files, fresh.path, fresh.settings));
  const Desired to = desired({"a=1"});
  REQUIRE(run.begin(to.tree, fresh.settings));
  REQUIRE(run.put(to));
  REQUIRE(run.transaction->seal({}));
  REQUIRE(run.transaction->commit({}));
  REQUIRE(run.transaction->revert());
  CHECK_FALSE(fresh.folder.has("env"));
}

TEST_CASE("transaction: steps out of order are refused by name") {
  Env env;
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  const Desired to = desired({"a=1"});
  REQUIRE(run.begin(to.tree, env.settings));
  CHECK(told(run.transaction->commit({})).starts_with("protocol"));
  CHECK(told(run.transaction->accept({})).starts_with("protocol"));
  CHECK(told(run.transaction->seal({})) == "protocol: 1 contents of the staged tree have not come");
  REQUIRE(run.put(to));
  REQUIRE(run.transaction->seal({}));
  CHECK(told(run.transaction->seal({})).starts_with("protocol"));
  CHECK(told(run.put(to)).starts_with("protocol"));
  REQUIRE(run.transaction->commit({}));
  CHECK(told(run.transaction->abandon()).starts_with("protocol"));
  REQUIRE(run.transaction->accept({}));
  CHECK(told(run.transaction->accept({})).starts_with("protocol"));
}

TEST_CASE("commit: what somebody changed while the new tree was staged is found before the exchange, which then never comes") {
  Folder folder;
  FaultyFiles files;
  const std::string env = folder.path("env");
  REQUIRE(apply(files, env, desired({"lib/a=1", "lib/b=1"})));
  const Desired to = desired({"lib/a=2", "lib/b=1"});
  for (const char* changed : {"env/lib/b", "env/lib/new"}) {
    Run run;
    REQUIRE(run.open(files, env, {}));
    REQUIRE(run.begin(to.tree, {}));
    REQUIRE(run.put(to));
    REQUIRE(run.transaction->seal({}));
    folder.write(changed, "somebody's");
    const u64 exchanges = files.counts()["rename_exchange"];
    CHECK(told(run.transaction->commit({})).starts_with("changed_meanwhile"));
    CHECK(files.counts()["rename_exchange"] == exchanges);
    CHECK(folder.read("env/lib/a") == "1");
    CHECK(folder.read(changed) == "somebody's");
  }
}

// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sys/stat.h>

#include "store/carry.hpp"
#include "support/store_env.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

struct Env {
  Folder folder;
  os::PosixFiles files;
  std::string path = folder.path("env");
  Settings settings = {};

  explicit Env(std::vector<std::string> exclude = {}) { settings.exclude = std::move(exclude); }
  std::string apply(const Desired& to) {
    const auto accepted = envsync::testing::apply(files, path, to, settings);
    if (!accepted) return told(accepted);
    std::string text;
    for (const std::string& warning : accepted->warnings) text += warning + " ";
    if (const auto wrong = differences(to.tree, path, settings); !wrong.empty()) text += "differs: " + wrong;
    return text;
  }
  u64 ino(const std::string& rel) const { return os::stat_at(folder.fd(), "env/" + rel)->ino; }
  bool has(const std::string& rel) const { return folder.has("env/" + rel); }
  void write(const std::string& rel, std::string_view text) const { folder.write("env/" + rel, text); }
  std::string read(const std::string& rel) const { return folder.read("env/" + rel); }
};

}  // namespace

TEST_CASE("unmanaged: excluded files and bytecode of unchanged sources are linked into the new tree, folders with them") {
  Env env({"*.log", "/data/"});
  CHECK(env.apply(desired({"lib/a.py=one", "lib/b.py=two"})) == "");
  env.write("lib/run.log", "log");
  env.write("data/deep/er/file", "data");
  env.folder.mkdir("env/data/empty");
  ::chmod(env.folder.path("env/data/deep").c_str(), 0701);
  env.write("lib/__pycache__/b.cpython-312.pyc", "pyc");
  env.write("lib/old.pyc", "sourceless");  // a file like others
  const u64 log = env.ino("lib/run.log"), data = env.ino("data/deep/er/file"), pyc = env.ino("lib/__pycache__/b.cpython-312.pyc");
  CHECK(env.apply(desired({"lib/a.py=1", "lib/b.py=two", "lib/old.pyc=sourceless"})) == "");
  CHECK(env.ino("lib/run.log") == log);
  CHECK(env.ino("data/deep/er/file") == data);
  CHECK(env.ino("lib/__pycache__/b.cpython-312.pyc") == pyc);
  CHECK(env.has("data/empty"));
  CHECK(os::stat_at(env.folder.fd(), "env/data/deep")->mode == 0701);
}

TEST_CASE("unmanaged: what the controller names is dropped, and an emptied cache folder goes with it") {
  Env env;
  CHECK(env.apply(desired({"lib/a.py=one", "lib/b.py=two", "pkg/c.py=x"})) == "");
  env.write("lib/__pycache__/a.cpython-312.pyc", "a");
  env.write("lib/__pycache__/b.cpython-312.pyc", "b");
  env.write("pkg/__pycache__/c.cpython-312.pyc", "c");
  env.settings.drop = {"lib/__pycache__/a.", "pkg/__pycache__/"};
  CHECK(env.apply(desired({"lib/a.py=1", "lib/b.py=two", "pkg/c.py=y"})) == "");
  CHECK_FALSE(env.has("lib/__pycache__/a.cpython-312.pyc"));
  CHECK(env.read("lib/__pycache__/b.cpython-312.pyc") == "b");
  CHECK_FALSE(env.has("pkg/__pycache__"));
}

TEST_CASE("unmanaged: bytecode of a folder that goes, goes silently; another file keeps its folder and is told") {
  Env env({"*.log"});
  CHECK(env.apply(desired({"keep/x=1", "gone/a.py=one", "logs/b.py=two"})) == "");
  env.write("gone/__pycache__/a.cpython-312.pyc", "a");
  env.write("gone/a.pyc", "beside");
  env.write("logs/deep/er/run.log", "log");
  const std::string told = env.apply(desired({"keep/x=1"}));
  CHECK(told == "'logs/deep' stays: it is not managed, and its folder is gone from the source ");
  CHECK_FALSE(env.has("gone"));
  CHECK(env.read("logs/deep/er/run.log") == "log");
  CHECK_FALSE(env.has("logs/b.py"));
  // It is not drift either.
  CHECK(env.apply(desired({"keep/x=2"})) == "");
  CHECK(generations(env.files, env.path) == "1 2 3");
  CHECK(env.read("logs/deep/er/run.log") == "log");
}

TEST_CASE("unmanaged: a file whose folder becomes a file is in the way") {
  Env env({"*.log"});
  CHECK(env.apply(desired({"a/b.py=one", "x=1"})) == "");
  env.write("a/run.log", "log");
  const tree::Tree before = tree_at(env.path, env.settings);
  CHECK(env.apply(desired({"a=file", "x=1"})).find("which envsync does not manage, cannot be kept") != std::string::npos);
  CHECK(differences(before, env.path, env.settings) == "");
  CHECK(env.read("a/run.log") == "log");
  env.settings.drop = {"a/"};
  CHECK(env.apply(desired({"a=file", "x=1"})) == "");
}

TEST_CASE("unmanaged: a process that appends through an open descriptor goes on writing the live file") {
  Env env({"*.log"});
  CHECK(env.apply(desired({"lib/a.py=one"})) == "");
  env.write("lib/run.log", "before ");
  const os::Fd held = env.files.open_write(env.folder.fd(), "env/lib/run.log").value();
  CHECK(env.apply(desired({"lib/a.py=two"})) == "");
  REQUIRE(env.files.write_at(held.get(), 7, as_bytes("after"), "log"));
  CHECK(env.read("lib/run.log") == "before after");
}

TEST_CASE("unmanaged: what is made, renewed or deleted between our links and the exchange arrives so") {
  Env env({"*.log", "/data/"});
  CHECK(env.apply(desired({"lib/a.py=one", "sub/b.py=two"})) == "");
  env.write("lib/renewed.log", "old");
  env.write("lib/deleted.log", "old");
  env.write("lib/same.log", "same");
  env.write("data/x", "x");
  Run run;
  REQUIRE(run.open(env.files, env.path, env.settings));
  const Desired to = desired({"lib/a.py=1", "sub/b.py=two"});
  REQUIRE(run.begin(to.tree, env.settings));
  REQUIRE(run.put(to));
  REQUIRE(run.transaction->seal({}));
  // As a logger, an interpreter and a cleaner would.
  std::filesystem::remove(env.folder.path("env/lib/deleted.log"));
  env.write("lib/tmp.log", "new");
  std::filesystem::rename(env.folder.path("env/lib/tmp.log"), env.folder.path("env/lib/renewed.log"));
  env.write("lib/made.log", "made");
  env.write("sub/__pycache__/b.cpython-312.pyc", "pyc");
  env.write("data/new/deep/er", "deep");
  CHECK(told(run.transaction->commit({})) == "");
  REQUIRE(run.transaction->accept({}));
  CHECK(env.read("lib/renewed.log") == "new");
  CHECK_FALSE(env.has("lib/deleted.log"));
  CHECK(env.read("lib/same.log") == "same");
  CHECK(env.read("lib/made.log") == "made");
  CHECK(env.read("sub/__pycache__/b.cpython-312.pyc") == "pyc");
  CHECK(env.read("data/new/deep/er") == "deep");
  CHECK(env.read("data/x") == "x");
  CHECK(differences(to.tree, env.path, env.settings) == "");
}

TEST_CASE("unmanaged: a commit below the root leaves all beside it alone") {
  Env env({"*.log"});
  env.settings.commit_root = "";
  CHECK(env.apply(desired({"lib/a.py=one", "other/b.py=two"})) == "");
  env.write("other/run.log", "log");
  env.write("lib/run.log", "log");
  const auto before = os::stat_at(env.folder.fd(), "env/other/run.log").value();
  env.settings.commit_root = "lib";
  CHECK(env.apply(desired({"lib/a.py=1", "other/b.py=two"})) == "");
  const auto after = os::stat_at(env.folder.fd(), "env/other/run.log").value();
  CHECK(after.ctime_ns == before.ctime_ns);
  CHECK(env.read("lib/run.log") == "log");
}

TEST_CASE("unmanaged: sockets and pipes in an excluded folder are linked like files") {
  Env env({"/run/"});
  CHECK(env.apply(desired({"a=1"})) == "");
  env.folder.mkdir("env/run");
  REQUIRE(::mkfifo(env.folder.path("env/run/pipe").c_str(), 0600) == 0);
  const u64 ino = env.ino("run/pipe");
  CHECK(env.apply(desired({"a=2"})) == "");
  CHECK(env.ino("run/pipe") == ino);
}

TEST_CASE("unmanaged: the state of an environment inside this one is in the way") {
  Env env;
  CHECK(env.apply(desired({"a/x=1"})) == "");
  env.folder.mkdir("env/a/.envsync/inner");
  CHECK(env.apply(desired({"a/x=2"})).find("it is the state of an environment inside this one") != std::string::npos);
  CHECK(env.read("a/x") == "1");
}

TEST_CASE("managed: a special file below the commit root is refused by name") {
  Env env;
  CHECK(env.apply(desired({"a/x=1", "b/y=1"})) == "");
  REQUIRE(::mkfifo(env.folder.path("env/a/pipe").c_str(), 0600) == 0);
  CHECK(env.apply(desired({"a/x=2", "b/y=1"})).starts_with("unreadable: "));
  env.settings.commit_root = "b";
  CHECK(env.apply(desired({"a/x=1", "b/y=2"})) == "");
  CHECK(env.has("a/pipe"));
}

TEST_CASE("dropped prefixes: a folder's own prefix drops all of it, another one what is below") {
  const store::Dropped dropped({"D/__pycache__/m.", "E/__pycache__/"});
  CHECK(dropped.whole(rel("D/__pycache__/m.cpython-312.pyc"), false));
  CHECK_FALSE(dropped.whole(rel("D/__pycache__/mm.cpython-312.pyc"), false));
  CHECK_FALSE(dropped.whole(rel("D/__pycache__"), true));
  CHECK(dropped.some_below(rel("D/__pycache__")));
  CHECK(dropped.some_below(rel("D")));
  CHECK_FALSE(dropped.some_below(rel("DD")));
  CHECK(dropped.whole(rel("E/__pycache__"), true));
  CHECK_FALSE(dropped.whole(rel("E/__pycache__"), false));
  CHECK(dropped.some_below(rel("")));
}

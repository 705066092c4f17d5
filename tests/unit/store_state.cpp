// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include "os/process.hpp"
#include "support/faulty_files.hpp"
#include "support/store_env.hpp"

using namespace envsync;
using namespace envsync::testing;
using store::OpenMode;
using store::State;

namespace {

std::string place_error(const std::string& path) { return told(store::resolve_place(path)); }

State open(os::Files& files, const std::string& path, OpenMode mode = OpenMode::existing) {
  return State::open(files, store::resolve_place(path).value(), mode).value();
}

}  // namespace

TEST_CASE("place: paths that can be no environment are refused with the reason") {
  CHECK(place_error("").find("it is not absolute") != std::string::npos);
  CHECK(place_error("env").find("it is not absolute") != std::string::npos);
  CHECK(place_error("/").find("root of the filesystem") != std::string::npos);
  CHECK(place_error("//").find("root of the filesystem") != std::string::npos);
  CHECK(place_error("/srv/../env").find("it has '..' in it") != std::string::npos);
  CHECK(place_error("/srv/./env").find("it has '.' in it") != std::string::npos);
  CHECK(place_error(os::home_dir()).find("home folder") != std::string::npos);
  CHECK(place_error("/root").find("home folder") != std::string::npos);
  CHECK(place_error("/home/somebody").find("home folder") != std::string::npos);
  CHECK(place_error("/srv/.envsync/env/x").find("where envsync keeps its state") != std::string::npos);
  CHECK(place_error("/srv/.envsync-0/env").find("where envsync keeps its state") != std::string::npos);
}

TEST_CASE("place: links are resolved once, and the state lies beside what they lead to") {
  Folder folder;
  folder.mkdir("real/env");
  folder.symlink(folder.path("real"), "via");
  folder.symlink("real/env", "link");
  CHECK(store::resolve_place(folder.path("link"))->path == folder.path("real/env"));
  CHECK(store::resolve_place(folder.path("link/"))->name == "env");
  const auto place = store::resolve_place(folder.path("via/new"));
  CHECK(place->path == folder.path("real/new"));
  CHECK(place->parent.get() >= 0);
  CHECK(store::resolve_place(folder.path("not/there/yet"))->path == folder.path("not/there/yet"));
  CHECK(store::resolve_place(folder.path("not/there/yet"))->parent.get() < 0);
  folder.symlink("nowhere", "dangling");
  CHECK(place_error(folder.path("dangling")).find("is a link that leads nowhere") != std::string::npos);
  CHECK(place_error(folder.path("dangling/env")).find("is a link that leads nowhere") != std::string::npos);
}

TEST_CASE("place: in a folder that others may write to, the state bears our user's number; where one exists it is found again") {
  Folder folder;
  CHECK(store::resolve_place(folder.path("env"))->state_name == ".envsync");
  ::chmod(folder.path().c_str(), 01777);
  const std::string shared = fmt::format(".envsync-{}", ::geteuid());
  CHECK(store::resolve_place(folder.path("env"))->state_name == shared);
  os::PosixFiles files;
  CHECK(open(files, folder.path("env"), OpenMode::create).exists());
  CHECK(folder.has(shared + "/env/staging"));
  ::chmod(folder.path().c_str(), 0755);
  CHECK(store::resolve_place(folder.path("env"))->state_name == shared);
  CHECK(store::resolve_place(folder.path("other"))->state_name == ".envsync");
}

TEST_CASE("place: an environment inside another one is refused") {
  Folder folder;
  os::PosixFiles files;
  REQUIRE(apply(files, folder.path("outer"), desired({"a=1"})));
  CHECK(place_error(folder.path("outer/lib/inner")).find("it lies inside '" + folder.path("outer") + "'") != std::string::npos);
  CHECK(place_error(folder.path("outer2")) == "");
}

TEST_CASE("state: looking makes nothing") {
  Folder folder;
  os::PosixFiles files;
  const State state = open(files, folder.path("env"));
  CHECK_FALSE(state.exists());
  CHECK(state.heads()->empty());
  CHECK(state.usage()->journal_state == "clean");
  CHECK(state.lock_holder() == "");
  CHECK(told(state.load(1)).starts_with("no_generation"));
  CHECK_FALSE(folder.has(".envsync"));
}

TEST_CASE("state: a folder that is a link, somebody else's or open to others is refused") {
  Folder folder;
  os::PosixFiles files;
  const auto opened = [&] { return told(State::open(files, store::resolve_place(folder.path("env")).value(), OpenMode::create)); };
  folder.mkdir("elsewhere");
  folder.symlink("elsewhere", ".envsync");
  CHECK(opened().find("it is not a folder") != std::string::npos);
  std::filesystem::remove(folder.path(".envsync"));
  folder.mkdir(".envsync");
  ::chmod(folder.path(".envsync").c_str(), 0777);
  CHECK(opened().find("others may write to it") != std::string::npos);
  if (::geteuid() != 0) return;
  ::chmod(folder.path(".envsync").c_str(), 0700);
  REQUIRE(files.chown(folder.fd(), ".envsync", 1234, 1234));
  CHECK(opened().find("it belongs to user 1234") != std::string::npos);
}

TEST_CASE("state: one lock at a time; who holds it is told, and a killed holder leaves none behind") {
  Folder folder;
  os::PosixFiles files;
  State state = open(files, folder.path("env"), OpenMode::create);
  {
    const auto held = state.lock("me@here (run 1)", 0);
    REQUIRE(held);
    CHECK(state.lock_holder() == "me@here (run 1)");
    State other = open(files, folder.path("env"));
    const auto second = other.lock("you", 0);
    CHECK(told(second) == "locked: '" + folder.path("env") + "' is held by another run: held by me@here (run 1)");
  }
  CHECK(state.lock_holder() == "");
  os::PipePair ready = os::make_pipe().value();
  const pid_t child = ::fork();
  if (child == 0) {
    State theirs = open(files, folder.path("env"));
    const auto held = theirs.lock("the child", 0);
    static_cast<void>(::write(ready.write.get(), held ? "y" : "n", 1));
    for (;;) ::pause();
  }
  char answer = 0;
  REQUIRE(::read(ready.read.get(), &answer, 1) == 1);
  CHECK(answer == 'y');
  CHECK(state.lock_holder() == "the child");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(told(state.lock("next", 5)) == "");
}

TEST_CASE("prune: keeps so many beside the current and generation 0, drops by name, and sweeps what nobody names") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  folder.write("env/a", "mine");
  Settings settings{.keep = 100};
  for (const char* text : {"a=1", "a=2", "a=3", "a=4"}) REQUIRE(apply(files, env, desired({text}), settings));
  CHECK(generations(files, env) == "0a 1 2 3 4");
  const auto pruned = [&](const store::PruneRequest& request) -> Result<store::Pruned> {
    State state = open(files, env);
    const auto holdings = state.holdings(tree_at(env)).value();
    for (const auto& holding : holdings) {
      CHECK(holding.exclusive_bytes == (holding.number == 4 ? 0 : holding.number == 0 ? 4 : 1));
      CHECK(holding.missing == 0);
    }
    TRY(store::Lock lock, state.lock("test", 0));
    return store::prune(state, std::move(lock), request);
  };
  CHECK(told(pruned({.keep = {}, .drop = {4}, .all = false})).starts_with("usage: generation 4 is the current one"));
  CHECK(told(pruned({.keep = {}, .drop = {9}, .all = false})).starts_with("no_generation"));
  const auto kept = pruned({.keep = 2, .drop = {}, .all = false});
  REQUIRE(kept);
  CHECK(kept->generations == std::vector<u32>{1});
  CHECK(kept->contents == 1);
  CHECK(kept->bytes_freed > 1);
  CHECK(generations(files, env) == "0a 2 3 4");
  CHECK(lost_contents(files, env) == "");
  CHECK(pruned({.keep = {}, .drop = {0}, .all = false})->generations == std::vector<u32>{0});
  CHECK(generations(files, env) == "2 3 4");
  const auto all = pruned({.keep = {}, .drop = {}, .all = true});
  CHECK(all->generations == std::vector<u32>{2, 3, 4});
  CHECK_FALSE(folder.has(".envsync"));
  CHECK(folder.read("env/a") == "4");
}

TEST_CASE("prune: keep_generations of a run counts beside the current and generation 0") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  folder.write("env/a", "mine");
  Settings settings{.keep = 1};
  for (const char* text : {"a=1", "a=2", "a=3"}) REQUIRE(apply(files, env, desired({text}), settings));
  CHECK(generations(files, env) == "0a 2 3");
  settings.keep = 0;
  REQUIRE(apply(files, env, desired({"a=4"}), settings));
  CHECK(generations(files, env) == "0a 4");
  CHECK(lost_contents(files, env) == "");
  std::size_t pooled = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(".envsync/env/contents"))) pooled += entry.exists();
  CHECK(pooled == 1);
}

TEST_CASE("adopt: the tree as it is becomes generation 0, and the next number where others are kept") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  folder.write("env/lib/a", "one");
  Run run;
  REQUIRE(run.open(files, env, {}));
  store::RecordHead head;
  head.run = "20240102T030405.000000Z-00000000";
  CHECK(store::adopt(*run.state, *run.lock, head, run.observed.tree).value() == 0);
  CHECK(store::adopt(*run.state, *run.lock, head, run.observed.tree).value() == 1);
  const auto record = run.state->load(1);
  REQUIRE(record);
  CHECK(record->head.adopted);
  CHECK(record->head.root == run.observed.tree.root(head.policy));
  CHECK(record->head.files == 1);
  CHECK(record->tree.full() == run.observed.tree.full());
  CHECK(told(store::adopt(*run.state, *run.lock, head, {})).starts_with("protocol"));
}

TEST_CASE("state: a damaged record is an error that names its generation, never half believed") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  REQUIRE(apply(files, env, desired({"a=1"})));
  std::string text = folder.read(".envsync/env/records/1");
  text[text.size() / 2] ^= 1;
  folder.write(".envsync/env/records/1", text);
  CHECK(told(open(files, env).heads()) == "corrupt: the record of generation 1 does not decode: its content does not match its checksum");
  CHECK(told(apply(files, env, desired({"a=2"}))).starts_with("corrupt"));
  CHECK(folder.read("env/a") == "1");
}

TEST_CASE("state: an older record that is damaged stops no run, keeps what it may name, and can be dropped") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  const Settings settings{.keep = 9};
  for (const char* text : {"a=1", "a=22", "a=333"}) REQUIRE(apply(files, env, desired({text}), settings));
  folder.write(".envsync/env/records/2", "EVRC and nothing else");
  folder.write(".envsync/env/records/2.old", "moved aside by somebody");
  const auto heads = open(files, env).heads().value();
  REQUIRE(heads.size() == 3);
  CHECK(heads[1].damaged);
  CHECK_FALSE(heads[2].damaged);
  REQUIRE(apply(files, env, desired({"a=4444"}), settings));
  CHECK(open(files, env).usage()->pool_bytes == 6);  // 1, 22 and 333
  const auto pruned = [&](const store::PruneRequest& request) {
    State state = open(files, env);
    auto lock = state.lock("test", 0);
    REQUIRE(lock);
    return store::prune(state, std::move(*lock), request);
  };
  REQUIRE(pruned({.keep = {}, .drop = {1}, .all = false}));
  CHECK(open(files, env).usage()->pool_bytes == 6);  // 2 may name it
  const auto last = pruned({.keep = {}, .drop = {2}, .all = false});
  REQUIRE(last);
  CHECK(last->contents == 2);
  CHECK(open(files, env).usage()->pool_bytes == 3);
  CHECK(folder.read(".envsync/env/records/2.old") == "moved aside by somebody");
}

TEST_CASE("state: what a record lacks is counted against the pool and the live tree") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  for (const char* text : {"a=1", "a=2"}) REQUIRE(apply(files, env, desired({text, "b=same", "c=same"})));
  const auto missing = [&](const tree::Tree& live) {
    std::vector<u64> counts;
    const auto holdings = open(files, env).holdings(live).value();
    for (const auto& holding : holdings) counts.push_back(holding.missing);
    return counts;
  };
  CHECK(missing(tree_at(env)) == std::vector<u64>{0, 0});
  CHECK(missing({}) == std::vector<u64>{1, 2});
}

TEST_CASE("state: a look tells the moment between an exchange and its record from all others") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  const auto moment = [&] { return open(files, env).moment().value(); };
  REQUIRE(apply(files, env, desired({"a=1"})));
  const auto first = moment();
  CHECK(first.current == 1);
  const Desired to = desired({"a=2"});
  Run run;
  REQUIRE(run.open(files, env, {}));
  REQUIRE(run.begin(to.tree, {}));
  CHECK(moment() == first);
  REQUIRE(run.put(to));
  REQUIRE(run.transaction->seal({}));
  CHECK(moment().committing);
  REQUIRE(run.transaction->commit({}));
  CHECK(moment().committing);
  REQUIRE(run.transaction->accept({}));
  CHECK_FALSE(moment().committing);
  CHECK(moment().current == 2);
  CHECK(moment().environment != first.environment);
}

TEST_CASE("state: an interrupted commit that nobody holds is no moment to wait for") {
  Folder folder;
  os::PosixFiles files;
  const std::string env = folder.path("env");
  REQUIRE(apply(files, env, desired({"a=1"})));
  FaultyFiles dying(*Fault::parse("rename_exchange:2:after"));
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(apply(dying, env, desired({"a=2"})));
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK_FALSE(open(files, env).moment()->committing);
  CHECK(open(files, env).usage()->journal_state == "finish a commit");
}

// SPDX-License-Identifier: MIT
// A run is killed with SIGKILL at each operation that changes the disk, and so is the recovery after it: the path holds exactly
// the tree from before or the desired one, recovery says which, and the next run succeeds.
#include <doctest/doctest.h>

#include <sys/wait.h>

#include "store/journal.hpp"
#include "store/state_impl.hpp"
#include "support/store_scenario.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

/// True: the child was killed, false: it came to its end.
template <class Body>
bool killed(Body body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  if (WIFSIGNALED(status)) REQUIRE(WTERMSIG(status) == SIGKILL);
  return WIFSIGNALED(status);
}

bool run_killed_at(const Stage& stage, const Scenario& s, u64 n) {
  return killed([&] {
    FaultyFiles files(*Fault::parse(fmt::format("any:{}:before", n)));
    static_cast<void>(apply(files, stage.env, s.to, s.settings));
  });
}

Result<store::Recovered> recover(os::Files& files, const std::string& env) {
  TRY(store::Place place, store::resolve_place(env));
  TRY(store::State state, store::State::open(files, std::move(place), store::OpenMode::existing));
  if (!state.exists()) return store::Recovered{};
  TRY(store::Lock lock, state.lock("recovery", 0));
  return store::recover(state, lock);
}

/// The last record of the one transaction that lies in staging.
store::Last last_record(const Stage& stage) {
  os::PosixFiles files;
  auto state = store::State::open(files, store::resolve_place(stage.env).value(), store::OpenMode::existing).value();
  if (!state.exists()) return store::Last::none;
  store::Last last = store::Last::none;
  const auto names = store::staging_names(state.fd()).value();
  for (const std::string& name : names) {
    const os::Fd dir = os::open_dir(state.fd(), store::staging_path(name)).value();
    last = std::max(last, store::Journal::peek(dir.get()).value().last);
  }
  return last;
}

void check_after(const Stage& stage, const Scenario& s, const Result<store::Recovered>& recovered) {
  CHECK(told(recovered) == "");
  const bool is_base = stage.holds(s.base, s), is_desired = stage.holds(s.to, s);
  CHECK((is_base || is_desired));
  if (recovered && recovered->finished_commit) CHECK(is_desired);
  if (recovered && recovered->swapped_back) CHECK(is_base);
  CHECK(stage.lost_unmanaged(s) == "");
  CHECK(stage.next_run(s) == "");
}

void kill_at_each(const Scenario& s) {
  std::map<store::Last, u64> seen;
  u64 at_base = 0, at_desired = 0;
  for (u64 n = 1;; ++n) {
    Stage stage(s);
    if (!run_killed_at(stage, s, n)) break;
    CAPTURE(std::string(s.name));
    CAPTURE(n);
    ++seen[last_record(stage)];
    // Before anybody recovers, too: at every instant.
    const bool is_base = stage.holds(s.base, s), is_desired = stage.holds(s.to, s);
    CHECK((is_base || is_desired));
    ++(is_desired ? at_desired : at_base);
    os::PosixFiles files;
    check_after(stage, s, recover(files, stage.env));
  }
  CHECK(at_base > 20);
  CHECK(at_desired > 5);
  for (const auto last : {store::Last::none, store::Last::begin, store::Last::prepared, store::Last::committed, store::Last::accepting, store::Last::terminal})
    CHECK(seen[last] > 0);
}

/// The number of the first operation after which the journal says `last`, or 0.
u64 first_with(const Scenario& s, store::Last last, u64 from) {
  for (u64 n = from;; ++n) {
    Stage stage(s);
    if (!run_killed_at(stage, s, n)) return 0;
    if (last_record(stage) == last) return n;
  }
}

void kill_recovery_at_each(const Scenario& s, u64 n) {
  for (u64 m = 1;; ++m) {
    Stage stage(s);
    REQUIRE(run_killed_at(stage, s, n));
    const bool was_killed = killed([&] {
      FaultyFiles files(*Fault::parse(fmt::format("any:{}:before", m)));
      static_cast<void>(recover(files, stage.env));
    });
    CAPTURE(n);
    CAPTURE(m);
    CHECK((stage.holds(s.base, s) || stage.holds(s.to, s)));
    os::PosixFiles files;
    check_after(stage, s, recover(files, stage.env));
    if (!was_killed) break;
  }
}

void fail_recovery_at_each(const Scenario& s, u64 n) {
  for (u64 m = 1;; ++m) {
    Stage stage(s);
    REQUIRE(run_killed_at(stage, s, n));
    FaultyFiles failing(*Fault::parse(fmt::format("any:{}:EIO", m)));
    static_cast<void>(recover(failing, stage.env));
    CAPTURE(n);
    CAPTURE(m);
    CHECK((stage.holds(s.base, s) || stage.holds(s.to, s)));
    os::PosixFiles files;
    check_after(stage, s, recover(files, stage.env));
    if (!failing.has_struck()) break;
  }
}

}  // namespace

TEST_CASE("kill: at each operation of a rich run") { kill_at_each(rich_scenario()); }
TEST_CASE("kill: at each operation of a first apply") { kill_at_each(first_apply_scenario()); }
TEST_CASE("kill: at each operation of a commit of one file") { kill_at_each(file_scenario()); }
TEST_CASE("kill: at each operation of an adoption below the root") { kill_at_each(adoption_scenario()); }

TEST_CASE("kill: recovery itself is killed, and fails, at each of its operations") {
  const Scenario s = rich_scenario();
  const u64 prepared = first_with(s, store::Last::prepared, 80);
  REQUIRE(prepared > 80);
  const u64 committed = first_with(s, store::Last::committed, prepared);
  const u64 accepting = first_with(s, store::Last::accepting, committed);
  REQUIRE(accepting > committed);
  for (const u64 n : {prepared, prepared + 1, committed, accepting, accepting + 6}) {
    kill_recovery_at_each(s, n);
    fail_recovery_at_each(s, n);
  }
}

TEST_CASE("kill: in the middle of swapping back the old tree, recovery finishes that") {
  const Scenario s = rich_scenario();
  const auto revert = [&](const Stage& stage, os::Files& files) {
    Run run;
    if (!run.open(files, stage.env, s.settings) || !run.begin(s.to.tree, s.settings) || !run.put(s.to)) return;
    if (!run.transaction->seal({}) || !run.transaction->commit({})) return;
    static_cast<void>(run.transaction->revert());
  };
  u64 reverting = 0, swapped_back = 0;
  for (u64 n = 90;; ++n) {
    Stage stage(s);
    const bool was_killed = killed([&] {
      FaultyFiles files(*Fault::parse(fmt::format("any:{}:before", n)));
      revert(stage, files);
    });
    if (!was_killed) break;
    CAPTURE(n);
    reverting += last_record(stage) == store::Last::reverting;
    os::PosixFiles files;
    const auto recovered = recover(files, stage.env);
    swapped_back += recovered && recovered->swapped_back;
    check_after(stage, s, recovered);
  }
  CHECK(reverting >= 3);
  CHECK(swapped_back >= 3);
}

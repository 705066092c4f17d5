// SPDX-License-Identifier: MIT
// The verbs that look: status, history, verify; and prune.
#include <doctest/doctest.h>

#include "support/cli_bench.hpp"
#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::test;

namespace {

GenerationEvent generation(std::string host, u32 number, bool is_current) {
  return {.host = std::move(host), .path = "/srv/venv", .number = number, .current = is_current, .run = "20261130T180000.000000Z-00c0ffee", .operator_name = "me@box", .manifest = "fleet.yaml",
          .source = "ct200:/srv/venv", .committed_at = 1'796'061'600, .files = 78'572, .bytes = 10'900'000'000, .pool_bytes = is_current ? 0u : 1'200'000'000u, .restores = {}, .undoes = {}, .adopted = number == 0};
}

StatusEvent status(std::string host) {
  return {.host = host, .environment = "venv", .path = "/srv/venv", .current = generation(host, 7, true), .path_absent = false, .drift_added = 0, .drift_removed = 0, .drift_changed = 0,
          .leftover_bytes = 0, .pool_bytes = 1'200'000'000, .generations = 3, .lock_holder = "", .journal_state = "clean", .error = {}};
}

Outcome looked(std::string host, std::optional<Error> error = {}) {
  Outcome outcome;
  outcome.host = std::move(host);
  outcome.environment = "venv";
  outcome.path = "/srv/venv";
  outcome.kind = error ? OutcomeKind::failed : OutcomeKind::unchanged;
  outcome.generation = 7;
  outcome.error = std::move(error);
  return outcome;
}

DifferenceEvent difference(std::string host, char kind, std::string path) { return {.host = std::move(host), .line = {kind, std::move(path), 5}, .detail = kind == '~' ? "content differs" : ""}; }

FakeEngine::Script play(std::vector<Event> events, int exit_code) {
  return [events = std::move(events), exit_code](Observer& observer, std::stop_token) {
    for (const Event& event : events) observer.on(event);
    return Report{.run = "r", .outcomes = {}, .exit_code = exit_code};
  };
}

}  // namespace

TEST_CASE("status shows what is committed, by whom, from where, and nothing that is as it should be") {
  Bench bench;
  bench.engine.script = play({status("web-01"), looked("web-01")}, 0);
  CHECK(bench({"status"}) == 0);
  check_golden("cli_status", bench.out);
}

TEST_CASE("status shows drift, leftovers, who holds the lock and what recovery will do") {
  Bench bench;
  StatusEvent bad = status("web-01");
  bad.drift_added = 1;
  bad.drift_changed = 2;
  bad.leftover_bytes = 5'000'000;
  bad.lock_holder = "run 2026 by me@box since 18:00";
  bad.journal_state = "an interrupted swap: the next apply finishes it";
  bench.engine.script = play({difference("web-01", '~', "lib/a.py"), bad, looked("web-01")}, 0);
  CHECK(bench({"status"}) == 0);
  check_golden("cli_status_drift", bench.out);
  CHECK(bench({"status", "--files"}) == 0);
  CHECK(bench.out.ends_with("  ~ lib/a.py   (content differs)\n"));
}

TEST_CASE("status of a path that envsync does not know, or that is gone, says so") {
  Bench bench;
  StatusEvent unknown = status("web-01");
  unknown.current.reset();
  unknown.generations = 0;
  bench.engine.script = play({unknown}, 0);
  CHECK(bench({"status"}) == 0);
  CHECK(bench.out == "web-01:/srv/venv   not known to envsync\n");
  unknown.path_absent = true;
  bench.engine.script = play({unknown}, 0);
  CHECK(bench({"status"}) == 0);
  CHECK(bench.out == "web-01:/srv/venv   nothing there\n");
  StatusEvent gone = status("web-01");
  gone.path_absent = true;
  bench.engine.script = play({gone}, 0);
  CHECK(bench({"status", "--exit-code"}) == 4);
  CHECK(bench.out.starts_with("web-01:/srv/venv   generation 7, but the path is gone\n"));
}

TEST_CASE("a host that was not reached is one error, in status and outcome alike") {
  Bench bench;
  const Error lost = Error(ErrorCode::connect_failed, "cannot connect to web-01");
  StatusEvent unreached = status("web-01");
  unreached.current.reset();
  unreached.error = lost;
  bench.engine.script = play({unreached, looked("web-01", lost)}, 12);
  CHECK(bench({"status"}) == 12);
  CHECK(bench.out.empty());
  CHECK(bench.err.find("error[connect_failed]") == bench.err.rfind("error[connect_failed]"));
}

TEST_CASE("history lists each host's generations together however hosts come in") {
  Bench bench;
  bench.engine.summary.targets = {"web-01", "web-02"};
  GenerationEvent undone = generation("web-02", 2, true);
  undone.restores = 0;
  undone.undoes = "20261130T170000.000000Z-00c0ffee";
  bench.engine.script = play({generation("web-01", 6, false), generation("web-02", 0, false), generation("web-01", 7, true), undone, looked("web-02"), looked("web-01")}, 0);
  CHECK(bench({"history"}) == 0);
  check_golden("cli_history", bench.out);
}

TEST_CASE("verify lists what differs under its host and exits with the report's code") {
  Bench bench;
  bench.engine.summary.targets = {"web-01", "web-02"};
  bench.engine.script = play({difference("web-01", '~', "lib/a.py"), looked("web-02"), difference("web-01", '+', "lib/\xff"), looked("web-01")}, 4);
  CHECK(bench({"verify"}) == 4);
  check_golden("cli_verify_differs", bench.out);
  CHECK(bench.err.empty());
}

TEST_CASE("verify of one host that is as committed is one line") {
  Bench bench;
  bench.engine.script = play({looked("web-01")}, 0);
  CHECK(bench({"verify"}) == 0);
  CHECK(bench.out == "  Verified generation 7: as committed\n");
}

TEST_CASE("prune says what went and what it freed, or that there was nothing") {
  Bench bench;
  bench.engine.script = play({PrunedEvent{.host = "web-01", .generations = {3, 4}, .contents = 12, .bytes_freed = 1'200'000'000}}, 0);
  CHECK(bench({"prune"}) == 0);
  CHECK(bench.out == "    Pruned generations 3, 4: 12 contents, 1.2 GB freed\n");
  bench.engine.script = play({PrunedEvent{.host = "web-01", .generations = {}, .contents = 0, .bytes_freed = 0}}, 0);
  CHECK(bench({"prune"}) == 0);
  CHECK(bench.out == "    Pruned nothing: there is nothing to drop\n");
}

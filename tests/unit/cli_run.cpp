// SPDX-License-Identifier: MIT
// From the words to the engine and back: flags, questions, manifests, exit codes, JSON.
#include <chrono>
#include <future>

#include <doctest/doctest.h>

#include "support/cli_events.hpp"
#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::test;

namespace {
using Line = std::vector<std::string>;
}  // namespace


TEST_CASE("a plan is the result and ends with the command that does it") {
  Bench bench;
  bench.engine.script = play({plan(false)}, 0);
  CHECK(bench({"plan", "--drift", "replace"}) == 0);
  CHECK(last_line(bench.out) == "Next: envsync apply --drift replace");
  bench.engine.script = play({plan(true)}, 0);
  CHECK(bench({"plan"}) == 0);
  CHECK(last_line(bench.out) == "Nothing to do: every target is up to date.");
}

TEST_CASE("a plan that apply would refuse shows the plan, then why, and that nothing was changed") {
  Bench bench;
  PlanEvent refused = plan(false);
  refused.refused_by = {no_space("web-01")};
  Error again = no_space("web-01").note("generation 1 is still current; nothing was changed");
  bench.engine.script = play({refused, ended(OutcomeKind::refused, "web-01", again)}, 13);
  CHECK(bench({"plan"}) == 13);
  CHECK(bench.out.find("  refused     no_space\n") != std::string::npos);
  CHECK(bench.err.find("error[no_space]") == bench.err.rfind("error[no_space]"));
  CHECK(last_line(bench.err) == "Nothing was changed.");
}

TEST_CASE("--exit-code gives 4 where there is something to do, 0 where there is not") {
  Bench bench;
  bench.engine.script = play({plan(true, "a"), plan(false, "b")}, 0);
  CHECK(bench({"plan", "--exit-code"}) == 4);
  CHECK(bench({"plan"}) == 0);
  CHECK(bench({"apply", "-n"}) == 0);
  bench.engine.script = play({plan(true)}, 0);
  CHECK(bench({"plan", "--exit-code"}) == 0);
  StatusEvent status{.host = "web-01", .environment = "venv", .path = "/root/venv", .current = GenerationEvent{}, .path_absent = false, .drift_added = 0, .drift_removed = 0, .drift_changed = 1,
                     .leftover_bytes = 0, .pool_bytes = 0, .generations = 2, .lock_holder = "", .journal_state = "clean", .error = {}};
  bench.engine.script = play({status}, 0);
  CHECK(bench({"status", "--exit-code"}) == 4);
  bench.engine.script = play({plan(false)}, 13);
  CHECK(bench({"plan", "--exit-code"}) == 13);
}

TEST_CASE("dry-run calls plan and never apply") {
  Bench bench;
  CHECK(bench({"apply", "--dry-run", "--adopt"}) == 0);
  CHECK(bench.engine.calls == Line{"plan envsync.yaml"});
  CHECK(bench.engine.options.adopt);
}

TEST_CASE("every flag reaches the engine") {
  Bench bench;
  CHECK(bench({"apply", "--host", "a", "--adopt", "--allow-delete", "--drift", "replace", "--verify-staged", "--lock-wait", "5s", "--hosts-at-once", "3", "--transport", "openssh", "--ssh-config", "c",
               "--identity", "i", "--accept-new-host-keys", "-y", "--explain", "--force-origin", "source", "--force-level", "3"}) == 0);
  const RunOptions& o = bench.engine.options;
  CHECK(o.hosts == Line{"a"});
  CHECK((o.adopt && o.allow_delete && o.verify_staged && o.accept_new_host_keys && o.assume_yes && o.batch));
  CHECK((o.drift == "replace" && o.force_origin == "source" && o.transport == "openssh" && o.ssh_config == "c" && o.identity == "i"));
  CHECK(o.explain);
  CHECK((o.lock_wait_seconds == 5 && o.hosts_at_once == 3u && o.force_level == 3));
  CHECK(bench({"verify", "--full"}) == 0);
  CHECK(bench.engine.verify_options.full);
  CHECK(bench({"prune", "--keep", "0", "--drop", "0", "--drop", "7"}) == 0);
  CHECK(bench.engine.prune_options.keep == 0u);
  CHECK(bench.engine.prune_options.drop == std::vector<u32>{0, 7});
  CHECK(bench({"prune", "--all"}) == 0);
  CHECK(bench.engine.prune_options.all);
  CHECK(bench({"rollback", "--to", "3"}) == 0);
  CHECK(bench.engine.rollback_options.to_generation == 3u);
}

TEST_CASE("prompts of ssh are allowed on a terminal only, and not with --no-input") {
  Bench bench;
  CHECK(bench({"status"}) == 0);
  CHECK(bench.engine.options.batch);
  bench.on_terminal();
  CHECK(bench({"status"}) == 0);
  CHECK_FALSE(bench.engine.options.batch);
  CHECK(bench({"status", "--no-input"}) == 0);
  CHECK(bench.engine.options.batch);
}

TEST_CASE("a question is asked on a terminal, and only yes means yes") {
  for (const auto& [answer, meant] : {std::pair{"y", Answer::yes}, std::pair{" YES ", Answer::yes}, std::pair{"", Answer::no}, std::pair{"n", Answer::no}, std::pair{"yesterday", Answer::no}}) {
    Bench bench;
    bench.on_terminal();
    bench.answers = {answer};
    Answer got = Answer::cannot_ask;
    bench.engine.script = [&](Observer& observer, std::stop_token) {
      got = observer.ask({.kind = QuestionKind::adopt, .host = "web-01", .text = "Adopt what is at '/root/venv' on web-01?"});
      return Report{};
    };
    CHECK(bench({"apply"}) == 0);
    CHECK(got == meant);
    CHECK(bench.err.find("Adopt what is at '/root/venv' on web-01? [y/N] ") != std::string::npos);
  }
}

TEST_CASE("where nobody can be asked the engine is told so; -y answers everywhere") {
  Answer got = Answer::no;
  const FakeEngine::Script ask = [&](Observer& observer, std::stop_token) {
    got = observer.ask({.kind = QuestionKind::adopt, .host = "web-01", .text = "Adopt?"});
    return Report{};
  };
  Bench bench;
  bench.engine.script = ask;
  CHECK(bench({"apply"}) == 0);
  CHECK(got == Answer::cannot_ask);
  CHECK(bench.err.find("Adopt?") == std::string::npos);
  CHECK(bench({"apply", "-y"}) == 0);
  CHECK(got == Answer::yes);
  bench.on_terminal();
  CHECK(bench({"apply", "--no-input"}) == 0);
  CHECK(got == Answer::cannot_ask);
  bench.answers.clear();
  CHECK(bench({"apply"}) == 0);
  CHECK(got == Answer::no);
}

TEST_CASE("several manifests run in order and end in one code") {
  Bench bench;
  bench.files = {{"a.yaml", "a"}, {"b.yaml", "b"}};
  int runs = 0;
  bench.engine.script = [&](Observer& observer, std::stop_token) {
    Outcome outcome = ++runs == 1 ? applied() : ended(OutcomeKind::failed, "web-01", no_space("web-01"));
    outcome.environment = runs == 1 ? "a" : "b";
    observer.on(outcome);
    return Report{.run = "r", .outcomes = {outcome}, .exit_code = runs == 1 ? 0 : 13};
  };
  CHECK(bench({"apply", "a.yaml", "b.yaml"}) == 3);
  CHECK(bench.engine.calls == Line{"apply a", "apply b"});
  CHECK(bench.out.starts_with(" Committed 'a' generation 2"));
  CHECK(last_line(bench.err) == "    Failed web-01 'b'");
}

TEST_CASE("one bad manifest among several stops all of them before the first is run") {
  Bench bench;
  bench.files = {{"a.yaml", "a"}, {"b.yaml", "b"}};
  bench.engine.bad_manifests["b"] = {Error(ErrorCode::manifest_invalid, "unknown key 'x' in the manifest"), Error(ErrorCode::manifest_invalid, "unknown key 'y' in the manifest")};
  CHECK(bench({"apply", "a.yaml", "b.yaml"}) == 10);
  CHECK(bench.engine.calls.empty());
  CHECK(bench.err == "error[manifest_invalid]: unknown key 'x' in the manifest\n\nerror[manifest_invalid]: unknown key 'y' in the manifest\n\nnote: nothing was run\n");
}

TEST_CASE("without envsync.yaml the error says how to get one") {
  Bench bench;
  bench.files.clear();
  CHECK(bench({"plan"}) == 10);
  CHECK(bench.err.find("hint: run `envsync init SRC HOST...` to write one, or name a manifest") != std::string::npos);
  CHECK(bench({"plan", "absent.yaml"}) == 10);
  CHECK(bench.err.find("hint") == std::string::npos);
}

TEST_CASE("validate says what the manifest says, or exits 10") {
  Bench bench;
  CHECK(bench({"validate"}) == 0);
  CHECK(bench.out == "envsync.yaml is valid: 'venv', /root/venv from ct200:/root/venv to web-01. Next: envsync plan\n");
  CHECK(bench.engine.calls.empty());
  bench.engine.bad_manifests["envsync.yaml"] = {Error(ErrorCode::manifest_invalid, "x")};
  CHECK(bench({"validate", "-q"}) == 10);
  CHECK(bench.out.empty());
  CHECK(bench.err == "error[manifest_invalid]: x\n");
}

TEST_CASE("a generation number for several hosts is refused before any is contacted") {
  Bench bench;
  bench.engine.summary.targets = {"web-01", "web-02"};
  CHECK(bench({"rollback", "--to", "3"}) == 2);
  CHECK(bench.engine.calls.empty());
  CHECK(bench({"rollback", "--to", "3", "--host", "web-02"}) == 0);
}

TEST_CASE("colour follows the terminal, NO_COLOR and --color") {
  Bench bench;
  bench.engine.script = play({applied()}, 0);
  const auto is_colored = [&](const Line& line) { bench(line); return bench.out.find("\x1b[") != std::string::npos; };
  CHECK_FALSE(is_colored({"apply"}));
  CHECK(is_colored({"apply", "--color", "always"}));
  bench.io.out_is_terminal = true;
  CHECK(is_colored({"apply"}));
  CHECK_FALSE(is_colored({"apply", "--color=never"}));
  bench.environment["NO_COLOR"] = "1";
  CHECK_FALSE(is_colored({"apply"}));
  CHECK(is_colored({"apply", "--color=always"}));
}

TEST_CASE("an exception of the engine's is a bug, exit 70") {
  Bench bench;
  bench.engine.script = [](Observer&, std::stop_token) -> Report { throw std::bad_alloc(); };
  CHECK(bench({"apply"}) == 70);
  CHECK(bench.err.starts_with("internal error: an exception reached the command line: "));
}

TEST_CASE("with --json stdout has one object a line and the summary last, stderr stays as it is") {
  Bench bench;
  const SummaryEvent summary{.verb = "apply", .run = "20261130T180000.000000Z-00c0ffee", .exit_code = 12, .applied = 0, .unchanged = 0, .failed = 1, .refused = 0, .rolled_back = 0, .skipped = 0,
                             .differing = 0, .seconds = 2};
  bench.signal = 2;
  bench.engine.script = play({summary, PhaseEvent{.host = "web-01", .phase = Phase::scan, .finished = true, .seconds = 1, .files = 1, .bytes = 1}, ended(OutcomeKind::failed, "web-01", no_space("web-01"))}, 12);
  CHECK(bench({"apply", "--json"}) == 130);
  check_golden("cli_apply_json", bench.out);
  CHECK(bench.err.find("error[no_space]") != std::string::npos);
  CHECK(bench.err.find("   Scanned 1 file, 1 B in 1.0 s\n") != std::string::npos);
}

TEST_CASE("progress is written as JSON once a second and host, not as fast as it comes") {
  Bench bench;
  bench.engine.script = [&](Observer& observer, std::stop_token) {
    for (int i = 0; i < 25; ++i) {
      observer.on(ProgressEvent{.host = "web-01", .phase = Phase::transfer, .bytes_done = 1, .bytes_total = 2, .files_done = 0, .files_total = 0, .bytes_per_second = 0, .seconds_left = {}});
      bench.clock.pass(0.1);
    }
    return Report{};
  };
  CHECK(bench({"apply", "--json"}) == 0);
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = bench.out.find("\"event\":\"progress\"", at)) != std::string::npos; ++at) ++lines;
  CHECK(lines == 3);
}

TEST_CASE("errors of a manifest come as JSON too") {
  Bench bench;
  bench.engine.bad_manifests["envsync.yaml"] = {Error(ErrorCode::manifest_invalid, "x")};
  CHECK(bench({"plan", "--json"}) == 10);
  CHECK(bench.out.find("\"event\":\"problem\",\"host\":null,\"code\":\"manifest_invalid\"") != std::string::npos);
}

TEST_CASE("while the engine is silent a thread of its own says that a host is still at work") {
  Bench bench;
  bench.io.has_ticker = true;
  std::promise<std::string> said;
  std::atomic<bool> has_said{false};
  bench.io.err = [&](std::string_view text) { if (!has_said.exchange(true)) said.set_value(std::string(text)); };
  std::future<std::string> line = said.get_future();
  bench.engine.script = [&](Observer& observer, std::stop_token) {
    observer.on(PhaseEvent{.host = "web-01", .phase = Phase::seal, .finished = false, .seconds = 0, .files = 0, .bytes = 0});
    bench.clock.pass(31);
    REQUIRE(line.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    return Report{};
  };
  CHECK(bench({"apply"}) == 0);
  CHECK(line.get() == "   Sealing 31 s\n");
}

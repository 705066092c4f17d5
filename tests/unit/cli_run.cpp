// SPDX-License-Identifier: MIT
#include <filesystem>

#include <doctest/doctest.h>

#include "support/cli_bench.hpp"
#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::test;

namespace {

using Line = std::vector<std::string>;

Outcome applied(std::string host = "web-01") {
  return {.host = std::move(host), .environment = "venv", .path = "/root/venv", .kind = OutcomeKind::applied, .error = {}, .generation = 2, .generation_before = 1,
          .packages = {{PackageChange::rebuilt, "sglang", "0.5.15", "0.5.15", 5, 31'000}}, .files = 5, .bytes_up = 31'000, .bytes_down = 0, .bytes_read = 31'000, .bytes_written = 31'000,
          .guarantee = Guarantee::atomic, .recovery_pending = false, .seconds = {{Phase::stage, 0.9}, {Phase::commit, 0.2}}};
}

Outcome ended(OutcomeKind kind, std::string host, std::optional<Error> error = {}) {
  Outcome outcome = applied(std::move(host));
  outcome.kind = kind;
  outcome.error = std::move(error);
  outcome.generation = outcome.generation_before;
  outcome.packages.clear();
  outcome.seconds.clear();
  return outcome;
}

Error no_space(const std::string& host) {
  return Error(ErrorCode::no_space, "cannot stage generation 2 of 'venv' on " + host).cause("no space left on device").hint("run `envsync prune`");
}

/// Plays events; the report has the outcomes among them.
FakeEngine::Script play(std::vector<Event> events, int exit_code) {
  return [events = std::move(events), exit_code](Observer& observer, std::stop_token) {
    Report report{.run = "20261130T180000.000000Z-00c0ffee", .outcomes = {}, .exit_code = exit_code};
    for (const Event& event : events) {
      observer.on(event);
      if (const auto* outcome = std::get_if<Outcome>(&event)) report.outcomes.push_back(*outcome);
    }
    return report;
  };
}

PlanEvent plan(bool is_unchanged, std::string host = "web-01") {
  PlanEvent event;
  event.host = std::move(host);
  event.path = "/root/venv";
  event.generation_now = 1;
  event.generation_next = is_unchanged ? 1 : 2;
  event.unchanged = is_unchanged;
  event.route = {.source = "ct200:/root/venv", .target = event.host, .same_host = false, .relayed = true, .transport = "openssh", .transport_reason = {}};
  return event;
}

std::string last_line(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t end = text.size() - 1;
  const std::size_t begin = text.rfind('\n', end - 1);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1));
}

}  // namespace

TEST_CASE("an apply ends with the new state and the way back, on stdout") {
  Bench bench;
  bench.engine.script = play({applied()}, 0);
  CHECK(bench({"apply"}) == 0);
  CHECK(bench.out == " Committed generation 2: ~ sglang, 5 files, 31 KB sent, 1.1 s. Undo: envsync rollback\n");
  CHECK(bench.err.empty());
}

TEST_CASE("the way back names the manifest, values and hosts that were asked for") {
  Bench bench;
  bench.files["fleet 1.yaml"] = "x";
  bench.engine.script = play({applied()}, 0);
  CHECK(bench({"apply", "fleet 1.yaml", "--set", "settings.drift=replace", "--host", "web-*"}) == 0);
  CHECK(last_line(bench.out).ends_with("Undo: envsync rollback 'fleet 1.yaml' --set settings.drift=replace --host 'web-*'"));
}

TEST_CASE("after a first apply to an absent path no undo is promised") {
  Bench bench;
  Outcome first = applied();
  first.generation = 1;
  first.generation_before.reset();
  bench.engine.script = play({first}, 0);
  CHECK(bench({"apply"}) == 0);
  CHECK(bench.out.find("Undo") == std::string::npos);
  CHECK(bench.out.ends_with("Next: envsync status\n"));
}

TEST_CASE("a swap whose records are not finished is applied, with a warning") {
  Bench bench;
  Outcome pending = applied();
  pending.recovery_pending = true;
  bench.engine.script = play({pending}, 0);
  CHECK(bench({"apply"}) == 0);
  CHECK(bench.out.find("warning: the swap is done but not all of its records") != std::string::npos);
}

TEST_CASE("nothing to do is one line") {
  Bench bench;
  bench.engine.script = play({ended(OutcomeKind::unchanged, "web-01")}, 0);
  CHECK(bench({"apply"}) == 0);
  CHECK(bench.out == " Unchanged generation 1 is up to date\n");
}

TEST_CASE("many packages are summed up by sign") {
  Bench bench;
  Outcome many = applied();
  many.packages.clear();
  for (int i = 0; i < 5; ++i) many.packages.push_back({PackageChange::added, "a", "", "1", 1, 1});
  many.packages.push_back({PackageChange::changed, "b", "1", "2", 1, 1});
  bench.engine.script = play({many}, 0);
  CHECK(bench({"apply"}) == 0);
  CHECK(bench.out.starts_with(" Committed generation 2: ~ 1 + 5 distributions, 5 files, 31 KB sent"));
}

TEST_CASE("a failure says what, why, the state, where the log is, and ends with the state") {
  Bench bench;
  bench.engine.script = play({ended(OutcomeKind::refused, "web-01", no_space("web-01"))}, 13);
  CHECK(bench({"apply"}) == 13);
  CHECK(bench.out.empty());
  check_golden("cli_apply_refused", bench.err);
}

TEST_CASE("several hosts each have a line, and one line closes for all of them") {
  Bench bench;
  bench.files["fleet.yaml"] = "x";
  bench.engine.summary.targets = {"web-01", "web-02", "web-03"};
  bench.engine.script = play({applied("web-01"), ended(OutcomeKind::unchanged, "web-02"), applied("web-03")}, 0);
  CHECK(bench({"apply", "fleet.yaml"}) == 0);
  check_golden("cli_apply_fleet", bench.out);
  CHECK(bench.err.empty());
}

TEST_CASE("where some hosts fail the closing line names them and the command for them alone") {
  Bench bench;
  bench.files["fleet.yaml"] = "x";
  bench.engine.summary.targets = {"web-01", "web-02", "web-03"};
  bench.engine.script = play({applied("web-01"), ended(OutcomeKind::failed, "web-02", no_space("web-02")), ended(OutcomeKind::unchanged, "web-03")}, 3);
  CHECK(bench({"apply", "fleet.yaml", "--adopt"}) == 3);
  CHECK(last_line(bench.err) == "    Failed on 1 of 3 hosts: web-02; 1 committed; 1 unchanged. Next: envsync apply fleet.yaml --host web-02 --adopt");
}

TEST_CASE("the same failure of every host is one message") {
  Bench bench;
  bench.engine.summary.targets = {"web-01", "web-02"};
  const Error missing = Error(ErrorCode::source_missing, "the source '/root/venv' on ct200 is absent");
  bench.engine.script = play({ended(OutcomeKind::refused, "web-01", missing), ended(OutcomeKind::refused, "web-02", missing)}, 13);
  CHECK(bench({"apply"}) == 13);
  CHECK(bench.err.find("error[source_missing]") == bench.err.rfind("error[source_missing]"));
  CHECK(last_line(bench.err).starts_with("    Failed on 2 of 2 hosts: web-01, web-02."));
}

TEST_CASE("an outcome that only the report has is shown all the same") {
  Bench bench;
  bench.engine.script = [](Observer&, std::stop_token) { return Report{.run = "r", .outcomes = {ended(OutcomeKind::refused, "web-01", no_space("web-01"))}, .exit_code = 13}; };
  CHECK(bench({"apply"}) == 13);
  CHECK(bench.err.find("error[no_space]") != std::string::npos);
}

TEST_CASE("a tree swapped back says so and exits 16") {
  Bench bench;
  bench.engine.script = play({ended(OutcomeKind::rolled_back, "web-01", Error(ErrorCode::rolled_back, "the displaced tree of 'venv' changed during the swap"))}, 16);
  CHECK(bench({"apply"}) == 16);
  CHECK(last_line(bench.err) == " Rolled back web-01; generation 1 is current again");
}

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
               "--identity", "i", "--accept-new-host-keys", "-y", "--force-origin", "source", "--force-level", "3"}) == 0);
  const RunOptions& o = bench.engine.options;
  CHECK(o.hosts == Line{"a"});
  CHECK((o.adopt && o.allow_delete && o.verify_staged && o.accept_new_host_keys && o.assume_yes && o.batch));
  CHECK((o.drift == "replace" && o.force_origin == "source" && o.transport == "openssh" && o.ssh_config == "c" && o.identity == "i"));
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

TEST_CASE("quiet prints errors and the result asked for, nothing else") {
  Bench bench;
  bench.engine.script = play({PhaseEvent{.host = "web-01", .phase = Phase::scan, .finished = true, .seconds = 1, .files = 1, .bytes = 1},
                              ProblemEvent{.host = "web-01", .severity = Severity::warning, .error = Error(ErrorCode::in_use, "1 process runs")}, applied()}, 0);
  CHECK(bench({"apply", "-q"}) == 0);
  CHECK(bench.out + bench.err == "");
  bench.engine.script = play({ended(OutcomeKind::failed, "web-01", no_space("web-01"))}, 13);
  CHECK(bench({"apply", "-q"}) == 13);
  CHECK(bench.err.find("error[no_space]") != std::string::npos);
  bench.engine.script = play({plan(false)}, 0);
  CHECK(bench({"plan", "-q"}) == 0);
  CHECK(bench.out.starts_with("web-01:/root/venv   generation 1 → 2\n"));
  CHECK(bench.out.find("Next:") == std::string::npos);
}

TEST_CASE("verbose adds figures on stderr and changes no line of the result") {
  Bench bench;
  bench.engine.script = play({applied()}, 0);
  CHECK(bench({"apply", "-v"}) == 0);
  CHECK(bench.out.starts_with(" Committed generation 2"));
  check_golden("cli_apply_verbose", bench.err);
}

TEST_CASE("warnings of a host are shown once and do not fail the run") {
  Bench bench;
  const ProblemEvent warning{.host = "web-01", .severity = Severity::warning, .error = Error(ErrorCode::in_use, "1 process runs from '/root/venv'").cause("PID 7")};
  bench.engine.script = play({warning, warning, applied()}, 0);
  CHECK(bench({"apply"}) == 0);
  CHECK(bench.err == "warning[in_use]: 1 process runs from '/root/venv'\n  cause: PID 7\n");
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

TEST_CASE("an interrupted run exits 130 or 143, stops the manifests after it, and says that it stops") {
  Bench bench;
  bench.files = {{"a.yaml", "a"}, {"b.yaml", "b"}};
  bench.engine.script = [&](Observer& observer, std::stop_token) {
    bench.signal = 2;
    bench.stop.request_stop();
    Outcome outcome = ended(OutcomeKind::failed, "web-01", Error(ErrorCode::interrupted, "the run was stopped").note("generation 1 is still current"));
    observer.on(outcome);
    return Report{.run = "r", .outcomes = {outcome}, .exit_code = 130};
  };
  CHECK(bench({"apply", "a.yaml", "b.yaml"}) == 130);
  CHECK(bench.engine.calls == Line{"apply a"});
  CHECK(bench.err.starts_with("Stopping; the environment is left as it is\n"));
  CHECK(bench.err.find("   Stopped web-01 'venv'\n") != std::string::npos);
  CHECK(last_line(bench.err) == "note: 'b.yaml' was not begun");
}

TEST_CASE("a run that ends well in spite of a signal is a success") {
  Bench bench;
  bench.engine.script = [&](Observer& observer, std::stop_token) {
    bench.signal = 15;
    observer.on(applied());
    return Report{.run = "r", .outcomes = {applied()}, .exit_code = 0};
  };
  CHECK(bench({"apply"}) == 0);
  bench.engine.script = [&](Observer& observer, std::stop_token) {
    bench.signal = 15;
    const Outcome outcome = ended(OutcomeKind::failed, "web-01", Error(ErrorCode::connection_lost, "the connection to web-01 ended"));
    observer.on(outcome);
    return Report{.run = "r", .outcomes = {outcome}, .exit_code = 12};
  };
  CHECK(bench({"apply"}) == 143);
}

TEST_CASE("hosts that a stopped run did not begin are counted, not listed as failures") {
  Bench bench;
  bench.engine.summary.targets = {"web-01", "web-02", "web-03"};
  const Error stopped = Error(ErrorCode::interrupted, "the run was stopped").note("nothing was changed");
  bench.signal = 2;
  bench.engine.script = play({ended(OutcomeKind::skipped, "web-01", stopped), ended(OutcomeKind::skipped, "web-02", stopped), ended(OutcomeKind::skipped, "web-03", stopped)}, 130);
  CHECK(bench({"apply"}) == 130);
  CHECK(bench.err.find("error") == std::string::npos);
  CHECK(last_line(bench.err) == "   Stopped before 3 of 3 hosts. Next: envsync apply");
}

TEST_CASE("a rollback says which tree is back") {
  Bench bench;
  PlanEvent back = plan(false);
  back.route.source = "generation 0";
  Outcome outcome = applied();
  outcome.generation = 3;
  bench.engine.script = play({back, outcome}, 0);
  CHECK(bench({"rollback"}) == 0);
  CHECK(bench.out == "  Restored generation 0 as generation 3: ~ sglang, 5 files, 31 KB sent, 1.1 s. Next: envsync status\n");
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

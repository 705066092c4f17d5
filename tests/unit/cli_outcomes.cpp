// SPDX-License-Identifier: MIT
// What apply and rollback end with: outcomes, failures, signals.
#include <doctest/doctest.h>

#include "support/cli_events.hpp"
#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::test;

namespace {
using Line = std::vector<std::string>;
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

TEST_CASE("after an adoption the way back is what was found") {
  Bench bench;
  PlanEvent adopts = plan(false);
  adopts.generation_now.reset();
  adopts.files_removed = 1;
  Outcome first = applied();
  first.generation = 1;
  first.generation_before.reset();
  bench.engine.script = play({adopts, first}, 0);
  CHECK(bench({"apply", "--adopt"}) == 0);
  CHECK(bench.out.ends_with("Undo: envsync rollback\n"));
  adopts.files_removed = 0;  // an empty folder
  bench.engine.script = play({adopts, first}, 0);
  CHECK(bench({"apply", "--adopt"}) == 0);
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
  many.packages.push_back({PackageChange::changed, "", "", "", 1, 1});  // files of no distribution
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

TEST_CASE("what a plan warns of is shown by apply too, its notes only by plan") {
  Bench bench;
  PlanEvent warned = plan(false);
  warned.findings = {{"stale_bytecode", Severity::warning, "lib/a.pyc", "compiled from another source"}, {"small", Severity::note, "", "a note"}};
  bench.engine.script = play({warned, applied()}, 0);
  CHECK(bench({"apply"}) == 0);
  CHECK(bench.err == "warning[stale_bytecode]: compiled from another source\n  --> lib/a.pyc\n");
  CHECK(bench({"apply", "-q"}) == 0);
  CHECK(bench.err.empty());
}

TEST_CASE("a command in a hint names the manifest, the connection and the host of this run, and is pasted as it stands") {
  Bench bench;
  bench.files["my fleet.yaml"] = "envsync.yaml";
  bench.engine.summary.targets = {"web-01", "web-02"};
  Error shared(ErrorCode::source_missing, "the source does not exist");
  shared.hints = {"see `envsync explain source_missing`, then run `envsync validate` and `envsync plan`"};
  bench.engine.script = play({ended(OutcomeKind::refused, "web-01", no_space("web-01")), ended(OutcomeKind::refused, "web-02", shared)}, 13);
  CHECK(bench({"apply", "my fleet.yaml", "--ssh-config", "lab.conf"}) == 13);
  CHECK(bench.err.find("`envsync prune 'my fleet.yaml' --ssh-config lab.conf --host web-01`") != std::string::npos);
  CHECK(bench.err.find("`envsync explain source_missing`, then run `envsync validate 'my fleet.yaml'` and `envsync plan 'my fleet.yaml' --ssh-config lab.conf`") != std::string::npos);
  CHECK(bench.err.find("Next: envsync apply 'my fleet.yaml' --ssh-config lab.conf --host") != std::string::npos);
}

TEST_CASE("the engine's run, the log's and that of every event are one") {
  Bench bench;
  bench.engine.script = play({applied()}, 0);
  CHECK(bench({"apply", "--json"}) == 0);
  CHECK(bench.engine.options.run == "20261130T180001.123456Z-1a2b3c4d");
  CHECK(bench.out.find("committed_run") == std::string::npos);
}

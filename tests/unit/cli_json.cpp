// SPDX-License-Identifier: MIT
#include "cli/json_lines.hpp"

#include <doctest/doctest.h>

#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::cli;
using envsync::test::check_golden;

namespace {

const Envelope kEnvelope{.run = "20261130T180000.123456Z-1a2b3c4d", .now_ns = 1'796'061'600'123'456'789};

Error error() {
  Error e(ErrorCode::no_space, "cannot stage on web-02");
  e.where = Location{.file = "fleet.yaml", .line = 9, .column = 7, .length = 3, .line_text = "x"};
  e.causes = {"no space left on device"};
  e.notes = {"generation 7 is still current"};
  e.hints = {"run `envsync prune`"};
  e.sys_errno = 28;
  return e;
}

GenerationEvent generation() {
  return {.host = "web-01", .path = "/srv/venv", .number = 8, .current = true, .run = "20261130T180000.000000Z-00c0ffee", .operator_name = "me@box", .manifest = "fleet.yaml",
          .source = "ct200:/srv/venv", .committed_at = 1'796'061'600, .files = 78'572, .bytes = 10'900'000'000, .pool_bytes = 5, .restores = 3, .undoes = "20261130T170000.000000Z-00c0ffee", .adopted = false};
}

std::string all_lines() {
  PlanEvent plan;
  plan.host = "web-01";
  plan.environment = "venv";
  plan.path = "/srv/venv";
  plan.route = {.source = "ct200:/srv/venv", .target = "web-01", .same_host = false, .relayed = true, .transport = "openssh", .transport_reason = "said so"};
  plan.generation_now = 7;
  plan.generation_next = 8;
  plan.packages = {{PackageChange::changed, "torch", "1", "2", 3, 4}, {PackageChange::added, "new", "", "1", 1, 1}};
  plan.paths = {{'~', "lib/a.py", 4}, {'+', "lib/\xff", 1}};
  plan.findings = {{"code_x", Severity::warning, "lib/a.py", "what"}};
  plan.refused_by = {error()};
  plan.digest = "aa";
  Outcome outcome{.host = "web-01", .environment = "venv", .path = "/srv/venv", .kind = OutcomeKind::applied, .error = {}, .generation = 8, .generation_before = 7, .packages = {},
                  .files = 5, .bytes_up = 31'000, .bytes_down = 200, .bytes_read = 9, .bytes_written = 10, .guarantee = Guarantee::atomic, .recovery_pending = true,
                  .seconds = {{Phase::stage, 0.5}, {Phase::commit, 0.25}}};
  Outcome failed = outcome;
  failed.kind = OutcomeKind::failed;
  failed.error = error();
  failed.recovery_pending = false;
  const StatusEvent status{.host = "web-01", .environment = "venv", .path = "/srv/venv", .current = generation(), .path_absent = false, .drift_added = 1, .drift_removed = 2, .drift_changed = 3,
                           .leftover_bytes = 4, .pool_bytes = 5, .generations = 6, .lock_holder = "me@box", .journal_state = "clean", .error = {}};
  const std::vector<Event> events{
      plan,
      PhaseEvent{.host = "web-01", .phase = Phase::scan, .finished = true, .seconds = 0.5, .files = 1, .bytes = 2},
      ProgressEvent{.host = "web-01", .phase = Phase::transfer, .bytes_done = 1, .bytes_total = 2, .files_done = 3, .files_total = 4, .bytes_per_second = 5, .seconds_left = 6},
      ProblemEvent{.host = "", .severity = Severity::warning, .error = error()},
      outcome,
      failed,
      status,
      generation(),
      DifferenceEvent{.host = "web-01", .line = {'m', "lib/\xfe", 1}, .detail = "mode"},
      FindingEvent{.host = "web-01", .finding = {"code_x", Severity::note, "lib/\xfd", "what"}},
      PrunedEvent{.host = "web-01", .generations = {3, 4}, .contents = 12, .bytes_freed = 1'200'000'000},
      SummaryEvent{.verb = "apply", .run = "20261130T180000.000000Z-00c0ffee", .exit_code = 3, .applied = 1, .unchanged = 2, .failed = 3, .refused = 4, .rolled_back = 5, .skipped = 6, .differing = 7, .seconds = 8.5},
  };
  std::string lines = json_start(kEnvelope, "apply", {"apply", "fleet.yaml"}, "0.1.0") + "\n";
  lines += json_question(kEnvelope, {.kind = QuestionKind::adopt, .host = "web-01", .text = "Adopt it?"}, Answer::no) + "\n";
  lines += json_manifest(kEnvelope, "fleet.yaml", "venv", "/srv/venv", "ct200:/srv/venv", {"web-01"}) + "\n";
  for (const Event& event : events) lines += json_line(event, kEnvelope, Paths::listed) + "\n";
  return lines;
}

}  // namespace

TEST_CASE("every event is one line of JSON with the documented fields") { check_golden("cli_json_lines", all_lines()); }

TEST_CASE("no line has a newline, a control character or a byte that is not UTF-8 in it") {
  Error nasty(ErrorCode::connect_failed, "first\nsecond\x01 \xff");
  const std::string line = json_line(ProblemEvent{.host = "h\xff", .severity = Severity::error, .error = nasty}, kEnvelope, Paths::left_out);
  for (const char c : line) CHECK(static_cast<unsigned char>(c) >= 0x20);
  CHECK(line.find("first\\nsecond\\u0001 \\\\xff") == std::string::npos);
  CHECK(line.find("\\\\xff") != std::string::npos);
}

TEST_CASE("a path that is not UTF-8 comes whole, in base64") {
  const std::string line = json_line(DifferenceEvent{.host = "a", .line = {'+', "lib/\xff", 1}, .detail = ""}, kEnvelope, Paths::left_out);
  CHECK(line.find("\"path_b64\":\"bGliL/8=\"") != std::string::npos);
  CHECK(line.find("\"path\":") == std::string::npos);
}

TEST_CASE("a plan lists its paths only where they were asked for") {
  PlanEvent plan;
  plan.paths = {{'+', "lib/a.py", 1}};
  CHECK(json_line(plan, kEnvelope, Paths::left_out).find("lib/a.py") == std::string::npos);
  CHECK(json_line(plan, kEnvelope, Paths::listed).find("\"paths\":[{\"kind\":\"+\",\"path\":\"lib/a.py\",\"bytes\":1}]") != std::string::npos);
}

TEST_CASE("numbers that JSON cannot hold become null") {
  ProgressEvent progress;
  progress.bytes_per_second = std::numeric_limits<double>::infinity();
  CHECK(json_line(progress, kEnvelope, Paths::left_out).find("\"bytes_per_second\":null") != std::string::npos);
}

// SPDX-License-Identifier: MIT
// What an engine says in a run of the command line's tests.
#pragma once

#include "support/cli_bench.hpp"

namespace envsync::test {



inline Outcome applied(std::string host = "web-01") {
  return {.host = std::move(host), .environment = "venv", .path = "/root/venv", .kind = OutcomeKind::applied, .error = {}, .generation = 2, .generation_before = 1,
          .packages = {{PackageChange::rebuilt, "sglang", "0.5.15", "0.5.15", 5, 31'000}}, .files = 5, .bytes_up = 31'000, .bytes_down = 0, .bytes_read = 31'000, .bytes_written = 31'000,
          .guarantee = Guarantee::atomic, .recovery_pending = false, .seconds = {{Phase::stage, 0.9}, {Phase::commit, 0.2}}};
}

inline Outcome ended(OutcomeKind kind, std::string host, std::optional<Error> error = {}) {
  Outcome outcome = applied(std::move(host));
  outcome.kind = kind;
  outcome.error = std::move(error);
  outcome.generation = outcome.generation_before;
  outcome.packages.clear();
  outcome.seconds.clear();
  return outcome;
}

inline Error no_space(const std::string& host) {
  return Error(ErrorCode::no_space, "cannot stage generation 2 of 'venv' on " + host).cause("no space left on device").hint("run `envsync prune`");
}

/// Plays events; the report has the outcomes among them.
inline FakeEngine::Script play(std::vector<Event> events, int exit_code) {
  return [events = std::move(events), exit_code](Observer& observer, std::stop_token) {
    Report report{.run = "20261130T180000.000000Z-00c0ffee", .outcomes = {}, .exit_code = exit_code};
    for (const Event& event : events) {
      observer.on(event);
      if (const auto* outcome = std::get_if<Outcome>(&event)) report.outcomes.push_back(*outcome);
    }
    return report;
  };
}

inline PlanEvent plan(bool is_unchanged, std::string host = "web-01") {
  PlanEvent event;
  event.host = std::move(host);
  event.path = "/root/venv";
  event.generation_now = 1;
  event.generation_next = is_unchanged ? 1 : 2;
  event.unchanged = is_unchanged;
  event.route = {.source = "ct200:/root/venv", .target = event.host, .same_host = false, .relayed = true, .transport = "openssh", .transport_reason = {}};
  return event;
}

inline std::string last_line(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t end = text.size() - 1;
  const std::size_t begin = text.rfind('\n', end - 1);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1));
}

}  // namespace envsync::test

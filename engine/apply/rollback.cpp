// SPDX-License-Identifier: MIT
// Undo: which host returns to which of its generations, and the apply whose desired tree that record is.
#include <algorithm>
#include <future>

#include <fmt/format.h>

#include "apply/engine_impl.hpp"

namespace envsync::apply {

using namespace format;

namespace {

/// A host whose records are known.
struct Candidate {
  const manifest::Host* host = nullptr;
  std::optional<Session> session;
  std::vector<RecordInfo> records;  // ascending
  std::optional<Error> error;
};

const RecordInfo* by_number(const std::vector<RecordInfo>& records, u32 number) {
  const auto at = std::find_if(records.begin(), records.end(), [&](const RecordInfo& r) { return r.number == number; });
  return at == records.end() ? nullptr : &*at;
}

/// The record of the apply whose tree is in place: rollbacks are followed to what they restored.
const RecordInfo* effective(const std::vector<RecordInfo>& records) {
  if (records.empty()) return nullptr;
  const RecordInfo* record = &records.back();
  // `restores` always names an earlier record, so this ends.
  while (record->restores && *record->restores < record->number) {
    const RecordInfo* restored = by_number(records, *record->restores);
    if (restored == nullptr) break;
    record = restored;
  }
  return record;
}

/// What was in place before `record` was committed.
const RecordInfo* before(const std::vector<RecordInfo>& records, const RecordInfo& record) {
  const RecordInfo* found = nullptr;
  for (const RecordInfo& candidate : records)
    if (candidate.number < record.number) found = &candidate;
  return found;
}

Candidate look(Run& run, const manifest::Host& host) {
  Candidate candidate;
  candidate.host = &host;
  ScanAsk ask;
  ask.lock = LockMode::exclusive;
  auto session = open_session(run, host, host.path, ask, host.name);
  if (!session) {
    candidate.error = std::move(session).error();
    return candidate;
  }
  candidate.session.emplace(std::move(*session));
  auto records = candidate.session->endpoint->records(run.stop);
  if (records) candidate.records = std::move(records->records);
  else candidate.error = std::move(records).error();
  return candidate;
}

struct Choice { u32 generation = 0; std::string undoes; };

Error no_generation(const manifest::Host& host, std::string_view why) {
  return Error{ErrorCode::no_generation, fmt::format("{} {}", host.name, why)}.note("nothing was changed").hint("run `envsync history` to see what is kept");
}

/// nullopt: this host was not changed by the run that is undone.
Result<std::optional<Choice>> choose(const Candidate& candidate, const RollbackOptions& options, const std::string& last_run) {
  const manifest::Host& host = *candidate.host;
  if (candidate.records.empty()) return no_generation(host, fmt::format("knows no environment at '{}'", host.path));
  if (options.to_generation) {
    if (by_number(candidate.records, *options.to_generation) == nullptr) return no_generation(host, fmt::format("keeps no generation {}", *options.to_generation));
    return std::optional<Choice>{{*options.to_generation, {}}};
  }
  if (!options.to_run.empty()) {
    for (const RecordInfo& record : candidate.records)
      if (record.run == options.to_run) return std::optional<Choice>{{record.number, {}}};
    return no_generation(host, fmt::format("keeps no generation of run '{}'", printable(options.to_run)));
  }
  const RecordInfo* in_place = effective(candidate.records);
  if (in_place->run != last_run) return std::optional<Choice>{};
  const RecordInfo* earlier = before(candidate.records, *in_place);
  if (earlier == nullptr)
    return no_generation(host, fmt::format("keeps nothing earlier than generation {} to return to: older ones were pruned, or it was the first apply to an absent path",
                                           in_place->number));
  return std::optional<Choice>{{earlier->number, in_place->run}};
}

/// The latest apply that is in place anywhere and can be undone there. Run ids begin with the operator's time.
std::string last_run(const std::vector<Candidate>& candidates) {
  std::string last, last_any;
  for (const Candidate& candidate : candidates) {
    const RecordInfo* in_place = effective(candidate.records);
    if (in_place == nullptr) continue;
    last_any = std::max(last_any, in_place->run);
    if (before(candidate.records, *in_place) != nullptr) last = std::max(last, in_place->run);
  }
  return last.empty() ? last_any : last;
}

}  // namespace

std::vector<Outcome> roll_back(Run& run, const Hosts& hosts, const RollbackOptions& options) {
  if (options.to_generation && hosts.size() > 1) {
    std::vector<Outcome> outcomes;
    for (const manifest::Host* host : hosts) {
      Outcome outcome;
      outcome.host = host->name;
      outcome.environment = run.manifest->name;
      outcome.path = host->path;
      outcome.kind = OutcomeKind::refused;
      outcome.error = Error{ErrorCode::usage, "--to with a generation number takes one host; numbers are each host's own"}
                          .note("nothing was changed").hint("add --host NAME, or name a run: --to RUN");
      run.dispatcher->on(outcome);
      outcomes.push_back(std::move(outcome));
    }
    return outcomes;
  }
  std::vector<std::future<Candidate>> looking;
  for (const manifest::Host* host : hosts) looking.push_back(std::async(std::launch::async, [&run, host] { return look(run, *host); }));
  std::vector<Candidate> candidates;
  for (auto& found : looking) candidates.push_back(found.get());
  const std::string last = last_run(candidates);
  return each_host(run, hosts, [&](const manifest::Host& host) {
    Candidate& candidate = *std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.host == &host; });
    Outcome outcome;
    outcome.host = host.name;
    outcome.environment = run.manifest->name;
    outcome.path = host.path;
    auto choice = candidate.error ? Result<std::optional<Choice>>(*candidate.error) : choose(candidate, options, last);
    if (!choice) {
      outcome.kind = OutcomeKind::failed;
      outcome.error = std::move(choice).error();
      return outcome;
    }
    if (!*choice) {
      outcome.kind = OutcomeKind::unchanged;
      outcome.generation = candidate.records.back().number;
      return outcome;
    }
    Goal goal;
    goal.to_generation = (*choice)->generation;
    goal.undoes = (*choice)->undoes;
    return HostJob(run, host, std::move(goal)).work_on(std::move(*candidate.session));
  });
}

}  // namespace envsync::apply

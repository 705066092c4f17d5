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
  std::vector<RecordInfo> records;  // ascending; those that decode
  std::vector<u32> damaged;         // numbers of the others
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
  if (!records) {
    candidate.error = std::move(records).error();
    return candidate;
  }
  for (RecordInfo& record : records->records) {
    if (record.damaged) candidate.damaged.push_back(record.number);
    else candidate.records.push_back(std::move(record));
  }
  return candidate;
}

struct Choice { u32 generation = 0; std::string undoes; };

Error no_generation(const manifest::Host& host, std::string_view why) {
  return Error{ErrorCode::no_generation, fmt::format("{} {}", host.name, why)}.note("nothing was changed").hint("run `envsync history` to see what is kept");
}

/// The latest that can be restored and is not in place.
std::optional<u32> whole_generation(const std::vector<RecordInfo>& records, u32 but) {
  for (auto record = records.rbegin(); record != records.rend(); ++record)
    if (record->missing == 0 && record->number != but && record != records.rbegin()) return record->number;
  return std::nullopt;
}

Result<std::optional<Choice>> chosen(const Candidate& candidate, const RecordInfo& record, std::string undoes) {
  if (record.missing > 0)
    return content_gone(candidate.host->name, record.number, whole_generation(candidate.records, record.number)).cause(fmt::format("{} of its contents {} gone", record.missing, record.missing == 1 ? "is" : "are"));
  return std::optional<Choice>{{record.number, std::move(undoes)}};
}

/// nullopt: this host was not changed by the run that is undone.
Result<std::optional<Choice>> choose(const Candidate& candidate, const RollbackOptions& options, const std::string& last_run) {
  const manifest::Host& host = *candidate.host;
  if (candidate.records.empty()) return no_generation(host, fmt::format("knows no environment at '{}'", host.path));
  if (options.to_generation) {
    if (std::ranges::find(candidate.damaged, *options.to_generation) != candidate.damaged.end()) return damaged_record(host.name, *options.to_generation);
    const RecordInfo* record = by_number(candidate.records, *options.to_generation);
    if (record == nullptr) return no_generation(host, fmt::format("keeps no generation {}", *options.to_generation));
    return chosen(candidate, *record, {});
  }
  if (!options.to_run.empty()) {
    for (const RecordInfo& record : candidate.records)
      if (record.run == options.to_run) return chosen(candidate, record, {});
    return no_generation(host, fmt::format("keeps no generation of run '{}'", printable(options.to_run)));
  }
  const RecordInfo* in_place = effective(candidate.records);
  if (in_place->run != last_run) return std::optional<Choice>{};
  const RecordInfo* earlier = before(candidate.records, *in_place);
  if (earlier == nullptr)
    return no_generation(host, fmt::format("keeps nothing earlier than generation {} to return to: older ones were pruned, or it was the first apply to an absent path",
                                           in_place->number));
  return chosen(candidate, *earlier, in_place->run);
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

Error damaged_record(const std::string& host, u32 number) {
  return Error{ErrorCode::corrupt, fmt::format("the record of generation {} on {} does not decode", number, host)}
      .note("nothing else is lost; what only it held stays on the disk until it is dropped")
      .hint(fmt::format("run `envsync prune --drop {}` to remove it", number));
}

Error content_gone(const std::string& host, u32 number, std::optional<u32> whole) {
  Error error{ErrorCode::content_gone, fmt::format("generation {} needs content that {} no longer has", number, host)};
  if (whole) return std::move(error).hint(fmt::format("run `envsync rollback --to {}` to return to the latest that is whole", *whole));
  return std::move(error).hint("apply from a source that has that version: no generation here is whole but the current one");
}

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

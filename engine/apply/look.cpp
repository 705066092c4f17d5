// SPDX-License-Identifier: MIT
// The verbs that look at targets and those that prune them: verify, status, history, prune.
#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "apply/record.hpp"

namespace envsync::apply {

using namespace format;

namespace {

Outcome outcome_for(const Run& run, const manifest::Host& host) {
  Outcome outcome;
  outcome.host = host.name;
  outcome.environment = run.manifest->name;
  outcome.path = host.path;
  outcome.kind = OutcomeKind::unchanged;
  return outcome;
}

Outcome end(Outcome outcome, Result<void> result) {
  if (result) return outcome;
  outcome.kind = OutcomeKind::failed;
  outcome.error = std::move(result).error();
  if (outcome.error->notes.empty()) outcome.error->notes.push_back("nothing was changed");
  return outcome;
}

Error unknown_path(const manifest::Host& host, const ScanReply& scan) {
  Error error{ErrorCode::no_generation, fmt::format("envsync knows no environment at '{}' on {}", host.path, host.name)};
  if (scan.foreign_state.empty()) return std::move(error).hint("run `envsync apply` first");
  return std::move(error).cause(fmt::format("{}, and state of envsync is read by its own user only", scan.foreign_state)).hint("log in to the host as that user");
}

GenerationEvent generation_event(const manifest::Host& host, const std::string& path, const RecordInfo& record, bool is_current) {
  GenerationEvent event;
  event.host = host.name;
  event.path = path;
  event.number = record.number;
  event.current = is_current;
  event.run = record.run;
  event.operator_name = record.operator_name;
  event.manifest = record.manifest;
  event.source = record.source;
  event.committed_at = record.committed_at;
  event.files = record.files;
  event.bytes = record.bytes;
  event.pool_bytes = record.exclusive_bytes;
  event.restores = record.restores;
  event.undoes = record.undoes;
  event.adopted = record.adopted;
  event.damaged = record.damaged;
  event.missing = record.missing;
  return event;
}

DifferenceEvent difference_event(const manifest::Host& host, const tree::Change& change) {
  DifferenceEvent event;
  event.host = host.name;
  const tree::Entry& entry = change.to != nullptr ? *change.to : *change.from;
  event.line.path = entry.path.bytes();
  event.line.bytes = entry.file() != nullptr ? entry.file()->size : 0;
  switch (change.kind) {
    case tree::ChangeKind::added: event.line.kind = '+'; event.detail = "not in the generation"; break;
    case tree::ChangeKind::removed: event.line.kind = '-'; event.detail = "missing"; break;
    case tree::ChangeKind::content: event.line.kind = '~'; event.detail = "content differs"; break;
    case tree::ChangeKind::metadata: event.line.kind = 'm'; event.detail = "mode or attributes differ"; break;
    case tree::ChangeKind::type: event.line.kind = 't'; event.detail = "type differs"; break;
  }
  return event;
}

/// What differs from the current record; empty without one.
struct Drift {
  DriftTrees trees;
  std::vector<tree::Change> changes;  // borrow both
};
Result<Drift> drift_of(Run& run, Session& session) {
  Drift drift;
  const ScanReply& scan = session.scan;
  if (!scan.current || !scan.drifted) return drift;
  TRY(drift.trees, fetch_drift(run, session));
  drift.changes = tree::diff(drift.trees.recorded, drift.trees.observed, scan.current->policy);
  return drift;
}

}  // namespace

Outcome verify_host(Run& run, const manifest::Host& host, const VerifyOptions& options) {
  Outcome outcome = outcome_for(run, host);
  return end(std::move(outcome), [&]() -> Result<void> {
    ScanAsk ask;
    ask.full = options.full;
    TRY(Session session, open_session(run, host, host.path, ask, host.name));
    const ScanReply& scan = session.scan;
    outcome.path = scan.path;
    outcome.bytes_read = scan.bytes_hashed;
    if (!scan.current) return unknown_path(host, session.scan);
    outcome.generation = scan.current->number;
    TRY(const Drift drift, drift_of(run, session));
    for (const tree::Change& change : drift.changes) run.dispatcher->on(difference_event(host, change));
    for (const ProblemInfo& problem : scan.problems) {
      DifferenceEvent event;
      event.host = host.name;
      event.line = {'!', problem.path, 0};
      event.detail = problem.what;
      run.dispatcher->on(event);
    }
    outcome.files = drift.changes.size() + scan.problems_total;
    if (!options.record) return ok();
    TRY(const std::vector<Finding> findings, check_live_records(run, session));
    for (const Finding& finding : findings) {
      if (finding.severity == Severity::error) ++outcome.files;
      run.dispatcher->on(FindingEvent{host.name, finding});
    }
    return ok();
  }());
}

Outcome status_host(Run& run, const manifest::Host& host) {
  Outcome outcome = outcome_for(run, host);
  StatusEvent status;
  status.host = host.name;
  status.environment = run.manifest->name;
  status.path = host.path;
  auto result = [&]() -> Result<void> {
    ScanAsk ask;
    ask.want_facts = true;
    TRY(Session session, open_session(run, host, host.path, ask, host.name));
    const ScanReply& scan = session.scan;
    outcome.path = status.path = scan.path;
    status.path_absent = scan.absent;
    status.lock_holder = scan.lock_holder;
    status.journal_state = scan.journal_state.empty() ? "clean" : scan.journal_state;
    status.leftover_bytes = scan.leftover_bytes;
    status.pool_bytes = scan.pool_bytes;
    if (!scan.current) {
      if (!scan.foreign_state.empty()) run.dispatcher->on(ProblemEvent{host.name, Severity::warning, unknown_path(host, scan)});
      return ok();
    }
    outcome.generation = scan.current->number;
    status.current = generation_event(host, scan.path, *scan.current, true);
    TRY(const RecordsReply records, session.endpoint->records(run.stop));
    status.generations = static_cast<u32>(records.records.size());
    for (const RecordInfo& record : records.records)
      if (record.damaged) run.dispatcher->on(ProblemEvent{host.name, Severity::warning, damaged_record(host.name, record.number)});
    TRY(const Drift drift, drift_of(run, session));
    for (const tree::Change& change : drift.changes) {
      run.dispatcher->on(difference_event(host, change));
      if (change.kind == tree::ChangeKind::added) ++status.drift_added;
      else if (change.kind == tree::ChangeKind::removed) ++status.drift_removed;
      else ++status.drift_changed;
    }
    outcome.files = drift.changes.size();
    return ok();
  }();
  if (!result) status.error = result.error();
  run.dispatcher->on(status);
  return end(std::move(outcome), std::move(result));
}

Outcome history_host(Run& run, const manifest::Host& host) {
  Outcome outcome = outcome_for(run, host);
  return end(std::move(outcome), [&]() -> Result<void> {
    TRY(Session session, open_session(run, host, host.path, {}, host.name));
    outcome.path = session.scan.path;
    if (!session.scan.current) return unknown_path(host, session.scan);
    outcome.generation = session.scan.current->number;
    TRY(const RecordsReply records, session.endpoint->records(run.stop));
    for (const RecordInfo& record : records.records)
      run.dispatcher->on(generation_event(host, session.scan.path, record, record.number == *outcome.generation));
    return ok();
  }());
}

Outcome prune_host(Run& run, const manifest::Host& host, const PruneOptions& options) {
  Outcome outcome = outcome_for(run, host);
  return end(std::move(outcome), [&]() -> Result<void> {
    ScanAsk ask;
    ask.lock = LockMode::exclusive;
    ask.any_record = options.all;
    TRY(Session session, open_session(run, host, host.path, ask, host.name));
    outcome.path = session.scan.path;
    if (!session.scan.state_exists) return unknown_path(host, session.scan);
    if (options.all) {
      Question question;
      question.kind = QuestionKind::remove_state;
      question.host = host.name;
      question.text = fmt::format("Remove all generations of '{}' on {}? The environment stays; there is no way back from it then.", session.scan.path, host.name);
      if (run.dispatcher->ask(question) != Answer::yes)
        return Error{ErrorCode::adoption_refused, fmt::format("removing envsync's state of '{}' on {} was not confirmed", session.scan.path, host.name)}
            .note("nothing was changed").hint("pass -y to go on");
    }
    PruneRequest request;
    request.keep = options.keep;
    if (!request.keep && options.drop.empty() && !options.all) request.keep = run.manifest->settings.keep_generations;
    request.drop = options.drop;
    request.all = options.all;
    TRY(const PruneReply reply, session.endpoint->prune(request, run.stop));
    run.dispatcher->on(PrunedEvent{host.name, reply.generations, reply.contents, reply.bytes_freed});
    if (session.scan.current && !options.all) outcome.generation = session.scan.current->number;
    outcome.kind = reply.bytes_freed > 0 || !reply.generations.empty() ? OutcomeKind::applied : OutcomeKind::unchanged;
    return ok();
  }());
}

}  // namespace envsync::apply

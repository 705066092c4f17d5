// SPDX-License-Identifier: MIT
#include "apply/host_job.hpp"

#include <future>

#include <fmt/format.h>

#include "python/environment.hpp"

namespace envsync::apply {

using namespace format;

namespace {

/// Waits of the interpreter's answer.
constexpr std::string_view kSayVersion = "import sys; print('%d.%d' % sys.version_info[:2])";

bool is_refusal(ErrorCode code) {
  const int exit_code = info(code).exit_code;
  return exit_code == 13 || exit_code == 14 || exit_code == 11;
}

constexpr std::size_t kFewPaths = 64;

std::vector<tree::RelPath> changed_paths(const tree::Tree& from, const tree::Tree& to, const tree::ComparePolicy& policy) {
  std::vector<tree::RelPath> paths;
  for (const tree::Change& change : tree::diff(from, to, policy)) paths.push_back((change.to != nullptr ? change.to : change.from)->path);
  return paths;
}

/// Every one of the paths has in `to` the content that it has in `from`.
bool has_same(const tree::Tree& from, const tree::Tree& to, const std::vector<tree::RelPath>& paths) {
  return std::ranges::all_of(paths, [&](const tree::RelPath& path) {
    const tree::Entry *here = from.find(path), *there = to.find(path);
    return here != nullptr && there != nullptr && tree::same_content(*here, *there);
  });
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

HostJob::HostJob(Run& run, const manifest::Host& target, Goal goal)
    : run_(&run), target_(&target), goal_(std::move(goal)), meter_(*run.dispatcher, target.name) {
  outcome_.host = target.name;
  outcome_.environment = run.manifest->name;
  outcome_.path = target.path;
  consent_.adopt = run.options->adopt || is_on_target();  // who says `source: target` knows that something is there
  consent_.delete_many = run.options->allow_delete;
  const std::string drift = run.options->drift.value_or("");
  consent_.discard_drift = drift == "replace" || (drift.empty() && run.manifest->settings.drift == manifest::DriftRule::replace);
  if (goal_.consent) consent_ = *goal_.consent;
  if (run.manifest->settings.bandwidth > 0) pace_.emplace(run.manifest->settings.bandwidth);
}

bool HostJob::refuses_drift() const {
  const std::string drift = run_->options->drift.value_or("");
  return drift == "refuse" || (drift.empty() && run_->manifest->settings.drift == manifest::DriftRule::refuse);
}

Outcome HostJob::work() {
  return finish([&]() -> Result<void> {
    TRY_STATUS(open());
    return apply();
  }());
}

Outcome HostJob::work_on(Session session) {
  session_.emplace(std::move(session));
  return finish(apply());
}

Result<void> HostJob::open() {
  ScanAsk ask;
  ask.lock = goal_.ending == Ending::commit ? LockMode::exclusive : LockMode::none;
  ask.want_facts = goal_.ending == Ending::plan_only;
  if (goal_.is_retry) ask.lock_wait_seconds = kReconnectLockWait;
  open_layers();
  if (goal_.ending == Ending::commit)
    for (Source* place : places()) tickets_.emplace(place, place->feed().announce());
  TRY(Session session, open_session(*run_, *target_, target_->path, ask, target_->name));
  session_.emplace(std::move(session));
  return ok();
}

/// True where there is nothing to do; the outcome is set then.
Result<bool> HostJob::settle_unchanged() {
  // With overlays only the arithmetic tells what the tree should be.
  if (goal_.source == nullptr || !layers_.empty()) return false;
  TRY(const ScanReply* source, goal_.source->scan());
  if (relocates()) return false;
  const ScanReply& scan = session_->scan;
  const bool is_settled = scan.current && scan.current_root == scan.root && scan.root == source->root && scan.problems_total == 0;
  if (!is_settled) return false;
  const auto& rule = run_->manifest->invariants.interpreter;
  if (rule != manifest::InterpreterRule::ignore && !scan.environment.bin_python_runs) return false;
  const std::string& pin = run_->manifest->invariants.python;
  const std::string_view lib = scan.environment.lib_python;
  if (!pin.empty() && lib.starts_with("python") && !python::version_matches(pin, lib.substr(6))) return false;
  outcome_.kind = OutcomeKind::unchanged;
  return true;
}

Result<plan::Interpreter> HostJob::probe_interpreter(const tree::Tree& wanted) {
  plan::Interpreter base;
  const manifest::InterpreterRule rule = run_->manifest->invariants.interpreter;
  // Before it is brought there is none to ask.
  const bool is_to_come = rule == manifest::InterpreterRule::ship && goal_.ending == Ending::plan_only && !is_rollback();
  if (rule == manifest::InterpreterRule::ignore || is_to_come) return base;
  std::string pyvenv = session_->scan.environment.pyvenv;
  if (goal_.source != nullptr) {
    TRY(const ScanReply* source, goal_.source->scan());
    pyvenv = source->environment.pyvenv;
  }
  base.program = plan::base_interpreter(wanted, pyvenv);
  if (base.program.empty()) return base;
  TRY(const ProbeReply reply, session_->endpoint->probe({base.program, {"-I", "-B", "-c", std::string(kSayVersion)}}, run_->stop));
  base.exists = reply.exists;
  base.status = reply.status;
  base.version = trimmed(reply.output);
  return base;
}

/// What differs from the current record, a line each.
Result<std::vector<std::string>> HostJob::describe_drift() {
  const ScanReply& scan = session_->scan;
  std::vector<std::string> lines;
  if (!scan.current || !scan.drifted) return lines;
  if (scan.absent) return std::vector<std::string>{"the path is gone"};
  TRY(const DriftTrees trees, fetch_drift(*run_, *session_));
  for (const tree::Change& change : tree::diff(trees.recorded, trees.observed, scan.current->policy)) {
    const char kind = change.kind == tree::ChangeKind::added ? '+' : change.kind == tree::ChangeKind::removed ? '-' : '~';
    lines.push_back(fmt::format("{} {}", kind, printable((change.to != nullptr ? change.to : change.from)->path.bytes())));
  }
  return lines;
}

/// The distributions of both sides; where their texts cannot be read, names alone tell what changes.
void HostJob::read_packages(const tree::Tree& wanted) {
  if (wanted.root(run_->policy()) == session_->scan.root) return;
  const std::vector<tree::RelPath> changed = changed_paths(observed_, wanted, run_->policy());
  // RECORDs of 100,000 rows on each side: side by side, and only those of use where little changes.
  const bool is_little = layers_.empty() && changed.size() <= kFewPaths && run_->manifest->invariants.record != manifest::RecordRule::all;
  const auto read = [&](const tree::Tree& tree, const python::SmallFiles& texts) {
    return is_little ? python::DistributionSet::read_about(tree, texts, environment_root(), changed) : python::DistributionSet::read(tree, texts, environment_root());
  };
  const auto after = texts_of_wanted(wanted);
  const bool is_same = after && has_same(observed_, wanted, python::wanted_small_files(observed_));
  const auto reading = std::async(std::launch::async, [&, this] {
    if (is_same) before_ = read(observed_, **after);
    else if (auto before = texts_here(observed_)) before_ = read(observed_, *before);
  });
  if (after) after_ = read(wanted, **after);
  reading.wait();
}

Result<void> HostJob::make_plan(const tree::Tree& wanted) {
  const ScanReply& scan = session_->scan;
  plan::Inputs inputs;
  inputs.manifest = run_->manifest;
  inputs.purpose = is_rollback() ? plan::Purpose::rollback : plan::Purpose::apply;
  inputs.wanted = &wanted;
  inputs.wanted_full = wanted_full_;
  if (goal_.source != nullptr && goal_.source->reading() != Reading::base) inputs.source_path = goal_.source->session().scan.path;
  plan::TargetFacts& facts = inputs.target;
  facts.host = target_->name;
  facts.path = scan.path;
  facts.observed = &observed_;
  facts.observed_root = scan.root;
  facts.observed_full = scan.full;
  facts.is_empty_dir = scan.empty_dir;
  for (const ProblemInfo& problem : scan.problems) facts.problems.push_back(fmt::format("'{}': {}", printable(problem.path), problem.what));
  if (scan.current) facts.current = scan.current->number;
  facts.current_root = scan.current_root;
  facts.has_drifted = is_on_target() ? !discarded_.empty() : scan.current && scan.drifted;
  TRY(facts.drift, is_on_target() ? discarded_ : describe_drift());
  facts.disk_free = scan.disk_free;
  facts.inodes_free = scan.inodes_free;
  facts.in_use = scan.in_use;
  TRY(inputs.interpreter, probe_interpreter(wanted));
  inputs.consent = consent_;
  // Nothing that somebody made would be lost where the path is gone.
  if (scan.absent && !refuses_drift()) inputs.consent.discard_drift = true;
  auto finding = std::async(std::launch::async, [this] { return goal_.source != nullptr && !is_rollback() ? find_in_source() : Result<void>(ok()); });
  read_packages(wanted);
  TRY_STATUS(finding.get());
  if (before_ && after_) {
    inputs.before = &*before_;
    inputs.after = &*after_;
  }
  if (const u64 left = goal_.source != nullptr ? goal_.source->session().scan.attributes_left : 0; left > 0)
    layered_.findings.push_back({"attributes_left", Severity::warning, {},
                                 fmt::format("{} of the source {} attributes that do not travel: security.capability needs settings.owner: preserve, trusted.* stays with its host",
                                             left == 1 ? "an entry" : fmt::format("{} entries", left), left == 1 ? "has" : "have")});
  inputs.steps = &layered_.steps;
  inputs.findings = &layered_.findings;
  plan_ = plan::make_plan(inputs);
  // A plan that is refused, or has nothing to do, has not said all that it finds.
  if (!is_rollback() && plan_->refusals.empty() && !plan_->changes.empty()) note_accepts(*run_, plan_->accept_used);
  return ok();
}

PlanEvent HostJob::plan_event() const {
  const ScanReply& scan = session_->scan;
  const plan::HostPlan& plan = *plan_;
  PlanEvent event;
  event.host = target_->name;
  event.environment = run_->manifest->name;
  event.path = scan.path;
  event.route.target = target_->name;
  event.route.transport = session_->transport;
  event.route.transport_reason = session_->detail;
  event.route.same_host = is_all_on_host();
  if (!is_rollback()) {
    event.route.source = source_text();
    event.route.relayed = !target_->is_local && is_any_remote();
  } else {
    event.route.source = fmt::format("generation {}", *goal_.to_generation);
    event.route.same_host = true;
  }
  if (scan.current) event.generation_now = scan.current->number;
  const bool is_base_recorded = scan.absent || (scan.current && scan.current_root == scan.root);
  event.generation_next = (scan.current ? scan.current->number : 0) + (scan.current && !is_base_recorded ? 2u : 1u);
  event.path_absent = scan.absent;
  event.unchanged = plan.changes.empty();
  event.packages = plan.packages;
  event.packages_unchanged = plan.packages_unchanged;
  event.paths = plan.paths;
  event.files_added = plan.added;
  event.files_removed = plan.removed;
  event.files_changed = plan.changed;
  event.metadata_changed = plan.metadata;
  event.paths_total = plan.desired.entries().size();
  event.bytes_total = plan.desired.content_bytes();
  event.bytes_wanted = plan.bytes_wanted;
  event.bytes_to_send = bytes_to_send();
  event.bytes_to_write = plan.bytes_wanted;
  event.disk_needed = plan.disk_needed;
  event.disk_free = scan.disk_free;
  event.inodes_needed = plan.inodes_needed;
  event.inodes_free = scan.inodes_free;
  event.commit_root = plan.commit_root.bytes();
  event.in_use = scan.in_use;
  event.findings = plan.findings;
  for (const plan::Refusal& refusal : plan.refusals) event.refused_by.push_back(refusal.error);
  event.digest = plan.digest.hex();
  return event;
}

Result<void> HostJob::consent() {
  for (const plan::Refusal& refusal : plan_->refusals)
    if (!refusal.lifted_by) return refusal.error;
  for (const plan::Refusal& refusal : plan_->refusals) {
    Question question;
    question.host = target_->name;
    const std::string object = fmt::format("'{}' on {}", session_->scan.path, target_->name);
    bool may_ask = true;
    switch (*refusal.lifted_by) {
      case plan::Need::adopt:
        question.kind = QuestionKind::adopt;
        question.text = fmt::format("Adopt what is at {}? It becomes generation 0, to which `envsync rollback` returns.", object);
        break;
      case plan::Need::discard_drift:
        question.kind = QuestionKind::discard_drift;
        question.text = fmt::format("Replace the changes made to {}? They stay in a generation of their own.", object);
        may_ask = run_->options->drift.value_or("") != "refuse" && run_->manifest->settings.drift == manifest::DriftRule::ask;
        break;
      case plan::Need::delete_many:
        question.kind = QuestionKind::delete_many;
        question.text = fmt::format("Remove {} paths from {}? `envsync rollback` brings them back.", plan_->removed, object);
        break;
    }
    if (!may_ask || run_->dispatcher->ask(question) != Answer::yes) return refusal.error;
    if (*refusal.lifted_by == plan::Need::adopt) consent_.adopt = true;
  }
  return ok();
}

RecordInfo HostJob::record_head() const {
  RecordInfo head;
  head.run = run_->id;
  head.plan_digest = plan_ ? plan_->digest.hex() : std::string{};
  head.committed_at = SystemClock{}.realtime_ns() / 1'000'000'000;
  head.operator_name = run_->operator_name;
  head.manifest = run_->manifest->file;
  head.name = run_->manifest->name;
  if (is_rollback()) head.restores = goal_.to_generation;
  else if (is_on_target()) head.source = "target" + layers_text();
  else head.source = goal_.source->place().host.name + ":" + goal_.source->session().scan.path + layers_text();
  head.undoes = goal_.undoes;
  return head;
}

Result<void> HostJob::adopt_as_is() {
  TRY(const std::optional<tree::TreeDelta> ground, ground_delta(observed_));
  TRY(const AdoptReply adopted, session_->endpoint->adopt({record_head(), ground.has_value()}, ground));
  outcome_.generation = adopted.generation;
  outcome_.kind = OutcomeKind::unchanged;
  return ok();
}

Result<void> HostJob::apply() {
  const ScanReply& scan = session_->scan;
  outcome_.path = scan.path;
  if (scan.current) outcome_.generation = outcome_.generation_before = scan.current->number;
  for (const std::string& line : scan.recovered)
    run_->dispatcher->on(ProblemEvent{target_->name, Severity::note, Error{ErrorCode::failed, "an earlier run was interrupted: " + line}});
  if (goal_.is_retry && scan.current && scan.current->run == run_->id) {
    outcome_.kind = OutcomeKind::applied;  // the agent finished it alone
    return ok();
  }
  TRY(const bool is_settled, settle_unchanged());
  if (is_settled) {
    if (goal_.ending == Ending::plan_only) {
      PlanEvent event;
      event.host = target_->name;
      event.environment = run_->manifest->name;
      event.path = scan.path;
      event.generation_now = event.generation_next = scan.current->number;
      event.unchanged = true;
      run_->dispatcher->on(event);
    }
    return ok();
  }
  TRY_STATUS(find_same_hosts());
  // The trees come from several hosts: side by side. Whoever needs one asks again, and hears of errors then.
  std::vector<std::future<void>> ahead;
  for (Source* place : places()) ahead.push_back(std::async(std::launch::async, [place] { (void)place->tree(); }));
  TRY(observed_, fetch_tree(*run_, *session_, {}, scan.full));
  const auto wanted = wanted_tree();
  if (!wanted) return wanted.error();
  TRY_STATUS(make_plan(**wanted));
  run_->dispatcher->on(plan_event());
  if (goal_.ending == Ending::plan_only) {
    if (!plan_->refusals.empty()) return plan_->refusals.front().error;
    outcome_.kind = plan_->changes.empty() ? OutcomeKind::unchanged : OutcomeKind::skipped;
    return ok();
  }
  TRY_STATUS(consent());
  if (plan_->changes.empty()) {
    const bool is_recorded = scan.current && scan.current_root == scan.root;
    if (!is_recorded) return adopt_as_is();
    outcome_.kind = OutcomeKind::unchanged;
    return ok();
  }
  auto checking = std::async(std::launch::async, [this] { return check_records(); });
  TRY_STATUS(stage());
  TRY_STATUS(transfer(staged_.wanted));
  TRY(std::vector<Finding> mismatches, checking.get());
  TRY_STATUS(settle_records(std::move(mismatches)));
  return commit();
}

void HostJob::note_connections(const std::string& host, const Lanes& lanes) {
  if (const Connections seen{host, lanes.most(), lanes.why_no_more()}; seen.most > 1 || !seen.why_no_more.empty()) outcome_.connections.push_back(seen);
}

void HostJob::account() {
  if (!session_ || !session_->endpoint) return;
  outcome_.connections.clear();
  note_connections(target_->name, *session_->lanes);
  outcome_.bytes_up = session_->lanes->bytes_sent();
  outcome_.bytes_down = session_->lanes->bytes_received();
  for (const Source* place : places())
    if (!place->place().host.is_local && !is_on_same_host(place)) outcome_.bytes_down += place->bytes_received();
  for (Source* place : places())
    if (place->scan()) note_connections(place->place().host.name, *place->session().lanes);
}

Outcome HostJob::finish(Result<void> result) {
  tickets_.clear();
  if (!result) {
    Error error = std::move(result).error();
    if (outcome_.kind != OutcomeKind::rolled_back) outcome_.kind = is_refusal(error.code) ? OutcomeKind::refused : OutcomeKind::failed;
    // A stopped run waits for nobody: the agent sees the end of its connection and abandons by itself.
    if (has_staged_ && session_ && !run_->stop.stop_requested()) (void)session_->endpoint->abandon();
    if (error.notes.empty()) {
      if (outcome_.generation) error.notes.push_back(fmt::format("generation {} is still current; nothing was changed", *outcome_.generation));
      else error.notes.push_back("nothing was changed");
    }
    outcome_.error = std::move(error);
  }
  account();
  session_.reset();
  return std::move(outcome_);
}

}  // namespace envsync::apply

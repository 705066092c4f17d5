// SPDX-License-Identifier: MIT
#include "cli/console.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "cli/closing.hpp"
#include "cli/error_text.hpp"
#include "cli/hints.hpp"
#include "cli/json_lines.hpp"
#include "cli/plan_text.hpp"
#include "cli/result_text.hpp"

namespace envsync::cli {

namespace {

/// Differences of one host that go into the run's log; the terminal and JSON have all of them.
constexpr u64 kDifferencesLogged = 1000;

std::string place(const Outcome& outcome) { return outcome.host + ":" + printable(outcome.path); }

/// A host that a stopped run did not begin has not failed.
bool is_failure(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::skipped && outcome.error && info(outcome.error->code).exit_code >= 130) return false;
  return outcome.error.has_value() || outcome.kind == OutcomeKind::failed || outcome.kind == OutcomeKind::refused;
}

}  // namespace

Console::Console(const Io& io, RunLog* log, ConsoleOptions options) : io_(&io), log_(log), options_(std::move(options)), terminal_(io, options_.terminal) {}

void Console::on(const Event& given) {
  const Event event = with_commands(given, options_.view);
  const std::lock_guard lock(mutex_);
  if (const auto* summary = std::get_if<SummaryEvent>(&event)) { summary_ = *summary; return; }
  record(event);
  std::visit([this](const auto& e) { show(e); }, event);
}

void Console::record(const Event& event) {
  const Envelope envelope{.run = options_.run, .now_ns = io_->clock->realtime_ns()};
  const auto* progress = std::get_if<ProgressEvent>(&event);
  const auto* difference = std::get_if<DifferenceEvent>(&event);
  const bool is_too_many = difference != nullptr && differences_[difference->host] >= kDifferencesLogged;
  if (log_ != nullptr && progress == nullptr && !is_too_many) log_->write(json_line(event, envelope, Paths::left_out));
  if (!options_.view.has_json) return;
  if (difference != nullptr && options_.view.verb == Verb::status && !options_.view.lists_files) return;
  if (progress != nullptr) {
    const auto now = io_->clock->steady();
    const auto [last, is_first] = progress_written_.try_emplace(progress->host, now);
    if (!is_first && now - last->second < std::chrono::seconds(1)) return;
    last->second = now;
  }
  terminal_.erase();
  io_->out(json_line(event, envelope, options_.view.lists_files ? Paths::listed : Paths::left_out) + "\n");
  terminal_.draw();
}

void Console::print(const std::string& text) {
  if (text.empty() || options_.view.has_json) return;
  terminal_.erase();
  io_->out(text);
  terminal_.draw();
}

void Console::report(const std::string& text) {
  if (text.empty()) return;
  terminal_.erase();
  io_->err(text);
  terminal_.draw();
}

void Console::say_error(const Error& error, Severity severity, const std::string& at, const std::string& host) {
  if (severity != Severity::error && options_.view.is_quiet) return;
  // The same failure of forty hosts, of their common source say, is one message; the closing line names the hosts.
  const std::string key = fmt::format("{}\n{}\n{}", static_cast<int>(error.code), error.what, join(error.causes, "\n"));
  if (!said_.insert(key).second) return;
  const bool is_plain = severity != Severity::error && !options_.view.shows_host;
  const bool names_host = is_plain || host.empty() || error.what.find(host) != std::string::npos;
  const ErrorContext context{.severity = severity, .at = names_host ? "" : at, .run_log = log_ != nullptr ? under_home(log_->path(), *io_) : ""};
  // Errors take several lines each; a blank one keeps them apart.
  const bool is_next = severity == Severity::error && has_said_error_;
  has_said_error_ = has_said_error_ || severity == Severity::error;
  report((is_next ? "\n" : "") + error_text(error, options_.err_palette, context));
}

void Console::show_error(const Error& error) {
  const std::lock_guard lock(mutex_);
  record(ProblemEvent{.host = {}, .severity = Severity::error, .error = error});
  say_error(error, Severity::error, {}, {});
}

void Console::show(const PlanEvent& plan) {
  saw_changes_ = saw_changes_ || !plan.unchanged;
  const bool is_plan = options_.view.verb == Verb::plan;
  // An empty folder is replaced too, but leaves nothing to return to.
  const bool replaces = plan.files_removed + plan.files_changed + plan.metadata_changed > 0;
  if (!plan.generation_now && !plan.path_absent && replaces) adopting_.insert(plan.host);
  if (options_.view.verb == Verb::rollback) restored_[plan.host] = plan.route.source;
  if (is_plan) terminal_.done(plan.host);
  if (is_plan || options_.view.is_verbose) print(plan_text(plan, options_.view, options_.out_palette));
  if (!is_plan) {
    // The plan itself is shown by `plan`; what it warns of must not pass unseen.
    for (const Finding& finding : plan.findings)
      if (finding.severity != Severity::note && !options_.view.is_quiet && !options_.view.is_verbose) report(finding_text(finding, options_.err_palette));
    return;
  }
  has_refusals_ = has_refusals_ || !plan.refused_by.empty();
  for (const Error& error : plan.refused_by) say_error(error, Severity::error, plan.host + ":" + printable(plan.path), plan.host);
}

void Console::show(const PhaseEvent& phase) { terminal_.on(phase); }
void Console::show(const ProgressEvent& progress) { terminal_.on(progress); }

void Console::show(const ProblemEvent& problem) { say_error(problem.error, problem.severity, problem.host, problem.host); }

void Console::show(const Outcome& given) {
  terminal_.done(given.host);
  Outcome& outcome = outcomes_[place(given)] = given;
  const bool has_adopted = outcome.kind == OutcomeKind::applied && !outcome.generation_before && adopting_.contains(outcome.host);
  if (has_adopted) outcome.generation_before = 0;
  if (is_failure(outcome)) {
    Error error = outcome.error.value_or(Error(ErrorCode::failed, fmt::format("{} on {} gave no reason", name(outcome.kind), outcome.host)));
    say_error(with_state(std::move(error), outcome), Severity::error, place(outcome), outcome.host);
    return;
  }
  print(take_list(outcome.host));
  const OutcomeContext context{.restored = restored_[outcome.host], .differences = differences_[outcome.host]};
  if (!options_.view.is_quiet) print(outcome_text(outcome, options_.view, options_.out_palette, context));
  if (options_.view.is_verbose && options_.view.verb != Verb::plan) report(figures_text(outcome));
}

void Console::show(const StatusEvent& status) {
  terminal_.done(status.host);
  const bool has_drift = status.drift_added + status.drift_removed + status.drift_changed > 0 || (status.current && status.path_absent);
  saw_changes_ = saw_changes_ || has_drift;
  if (status.error) { say_error(*status.error, Severity::error, status.host + ":" + printable(status.path), status.host); return; }
  print(status_text(status, options_.view, options_.out_palette) + take_list(status.host));
}

void Console::show(const GenerationEvent& generation) {
  if (options_.view.verb != Verb::history) return;
  std::string& list = listed_[generation.host];
  if (list.empty()) list = options_.out_palette.bold(fmt::format("{}:{}", safe(generation.host), printable(generation.path))) + "\n";
  list += generation_text(generation, options_.view, options_.out_palette);
}

void Console::show(const DifferenceEvent& difference) {
  ++differences_[difference.host];
  const View& view = options_.view;
  const bool is_listed = view.verb == Verb::verify || view.is_verbose || (view.verb == Verb::status && view.lists_files);
  if (!is_listed || view.has_json) return;
  std::string& list = listed_[difference.host];
  if (list.empty() && view.verb == Verb::verify && view.shows_host) list = options_.out_palette.bold(safe(difference.host)) + "\n";
  list += "  " + path_text(difference.line, options_.out_palette);
  if (!difference.detail.empty() && difference.line.kind != 'm' && difference.line.kind != 't') list += "   (" + safe(difference.detail) + ")";
  list += "\n";
}

std::string Console::take_list(const std::string& host) {
  const auto found = listed_.find(host);
  if (found == listed_.end()) return {};
  std::string text = std::move(found->second);
  listed_.erase(found);
  return text;
}

void Console::show(const FindingEvent& finding) {
  if (options_.view.is_quiet && finding.finding.severity != Severity::error) return;
  report(finding_text(finding.finding, options_.err_palette));
}

void Console::show(const PrunedEvent& pruned) {
  terminal_.done(pruned.host);
  print(pruned_text(pruned, options_.view, options_.out_palette));
}

std::optional<std::string> Console::ask_for_line(std::unique_lock<std::mutex>& lock, const std::string& text,
                                                 const std::function<std::optional<std::string>(std::stop_token)>& read) {
  terminal_.erase();
  io_->err(text);
  is_asking_ = true;
  // No lock while a person thinks: a signal's note must get through.
  lock.unlock();
  std::optional<std::string> line = read(options_.stop);
  lock.lock();
  is_asking_ = false;
  if (!line) io_->err("\n");
  return line;
}

std::optional<std::string> Console::secret(const SecretQuestion& question) {
  std::unique_lock lock(mutex_);
  if (!options_.can_ask) return std::nullopt;
  auto answer = ask_for_line(lock, safe(question.text) + ": ", question.is_echoed ? io_->read_line : io_->read_secret);
  terminal_.draw();
  return answer;
}

Answer Console::ask(const Question& question) {
  std::unique_lock lock(mutex_);
  // A host key is for a person to compare, whatever else a "yes to all" stands for.
  const bool is_answered = options_.assumes_yes && question.kind != QuestionKind::host_key;
  Answer answer = is_answered ? Answer::yes : Answer::cannot_ask;
  if (!is_answered && options_.can_ask) {
    const std::optional<std::string> line = ask_for_line(lock, safe(question.text) + " [y/N] ", io_->read_line);
    std::string word = line.value_or("");
    std::erase_if(word, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    std::ranges::transform(word, word.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    answer = word == "y" || word == "yes" ? Answer::yes : Answer::no;
    terminal_.draw();
  }
  const Envelope envelope{.run = options_.run, .now_ns = io_->clock->realtime_ns()};
  if (log_ != nullptr) log_->write(json_question(envelope, question, answer));
  return answer;
}

void Console::tick() {
  const std::lock_guard lock(mutex_);
  if (!is_asking_) terminal_.tick();
}

void Console::say_stopping() {
  const std::lock_guard lock(mutex_);
  report("Stopping; the environment is left as it is\n");
}

SummaryEvent Console::summarise(const Report& report, int exit_code, double seconds) const {
  SummaryEvent summary = summary_.value_or(SummaryEvent{});
  if (!summary_) {
    summary.seconds = seconds;
    for (const auto& [place, outcome] : outcomes_) {
      switch (outcome.kind) {
        case OutcomeKind::applied: ++summary.applied; break;
        case OutcomeKind::unchanged: ++summary.unchanged; break;
        case OutcomeKind::failed: ++summary.failed; break;
        case OutcomeKind::refused: ++summary.refused; break;
        case OutcomeKind::rolled_back: ++summary.rolled_back; break;
        case OutcomeKind::skipped: ++summary.skipped; break;
      }
    }
    summary.differing = static_cast<u64>(std::ranges::count_if(differences_, [](const auto& entry) { return entry.second > 0; }));
  }
  summary.verb = spec(options_.view.verb).name;
  if (summary.run.empty()) summary.run = report.run;
  summary.exit_code = exit_code;
  return summary;
}

void Console::finish(const Report& report, int exit_code, double seconds) {
  const std::lock_guard lock(mutex_);
  // An engine that fails before its first event says so in its report only.
  for (Outcome outcome : report.outcomes) {
    if (outcomes_.contains(place(outcome))) continue;
    if (outcome.error) outcome.error = with_commands(*std::move(outcome.error), options_.view, outcome.host);
    record(outcome);
    show(outcome);
  }
  const SummaryEvent summary = summarise(report, exit_code, seconds);
  record(summary);
  const RunSeen seen{.outcomes = outcomes_, .hosts_differing = summary.differing, .saw_changes = saw_changes_, .has_refusals = has_refusals_, .exit_code = exit_code,
                     .run_log = log_ != nullptr ? under_home(log_->path(), *io_) : ""};
  const Closing last = closing(seen, options_.view, options_.out_palette, options_.err_palette);
  terminal_.erase();
  if (!options_.view.is_quiet) print(last.out);
  this->report(last.err);
}

}  // namespace envsync::cli

// SPDX-License-Identifier: MIT
// The observer of one run: shows each event, writes it as JSON and to the run's log, asks what the engine asks, and
// remembers what the closing lines need.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include <envsync/engine.hpp>

#include "cli/io.hpp"
#include "cli/run_log.hpp"
#include "cli/terminal.hpp"
#include "cli/view.hpp"

namespace envsync::cli {

struct ConsoleOptions {
  View view;
  std::string run;              // names the log
  bool can_ask = false;
  bool assumes_yes = false;
  Palette out_palette, err_palette;
  TerminalOptions terminal;
  std::stop_token stop;
};

class Console final : public Observer {
 public:
  /// `io` and `log` outlive this; `log` may be null.
  Console(const Io& io, RunLog* log, ConsoleOptions options);

  void on(const Event& event) override;
  Answer ask(const Question& question) override;
  std::optional<std::string> secret(const SecretQuestion& question) override;

  /// From another thread: time passed.
  void tick();
  /// From another thread: the run was asked to stop.
  void say_stopping();
  /// The run is over: what it did not say yet, the closing lines, the summary. `exit_code` is the process's.
  void finish(const Report& report, int exit_code, double seconds);
  /// Whether a plan saw changes, or a status drift.
  bool saw_changes() const { return saw_changes_; }
  /// A failure that belongs to no host.
  void show_error(const Error& error);

 private:
  std::optional<std::string> ask_for_line(std::unique_lock<std::mutex>& lock, const std::string& text,
                                          const std::function<std::optional<std::string>(std::stop_token)>& read);
  void show(const PlanEvent&);
  void show(const PhaseEvent&);
  void show(const ProgressEvent&);
  void show(const ProblemEvent&);
  void show(const Outcome&);
  void show(const StatusEvent&);
  void show(const GenerationEvent&);
  void show(const DifferenceEvent&);
  void show(const FindingEvent&);
  void show(const PrunedEvent&);
  void show(const SummaryEvent&) {}

  void record(const Event& event);
  void say_error(const Error& error, Severity severity, const std::string& at, const std::string& host);
  void print(const std::string& text);      // to stdout, unless JSON has it
  void report(const std::string& text);     // to stderr
  std::string take_list(const std::string& host);
  SummaryEvent summarise(const Report& report, int exit_code, double seconds) const;

  const Io* io_;
  RunLog* log_;
  ConsoleOptions options_;
  std::mutex mutex_;            // guards everything below and the streams
  Terminal terminal_;
  bool is_asking_ = false;
  bool saw_changes_ = false;
  bool has_refusals_ = false;
  bool has_said_error_ = false;
  std::optional<SummaryEvent> summary_;     // the engine's, held back to the end
  std::map<std::string, Outcome> outcomes_; // by host and path
  std::map<std::string, u64> differences_;  // by host
  std::set<std::string> adopting_;               // hosts whose plan replaces what envsync did not know: it is generation 0 then
  std::map<std::string, std::string> restored_;  // by host: whose tree a rollback brings back
  // Hosts work side by side: what belongs together is printed together, when its host is done.
  std::map<std::string, std::string> listed_;    // by host: differences or generations
  std::set<std::string> said_;              // errors shown: one failure, one message
  std::map<std::string, std::chrono::steady_clock::time_point> progress_written_;  // by host, as JSON
};

}  // namespace envsync::cli

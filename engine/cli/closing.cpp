// SPDX-License-Identifier: MIT
#include "cli/closing.hpp"

#include "cli/result_text.hpp"

namespace envsync::cli {

namespace {

bool was_not_begun(const Outcome& outcome) {
  return outcome.kind == OutcomeKind::skipped && outcome.error && info(outcome.error->code).exit_code >= 130;
}

bool has_failed(const Outcome& outcome) {
  if (was_not_begun(outcome)) return false;
  return outcome.error.has_value() || outcome.kind == OutcomeKind::failed || outcome.kind == OutcomeKind::refused;
}

struct Tally {
  u64 committed = 0, unchanged = 0, skipped = 0;
  std::vector<const Outcome*> failed;
  bool can_undo = false;
};

Tally tally(const std::map<std::string, Outcome>& outcomes) {
  Tally result;
  for (const auto& [place, outcome] : outcomes) {
    if (has_failed(outcome)) { result.failed.push_back(&outcome); continue; }
    switch (outcome.kind) {
      case OutcomeKind::applied: case OutcomeKind::rolled_back:
        ++result.committed;
        result.can_undo = result.can_undo || outcome.generation_before.has_value();
        break;
      case OutcomeKind::unchanged: ++result.unchanged; break;
      case OutcomeKind::skipped: ++result.skipped; break;
      case OutcomeKind::failed: case OutcomeKind::refused: break;
    }
  }
  return result;
}

/// "web-02, web-07 and 3 more"
std::string names(const std::vector<const Outcome*>& outcomes) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> hosts;
  for (const Outcome* outcome : outcomes)
    if (hosts.size() < kNamed) hosts.push_back(safe(outcome->host));
  std::string text = join(hosts, ", ");
  return outcomes.size() > kNamed ? fmt::format("{} and {} more", text, outcomes.size() - kNamed) : text;
}

std::string failed_hosts_again(const std::vector<const Outcome*>& outcomes, const View& view) {
  std::string words;
  for (const Outcome* outcome : outcomes) words += " --host " + shell_word(outcome->host);
  // Names of forty hosts help nobody to paste; the same command again finds the others up to date.
  if (outcomes.size() > 8) words = view.host_words;
  return fmt::format("envsync {}{}{}{}{}", spec(view.verb).name, view.manifest_words, view.connection_words, words, view.consent_words);
}

std::string other_hosts(const Tally& seen) {
  std::string text;
  if (seen.committed > 0) text += fmt::format("; {} committed", seen.committed);
  if (seen.unchanged > 0) text += fmt::format("; {} unchanged", seen.unchanged);
  if (seen.skipped > 0) text += fmt::format("; {} not begun", seen.skipped);
  return text;
}

std::string failure(const Tally& seen, const RunSeen& run, const View& view, const Palette& palette) {
  const std::string hosts = count(run.outcomes.size(), "host");
  const bool is_plan = view.verb == Verb::plan;
  std::string text;
  if (!run.run_log.empty()) text += fmt::format("{}: the run log is {}\n", palette.bold("note"), safe(run.run_log));
  if (seen.failed.empty() && seen.skipped > 0 && !is_plan) {
    const std::string again = view.command(spec(view.verb).name, view.consent_words);
    return text + palette.red(verb_column("Stopped")) + fmt::format("before {} of {}. Next: {}\n", seen.skipped, hosts, again);
  }
  if (seen.failed.size() == 1 && run.outcomes.size() == 1 && !is_plan) return text + failure_text(*seen.failed[0], view, palette);
  if (!seen.failed.empty() && run.outcomes.size() > 1) {
    text += palette.red(verb_column("Failed")) + fmt::format("on {} of {}: {}", seen.failed.size(), hosts, names(seen.failed));
    text += is_plan ? "\n" : fmt::format("{}. Next: {}\n", other_hosts(seen), failed_hosts_again(seen.failed, view));
  }
  return is_plan ? text + "Nothing was changed.\n" : text;
}

std::string applied(const Tally& seen, const RunSeen& run, const View& view, const Palette& palette) {
  const std::size_t hosts = run.outcomes.size();
  if (hosts < 2) return {};
  if (seen.committed == 0) return palette.green(verb_column("Unchanged")) + fmt::format("all of {}\n", count(hosts, "host"));
  std::string text = palette.green(verb_column(view.verb == Verb::rollback ? "Restored" : "Committed")) + fmt::format("on {} of {}", seen.committed, count(hosts, "host"));
  if (seen.unchanged > 0) text += fmt::format("; {} unchanged", seen.unchanged);
  if (seen.skipped > 0) text += fmt::format("; {} skipped", seen.skipped);
  const bool is_undoable = view.verb == Verb::apply && seen.can_undo;
  return text + (is_undoable ? fmt::format(". Undo: {}\n", view.command("rollback")) : fmt::format(". Next: {}\n", view.command("status")));
}

std::string success(const Tally& seen, const RunSeen& run, const View& view, const Palette& palette) {
  switch (view.verb) {
    case Verb::plan: return run.saw_changes ? fmt::format("Next: {}\n", view.command("apply", view.consent_words)) : "Nothing to do: every target is up to date.\n";
    case Verb::apply: case Verb::rollback: return applied(seen, run, view, palette);
    case Verb::status: return run.saw_changes && !view.lists_files ? fmt::format("Next: {}\n", view.command("status", " --files")) : "";
    case Verb::verify: {
      const std::size_t hosts = run.outcomes.size();
      if (hosts < 2) return {};
      const std::string text = fmt::format("{} of {} as committed", hosts - run.hosts_differing, count(hosts, "host"));
      return palette.green(verb_column("Verified")) + text + (run.hosts_differing > 0 ? fmt::format(". Next: {}\n", view.command("plan")) : "\n");
    }
    case Verb::history: case Verb::prune: case Verb::init: case Verb::validate: case Verb::inspect: case Verb::schema: case Verb::explain: return {};
  }
  return {};
}

}  // namespace

Closing closing(const RunSeen& run, const View& view, const Palette& out, const Palette& err) {
  const Tally seen = tally(run.outcomes);
  const bool is_failure = !seen.failed.empty() || run.has_refusals || (run.exit_code != 0 && run.exit_code != 4);
  if (is_failure) return {.out = {}, .err = failure(seen, run, view, err)};
  return {.out = success(seen, run, view, out), .err = {}};
}

}  // namespace envsync::cli

// SPDX-License-Identifier: MIT
#include "cli/result_text.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "cli/plan_text.hpp"

namespace envsync::cli {

namespace {

std::string fact(std::string_view label, std::string_view text) { return fmt::format("  {:<11} {}\n", label, text); }

std::string line(const Palette& palette, bool is_good, std::string_view verb, std::string_view text) {
  const std::string column = verb_column(verb);
  return (is_good ? palette.green(column) : palette.red(column)) + std::string(text) + "\n";
}

/// "~ sglang, + foo 1.0", or sums where they are many.
std::string packages_in_short(std::vector<PackageLine> packages) {
  std::erase_if(packages, [](const PackageLine& package) { return package.name.empty(); });  // files of no distribution
  std::vector<std::string> parts;
  if (packages.empty()) return {};
  if (packages.size() <= 4) {
    for (const PackageLine& package : packages) parts.push_back(package.kind == PackageChange::rebuilt ? "~ " + safe(package.name) : package_text(package, Palette()));
    return join(parts, ", ");
  }
  u64 added = 0, removed = 0, changed = 0;
  for (const PackageLine& package : packages) ++(package.kind == PackageChange::added ? added : package.kind == PackageChange::removed ? removed : changed);
  for (const auto& [sign, number] : {std::pair{'~', changed}, std::pair{'+', added}, std::pair{'-', removed}})
    if (number > 0) parts.push_back(fmt::format("{} {}", sign, thousands(number)));
  return join(parts, " ") + " distributions";
}

std::string origin_of(const GenerationEvent& generation) {
  if (generation.adopted) return "found there";
  return generation.restores ? fmt::format("the tree of generation {}", *generation.restores) : fmt::format("from {}", safe(generation.source));
}

double seconds_of(const Outcome& outcome) {
  double sum = 0;
  for (const PhaseSeconds& phase : outcome.seconds) sum += phase.seconds;
  return sum;
}

std::string generation_of(const Outcome& outcome) { return outcome.generation ? fmt::format("generation {}", *outcome.generation) : "what is there"; }

/// Where several hosts were asked for, the line that closes the run names the way back once.
std::string way_back(const Outcome& outcome, const View& view) {
  if (view.shows_host) return {};
  if (outcome.recovery_pending) return fmt::format(" Next: {}", view.command("status"));
  if (view.verb == Verb::rollback) return fmt::format(" Next: {}", view.command("status"));
  // A first apply to an absent path is not undone by rollback.
  if (!outcome.generation_before) return fmt::format(" Next: {}", view.command("status"));
  return fmt::format(" Undo: {}", view.command("rollback"));
}

std::string changes_of(const Outcome& outcome) {
  std::vector<std::string> parts;
  if (const std::string packages = packages_in_short(outcome.packages); !packages.empty()) parts.push_back(packages);
  parts.push_back(count(outcome.files, "file"));
  parts.push_back(human_bytes(outcome.bytes_up) + " sent");
  const double seconds = seconds_of(outcome);
  if (seconds >= 1) parts.push_back(duration(seconds));
  return join(parts, ", ");
}

std::string swapped_text(const Outcome& outcome, const View& view, const Palette& palette, const OutcomeContext& context) {
  const std::string subject = view.subject(outcome.host, outcome.environment);
  std::string text;
  if (view.verb == Verb::rollback) {
    const std::string what = fmt::format("{} as {}", context.restored.empty() ? "an earlier tree" : safe(context.restored), generation_of(outcome));
    text = line(palette, true, "Restored", fmt::format("{}{}: {}.{}", subject, what, changes_of(outcome), way_back(outcome, view)));
  } else {
    text = line(palette, true, "Committed", fmt::format("{}{}: {}.{}", subject, generation_of(outcome), changes_of(outcome), way_back(outcome, view)));
  }
  if (outcome.recovery_pending)
    text += fmt::format("{}: the swap is done but not all of its records; the next apply, rollback or prune on {} finishes them\n", palette.yellow("warning"), safe(outcome.host));
  return text;
}

std::string verified_text(const Outcome& outcome, const View& view, const Palette& palette, u64 shown) {
  const u64 differences = std::max(shown, outcome.files);  // files against their RECORDs are findings, not differences
  const std::string subject = view.subject(outcome.host, outcome.environment);
  if (differences == 0) return line(palette, true, "Verified", fmt::format("{}{}: as committed", subject, generation_of(outcome)));
  return line(palette, false, "Differs", fmt::format("{}{} in {}. Next: {}", subject, generation_of(outcome), count(differences, "path"), view.command("plan")));
}

}  // namespace

std::string outcome_text(const Outcome& outcome, const View& view, const Palette& palette, const OutcomeContext& context) {
  switch (view.verb) {
    case Verb::apply:
    case Verb::rollback:
      if (outcome.kind == OutcomeKind::applied || outcome.kind == OutcomeKind::rolled_back) return swapped_text(outcome, view, palette, context);
      if (outcome.kind == OutcomeKind::unchanged) {
        const bool is_adopted = view.verb == Verb::apply && outcome.generation && !outcome.generation_before;
        if (is_adopted) return line(palette, true, "Adopted", fmt::format("{}{}: it is what the manifest describes", view.subject(outcome.host, outcome.environment), generation_of(outcome)));
        const std::string what = view.verb == Verb::apply ? "is up to date" : "stays: there is nothing to undo";
        return line(palette, true, "Unchanged", fmt::format("{}{} {}", view.subject(outcome.host, outcome.environment), generation_of(outcome), what));
      }
      if (outcome.kind == OutcomeKind::skipped) return line(palette, true, "Skipped", fmt::format("{}{}", safe(outcome.host), outcome.generation ? fmt::format(": generation {} is still current", *outcome.generation) : ""));
      return {};
    case Verb::verify: return verified_text(outcome, view, palette, context.differences);
    case Verb::plan: case Verb::status: case Verb::history: case Verb::prune:
    case Verb::init: case Verb::validate: case Verb::inspect: case Verb::schema: case Verb::explain: return {};
  }
  return {};
}

std::string failure_text(const Outcome& outcome, const View& view, const Palette& palette) {
  std::string text = safe(outcome.host);
  if (view.shows_environment && !outcome.environment.empty()) text += " '" + safe(outcome.environment) + "'";
  if (const double seconds = seconds_of(outcome); seconds >= 1) text += " after " + duration(seconds);
  switch (outcome.kind) {
    case OutcomeKind::refused: return line(palette, false, "Refused", text + "; nothing was changed");
    case OutcomeKind::rolled_back:
      return line(palette, false, "Rolled back", text + (outcome.generation ? fmt::format("; generation {} is current again", *outcome.generation) : "; the old tree is back"));
    case OutcomeKind::applied: case OutcomeKind::unchanged: case OutcomeKind::failed: case OutcomeKind::skipped:
      if (outcome.error && (outcome.error->code == ErrorCode::interrupted || outcome.error->code == ErrorCode::terminated)) return line(palette, false, "Stopped", text);
      return line(palette, false, "Failed", text);
  }
  return {};
}

Error with_state(Error error, const Outcome& outcome) {
  if (!error.notes.empty()) return error;
  if (outcome.kind == OutcomeKind::refused) {
    error.notes.push_back(outcome.generation ? fmt::format("generation {} is still current; nothing was changed", *outcome.generation) : "nothing was changed");
  } else if (outcome.kind == OutcomeKind::failed && outcome.generation && outcome.generation == outcome.generation_before) {
    error.notes.push_back(fmt::format("generation {} is still current", *outcome.generation));
  }
  return error;
}

std::string figures_text(const Outcome& outcome) {
  std::vector<std::string> phases;
  for (const PhaseSeconds& phase : outcome.seconds) phases.push_back(fmt::format("{} {:.2f} s", name(phase.phase), phase.seconds));
  std::string text = fact("wire", fmt::format("{} up, {} down", human_bytes(outcome.bytes_up), human_bytes(outcome.bytes_down)));
  text += fact("disk", fmt::format("{} read, {} written", human_bytes(outcome.bytes_read), human_bytes(outcome.bytes_written)));
  for (const Connections& host : outcome.connections)
    text += fact("ssh", fmt::format("{} to {}{}", count(host.most, "connection"), safe(host.host), host.why_no_more.empty() ? "" : "; no more: " + safe(host.why_no_more)));
  if (!phases.empty()) text += fact("time", join(phases, ", "));
  return text + fact("guarantee", name(outcome.guarantee));
}

std::string status_text(const StatusEvent& status, const View& view, const Palette& palette) {
  std::string out = palette.bold(fmt::format("{}:{}", safe(status.host), printable(status.path)));
  if (view.shows_environment && !status.environment.empty()) out += fmt::format(" '{}'", safe(status.environment));
  if (status.current) {
    const GenerationEvent& now = *status.current;
    out += fmt::format("   generation {}{}\n", now.number, status.path_absent ? palette.red(", but the path is gone") : "");
    out += fact("committed", fmt::format("{} by {}, {}", utc_minute(now.committed_at), safe(now.operator_name), origin_of(now)));
    out += fact("run", safe(now.run));
    const u64 drift = status.drift_added + status.drift_removed + status.drift_changed;
    out += fact("drift", drift == 0 ? "none" : palette.yellow(fmt::format("+{} -{} ~{} since", thousands(status.drift_added), thousands(status.drift_removed), thousands(status.drift_changed))));
  } else {
    out += status.path_absent ? "   nothing there\n" : "   not known to envsync\n";
  }
  if (status.generations > 0) out += fact("kept", fmt::format("{}, {} that only they hold", count(status.generations, "generation"), human_bytes(status.pool_bytes)));
  if (status.leftover_bytes > 0) out += fact("leftovers", fmt::format("{}, used by the next apply; `{}` removes them", human_bytes(status.leftover_bytes), view.command("prune")));
  if (!status.lock_holder.empty()) out += fact("locked by", safe(status.lock_holder));
  if (!status.journal_state.empty() && status.journal_state != "clean") out += fact("journal", palette.yellow(safe(status.journal_state)));
  return out;
}

std::string generation_text(const GenerationEvent& generation, const View& view, const Palette& palette) {
  if (generation.damaged)
    return fmt::format("  {:>3}  its record is damaged: it cannot be restored; `{}` removes it\n", generation.number, view.command("prune", fmt::format(" --drop {}", generation.number)));
  std::string out = fmt::format("{} {:>3}  {}  {}, {}", generation.current ? palette.green("*") : " ", generation.number, utc_minute(generation.committed_at),
                                count(generation.files, "file"), human_bytes(generation.bytes));
  if (generation.pool_bytes > 0) out += fmt::format(", {} that only it holds", human_bytes(generation.pool_bytes));
  out += "\n       ";
  if (generation.missing > 0) out += fmt::format("cannot be restored: {} {} gone; ", count(generation.missing, "content"), generation.missing == 1 ? "is" : "are");
  out += origin_of(generation);
  if (!generation.undoes.empty()) out += fmt::format(", undoes {}", safe(generation.undoes));
  if (!generation.operator_name.empty()) out += ", by " + safe(generation.operator_name);
  if (!generation.manifest.empty()) out += ", " + safe(generation.manifest);
  if (!generation.run.empty()) out += ", run " + safe(generation.run);
  return out + "\n";
}

std::string pruned_text(const PrunedEvent& pruned, const View& view, const Palette& palette) {
  const std::string subject = view.subject(pruned.host, "");
  if (pruned.generations.empty() && pruned.contents == 0 && pruned.bytes_freed == 0) return line(palette, true, "Pruned", subject + "nothing: there is nothing to drop");
  std::vector<std::string> numbers;
  for (const u32 number : pruned.generations) numbers.push_back(std::to_string(number));
  const std::string what = numbers.empty() ? "leftovers" : fmt::format("generation{} {}", numbers.size() == 1 ? "" : "s", join(numbers, ", "));
  return line(palette, true, "Pruned", fmt::format("{}{}: {}, {} freed", subject, what, count(pruned.contents, "content"), human_bytes(pruned.bytes_freed)));
}

}  // namespace envsync::cli

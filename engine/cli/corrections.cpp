// SPDX-License-Identifier: MIT
// What is said to a word that the command line does not have: the word of ours that means the same, that this version
// lacks it, or the nearest one.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/text.hpp"
#include "cli/vocabulary.hpp"

namespace envsync::cli {

namespace {

struct Correction {
  std::string_view theirs;
  std::string_view ours;
};

constexpr std::array kVerbsOfOthers{
    Correction{"sync", "apply"},   Correction{"push", "apply"},     Correction{"deploy", "apply"},   Correction{"install", "apply"},
    Correction{"up", "apply"},     Correction{"run", "apply"},      Correction{"diff", "plan"},      Correction{"preview", "plan"},
    Correction{"check", "verify"}, Correction{"audit", "verify"},   Correction{"lint", "validate"},  Correction{"undo", "rollback"},
    Correction{"revert", "rollback"}, Correction{"restore", "rollback"}, Correction{"gc", "prune"},  Correction{"clean", "prune"},
    Correction{"log", "history"},  Correction{"list", "history"},   Correction{"generations", "history"}, Correction{"info", "status"},
    Correction{"new", "init"},     Correction{"create", "init"},
};

constexpr std::array<std::string_view, 4> kVerbsNotBuilt{"show", "doctor", "completion", "watch"};

struct ForeignFlag {
  std::string_view theirs;
  std::string_view ours;    // a flag of the table, or empty
  std::string_view hint;    // where no flag says it all
};

constexpr std::array kFlagsOfOthers{
    ForeignFlag{"--bwlimit", "--bandwidth", ""},
    ForeignFlag{"--limit", "--host", ""},
    ForeignFlag{"-l", "--host", ""},
    ForeignFlag{"--hosts", "--host", ""},
    ForeignFlag{"--target", "--host", ""},
    ForeignFlag{"--check", "--dry-run", "run `envsync plan` to see what apply would do"},
    ForeignFlag{"--diff", "--files", "run `envsync plan --files` to see every path"},
    ForeignFlag{"--delete", "--allow-delete", "what the source does not have goes by itself; '--allow-delete' lifts settings.delete_limit"},
    ForeignFlag{"--delete-after", "--allow-delete", "what the source does not have goes by itself"},
    ForeignFlag{"--max-delete", "--allow-delete", "settings.delete_limit in the manifest sets the limit"},
    ForeignFlag{"--checksum", "--full", "contents are always compared by digest; `envsync verify --full` reads every byte again"},
    ForeignFlag{"-c", "--full", "contents are always compared by digest; `envsync verify --full` reads every byte again"},
    ForeignFlag{"--forks", "--hosts-at-once", ""},
    ForeignFlag{"-f", "--hosts-at-once", ""},
    ForeignFlag{"--parallel", "--hosts-at-once", ""},
    ForeignFlag{"-j", "--hosts-at-once", ""},
    ForeignFlag{"--jobs", "--hosts-at-once", ""},
    ForeignFlag{"--private-key", "--identity", ""},
    ForeignFlag{"--key", "--identity", ""},
    ForeignFlag{"-i", "--identity", ""},
    ForeignFlag{"-F", "--ssh-config", ""},
    ForeignFlag{"--rsh", "--ssh-config", ""},
    ForeignFlag{"-e", "--set", ""},
    ForeignFlag{"--extra-vars", "--set", ""},
    ForeignFlag{"--no-color", "--color", "write '--color never'"},
    ForeignFlag{"--nocolor", "--color", "write '--color never'"},
    ForeignFlag{"--assume-yes", "--yes", ""},
    ForeignFlag{"--auto-approve", "--yes", ""},
    ForeignFlag{"--force", "--adopt", "each refusal names the flag that goes on"},
    ForeignFlag{"--silent", "--quiet", ""},
    ForeignFlag{"--non-interactive", "--no-input", ""},
    ForeignFlag{"--batch", "--no-input", ""},
    ForeignFlag{"--progress", "", "progress is shown by itself on stderr; '--quiet' turns it off"},
    ForeignFlag{"--exclude", "", "exclude is a key of the manifest: source: {host: …, exclude: […]}"},
    ForeignFlag{"--compress", "", "content is compressed by itself where the link makes it pay"},
    ForeignFlag{"-z", "", "content is compressed by itself where the link makes it pay"},
    ForeignFlag{"-a", "", "modes, times, links and attributes are kept by themselves"},
    ForeignFlag{"--archive", "", "modes, times, links and attributes are kept by themselves"},
};

constexpr std::array<std::string_view, 2> kFlagsNotBuilt{"--out", "--against"};

/// Insertions, deletions, replacements and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const VerbSpec& verb : all_verbs()) names.emplace_back(verb.name);
  return names;
}

/// The verbs that take a flag, as "'plan' and 'status'".
std::string takers(const FlagSpec& flag) {
  std::vector<std::string> names;
  for (const Verb verb : flag.verbs) names.push_back(fmt::format("'{}'", spec(verb).name));
  if (names.size() == 1) return names[0] + " takes it";
  const std::string last = names.back();
  names.pop_back();
  return join(names, ", ") + " and " + last + " take it";
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& words) {
  // LIMIT: nobody mistypes a word of 40 letters, and the table below is quadratic.
  if (word.size() > 40) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : words) {
    const bool is_prefix = word.size() >= 2 && candidate.starts_with(word);
    const std::size_t distance = is_prefix ? 1 : edit_distance(word, candidate);
    if (distance > std::max<std::size_t>(1, word.size() / 3)) continue;
    if (!best || distance < best_distance) { best = candidate; best_distance = distance; }
  }
  return best;
}

Error usage_error(std::string what) { return Error(ErrorCode::usage, std::move(what)); }

Error not_built(std::string what) {
  return Error(ErrorCode::not_built, std::move(what)).note("it belongs to envsync's design; this version refuses it rather than ignoring it");
}

Error unknown_verb(const std::string& word) {
  const std::string shown = safe(word);
  for (const std::string_view verb : kVerbsNotBuilt)
    if (word == verb) return not_built(fmt::format("this version has no '{}' yet", verb)).hint("run `envsync --help` to see the verbs it has");
  Error error = usage_error(fmt::format("no verb '{}'", shown));
  for (const Correction& entry : kVerbsOfOthers)
    if (word == entry.theirs) return std::move(error).hint(fmt::format("a verb named '{}' exists: {}", entry.ours, [&] {
      return spec(std::ranges::find(all_verbs(), entry.ours, &VerbSpec::name)->verb).summary;
    }()));
  if (word.ends_with(".yaml") || word.ends_with(".yml"))
    return std::move(error).hint(fmt::format("put a verb before the manifest, as in `envsync plan {}`", shell_word(word)));
  if (const auto near = nearest(word, verb_names())) return std::move(error).hint(fmt::format("a verb named '{}' exists", *near));
  return std::move(error).hint("run `envsync --help` to see the verbs");
}

Error unknown_flag(const std::string& word, const VerbSpec& verb) {
  const std::string name = word.substr(0, word.find('='));
  const std::string shown = safe(name);
  for (const std::string_view flag : kFlagsNotBuilt)
    if (name == flag) return not_built(fmt::format("this version has no '{}' yet", flag)).hint(fmt::format("run `envsync {} --help` to see the flags it has", verb.name));

  Error error = usage_error(fmt::format("'{}' takes no flag '{}'", verb.name, shown));
  std::vector<std::string> known;
  for (const FlagSpec* flag : flags_of(verb.verb))
    if (!flag->is_hidden) known.emplace_back(flag->name);

  for (const FlagSpec& flag : all_flags())
    if (name == flag.name || (!flag.letter.empty() && name == flag.letter)) return std::move(error).hint(takers(flag));
  for (const ForeignFlag& entry : kFlagsOfOthers) {
    if (name != entry.theirs) continue;
    if (!entry.hint.empty()) return std::move(error).hint(std::string(entry.hint));
    const bool is_taken = std::ranges::find(known, entry.ours) != known.end();
    return std::move(error).hint(is_taken ? fmt::format("a flag named '{}' exists", entry.ours)
                                          : fmt::format("the word here is '{}'; {}", entry.ours, takers(*std::ranges::find(all_flags(), entry.ours, &FlagSpec::name))));
  }
  if (const auto near = nearest(name, known)) return std::move(error).hint(fmt::format("a flag named '{}' exists", *near));
  return std::move(error).hint(fmt::format("run `envsync {} --help` to see its flags", verb.name));
}

}  // namespace envsync::cli

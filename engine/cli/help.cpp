// SPDX-License-Identifier: MIT
#include "cli/help.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text.hpp"

namespace envsync::cli {

namespace {

constexpr std::size_t kWidth = 96;

std::string usage_line(const VerbSpec& verb) {
  const std::string_view gap = verb.arguments.empty() ? "" : " ";
  return fmt::format("envsync {}{}{}", verb.name, gap, verb.arguments);
}

std::string verb_list() {
  std::string out;
  for (const VerbSpec& verb : all_verbs()) out += fmt::format("  {:<24} {}\n", usage_line(verb).substr(8), verb.summary);
  return out;
}

std::string flag_line(const FlagSpec& flag) {
  const std::string gap = flag.value.empty() ? "" : fmt::format(" {}", flag.value);
  const std::string names = flag.letter.empty() ? fmt::format("    {}{}", flag.name, gap) : fmt::format("{}, {}{}", flag.letter, flag.name, gap);
  return fmt::format("  {:<28} {}{}\n", names, flag.summary, flag.is_repeatable ? " (repeatable)" : "");
}

std::string exit_lines(const std::vector<int>& codes) {
  std::string out;
  for (const int code : codes) out += fmt::format("  {:<4} {}\n", code, exit_meaning(code));
  return out;
}

std::string exit_meaning_of(Verb verb, int code) {
  if (code == 0 && verb == Verb::plan) return "shown, whatever it says";
  if (code == 0 && verb == Verb::status) return "shown, whatever it says";
  if (code == 4) return verb == Verb::verify ? "a target differs from what was applied" : "with --exit-code: changes or drift exist";
  if (code == 13 && verb == Verb::plan) return "apply would refuse: an invariant, or for safety";
  if (code == 14 && verb == Verb::plan) return "apply would refuse: drift";
  return std::string(exit_meaning(code));
}

}  // namespace

std::string short_help() {
  return "envsync brings Python environments to hosts over ssh, all or nothing.\n"
         "\n"
         "  envsync init ct200:/root/venv root@gpu-b300   writes envsync.yaml\n"
         "  envsync plan                                  shows what would change\n"
         "  envsync apply                                 does it\n"
         "  envsync rollback                              undoes it\n"
         "\n"
         "Verbs:\n" +
         verb_list() +
         "\n"
         "MANIFEST is envsync.yaml where none is given. `envsync VERB --help` shows a verb's flags,\n"
         "`envsync --help` the exit codes.\n";
}

std::string long_help() {
  return "envsync brings Python environments to hosts over ssh, all or nothing.\n"
         "\n"
         "The environment's path holds, at every instant and after any crash, exactly one complete and\n"
         "verified tree: the old or the new.\n"
         "\n"
         "Examples:\n"
         "  envsync init ct200:/root/venv root@gpu-b300   write envsync.yaml\n"
         "  envsync plan                                  show what would change\n"
         "  envsync apply                                 bring every target to it\n"
         "  envsync apply fleet.yaml --host 'web-*'       another manifest, some of its targets\n"
         "  envsync verify --full                         read every byte of the targets again\n"
         "  envsync rollback                              undo the last apply\n"
         "\n"
         "Verbs:\n" +
         verb_list() +
         "\n"
         "MANIFEST is envsync.yaml where none is given; a verb shows its flags with --help.\n"
         "stdout carries the result, stderr progress, notes and errors. NO_COLOR is respected.\n"
         "A log of every run lies in $XDG_STATE_HOME/envsync/runs (~/.local/state); the last 20 are kept.\n"
         "\n"
         "Flags:\n"
         "  -h, --help                   print this page, or a verb's\n"
         "      --version                print the version\n"
         "\n"
         "Exit status:\n" +
         exit_lines({0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16, 17, 70, 130, 143}) +
         "Where all hosts fail alike, that code.\n";
}

std::string verb_help(Verb which) {
  const VerbSpec& verb = spec(which);
  std::string out = fmt::format("{}: {}\n\nUsage: {} [FLAGS]\n\nExamples:\n", verb.name, verb.summary, usage_line(verb));
  std::size_t widest = 0;
  for (const auto& [command, what] : verb.examples) widest = std::max(widest, command.size());
  for (const auto& [command, what] : verb.examples)
    out += what.empty() ? fmt::format("  {}\n", command) : fmt::format("  {:<{}}   {}\n", command, widest, what);
  if (!verb.about.empty()) out += "\n";
  for (const std::string_view paragraph : verb.about) out += wrap(paragraph, kWidth, "", 0);
  if (verb.places == Places::manifests || verb.places == Places::one_manifest) {
    out += verb.about.empty() ? "\n" : "";
    out += verb.places == Places::manifests ? "MANIFEST is envsync.yaml where none is given; several are worked on in order.\n" : "MANIFEST is envsync.yaml where none is given.\n";
  }
  out += "\nFlags:\n";
  for (const FlagSpec* flag : flags_of(which))
    if (!flag->is_hidden) out += flag_line(*flag);
  out += "  -h, --help                   print this page\n\nExit status:\n";
  std::vector<int> codes{0, 1, 2};
  codes.insert(codes.end(), verb.exits.begin(), verb.exits.end());
  for (const int code : codes) out += fmt::format("  {:<4} {}\n", code, exit_meaning_of(which, code));
  return out;
}

std::string explanation(const CodeInfo& code) {
  std::string out = fmt::format("{}: exit status {}, {}\n", code.name, code.exit_code, exit_meaning(code.exit_code));
  std::string_view text = code.explain;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    out += "\n" + wrap(text.substr(0, end), 80, "", 0);
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

Result<const CodeInfo*> find_code(std::string word) {
  const std::string given = safe(word);
  if (const std::size_t open = word.find('['); open != std::string::npos) word = word.substr(open + 1, word.find(']') - open - 1);
  std::ranges::replace(word, '-', '_');
  if (const auto code = code_by_name(word)) return &info(*code);
  std::vector<std::string> names;
  for (const CodeInfo& code : all_codes()) names.emplace_back(code.name);
  Error error = usage_error(fmt::format("no code '{}'", given));
  if (const auto near = nearest(word, names)) return std::move(error).hint(fmt::format("a code named '{}' exists", *near));
  return std::move(error).note(fmt::format("codes: {}", join(names, ", ")));
}

}  // namespace envsync::cli

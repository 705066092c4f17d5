// SPDX-License-Identifier: MIT
// The only file that knows CLI11: it is slow to compile, and its own messages, exit codes and help are all replaced.
#include "cli/arguments.hpp"

#include <algorithm>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "cli/text.hpp"

namespace envsync::cli {

namespace {

/// A negative number is a value.
bool is_flag_word(std::string_view word) { return word.size() > 1 && word.front() == '-' && (word[1] < '0' || word[1] > '9'); }
bool is_help_word(std::string_view word) { return word == "--help" || word == "-h"; }

/// One verb's parser and where it puts what it finds.
struct Parser {
  CLI::App app;
  std::vector<std::string> places;
  std::map<Flag, std::vector<std::string>> values;
  std::map<Flag, CLI::Option*> options;
  bool wants_help = false;

  explicit Parser(const VerbSpec& verb) {
    app.set_help_flag();
    app.allow_extras();
    app.add_flag("-h,--help", wants_help)->disable_flag_override();
    for (const FlagSpec* flag : flags_of(verb.verb)) add(*flag);
    app.add_option("places", places);
  }

  void add(const FlagSpec& flag) {
    const std::string names = flag.letter.empty() ? std::string(flag.name) : fmt::format("{},{}", flag.letter, flag.name);
    if (flag.value.empty()) {
      options[flag.flag] = app.add_flag(names)->disable_flag_override();
      return;
    }
    // Exactly one value at a time: by default a vector takes `m.yaml` of `--set a=b m.yaml` as well.
    options[flag.flag] = app.add_option(names, values[flag.flag])->type_size(1)->expected(1)->allow_extra_args(false)
                             ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
};

Error missing_value(const FlagSpec& flag, const std::string& found) {
  Error error = usage_error(fmt::format("'{}' needs a value: {}", flag.name, flag.value));
  if (!found.empty()) error.notes.push_back(fmt::format("the next word is '{}', a flag", safe(found)));
  return error;
}

/// What the parser cannot say well itself, found by looking at the words: unknown flags, flags without a value, switches with one.
std::optional<Error> check_words(std::span<const std::string> words, const VerbSpec& verb) {
  const std::vector<const FlagSpec*> taken = flags_of(verb.verb);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return std::nullopt;
    if (!is_flag_word(word) || is_help_word(word)) continue;
    const bool is_long = word.starts_with("--");
    const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
    const auto found = std::ranges::find_if(taken, [&](const FlagSpec* f) { return name == (is_long ? f->name : f->letter); });
    if (found == taken.end()) return unknown_flag(word, verb);
    const FlagSpec& flag = **found;
    if (flag.value.empty()) {
      if (is_long && word.find('=') != std::string::npos) return usage_error(fmt::format("'{}' takes no value", flag.name));
      for (const char letter : is_long ? std::string() : word.substr(2)) {
        const std::string next{'-', letter};
        if (letter != 'h' && std::ranges::none_of(taken, [&](const FlagSpec* f) { return next == f->letter; })) return unknown_flag(next, verb);
      }
      continue;
    }
    if (word.find('=') != std::string::npos) {
      if (word.back() == '=' && name.size() + 1 == word.size()) return missing_value(flag, {});
      continue;
    }
    if (i + 1 == words.size()) return missing_value(flag, {});
    if (is_flag_word(words[i + 1])) return missing_value(flag, words[i + 1]);
    ++i;
  }
  return std::nullopt;
}

std::variant<Words, PageWanted, Error> parse_verb(std::span<const std::string> words, const VerbSpec& verb) {
  // Help wins over whatever else is wrong: who asks for it is looking for the way out of an error.
  for (const std::string& word : words) {
    if (word == "--") break;
    if (is_help_word(word)) return PageWanted{Page::verb_help, verb.verb};
  }
  if (auto error = check_words(words, verb)) return std::move(*error);

  Parser parser(verb);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes words from the back
  try {
    parser.app.parse(reversed);
  } catch (const CLI::Error& error) {
    return usage_error(fmt::format("cannot read the command line of '{}'", verb.name)).cause(safe(error.what()));
  }
  if (parser.wants_help) return PageWanted{Page::verb_help, verb.verb};

  Words result{.verb = verb.verb, .places = std::move(parser.places), .flags = {}};
  for (const auto& [flag, option] : parser.options) {
    if (option->count() == 0) continue;
    result.flags[flag] = spec(flag).value.empty() ? std::vector<std::string>{""} : parser.values[flag];
  }
  for (std::string& extra : parser.app.remaining())
    if (extra != "--") result.places.push_back(std::move(extra));
  return result;
}

const VerbSpec* find_verb(std::string_view word) {
  const auto verbs = all_verbs();
  const auto found = std::ranges::find(verbs, word, &VerbSpec::name);
  return found == verbs.end() ? nullptr : &*found;
}

Error flag_before_verb(const std::string& word, std::span<const std::string> rest) {
  Error error = usage_error(fmt::format("'{}' stands before the verb", safe(word)));
  const auto verb = std::ranges::find_if(rest, [](const std::string& w) { return find_verb(w) != nullptr; });
  const std::string name = verb == rest.end() ? "plan" : *verb;
  return std::move(error).hint(fmt::format("put flags after it, as in `envsync {} {}`", name, shell_word(word)));
}

}  // namespace

std::variant<Words, PageWanted, Error> parse_words(std::span<const std::string> arguments) {
  if (arguments.empty()) return PageWanted{};
  const std::string& first = arguments[0];
  const auto rest = arguments.subspan(1);
  if (first == "--version" || first == "-V") return PageWanted{Page::version};
  if (is_help_word(first) || first == "help") {
    if (rest.empty()) return PageWanted{Page::help};
    const VerbSpec* verb = find_verb(rest[0]);
    if (verb == nullptr) return unknown_verb(rest[0]);
    return PageWanted{Page::verb_help, verb->verb};
  }
  if (is_flag_word(first)) return flag_before_verb(first, rest);
  const VerbSpec* verb = find_verb(first);
  if (verb == nullptr) return unknown_verb(first);
  return parse_verb(rest, *verb);
}

}  // namespace envsync::cli

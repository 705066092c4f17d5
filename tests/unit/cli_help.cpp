// SPDX-License-Identifier: MIT
#include "cli/help.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "cli/arguments.hpp"
#include "support/cli_bench.hpp"
#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::cli;
using namespace envsync::test;

namespace {
long lines(const std::string& text) { return std::ranges::count(text, '\n'); }
}  // namespace

TEST_CASE("envsync alone prints at most 24 lines on stderr and exits 2") {
  Bench bench;
  CHECK(bench({}) == 2);
  CHECK(bench.out.empty());
  CHECK(lines(bench.err) <= 24);
  check_golden("cli_short_help", bench.err);
}

TEST_CASE("--help is the result, on stdout") {
  Bench bench;
  CHECK(bench({"--help"}) == 0);
  CHECK(bench.err.empty());
  check_golden("cli_help", bench.out);
}

TEST_CASE("every verb's page has examples before flags, every visible flag in one line, and its exit codes") {
  for (const VerbSpec& verb : all_verbs()) {
    CAPTURE(verb.name);
    const std::string page = verb_help(verb.verb);
    check_golden("cli_help_" + std::string(verb.name), page);
    CHECK(page.find("Examples:") < page.find("Flags:"));
    CHECK(page.find("Flags:") < page.find("Exit status:"));
    for (const FlagSpec& flag : all_flags()) {
      const bool is_taken = std::ranges::find(flag.verbs, verb.verb) != flag.verbs.end();
      CAPTURE(flag.name);
      CHECK((page.find(std::string("  ") + (flag.letter.empty() ? "    " : std::string(flag.letter) + ", ") + std::string(flag.name) + " ") != std::string::npos) == (is_taken && !flag.is_hidden));
      CHECK_FALSE(flag.summary.ends_with('.'));
    }
    for (const auto& [command, what] : verb.examples) CHECK(command.starts_with("envsync " + std::string(verb.name)));
  }
}

TEST_CASE("no line of a page is wider than 100 columns") {
  std::vector<std::string> pages{short_help(), long_help()};
  for (const VerbSpec& verb : all_verbs()) pages.push_back(verb_help(verb.verb));
  for (const std::string& page : pages) {
    for (std::size_t at = 0; at < page.size();) {
      const std::size_t end = page.find('\n', at);
      CAPTURE(page.substr(at, end - at));
      CHECK(end - at <= 100);
      at = end + 1;
    }
  }
}

TEST_CASE("every example on a page is a line that the parser takes") {
  for (const VerbSpec& verb : all_verbs()) {
    for (const auto& [command, what] : verb.examples) {
      CAPTURE(command);
      std::vector<std::string> words;
      std::string word;
      for (const char c : std::string(command) + " ") {
        if (c == '>') break;
        if (c == '\'') continue;
        if (c != ' ') { word += c; continue; }
        if (!word.empty()) words.push_back(word);
        word.clear();
      }
      CHECK(std::holds_alternative<Words>(parse_words(std::span(words).subspan(1))));
    }
  }
}

TEST_CASE("explain prints every code, also as it was pasted from a message") {
  for (const CodeInfo& code : all_codes()) {
    Bench bench;
    CHECK(bench({"explain", std::string(code.name)}) == 0);
    CHECK(bench.out.starts_with(std::string(code.name) + ": exit status "));
    CHECK(bench.out.size() > code.explain.size());
  }
  Bench bench;
  CHECK(bench({"explain", "error[no_space]:"}) == 0);
  check_golden("cli_explain_no_space", bench.out);
  CHECK(bench({"explain", "no-space"}) == 0);
}

TEST_CASE("explain of an unknown code names the nearest one and exits 2") {
  Bench bench;
  CHECK(bench({"explain", "no_spce"}) == 2);
  CHECK(bench.out.empty());
  CHECK(bench.err == "error[usage]: no code 'no_spce'\n\nhint: a code named 'no_space' exists\n");
}

TEST_CASE("version and schema are results") {
  Bench bench;
  CHECK(bench({"--version"}) == 0);
  CHECK(bench.out == "envsync 0.1.0\n");
  CHECK(bench({"schema"}) == 0);
  CHECK(bench.out == "{}\n");
}

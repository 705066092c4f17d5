// SPDX-License-Identifier: MIT
#include "cli/error_text.hpp"

#include <doctest/doctest.h>

#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::cli;
using envsync::test::check_golden;

namespace {

Error with_line(std::string line, u32 column, u32 length) {
  Error error(ErrorCode::manifest_invalid, "unknown key 'overlay' in the manifest");
  error.where = Location{.file = "fleet.yaml", .line = 14, .column = column, .length = length, .line_text = std::move(line)};
  return error;
}

/// The quoted line and the one with the caret.
std::string quoted(const Error& error) {
  const std::string text = error_text(error, Palette());
  const std::size_t from = text.find("14 | ");
  const std::size_t caret = text.find('\n', text.find('^'));
  return text.substr(from, caret - from);
}

}  // namespace

TEST_CASE("an error of a manifest quotes the line, underlines the place and ends with the hint") {
  Error error = with_line("overlay: prod/", 1, 7);
  error.at_notes = {"keys allowed here: accept, overlays, path"};
  error.hints = {"a key named 'overlays' exists and takes a list"};
  check_golden("cli_error_manifest", error_text(error, Palette()));
}

TEST_CASE("an error of a host has causes, then the state, then a command to paste") {
  Error error(ErrorCode::no_space, "cannot stage generation 8 of 'analytics' on web-02");
  error.causes = {"writing '/srv/.envsync/analytics/staging/5/partial/1f3a'", "no space left on device (need 412 MB, have 96 MB)"};
  error.notes = {"generation 7 is still current; nothing was changed"};
  error.hints = {"run `envsync prune fleet.yaml --host web-02 --keep 2` to free about 1.3 GB"};
  check_golden("cli_error_no_space", error_text(error, Palette()));
}

TEST_CASE("an error without a place of its own names host and path") {
  const Error error(ErrorCode::unreadable, "a socket lies in the environment");
  CHECK(error_text(error, Palette(), {.severity = Severity::error, .at = "web-01:/srv/venv", .run_log = {}}) ==
        "error[unreadable]: a socket lies in the environment\n  --> web-01:/srv/venv\n");
}

TEST_CASE("a list of paths stands under the error as a plan would show it") {
  Error error(ErrorCode::drift_refused, "'analytics' on web-01 was changed after generation 7 was committed");
  error.at_notes = {"~ lib/adapters.py   (modified 2 h ago)", "+ lib/pdbpp.py", "9 more"};
  check_golden("cli_error_drift", error_text(error, Palette()));
}

TEST_CASE("what ssh printed keeps its lines, under the first, without control characters") {
  Error error(ErrorCode::connect_failed, "cannot connect to web-01");
  error.causes = {"ssh: first\r\nsecond \x1b[31mred\n", ""};
  CHECK(error_text(error, Palette()) == "error[connect_failed]: cannot connect to web-01\n  cause: ssh: first\n         second \\x1b[31mred\n  cause: \n");
}

TEST_CASE("a bug names itself, the state and the log to report it with") {
  Error error(ErrorCode::internal, "generation 9 is already sealed (store/transaction.cpp:118)");
  error.notes = {"the environment is unchanged: generation 8 is current"};
  check_golden("cli_error_internal", error_text(error, Palette(), {.severity = Severity::error, .at = {}, .run_log = "~/.local/state/envsync/runs/x.ndjson"}));
}

TEST_CASE("the caret stands under the place whatever comes before it") {
  CHECK(quoted(with_line("\tkey: 1", 2, 3)) == "14 |     key: 1\n   |     ^^^");
  CHECK(quoted(with_line("ä→: key", 8, 3)) == "14 | ä→: key\n   |     ^^^");
  CHECK(quoted(with_line("a\x01: key", 5, 3)) == "14 | a\\x01: key\n   |        ^^^");
  CHECK(quoted(with_line("short", 6, 1)) == "14 | short\n   |      ^");
}

TEST_CASE("a place beyond the line, or longer than it, stays within what is shown") {
  CHECK(quoted(with_line("short", 60, 50)) == "14 | short\n   |      ^");
  CHECK(quoted(with_line("short", 2, 4000000000)) == "14 | short\n   |  ^^^^");
  CHECK(quoted(with_line("short", 0, 0)) == "14 | short\n   | ^");
}

TEST_CASE("of a very long line only the neighbourhood of the place is shown") {
  std::string line(1'000'000, 'x');
  line[500'000] = 'K';
  const std::string text = error_text(with_line(line, 500'001, 1), Palette());
  CHECK(text.size() < 600);
  const std::size_t from = text.find("14 | ");
  const std::string shown = text.substr(from + 5, text.find('\n', from) - from - 5);
  const std::size_t caret_line = text.rfind('\n', text.find('^')) + 1;
  CHECK(columns(shown.substr(0, shown.find('K'))) == text.find('^') - caret_line - 5);
}

TEST_CASE("a warning without a code of its own has no brackets") {
  const Error error(ErrorCode::failed, "an earlier run was interrupted");
  CHECK(error_text(error, Palette(), {.severity = Severity::note, .at = {}, .run_log = {}}) == "note: an earlier run was interrupted\n");
  CHECK(error_text(Error(ErrorCode::in_use, "1 process runs"), Palette(), {.severity = Severity::warning, .at = {}, .run_log = {}}) == "warning[in_use]: 1 process runs\n");
}

TEST_CASE("colour changes no letter of a message") {
  Error error = with_line("overlay: prod/", 1, 7);
  error.hints = {"x"};
  std::string colored = error_text(error, Palette(true));
  for (std::size_t at = 0; (at = colored.find('\x1b')) != std::string::npos;) colored.erase(at, colored.find('m', at) - at + 1);
  CHECK(colored == error_text(error, Palette()));
}

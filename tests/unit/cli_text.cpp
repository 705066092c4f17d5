// SPDX-License-Identifier: MIT
#include "cli/text.hpp"

#include <limits>

#include <doctest/doctest.h>

#include "cli/exit_code.hpp"

using namespace envsync::cli;

TEST_CASE("numbers carry separators and nouns their plural") {
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(78214) == "78,214");
  CHECK(thousands(18446744073709551615u) == "18,446,744,073,709,551,615");
  CHECK(count(1, "file") == "1 file");
  CHECK(count(0, "file") == "0 files");
  CHECK(count(2, "entry") == "2 entries");
}

TEST_CASE("durations have the unit that a person would choose") {
  CHECK(duration(1.1) == "1.1 s");
  CHECK(duration(9.96) == "10 s");
  CHECK(duration(58.4) == "58 s");
  CHECK(duration(59.7) == "1 min");
  CHECK(duration(95) == "1 min 35 s");
  CHECK(duration(7500) == "2 h 5 min");
  CHECK(duration(-1) == "0.0 s");
  CHECK(duration(1e300) == "over 99 h");
  CHECK(duration(std::numeric_limits<double>::quiet_NaN()) == "over 99 h");
  CHECK(rough_duration(7.4) == "7 s");
  CHECK(rough_duration(0) == "1 s");
  CHECK(rough_duration(std::numeric_limits<double>::infinity()) == "over 99 h");
  CHECK(long_duration(0.9) == "");
  CHECK(long_duration(2, " in ") == " in 2.0 s");
}

TEST_CASE("bytes share their unit where they can") {
  CHECK(bytes_of_bytes(3'100'000'000, 5'000'000'000) == "3.1 of 5.0 GB");
  CHECK(bytes_of_bytes(850'000'000, 12'000'000'000) == "850 MB of 12 GB");
  CHECK(bytes_of_bytes(0, 5'000'000'000) == "0 B of 5.0 GB");
  CHECK(rate(118e6) == "118 MB/s");
  CHECK(rate(-1) == "0 B/s");
  CHECK(rate(std::numeric_limits<double>::infinity()) == "1000 TB/s");
}

TEST_CASE("times are UTC and say so") {
  CHECK(utc_minute(1'796'061'840) == "2026-11-30 18:04 UTC");
  CHECK(rfc3339(1'796'061'600'123'456'789) == "2026-11-30T18:00:00.123Z");
}

TEST_CASE("text from outside loses control characters and nothing else") {
  CHECK(safe("a\x1b]0;t\x07" "b") == "a\\x1b]0;t\\x07b");
  CHECK(safe("back\\slash \\x1b") == "back\\slash \\x1b");
  CHECK(safe(safe("\xff\\")) == safe("\xff\\"));
  CHECK(safe("zürich → 東京") == "zürich → 東京");
}

TEST_CASE("a word for a shell is quoted where it must be") {
  CHECK(shell_word("fleet.yaml") == "fleet.yaml");
  CHECK(shell_word("web-*") == "'web-*'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("") == "''");
}

TEST_CASE("cutting counts columns, not bytes") {
  CHECK(columns("→ é") == 3);
  CHECK(clip("→→→→", 3) == "→→…");
  CHECK(clip("abc", 3) == "abc");
  CHECK(clip("abc", 0) == "");
  CHECK(wrap("one two three", 8, "", 2) == "one two\n  three\n");
  CHECK(wrap("", 8, "x", 2) == "x\n");
}

TEST_CASE("colour is asked for or absent") {
  CHECK(Palette(true).red("x") == "\x1b[1;31mx\x1b[0m");
  CHECK(Palette(false).red("x") == "x");
}

TEST_CASE("the exit code of several manifests follows the table") {
  CHECK(combined_exit_code({}) == 0);
  CHECK(combined_exit_code({0, 0}) == 0);
  CHECK(combined_exit_code({12, 12}) == 12);
  CHECK(combined_exit_code({0, 12}) == 3);
  CHECK(combined_exit_code({10, 12}) == 1);
  CHECK(combined_exit_code({0, 4}) == 4);
  CHECK(combined_exit_code({4, 13}) == 3);
  CHECK(combined_exit_code({3, 12}) == 3);
  CHECK(combined_exit_code({0, 130}) == 130);
}

TEST_CASE("a signal decides the exit code only where the run has nothing truer to say") {
  CHECK(interrupted_exit_code(12, 2) == 130);
  CHECK(interrupted_exit_code(3, 15) == 143);
  CHECK(interrupted_exit_code(1, 1) == 143);
  CHECK(interrupted_exit_code(0, 2) == 0);
  CHECK(interrupted_exit_code(12, 0) == 12);
  for (const int code : {15, 16, 17, 70}) CHECK(interrupted_exit_code(code, 2) == code);
}

// SPDX-License-Identifier: MIT
#include "cli/terminal.hpp"

#include <doctest/doctest.h>

#include "support/cli_bench.hpp"

using namespace envsync;
using namespace envsync::cli;
using namespace envsync::test;

namespace {

/// What a terminal shows after the bytes that were written to it: as much of one as the status lines use.
class Screen {
 public:
  explicit Screen(std::size_t rows = 24) : rows_(rows) {}
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const char c = bytes[0];
      if (c == '\x1b') { escape(bytes); continue; }
      bytes.remove_prefix(1);
      if (c == '\r') { column_ = 0; continue; }
      if (c == '\n') {
        column_ = 0;
        if (++row_ >= lines_.size()) lines_.emplace_back();
        continue;
      }
      std::string& line = lines_[row_];
      if (line.size() < column_) line.resize(column_, ' ');
      if (column_ < line.size()) line[column_] = c;
      else line += c;
      ++column_;
    }
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> shown = lines_;
    while (!shown.empty() && shown.back().empty()) shown.pop_back();
    return shown;
  }

 private:
  void escape(std::string_view& bytes) {
    std::size_t end = 2;
    while (std::isdigit(static_cast<unsigned char>(bytes[end])) != 0) ++end;
    const std::string number(bytes.substr(2, end - 2));
    switch (bytes[end]) {
      case 'A': REQUIRE(std::stoul(number) <= row_); row_ -= std::stoul(number); REQUIRE(lines_.size() - row_ <= rows_); break;
      case 'K': number == "2" ? lines_[row_].clear() : lines_[row_].resize(std::min(column_, lines_[row_].size())); break;
      default: FAIL("an escape that a plain terminal need not know");
    }
    bytes.remove_prefix(end + 1);
  }
  std::size_t rows_;
  std::vector<std::string> lines_{""};
  std::size_t row_ = 0, column_ = 0;
};

struct Shown {
  Bench bench;
  Screen screen;
  std::string plain;
  Shown() {
    bench.io.err = [this](std::string_view text) { screen.write(text); plain += text; };
  }
};

PhaseEvent begins(std::string host, Phase phase) { return {.host = std::move(host), .phase = phase, .finished = false, .seconds = 0, .files = 0, .bytes = 0}; }
PhaseEvent ends(std::string host, Phase phase, double seconds, u64 files, u64 bytes) {
  return {.host = std::move(host), .phase = phase, .finished = true, .seconds = seconds, .files = files, .bytes = bytes};
}
ProgressEvent sends(std::string host, u64 done) {
  return {.host = std::move(host), .phase = Phase::transfer, .bytes_done = done, .bytes_total = 5'000'000'000, .files_done = 0, .files_total = 0, .bytes_per_second = 118e6, .seconds_left = 16};
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("on a terminal one line shows phase, bytes of bytes, rate and time left, redrawn in place") {
  Shown shown;
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::animated});
  terminal.on(begins("gpu", Phase::scan));
  CHECK(shown.screen.lines() == Lines{"  Scanning "});
  terminal.on(ends("gpu", Phase::scan, 0.3, 10, 10));
  terminal.on(begins("gpu", Phase::transfer));
  terminal.on(sends("gpu", 1'000'000'000));
  shown.bench.clock.pass(0.2);
  terminal.on(sends("gpu", 3'100'000'000));
  CHECK(shown.screen.lines() == Lines{"   Sending 3.1 of 5.0 GB  118 MB/s  16 s left"});
  terminal.done("gpu");
  terminal.draw();
  CHECK(shown.screen.lines().empty());
}

TEST_CASE("several hosts have a line each; what is printed in between stays above them") {
  Shown shown;
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::animated, .shows_host = true});
  terminal.on(begins("web-01", Phase::transfer));
  terminal.on(begins("web-02", Phase::scan));
  terminal.on(begins("web-03", Phase::scan));
  CHECK(shown.screen.lines() == Lines{"   Sending web-01", "  Scanning web-02", "  Scanning web-03"});
  terminal.erase();
  shown.bench.io.err("warning: x\n");
  terminal.draw();
  terminal.done("web-02");
  terminal.draw();
  CHECK(shown.screen.lines() == Lines{"warning: x", "   Sending web-01", "  Scanning web-03"});
  terminal.done("web-01");
  terminal.draw();
  terminal.done("web-03");
  terminal.draw();
  CHECK(shown.screen.lines() == Lines{"warning: x"});
}

TEST_CASE("status lines never wrap and never outgrow the screen") {
  Shown shown;
  shown.screen = Screen(8);
  shown.bench.io.terminal_size = [] { return TerminalSize{.columns = 20, .rows = 8}; };
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::animated, .shows_host = true});
  for (int i = 0; i < 9; ++i) terminal.on(begins("a-host-with-a-long-name-" + std::to_string(i), Phase::scan));
  const Lines lines = shown.screen.lines();
  REQUIRE(lines.size() == 5);
  CHECK(lines[0] == "  Scanning a-host-…");
  CHECK(lines[4] == "           and 5 m…");
  for (int i = 0; i < 8; ++i) terminal.done("a-host-with-a-long-name-" + std::to_string(i));
  terminal.draw();
  CHECK(shown.screen.lines().size() == 1);
  terminal.done("a-host-with-a-long-name-8");
  terminal.draw();
  CHECK(shown.screen.lines().empty());
}

TEST_CASE("nothing is drawn while ssh may be asking for a password on the same terminal") {
  Shown shown;
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::animated, .shows_host = true, .is_verbose = false, .may_prompt = true});
  terminal.on(begins("web-01", Phase::scan));
  terminal.on(begins("web-02", Phase::connect));
  shown.bench.clock.pass(5);
  terminal.tick();
  CHECK(shown.screen.lines().empty());
  terminal.on(ends("web-02", Phase::connect, 5, 0, 0));
  terminal.on(begins("web-02", Phase::scan));
  CHECK(shown.screen.lines() == Lines{"  Scanning web-01  5.0 s", "  Scanning web-02"});
}

TEST_CASE("a silent engine still shows the time that passes, at most ten times a second") {
  Shown shown;
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::animated});
  terminal.on(begins("gpu", Phase::seal));
  const std::size_t written = shown.plain.size();
  shown.bench.clock.pass(0.05);
  terminal.tick();
  CHECK(shown.plain.size() == written);
  shown.bench.clock.pass(3);
  terminal.tick();
  CHECK(shown.screen.lines() == Lines{"   Sealing 3.0 s"});
}

TEST_CASE("without a terminal there is a line per finished phase and no escape") {
  Shown shown;
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::plain, .shows_host = true});
  terminal.on(begins("web-01", Phase::scan));
  CHECK(shown.plain.empty());
  terminal.on(ends("web-01", Phase::scan, 0.3, 78'572, 10'900'000'000));
  terminal.on(begins("web-01", Phase::transfer));
  terminal.on(ends("web-01", Phase::transfer, 45, 12, 5'000'000'000));
  terminal.on(ends("web-01", Phase::commit, 0.01, 0, 0));
  CHECK(shown.plain == "   Scanned web-01: 78,572 files, 11 GB\n      Sent web-01: 12 files, 5.0 GB in 45 s\n   Swapped web-01\n");
  CHECK(shown.plain.find('\x1b') == std::string::npos);
}

TEST_CASE("without a terminal a host at work says so every half minute, an idle one never") {
  Shown shown;
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::plain});
  terminal.on(begins("gpu", Phase::transfer));
  terminal.on(sends("gpu", 3'100'000'000));
  shown.bench.clock.pass(29.9);
  terminal.tick();
  CHECK(shown.plain.empty());
  shown.bench.clock.pass(0.1);
  terminal.tick();
  terminal.tick();
  CHECK(shown.plain == "   Sending 3.1 of 5.0 GB  118 MB/s  16 s left\n");
  shown.bench.clock.pass(30);
  terminal.on(sends("gpu", 3'200'000'000));
  CHECK(shown.plain.substr(shown.plain.find('\n') + 1) == "   Sending 3.2 of 5.0 GB  118 MB/s  16 s left\n");
  terminal.on(ends("gpu", Phase::transfer, 60, 0, 0));
  const std::string before = shown.plain;
  shown.bench.clock.pass(90);
  terminal.tick();
  CHECK(shown.plain == before);
}

TEST_CASE("quiet shows no progress at all") {
  Shown shown;
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::silent});
  terminal.on(begins("gpu", Phase::transfer));
  terminal.on(sends("gpu", 3'100'000'000));
  shown.bench.clock.pass(100);
  terminal.tick();
  terminal.on(ends("gpu", Phase::transfer, 100, 1, 1));
  terminal.done("gpu");
  terminal.draw();
  CHECK(shown.plain.empty());
}

TEST_CASE("a host's name cannot steer the terminal") {
  Shown shown;
  Terminal terminal(shown.bench.io, {.style = ProgressStyle::animated, .shows_host = true});
  terminal.on(begins("evil\x1b[2J\n", Phase::scan));
  CHECK(shown.screen.lines() == Lines{"  Scanning evil\\x1b[2J\\x0a"});
}

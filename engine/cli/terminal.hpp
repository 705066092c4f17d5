// SPDX-License-Identifier: MIT
// Progress on stderr. On a terminal: one status line a host, redrawn in place. Elsewhere: a line per finished phase and one
// each half minute for a host that is still at work. Not thread-safe; its owner serialises.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <envsync/event.hpp>

#include "cli/io.hpp"
#include "cli/text.hpp"

namespace envsync::cli {

enum class ProgressStyle : u8 { silent, plain, animated };

struct TerminalOptions {
  ProgressStyle style = ProgressStyle::plain;
  bool shows_host = false;   // else only once a second host, a source say, is seen
  bool is_verbose = false;   // finished phases stay on the screen
  bool may_prompt = false;   // ssh may ask on this terminal while it connects
  Palette palette{};
};

class Terminal {
 public:
  /// `io` outlives this.
  Terminal(const Io& io, TerminalOptions options) : io_(&io), options_(options) {}

  void on(const PhaseEvent& event);
  void on(const ProgressEvent& event);
  /// The host has its outcome: its line goes. Like erase(), to be followed by what is written and draw().
  void done(const std::string& host);
  /// Time passed: redraws, or says that a host is still at work.
  void tick();

  /// Takes the status lines away, so that something else can be written; draw() brings them back.
  void erase();
  void draw();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Host {
    std::string name;
    Phase phase = Phase::connect;
    Time since;            // the phase began
    Time said;             // last line about it on a stream that is no terminal
    ProgressEvent progress;
    bool has_progress = false;
    bool is_at_work = true;   // not between two phases
  };

  Host& host(const std::string& name);
  /// What follows the verb column.
  std::string status(const Host& host, Time now) const;
  std::string finished(const PhaseEvent& event) const;
  std::vector<std::string> status_lines(Time now) const;
  void redraw(Time now);

  const Io* io_;
  TerminalOptions options_;
  std::vector<Host> hosts_;   // at work, in the order of their first event
  std::size_t drawn_ = 0;     // status lines on the screen now
  Time drawn_at_{};
};

}  // namespace envsync::cli

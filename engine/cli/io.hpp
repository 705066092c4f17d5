// SPDX-License-Identifier: MIT
// Everything the command line needs of the world, handed in: streams, terminal, environment, clock, and the engine.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <envsync/engine.hpp>

#include "base/clock.hpp"

namespace envsync::cli {

struct TerminalSize { u32 columns = 80, rows = 24; };

struct Io {
  std::function<void(std::string_view)> out;  // the result
  std::function<void(std::string_view)> err;  // progress, notes, errors; called from one thread at a time, but not always the same
  /// One line of standard input without its newline; nullopt at its end or when the run is asked to stop.
  std::function<std::optional<std::string>(std::stop_token)> read_line;
  /// The same, and what is typed is not shown.
  std::function<std::optional<std::string>(std::stop_token)> read_secret;
  bool in_is_terminal = false, out_is_terminal = false, err_is_terminal = false;
  std::function<TerminalSize()> terminal_size;
  std::function<std::string(const std::string&)> environment;  // empty where unset
  const Clock* clock = nullptr;   // outlives the run
  std::function<u32()> random;
  std::string folder = ".";       // where `init` writes and a default manifest lies
  bool has_ticker = false;        // redraw from a thread of its own while the engine is silent
};

/// The engine and the free functions beside it.
struct Services {
  Engine& engine;  // outlives the run
  std::function<Result<ManifestText>(const std::string&, std::vector<std::string>)> load;
  std::string_view schema;
  std::string_view version;
};

/// The signals that reached this process. `signal` gives 0, or the first one's number.
struct Interruption {
  std::stop_token stop;
  std::function<int()> signal;
};

}  // namespace envsync::cli

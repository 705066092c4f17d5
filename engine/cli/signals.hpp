// SPDX-License-Identifier: MIT
// Signals as a stop token. The first SIGINT, SIGTERM or SIGHUP asks the run to stop; a second SIGINT ends the process at
// once. SIGPIPE is ignored: a reader that went away must not end a swap. One object a process.
#pragma once

#include <stop_token>
#include <thread>

namespace envsync::cli {

class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  std::stop_token stop() const { return source_.get_token(); }
  /// The first signal that arrived, or 0.
  int first() const;

 private:
  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace envsync::cli

// SPDX-License-Identifier: MIT
// The process's own streams, terminal, environment and clock.
#pragma once

#include <memory>

#include "cli/io.hpp"

namespace envsync::cli {

class ProcessIo {
 public:
  ProcessIo();
  const Io& io() const { return io_; }
  /// The exit code, or 1 with a message where the result could not be written (a full disk; not a reader that went away).
  int check_output(int exit_code);

 private:
  SystemClock clock_;
  int out_errno_ = 0;
  Io io_;
};

}  // namespace envsync::cli

// SPDX-License-Identifier: MIT
// The last lines of a run: the new state and the next useful command.
#pragma once

#include <map>
#include <string>

#include <envsync/event.hpp>

#include "cli/view.hpp"

namespace envsync::cli {

struct RunSeen {
  const std::map<std::string, Outcome>& outcomes;  // by host and path
  u64 hosts_differing = 0;      // verify
  bool saw_changes = false;     // plan: something would change; status: drift
  bool has_refusals = false;    // plan: apply would refuse
  int exit_code = 0;
  std::string run_log;          // as shown; empty: none
};

struct Closing {
  std::string out;   // success: to stdout
  std::string err;   // failure: to stderr
};

Closing closing(const RunSeen& seen, const View& view, const Palette& out, const Palette& err);

}  // namespace envsync::cli
